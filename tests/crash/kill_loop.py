#!/usr/bin/env python3
"""Kills the real server with SIGKILL, again and again on the same data, and checks a client's journal.

    kill_loop.py --binary build/release/belfry --rounds 40

Each round: start, at least six connections and 500 acknowledged sends (immediate, delayed, keyed, batches), cancels,
leases and acks, a kill at a random moment, `belfry doctor`. Kinds of rounds: `random` kills any time after the 500 sends;
`startup` first kills several starts within their first 50 ms; `checkpoint` kills while the log is moved into the
database; `answer` kills at the first byte of an answer, when the acknowledged data is as young as it can be.
Prints one JSON object every ten rounds and at the end; exits with 1 if anything was lost, early, out of order or unclean.
With --expect-loss the verdict is turned round: the control, for a server that acknowledges too early.
"""

import os
import random
import sys
import time
from collections import Counter

from harness import MAILBOXES, Bench, Journal, Load, Sender, Wire, ack, run_loop, take

KINDS = (("random", 8), ("startup", 3), ("checkpoint", 4), ("answer", 5))
# The database is written by checkpoints only: written this short before the kill, the kill fell into one.
CHECKPOINT_NS = 8_000_000
# The receivers are slower than the senders. Some backlog is welcome; more would only make the last drain long.
BACKLOG_MAX = 20_000


class KillLoop:
    def __init__(self, options, scratch):
        self.rng = random.Random(options.seed)
        self.journal = Journal(self.rng, options.journal)
        self.bench = Bench(options.binary, scratch, self.journal)
        self.kills = Counter()

    def kill_starts(self, most):
        for _ in range(self.rng.randrange(1, most + 1)):
            server = self.bench.start("--log-level", "warn", ready=False)
            time.sleep(self.rng.random() * 0.05)
            server.kill()
            self.bench.server = None
            server.wait()
            self.kills["startup"] += 1
            self.bench.doctor(on_copy=self.rng.random() < 0.7)

    def wait_for_checkpoint(self):
        """Until the database file changes, which only a checkpoint does."""
        def written():
            status = os.stat(self.bench.database)
            return status.st_mtime_ns, status.st_size
        before = written()
        deadline = time.monotonic() + 2
        while written() == before and time.monotonic() < deadline:
            time.sleep(0.0003)
        time.sleep(self.rng.random() * 0.008)

    def kill(self, kind, server, load):
        if kind == "answer":
            load.on_answer = server.kill
            deadline = time.monotonic() + 2
            while server.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.001)
        elif kind == "checkpoint":
            self.wait_for_checkpoint()
        else:
            time.sleep(self.rng.random() * 0.5)
        if kind != "answer" and server.process.poll() is not None:
            self.journal.problem("otherProblems", f"the server ended by itself with {server.process.returncode}: "
                                 f"{server.log()[-1500:]}")
        killed_at = time.time_ns()
        server.kill()
        self.bench.server = None
        code = server.wait()
        if code != -9:
            self.journal.problem("otherProblems", f"the server ended with {code}: {server.log()[-1500:]}")
        if killed_at - os.stat(self.bench.database).st_mtime_ns < CHECKPOINT_NS:
            self.kills["inCheckpoint"] += 1
        self.kills[kind] += 1

    def catch_up(self, wire):
        for to in MAILBOXES:
            for _ in range(5):
                ack(self.journal, wire, to, take(self.journal, wire, to, 1000, 0, 60000))
        wire.close()

    # D1, D7, D17, D18, G1, G14
    def round(self, number):
        kind = self.rng.choices([name for name, _ in KINDS], [weight for _, weight in KINDS])[0]
        if number == 0:
            self.kill_starts(6)  # also of a start that creates the data
        elif kind == "startup":
            self.kill_starts(3)
        server = self.bench.start("--log-level", "warn")
        if number == 0:
            self.bench.add_recipients()
        if len(self.journal.live) > BACKLOG_MAX:
            self.catch_up(Wire(server.port))
        load = Load(self.journal, server.port, large_batches=kind in ("checkpoint", "answer"))
        enough = load.acknowledged.wait(30)
        if not enough:
            self.journal.problem("otherProblems", f"only {load.accepted} sends were acknowledged in 30 s")
        self.kill("random" if kind == "startup" else kind, server, load)
        load.over.set()
        load.join()
        self.bench.doctor(on_copy=self.rng.random() < 0.7)

    def finish(self):
        self.bench.start("--log-level", "warn")
        wire = Wire(self.bench.server.port)
        # What was sent with a key and has an unknown outcome: now it can be known.
        sender = Sender(self.journal)
        while self.journal.retry:
            again, self.journal.retry[:] = self.journal.retry[:500], self.journal.retry[500:]
            sender.send_batch(wire, again)
        wire.close()
        self.bench.close_books(120)

    def report(self):
        counts = self.journal.counts
        return {"kills": dict(self.kills), "repeated": counts["repeated"], "foundStored": counts["foundStored"],
                "deadLetters": counts["deadLetters"]}


if __name__ == "__main__":
    sys.exit(run_loop(KillLoop, "SIGKILL the server again and again; nothing acknowledged may be lost.", rounds=40))
