#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy, on what changed since the merge base with origin/main (else the last commit).
# `--all` takes every file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ ! -f build/dev/compile_commands.json ]]; then cmake --preset dev >/dev/null; fi

changed() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse -q --verify HEAD~1 || true)
  # On the main branch itself the merge base is HEAD: then look at the last commit.
  if [[ $base == "$(git rev-parse HEAD)" ]]; then base=$(git rev-parse -q --verify HEAD~1 || true); fi
  if [[ -z $base ]]; then git ls-files; else git diff --name-only --diff-filter=d "$base"; fi
}

# A header is looked at through its own .cpp file, or else through one that includes it.
translation_units() {
  local file
  while IFS= read -r file; do
    case $file in
      *.cpp) printf '%s\n' "$file" ;;
      *.h)
        if [[ -f ${file%.h}.cpp ]]; then
          printf '%s\n' "${file%.h}.cpp"
        else
          git grep -l -F "#include \"${file#src/}\"" -- '*.cpp' | head -n 1 || true
        fi
        ;;
    esac
  done | sort -u
}

# Only what the build knows can be read as the compiler reads it.
known() {
  python3 -c '
import json, os, sys
root = os.getcwd()
built = {os.path.relpath(os.path.join(c["directory"], c["file"]), root) for c in json.load(open(sys.argv[1]))}
print("\n".join(line for line in sys.stdin.read().split("\n") if line in built))
' build/dev/compile_commands.json
}

if [[ ${1:-} == --all ]]; then
  mapfile -t files < <(git ls-files '*.cpp' | known)
else
  mapfile -t files < <(changed | translation_units | known)
fi
if (( ${#files[@]} == 0 )) || [[ -z ${files[0]} ]]; then
  echo "lint: nothing changed"
  exit 0
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P 2 clang-tidy-19 -p build/dev --quiet 2>&1 | sed '/ warnings* generated\.$/d'
echo "lint: ${#files[@]} files are clean"
