#!/usr/bin/env python3
"""Nothing in the tree says where it was written: no folder of a machine, no home of a user, no registry of packages.

    check_places.py [ROOT]     prints file:line of each offence and exits 1 if there is one

Whoever clones the tree has other folders. A path that stands for any is written with a user that nobody is: /home/me.
"""

import re
import subprocess
import sys
from pathlib import Path

NOBODY = ("me", "you", "user", "alice", "bob", "belfry")
# Folders that every system has say nothing about this one.
EVERYWHERE = {"bin", "boot", "data", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys",
              "tmp", "usr", "var", "Users"}


def patterns(root):
    """What must not stand anywhere, and why."""
    yield re.compile(re.escape(str(root)) + r"(?![\w.-])"), "this checkout"
    top = root.parts[1] if len(root.parts) > 1 else ""
    if top and top not in EVERYWHERE:
        yield re.compile(rf"(?<![\w./~$}}-])/{re.escape(top)}/"), "a folder of this machine"
    yield re.compile(rf"(?<![\w./-])/(?:home|Users)/(?!(?:{'|'.join(NOBODY)})\b)[A-Za-z][\w.-]*/"), "the home of somebody"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0") if name and (root / name).is_file()]
    offences = []
    for name in names:
        try:
            lines = (root / name).read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError:
            continue  # a picture
        for number, line in enumerate(lines, 1):
            offences += [f"{name}:{number}: {why}: {found[0]}" for pattern, why in patterns(root) if (found := pattern.search(line))]
            if name.endswith("package-lock.json") and '"resolved"' in line:
                offences.append(f"{name}:{number}: a registry of packages: `omit-lockfile-registry-resolved=true` in .npmrc leaves it out")
    print("\n".join(offences) if offences else f"places: {len(names)} files name none")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
