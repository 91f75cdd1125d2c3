"""A client with a memory: it drives the real server, writes down what the server acknowledged, and compares.

A message is known by the number in its payload, so that nothing the server says about ids is taken on trust. What a 2xx
acknowledged is certain; what was on its way when the connection died is unknown, and both outcomes are allowed for it.
Everything stays on loopback, every loop ends by count or by time, and only processes started here are ended.
"""

import argparse
import collections
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime

MAILBOXES = ("ada", "bob", "cyd")
PATIENCE = 30  # seconds after which something that should answer counts as hung
ATTEMPTS_MAX = 5  # as the server has it: one that was handed out so often may be a dead letter


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def clock_offset():
    """Wall minus elapsed clock: the quickest of some readings, for we may be put to sleep in the middle of one."""
    best = None
    for _ in range(5):
        before = boot_ns()
        wall = time.time_ns()
        after = boot_ns()
        if best is None or after - before < best[0]:
            best = (after - before, wall - (before + after) // 2)
    return best[1]


def iso_ms(text):
    return round(datetime.fromisoformat(text).timestamp() * 1000)


class Dead(Exception):
    """The connection ended. `partial` is what had come of the answer's body."""

    def __init__(self, partial=b"", status=0):
        super().__init__("the connection ended")
        self.partial = partial
        self.status = status


class Wire:
    """One persistent connection with hand-made HTTP/1.1."""

    numbers = iter(range(1, 1 << 60))

    def __init__(self, port, on_bytes=None):
        self.number = next(Wire.numbers)
        self.sends = 0  # how many messages were sent on it: their order is known
        self.host = f"127.0.0.1:{port}".encode()
        self.buffer = bytearray()
        self.on_bytes = on_bytes
        try:
            self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            raise Dead() from None

    def close(self):
        self.socket.close()

    def request(self, method, path, body=b"", kind=b"application/json"):
        return b"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
            method.encode(), path.encode(), self.host, kind, len(body), body)

    def write(self, data):
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise
        except OSError:
            # An answer may have come before the end, as at a stop: reading finds it, or the end.
            pass

    def _more(self, partial=b"", status=0):
        try:
            piece = self.socket.recv(1 << 18)
        except TimeoutError:
            raise
        except OSError:
            piece = b""
        if not piece:
            raise Dead(bytes(partial), status)
        if self.on_bytes:
            self.on_bytes()
        self.buffer += piece

    def _line(self, partial=b"", status=0):
        while (end := self.buffer.find(b"\r\n")) < 0:
            self._more(partial, status)
        line = bytes(self.buffer[:end])
        del self.buffer[:end + 2]
        return line

    def answer(self):
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            self._more()
        head = bytes(self.buffer[:end]).lower()
        del self.buffer[:end + 4]
        status = int(head[9:12])
        self.last = b"\r\nconnection: close" in head
        at = head.find(b"content-length:")
        if at >= 0:
            size = int(head[at + 15:].split(b"\r\n", 1)[0])
            while len(self.buffer) < size:
                self._more(b"", status)
            body = bytes(self.buffer[:size])
            del self.buffer[:size]
            return status, body
        body = bytearray()
        while True:
            size = int(self._line(body, status), 16)
            while len(self.buffer) < size + 2:
                self._more(bytes(body) + bytes(self.buffer), status)
            body += self.buffer[:size]
            del self.buffer[:size + 2]
            if size == 0:
                return status, bytes(body)

    def call(self, method, path, body=None):
        self.write(self.request(method, path, json.dumps(body).encode() if body is not None else b""))
        status, answer = self.answer()
        return status, json.loads(answer)


