#!/usr/bin/env python3
"""Kills the real server with SIGKILL around the times at which scheduled messages are due.

    schedule_loop.py --binary build/release/belfry --kills 200 --tasks 1000

The tasks are due in groups, one for each kill, a moment apart; the kill falls a few milliseconds before or behind its
group's time, or into the start that follows. Some tasks are cancelled, moved or sent now on the way. In the end every
text that was not cancelled stands in its chat exactly once and not before its time, and none that was cancelled does.
Prints one JSON object; exits with 1 if anything of that does not hold.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone

from harness import Server, iso_ms

SESSIONS = 20
APART_MS = 700
PATIENCE = 60


def iso(ms):
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ScheduleLoop:
    def __init__(self, options, scratch):
        self.options = options
        self.rng = random.Random(options.seed)
        self.data = os.path.join(scratch, "data")
        self.log = os.path.join(scratch, "log")
        self.tasks = {}  # id: {"text", "due", "session", "cancelled"}
        self.kills = 0
        self.problems = []

    def start(self):
        server = Server(self.options.binary, self.data, self.log, "--log-level", "warn")
        server.wait_ready()
        return server

    def prepare(self, server):
        server.call("POST", "/v1/agents", {"id": "bot", "kind": "external"})
        sessions = []
        for number in range(SESSIONS):
            status, answer = server.call("POST", "/v1/sessions", {"user": f"person-{number}", "agent": "bot"})
            assert status == 201, answer
            sessions.append(answer["sessionId"])
        begin = int(time.time() * 1000) + 1_500 + self.options.tasks * 3
        group = max(1, self.options.tasks // self.options.kills)
        for number in range(self.options.tasks):
            due = begin + number // group * APART_MS + self.rng.randrange(-20, 21)
            session = self.rng.choice(sessions)
            text = f"task {number}"
            body = {"session_id": session, "send_at": iso(due), "message_text": text, "call_id": str(number)}
            status, answer = server.call("POST", "/v1/scheduled", body)
            assert status == 201, answer
            self.tasks[answer["task_id"]] = {"text": text, "due": due, "session": session, "cancelled": None}
        return begin

    def meddle(self, server):
        """Somebody changes their mind about a task. What a dying server made of it is unknown until the end."""
        task, known = self.rng.choice(list(self.tasks.items()))
        if known["cancelled"] is not None or known.get("moved"):
            return
        what = self.rng.randrange(3)
        if what == 0:
            answer = server.call("DELETE", f"/v1/scheduled/{task}")
            known["cancelled"] = "unknown" if answer is None else answer[0] == 200 or None
        elif what == 1:
            known["moved"] = True
            later = int(time.time() * 1000) + self.rng.randrange(100, 3_000)
            known["due"] = min(known["due"], later)
            server.call("PATCH", f"/v1/scheduled/{task}", {"send_at": iso(later)})
        else:
            known["due"] = 0
            server.call("POST", f"/v1/scheduled/{task}:send", {})

    def run(self):
        server = self.start()
        begin = self.prepare(server)
        for number in range(self.options.kills):
            at = begin + number * APART_MS + self.rng.randrange(-30, 60)
            for _ in range(2):
                self.meddle(server)
            time.sleep(max(0, at / 1000 - time.time()))
            server.kill()
            server.wait()
            self.kills += 1
            if self.rng.random() < 0.2:  # and once more, in the middle of the start
                server = Server(self.options.binary, self.data, self.log, "--log-level", "warn")
                time.sleep(self.rng.random() * 0.05)
                server.kill()
                server.wait()
                self.kills += 1
            server = self.start()
        self.check(server)
        server.kill()
        server.wait()
        doctor = subprocess.run([self.options.binary, "doctor", "--data", self.data], capture_output=True, text=True,
                                check=False)
        if doctor.returncode != 0:
            self.problems.append(f"doctor: {doctor.stdout}{doctor.stderr}")

    def check(self, server):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            status, page = server.call("GET", "/v1/scheduled?status=pending&limit=1")
            assert status == 200, page
            if not page["tasks"]:
                break
            time.sleep(0.2)
        else:
            self.problems.append("tasks are still pending")
        said = {}
        for session in {task["session"] for task in self.tasks.values()}:
            after = 0
            while True:
                _, page = server.call("GET", f"/v1/sessions/{session}/messages?after={after}&limit=500")
                if not page["messages"]:
                    break
                for line in page["messages"]:
                    after = line["seq"]
                    said.setdefault((session, line["text"]), []).append(line)
        self.judge(said)

    def judge(self, said):
        for task, known in self.tasks.items():
            lines = said.pop((known["session"], known["text"]), [])
            if known["cancelled"] is True and lines:
                self.problems.append(f"{known['text']} was cancelled and said")
            if known["cancelled"] is None and len(lines) != 1:
                self.problems.append(f"{known['text']} ({task}) was said {len(lines)} times")
            if len(lines) > 1:
                self.problems.append(f"{known['text']} ({task}) was said {len(lines)} times")
            for line in lines:
                if iso_ms(line["saidAt"]) < known["due"]:
                    self.problems.append(f"{known['text']} was early: {line['saidAt']}, due {iso(known['due'])}")
        self.problems += [f"nobody wrote {text}" for text in said]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/belfry")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="belfry-schedule-") as scratch:
        loop = ScheduleLoop(options, scratch)
        loop.run()
    cancelled = sum(task["cancelled"] is True for task in loop.tasks.values())
    print(json.dumps({"kills": loop.kills, "tasks": len(loop.tasks), "cancelled": cancelled, "seed": options.seed,
                      "problems": len(loop.problems), "seconds": round(time.monotonic() - begun, 1)}))
    for problem in loop.problems[:20]:
        print(problem, file=sys.stderr)
    return 1 if loop.problems else 0


if __name__ == "__main__":
    sys.exit(main())
