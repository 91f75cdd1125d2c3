#!/usr/bin/env python3
"""The unit file for systemd leaves little open, and what the walls around tools are built with. No systemd has to run.

    unit_file_test.py [-v] [Case.test…]
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "packaging" / "belfry.service"
EXPOSURE_MOST = 3.0


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *map(str, arguments)], check=False, capture_output=True, text=True,
                          env={**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_EMOJI": "0", "SYSTEMD_PAGER": "", "LC_ALL": "C.UTF-8"})


def settings():
    """What the unit says: each key with its values, in order."""
    found = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def calls_of(name):
    """The calls of a set, also of the sets in it; a call is itself."""
    if not name.startswith("@"):
        return {name}
    lines = [line.strip() for line in analyze("syscall-filter", name).stdout.splitlines()[1:]]
    return set().union(*(calls_of(line) for line in lines if line and not line.startswith("#")))


class UnitFile(unittest.TestCase):
    def setUp(self):
        self.settings = settings()

    def words(self, key):
        return " ".join(self.settings.get(key, [""])).split()

    # G18
    def test_it_leaves_little_open(self):
        said = analyze("security", "--offline=true", "--no-pager", UNIT)
        level = re.search(r"Overall exposure level for belfry.service: ([\d.]+)", said.stdout)
        self.assertIsNotNone(level, said.stdout + said.stderr)
        self.assertLessEqual(float(level[1]), EXPOSURE_MOST)

    def test_systemd_understands_every_line(self):
        folder = Path(tempfile.mkdtemp(prefix="belfry-unit-"))
        self.addCleanup(shutil.rmtree, folder)
        unit = folder / "belfry.service"
        unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
        self.assertEqual([line for line in analyze("verify", unit).stderr.splitlines() if str(unit) in line], [])
        unit.write_text(unit.read_text(encoding="utf-8").replace("UMask=", "UMaks="), encoding="utf-8")
        self.assertIn("UMaks", analyze("verify", unit).stderr)

    # G18
    def test_the_calls_that_build_walls_are_allowed(self):
        allowed = set()
        for line in self.settings["SystemCallFilter"]:
            calls = set().union(*(calls_of(name) for name in line.removeprefix("~").split()))
            allowed = allowed - calls if line.startswith("~") else allowed | calls
        needed = {
            "files": {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"},
            "other processes": {"clone", "unshare", "mount", "mount_setattr", "capset", "prctl", "kill", "wait4"},
            "amount": {"prlimit64", "setrlimit", "setpriority", "mkdir", "rmdir"},
            "calls": {"prctl", "seccomp"},
        }
        for wall, calls in needed.items():
            self.assertEqual(calls - allowed, set(), f"the wall of {wall}")
        never = {"ptrace", "bpf", "init_module", "kexec_load", "reboot", "swapon", "settimeofday", "pivot_root", "chroot", "io_uring_setup",
                 "keyctl", "userfaultfd", "process_vm_readv", "perf_event_open", "setuid", "chown"}
        self.assertEqual(never & allowed, set())

    # G18
    def test_namespaces_and_a_group_of_its_own_are_open_to_it(self):
        self.assertEqual(sorted(self.words("RestrictNamespaces")), ["ipc", "mnt", "net", "pid", "user"])
        self.assertLessEqual({"pids", "memory"}, set(self.words("Delegate")))
        for key in ("ProtectKernelTunables", "ProtectKernelLogs", "ProtectControlGroups", "MemoryDenyWriteExecute", "PrivateNetwork"):
            self.assertIn(self.words(key), ([], ["no"]), key)
        self.assertIn(self.words("ProcSubset"), ([], ["all"]))
        self.assertLessEqual({"AF_UNIX", "AF_INET", "AF_INET6"}, set(self.words("RestrictAddressFamilies")))

    # G12
    def test_a_stop_leaves_the_server_its_time_and_tells_nobody_else(self):
        self.assertEqual(self.words("KillMode"), ["mixed"])
        deadline = int(re.search(r"`\[server\] stop_deadline_ms`.*\| (\d+) \|", (ROOT / "docs/operations.md").read_text(encoding="utf-8"))[1])
        self.assertGreater(int(self.words("TimeoutStopSec")[0]) * 1000, deadline + 5000)


if __name__ == "__main__":
    unittest.main()