class Server:
    """One life of `belfry serve`."""

    def __init__(self, binary, data, log, *flags):
        self.log_path = log
        clean = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")}
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [binary, "serve", "--listen", "127.0.0.1:0", "--data", data, "--log-format", "json", *flags],
                stdout=subprocess.PIPE, stderr=output, stdin=subprocess.DEVNULL, env=clean, cwd=os.path.dirname(log))
        self.pid = self.process.pid
        self.port = None

    def wait_ready(self):
        line = b""
        deadline = time.monotonic() + PATIENCE
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                raise RuntimeError(f"the server did not start: {self.log()[-2000:]}")
            line += piece
        self.port = int(re.search(rb"http://127\.0\.0\.1:(\d+)", line).group(1))
        return self

    def signal(self, number):
        """To our own child, which is not waited for yet: its id cannot have been given to somebody else."""
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)

    def wait(self, seconds=PATIENCE):
        code = self.process.wait(seconds)
        self.process.stdout.close()
        return code

    def call(self, method, path, body=None):
        """One request on a connection of its own; None if the server died meanwhile."""
        try:
            wire = Wire(self.port)
            try:
                return wire.call(method, path, body)
            finally:
                wire.close()
        except (Dead, OSError):
            return None

    def log(self):
        with open(self.log_path, "rb") as file:
            return file.read().decode("utf-8", "replace")

    def events(self, *names):
        found = []
        for line in self.log().splitlines():
            if any(f'"event":"{name}"' in line for name in names):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass  # cut off by the kill
        return found


class Message:
    """What is known about one message. `end` is None, acked or cancelled, certain or (`maybe`) unknown."""

    __slots__ = ("number", "to", "delay", "key", "line", "id", "scheduled", "first_boot", "first_wall", "offset",
                 "answered", "life", "wire", "place", "tries", "receipts", "end", "end_life", "end_attempt",
                 "end_at", "maybe", "certain")

    def __init__(self, number, to, delay, key, line):
        self.number, self.to, self.delay, self.key, self.line = number, to, delay, key, line
        self.id = self.scheduled = self.first_boot = self.first_wall = self.offset = self.answered = None
        self.life = self.wire = self.place = self.end = self.end_life = self.end_attempt = self.end_at = None
        self.tries = self.receipts = 0
        self.certain = False  # its send was acknowledged
        self.maybe = set()


