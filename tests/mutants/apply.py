#!/usr/bin/env python3
"""Applies the patches of tests/mutants by what they say, not by where it stood: so they survive moves.

What a hunk takes away or leaves as it is must stand exactly once in the tree, indentation ignored, in whatever file. If
all its lines do, that is the place. If not, lines of context that no longer fit are left out, from the outside inwards, as
long as what is left still stands exactly once; the lines that the hunk changes are never left out.

    apply.py PATCH…                      tries each and changes nothing; says what is wrong, and fails then
    apply.py --write --tree DIR PATCH    applies one there; prints the files that it changed

Trying also looks at what a patch says of itself: which promise it breaks, and which test notices, by a name that exists.
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

TEST = re.compile(r"\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\s*\(\s*(\w+)\s*,\s*(\w*)")
PANEL_TEST = re.compile(r'test\("([^"]+)"')
# The least that may be left of a hunk: a lone brace stands in one place only by chance.
LETTERS_LEAST = 10


class Unfit(Exception):
    """Why a patch cannot be applied; in words."""


@dataclass
class Hunk:
    path: str  # where it stood when it was written
    old: list  # (line, whether it is taken away)
    new: list  # (line, its place in `old`; None if it is added)


def read_hunks(text):
    """The hunks of a unified diff, in order."""
    path, hunk = None, None
    for line in text.split("\n"):
        if line.startswith(("diff --git ", "--- ", "+++ ", "index ")) and (hunk is None or not line.startswith(("--- ", "+++ "))):
            if line.startswith("+++ "):
                path = line[4:].split("\t")[0].removeprefix("b/")
            hunk = None
        elif line.startswith("@@"):
            counts = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
            if not counts:
                raise Unfit(f"no hunk begins like this: {line}")
            left = [int(count or 1) for count in counts.groups()]
            hunk = Hunk(path, [], [])
            yield hunk
        elif hunk is not None and any(left):
            kind, what = line[:1] or " ", line[1:]
            if kind in " -":
                hunk.old.append((what, kind == "-"))
                left[0] -= 1
            if kind in " +":
                hunk.new.append((what, len(hunk.old) - 1 if kind == " " else None))
                left[1] -= 1
            if not any(left):
                hunk = None


def indentation(line):
    return len(line) - len(line.lstrip(" "))


class Tree:
    """The lines of a tree's files, and where each stands. What is replaced is written by `write` only."""

    def __init__(self, root):
        self.root = Path(root)
        self.lines = {}
        self.places = defaultdict(list)  # a line without its indentation -> (file, number)
        self.tests = set()
        self.panel_tests = set()
        listed = subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True, text=True).stdout
        for file in listed.splitlines():
            path = self.root / file
            if file.startswith("tests/mutants/") or not path.is_file():
                continue
            try:
                lines = path.read_text(encoding="utf-8").split("\n")
            except UnicodeDecodeError:
                continue  # a picture
            self.lines[file] = lines
            for number, line in enumerate(lines):
                self.places[line.strip()].append((file, number))
                test = TEST.match(line)
                part = PANEL_TEST.match(line) if file.startswith("panel/") else None
                if part:
                    self.panel_tests.add(part[1])
                if test:
                    # A name that is too long for its line stands on the next one.
                    follow = lines[number + 1].strip() if number + 1 < len(lines) else ""
                    name = test[2] or re.match(r"\w*", follow)[0]
                    self.tests.add(f"{test[1]}.{name}")

    def where(self, wanted):
        """The places at which these lines stand, one after the other."""
        rarest = min(range(len(wanted)), key=lambda at: len(self.places.get(wanted[at], ())))
        found = []
        for name, number in self.places.get(wanted[rarest], ()):
            first = number - rarest
            there = self.lines[name][first:first + len(wanted)] if first >= 0 else []
            if [line.strip() for line in there] == wanted:
                found.append((name, first))
        return found

    def place_of(self, hunk):
        """(file, line, how many lines of `old` are left out before, and behind)"""
        wanted = [line.strip() for line, _ in hunk.old]
        if not wanted:
            raise Unfit(f"a hunk for {hunk.path} only adds: it needs lines around that say where")
        found = self.where(wanted)
        if len(found) == 1:
            return (*found[0], 0, 0)
        if len(found) > 1:
            raise Unfit(f"{', '.join(f'{name}:{line + 1}' for name, line in found)} are alike: "
                        f"the hunk for {hunk.path} needs more lines around")
        changed = self.changed_part(hunk)
        for left_out in range(1, len(wanted)):
            for before in range(left_out + 1):
                behind = left_out - before
                if before > changed[0] or len(wanted) - behind < changed[1]:
                    continue
                part = wanted[before:len(wanted) - behind]
                if sum(char.isalnum() for line in part for char in line) < LETTERS_LEAST:
                    continue
                found = self.where(part)
                if len(found) == 1:
                    return (*found[0], before, behind)
        missing = next((line for line in wanted if line not in self.places), None)
        raise Unfit(f"a hunk for {hunk.path} stands nowhere" + (f": no file has the line \"{missing}\"" if missing else ""))

    @staticmethod
    def changed_part(hunk):
        """The range of `old` that must be found: from the first line taken away or added beside, to the last."""
        edges = [at for at, (_, gone) in enumerate(hunk.old) if gone]
        first = min(edges, default=len(hunk.old))
        last = max(edges, default=-1) + 1
        behind = -1  # the last line of `old` that was passed
        for _, at in hunk.new:
            if at is not None:
                behind = at
            elif not 0 <= behind < len(hunk.old) or not hunk.old[behind][1]:
                first, last = min(first, max(behind, 0)), max(last, behind + 1)
        return first, max(last, first + 1)

    def replaced(self, hunks):
        """The files that the hunks change, with their new lines."""
        edits = []
        for hunk in hunks:
            name, line, before, behind = self.place_of(hunk)
            there = self.lines[name]
            count = len(hunk.old) - before - behind
            moved = next((indentation(there[line + at]) - indentation(hunk.old[before + at][0])
                          for at in range(count) if there[line + at].strip()), 0)
            new = []
            for text, at in hunk.new:
                if at is None:
                    new.append(" " * max(0, indentation(text) + moved) + text.lstrip(" ") if text.strip() else "")
                elif before <= at < len(hunk.old) - behind:
                    new.append(there[line + at - before])
            edits.append((name, line, count, new))
        edits.sort(reverse=True, key=lambda edit: edit[:2])
        changed = {}
        for at, (name, line, count, new) in enumerate(edits):
            if at and edits[at - 1][0] == name and edits[at - 1][1] < line + count:
                raise Unfit(f"two hunks change {name}:{line + 1}")
            lines = changed.setdefault(name, list(self.lines[name]))
            lines[line:line + count] = new
        if not changed:
            raise Unfit("there is no hunk in it")
        return changed

    def write(self, changed):
        for name, lines in changed.items():
            (self.root / name).write_text("\n".join(lines), encoding="utf-8")


