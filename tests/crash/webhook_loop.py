#!/usr/bin/env python3
"""Kills the real server with SIGKILL, again and again on the same data, while it sends to webhooks.

    webhook_loop.py --binary build/release/belfry --rounds 200

Two kinds of people have webhooks: receivers of `keyed` ones know requests by their key, those of `plain` ones do not. Each round schedules
messages that are due at once or soon, has an agent say some, and cancels, moves and hurries some; the receiver answers,
refuses, hangs up or is slow; the server is killed in between, and every fifth round it is stopped instead. In the end the
receiver takes everything, and what it saw is compared with what the server says about each message:

  - no key was seen with two bodies, and no message is without an end;
  - what is `sent` was answered with 200 and stands in the log once;
  - what was answered with 200 and is not `sent` is `outcome_unknown`;
  - `plain` never got anything again that it had answered with 200, or hung up on;
  - what was cancelled was never answered with 200.

Prints one JSON object every ten rounds and at the end; exits with 1 if anything of that does not hold.
"""

import argparse
import http.server
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict

from harness import Dead, Server, Wire

# Several of each: a person's messages go out one after the other, and whoever refuses holds up their own.
PEOPLE = tuple(f"{kind}-{number}" for kind in ("plain", "keyed") for number in range(6))
SECRET = "a secret of some length"
PATIENCE = 60


def kind_of(person):
    return person.split("-")[0]


