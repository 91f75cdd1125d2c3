"""How Belfry asks a plugin and hears from it. For the bundled ones."""

import base64
import json
import os
import re
import sys
from pathlib import Path

INLINE_MAX = 256 * 1024  # a result is one line that is stored and shown; what is larger must be a file


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def say(line):
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def progress(text):
    say({"progress": {"text": text}})


def run(work):
    """Reads the one request, and says the one result: what `work(args, context)` returns, or why it failed."""
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        asked = request()
        say({"success": True, "data": work(asked["args"], asked.get("context") or {})})
    except Failure as failure:
        say({"success": False, "error": {"code": failure.code, "message": str(failure)}})


def request():
    try:
        asked = json.loads(sys.stdin.buffer.readline())
    except ValueError:
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("args"), dict):
        raise Failure("invalid_argument", "The request must be a JSON object with `args`.")
    return asked


def leave_file(context, name, mime_type, content):
    """Leaves a file where Belfry serves it, or in the result itself if there is no such place and it is small."""
    file = {"name": name, "mimeType": mime_type, "bytes": len(content)}
    folder = context.get("outputDir") or os.environ.get("BELFRY_OUTPUT_DIR")
    if folder:
        try:
            Path(folder, name).write_bytes(content)
        except OSError as error:
            raise Failure("output_failed", f"{name} cannot be written: {error.strerror}.") from None
    elif len(content) <= INLINE_MAX:
        file["base64"] = base64.b64encode(content).decode()
    else:
        raise Failure("too_large", f"{name} has {len(content)} bytes, and there is no folder to leave it in.")
    return file


def mostly_chinese(*texts):
    text = " ".join(str(each) for each in texts if each)
    return len(re.findall(r"[\u3400-\u9fff]", text)) > len(re.findall(r"[A-Za-z]+", text))