class Journal:
    """Everything that was acknowledged, and what is wrong with what came back."""

    PROBLEMS = ("lost", "early", "outOfOrder", "again", "keyProblems", "doctorProblems", "otherProblems")

    def __init__(self, rng, path=None, expect_forced=False):
        self.rng = rng
        self.lock = threading.Lock()
        self.life = 0
        self.offset = clock_offset()
        self.messages = {}  # by number
        self.live = {}      # by number: no certain end yet
        self.recent = collections.deque(maxlen=1000)
        self.keyed = collections.deque(maxlen=4000)
        self.retry = []     # keyed, outcome unknown
        self.counts = collections.Counter()
        self.problems = collections.Counter({name: 0 for name in self.PROBLEMS})
        self.shown = 0
        self.expect_forced = expect_forced
        self.file = open(path, "w", encoding="utf-8") if path else None
        self.cancelled = []   # those of this life, in order of time
        self.retried = set()  # ids of dead letters
        self.bodies = 0

    def note(self, *what):
        if self.file:
            self.file.write(" ".join(map(str, (self.life, boot_ns(), *what))) + "\n")

    def problem(self, kind, text):
        self.problems[kind] += 1
        self.note("PROBLEM", kind, text)
        if self.shown < 40:
            self.shown += 1
            print(f"life {self.life}: {kind}: {text}", file=sys.stderr, flush=True)

    # --- sending ---

    def new(self, delay=None, key=False, pad=0, delay_max=3000):
        rng = self.rng
        if delay is None:
            delay = 0 if rng.random() < 0.4 else rng.randrange(1, delay_max + 1)
        with self.lock:
            self.bodies += 1
            number = self.bodies
        to = rng.choice(MAILBOXES)
        name = f"key-{number}" if key else None
        line = json.dumps({"to": to, "from": "client", "payload": {"n": number, "pad": "x" * pad},
                           **({"delayMs": delay} if delay else {}), **({"key": name} if key else {})}).encode()
        message = Message(number, to, delay, name, line)
        self.messages[number] = message
        return message

    def sending(self, message, wire):
        if message.tries == 0:
            message.first_wall = time.time_ns()
            message.first_boot = boot_ns()
            message.offset = self.offset
            message.life = self.life
        message.tries += 1
        message.wire, message.place = wire.number, wire.sends
        wire.sends += 1

    # D10, D17: the answer to a send; a repeat gets the first answer again.
    def sent(self, message, answer):
        with self.lock:
            # It may have been received before its sender heard of it: then its id is known already.
            same = message.id in (None, answer["messageId"]) and (
                message.id is None or message.id in self.retried or answer.get("scheduledDeliveryTime") == message.scheduled)
            if not same:
                self.problem("keyProblems", f"{message.number} (key {message.key}) is {message.id} {message.scheduled}, "
                             f"and was answered with {answer}")
            if message.certain:
                self.counts["repeated"] += 1
                return
            message.certain = True
            message.id = answer["messageId"]
            message.scheduled = answer.get("scheduledDeliveryTime")
            message.answered = boot_ns()
            self.counts["acknowledged"] += 1
            self.note("sent", message.number, message.id, message.scheduled)
            if (message.scheduled is not None) != (message.delay > 0):
                self.problem("otherProblems", f"delayMs {message.delay} was answered with {answer}")
            if message.end is None:
                self.live[message.number] = message
            self.recent.append(message)
            if message.key:
                self.keyed.append(message)

    def send_unknown(self, message):
        with self.lock:
            if message.certain:
                return
            self.counts["unknown"] += 1
            self.note("unknown", message.number)
            if message.end is None:
                self.live[message.number] = message
            if message.key:
                self.retry.append(message)

    # --- receiving ---

    # D1, D7, G4, G7, G8, G10
    def received(self, deliveries, asked_at, wall, boot):
        with self.lock:
            found = []
            for one in deliveries:
                message = self.messages.get(one["payload"]["n"])
                if message is None or message.tries == 0:
                    self.problem("otherProblems", f"received what was never sent: {one}")
                    continue
                found.append((one, message))
                self._check_receipt(one, message, asked_at, wall, boot)
            self._check_order(found)
            return found

    def _check_receipt(self, one, message, asked_at, wall, boot):
        self.counts["received"] += 1
        message.receipts += 1
        self.note("received", message.number, one["messageId"], one["attempt"])
        if message.id is None:
            message.id = one["messageId"]  # its outcome is unknown, or not known yet: it was stored
            message.scheduled = one["deliverAt"] if message.delay else None
            self.live[message.number] = message
        elif message.id != one["messageId"]:
            self.problem("keyProblems", f"message {message.number} came as {message.id} and as {one['messageId']}")
        if message.end is not None:
            later = self.life > message.end_life or asked_at > message.end_at
            if later or (message.end_attempt is not None and one["attempt"] > message.end_attempt):
                self.problem("again", f"{message.id} was {message.end} in life {message.end_life} and came again: {one}")
        if one["to"] != message.to:
            self.problem("otherProblems", f"{message.id} went to {one['to']} instead of {message.to}")

        due = iso_ms(one["deliverAt"])
        if message.id in self.retried:
            return
        if message.scheduled is not None and one["deliverAt"] != message.scheduled:
            self.problem("otherProblems", f"{message.id} was promised for {message.scheduled}: {one}")
        if one["forced"]:
            if not self.expect_forced:
                self.problem("early", f"{message.id} was forced, and nothing was stopped: {one}")
            return
        if not message.delay:
            return
        # While its process lives, a delay is elapsed time; what was done to the wall clock meanwhile is left out there.
        drift = abs(clock_offset() - message.offset)
        same_life = message.life == self.life and message.tries == 1
        if same_life and boot < message.first_boot + message.delay * 1_000_000:
            missing = message.first_boot + message.delay * 1_000_000 - boot
            self.problem("early", f"{message.id} came {missing} ns before its delay had passed: {one}")
        if wall + (drift if same_life else 0) < due * 1_000_000:
            self.problem("early", f"{message.id} came {due * 1_000_000 - wall} ns before its time: {one}")
        if message.tries == 1 and due * 1_000_000 < message.first_wall + message.delay * 1_000_000 - drift:
            self.problem("early", f"{message.id} was planned too early, for {one['deliverAt']}")
        if iso_ms(one["deliveredAt"]) + drift // 1_000_000 + (1 if same_life else 0) < due:
            self.problem("early", f"{message.id} was delivered before its time: {one}")

    def _check_order(self, found):
        """One answer: by deliverAt, then by the order of sending, as far as we know it. What was forced stands together."""
        parts = [[]]
        for one, message in found:
            if parts[-1] and parts[-1][-1][0]["forced"] != one["forced"]:
                parts.append([])
            parts[-1].append((one, message))
        if sum(part[0][0]["forced"] for part in parts if part) > 1:
            self.problem("outOfOrder", f"forced ones are scattered: {[(o['messageId'], o['forced']) for o, _ in found]}")
        for part in parts:
            self.check_sequence(part)

    def check_sequence(self, part):
        due = ""
        latest_start = 0
        places = {}
        for one, message in part:
            if one["deliverAt"] < due:
                self.problem("outOfOrder", f"{one['messageId']} due {one['deliverAt']} came after one due {due}")
            if one["deliverAt"] != due:
                due, latest_start, places = one["deliverAt"], 0, {}
            # Answered before another one was sent: sent before it.
            if message.answered is not None and message.answered < latest_start:
                self.problem("outOfOrder", f"{one['messageId']} was sent earlier, has the same time and came later")
            latest_start = max(latest_start, message.first_boot)
            if message.tries == 1:
                if places.get(message.wire, -1) > message.place:
                    self.problem("outOfOrder", f"{one['messageId']} was sent earlier on its connection and came later")
                places[message.wire] = message.place

    # --- ends ---

    def ended(self, message, how, attempt=None):
        with self.lock:
            if message.end is not None:
                self.problem("again", f"{message.id} was {message.end} and then {how}")
            message.end, message.end_life, message.end_attempt, message.end_at = how, self.life, attempt, boot_ns()
            self.counts[how] += 1
            if how == "cancelled":
                self.cancelled.append(message)
            self.note(how, message.number)
            self.live.pop(message.number, None)

    def end_unknown(self, message, how):
        with self.lock:
            if message.end is None:
                message.maybe.add(how)
                self.note("maybe", how, message.number)

    # --- the end ---

    # G1, G2: after the drain every message must have its end, and the server must agree with us about it.
    def settle(self, wire):
        states = collections.Counter()
        for message in list(self.live.values()):
            if message.id is None:
                # Never received, outcome unknown: it was not stored. With a key we can ask, and the answer stays the same.
                continue
            status, answer = wire.call("GET", f"/v1/messages/{message.id}")
            state = answer.get("state", answer.get("error"))
            states[state] += 1
            if status != 200 or state not in ("acked", "cancelled") or state not in message.maybe:
                self.problem("lost", f"message {message.number} ({message.id}, {message.receipts} receipts, sent in life "
                             f"{message.life}, maybe {sorted(message.maybe)}) is {state}")
            elif state == "acked" and not message.receipts:
                self.problem("lost", f"{message.id} is acked and was never received")
        for message in self.messages.values():
            if message.end == "acked" and not message.receipts:
                self.problem("lost", f"{message.id} was acked and never received")
        return states

    def conservation(self, findings):
        """The server's own counts, between what we know for certain and what may have happened."""
        accepted = sum(row["accepted"] for row in findings["recipients"])
        ended = {how: sum(row[how] for row in findings["recipients"]) for how in ("acked", "cancelled")}
        known = sum(1 for message in self.messages.values() if message.id is not None)
        self.counts["foundStored"] = sum(1 for message in self.messages.values() if message.id and not message.certain)
        unknown = sum(1 for message in self.live.values() if message.id is None)
        if not known <= accepted <= known + unknown:
            self.problem("lost", f"{accepted} were accepted; {known} are known, {unknown} unknown")
        for how, count in ended.items():
            certain = self.counts[how]
            maybe = sum(1 for message in self.live.values() if how in message.maybe)
            if not certain <= count <= certain + maybe:
                self.problem("lost", f"{count} are {how}; {certain} are known to be, {maybe} may be")

    def outcome(self):
        return sum(self.problems.values())

    def summary(self, rounds, started, **more):
        names = ("acknowledged", "unknown", "received", "acked", "cancelled")
        return json.dumps({"rounds": rounds, **{name: self.counts[name] for name in names},
                           **{name: self.problems[name] for name in self.PROBLEMS}, **more,
                           "seconds": round(time.monotonic() - started, 1)})