class Receiver:
    """Remembers every request by its key: the person, the body, and what it answered."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.lock = threading.Lock()
        self.seen = defaultdict(list)
        self.kind = False  # from then on it takes everything
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.close_connection = True
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if len(body) < int(self.headers["Content-Length"]):
                    return  # killed while it was writing: nothing was heard
                status, pause = receiver.hear(self.path.strip("/"), self.headers["Idempotency-Key"], body)
                time.sleep(pause)
                if status:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # the client was killed

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hear(self, person, key, body):
        with self.lock:
            status = 200 if self.kind else self.dice.choices((200, 503, 0, 400), (70, 15, 10, 5))[0]
            pause = 0 if self.kind or self.dice.random() < 0.6 else self.dice.random() * 0.3
            self.seen[key].append((person, body, status))
        return status, pause


class Loop:
    def __init__(self, options, scratch):
        self.rng = random.Random(options.seed)
        self.binary = os.path.abspath(options.binary)
        self.scratch = scratch
        self.data = os.path.join(scratch, "data")
        self.receiver = Receiver(self.rng.random())
        self.server = None
        self.sessions = {}
        self.tasks = {}  # by id, the person
        self.lines = {}  # by id, the person
        self.cancelled = set()
        self.counts = Counter()
        self.problems = []

    def problem(self, text):
        self.problems.append(text)
        print(text, file=sys.stderr)

    def start(self):
        self.server = Server(self.binary, self.data, os.path.join(self.scratch, "server.log"), "--log-level", "warn")
        self.server.wait_ready()

    def call(self, wire, method, path, body=None, expected=(200, 201)):
        status, answer = wire.call(method, path, body)
        if status not in expected:
            self.problem(f"{method} {path}: {status} {answer}")
        return status, answer

    def set_webhooks(self, wire, people=PEOPLE):
        """Also hurries what waits for its next attempt: another time limit is another way."""
        for person in people:
            self.call(wire, "PUT", f"/v1/people/{person}/webhook",
                      {"url": f"http://127.0.0.1:{self.receiver.port}/{person}", "secret": SECRET,
                       "idempotent": kind_of(person) == "keyed", "timeout_ms": self.rng.randrange(2000, 3000)})

    def prepare(self):
        wire = Wire(self.server.port)
        self.call(wire, "POST", "/v1/agents", {"id": "bot"})
        for person in PEOPLE:
            _, session = self.call(wire, "POST", "/v1/sessions", {"user": person, "agent": "bot"})
            self.sessions[person] = session["sessionId"]
        self.set_webhooks(wire)
        wire.close()

    # P12, P13
    def load(self, over):
        """One client until the server is gone."""
        try:
            wire = Wire(self.server.port)
            for _ in range(200):
                if over.wait(self.rng.random() * 0.05):
                    break
                self.one(wire)
            wire.close()
        except (Dead, TimeoutError):
            pass

    def one(self, wire):
        person = self.rng.choice(PEOPLE)
        what = self.rng.random()
        known = list(self.tasks)[-12:]
        if what < 0.1:
            self.set_webhooks(wire, [person])
        elif what < 0.5 or not known:
            delay = self.rng.choice((0, 0, 100, 400))
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + delay / 1000))
            status, task = self.call(wire, "POST", "/v1/scheduled", {
                "session_id": self.sessions[person], "send_at": f"{at}.{delay % 1000:03d}Z",
                "message_text": f"text {len(self.tasks)}"}, (201, 503))
            if status == 201:
                self.tasks[task["task_id"]] = person
        elif what < 0.7:
            status, sent = self.call(wire, "POST", "/v1/messages", {
                "to": person, "from": "bot", "sessionId": self.sessions[person], "payload": {"text": "a line"}}, (201, 503))
            if status == 201:
                self.lines[sent["messageId"]] = person
        else:
            self.change(wire, self.rng.choice(known), what)

    def change(self, wire, task_id, what):
        if what < 0.8:
            status, answer = self.call(wire, "DELETE", f"/v1/scheduled/{task_id}", None, (200, 409, 503))
            if status == 200:
                self.cancelled.add(task_id)
        elif what < 0.9:
            status, answer = self.call(wire, "PATCH", f"/v1/scheduled/{task_id}", {"message_text": "another text"}, (200, 409, 503))
        else:
            status, answer = self.call(wire, "POST", f"/v1/scheduled/{task_id}:send", None, (200, 409, 503))
        self.counts[answer.get("error", "changed")] += 1

    def round(self, number):
        self.start()
        if not self.sessions:
            self.prepare()
        over = threading.Event()
        clients = [threading.Thread(target=self.load, args=(over,)) for _ in range(3)]
        for client in clients:
            client.start()
        time.sleep(0.05 + self.rng.random() * 0.6)
        gently = number % 5 == 4
        self.server.signal(15 if gently else 9)
        code = self.server.wait()
        over.set()
        for client in clients:
            client.join()
        if code != (0 if gently else -9):
            self.problem(f"the server ended with {code}: {self.server.log()[-1500:]}")
        self.server = None
        self.counts["stops" if gently else "kills"] += 1
        done = subprocess.run([self.binary, "doctor", "--json", "--data", self.data], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        if done.returncode != 0:
            self.problem(f"doctor: {done.stdout[-800:]} {done.stderr[-300:]}")

    def finish(self):
        """Everything comes to its end: the receiver takes all, and whoever waits for its next attempt is hurried."""
        self.receiver.kind = True
        self.start()
        wire = Wire(self.server.port)
        deadline = time.monotonic() + PATIENCE
        waiting = True
        while waiting and time.monotonic() < deadline:
            self.set_webhooks(wire)
            time.sleep(0.2)
            _, pending = self.call(wire, "GET", "/v1/scheduled?status=pending&limit=1")
            waiting = pending["tasks"] or any(self.outbox(wire, person, live=True) for person in PEOPLE)
        for task_id, person in self.tasks.items():
            _, answer = self.call(wire, "GET", f"/v1/scheduled/{task_id}")
            self.judge_task(answer["task"], person)
        self.judge_lines(wire)
        wire.close()
        self.server.signal(15)
        if (code := self.server.wait()) != 0:
            self.problem(f"the last, graceful stop ended with {code}")
        self.server = None
        for key, heard in self.receiver.seen.items():
            self.judge_key(key, heard)

    def outbox(self, wire, person, live):
        """All messages of the outbox, or whether there is one that has not ended."""
        found, after = {}, ""
        while True:
            _, page = self.call(wire, "GET", f"/v1/people/{person}/outbox?limit=1000{after}")
            for one in page["messages"]:
                if not live or one["state"] in ("waiting", "sending"):
                    found[one["id"]] = one
            if "next" not in page:
                return found
            after = f"&after={page['next']}"

    def delivered(self, key):
        return any(status == 200 for _, _, status in self.receiver.seen.get(key, ()))

    def judge_task(self, task, person):
        key = "s" + task["task_id"]
        end = task["status"] if task["status"] != "failed" else task["reason"]
        self.counts[f"{kind_of(person)}.{end}"] += 1
        if task["status"] == "pending":
            self.problem(f"a task has no end: {task}")
        if task["status"] == "sent" and not self.delivered(key):
            self.problem(f"sent, and nobody got it: {task}")
        if self.delivered(key) and end not in ("sent", "outcome_unknown"):
            self.problem(f"it arrived, and is {end}: {task}")
        if task["task_id"] in self.cancelled and task["status"] != "cancelled":
            self.problem(f"a cancel said done, and it is {end}: {task}")

    def judge_lines(self, wire):
        said = Counter()
        scheduled = set()
        for session in self.sessions.values():
            after = 0
            while True:
                _, page = self.call(wire, "GET", f"/v1/sessions/{session}/messages?after={after}&limit=500")
                if not page["messages"]:
                    break
                for line in page["messages"]:
                    said[line["messageId"]] += 1
                    if line["source"] == "scheduled_send":
                        scheduled.add(line["messageId"])
                    after = line["seq"]
        for line, times in said.items():
            if times != 1:
                self.problem(f"{line} stands {times} times in the log")
            if line in scheduled and not self.delivered(line):
                self.problem(f"{line} was said, and nobody got it")
        rows = {}
        for person in PEOPLE:
            rows.update(self.outbox(wire, person, live=False))
        for line, person in self.lines.items():
            row = rows.get(line)
            if said[line] != 1 or row is None:
                self.problem(f"the line {line} is in the log {said[line]} times, and in the outbox: {row}")
                continue
            self.counts[f"{kind_of(person)}.line.{row.get('reason', row['state'])}"] += 1
            if self.delivered(line) and row["state"] != "sent" and row["reason"] != "outcome_unknown":
                self.problem(f"the line {line} arrived, and is {row}")

    def judge_key(self, key, heard):
        if len({body for _, body, _ in heard}) != 1:
            self.problem(f"{key} came with {len({body for _, body, _ in heard})} bodies")
        statuses = [status for _, _, status in heard]
        kind = kind_of(heard[0][0])
        if kind == "plain" and any(status in (200, 0) for status in statuses[:-1]):
            self.problem(f"{key} came again after {statuses}")
        if kind == "keyed" and len(statuses) > 1:
            self.counts["repeated"] += 1

    def summary(self, rounds, started):
        return json.dumps({"rounds": rounds, "seconds": round(time.monotonic() - started), "tasks": len(self.tasks),
                           "lines": len(self.lines), "requests": sum(map(len, self.receiver.seen.values())),
                           "problems": len(self.problems), **dict(sorted(self.counts.items()))})


def main():
    parser = argparse.ArgumentParser(description="SIGKILL the server while it sends to webhooks.")
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the data directory, and print where it is")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {options.seed}", file=sys.stderr)
    scratch = tempfile.mkdtemp(prefix="belfry-webhook-")
    loop = Loop(options, scratch)
    started = time.monotonic()
    try:
        for number in range(options.rounds):
            loop.round(number)
            if (number + 1) % 10 == 0 and number + 1 < options.rounds:
                print(loop.summary(number + 1, started), flush=True)
        loop.finish()
    except Dead:
        loop.problem(f"the server went away: {loop.server and loop.server.log()[-1500:]}")
    finally:
        if loop.server:
            loop.server.kill()
            loop.server.wait()
        if options.keep or loop.problems:
            print(f"the data is in {scratch}", file=sys.stderr)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    print(loop.summary(options.rounds, started), flush=True)
    return 1 if loop.problems else 0


if __name__ == "__main__":
    sys.exit(main())
