#!/usr/bin/env python3
"""What others notice while the files of a run are removed: sends beside it, and the server's memory.

    removal.py [--belfry build/release/belfry] [--data DIR]

Makes a run, puts folders into its folder as a tool might leave them, and deletes it, while messages are sent one after the
other. Prints the 99th percentile of a send without and with the removal, their ratio, and how much memory came to it.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAME = "d" * 200


def deep(folder, levels):
    at = os.open(folder, os.O_PATH)
    for _ in range(levels):
        os.mkdir(NAME, 0o700, dir_fd=at)
        below = os.open(NAME, os.O_PATH, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def wide(folder, files):
    for number in range(files):
        (Path(folder) / str(number)).touch()


class Server:
    def __init__(self, program, root):
        plugin = root / "plugins" / "leave"
        plugin.mkdir(parents=True)
        (plugin / "config.json").write_text('{"name":"leave"}')
        (plugin / "handler").write_text(
            '#!/bin/sh\nread -r request\n: > "$BELFRY_OUTPUT_DIR/file"\necho \'{"success":true}\'\n')
        (plugin / "handler").chmod(0o755)
        self.data = root / "data"
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--data", self.data, "--plugins", root / "plugins"],
            stdout=subprocess.PIPE, stderr=open(root / "log", "w"), text=True)
        url = re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        self.connection = http.client.HTTPConnection("127.0.0.1", int(url.group(1)), timeout=60)
        self.ask("POST", "/v1/agents", {"id": "w"})

    def ask(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Content-Type": "application/json"} if body is not None else {})
        answer = self.connection.getresponse()
        text = answer.read()
        return json.loads(text) if text else {}

    def run_with(self, make):
        run = self.ask("POST", "/v1/tools/local__leave:call", {"arguments": {}})["result"]["runId"]
        make(self.data / "files" / run / "0")
        return run

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def sends(self, go_on):
        took = []
        while go_on():
            begin = time.perf_counter()
            self.ask("POST", "/v1/messages", {"to": "w", "delayMs": 80_000_000, "payload": {"n": len(took)}})
            took.append((time.perf_counter() - begin) * 1000)
        return took

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def p99(took):
    return sorted(took)[int(len(took) * 0.99)]


def measure(server, what, make):
    run = server.run_with(make)
    os.sync()
    end = time.perf_counter() + 10
    alone = server.sends(lambda: time.perf_counter() < end)
    memory = server.memory()
    folder = server.data / "files" / run
    begin = time.perf_counter()
    server.ask("DELETE", f"/v1/runs/{run}")
    most = [memory]

    def under_way():
        most.append(server.memory())
        return folder.exists() and time.perf_counter() < begin + 300

    beside = server.sends(under_way)
    seconds = time.perf_counter() - begin
    print(f"{what}: gone after {seconds:.1f} s; a send p99 {p99(alone):.2f} ms alone ({len(alone)}), {p99(beside):.2f} ms beside it "
          f"({len(beside)}): {p99(beside) / p99(alone):.2f} x; memory +{max(most) - memory:.1f} MiB")
    return folder.exists()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--belfry", default=Path(__file__).resolve().parents[2] / "build/release/belfry")
    parser.add_argument("--data", type=Path, help="where, for another disk than that of temporary files")
    parser.add_argument("--levels", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=100_000)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(dir=options.data))
    server = Server(options.belfry, root)
    try:
        left = measure(server, f"{options.levels} levels", lambda folder: deep(folder, options.levels))
        left |= measure(server, f"{options.files} files", lambda folder: wide(folder, options.files))
    finally:
        server.stop()
    if not left:
        shutil.rmtree(root)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