class Load:
    """The clients of one life: pipelining senders, batches, one with keys, one that cancels, two that receive."""

    SENDS_MAX = 5000  # a life; the kill comes long before

    def __init__(self, journal, port, large_batches=False, pad=40, delay_max=3000, forget=True):
        self.journal = journal
        self.port = port
        self.over = threading.Event()     # nothing new is begun
        self.acknowledged = threading.Event()
        self.needed = 500
        self.accepted = 0
        self.begun = 0
        self.on_answer = None             # called with the first bytes of a batch's answer
        self.stopping = collections.Counter()  # what a stop answered
        self.after_stop = None            # a time: sends that begin later must not be accepted
        self.large = large_batches
        self.pad = pad
        self.delay_max = delay_max
        self.forget = forget              # some leases are left to end by themselves
        self.trickled = 0
        self.failures = []
        work = [self.pipeline, self.pipeline, self.keys, self.cancels, *([self.batches] * (4 if large_batches else 1)),
                self.receive, self.receive]
        self.threads = [threading.Thread(target=self._guarded, args=(one,), daemon=True) for one in work]
        for thread in self.threads:
            thread.start()

    def _guarded(self, work):
        try:
            work()
        except Dead:
            pass
        except Exception as failure:  # noqa: BLE001: reported by the main thread
            self.failures.append(f"{work.__name__}: {failure!r}")

    def join(self):
        deadline = time.monotonic() + PATIENCE + 5
        for thread in self.threads:
            thread.join(max(0, deadline - time.monotonic()))
        for failure in self.failures:
            self.journal.problem("otherProblems", f"the client failed: {failure}")
        if any(thread.is_alive() for thread in self.threads):
            raise RuntimeError("a client hangs")

    def _next(self, count):
        """How many to send next: `count`, one now and then if it was much already or the server stops, 0 at the end."""
        if self.stopping["stopping"] or self.begun > self.SENDS_MAX:
            self.over.wait(0.01)
            self.trickled += 1
            count = 1 if self.trickled < 5000 else 0
        self.begun += count
        return 0 if self.over.is_set() else count

    def _count(self, count):
        self.accepted += count
        if self.accepted >= self.needed:
            self.acknowledged.set()

    # G12: a send is accepted, or refused with 503 `stopping` and not stored.
    def _answered(self, message, status, body, begun):
        if status == 201:
            self.journal.sent(message, json.loads(body))
            self._count(1)
            if self.after_stop is not None and begun > self.after_stop:
                self.journal.problem("otherProblems", f"{message.number} was accepted after the stop had begun")
            return True
        self._refused(message, status, json.loads(body))
        return False

    def _refused(self, message, status, answer):
        error = answer.get("error")
        self.stopping[error] += 1
        if error not in ("stopping", "overloaded", "disk_full"):
            self.journal.problem("otherProblems", f"send {message.number} was refused: {status} {answer}")
        if error == "stopping" and status != 503:
            self.journal.problem("otherProblems", f"stopping with status {status}")
        with self.journal.lock:
            self.journal.note("refused", message.number, error)
            if not message.certain and message.tries == 1:
                message.tries = 0  # rejected: without effect, so it must never come
                self.journal.live.pop(message.number, None)
            elif not message.certain and message.key:
                self.journal.retry.append(message)  # an earlier try may have been stored

    def pipeline(self):
        wire = Wire(self.port)
        rng = random.Random(self.journal.rng.random())
        while count := self._next(rng.randrange(1, 40)):
            messages = [self.journal.new(pad=rng.randrange(self.pad), delay_max=self.delay_max) for _ in range(count)]
            self.send_pipelined(wire, messages)
        wire.close()

    def send_pipelined(self, wire, messages):
        for message in messages:
            self.journal.sending(message, wire)
        begun = boot_ns()
        wire.write(b"".join(wire.request("POST", "/v1/messages", message.line) for message in messages))
        done = 0
        try:
            for message in messages:
                status, body = wire.answer()
                done += 1
                self._answered(message, status, body, begun)
        finally:
            for message in messages[done:]:
                self.journal.send_unknown(message)

    def batches(self):
        wire = Wire(self.port, lambda: self.on_answer and self.on_answer())
        rng = random.Random(self.journal.rng.random())
        while count := self._next(250 if self.large else rng.randrange(20, 120)):
            pad = 4000 if self.large else rng.randrange(self.pad)
            with self.journal.lock:
                again, self.journal.retry[:] = self.journal.retry[:200], self.journal.retry[200:]
            fresh = [self.journal.new(key=rng.random() < 0.2, pad=pad, delay_max=self.delay_max) for _ in range(count)]
            self.send_batch(wire, again + fresh)
        wire.close()

    def send_batch(self, wire, messages):
        for message in messages:
            self.journal.sending(message, wire)
        begun = boot_ns()
        wire.write(wire.request("POST", "/v1/messages:batch", b"\n".join(m.line for m in messages),
                                b"application/x-ndjson"))
        dead = None
        try:
            status, body = wire.answer()
        except Dead as end:
            dead, status, body = end, end.status, end.partial
        lines = body.split(b"\n")[:-1] if status == 200 else []
        if dead is None and status != 200:
            for message in messages:
                self._refused(message, status, json.loads(body))
            return
        for message, line in zip(messages, lines):
            try:
                answer = json.loads(line)
            except ValueError:
                lines = lines[:messages.index(message)]
                break
            if "messageId" in answer:
                self._answered(message, 201, line, begun)
            else:
                self._refused(message, 503, answer)
        for message in messages[len(lines):]:
            self.journal.send_unknown(message)
        if dead:
            raise dead
        if len(lines) != len(messages):
            self.journal.problem("otherProblems", f"a batch of {len(messages)} had {len(lines)} answers")

    # D17, G3
    def keys(self):
        wire = Wire(self.port)
        journal = self.journal
        rng = random.Random(journal.rng.random())
        while self._next(1):
            what = rng.random()
            if what < 0.5 or not journal.keyed:
                self.send_pipelined(wire, [journal.new(key=True, delay_max=self.delay_max)])
            elif what < 0.9:
                self.send_pipelined(wire, [rng.choice(journal.keyed)])
            else:
                message = rng.choice(journal.keyed)
                other = message.line.replace(b'"pad": "', b'"pad": "other')
                wire.write(wire.request("POST", "/v1/messages", other))
                status, body = wire.answer()
                error = json.loads(body).get("error")
                if (status, error) not in ((409, "key_conflict"), (503, "stopping")):
                    journal.problem("keyProblems", f"another body under {message.key}: {status} {body}")
        wire.close()

    # D16, G10
    def cancels(self):
        """Takes back what was just sent: some is still delayed, some pending, some on its way to a receiver."""
        wire = Wire(self.port)
        rng = random.Random(self.journal.rng.random())
        for _ in range(5000):
            if self.over.is_set():
                break
            with self.journal.lock:
                recent = self.journal.recent
                message = recent[-rng.randrange(1, min(len(recent), 200) + 1)] if recent else None
            if message and message.end is None:
                self.cancel(wire, message)
            self.over.wait(rng.random() * 0.004)
        wire.close()

    def cancel(self, wire, message):
        wire.write(wire.request("DELETE", f"/v1/messages/{message.id}"))
        try:
            status, body = wire.answer()
        except Dead:
            self.journal.end_unknown(message, "cancelled")
            raise
        if status == 200:
            self.journal.ended(message, "cancelled")
            return
        error = json.loads(body).get("error")
        if status == 409 and error == "already_cancelled":
            if message.end is None and "cancelled" in message.maybe:
                self.journal.ended(message, "cancelled")
            elif message.end != "cancelled":
                self.journal.problem("again", f"{message.id} is cancelled, and nobody did that")
        elif error == "not_found":
            self.journal.problem("lost", f"{message.id} is not there to be cancelled; {message.end}")
        elif status != 409:
            self.journal.problem("otherProblems", f"cancel {message.id}: {status} {body}")

    # D18, G8
    def receive(self):
        wire = Wire(self.port)
        rng = random.Random(self.journal.rng.random())
        held = []
        for _ in range(100_000):
            if self.over.is_set():
                break
            short = rng.random() < 0.1
            to = rng.choice(MAILBOXES)
            found = take(self.journal, wire, to, rng.choice((1, 10, 100, 400)), rng.randrange(0, 30),
                         100 if short else 30000)
            if found is None:
                self.stopping["emptyReceives"] += 1
                self.over.wait(0.01)
                found = []
            if short and rng.random() < 0.5:
                held.append((to, found))  # acked later, when the lease has ended perhaps
                continue
            if self.forget and rng.random() < 0.05:
                continue  # forgotten: it comes again after a kill
            ack(self.journal, wire, to, found, by_id=rng.random() < 0.3)
            if held and rng.random() < 0.3:
                to, found = held.pop()
                ack(self.journal, wire, to, found)
        for to, found in held:
            ack(self.journal, wire, to, found)
        wire.close()


