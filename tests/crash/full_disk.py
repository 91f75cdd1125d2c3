#!/usr/bin/env python3
"""A full disk: sends are refused, everything else goes on, and when there is space again, so do sends.

    full_disk.py --binary build/release/belfry

The data lies on a small tmpfs. Mounting one needs root; without it the test is skipped (exit 77).
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from harness import MAILBOXES, Bench, Dead, Journal, Sender, Wire, ack, take

SIZE = "24m"
FILLER = 9 << 20  # more than the reserve: it is set aside again before sends are taken
SKIPPED = 77


class FullDisk:
    def __init__(self, binary, scratch):
        self.journal = Journal(random.Random(1), expect_forced=True)
        self.bench = Bench(binary, scratch, self.journal)
        self.recovered = self.released = 0
        self.sender = Sender(self.journal)
        self.filler = os.path.join(self.bench.data, "filler")

    def problem(self, text):
        self.journal.problem("otherProblems", text)

    def fill(self, sender, wire):
        """Sends until the disk is full, also for small messages; every refusal must say so with 507."""
        for pad in (20000, 2000, 10):
            if not self.fill_with(sender, wire, pad):
                return False
        return True

    def fill_with(self, sender, wire, pad):
        for _ in range(4000):
            message = self.journal.new(delay=0, pad=pad)
            self.journal.sending(message, wire)
            wire.write(wire.request("POST", "/v1/messages", message.line))
            status, body = wire.answer()
            sender._answered(message, status, body, 0)
            if status == 507:
                return True
            if status != 201:
                self.problem(f"instead of disk_full: {status} {body}")
                return False
        self.problem("the disk does not fill")
        return False

    # G17
    def run(self):
        with open(self.filler, "wb") as file:
            file.write(b"\0" * FILLER)
        server = self.bench.start("--stop-deadline", "3s", "--log-level", "warn")
        self.bench.add_recipients()
        wire = Wire(server.port)
        sender = self.sender
        # Some wait, so that deliveries have to go on as well.
        for _ in range(20):
            sender.send_pipelined(wire, [self.journal.new(delay=500, pad=100)])
        if not self.fill(sender, wire):
            return
        self.go_on(wire)
        # What was acked left room inside the database: fill that, too.
        if not self.fill(sender, wire):
            return
        self.go_on(wire)
        os.unlink(self.filler)
        self.recover(sender, wire)
        self.drain(wire)
        wire.close()
        # A kill while it is full is like any other.
        wire = Wire(server.port)
        self.fill(sender, wire)
        wire.close()
        self.released = len(server.events("store.reserve_released"))
        server.kill()
        self.bench.server = None
        server.wait()
        self.bench.doctor(on_copy=False)
        self.bench.start("--stop-deadline", "3s", "--log-level", "warn")
        self.bench.close_books(60)

    def go_on(self, wire):
        """Receives, acks, cancels and reads, with the disk full."""
        time.sleep(0.6)
        received = acked = 0
        for to in MAILBOXES:
            found = take(self.journal, wire, to, 15, 100, 60000)
            received += len(found)
            acked += ack(self.journal, wire, to, found)
        if received == 0 or acked != received:
            self.problem(f"with a full disk {received} were received and {acked} acked")
        status, health = wire.call("GET", "/healthz")
        if status != 200:
            self.problem(f"healthz: {status} {health}")
        with self.journal.lock:
            some = next(iter(self.journal.live.values()))
        status, answer = wire.call("GET", f"/v1/messages/{some.id}")
        if status != 200:
            self.problem(f"get: {status} {answer}")
        status, answer = wire.call("DELETE", f"/v1/messages/{some.id}")
        if status != 200:
            self.problem(f"cancel: {status} {answer}")
        else:
            self.journal.ended(some, "cancelled")

    def refused_still(self, sender, wire):
        message = self.journal.new(delay=0, pad=20000)
        self.journal.sending(message, wire)
        wire.write(wire.request("POST", "/v1/messages", message.line))
        status, body = wire.answer()
        sender._answered(message, status, body, 0)
        return status == 507

    def drain(self, wire):
        for to in MAILBOXES:
            for _ in range(1000):
                if not ack(self.journal, wire, to, take(self.journal, wire, to, 100, 0, 60000)):
                    break

    def recover(self, sender, wire):
        """Sends are taken again by themselves, soon after there is space."""
        deadline = time.monotonic() + 10
        while self.refused_still(sender, wire):
            if time.monotonic() > deadline:
                self.problem("there is space, and sends are still refused after 10 s")
                return
            time.sleep(0.05)
        self.recovered += 1


def main():
    parser = argparse.ArgumentParser(description="Fill the disk under the server.")
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="belfry-full-")
    data = os.path.join(scratch, "data")
    os.mkdir(data, 0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "belfry-full", data],
                             capture_output=True, text=True)
    if mounted.returncode != 0:
        shutil.rmtree(scratch)
        print(f"skipped: a small tmpfs cannot be mounted here ({mounted.stderr.strip()})")
        return SKIPPED
    test = FullDisk(options.binary, scratch)
    started = time.monotonic()
    try:
        test.run()
    except Dead:
        test.problem(f"the server went away: {test.bench.server and test.bench.server.log()[-1500:]}")
    finally:
        if test.bench.server:
            test.bench.server.kill()
            test.bench.server.wait()
        subprocess.run(["umount", data], check=True)
        shutil.rmtree(scratch, ignore_errors=True)
    print(test.journal.summary(1, started, refused=test.sender.stopping["disk_full"], recovered=test.recovered,
                               reserveReleased=test.released), flush=True)
    return 1 if test.journal.outcome() else 0


if __name__ == "__main__":
    sys.exit(main())
