#!/usr/bin/env python3
"""Kills the real server with SIGKILL while plugins run and results are held.

    run_loop.py --binary build/release/belfry --kills 100

In each round runs are begun, some of them cancelled, and the server is killed at a random moment, also while it starts.
After each kill no process of a plugin may be left. In the end every run that was acknowledged has exactly one final result,
at most one notice before it, and neither before its time; a result that was reported stands in the conversation exactly once;
of what was cancelled nothing does; the agent has heard of each run exactly once. Prints one JSON object; exits with 1 if
anything of that does not hold.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

from harness import Server, iso_ms

PATIENCE = 60
RUNS_A_ROUND = 40  # more would only wait in line
MARKER = f"belfry_run_loop_{os.getpid()}"

HANDLER = """#!/usr/bin/env python3
import json, os, subprocess, sys, time
request = json.loads(sys.stdin.readline())
if request["args"].get("forks"):
    subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
time.sleep(request["args"]["takes"])
if request["args"].get("fails"):
    print(json.dumps({"success": False, "error": "no luck"}))
else:
    print(json.dumps({"success": True, "data": {"text": request["args"]["name"]}}))
"""


def processes(binary):
    """Plugins, what they have forked, and the guards above them, which have no environment."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                plugin = MARKER.encode() in file.read()
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                guard = b"__plugin-guard" in file.read() and os.readlink(f"/proc/{entry}/exe") == binary
        except OSError:
            continue
        if plugin or guard:
            found.append(int(entry))
    return found