class Sender(Load):
    """Only the sending of a load, by hand."""

    def __init__(self, journal):
        self.journal = journal
        self.stopping = collections.Counter()
        self.accepted = 0
        self.after_stop = None

    def _count(self, count):
        self.accepted += count


def take(journal, wire, to, most, wait, lease):
    """Receives; None when the server is stopping, which hands out nothing more."""
    asked_at = boot_ns()
    wire.write(wire.request("POST", f"/v1/mailboxes/{to}:receive",
                            b'{"max":%d,"waitMs":%d,"leaseMs":%d}' % (most, wait, lease)))
    status, body = wire.answer()
    wall, boot = time.time_ns(), boot_ns()
    answer = json.loads(body)
    if status != 200:
        journal.problem("otherProblems", f"receive: {status} {answer}")
        return []
    for one in answer["messages"]:
        one["payload"].pop("pad")  # only the number says anything
    found = journal.received(answer["messages"], asked_at, wall, boot)
    return None if answer.get("stopping") and not found else found


def ack(journal, wire, to, found, by_id=False):
    if not found:
        return 0
    names = [one["messageId"] if by_id else one["lease"] for one, _ in found]
    wire.write(wire.request("POST", f"/v1/mailboxes/{to}:ack",
                            json.dumps({"messageIds" if by_id else "leases": names}).encode()))
    try:
        status, body = wire.answer()
    except Dead:
        for _, message in found:
            journal.end_unknown(message, "acked")
        raise
    answer = json.loads(body)
    if status != 200:
        journal.problem("otherProblems", f"ack: {status} {answer}")
        return 0
    refused = {one["messageId"]: one["error"] for one in answer.get("refused", ())}
    if answer["acked"] + len(refused) != len(found) or set(refused.values()) - {"lease_lost"}:
        journal.problem("otherProblems", f"ack of {len(found)}: {answer}")
    for one, message in found:
        if one["messageId"] not in refused:
            # By id, the lease may be another one than ours: which attempt was acked is not known.
            journal.ended(message, "acked", None if by_id else one["attempt"])
    return answer["acked"]


