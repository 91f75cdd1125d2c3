#!/usr/bin/env bash
# Shows that the tests notice what they are there for: each patch here breaks one promise, and its test must fail.
#
#   tests/mutants/check.sh            all patches
#   tests/mutants/check.sh D4 D12     those of these requirements, or of these names
#   tests/mutants/check.sh --apply    whether all still apply, and name a test that there is; seconds, nothing is built
#
# A patch is applied by what it says, not by where it stood (apply.py): code that moves needs no new patch.
#
# A patch begins with two lines:
#   # D4: what it breaks
#   # test: a regular expression for ctest -R
# or, if it takes a browser to notice it, what tests/browser/run.sh is given behind the program:
#   # browser: --test-name-pattern=twice lines.test.mjs
# For those alone, BELFRY=build/release/belfry uses that program and builds only the panel. Or, for a part of the panel that has a
# test without a page, the name of that test; or, for what is not compiled, a script in tests/integration and its arguments. For
# those alone nothing else is built:
#   # panel: four times a second
#   # python: plugins_test.py ImageDraw
#
# A mutant is caught if it builds and its test fails; one that does not build shows nothing, and fails the check like one
# that survives.
#
# Everything happens in a copy; the tree itself is not touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD

apply_only=0
if [[ ${1:-} == --apply ]]; then
  apply_only=1
  shift
fi

patches=()
for patch in tests/mutants/*.patch; do
  [[ -e $patch ]] || continue
  name=$(basename "$patch" .patch)
  id=${name%%[!A-Z0-9]*}
  if (( $# == 0 )) || [[ " $* " == *" $id "* || " $* " == *" $name "* ]]; then patches+=("$root/$patch"); fi
done
if (( ${#patches[@]} == 0 )); then
  echo "no mutant fits: $*"
  exit 1
fi

if (( apply_only )); then
  tests/mutants/apply.py "${patches[@]}" || exit 1
  echo "${#patches[@]} mutants apply"
  exit 0
fi

. tests/scratch_tree.sh
build=$tree/build/mutants
log=$scratch/log

field() { sed -n "/^diff --git/q;s/^# $2: *//p" "$1" | head -n 1; }
# How a patch is to be noticed: "test …", "browser …", "panel …" or "python …"; empty if it does not say.
way_of() { sed -n '/^diff --git/q;s/^# \(test\|browser\|panel\|python\): */\1 /p' "$1" | head -n 1; }
# What a way needs to be built. Tests of units have names like Suite.ItDoesThis, others begin small: fuzz.json, integration.http.
target_of() {
  case $1 in
    'python '*) ;;
    'panel '*) echo panel_parts ;;
    'browser '*) echo belfry ;;
    'test ^'[A-Z]* | 'test ^('[A-Z]*) echo belfry_tests ;;  # linking the other twenty programs takes longer than all the rest
    *) echo all ;;
  esac
}
mapfile -t targets < <(for patch in "${patches[@]}"; do target_of "$(way_of "$patch")"; done | sort -u)
program=$build/belfry
if [[ "${targets[*]}" == belfry && -n ${BELFRY:-} ]]; then
  program=$(realpath "$BELFRY")
  export BELFRY_SERVER_PANEL=$scratch/panel
fi
compile() {
  local target others=()
  for target in "$@"; do
    if [[ $target == panel_parts ]]; then compile_panel_parts || return 1; else others+=("$target"); fi
  done
  set -- "${others[@]}"
  if (( $# == 0 )); then
    return 0
  elif [[ $program == "$build/belfry" ]]; then
    ninja -C "$build" -j2 "$@" >"$log" 2>&1
  else
    "$tree/panel/build.sh" "$scratch/panel" >"$log" 2>&1
  fi
}
compile_panel_parts() {
  need_npm_packages "$tree/panel" >"$log" 2>&1 && npm --prefix "$tree/panel" run --silent check >"$log" 2>&1 &&
    npm --prefix "$tree/panel" run --silent build-tests >"$log" 2>&1
}
# A mutant that hangs is noticed, too.
run_test() {
  local way=${1%% *} what=${1#* } arguments
  if [[ $way == test ]]; then
    ctest --test-dir "$build" -j2 --no-tests=error --timeout 300 -R "$what" >"$log" 2>&1
    return
  fi
  if [[ $way == panel ]]; then
    timeout 300 node --test --test-name-pattern="$what" "$tree"/panel/dist-tests/*.test.mjs >"$log" 2>&1 && ! grep -q '^# pass 0$' "$log"
    return
  fi
  read -ra arguments <<<"$what"
  if [[ $way == python ]]; then
    timeout 300 python3 "$tree/tests/integration/${arguments[0]}" "${arguments[@]:1}" >"$log" 2>&1
  else
    timeout 600 "$tree/tests/browser/run.sh" "$program" "${arguments[@]}" >"$log" 2>&1 && ! grep -q '^[^ ]* pass 0$' "$log"
  fi
}

if (( ${#targets[@]} > 0 )); then echo "building the tests without a mutant"; fi
# shellcheck source=../../cmake/packages.sh
. cmake/packages.sh
if [[ ${targets[*]} == panel_parts ]]; then
  configure() { :; }
else
  configure() { cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_CXX_FLAGS=-O1 -DBELFRY_TESTS=ON >"$log" 2>&1; }
fi
if (( ${#targets[@]} > 0 )) && ! configure || ! compile "${targets[@]}"; then
  tail -n 40 "$log"
  exit 1
fi

failed=0
row() { printf '%-36s %-16s %s\n' "$1" "$2" "$3"; }
row mutant outcome "what it breaks"

# First each test as it is: one that fails anyway shows nothing.
declare -A passes=()
passes_unchanged() {
  if [[ -z ${passes[$1]:-} ]]; then passes[$1]=$(run_test "$1" && echo yes || echo no); fi
  [[ ${passes[$1]} == yes ]]
}
ready=()
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  if ! tests/mutants/apply.py --tree "$tree" "$patch" >"$log"; then
    row "$name" "DOES NOT APPLY" "$(sed 's/^[^ ]* *//;q' "$log")"
  elif ! passes_unchanged "$(way_of "$patch")"; then
    row "$name" "TEST FAILS" "without the mutant already, or no test fits: $(way_of "$patch")"
  else
    ready+=("$patch")
    continue
  fi
  failed=1
done

caught=0
for patch in "${ready[@]}"; do
  name=$(basename "$patch" .patch)
  tests/mutants/apply.py --write --tree "$tree" "$patch" >/dev/null
  # shellcheck disable=SC2046  # none or one word
  if ! compile $(target_of "$(way_of "$patch")"); then
    row "$name" "DOES NOT BUILD" "$(grep -m 1 'error:' "$log" || true)"
    failed=1
  elif run_test "$(way_of "$patch")"; then
    row "$name" SURVIVES "$(field "$patch" "${name%%[!A-Z0-9]*}")"
    failed=1
  else
    row "$name" caught "$(field "$patch" "${name%%[!A-Z0-9]*}")"
    caught=$((caught + 1))
  fi
  git -C "$tree" checkout --quiet -- .
done
echo "$caught of ${#patches[@]} mutants caught, in $SECONDS seconds"
exit "$failed"
