#!/usr/bin/env bash
# Fuzzes each parser for some time, led by coverage:  fuzz/run.sh [--seed N] [SECONDS a parser, 60] [NAME…]
# The seed is drawn if none is given, and printed: the same one begins with the same inputs. What it finds stays in
# build/fuzz/fuzz/found; a crash leaves its input beside, the next parser goes on, and the end says which failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/packages.sh

usage() {
  say "$1; usage: fuzz/run.sh [--seed N] [SECONDS] [NAME…]"
  exit 2
}

seed=$(( (RANDOM << 15 | RANDOM) + 1 ))
if [[ ${1:-} == --seed ]]; then
  # libFuzzer takes 0 for a seed of its own choice.
  if [[ ! ${2:-} =~ ^[1-9][0-9]{0,8}$ ]]; then usage "\"${2:-}\" is not a seed: a number from 1"; fi
  seed=$2
  shift 2
fi
seconds=${1:-60}
if [[ ! $seconds =~ ^[0-9]+$ ]]; then usage "\"$seconds\" is not a number of seconds"; fi
shift || true
names=("$@")
if (( ${#names[@]} == 0 )); then
  for file in fuzz/*_fuzz.cpp; do names+=("$(basename "$file" _fuzz.cpp)"); done
fi
for name in "${names[@]}"; do
  if [[ ! -f fuzz/${name}_fuzz.cpp ]]; then usage "there is no parser \"$name\" here"; fi
done
need_packages "${build_packages[@]}" "${test_packages[@]}"

cmake --preset fuzz >/dev/null
build_with_ninja build/fuzz -j2 "${names[@]/#/fuzz_}"
failed=()
for name in "${names[@]}"; do
  say "fuzzing $name for $seconds s, seed $seed"
  build/fuzz/fuzz/"fuzz_$name" -max_total_time="$seconds" -seed="$seed" -max_len=4096 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/fuzz/$name-" "build/fuzz/fuzz/found/$name" "fuzz/corpus/$name" || failed+=("$name")
done
say "$(( ${#names[@]} - ${#failed[@]} )) of ${#names[@]} parsers held, seed $seed"
if (( ${#failed[@]} > 0 )); then
  say "failed: ${failed[*]}; their inputs are build/fuzz/fuzz/NAME-*"
  exit 1
fi
