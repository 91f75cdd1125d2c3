#!/usr/bin/env python3
"""Whoever has proved nothing: a table of ways to open, begin and not finish, walked with many sockets at once.

    strangers.py --binary build/release/belfry [--sockets 1000] [--seed 1] [WAY…]

For each way a server with a token gets more sockets of it than it has places. Meanwhile somebody who has the token
must get in, send and receive; and all that the sockets hold together stays under 32 MiB, beside 10 KiB for each. At the end all
ways come together in an order drawn from the seed, twice, the second time while the first is still there.
"""

import argparse
import json
import os
import random
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TOKEN = "t" * 32
BUDGET = 32 << 20  # what strangers may hold together
BARE = 10 << 10  # and each connection beside that
SETTLE = 0.5  # seconds in which what was sent is read
PATIENCE = 20  # seconds until somebody who has the token gives up

HEAD = b"Host: 127.0.0.1:%d\r\n"
INBOX = b"POST /v1/people/user/inbox HTTP/1.1\r\n" + HEAD
UPGRADE = (b"GET /v1/ws HTTP/1.1\r\n" + HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
           b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
CHUNKED = INBOX + b"Transfer-Encoding: chunked\r\n\r\n"


def frame_head(length, first=0x81):
    """Of a masked frame; the mask is zero, so that the text stands as it is."""
    if length < 126:
        return bytes([first, 0x80 | length]) + bytes(4)
    if length < 65536:
        return bytes([first, 0x80 | 126]) + length.to_bytes(2, "big") + bytes(4)
    return bytes([first, 0x80 | 127]) + length.to_bytes(8, "big") + bytes(4)


# What each socket sends at once, in front of a pause and behind it: the second part comes when all of them are open.
WAYS = {
    # requests
    "silence": (b"", b""),
    "a letter": (b"G", b"E"),
    "a line": (b"GET / HTTP/1.1\r\n", b"X:"),
    "half a field": (b"GET / HTTP/1.1\r\nX: " + b"x" * 15_000, b"x"),
    "many fields": (b"GET / HTTP/1.1\r\n" + HEAD + b"X: yyyyyyyyyyyyyyyy\r\n" * 700, b"X"),
    "too many fields": (b"GET / HTTP/1.1\r\n" + b"X: yyyyyyyyyyyyyyyy\r\n" * 5_000, b"X"),
    "a TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), b"\0"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * 9),
    "no token": (b"GET /v1/messages HTTP/1.1\r\n" + HEAD + b"\r\n", b"G"),
    "a body without a token": (b"POST /v1/messages HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000000\r\n\r\n" + b"x" * 200_000,
                               b"x" * 200_000),
    "a batch without a token": (b"POST /v1/messages:batch HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n",
                                b"1\r\n \r\n"),
    "answers that nobody reads": ((b"GET / HTTP/1.1\r\n" + HEAD + b"\r\n") * 100 +
                                  (b"GET /belfry.css HTTP/1.1\r\n" + HEAD + b"\r\n") * 100, b"GET / HTTP/1.1\r\n"),
    # bodies that nobody has signed
    "an announced body": (INBOX + b"Content-Length: 262144\r\n\r\n", b""),
    "most of a body": (INBOX + b"Content-Length: 262144\r\n\r\n" + b"x" * 250_000, b"x"),
    "a body with a wrong signature": (INBOX + b"Belfry-Signature: t=1,v1=00\r\nContent-Length: 250000\r\n\r\n" + b"x" * 249_999, b"x"),
    # chunks
    "chunks of a letter": (CHUNKED + b"1\r\nx\r\n" * 20_000, b"1\r\nx"),
    "an extension without end": (CHUNKED + b"10;" + b"a" * 200_000, b"a" * 1_000),
    "most of an extension": (CHUNKED + b"10;" + b"a" * 16_000, b"a"),
    "a trailer without end": (CHUNKED + b"0\r\nX: " + b"y" * 200_000, b"y" * 1_000),
    "trailers without end": (CHUNKED + b"0\r\n" + b"X: yyyyyyyyyy\r\n" * 15_000, b"X: y\r\n"),
    "half of the last chunk": (CHUNKED + b"0\r\n", b"\r"),
    # handshakes and frames
    "half a handshake": (UPGRADE[:-2], b"X"),
    "a wrong handshake": (UPGRADE.replace(b"13", b"99"), b"G"),
    "no hello": (UPGRADE, b""),
    "half a hello": (UPGRADE + frame_head(32_000) + b'{"op":"hello"' + b" " * 31_000, b" "),
    "a hello of a mebibyte": (UPGRADE + frame_head(1 << 20) + b"x" * 200_000, b"x" * 1_000),
    "a hello in pieces": (UPGRADE + (frame_head(15_000, 0x01) + b"x" * 15_000) + (frame_head(15_000, 0x00) + b"x" * 15_000), b"\0"),
    "empty pieces": (UPGRADE + frame_head(0, 0x01) + frame_head(0, 0x00) * 5_000, frame_head(0, 0x00)),
    "pings": (UPGRADE + (frame_head(125, 0x89) + b"p" * 125) * 500, frame_head(0, 0x89)),
    "a hello without the token": (UPGRADE + frame_head(30) + b'{"op":"hello","person":"user"}', b"x"),
}


class Server:
    def __init__(self, binary, scratch, places):
        Path(scratch, "token").write_text(TOKEN, encoding="utf-8")
        os.chmod(Path(scratch, "token"), 0o600)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")}
        environment["BELFRY_LIMITS_CONNECTIONS"] = str(places)
        with open(Path(scratch, "log"), "wb") as log:
            self.process = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--data", str(Path(scratch, "data")),
                                             "--token-file", str(Path(scratch, "token"))],
                                            stdout=subprocess.PIPE, stderr=log, env=environment)
        line = self.process.stdout.readline().decode()
        self.port = int(re.search(r":(\d+)\s*$", line).group(1))
        self.log = Path(scratch, "log")

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) << 10

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        if code != 0:
            raise AssertionError(f"the server ended with {code}: {self.log.read_text(encoding='utf-8')[-2000:]}")


