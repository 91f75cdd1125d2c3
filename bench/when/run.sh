#!/usr/bin/env bash
# The reader of time expressions beside chrono-node, on the texts of the project's own tables, in one run:
#   bench/when/run.sh [BINARY, build/release/belfry]
# One JSON object a line; `times` is how many texts Belfry reads in the CPU time of one, the median of seven rounds in
# which both take turns. Needs node and npm.
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
done

python3 - "$binary" "$work" <<'END'
import json, statistics, subprocess, sys, time

binary, work = sys.argv[1:]

def measured(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

def middle(rounds, key):
    return statistics.median(one[key] for one in rounds)

for language in ("en", "zh"):
    texts = f"{work}/{language}"
    ours, theirs = [], []
    for _ in range(7):
        ours.append(measured(binary, "bench", "when", "--lang", language, texts))
        theirs.append(measured("node", "chrono.mjs", language, texts))
    for rounds in (ours, theirs):
        print(json.dumps(rounds[0] | {"perCpuSecond": round(middle(rounds, "perCpuSecond"))}))
    ratios = sorted(a["perCpuSecond"] / b["perCpuSecond"] for a, b in zip(ours, theirs))
    print(json.dumps({"bench": "when", "language": language, "times": round(statistics.median(ratios), 1),
                      "least": round(ratios[0], 1), "most": round(ratios[-1], 1)}), flush=True)

def start():
    begun = time.perf_counter()
    subprocess.run([binary, "when", "tomorrow at 9", "--tz", "Asia/Shanghai"], check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - begun)

start()
times = sorted(start() for _ in range(50))
print(json.dumps({"bench": "whenColdStart", "medianMs": round(statistics.median(times), 1), "p90Ms": round(times[44], 1)}))
END
