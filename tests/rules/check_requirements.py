#!/usr/bin/env python3
"""Every requirement that is built has a test that cites it.

docs/requirements.md lists the ids (`| D1 | …`); what stands below its heading "Not built yet" may still lack tests. A test
cites ids in the comment directly above it: `// D1, D6`, alone or followed by a colon or a full stop and words. Test
scripts under tests/ (.py, .mjs, .sh) cite them in a comment line anywhere.

    check_requirements.py              fails for built ids without a test, and for citations of ids that do not exist
    check_requirements.py --mutants    also fails for built ids without tests/mutants/<ID>*.patch
    check_requirements.py --list       prints each id with its tests
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ID = r"(?:[DAQPF]\d+|W\d*|G\d+)"
ROW = re.compile(r"^\|\s*((?:[DAQPF]\d+)|W\d*)\b")
NOT_BUILT = re.compile(r"^##\s+Not built yet\b")
CITATION = re.compile(rf"^\s*(?://|#)\s*({ID}(?:\s*,\s*{ID})*)\s*(?:[.:].*)?$")
COMMENT = re.compile(r"^\s*//")
TEST = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\s*\(([^)]*)")


def requirements(text):
    """The ids that are built and those that are not; an id in both sections is built in part, and needs its test."""
    built, later = [], []
    section = built
    for line in text.split("\n"):
        if NOT_BUILT.match(line):
            section = later
        row = ROW.match(line)
        if row and row.group(1) not in section:
            section.append(row.group(1))
    return built, [name for name in later if name not in built]


def ids_in(line):
    citation = CITATION.match(line)
    return re.findall(ID, citation.group(1)) if citation else []


def citations_in_cpp(path, text):
    above = []
    for number, line in enumerate(text.split("\n"), 1):
        if COMMENT.match(line):
            above += ids_in(line)
            continue
        test = TEST.match(line)
        if test:
            name = ".".join(part.strip() for part in test.group(1).split(",")[:2])
            for cited in above:
                yield cited, f"{path}:{number}: {name}"
        above = []


def citations_in_script(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        for cited in ids_in(line):
            yield cited, f"{path}:{number}"


def citations(root):
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout
    for name in sorted(set(listed.split("\0"))):
        path = root / name
        if not name or not path.is_file():
            continue
        if name.endswith(".cpp") and (name.startswith("tests/") or name.endswith("_test.cpp")):
            yield from citations_in_cpp(name, path.read_text(encoding="utf-8"))
        elif name.startswith("tests/") and name.endswith((".py", ".mjs", ".sh")):
            if not name.startswith(("tests/rules/", "tests/mutants/")):
                yield from citations_in_script(name, path.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description="Requirements without a test.")
    parser.add_argument("--mutants", action="store_true", help="ask for a mutant of each built requirement, too")
    parser.add_argument("--list", action="store_true", help="print each id with its tests")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    options = parser.parse_args()

    built, later = requirements((options.root / "docs/requirements.md").read_text(encoding="utf-8"))
    if not built:
        print("docs/requirements.md lists no requirement that is built")
        return 1
    tests = defaultdict(list)
    for cited, where in citations(options.root):
        tests[cited].append(where)

    if options.list:
        for name in built + later:
            print(f"{name}: " + ("; ".join(tests[name]) or "-"))

    problems = [f"{name} is built, but no test cites it" for name in built if not tests[name]]
    known = set(built) | set(later)
    problems += [
        f"{where} cites {cited}, which docs/requirements.md does not have"
        for cited, places in tests.items() if not cited.startswith("G") and cited not in known for where in places
    ]
    if options.mutants:
        patches = [path.name for path in (options.root / "tests/mutants").glob("*.patch")]
        problems += [
            f"{name} is built, but tests/mutants has no {name}*.patch"
            for name in built if not any(re.match(rf"{name}(?!\d).*\.patch$", patch) for patch in patches)
        ]
    print("\n".join(problems) if problems else f"requirements: all {len(built)} that are built have their test")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