class Insider:
    """Somebody who has the token, each time on a connection of its own: it must always get in."""

    def __init__(self, server):
        self.server = server
        self.slowest = 0.0
        self.served = 0

    def exchange(self, request):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE) as connection:
            connection.sendall(request)
            data = b""
            while True:
                piece = connection.recv(65536)
                data += piece
                if not piece or b"\r\n\r\n" in data and len(data) >= data.index(b"\r\n\r\n") + 4 + length_of(data):
                    return data

    def ask(self, method, path, body=None, headers=(), token=True):
        text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.server.port}", f"Content-Length: {len(text)}", *headers]
        if token:
            lines.append(f"Authorization: Bearer {TOKEN}")
        began = time.monotonic()
        data = self.exchange("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        self.slowest = max(self.slowest, time.monotonic() - began)
        if not data.startswith(b"HTTP/1.1 2"):
            raise AssertionError(f"{method} {path}: {data[:300]!r}")
        self.served += 1
        return json.loads(data.split(b"\r\n\r\n", 1)[1] or b"{}")

    def begin(self):
        self.ask("POST", "/v1/agents", {"id": "worker", "kind": "external"})
        # So that what comes for the inbox is looked at.
        self.ask("PUT", "/v1/people/user/webhook", {"url": "http://127.0.0.1:9/", "secret": "s" * 32})

    # One message there and back, and the panel's greeting.
    def round(self):
        sent = self.ask("POST", "/v1/messages", {"to": "worker", "payload": 1})["messageId"]
        got = self.ask("POST", "/v1/mailboxes/worker:receive", {"max": 100})["messages"]
        if sent not in [one["messageId"] for one in got]:
            raise AssertionError(f"{sent} was sent, and came: {str(got)[:200]}")
        self.ask("POST", "/v1/mailboxes/worker:ack", {"leases": [one["lease"] for one in got]})
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE) as panel:
            hello = json.dumps({"op": "hello", "person": "user", "token": TOKEN}).encode()
            panel.sendall(UPGRADE % self.server.port + frame_head(len(hello)) + hello)
            data = b""
            while b'"op":"welcome"' not in data:
                piece = panel.recv(65536)
                if not piece:
                    raise AssertionError(f"no welcome: {data!r}")
                data += piece
        self.served += 1


def length_of(data):
    found = re.search(rb"\r\ncontent-length: *(\d+)", data.split(b"\r\n\r\n", 1)[0], re.IGNORECASE)
    return int(found.group(1)) if found else 0


