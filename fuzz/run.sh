#!/usr/bin/env bash
# Fuzzes each parser for some time, led by coverage:  fuzz/run.sh [SECONDS a parser, 60] [NAME…]
# What it finds stays in build/fuzz/fuzz/found; a crash leaves its input beside and fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/packages.sh
need_packages "${build_packages[@]}" "${test_packages[@]}"

seconds=${1:-60}
if [[ ! $seconds =~ ^[0-9]+$ ]]; then
  say "\"$seconds\" is not a number of seconds; usage: fuzz/run.sh [SECONDS] [NAME…]"
  exit 2
fi
shift || true
names=("$@")
if (( ${#names[@]} == 0 )); then
  for file in fuzz/*_fuzz.cpp; do names+=("$(basename "$file" _fuzz.cpp)"); done
fi

cmake --preset fuzz >/dev/null
build_with_ninja build/fuzz -j2 "${names[@]/#/fuzz_}"
for name in "${names[@]}"; do
  say "fuzzing $name for $seconds s"
  build/fuzz/fuzz/"fuzz_$name" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/fuzz/$name-" "build/fuzz/fuzz/found/$name" "fuzz/corpus/$name"
done
