#!/usr/bin/env python3
"""docs/errors.md explains every word of Errc, and no other."""

import re
import sys
from pathlib import Path

root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
header = (root / "src/belfry/base/result.h").read_text(encoding="utf-8")
body = re.search(r"enum class Errc \{(.*?)\};", header, re.DOTALL).group(1)
words = set(re.findall(r"\b[a-zA-Z_]+\b", re.sub(r"//[^\n]*", "", body)))
explained = set(re.findall(r"^\| `([a-zA-Z_]+)` \|", (root / "docs/errors.md").read_text(encoding="utf-8"), re.MULTILINE))

for word in sorted(words - explained):
    print(f"docs/errors.md does not explain {word}")
for word in sorted(explained - words):
    print(f"docs/errors.md explains {word}, which src/belfry/base/result.h does not know")
if words == explained:
    print(f"errors: {len(words)} words are explained")
sys.exit(words != explained)