class Bench:
    """A data directory, the lives that use it, and what the doctor says in between."""

    def __init__(self, binary, scratch, journal):
        self.binary = os.path.abspath(binary)
        self.scratch = scratch
        self.data = os.path.join(scratch, "data")
        self.journal = journal
        self.database = os.path.join(self.data, "belfry.db")
        self.server = None

    def start(self, *flags, ready=True):
        self.journal.life += 1
        self.journal.cancelled = []
        self.journal.offset = clock_offset()
        self.server = Server(self.binary, self.data, os.path.join(self.scratch, "server.log"), *flags)
        if ready:
            self.server.wait_ready()
        return self.server

    def add_recipients(self):
        wire = Wire(self.server.port)
        for name in MAILBOXES:
            status, answer = wire.call("POST", "/v1/agents", {"id": name})
            if status != 201 and answer.get("error") != "already_exists":
                self.journal.problem("otherProblems", f"agent {name}: {status} {answer}")
        wire.close()

    def end(self, number=signal.SIGKILL):
        """Ends the server if it still runs; says so if it has ended by itself."""
        server = self.server
        self.server = None
        if server is None:
            return None
        if server.process.poll() is not None:
            self.journal.problem("otherProblems", f"the server ended by itself with {server.process.returncode}: "
                                 f"{server.log()[-1500:]}")
        else:
            server.signal(number)
        return server.wait()

    # G14
    def doctor(self, on_copy):
        """Asks about the data itself, which it must not change, or about a copy."""
        if not os.path.exists(self.database):
            return None  # killed before there was anything
        data = self.data
        if on_copy:
            data = os.path.join(self.scratch, "copy")
            shutil.rmtree(data, ignore_errors=True)
            shutil.copytree(self.data, data, ignore=shutil.ignore_patterns("reserve"))
        done = subprocess.run([self.binary, "doctor", "--json", "--data", data], capture_output=True, text=True,
                              timeout=300, stdin=subprocess.DEVNULL)
        try:
            findings = json.loads(done.stdout)
        except ValueError:
            findings = {"clean": False}
        if findings.get("error") == "not_found" and not self.journal.messages:
            return None  # killed before there were tables
        if done.returncode != 0 or not findings.get("clean"):
            self.journal.problem("doctorProblems", f"doctor: {done.returncode} {done.stdout[-1500:]} {done.stderr[-500:]}")
            return None
        return findings

    # D8, D18: everything is received in the end; dead letters are tried again.
    def drain(self, seconds):
        wire = Wire(self.server.port)
        journal = self.journal
        deadline = time.monotonic() + seconds
        while True:
            left = 0
            for to in MAILBOXES:
                found = take(journal, wire, to, 1000, 20, 60000) or []
                ack(journal, wire, to, found)
                status, counts = wire.call("GET", f"/v1/mailboxes/{to}")
                left += counts["pending"] + counts["delayed"] + counts["inFlight"]
                status, page = wire.call("GET", f"/v1/messages?to={to}&state=dead&limit=1000")
                for dead in page["messages"]:
                    journal.counts["deadLetters"] += 1
                    if dead["attempts"] < ATTEMPTS_MAX:
                        journal.problem("otherProblems", f"dead after {dead['attempts']} attempts: {dead}")
                    wire.call("POST", f"/v1/messages/{dead['messageId']}:retry")
                    journal.retried.add(dead["messageId"])  # it has a new time from here on
                    left += 1
            if left == 0 or time.monotonic() > deadline:
                break
        if left:
            journal.problem("lost", f"{left} messages could not be drained within {seconds} s")
        return wire

    def close_books(self, seconds):
        """The end of a run: everything is received, the last stop is clean, and what was accepted adds up."""
        wire = self.drain(seconds)
        self.journal.settle(wire)
        wire.close()
        if (code := self.end(signal.SIGTERM)) != 0:
            self.journal.problem("otherProblems", f"the last, graceful stop ended with {code}")
        findings = self.doctor(on_copy=False)
        if findings:
            self.journal.conservation(findings)


