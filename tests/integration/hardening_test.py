#!/usr/bin/env python3
"""With what the program was compiled and linked, read from its file.

    hardening_test.py [BELFRY]        looks at build/release/belfry unless another program is named
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BELFRY = os.environ.get("BELFRY", str(ROOT / "build/release/belfry"))

WANTED = ("-fstack-protector-strong", "-fstack-clash-protection", "-fcf-protection=full", "-ftrivial-auto-var-init=zero",
          "_GLIBCXX_ASSERTIONS", "_FORTIFY_SOURCE=3")


def readelf(*arguments):
    return subprocess.run(["readelf", "--wide", *arguments, BELFRY], capture_output=True, text=True, check=True).stdout


class Hardening(unittest.TestCase):
    # G26
    def test_everything_was_compiled_with_what_makes_mistakes_harmless(self):
        lines = [line.split("]", 1)[1] for line in readelf("-p", ".GCC.command.line").splitlines() if "]" in line]
        compiled = [line for line in lines if "clang" in line]
        self.assertTrue(compiled, "no command line is recorded")
        for line in compiled:
            for flag in WANTED:
                self.assertIn(flag, line)

    # G26
    def test_it_lies_anywhere_and_its_tables_cannot_be_written(self):
        self.assertRegex(readelf("-h"), r"Type:\s+DYN")
        self.assertIn("GNU_RELRO", readelf("-l"))
        dynamic = readelf("-d")
        self.assertIn("BIND_NOW", dynamic)
        self.assertRegex(dynamic, r"Flags:.*PIE")
        self.assertRegex(readelf("-l"), r"GNU_STACK .* RW +0")

    # G26
    def test_the_checks_are_there(self):
        symbols = readelf("--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertIn("_chk@", symbols)
        self.assertIn("__glibcxx_assert_fail", symbols)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        BELFRY = sys.argv.pop(1)
    unittest.main()
