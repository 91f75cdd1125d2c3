#!/usr/bin/env bash
# The reader of time expressions beside chrono-node, on the texts of the project's own tables, in one run:
#   bench/when/run.sh [BINARY, build/release/belfry]
# One JSON object a line; `times` is how many expressions Belfry reads in the CPU time of one. Needs node and npm.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
binary=${1:-$root/build/release/belfry}
[[ -x $binary ]] || { echo "there is no $binary: ./run --build-only makes it" >&2; exit 1; }

cd "$here"
npm ci --silent
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for language in en zh; do
  # The expressions and sentences of the table, without the brackets and what stands behind them.
  sed -e '/^[#@]/d' -e '/^$/d' -e 's/ | .*//' -e 's/[][]//g' "$root/src/belfry/when/cases_$language.txt" >"$work/$language"
  ours=$("$binary" bench when --lang "$language" "$work/$language")
  theirs=$(node chrono.mjs "$language" "$work/$language")
  printf '%s\n%s\n' "$ours" "$theirs"
  python3 - "$ours" "$theirs" <<'END'
import json, sys
ours, theirs = map(json.loads, sys.argv[1:])
print(json.dumps({"bench": "when", "language": ours["language"],
                  "times": round(ours["perCpuSecond"] / theirs["perCpuSecond"], 1)}))
END
done

python3 - "$binary" <<'END'
import json, statistics, subprocess, sys, time
def start():
    begun = time.perf_counter()
    subprocess.run([sys.argv[1], "when", "tomorrow at 9", "--tz", "Asia/Shanghai"], check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - begun)
start()
times = sorted(start() for _ in range(50))
print(json.dumps({"bench": "whenColdStart", "medianMs": round(statistics.median(times), 1), "p90Ms": round(times[44], 1)}))
END
