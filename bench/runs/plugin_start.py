#!/usr/bin/env python3
"""What walls cost: the start of a plugin under `usual` beside one without walls, one after the other in the same minute.

    plugin_start.py [--belfry build/release/belfry] [--calls 200] [--sandbox usual]

Two servers, one with each setting, are asked in turn for a plugin that answers at once: a program in Python, as most are, and one
in shell. Prints the median of a whole call and of the difference.
"""

import argparse
import http.client
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HANDLERS = {
    "python": '#!/usr/bin/python3\nimport json, sys\njson.loads(sys.stdin.readline())\nprint(\'{"success":true}\')\n',
    "shell": '#!/bin/sh\nread -r request\necho \'{"success":true}\'\n',
}


class Server:
    def __init__(self, program, root, sandbox):
        for name, text in HANDLERS.items():
            folder = root / sandbox / "plugins" / name
            folder.mkdir(parents=True)
            (folder / "config.json").write_text(json.dumps({"name": name}))
            (folder / "handler").write_text(text)
            (folder / "handler").chmod(0o755)
        (root / sandbox / "belfry.toml").write_text(f'[plugins]\nsandbox = "{sandbox}"\n')
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--data", root / sandbox / "data", "--plugins",
             root / sandbox / "plugins", "--config", root / sandbox / "belfry.toml"],
            stdout=subprocess.PIPE, stderr=open(root / sandbox / "log", "w"), text=True)
        port = re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline()).group(1)
        self.connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)

    def call(self, name):
        begin = time.perf_counter()
        self.connection.request("POST", f"/v1/tools/local__{name}:call", '{"arguments":{}}', {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{name}: {answer.status} {text.decode()}")
        return (time.perf_counter() - begin) * 1000

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--belfry", default=Path(__file__).resolve().parents[2] / "build/release/belfry")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--sandbox", default="usual", choices=("usual", "strict"))
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as root:
        servers = {sandbox: Server(options.belfry, Path(root), sandbox) for sandbox in ("off", options.sandbox)}
        for name in HANDLERS:
            took = {sandbox: [] for sandbox in servers}
            for number in range(options.calls):
                for sandbox in list(servers)[:: 1 if number % 2 else -1]:
                    took[sandbox].append(servers[sandbox].call(name))
            off, on = (statistics.median(took[sandbox]) for sandbox in ("off", options.sandbox))
            # A call of an idle server, without the interpreter: what the walls are compared with is the start.
            print(f"{name}: {off:.2f} ms off, {on:.2f} ms {options.sandbox}: {on / off:.2f} x, {on - off:+.2f} ms")
            good &= on - off <= 5 and on / off <= 1.3
        for server in servers.values():
            server.stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
