#!/usr/bin/env python3
"""What becomes of the data's files under the real program: taken away while it runs, harmed while it does not.

    data_test.py [BELFRY]        drives build/release/belfry unless another program is named
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

import http_test
from http_test import PATIENCE, Case

FRAME = 24 + 4096


def salts(log):
    return log[16:24]


def live_frames(log):
    """How many frames of this life the log holds."""
    frames = 0
    while log[32 + frames * FRAME + 8:32 + frames * FRAME + 16] == salts(log):
        frames += 1
    return frames


class DataCase(Case):
    def setUp(self):
        super().setUp()
        self.database = os.path.join(self.data, "belfry.db")
        self.server.call("POST", "/v1/agents", {"id": "other"}, 201)

    def fill(self, count=60):
        """The ids of so many messages, each in a commit of its own."""
        return [self.send(payload={"n": number})["messageId"] for number in range(count)]

    def kill(self):
        self.assertEqual(self.server.end(signal.SIGKILL), -signal.SIGKILL)

    def refused_start(self, *flags, code=1):
        """A start that must fail; what it says."""
        done = subprocess.run([http_test.BELFRY, "serve", "--listen", "127.0.0.1:0", "--data", str(self.data), *flags],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def files(self):
        return {name: (self.data / name).read_bytes() for name in ("belfry.db", "belfry.db-wal", "belfry.db-witness")}


class TakenAway(DataCase):
    """The files are moved, removed or replaced while the server has them open."""

    def after(self, take):
        self.fill(5)
        take()
        answers = []
        try:
            for _ in range(200):
                answers.append(self.server.request("POST", "/v1/messages", {"to": "worker", "payload": 1}).status)
                time.sleep(0.02)
        except OSError:
            pass
        self.assertNotIn(201, answers)
        self.assertEqual(self.server.process.wait(PATIENCE), 4)
        self.server.reader.join(PATIENCE)
        broken = self.server.events("store.broken")
        self.assertEqual(len(broken), 1)
        self.assertIn("moved, removed or replaced", broken[0]["what"])

    # G22
    def test_a_database_that_was_removed(self):
        self.after(lambda: os.remove(self.database))

    # G22
    def test_a_log_that_was_removed(self):
        self.after(lambda: os.remove(self.database + "-wal"))

    # G22
    def test_a_folder_that_was_moved(self):
        self.after(lambda: os.rename(self.data, str(self.data) + "-away"))

    # G22
    def test_a_backup_that_was_put_in_their_place(self):
        def put_back():
            for name in ("belfry.db", "belfry.db-wal"):
                shutil.copy(os.path.join(self.data, name), os.path.join(self.data, "copy"))
                os.replace(os.path.join(self.data, "copy"), os.path.join(self.data, name))

        self.after(put_back)

    # G22: who sends nothing learns of it within two seconds.
    def test_it_is_noticed_without_a_write(self):
        self.fill(5)
        os.remove(self.database)
        self.assertEqual(self.server.process.wait(PATIENCE), 4)

    # G21
    def test_a_second_server_is_kept_out_though_the_files_are_gone(self):
        stopped = self.server.process
        stopped.send_signal(signal.SIGSTOP)
        try:
            for name in os.listdir(self.data):
                if name.startswith("belfry.db"):
                    os.remove(os.path.join(self.data, name))
            self.assertIn("another Belfry is using the data", self.refused_start())
            self.assertEqual([name for name in os.listdir(self.data) if name.startswith("belfry.db")], [])
        finally:
            stopped.send_signal(signal.SIGCONT)
        self.assertEqual(stopped.wait(PATIENCE), 4)


class Harmed(DataCase):
    def harm(self, name, at, new):
        with open(os.path.join(self.data, name), "r+b") as file:
            file.seek(at)
            file.write(new)

    # G22
    def test_a_bit_in_the_log_is_named_by_the_doctor_and_refuses_the_start(self):
        ids = self.fill()
        self.kill()
        log = self.files()["belfry.db-wal"]
        at = 32 + live_frames(log) // 2 * FRAME + 700
        self.harm("belfry.db-wal", at, bytes([log[at] ^ 4]))
        before = self.files()

        doctor = json.loads(self.belfry("doctor", "--data", self.data, "--json", code=1).stdout)
        self.assertFalse(doctor["clean"])
        self.assertIn("the log ends before what was acknowledged", doctor["problems"][0])
        self.assertIn("the newest message that is left", doctor["problems"][0])
        for _ in range(2):
            said = self.refused_start()
            self.assertIn("commits are missing", said)
            self.assertIn("--accept-loss", said)
        self.assertEqual(self.files(), before)

        self.server = self.start("--accept-loss")
        self.server.wait_for_log("store.loss_accepted")
        left = self.counts()[0]
        self.assertLess(left, 60)
        self.assertGreater(left, 0)
        self.assertNotIn(self.send()["messageId"], ids)
        self.kill()
        self.assertIn("nothing is lost", self.refused_start("--accept-loss"))
        self.server = self.start()
        self.assertEqual(self.counts()[0], left + 1)

    # G22
    def test_what_cannot_be_lost_cannot_be_accepted(self):
        self.fill(5)
        self.assertEqual(self.server.end(), 0)
        before = self.files()
        self.assertIn("nothing is lost", self.refused_start("--accept-loss"))
        self.assertEqual(self.files(), before)

    # G22
    def test_a_database_of_another_day_is_refused(self):
        self.fill(5)
        self.assertEqual(self.server.end(), 0)
        monday = self.files()["belfry.db"]
        for _ in range(3):
            self.server = self.start()
            self.fill(300)
            self.assertEqual(self.server.end(), 0)
        self.server = self.start()
        self.fill(5)
        self.kill()
        self.harm("belfry.db", 0, monday)
        os.truncate(self.database, len(monday))
        self.assertIn("different times", self.refused_start())
        self.belfry("doctor", "--data", self.data, code=1)

    # G22
    def test_a_page_that_was_overwritten_is_told_by_health_and_harms_no_neighbour(self):
        for number in range(200):
            self.server.call("POST", "/v1/messages", {"to": "worker", "delayMs": 3_600_000, "payload": f"CANARY-{number:04}" + "x" * 900}, 201)
        self.server.call("POST", "/v1/messages", {"to": "other", "payload": "whole"}, 201)
        self.assertEqual(self.server.end(), 0)
        at = self.files()["belfry.db"].find(b"CANARY-0100") // 4096 * 4096
        self.assertGreater(at, 0)
        self.harm("belfry.db", at, os.urandom(4096))
        os.remove(self.database + "-wal")  # it was moved into the database, and has the page, too
        doctor = json.loads(self.belfry("doctor", "--data", self.data, "--json", code=1).stdout)
        self.assertIn("pages of belfry.db are not as they were written", doctor["problems"][0])

        self.server = self.start()
        for _ in range(3):
            self.server.request("GET", "/v1/messages?to=worker&state=delayed&limit=200")
        health = self.server.request("GET", "/healthz")
        self.assertEqual(health.status, 503)
        self.assertEqual(json.loads(health.text)["status"], "degraded")
        self.assertIn("damaged", json.loads(health.text)["reason"])
        self.assertTrue(self.server.events("store.page_harmed"))
        received = self.server.call("POST", "/v1/mailboxes/other:receive", {})["messages"]
        self.assertEqual([one["payload"] for one in received], ["whole"])


class Limits(DataCase):
    # G17
    def test_a_limit_on_the_size_of_files_is_a_full_disk(self):
        self.assertEqual(self.server.end(), 0)
        limit = 4 << 20

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        try:
            self.server = self.start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        answers = {}
        last = 0
        for number in range(400):
            last = self.server.request("POST", "/v1/messages", {"to": "worker", "payload": "x" * 30_000}).status
            answers[last] = answers.get(last, 0) + 1
            if last == 507 and answers[last] > 5:
                break
        self.assertEqual(last, 507, answers)
        taken = self.server.call("GET", "/v1/mailboxes/worker")["pending"]
        self.assertEqual(taken, answers[201])
        self.assertEqual(self.server.end(), 0)
        self.server = self.start()
        self.assertEqual(self.server.call("GET", "/v1/mailboxes/worker")["pending"], taken)


    # G17
    def test_a_start_that_such_a_limit_makes_impossible_says_so(self):
        for limit in (4_096, 20_000, 100_000):
            command = ["prlimit", f"--fsize={limit}", http_test.BELFRY, "serve", "--listen", "127.0.0.1:0", "--data", f"{self.data}-{limit}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("the disk is full", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and os.access(sys.argv[1], os.X_OK):
        http_test.BELFRY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
