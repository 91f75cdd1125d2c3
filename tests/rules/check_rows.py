#!/usr/bin/env python3
"""The rows of the house: who may include whom, and who may read a clock.

    base < clock < when store net due < bus llm plugin < chat < tool < run < agent server < app

A file under src/belfry includes its own folder and lower rows only; folders of one row do not know each other.
Below src/belfry/store, SQLite is one store among others: only app, tests and its own folder name it. SQLite's own header,
Beast and the clocks have one home each.

    check_rows.py [ROOT]     prints file:line of each offence and exits 1 if there is one
"""

import re
import subprocess
import sys
from pathlib import Path

ROWS = [
    ["base"],
    ["clock"],
    ["when", "store", "net", "due"],
    ["bus", "llm", "plugin"],
    ["chat"],
    ["tool"],
    ["run"],
    ["agent", "server"],
    ["app"],
]
ROW_OF = {folder: number for number, row in enumerate(ROWS) for folder in row}

# The umbrella header shows the library to its users; it belongs to no row.
EXEMPT = {"src/belfry/belfry.h"}

CLOCKS = re.compile(
    r"\bclock_gettime\s*\("
    r"|\b(?:system|steady|high_resolution)_clock::now\b"
    r"|\btime\s*\(\s*(?:nullptr|NULL|0)\s*\)"
    r"|\bgettimeofday\s*\("
    r"|\bthis_thread::sleep_"
    r"|\b(?:nanosleep|usleep)\s*\("
)
# The bench measures; what drives real processes waits for them.
CLOCK_HOMES = ("src/belfry/clock/", "src/belfry/app/bench", "bench/", "tests/crash/", "tests/support/")

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')

# Comments and literals, longest first where they begin alike; group 1 is a raw string's delimiter.
TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)


def without(text, wanted):
    """`text` with the tokens that `wanted` picks blanked out; lines keep their numbers."""

    def blank(match):
        token = match.group(0)
        return re.sub(r"[^\n]", " ", token) if wanted(token) else token

    return TOKENS.sub(blank, text)


def is_comment(token):
    return token.startswith(("//", "/*"))


def is_test(path):
    return path.startswith("tests/") or path.endswith("_test.cpp")


def include_offence(path, included):
    if included == "sqlite3.h" and not path.startswith(("src/belfry/store/sqlite/", "tests/support/")):
        return "sqlite3.h belongs to src/belfry/store/sqlite"
    if included.startswith("boost/beast") and not path.startswith(("src/belfry/server/", "src/belfry/net/")):
        return "Beast belongs to src/belfry/server and src/belfry/net"
    if not included.startswith("belfry/"):
        return None
    if included.startswith("belfry/store/sqlite/"):
        if not (is_test(path) or path in EXEMPT or path.startswith(("src/belfry/app/", "src/belfry/store/sqlite/"))):
            return "only app and tests name SQLite; include belfry/store/connection.h"
    if not path.startswith("src/belfry/") or path in EXEMPT:
        return None
    parts = path.split("/")
    target_parts = included.split("/")
    if len(parts) < 4:
        return f"{path} stands in no folder of the house"
    own, target = parts[2], target_parts[1]
    if len(target_parts) < 3:
        return f"{included} is for users of the library"
    for folder in (own, target):
        if folder not in ROW_OF:
            return f"the folder {folder} stands in no row; add it to tests/rules/check_rows.py"
    if own == target or ROW_OF[target] < ROW_OF[own]:
        return None
    if ROW_OF[target] == ROW_OF[own]:
        return f"{own} and {target} stand in the same row and do not know each other"
    return f"{target} stands above {own}"


def check(path, text):
    code = without(text, is_comment)
    for number, line in enumerate(code.split("\n"), 1):
        include = INCLUDE.match(line)
        offence = include and include_offence(path, include.group(1))
        if offence:
            yield f"{path}:{number}: {offence}"
    if path.startswith(CLOCK_HOMES):
        return
    for number, line in enumerate(without(text, lambda token: True).split("\n"), 1):
        if CLOCKS.search(line):
            yield f"{path}:{number}: time is passed in; only src/belfry/clock reads a clock or sleeps"


def files(root):
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard",
         "--", "*.h", "*.cpp"],
        check=True, capture_output=True, text=True,
    ).stdout
    return sorted(name for name in listed.split("\0") if name and (root / name).is_file())


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    names = files(root)
    offences = [line for name in names for line in check(name, (root / name).read_text(encoding="utf-8"))]
    print("\n".join(offences) if offences else f"rows: {len(names)} files keep to them")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