class Sockets:
    """Many sockets that send what they are given, as far as it is taken, and never read."""

    def __init__(self, port):
        self.port = port
        self.all = []

    def open(self, openings):
        left = selectors.DefaultSelector()
        for text in openings:
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            try:
                connection.connect(("127.0.0.1", self.port))
            except BlockingIOError:
                pass
            self.all.append(connection)
            left.register(connection, selectors.EVENT_WRITE, memoryview(text))
            if len(self.all) % 64 == 0:
                self.push(left, 0)
        self.push(left, 30)
        left.close()

    # Until all is sent, or for so many seconds.
    @staticmethod
    def push(left, seconds):
        end = time.monotonic() + seconds
        while left.get_map():
            for key, _ in left.select(max(0.0, end - time.monotonic())):
                try:
                    rest = key.data[key.fileobj.send(key.data):] if key.data else key.data
                    if not key.data:
                        key.fileobj.send(b"")
                except BlockingIOError:
                    continue
                except OSError:  # it was let go
                    rest = b""
                if rest:
                    left.modify(key.fileobj, selectors.EVENT_WRITE, rest)
                else:
                    left.unregister(key.fileobj)
            if time.monotonic() >= end:
                return

    def say(self, text):
        for connection in self.all:
            try:
                connection.send(text)
            except OSError:
                pass

    def close(self):
        for connection in self.all:
            connection.close()
        self.all.clear()


class Watch:
    """The most memory that the server had meanwhile."""

    def __init__(self, server):
        self.server = server
        self.most = server.memory()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, self.server.memory())

    def end(self):
        self.over.set()
        self.thread.join()
        return self.most


class Walk:
    def __init__(self, server, insider, sockets, base):
        self.server, self.insider, self.sockets, self.base = server, insider, sockets, base
        self.failed = False

    # G23
    def walk(self, name, openings, more, keep=None):
        crowd = Sockets(self.server.port)
        watch = Watch(self.server)
        problem = ""
        began = time.monotonic()
        try:
            opener = threading.Thread(target=crowd.open, args=(openings,))
            opener.start()
            while opener.is_alive():
                self.insider.round()
            crowd.say(more)
            end = time.monotonic() + SETTLE
            while time.monotonic() < end:
                self.insider.round()
        except (AssertionError, OSError) as e:
            problem = f"somebody with the token: {e!r}"
            opener.join()
        most = watch.end()
        held = most - self.base
        allowed = BUDGET + BARE * len(openings) * (2 if keep else 1)
        if held > allowed:
            problem += f" {held >> 20} MiB are held, {allowed >> 20} may be"
        if self.server.process.poll() is not None:
            raise AssertionError(f"{name}: the server ended with {self.server.process.returncode}")
        print(f"{name:32} {held / (1 << 20):7.1f} MiB {time.monotonic() - began:6.1f} s, slowest answer {self.insider.slowest:6.3f} s"
              f"  {'FAILED: ' + problem if problem else 'ok'}", flush=True)
        self.insider.slowest = 0.0
        self.failed |= bool(problem)
        if keep is None:
            crowd.close()
        return crowd


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", required=True)
    arguments.add_argument("--sockets", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=None)
    arguments.add_argument("ways", nargs="*", help="some of: " + ", ".join(WAYS))
    given = arguments.parse_args()
    seed = random.randrange(1 << 32) if given.seed is None else given.seed
    wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if wanted != resource.RLIM_INFINITY and wanted < 2 * given.sockets + 200:
        sys.exit(f"{given.sockets} sockets need {2 * given.sockets + 200} descriptors, and there may be {wanted}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    print(f"{given.sockets} sockets, --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="belfry-strangers-") as scratch:
        # A few more come than there are places.
        server = Server(given.binary, scratch, given.sockets * 9 // 10)
        insider = Insider(server)
        insider.begin()
        for _ in range(20):
            insider.round()
        fill = lambda text: text.replace(b"%d", str(server.port).encode())  # noqa: E731
        walk = Walk(server, insider, given.sockets, server.memory())
        for name in given.ways or WAYS:
            opening, more = WAYS[name]
            walk.walk(name, [fill(opening)] * given.sockets, more)
        if not given.ways:
            draw = random.Random(seed)
            texts = [fill(opening) for opening, _ in WAYS.values()]
            mixed = walk.walk("all of them", [draw.choice(texts) for _ in range(given.sockets)], b"x", keep=True)
            walk.walk("and once more beside them", [draw.choice(texts) for _ in range(given.sockets)], b"\r\n").close()
            mixed.close()
        server.end()
    if walk.failed:
        sys.exit(f"failed; again with --seed {seed}")
    print(f"ok: {insider.served} requests of somebody with the token were served meanwhile")


if __name__ == "__main__":
    main()
