#!/usr/bin/env bash
# The panel in a real Chromium, against the real program:
#   tests/browser/run.sh [BELFRY]                     all tests, with build/release/belfry unless another program is named
#   tests/browser/run.sh BELFRY quick_replies.test.mjs
set -euo pipefail
BELFRY=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../../build/release/belfry}")
export BELFRY
shift || true
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=../../cmake/packages.sh
. ../../cmake/packages.sh

need_npm_packages "$PWD"
files=("$@")
if (( ${#files[@]} == 0 )); then files=(*.test.mjs); fi
# A Node of their own: that of Debian 12 is too old for Playwright.
exec node_modules/node/bin/node --test --test-concurrency=1 --test-timeout=600000 "${files[@]}"
