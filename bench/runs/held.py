#!/usr/bin/env python3
"""Ten thousand results that are held: memory, start-up, and how late each one is said when nothing else runs.

    held.py PROGRAM [--runs 10000] [--every MS]

Starts a server of its own with a plugin that stays (one process, many requests), has it do N jobs whose results are to be
reported later, a few milliseconds apart, kills and starts the server while they are held, and reads the conversation by
long polling like any client. Beside it, at the same pace, what a bare timer and one write to the disk take: that is the least
that a result on time and on the disk can cost. Where the machine is a guest, both are given a second time for the moments in
which its host took no processor away (`calm`). Prints one JSON object a line.
"""

import argparse
import bisect
import datetime
import http.client
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path

HANDLER = '''#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "success": True, "data": {"text": "x" * 200}}), flush=True)
'''


class Server:
    def __init__(self, program, root):
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--data", str(root / "data"), "--plugins", str(root / "plugins"),
             "--log-level", "error"], stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)$", self.process.stdout.readline().strip()).group(1))
        self.started_ms = (time.monotonic() - begun) * 1000

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def resident_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


class Host:
    """Looks every 20 ms at how much time the host has stolen; the count has steps of 10 ms."""

    def __init__(self):
        self.times, self.stolen = [], []
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        while True:
            self.stolen.append(int(Path("/proc/stat").read_text().split()[8]))
            self.times.append(time.time())
            time.sleep(0.02)

    def calm(self, begin, end):
        """True if nothing was stolen from the look before the beginning to the one after the end."""
        first = bisect.bisect_left(self.times, begin) - 1
        last = bisect.bisect_right(self.times, end)
        return 0 <= first and last < len(self.times) and self.stolen[first] == self.stolen[last]


def call(connection, method, path, body=None):
    connection.request(method, path, json.dumps(body) if body is not None else None)
    response = connection.getresponse()
    return json.loads(response.read())


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="milliseconds")


def from_iso(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def prepare(root):
    folder = root / "plugins" / "held"
    folder.mkdir(parents=True)
    (folder / "handler").write_text(HANDLER)
    (folder / "handler").chmod(0o755)
    (folder / "config.json").write_text(json.dumps({"name": "held", "schedule": True, "mode": "persistent"}))


def begin_runs(server, session, count, first, every):
    def some(start):
        connection = server.connect()
        for i in range(start, count, 4):
            step = {"aiName": "local__held", "draftArgs": {"schedule": iso(first + i * every)}}
            call(connection, "POST", "/v1/runs", {"plan": {"steps": [step]}, "context": {"sessionId": session}})

    threads = [threading.Thread(target=some, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def count_open(connection, session):
    return len(call(connection, "GET", f"/v1/runs?session={session}&state=running&limit=1000")["runs"])


def read_lines(server, session, count):
    """When each line was due and when it came."""
    connection, after, came = server.connect(), 0, []
    while len(came) < count:
        page = call(connection, "GET", f"/v1/sessions/{session}/messages?after={after}&limit=500&waitMs=60000")["messages"]
        now = time.time()
        for line in page:
            came.append((from_iso(line["dueAt"]), now))
            after = line["seq"]
    return came


def raw_probe(folder, count, every):
    """When a sleeper was to write a page, and when it was on the disk."""
    file = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY)
    os.pwrite(file, bytes(4096), 0)
    os.fsync(file)
    first, came = time.time() + 0.1, []
    for i in range(count):
        due = first + i * every
        time.sleep(max(0, due - time.time()))
        os.pwrite(file, bytes([i % 256]) * 4096, 0)
        os.fdatasync(file)
        came.append((due, time.time()))
    os.close(file)
    return came


def quantiles(came):
    late = sorted((at - due) * 1000 for due, at in came)
    if not late:
        return {}
    return {"p50Ms": round(late[len(late) // 2], 2), "p99Ms": round(late[len(late) * 99 // 100], 2),
            "worstMs": round(late[-1], 2)}


def lateness(came, host):
    time.sleep(0.1)  # until the host has been looked at after the last one
    calm = [(due, at) for due, at in came if host.calm(due, at)]
    return {"early": sum(1 for due, at in came if at < due), **quantiles(came), "calm": {"count": len(calm), **quantiles(calm)}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--every", type=float, default=3, help="milliseconds between two results")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare(root)
        empty = Server(flags.program, root)
        connection = empty.connect()
        call(connection, "POST", "/v1/agents", {"id": "bot"})
        session = call(connection, "POST", "/v1/sessions", {"kind": "private", "user": "ann", "agent": "bot"})["sessionId"]
        print(json.dumps({"empty": {"startMs": round(empty.started_ms, 1), "residentMiB": round(empty.resident_mib(), 1)}}))
        begun = time.time()
        first = begun + 60 + flags.runs / 300
        begin_runs(empty, session, flags.runs, first, flags.every / 1000)
        step = {"aiName": "local__held", "draftArgs": {}}
        last = call(connection, "POST", "/v1/runs", {"plan": {"steps": [step]}})["runId"]
        while call(connection, "GET", f"/v1/runs/{last}")["state"] == "running":
            time.sleep(0.2)  # all before it have had their turn
        print(json.dumps({"held": {"runs": flags.runs, "perSecond": round(flags.runs / (time.time() - begun)),
                                   "residentMiB": round(empty.resident_mib(), 1)}}), flush=True)
        if time.time() > first:
            raise SystemExit("the machine is too slow for these times; use fewer runs")
        empty.process.kill()
        empty.process.wait()
        server = Server(flags.program, root)
        print(json.dumps({"restarted": {"startMs": round(server.started_ms, 1),
                                        "residentMiB": round(server.resident_mib(), 1)}}), flush=True)
        host = Host()
        came = read_lines(server, session, flags.runs)
        print(json.dumps({"released": {**lateness(came, host), "residentMiB": round(server.resident_mib(), 1)}}), flush=True)
        print(json.dumps({"raw": lateness(raw_probe(root, flags.runs, flags.every / 1000), host)}))
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
