#!/usr/bin/env python3
"""`belfry plugin new | list | check | try`, as a person uses them.

    plugin_test.py PROGRAM
"""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""


def belfry(*arguments, cwd=None):
    return subprocess.run([PROGRAM, "plugin", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=60)


class PluginCommands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)

    def made(self, name, *flags):
        done = belfry("new", name, "--dir", self.root, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.root / name

    # F1, F14
    def test_a_new_one_works_as_it_is(self):
        for name, flags in (("greet", []), ("shell_greet", ["--language", "sh"])):
            folder = self.made(name, *flags)
            self.assertEqual(belfry("check", folder).returncode, 0)
            tried = belfry("try", folder, "--args", '{"name":"Ada"}')
            self.assertEqual(tried.returncode, 0, tried.stderr)
            self.assertTrue(json.loads(tried.stdout)["greeting"].startswith("Hello"))
            self.assertIn('progress: "greeting"', tried.stderr)
        checked = json.loads(belfry("check", self.root / "greet", "--json").stdout)
        self.assertTrue(checked["schedule"])
        self.assertEqual(checked["timeoutMs"], 60000)
        self.assertIn("oneOf", checked["inputSchema"]["properties"]["schedule"])

    def test_names_that_lead_elsewhere_are_refused(self):
        for name in ("..", "../x", "a/b", "a-b", "", "x" * 57):
            done = belfry("new", name, "--dir", self.root / "inner")
            self.assertEqual(done.returncode, 2, name)
        self.assertEqual(list(self.root.iterdir()), [])

    def test_what_is_there_is_not_touched(self):
        folder = self.made("greet")
        (folder / "handler").write_text("mine")
        done = belfry("new", "greet", "--dir", self.root, "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["error"], "already_exists")
        self.assertEqual((folder / "handler").read_text(), "mine")
        self.assertEqual([entry.name for entry in self.root.iterdir()], ["greet"])

    def test_nothing_half_made_is_left(self):
        (self.root / "file").write_text("")
        self.assertEqual(belfry("new", "greet", "--dir", self.root / "file").returncode, 1)
        self.assertEqual([entry.name for entry in self.root.iterdir()], ["file"])

    def test_the_list_has_the_broken_ones_too(self):
        self.made("greet")
        broken = self.made("broken")
        (broken / "config.json").write_text('{"name":"broken","timeoutMs":"soon"}')
        done = belfry("list", "--plugins", self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"greet +1 min +schedule: yes")
        self.assertIn("broken/config.json: timeoutMs is a string", done.stdout)
        listed = json.loads(belfry("list", "--plugins", self.root, "--json").stdout)
        self.assertIn("greet", [one["name"] for one in listed["plugins"]])
        self.assertEqual(len(listed["broken"]), 1)
        self.assertEqual(belfry("check", broken).returncode, 1)

    def test_a_secret_is_not_shown(self):
        folder = self.made("greet")
        (folder / ".env").write_text("KEY='sk-secret\n")
        for command in (["check", folder], ["list", "--plugins", self.root], ["try", folder]):
            done = belfry(*command)
            self.assertIn("line 1", done.stdout + done.stderr)
            self.assertNotIn("secret", done.stdout + done.stderr)

    # F5
    def test_a_failure_is_told(self):
        folder = self.made("greet")
        done = belfry("try", folder, "--args", '{"name":" "}', "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "no_name")
        self.assertEqual(belfry("try", folder, "--args", "{").returncode, 2)
        self.assertEqual(belfry("try", folder, "--args", "{}").returncode, 2)
        (folder / "handler").write_text("#!/bin/sh\necho 'out of ink' >&2\nexit 4\n")
        done = belfry("try", folder, "--args", '{"name":"Ada"}')
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 4 without a result; at last it wrote: out of ink (crashed)", done.stderr)

    # F5: as a server would, so that what leaves a file there can be tried.
    def test_the_context_is_that_of_a_server(self):
        folder = self.made("greet")
        (folder / "handler").write_text("""#!/usr/bin/env python3
import json, os, sys
context = json.loads(sys.stdin.readline())["context"]
open(os.path.join(context["outputDir"], "left.txt"), "w").close()
same = context["outputDir"] == os.environ["BELFRY_OUTPUT_DIR"]
print(json.dumps({"success": True, "data": {"has": sorted(context), "same": same}}))
""")
        done = belfry("try", folder, "--args", '{"name":"Ada"}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {
            "has": ["idempotencyKey", "outputDir", "runId", "stepIndex", "timeoutMs"], "same": True})
        left = Path(done.stderr.rsplit("it left files in ", 1)[1].strip())
        self.assertTrue((left / "left.txt").exists())
        shutil.rmtree(left)

    # F6
    def test_schedule_is_not_for_the_plugin(self):
        folder = self.made("greet")
        done = belfry("try", folder, "--args", '{"name":"Ada","schedule":"tomorrow"}')
        self.assertEqual(done.returncode, 2)
        self.assertIn("schedule is for the server", done.stderr)

    def test_here_is_a_folder_too(self):
        folder = self.made("greet")
        self.assertEqual(belfry("check", ".", cwd=folder).returncode, 0)
        self.assertEqual(belfry("check", f"{folder}/").returncode, 0)
        self.assertEqual(belfry("check", self.root / "nowhere").returncode, 1)


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