class RunLoop:
    def __init__(self, options, scratch):
        self.options = options
        self.rng = random.Random(options.seed)
        self.scratch = scratch
        self.data = os.path.join(scratch, "data")
        self.runs = {}  # id: {"name", "cancelled": True, False or None for unknown}
        self.names = 0
        self.kills = 0
        self.left = 0
        self.problems = []

    def make_plugins(self):
        for name, more in (("once", {}), ("again", {"idempotent": True})):
            folder = os.path.join(self.scratch, "plugins", name)
            os.makedirs(folder)
            with open(os.path.join(folder, "handler"), "w") as file:
                file.write(HANDLER)
            os.chmod(os.path.join(folder, "handler"), 0o755)
            with open(os.path.join(folder, ".env"), "w") as file:
                file.write(f"MARKER={MARKER}\n")
            with open(os.path.join(folder, "config.json"), "w") as file:
                json.dump({"name": name, "schedule": True, "timeoutMs": 5000, **more}, file)

    def start(self):
        flags = ["--plugins", os.path.join(self.scratch, "plugins"), "--log-level", "warn"]
        return Server(self.options.binary, self.data, os.path.join(self.scratch, "log"), *flags)

    def begin(self, server):
        self.names += 1
        name = f"run {self.names}"
        arguments = {"name": name, "takes": self.rng.choice([0, 0, 0.05, 0.3]), "fails": self.rng.random() < 0.2,
                     "forks": self.rng.random() < 0.2}
        if self.rng.random() < 0.8:
            arguments["schedule"] = f"in {self.rng.randint(1, 4)} seconds"
        tool = self.rng.choice(["local__once", "local__again"])
        body = {"plan": {"steps": [{"aiName": tool, "draftArgs": arguments}]}, "key": name,
                "context": {"sessionId": self.session, "agentId": "bot"}}
        answer = server.call("POST", "/v1/runs", body)
        if answer and answer[0] in (200, 201):
            self.runs[answer[1]["runId"]] = {"name": name, "cancelled": False}

    def cancel(self, server):
        run = self.rng.choice(list(self.runs))
        answer = server.call("POST", f"/v1/runs/{run}:cancel")
        if answer is None:
            self.runs[run]["cancelled"] = None  # whether it was, only the server knows
        elif answer[0] == 200:
            self.runs[run]["cancelled"] = True

    def work(self, server):
        until = time.monotonic() + self.rng.uniform(0.05, 1.2)
        begun = 0
        while (left := until - time.monotonic()) > 0:
            if begun == RUNS_A_ROUND:
                time.sleep(left)
                return
            self.begin(server)
            begun += 1
            if self.runs and self.rng.random() < 0.1:
                self.cancel(server)

    def kill(self, server):
        server.kill()
        server.wait()
        self.kills += 1
        deadline = time.monotonic() + PATIENCE
        while processes(self.options.binary):
            if time.monotonic() > deadline:
                self.left += len(processes(self.options.binary))
                self.problems.append(f"left after a kill: {processes(self.options.binary)}")
                return
            time.sleep(0.01)

    def run(self):
        self.make_plugins()
        server = self.start().wait_ready()
        server.call("POST", "/v1/agents", {"id": "bot", "kind": "external"})
        opened = server.call("POST", "/v1/sessions", {"kind": "private", "user": "ann", "agent": "bot"})
        self.session = opened[1]["sessionId"]
        for _ in range(self.options.kills):
            self.work(server)
            self.kill(server)
            server = self.start()
            if self.rng.random() < 0.2:  # into the start
                time.sleep(self.rng.uniform(0, 0.05))
                self.kill(server)
                server = self.start()
            server.wait_ready()
        self.judge(server)
        self.kill(server)
        doctor = subprocess.run([self.options.binary, "doctor", "--data", self.data], capture_output=True, text=True)
        if doctor.returncode != 0:
            self.problems.append(f"doctor: {doctor.stdout}{doctor.stderr}")

    def events(self, server, run):
        """All of them, once the run has ended."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            events = server.call("GET", f"/v1/runs/{run}/events?format=json")[1]["events"]
            if events and events[-1]["type"] == "done":
                return events
            time.sleep(0.05)
        self.problems.append(f"{run} has not ended")
        return []

    def lines(self, server):
        all_lines, after = [], 0
        while page := server.call("GET", f"/v1/sessions/{self.session}/messages?after={after}&limit=500")[1]["messages"]:
            all_lines += page
            after = page[-1]["seq"]
        return all_lines

    def heard(self, server, wanted):
        """The runs that the agent was told of: all of these, and whatever else comes."""
        told = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = server.call("POST", "/v1/mailboxes/bot:receive", {"max": 1000, "waitMs": 1000})[1]["messages"]
            if not answer and wanted <= set(told):
                break
            told += [one["payload"]["runId"] for one in answer]
            if answer:
                server.call("POST", "/v1/mailboxes/bot:ack", {"leases": [one["lease"] for one in answer]})
        return told

    def judge(self, server):
        said = {}
        for run, known in self.runs.items():
            events = self.events(server, run)
            if not events:
                continue
            if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
                self.problems.append(f"{run}: its events are not dense")
            results = [event for event in events if event["type"] == "tool_result"]
            notices = [event for event in events if event["type"] == "tool_choice"]
            if len(results) != 1 or len(notices) > 1:
                self.problems.append(f"{run}: {len(results)} results, {len(notices)} notices")
                continue
            result = results[0]
            if notices and notices[0]["seq"] > result["seq"]:
                self.problems.append(f"{run}: a notice after the result")
            due = events[1]["plan"]["steps"][0].get("feedbackAt")
            early = [event for event in notices + ([result] if result["success"] else [])
                     if due and iso_ms(event["time"]) < iso_ms(due)]
            if early:
                self.problems.append(f"{run}: early")
            was_cancelled = events[-1]["status"] == "cancelled"
            if known["cancelled"] not in (None, was_cancelled):
                self.problems.append(f"{run}: cancelled {known['cancelled']}, but {events[-1]['status']}")
            said[run] = (1 if notices else 0) + (0 if was_cancelled else 1)
        counts = {}
        for line in self.lines(server):
            run = line["payload"]["run"]["runId"]
            counts[run] = counts.get(run, 0) + 1
        for run, wanted in said.items():
            if counts.get(run, 0) != wanted:
                self.problems.append(f"{run}: said {counts.get(run, 0)} times, not {wanted}")
        told = self.heard(server, set(said))
        for run in said:
            if told.count(run) != 1:
                self.problems.append(f"{run}: its agent was told {told.count(run)} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    options.binary = os.path.realpath(options.binary)
    with tempfile.TemporaryDirectory(prefix="belfry_runs_") as scratch:
        loop = RunLoop(options, scratch)
        loop.run()
    print(json.dumps({"kills": loop.kills, "runs": len(loop.runs), "left": loop.left, "seed": options.seed,
                      "problems": loop.problems[:20]}))
    sys.exit(1 if loop.problems else 0)


if __name__ == "__main__":
    main()
