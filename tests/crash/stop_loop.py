#!/usr/bin/env python3
"""Stops the real server with SIGTERM under load, again and again on the same data, and checks a client's journal.

    stop_loop.py --binary build/release/belfry --rounds 20

While a stop lasts (the client holds a lease for a moment), sends are refused with 503 `stopping`, waiting receives return
empty, acks are taken. The process ends with 0 within its deadline and logs how many delayed messages it made pending; the
next start hands out exactly those with `forced`, in order. In some rounds the lease is never given back, so that the
deadline counts; in some a second signal comes, and the process must be gone within a second with its warning.
"""

import random
import signal
import sys
import threading
import time
from collections import Counter

from harness import MAILBOXES, Bench, Dead, Journal, Load, Wire, ack, boot_ns, iso_ms, run_loop, take

DEADLINE = 3.0
GRACE = 1.0  # the last part of it: a stop does not wait for leases any more, and ends
SLACK = 0.5  # until this process notices, on a machine that does other things, too
KINDS = (("plain", 11), ("second", 6), ("deadline", 2), ("quiet", 1))
ANNOUNCED = "强制投递所有延迟消息"
FORCED = "关闭时强制投递延迟消息"
WARNING = "强制退出，延迟消息保留在存储中"


class StopLoop:
    def __init__(self, options, scratch):
        self.rng = random.Random(options.seed)
        self.journal = Journal(self.rng, options.journal, expect_forced=True)
        self.bench = Bench(options.binary, scratch, self.journal)
        self.kinds = Counter()
        self.seen = Counter()
        self.slowest = {"stop": 0.0, "second": 0.0}
        self.forced = (0, 0)  # least and most that the next start must hand out as forced

    def problem(self, text):
        self.journal.problem("otherProblems", text)

    # D7, D12: what the stop before forced, all of it and in order.
    def take_forced(self):
        least, most = self.forced
        wire = Wire(self.bench.server.port)
        came = 0
        for to in MAILBOXES:
            forced = []
            for _ in range(1000):
                found = take(self.journal, wire, to, self.rng.choice((50, 300, 1000)), 0, 60000) or []
                forced += [(one, message) for one, message in found if one["forced"]]
                ack(self.journal, wire, to, found)
                _, health = wire.call("GET", "/healthz")
                _, counts = wire.call("GET", f"/v1/mailboxes/{to}")
                if not found and health["caughtUp"] and counts["pending"] == 0:
                    break
                if not found:
                    time.sleep(0.005)
            else:
                self.problem(f"{to} is not drained after 1000 receives: {counts}")
            with self.journal.lock:
                self.journal.check_sequence(forced)
            came += len(forced)
        wire.close()
        if not least <= came <= most:
            self.problem(f"{came} messages came as forced; the stop before said {least} to {most}")
        self.seen["forced"] += came

    def hold_lease(self):
        """Sends one message and takes it: until it is acked, a stop waits."""
        wire = Wire(self.bench.server.port)
        for _ in range(500):
            found = take(self.journal, wire, MAILBOXES[0], 1, 100, 60000)
            if found:
                return wire, found
        raise RuntimeError("there was nothing to receive")

    # G12
    def wait_for_message(self, port, outcome):
        """Waits at a mailbox of its own, where nothing comes: only the stop ends it."""
        try:
            wire = Wire(port)
            begun = time.monotonic()
            status, answer = wire.call("POST", "/v1/mailboxes/nobody:receive", {"waitMs": 20000})
            outcome.update(status=status, answer=answer, seconds=time.monotonic() - begun)
            wire.close()
        except Dead:
            outcome.update(dead=True)

    def wait_for_event(self, name, seconds=10):
        deadline = time.monotonic() + seconds
        while True:
            # In this order: a server that ends writes its last lines before.
            over = time.monotonic() > deadline or self.bench.server.process.poll() is not None
            if self.bench.server.events(name):
                return True
            if over:
                return False
            time.sleep(0.002)

    def check_log(self, server, second):
        """What was logged; sets what the next start must hand out."""
        announced = server.events("bus.forced")
        done = server.events("server.forced_delivery")
        if any(line["msg"] != ANNOUNCED for line in announced) or any(line["msg"] != FORCED for line in done):
            self.problem(f"the lines have other texts: {announced} {done}")
        counts = [line["count"] for line in done]
        if [line["count"] for line in announced] != [count for count in counts if count]:
            if not (second and len(announced) == 1 and not counts):
                self.problem(f"the two lines do not agree: {announced} {done}")
        count = (counts or [line["count"] for line in announced] or [None])[0]
        if not second:
            if len(counts) != 1:
                self.problem(f"forced delivery was logged {len(counts)} times")
            stopped = server.events("server.stopped")
            if len(stopped) != 1:
                self.problem(f"the stop was logged {len(stopped)} times")
        return count

    # D9, D13
    def check_warning(self, server, code, took, count, cancelled):
        warnings = server.events("server.forced_exit")
        if code != 130 or len(warnings) != 1:
            self.problem(f"after the second signal: exit {code}, warnings {warnings}")
            return 0
        if warnings[0]["msg"] != WARNING or warnings[0]["level"] != "warn":
            self.problem(f"the warning reads {warnings[0]}")
        if took > 1 + SLACK:
            self.problem(f"after the second signal it took {took:.2f} s")
        self.slowest["second"] = max(self.slowest["second"], took)
        if count is not None and not count - cancelled <= warnings[0]["count"] <= count:
            self.problem(f"the warning counts {warnings[0]['count']}, the forced delivery {count}")
        return warnings[0]["count"]

    # D12, G12, G14
    def round(self, number):
        kind = self.rng.choices([name for name, _ in KINDS], [weight for _, weight in KINDS])[0]
        self.kinds[kind] += 1
        server = self.bench.start("--stop-deadline", f"{int(DEADLINE)}s")
        if number == 0:
            self.bench.add_recipients()
            wire = Wire(server.port)
            wire.call("POST", "/v1/agents", {"id": "nobody"})
            wire.close()
        self.take_forced()
        # Short leases of the load end by themselves; long ones are all acked, or the stop waits for them.
        load = Load(self.journal, server.port, delay_max=20000, forget=False)
        load.needed = 200
        if not load.acknowledged.wait(30):
            self.problem(f"only {load.accepted} sends were acknowledged in 30 s")
        outcome = {}
        waiter = threading.Thread(target=self.wait_for_message, args=(server.port, outcome), daemon=True)
        waiter.start()
        holder, held = self.hold_lease() if kind != "quiet" else (None, None)
        time.sleep(self.rng.random() * 0.3)

        begun = time.monotonic()
        stop_ms = time.time_ns() // 1_000_000
        stop_boot = boot_ns()
        server.signal(signal.SIGTERM)
        if not self.wait_for_event("server.stopping"):
            self.problem(f"the signal was not noticed: {server.log()[-500:]}")
        load.after_stop = boot_ns() + 50_000_000  # the line is written a moment before it takes effect
        code = None
        if kind == "second":
            time.sleep(self.rng.choice((0, self.rng.random() * 0.02, self.rng.random() * 0.4)))
            second_at = time.monotonic()
            server.signal(signal.SIGTERM if self.rng.random() < 0.5 else signal.SIGINT)
        elif kind != "quiet":
            waiter.join(5)
            time.sleep(self.rng.random() * 0.2)
            if kind == "plain":
                if load.stopping["stopping"] == 0:
                    time.sleep(0.3)
                taken = ack(self.journal, holder, MAILBOXES[0], held)
                if taken != 1:
                    self.problem(f"an ack during the stop was not taken: {taken}")
                self.seen["acksDuringStop"] += taken
        try:
            code = server.process.wait(DEADLINE + 10)
        except Exception:  # noqa: BLE001
            self.problem(f"the server does not stop: {server.log()[-1000:]}")
            server.kill()
        server.wait()
        self.bench.server = None
        ended = time.monotonic()
        load.over.set()
        load.join()
        waiter.join(5)
        if holder:
            holder.close()

        # Cancelled while the stop went on: counted by it perhaps, and never handed out.
        cancelled = sum(1 for message in self.journal.cancelled if message.end_at >= stop_boot) + sum(
            1 for message in self.journal.live.values() if "cancelled" in message.maybe)
        count = self.check_log(server, kind == "second")
        if kind == "second":
            warned = self.check_warning(server, code, ended - second_at, count, cancelled)
            # Whether the mark was written is known if it was logged; else both may be.
            self.forced = (max(0, count - cancelled), count) if count is not None else (0, warned)
        else:
            self.forced = (max(0, (count or 0) - cancelled), count or 0)
            took = ended - begun
            self.slowest["stop"] = max(self.slowest["stop"], took)
            if code != 0:
                self.problem(f"a graceful stop ended with {code}: {server.log()[-1500:]}")
            if took > DEADLINE + SLACK:
                self.problem(f"the stop took {took:.2f} s")
            if kind == "deadline" and took < DEADLINE - GRACE:
                self.problem(f"the stop did not wait for the lease: {took:.2f} s")
            if kind == "plain" and took > DEADLINE - GRACE + SLACK:
                self.problem(f"everything was acked, and the stop still took {took:.2f} s")
            if outcome.get("status") != 200 or outcome["answer"]["messages"] or outcome["seconds"] > 15:
                self.problem(f"a waiting receive ended with {outcome}")
            self.compare_delayed(stop_ms, count or 0, cancelled)
        self.seen["refusedSends"] += load.stopping["stopping"]
        self.seen["emptyReceives"] += load.stopping["emptyReceives"]
        if kind in ("plain", "deadline") and load.stopping["stopping"] == 0:
            self.problem("no send was refused with `stopping` while the stop lasted")
        self.bench.doctor(on_copy=self.rng.random() < 0.5)

    # D9, D11
    def compare_delayed(self, stop_ms, count, cancelled):
        """The logged count against the journal: what was due clearly after the stop, and what may have been."""
        certain, possible = 0, cancelled
        for message in self.journal.live.values():
            if message.id is None:
                possible += 1  # its outcome is unknown
                continue
            due = iso_ms(message.scheduled) if message.scheduled else 0
            unsure = bool(message.maybe)
            certain += due > stop_ms + 5000 and not unsure
            possible += due > stop_ms
        if not certain <= count <= possible:
            self.problem(f"{count} delayed messages were counted at the stop; the journal has {certain} to {possible}")

    def finish(self):
        self.bench.start()
        self.take_forced()
        self.bench.close_books(60)

    def report(self):
        return {"stops": dict(self.kinds), **self.seen, "slowestStop": round(self.slowest["stop"], 2),
                "slowestSecondSignal": round(self.slowest["second"], 2)}


if __name__ == "__main__":
    sys.exit(run_loop(StopLoop, "SIGTERM the server under load; nothing may be lost.", rounds=20))
