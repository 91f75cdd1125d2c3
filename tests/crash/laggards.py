#!/usr/bin/env python3
"""Panels that do not read what they are sent: it waits on the disk, and they miss nothing.

    laggards.py --binary build/release/belfry [--panels 1000]

Many panels look at one conversation and do not read, and as many more come when all has been said. One that reads hears each line
at once. The server's memory stays under 64 MiB beside 10 KiB for each panel. Then a hundred of them read, and have each
number once and in order; one that was cut off comes back with the last number it knows.
"""

import argparse
import json
import random
import re
import resource
import selectors
import socket
import sys
import tempfile
import time

from strangers import PATIENCE, TOKEN, UPGRADE, Insider, Server, Watch, frame_head

LINES = 100
LETTERS = 99_000
BUDGET = 64 << 20  # what may wait for all panels together
BARE = 10 << 10  # and each connection beside that


class Panel:
    """A WebSocket of a panel, and the last number that it knows."""

    def __init__(self, server, session):
        self.server, self.session = server, session
        self.last = 0
        self.caught_up = -1
        self.connect()

    def connect(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", self.server.port))
        known = {"id": self.session, "after": self.last}
        hello = json.dumps({"op": "hello", "person": "user", "token": TOKEN, "sessions": [known]}).encode()
        self.socket.sendall(UPGRADE % self.server.port + frame_head(len(hello)) + hello)
        self.data = bytearray()
        self.upgraded = False

    # False if the connection has ended.
    def read(self):
        try:
            piece = self.socket.recv(1 << 18)
        except ConnectionResetError:
            piece = b""
        self.data += piece
        self.take()
        return bool(piece)

    def take(self):
        if not self.upgraded:
            end = self.data.find(b"\r\n\r\n")
            if end < 0:
                return
            del self.data[:end + 4]
            self.upgraded = True
        at = 0
        while len(self.data) >= at + 2:
            size, head = self.data[at + 1], 2
            if size >= 126:
                head += 2 if size == 126 else 8
                if len(self.data) < at + head:
                    break
                size = int.from_bytes(self.data[at + 2:at + head], "big")
            if len(self.data) < at + head + size:
                break
            if self.data[at] == 0x81:
                self.hear(bytes(self.data[at + head:at + head + size]))
            at += head + size
        del self.data[:at]

    def hear(self, text):
        if text.startswith(b'{"op":"message"'):
            seq = int(re.search(rb'"seq":(\d+)', text[:300]).group(1))  # to read all of it would take longer than the rest
            if seq != self.last + 1:
                raise AssertionError(f"after {self.last} came {seq}")
            self.last = seq
        elif text.startswith(b'{"op":"caughtUp"'):
            self.caught_up = json.loads(text)["seq"]


# Until all panels know all lines. Returns how many of them had to come back.
def read_all(panels, lines):
    came_back = 0
    with selectors.DefaultSelector() as left:
        for panel in panels:
            left.register(panel.socket, selectors.EVENT_READ, panel)
        deadline = time.monotonic() + 300
        while left.get_map():
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(left.get_map())} panels have not heard all: {sorted(k.data.last for k in left.get_map().values())}")
            for key, _ in left.select(1):
                panel = key.data
                alive = panel.read()
                if alive and panel.last < lines:
                    continue
                left.unregister(panel.socket)
                if alive:
                    continue
                came_back += 1
                panel.socket.close()
                panel.connect()
                left.register(panel.socket, selectors.EVENT_READ, panel)
    return came_back


# G9, G16
def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", required=True)
    arguments.add_argument("--panels", type=int, default=1000)
    given = arguments.parse_args()
    wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    with tempfile.TemporaryDirectory(prefix="belfry-laggards-") as scratch:
        server = Server(given.binary, scratch, 2 * given.panels + 100)
        insider = Insider(server)
        insider.begin()
        insider.ask("POST", "/v1/agents", {"id": "scribe", "kind": "external"})
        session = insider.ask("POST", "/v1/sessions", {"user": "user", "agent": "scribe"})["sessionId"]
        insider.round()
        base = server.memory()
        watch = Watch(server)
        reader = Panel(server, session)
        panels = [Panel(server, session) for _ in range(given.panels)]
        text = "x" * LETTERS
        began = time.monotonic()
        for i in range(LINES):
            insider.ask("POST", f"/v1/sessions/{session}/messages", {"text": text})
            while reader.last <= i:
                if not reader.read():
                    raise AssertionError("a panel that reads was cut off")
            if i == LINES // 2:
                print(f"{len(panels)} that were there before: {(watch.most - base) / (1 << 20):.1f} MiB", flush=True)
                panels += [Panel(server, session) for _ in range(given.panels)]
        insider.round()
        said = time.monotonic() - began
        most = watch.end()
        print(f"{len(panels)} panels that do not read: {(most - base) / (1 << 20):.1f} MiB, {LINES} lines in {said:.1f} s", flush=True)
        allowed = BUDGET + BARE * len(panels)
        if most - base > allowed:
            sys.exit(f"{(most - base) >> 20} MiB are held, {allowed >> 20} may be")
        sample = random.Random(1).sample(panels, min(100, len(panels)))
        came_back = read_all(sample, LINES)
        print(f"{len(sample)} of them have heard each line once and in order; {came_back} had been cut off and came back", flush=True)
        server.end()


if __name__ == "__main__":
    main()
