#!/usr/bin/env python3
"""What the program is said to be made of (cmake/sbom.py) is what it is made of.

    sbom_test.py [-v] [PROGRAM] [Case.test…]

With a program that the build made, also what the build has written beside it. Without, the script alone is tried, on whatever
program is at hand.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "cmake" / "sbom.py"
LOCK = ROOT / "panel" / "package-lock.json"
PROGRAM = None
# What every compilation reads, and what is in no library: the compiler's own headers and the kernel's.
NO_LIBRARY = ("linux-libc-dev", "libclang-common-19-dev")


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more).stdout


def needed(program):
    """The shared libraries that a program names itself, as binutils read it."""
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program, env={**os.environ, "LC_ALL": "C"})))


def values(component, name):
    return [each["value"] for each in component.get("properties", ()) if each["name"] == f"belfry:{name}"]


def files(bom):
    return {name for component in bom["components"] for name in [component["name"], *values(component, "file")]}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="belfry-sbom-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.count = 0

    def make(self, *arguments, program=None, env=None):
        """What the script writes of a program; the text, too."""
        self.count += 1
        out = self.folder / f"{self.count}.cdx.json"
        environment = {**{name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}, **(env or {})}
        run(sys.executable, SCRIPT, "--program", program or self.program(), "--version", "1.2.3", "--out", out, "--lock", LOCK,
            *arguments, env=environment)
        text = out.read_text(encoding="utf-8")
        return json.loads(text), text

    def program(self):
        return PROGRAM or Path(shutil.which("openssl")).resolve()


class TheScript(Case):
    def test_every_shared_library_is_named_with_its_version(self):
        bom, _ = self.make()
        self.assertGreater(len(needed(self.program())), 1)
        self.assertLessEqual(needed(self.program()), files(bom))
        for component in bom["components"]:
            self.assertTrue(component.get("version"), component)
            self.assertRegex(component["purl"], r"^pkg:(deb|npm)/")
        version = run("dpkg-query", "-W", "-f", "${Version}", "libc6")
        self.assertIn(("libc6", version), [(each["name"], each["version"]) for each in bom["components"]])

    def test_what_a_library_needs_is_named_too(self):
        bom, _ = self.make()
        for library in needed(self.program()):
            path = re.search(rf"^\s*{re.escape(library)} => (\S+)", run("ldd", self.program()), re.MULTILINE)
            if path:
                self.assertLessEqual(needed(path[1]), files(bom), library)

    def test_static_libraries_object_files_and_headers_belong_to_their_packages(self):
        inputs = self.folder / "program.d"
        compiler = run("gcc", "-print-libgcc-file-name").strip() if shutil.which("gcc") else run("clang-19", "-print-libgcc-file-name").strip()
        own = self.folder / "own.o"
        own.touch()
        inputs.write_text(f"belfry: \\\n src/own.o \\\n src/libown.a \\\n {compiler}\n\n{compiler}:\n", encoding="utf-8")
        bom, _ = self.make("--link-inputs", inputs, "--header", "/usr/include/CLI/CLI.hpp")
        static = [each for each in bom["components"] if "static" in values(each, "linkage")]
        self.assertEqual([values(each, "file") for each in static], [["libgcc.a"]])
        self.assertTrue(static[0]["version"])
        headers = [each["name"] for each in bom["components"] if "headers" in values(each, "linkage")]
        self.assertEqual(headers, ["libcli11-dev"])

    def test_of_the_panel_what_is_bundled_is_named_and_what_only_builds_it_is_not(self):
        bom, _ = self.make()
        lock = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
        bundled = sorted((path.removeprefix("node_modules/"), each["version"]) for path, each in lock.items() if path and not each.get("dev"))
        self.assertIn("preact", dict(bundled))
        self.assertEqual(sorted((each["name"], each["version"]) for each in bom["components"] if "bundled" in values(each, "linkage")), bundled)
        self.assertNotIn("esbuild", files(bom))

    def test_the_same_inputs_give_the_same_file_and_the_time_is_the_one_that_is_given(self):
        first, text = self.make()
        self.assertEqual(self.make()[1], text)
        self.assertNotIn("timestamp", first["metadata"])
        dated, _ = self.make(env={"SOURCE_DATE_EPOCH": "86400"})
        self.assertEqual(dated["metadata"]["timestamp"], "1970-01-02T00:00:00Z")
        self.assertNotEqual(dated["serialNumber"], first["serialNumber"])

    def test_without_dpkg_it_says_so_and_names_the_files(self):
        tools = self.folder / "tools"
        tools.mkdir()
        for name in ("ldd", "bash", "sh", "cat"):
            (tools / name).symlink_to(shutil.which(name))
        bom, _ = self.make(env={"PATH": str(tools)})
        self.assertEqual(values(bom["metadata"], "packages"), ["unknown: dpkg is not there, or knows none of these files"])
        self.assertLessEqual(needed(self.program()), files(bom))
        self.assertFalse([each for each in bom["components"] if each["bom-ref"].startswith("pkg:deb/")])
        self.valid(bom)
        nothing, _ = self.make(env={"PATH": str(self.folder)})
        self.assertEqual(values(nothing["metadata"], "libraries"), ["unknown: ldd does not read this program"])
        self.valid(nothing)

    def test_it_is_valid_by_the_schema_of_cyclonedx(self):
        bom, _ = self.make("--header", "/usr/include/CLI/CLI.hpp", env={"SOURCE_DATE_EPOCH": "86400"})
        self.valid(bom)
        bom["components"][0]["type"] = "a library"
        with self.assertRaises(AssertionError):
            self.valid(bom)

    def valid(self, bom):
        self.assertEqual((bom["bomFormat"], bom["specVersion"]), ("CycloneDX", "1.6"))
        file = self.folder / "checked.json"
        file.write_text(json.dumps(bom), encoding="utf-8")
        folder = ROOT / "tests" / "sbom"
        subprocess.run(["bash", "-c", '. cmake/packages.sh && need_npm_packages "$1"', "-", folder], cwd=ROOT, check=True)
        said = subprocess.run(["node", folder / "validate.mjs", file], check=False, capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stdout), (0, ""), said.stderr)


class TheBuild(Case):
    """What lies beside a program that was built."""

    def setUp(self):
        super().setUp()
        if PROGRAM is None:
            self.skipTest("no program is given")
        self.bom = json.loads((PROGRAM.parent / "belfry.cdx.json").read_text(encoding="utf-8"))

    def test_it_is_of_this_program(self):
        digest = hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
        self.assertEqual(self.bom["metadata"]["component"]["hashes"], [{"alg": "SHA-256", "content": digest}])
        self.assertIn(self.bom["metadata"]["component"]["version"], run(PROGRAM, "--version"))

    def test_every_library_that_the_program_names_is_in_it(self):
        self.assertLessEqual(needed(PROGRAM), files(self.bom))
        self.assertEqual([each["name"] for each in self.bom["components"] if not each.get("version")], [])
        static = [name for each in self.bom["components"] if "static" in values(each, "linkage") for name in values(each, "file")]
        self.assertIn("libgcc.a", static)

    def test_every_header_that_was_compiled_is_of_a_package_in_it(self):
        ninja = subprocess.run(["ninja", "-C", PROGRAM.parent, "-t", "deps"], check=False, capture_output=True, text=True).stdout
        ours = {line for line in ninja.splitlines() if line.startswith("    /") and not line.strip().startswith(str(ROOT))}
        headers = sorted({os.path.realpath(line.strip()) for line in ours if "/gtest/" not in line and "/gmock/" not in line and "/rapidcheck" not in line})
        if not headers:
            self.skipTest("this build is none of Ninja's")
        owners = {}
        for line in subprocess.run(["dpkg", "-S", *headers], check=False, capture_output=True, text=True).stdout.splitlines():
            owner, _, path = line.partition(": ")
            owners[owner.split(",")[0].partition(":")[0]] = path
        sources = {values(each, "source")[0].split(" ")[0] for each in self.bom["components"] if values(each, "source")}
        asked = run("dpkg-query", "-W", "-f", "${Package} ${source:Package}\n", *owners)
        missing = {package: owners[package] for package, source in (line.split() for line in asked.splitlines())
                   if source not in sources and package not in NO_LIBRARY}
        self.assertEqual(missing, {})


del Case  # it is no test itself


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and os.access(sys.argv[1], os.X_OK):
        PROGRAM = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
