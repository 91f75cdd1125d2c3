#!/usr/bin/env python3
"""Patches that survive moves, and what keeps one from being applied where it does not belong (apply.py)."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import apply

PATCH = """# D1: the answer is wrong
# test: ^Answer\\.IsRight$
diff --git a/src/answer.cpp b/src/answer.cpp
--- a/src/answer.cpp
+++ b/src/answer.cpp
@@ -1,5 +1,5 @@
 int question();
 int answer(int question) {
-  return question + forty_two();
+  return question;
 }
 int after();
"""
ANSWER = "int question();\nint answer(int question) {\n  return question + forty_two();\n}\nint after();\n"
TESTS = "TEST(Answer, IsRight) {\n}\n"


class Applying(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        self.write("src/answer_test.cpp", TESTS)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def apply(self, patch=PATCH):
        """What is said, and whether it went well."""
        subprocess.run(["git", "-C", self.root, "add", "--all"], check=True)
        self.write("D1-wrong.patch", patch)
        said = io.StringIO()
        arguments = ["apply.py", "--write", "--tree", str(self.root), str(self.root / "D1-wrong.patch")]
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(said):
            failed = apply.main()
        return said.getvalue(), failed == 0

    def test_it_is_applied_where_it_stood(self):
        self.write("src/answer.cpp", ANSWER)
        self.assertEqual(self.apply(), ("src/answer.cpp\n", True))
        self.assertEqual((self.root / "src/answer.cpp").read_text(), ANSWER.replace(" + forty_two()", ""))

    def test_it_follows_code_into_another_file_and_another_depth(self):
        self.write("src/deep/thought.cpp", "namespace {\n" + "".join(f"    {line}\n" for line in ANSWER.splitlines()) + "}\n")
        self.assertEqual(self.apply(), ("src/deep/thought.cpp\n", True))
        self.assertIn("\n      return question;\n", (self.root / "src/deep/thought.cpp").read_text())

    def test_neighbours_that_changed_are_left_out(self):
        self.write("src/answer.cpp", ANSWER.replace("int question();", "long question();").replace("int after();", ""))
        self.assertEqual(self.apply(), ("src/answer.cpp\n", True))
        self.assertIn("long question();", (self.root / "src/answer.cpp").read_text())

    def test_lines_that_it_changes_are_never_left_out(self):
        self.write("src/answer.cpp", ANSWER.replace("forty_two", "forty_three"))
        said, went_well = self.apply()
        self.assertFalse(went_well)
        self.assertIn('no file has the line "return question + forty_two();"', said)

    def test_two_places_are_one_too_many(self):
        self.write("src/answer.cpp", ANSWER)
        self.write("src/other.cpp", "\n" + ANSWER)
        said, went_well = self.apply()
        self.assertFalse(went_well)
        self.assertIn("src/answer.cpp:1, src/other.cpp:2 are alike", said)

    def test_lines_that_are_only_added_need_the_line_beside_them(self):
        added = PATCH.replace("-  return question + forty_two();\n+  return question;\n", "+  return 0;\n   return question + forty_two();\n")
        self.write("src/answer.cpp", ANSWER.replace("int answer(int question) {", "int answer(int question) noexcept {"))
        said, went_well = self.apply(added)
        self.assertFalse(went_well)
        self.assertIn("stands nowhere", said)

    def test_a_test_that_nobody_wrote_is_named(self):
        self.write("src/answer.cpp", ANSWER)
        said, went_well = self.apply(PATCH.replace("IsRight", "IsFast"))
        self.assertFalse(went_well)
        self.assertIn("no test fits ^Answer\\.IsFast$", said)

    def test_a_patch_says_what_it_breaks(self):
        self.write("src/answer.cpp", ANSWER)
        said, went_well = self.apply(PATCH.replace("# D1:", "# D2:"))
        self.assertFalse(went_well)
        self.assertIn("'# D1: …'", said)


if __name__ == "__main__":
    unittest.main()
