#!/usr/bin/env python3
"""Judges `belfry when --batch` by a file of cases, one JSON object a line.

    evaluate.py --binary build/release/belfry [--cases FILE] [--failures FILE] [--least GROUP=PERCENT ...]

A case has id, text, ref (the moment of speaking), tz, lang, core, category and expect: an instant, a day, null (must be
refused) or "any"; beside it alts (other readings that can be defended), window (any instant in it is right) and reject_ok.
Strict counts `expect` alone, lenient the others, too. Groups for --least: core-en, core-zh (lenient), core-strict, all.
Without --cases the file is named by BELFRY_TIME_CASES; if that is not set, the test is skipped (exit 77).
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections import defaultdict
from datetime import date, datetime
from zoneinfo import ZoneInfo

SKIPPED = 77
MONTHS = {"month": 1, "quarter": 3, "year": 12}


class Verdict:
    def __init__(self, case, answer):
        self.case = case
        self.answer = answer or {}
        self.taken = bool(self.answer.get("ok"))
        self.strict, self.lenient = self.judge()

    def judge(self):
        expect = self.case["expect"]
        if expect is None:
            return not self.taken, not self.taken
        if not self.taken:
            return False, bool(self.case.get("reject_ok"))
        if expect == "any":
            return True, True
        self.at = datetime.fromisoformat(self.answer["at"])
        self.day = self.at.astimezone(ZoneInfo(self.case["tz"])).date()
        if self.is_at(expect):
            return True, True
        return False, any(self.is_at(other) for other in self.case.get("alts") or ()) or self.in_window() \
            or self.in_period() or self.has_begun()

    def is_at(self, value):
        if len(value) == 10:
            return self.day.isoformat() == value
        return abs((self.at - datetime.fromisoformat(value)).total_seconds()) < 1

    def in_window(self):
        window = self.case.get("window")
        return bool(window) and datetime.fromisoformat(window[0]) <= self.at <= datetime.fromisoformat(window[1])

    def kind(self):
        inside = self.case["category"] in ("embedded", "past")
        return self.case.get("subcategory") if inside else self.case["category"]

    # Any day of a period names it.
    def in_period(self):
        if self.kind() not in ("period", "fuzzy"):
            return False
        first = date.fromisoformat(self.case["expect"][:10])
        last = self.case.get("end")
        return first <= self.day <= (date.fromisoformat(last[:10]) if last else self.grain_end(first) or first)

    def grain_end(self, first):
        grain = self.case.get("grain")
        if grain == "week":
            return date.fromordinal(first.toordinal() + 7)
        if grain not in MONTHS:
            return None
        months = first.month - 1 + MONTHS[grain]
        return date(first.year + months // 12, months % 12 + 1, 1)

    # Of a range that goes on already, the present is as good a beginning as any.
    def has_begun(self):
        expect, end = self.case["expect"], self.case.get("end")
        if self.kind() != "range" or not end or len(expect) == 10:
            return False
        now = datetime.fromisoformat(self.case["ref"])
        at_once = abs((self.at - now).total_seconds()) < 1
        return at_once and datetime.fromisoformat(expect) <= self.at <= datetime.fromisoformat(end)


def ask(command, cases):
    lines = "".join(json.dumps({key: case[key] for key in ("id", "text", "ref", "tz", "lang")}, ensure_ascii=False) + "\n"
                    for case in cases)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8",
                          check=True)
    return {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def percent(verdicts, measure):
    return 100 * sum(getattr(one, measure) for one in verdicts) / len(verdicts) if verdicts else 100.0


def report(verdicts):
    groups = defaultdict(list)
    for one in verdicts:
        case = one.case
        groups[f"{case['lang']} {case['category']}"].append(one)
        groups[f"{case['lang']} {'core' if case['core'] else 'not core'}"].append(one)
    groups["all"] = verdicts
    for name, members in sorted(groups.items()):
        print(f"{name:24} {len(members):6} cases   strict {percent(members, 'strict'):6.2f}"
              f"   lenient {percent(members, 'lenient'):6.2f}")


def measured(verdicts):
    core = [one for one in verdicts if one.case["core"]]
    found = {f"core-{lang}": percent([one for one in core if one.case["lang"] == lang], "lenient")
             for lang in ("en", "zh")}
    return {**found, "core-strict": percent(core, "strict"), "all": percent(verdicts, "lenient")}


def main():
    parser = argparse.ArgumentParser(description="Judge the reader of time expressions by a file of cases.")
    reader = parser.add_mutually_exclusive_group(required=True)
    reader.add_argument("--binary", help="judge `BINARY when --batch`")
    reader.add_argument("--reader", help="judge another command that answers like it, as bench/when/chrono_batch.mjs does")
    parser.add_argument("--cases", default=os.environ.get("BELFRY_TIME_CASES"))
    parser.add_argument("--failures", help="write what was read wrong to this file")
    parser.add_argument("--least", action="append", default=[], metavar="GROUP=PERCENT")
    options = parser.parse_args()
    if not options.cases:
        print("skipped: BELFRY_TIME_CASES names no file of cases")
        return SKIPPED
    with open(options.cases, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file if line.strip()]
    command = [options.binary, "when", "--batch"] if options.binary else shlex.split(options.reader)
    answers = ask(command, cases)
    verdicts = [Verdict(case, answers.get(case["id"])) for case in cases]
    report(verdicts)
    if options.failures:
        with open(options.failures, "w", encoding="utf-8") as file:
            for one in verdicts:
                if not one.lenient:
                    file.write(json.dumps({**one.case, "got": one.answer}, ensure_ascii=False) + "\n")
    found = measured(verdicts)
    failed = False
    for least in options.least:
        name, value = least.split("=")
        if found[name] < float(value):
            print(f"{name} is {found[name]:.2f}, and should be at least {value}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
