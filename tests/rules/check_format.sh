#!/usr/bin/env bash
# Every tracked C++ file is laid out as .clang-format says. `--fix` lays it out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mode=(--dry-run -Werror)
if [[ ${1:-} == --fix ]]; then mode=(-i); fi
git ls-files -z -- '*.h' '*.cpp' | xargs -0 -r -n 20 -P 2 clang-format-19 "${mode[@]}"