def run_loop(loop_class, description, rounds):
    """The command line of a loop: so many rounds on the same data, then its verdict as one JSON object and exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the data directory, and print where it is")
    parser.add_argument("--journal", default=None, help="also write what happened to this file")
    parser.add_argument("--expect-loss", action="store_true", help="the control: succeed only if messages were lost")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {options.seed}", file=sys.stderr)

    scratch = tempfile.mkdtemp(prefix="belfry-crash-")
    loop = loop_class(options, scratch)
    journal, bench = loop.journal, loop.bench
    started = time.monotonic()
    done = 0
    try:
        for number in range(options.rounds):
            loop.round(number)
            done = number + 1
            if done % 10 == 0 and done < options.rounds:
                print(journal.summary(done, started), flush=True)
        loop.finish()
    except Dead:
        journal.problem("otherProblems", f"the server went away: {bench.server and bench.server.log()[-1500:]}")
    finally:
        if bench.server:
            bench.server.kill()
            bench.server.wait()
        if options.keep or (journal.outcome() and not options.expect_loss):
            print(f"the data is in {scratch}", file=sys.stderr)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    print(journal.summary(done, started, **loop.report()), flush=True)
    if options.expect_loss:
        lost = journal.problems["lost"]
        print(f"control: {lost} losses were noticed" if lost else "control: NO loss was noticed", file=sys.stderr)
        return 0 if lost else 1
    return 1 if journal.outcome() else 0