def check_header(name, text, tree):
    head = text.split("diff --git")[0]
    identity = re.match(r"[A-Z0-9]*", name)[0]
    way = re.search(r"^# (test|browser|panel|python): *(\S.*)$", head, re.MULTILINE)
    if not way or not re.search(rf"^# {identity}: *\S", head, re.MULTILINE):
        raise Unfit(f"it needs the lines '# {identity}: …' and '# test: …', '# browser: …', '# panel: …' or '# python: …' before the first diff")
    if way[1] == "panel" and not any(re.search(way[2], test) for test in tree.panel_tests):
        raise Unfit(f"no test of the panel's parts fits {way[2]}")
    if way[1] == "test":
        names = re.compile(way[2])
        if way[2].startswith(("^integration", "^crash", "^panel", "^browser", "^fuzz")):
            return
        if not any(names.search(test) for test in tree.tests):
            raise Unfit(f"no test fits {way[2]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tree", default=Path(__file__).resolve().parents[2], help="the checkout; this one if not given")
    parser.add_argument("patches", nargs="+", metavar="PATCH", type=Path)
    parser.add_argument("--write", action="store_true", help="apply the one patch that is named")
    options = parser.parse_args()
    if options.write and len(options.patches) != 1:
        parser.error("--write takes one patch")
    tree = Tree(options.tree)
    failed = 0
    for path in options.patches:
        try:
            text = path.read_text(encoding="utf-8")
            check_header(path.stem, text, tree)
            changed = tree.replaced(list(read_hunks(text)))
            if options.write:
                tree.write(changed)
                print("\n".join(changed))
        except Unfit as unfit:
            print(f"{path.stem:<44} {unfit}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
