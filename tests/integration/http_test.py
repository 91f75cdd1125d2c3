#!/usr/bin/env python3
"""The server as its clients see it: every route, every kind of bad request, stops and starts.

    http_test.py [BELFRY]        drives build/release/belfry unless another program is named

Each test has a server of its own on a free port of loopback, with a data directory of its own. Nothing sleeps to wait:
the server is asked, or its log is read until the line is there.
"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from email.utils import parsedate_to_datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BELFRY = os.environ.get("BELFRY", str(ROOT / "build/release/belfry"))
PATIENCE = 20  # seconds until a test gives up


class Server:
    """One `belfry serve` with its log."""

    def __init__(self, data, *flags, environment=None, listen="127.0.0.1:0", cwd=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")}
        self.process = subprocess.Popen(
            [BELFRY, "serve", "--listen", listen, "--data", str(data), *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**clean, **(environment or {})}, cwd=cwd,
        )
        self.log = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        self.ready_line = self.process.stdout.readline()
        match = re.search(r"http://(.+):(\d+)$", self.ready_line.strip())
        self.port = int(match.group(2)) if match else None

    def _read_log(self):
        for line in self.process.stderr:
            with self.news:
                self.log.append(line)
                self.news.notify_all()
        with self.news:
            self.log.append(None)
            self.news.notify_all()

    def wait_for_log(self, event):
        deadline = time.monotonic() + PATIENCE
        seen = 0
        with self.news:
            while True:
                for line in self.log[seen:]:
                    if line is None:
                        raise AssertionError(f"the server ended without logging {event}: {self.log}")
                    if f'"event":"{event}"' in line:
                        return json.loads(line)
                seen = len(self.log)
                if not self.news.wait(deadline - time.monotonic()):
                    raise AssertionError(f"{event} was not logged: {self.log}")

    def events(self, event):
        with self.news:
            return [json.loads(line) for line in self.log if line and f'"event":"{event}"' in line]

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            sent = dict(headers or {})
            if body is not None and "Content-Type" not in sent:
                sent["Content-Type"] = "application/json"
            data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            response.text = response.read().decode(errors="replace")
            return response
        finally:
            connection.close()

    def call(self, method, path, body=None, status=200):
        response = self.request(method, path, body)
        if response.status != status:
            raise AssertionError(f"{method} {path}: {response.status} {response.text}")
        return json.loads(response.text)

    def raw(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def read_until(connection, wanted, data=b""):
    while wanted not in data:
        piece = connection.recv(65536)
        if not piece:
            raise AssertionError(f"the connection ended: {data!r}")
        data += piece
    return data


class Case(unittest.TestCase):
    flags = ()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="belfry-http-")
        self.addCleanup(self.folder.cleanup)
        self.data = Path(self.folder.name) / "data"
        self.server = self.start(*self.flags)
        if self.server.port:
            self.prepare()

    def prepare(self):
        self.server.call("POST", "/v1/agents", {"id": "worker", "kind": "external"}, 201)

    def start(self, *flags, **options):
        server = Server(options.pop("data", self.data), *flags, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        return server

    def refusal(self, response, status, error):
        self.assertEqual(response.status, status, response.text)
        answer = json.loads(response.text)
        self.assertEqual(answer["error"], error, response.text)
        self.assertTrue(answer["message"])
        return answer

    def send(self, server=None, **message):
        return (server or self.server).call("POST", "/v1/messages", {"to": "worker", "payload": {"n": 1}, **message}, 201)

    def receive(self, server=None, **wanted):
        return (server or self.server).call("POST", "/v1/mailboxes/worker:receive", wanted)["messages"]

    def ack(self, messages):
        return self.server.call("POST", "/v1/mailboxes/worker:ack", {"leases": [m["lease"] for m in messages]})

    def counts(self, server=None):
        counts = (server or self.server).call("GET", "/v1/mailboxes/worker")
        return counts["pending"], counts["delayed"], counts["inFlight"]

    def belfry(self, *arguments, code=0, text="", environment=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")}
        clean["BELFRY_URL"] = f"http://127.0.0.1:{self.server.port}"
        done = subprocess.run([BELFRY, *arguments], input=text, capture_output=True, text=True, errors="replace", timeout=PATIENCE,
                              env={**clean, **(environment or {})}, check=False)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        return done


class Messages(Case):
    # D2, D10
    def test_a_message_without_a_delay_is_there_at_once(self):
        sent = self.send(payload={"text": "héllo"}, **{"from": "planner", "taskId": "t1"})
        self.assertEqual(list(sent), ["messageId"])

        messages = self.receive()

        self.assertEqual(len(messages), 1)
        message = messages[0]
        self.assertEqual(message["messageId"], sent["messageId"])
        self.assertEqual((message["to"], message["from"], message["taskId"]), ("worker", "planner", "t1"))
        self.assertEqual(message["payload"], {"text": "héllo"})
        self.assertEqual((message["attempt"], message["forced"]), (1, False))
        self.assertEqual(self.ack(messages), {"acked": 1})
        self.assertEqual(self.counts(), (0, 0, 0))

    # D20
    def test_the_payload_keeps_its_bytes(self):
        payload = '{"b": 1.50, "a":[1e400 ,"\\u00e9é"],  "z":null}'
        body = '{"to":"worker","taskId":"task-7","payload":' + payload + "}"
        self.assertEqual(self.server.request("POST", "/v1/messages", body.encode()).status, 201)

        text = self.server.request("POST", "/v1/mailboxes/worker:receive", {}).text

        self.assertIn('"payload":' + payload, text)
        self.assertIn('"taskId":"task-7"', text)

    # D1, D6, D10, D11
    def test_a_delayed_message_is_counted_waits_and_wakes_who_waits(self):
        began = time.time()
        sent = self.send(delayMs=300)
        self.assertRegex(sent["scheduledDeliveryTime"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(self.counts(), (0, 1, 0))
        self.assertEqual(self.receive(), [])

        messages = self.receive(waitMs=10000)

        self.assertGreaterEqual(time.time() - began, 0.3)
        self.assertEqual([m["messageId"] for m in messages], [sent["messageId"]])
        info = self.server.call("GET", f"/v1/messages/{sent['messageId']}")
        self.assertEqual(info["state"], "leased")
        self.assertGreaterEqual(info["latenessMs"], 0)

    # D3, D4, D5
    def test_a_delay_that_makes_no_sense_is_none_and_says_so(self):
        self.assertEqual(list(self.send(delayMs=-5)), ["messageId"])
        self.assertIn("warnings", self.send(delayMs="soon"))
        self.assertIn("warnings", self.send(delayMs=[1]))
        self.assertIn("warnings", self.send(delayMs=True))
        self.assertIn("scheduledDeliveryTime", self.send(delayMs="5000"))
        far = self.send(delayMs=10**30)
        self.assertEqual(far["scheduledDeliveryTime"], "9999-12-31T23:59:59.999Z")
        self.assertTrue(far["warnings"])

    # D10
    def test_a_list_of_recipients_has_an_answer_each(self):
        self.server.call("POST", "/v1/agents", {"id": "other"}, 201)
        body = {"to": ["worker", "nobody", "No Name", "other"], "payload": 1, "key": "k", "delayMs": 60000}

        first = self.server.call("POST", "/v1/messages", body, 201)["results"]
        again = self.server.call("POST", "/v1/messages", body, 201)["results"]

        self.assertEqual([r["to"] for r in first], body["to"])
        self.assertEqual([r.get("error") for r in first], [None, "unknown_recipient", "invalid_id", None])
        self.assertIn("scheduledDeliveryTime", first[0])
        self.assertNotEqual(first[0]["messageId"], first[3]["messageId"])
        self.assertEqual([r.get("messageId") for r in again], [r.get("messageId") for r in first])

    # D10
    def test_an_instant_is_iso_or_milliseconds(self):
        iso = self.send(deliverAt="2099-01-01T08:00:00+08:00")
        number = self.send(deliverAt=4070908800000)
        past = self.send(deliverAt="2001-01-01T00:00:00Z")
        self.assertEqual(iso["scheduledDeliveryTime"], "2099-01-01T00:00:00.000Z")
        self.assertEqual(number["scheduledDeliveryTime"], "2099-01-01T00:00:00.000Z")
        self.assertNotIn("scheduledDeliveryTime", past)
        self.assertTrue(past["warnings"])

    # D17
    def test_a_key_makes_a_send_repeatable(self):
        first = self.send(key="k1", delayMs=60000)
        self.assertEqual(self.send(key="k1", delayMs=60000), first)
        response = self.server.request("POST", "/v1/messages", {"to": "worker", "payload": 2, "key": "k1"})
        self.refusal(response, 409, "key_conflict")
        self.assertEqual(self.counts(), (0, 1, 0))

    # D16
    def test_messages_are_read_listed_moved_delivered_and_cancelled(self):
        ids = [self.send(delayMs=60000 + i, **{"from": "boss"})["messageId"] for i in range(5)]
        self.send(delayMs=90000)

        page = self.server.call("GET", "/v1/messages?to=worker&from=boss&state=delayed&limit=1000")
        self.assertEqual([m["messageId"] for m in page["messages"]], ids)
        seen, after = [], ""
        while True:
            page = self.server.call("GET", f"/v1/messages?limit=2&after={after}")
            seen += [m["messageId"] for m in page["messages"]]
            after = page.get("next")
            if not after:
                break
        self.assertEqual(len(seen), 6)
        self.assertEqual(len(set(seen)), 6)

        moved = self.server.call("PATCH", f"/v1/messages/{ids[0]}", {"deliverAt": "2099-01-01T00:00:00Z"})
        self.assertEqual((moved["messageId"], moved["deliverAt"]), (ids[0], "2099-01-01T00:00:00.000Z"))
        self.assertEqual(self.server.call("PATCH", f"/v1/messages/{ids[0]}", {"delayMs": 60000})["state"], "delayed")
        past = self.server.call("PATCH", f"/v1/messages/{ids[4]}", {"deliverAt": "2001-01-01T00:00:00Z"})
        self.assertIn("in the past", past["warnings"][0])
        self.assertEqual([m["messageId"] for m in self.receive(waitMs=5000)], [ids[4]])
        done = self.server.call("POST", f"/v1/messages/{ids[1]}:deliver")
        self.assertEqual(done, {"messageId": ids[1], "result": "done"})
        self.assertEqual([m["messageId"] for m in self.receive()], [ids[1]])
        self.refusal(self.server.request("DELETE", f"/v1/messages/{ids[1]}"), 409, "already_delivered")
        self.assertEqual(self.server.call("DELETE", f"/v1/messages/{ids[2]}")["result"], "done")
        self.refusal(self.server.request("DELETE", f"/v1/messages/{ids[2]}"), 409, "already_cancelled")
        self.refusal(self.server.request("PATCH", f"/v1/messages/{ids[2]}", {"delayMs": 1}), 409, "already_cancelled")
        info = self.server.call("GET", f"/v1/messages/{ids[2]}")
        self.assertEqual((info["state"], info["endedBy"]), ("cancelled", "user"))

    # D18
    def test_leases_are_extended_released_and_lost(self):
        sent = self.send()
        first = self.receive(leaseMs=60000)
        leases = [m["lease"] for m in first]
        self.assertEqual(self.server.call("POST", "/v1/mailboxes/worker:extend", {"leases": leases, "leaseMs": 50000}),
                         {"extended": 1})
        self.assertEqual(self.server.call("POST", "/v1/mailboxes/worker:release", {"leases": leases}), {"released": 1})
        second = self.receive(waitMs=5000)
        self.assertEqual((second[0]["messageId"], second[0]["attempt"]), (sent["messageId"], 2))

        lost = self.ack(first)

        self.assertEqual(lost["acked"], 0)
        self.assertEqual(lost["refused"][0]["error"], "lease_lost")
        self.assertEqual(lost["refused"][0]["messageId"], sent["messageId"])
        by_id = self.server.call("POST", "/v1/mailboxes/worker:ack", {"messageIds": [sent["messageId"]]})
        self.assertEqual(by_id, {"acked": 1})

    # D18
    def test_a_message_that_nobody_acks_becomes_a_dead_letter(self):
        sent = self.send()
        for attempt in range(5):
            got = self.receive(waitMs=5000)
            self.assertEqual(got[0]["attempt"], attempt + 1)
            self.server.call("POST", "/v1/mailboxes/worker:release", {"leases": [got[0]["lease"]]})
        self.server.wait_for_log("bus.died")

        dead = self.server.call("GET", "/v1/messages?state=dead")["messages"]
        self.assertEqual([m["messageId"] for m in dead], [sent["messageId"]])
        self.assertIn("5 attempts", dead[0]["reason"])
        self.assertEqual(self.server.call("POST", f"/v1/messages/{sent['messageId']}:retry")["result"], "done")
        self.assertEqual(len(self.receive(waitMs=5000)), 1)
        self.refusal(self.server.request("POST", f"/v1/messages/{sent['messageId']}:drop"), 409, "wrong_state")

    # D14
    def test_removing_a_recipient_leaves_dead_letters(self):
        sent = self.send()
        self.assertEqual(self.server.call("GET", "/v1/agents/worker")["pending"], 1)
        self.assertEqual(self.server.call("DELETE", "/v1/agents/worker"), {"id": "worker", "result": "done"})
        self.server.wait_for_log("bus.died")
        self.refusal(self.server.request("POST", "/v1/messages", {"to": "worker", "payload": 1}), 404, "unknown_recipient")
        self.refusal(self.server.request("GET", "/v1/mailboxes/worker"), 404, "unknown_recipient")
        self.refusal(self.server.request("GET", "/v1/agents/worker"), 404, "not_found")
        info = self.server.call("GET", f"/v1/messages/{sent['messageId']}")
        self.assertEqual((info["state"], info["reason"]), ("dead", "recipient_removed"))
        self.assertEqual(self.server.call("POST", f"/v1/messages/{sent['messageId']}:drop")["result"], "done")

    # D23
    def test_a_message_expires(self):
        soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 2)) + "Z"
        sent = self.send(expiresAt=soon)
        deadline = time.monotonic() + PATIENCE
        while self.server.call("GET", f"/v1/messages/{sent['messageId']}")["state"] != "expired":
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(self.receive(), [])

    # D9
    def test_the_life_of_a_delayed_message_is_logged_and_payloads_are_not(self):
        sent = self.send(delayMs=50, payload={"text": "a secret"})
        delivered = self.server.wait_for_log("bus.delivered")
        scheduled = self.server.wait_for_log("bus.scheduled")
        self.assertEqual((scheduled["msg"], scheduled["id"]), ("发送延迟消息", sent["messageId"]))
        self.assertEqual(delivered["msg"], "延迟消息已投递")
        self.assertGreaterEqual(delivered["delayDrift"], 0)
        self.assertNotIn("a secret", "".join(line for line in self.server.log if line))

    def test_agents_are_listed_in_pages(self):
        for name in ("b", "a", "c"):
            self.server.call("POST", "/v1/agents", {"id": name}, 201)
        first = self.server.call("GET", "/v1/agents?limit=2")
        self.assertEqual([a["id"] for a in first["agents"]], ["a", "b"])
        rest = self.server.call("GET", f"/v1/agents?after={first['next']}")
        self.assertEqual([a["id"] for a in rest["agents"]], ["c", "concierge", "worker"])
        self.assertNotIn("next", rest)
        self.refusal(self.server.request("POST", "/v1/agents", {"id": "a"}), 409, "already_exists")


class Times(Case):
    NOW = "2026-11-18T15:20:00+08:00"

    def read(self, text, status=200, **more):
        return self.server.call("POST", "/v1/when", {"text": text, "now": self.NOW, "timezone": "Asia/Shanghai", **more},
                                status)

    # W
    def test_a_time_is_read_and_said_back(self):
        found = self.read("remind me tomorrow at 7 pm to call home")
        self.assertEqual(found["at"], "2026-11-19T19:00:00+08:00")
        self.assertEqual((found["kind"], found["past"], found["alternatives"]), ("instant", False, []))
        self.assertEqual((found["timezone"], found["timezoneSource"]), ("Asia/Shanghai", "given"))
        self.assertEqual(found["text"], "tomorrow at 7 pm")
        self.assertEqual(found["sentence"], {"en": "Thursday 19 November 2026 at 19:00 (UTC+08:00)",
                                             "zh": "2026年11月19日星期四 19:00（UTC+08:00）"})
        weekly = self.read("每周五下午3点")
        self.assertEqual((weekly["kind"], weekly["next"], weekly["rule"]),
                         ("recurrence", "2026-11-20T15:00:00+08:00", "FREQ=WEEKLY;BYDAY=FR;BYHOUR=15;BYMINUTE=0"))
        self.assertEqual(self.read("from 2 to 4pm")["end"], "2026-11-19T16:00:00+08:00")
        self.assertEqual(self.read("9am PST")["timezoneSource"], "text")
        self.assertEqual(self.read("tomorrow at 7")["alternatives"], ["2026-11-19T19:00:00+08:00"])

    # W
    def test_what_is_no_time_is_refused_with_its_reason(self):
        for text, error in (("banana", "not_a_time"), ("", "not_a_time"), ("25:00", "impossible_time"),
                            ("2月30日", "impossible_time"), ("x" * 2000, "too_large"), ("a\u0001", "invalid_argument"),
                            ("1" * 1000, "not_a_time")):
            status = 413 if error == "too_large" else 400
            self.assertEqual(self.read(text, status)["error"], error, text)
        self.assertEqual(self.read("tomorrow at 7", 400, strict=True)["error"], "ambiguous_time")
        self.assertEqual(self.read("noon", 400, timezone="Mars/Olympus")["error"], "unknown_timezone")
        self.assertEqual(self.read("noon", 400, language="tlh")["error"], "invalid_argument")
        self.assertEqual(self.read("noon", 400, now="2900-01-01T00:00:00Z")["error"], "invalid_time")

    # D17: what the words mean now is not when the message comes.
    def test_a_repeat_does_not_say_another_time_than_its_message_has(self):
        for to in ("worker", ["worker"]):
            body = {"to": to, "payload": 1, "schedule": "in 3 hours", "key": f"tea {to}"}
            first, again = (self.server.call("POST", "/v1/messages", body, 201) for _ in range(2))
            self.assertIn("understood", first)
            del first["understood"]
            self.assertEqual(again, first)

    # D10
    def test_words_for_what_is_past_are_acted_on_with_a_warning(self):
        later = self.server.call("POST", "/v1/messages", {"to": "worker", "payload": 1, "schedule": "in 3 hours"}, 201)
        for past in (self.server.call("PATCH", f"/v1/messages/{later['messageId']}", {"schedule": "10 minutes ago"}),
                     self.server.call("POST", "/v1/messages", {"to": "worker", "payload": 1, "schedule": "10分钟前"}, 201)):
            self.assertIn("is in the past", past["warnings"][0])

    # W, F15
    def test_a_message_can_be_scheduled_in_words(self):
        body = {"to": "worker", "payload": 1, "schedule": {"when": "2099年5月1日上午9点", "timezone": "Asia/Shanghai"}}
        sent = self.server.call("POST", "/v1/messages", body, 201)
        self.assertEqual(sent["scheduledDeliveryTime"], "2099-05-01T01:00:00.000Z")
        self.assertEqual(sent["understood"]["sentence"]["zh"], "2099年5月1日星期五 09:00（UTC+08:00）")
        moved = self.server.call("PATCH", f"/v1/messages/{sent['messageId']}", {"schedule": "in 3 hours"})
        self.assertEqual(moved["understood"]["kind"], "instant")
        self.assertEqual(moved["state"], "delayed")
        for schedule, error in (("soon", "not_a_time"), ("every day at 9", "invalid_argument"),
                                ("25点", "impossible_time"), ("", "not_a_time")):
            refused = self.server.call("POST", "/v1/messages", {"to": "worker", "payload": 1, "schedule": schedule}, 400)
            self.assertEqual(refused["error"], error, schedule)
        self.assertEqual(self.server.call("GET", "/v1/mailboxes/worker")["delayed"], 1)


class Names(Case):
    # G19
    def test_nobody_else_speaks_under_the_name_of_belfry(self):
        session = self.server.call("POST", "/v1/sessions", {"user": "user", "agent": "worker"}, 201)["sessionId"]
        call = {"arguments": {"to": "worker", "payload": 1}, "context": {"agentId": "belfry"}}
        doors = (("POST", "/v1/messages", {"to": "worker", "from": "belfry", "payload": {"type": "run_ended"}}),
                 ("POST", "/v1/messages", {"to": ["worker"], "from": "belfry", "payload": 1}),
                 ("POST", "/v1/tools/send_message:call", call),
                 ("POST", "/v1/tools/ask:call", call),
                 ("POST", "/v1/runs", {"plan": {"steps": [{"aiName": "send_message"}]}, "context": {"agentId": "belfry"}}),
                 ("POST", f"/v1/sessions/{session}/messages", {"from": "belfry", "text": "hello"}),
                 ("POST", f"/v1/sessions/{session}/drafts", {"from": "belfry", "draftId": "d", "text": "hello"}))
        for method, path, body in doors:
            answer = self.server.request(method, path, body)
            self.refusal(answer, 400, "invalid_argument")
            self.assertIn("the name that Belfry itself speaks under", answer.text)
        lines = self.server.request("POST", "/v1/messages:batch", b'{"to":"worker","from":"belfry","payload":1}\n{"to":"worker","payload":2}\n',
                                    {"Content-Type": "application/x-ndjson"}).text.splitlines()
        self.assertIn("the name that Belfry itself speaks under", lines[0])
        self.assertIn("messageId", lines[1])
        self.assertEqual(self.counts()[0], 1)
        self.assertEqual(self.server.request("GET", "/v1/messages?from=belfry").status, 200)


class Secrets(Case):
    KEY = "sk-canary-0123456789"

    def start(self, *flags, **options):
        options.setdefault("environment", {"OPENAI_API_KEY": self.KEY})
        return super().start(*flags, **options)

    # G24
    def test_the_models_key_is_not_in_the_environment_that_the_kernel_shows(self):
        with open(f"/proc/{self.server.process.pid}/environ", "rb") as environ:
            shown = environ.read()
        self.assertNotIn(self.KEY.encode(), shown)
        self.assertIn(b"OPENAI_API_KEY=", shown, "this is the right place to look")

    # G24: what other processes of the same user may read in /proc belongs to root from then on.
    def test_the_memory_of_the_server_is_nobodys_to_read(self):
        self.assertEqual(self.server.end(), 0)
        command = [BELFRY, "serve", "--listen", "127.0.0.1:0", "--data", str(self.data)]
        user = {}
        if os.geteuid() == 0:
            os.chmod(self.folder.name, 0o755)
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, 65534, 65534)
            user = {"user": 65534, "group": 65534, "extra_groups": []}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **user)
        try:
            self.assertIn("ready", server.stdout.readline())
            for name in ("environ", "mem", "maps"):
                done = subprocess.run(["/bin/sh", "-c", f"exec 3</proc/{server.pid}/{name}"], capture_output=True, text=True, **user)
                self.assertIn("Permission denied", done.stderr, name)
        finally:
            server.terminate()
            self.assertEqual(server.wait(PATIENCE), 0)
            server.stdout.close()

    # G24
    def test_a_key_file_that_others_can_read_is_named(self):
        self.assertEqual(self.server.end(), 0)
        key = Path(self.folder.name) / "key"
        key.write_text(self.KEY + "\n")
        key.chmod(0o644)
        environment = {"BELFRY_LLM_API_KEY_FILE": str(key), "BELFRY_LLM_BASE_URL": "http://127.0.0.1:9/v1", "BELFRY_LLM_MODEL": "m"}
        server = self.start(environment=environment)
        self.assertEqual(server.wait_for_log("server.key_exposed")["file"], str(key))
        self.assertEqual(server.end(), 0)
        key.chmod(0o622)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")}
        done = subprocess.run([BELFRY, "serve", "--listen", "127.0.0.1:0", "--data", str(self.data)], capture_output=True, text=True,
                              env={**clean, **environment}, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("anybody can write to the key file", done.stderr)


class Steps(Case):
    # G5: past that date it was always due, and the server did nothing else.
    def test_the_timer_that_waits_for_clock_steps_has_no_date(self):
        self.assertEqual(self.server.end(), 0)
        trace = Path(self.folder.name) / "trace"
        server = subprocess.Popen(["strace", "-f", "-e", "trace=timerfd_settime", "-o", str(trace), BELFRY, "serve", "--listen",
                                   "127.0.0.1:0", "--data", str(self.data)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True)
        try:
            self.assertIn("ready", server.stdout.readline())
        finally:
            traced = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            os.kill(int(traced[0]), signal.SIGTERM)
            server.wait(PATIENCE)
            server.stdout.close()
        armed = [int(line.split("it_value={tv_sec=")[1].split(",")[0]) for line in trace.read_text().splitlines()
                 if "TFD_TIMER_CANCEL_ON_SET" in line and "it_value" in line]
        self.assertTrue(armed, trace.read_text())
        settable_until = 2232 - 1970  # years: the kernel takes no later time for its clock
        self.assertTrue(all(seconds > settable_until * 366 * 86_400 for seconds in armed), armed)


class Batches(Case):
    def batch(self, body, headers=None):
        return self.server.request("POST", "/v1/messages:batch", body,
                                   {"Content-Type": "application/x-ndjson", **(headers or {})})

    # D1, D2: ten thousand lines, some of them bad
    def test_each_line_has_its_answer_in_order(self):
        lines = []
        for i in range(10_000):
            if i % 1000 == 7:
                lines.append('{"to":"nobody","payload":1}')
            elif i % 1000 == 8:
                lines.append("{not json")
            else:
                lines.append(json.dumps({"to": "worker", "payload": i, "delayMs": 3600000 if i % 2 else 0}))
        response = self.batch("\n".join(lines).encode())

        answers = [json.loads(line) for line in response.text.splitlines()]

        self.assertEqual(response.status, 200)
        self.assertEqual(len(answers), 10_000)
        for i, answer in enumerate(answers):
            wanted = {7: "unknown_recipient", 8: "invalid_json"}.get(i % 1000)
            self.assertEqual(answer.get("error"), wanted, f"line {i}: {answer}")
            self.assertEqual("scheduledDeliveryTime" in answer, wanted is None and i % 2 == 1)
        self.assertEqual(sum(self.counts()), 9_980)
        first = self.receive(max=3)
        self.assertEqual([m["payload"] for m in first], [0, 2, 4])

    def test_a_bad_line_spoils_nothing_but_itself(self):
        body = b'\n{"to":"worker","payload":1}\r\n\n{"to":["worker"],"payload":1}\n{"to":"worker","payload":"\xff"}\n'
        body += b'{"to":"worker","payload":"' + b"x" * (1 << 20) + b'"}\n' + b'{"to":"worker","payload":2}'
        answers = [json.loads(line) for line in self.batch(body).text.splitlines()]
        self.assertEqual([a.get("error") for a in answers],
                         [None, "invalid_argument", "invalid_json", "too_large", None])

    def test_a_batch_may_come_in_chunks_and_bits(self):
        connection = self.server.raw()
        connection.sendall(b"POST /v1/messages:batch HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\n\r\n"
                           % self.server.port)
        line = b'{"to":"worker","payload":"0123456789"}\n'
        for i in range(len(line)):
            connection.sendall(b"1\r\n" + line[i:i + 1] + b"\r\n")
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line))
        answer = read_until(connection, b"0\r\n\r\n")
        self.assertEqual(answer.count(b'{"messageId"'), 2)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self.server.port)
        read_until(connection, b'"status":"ok"')
        connection.close()

    def test_limits_of_a_batch(self):
        self.refusal(self.batch(b"x" * ((32 << 20) + 1)), 413, "too_large")
        answers = self.batch(b'{"to":"nobody","payload":1}\n' * 100_001).text.splitlines()
        self.assertEqual(len(answers), 100_001)
        last = json.loads(answers[-1])
        self.assertEqual(last["error"], "too_large")
        self.assertNotIn("retryAfterMs", last)
        self.refusal(self.batch(b"", {"Content-Type": "text/html"}), 415, "unsupported")
        empty = self.batch(b"")
        self.assertEqual((empty.status, empty.text), (200, ""))


class BadInput(Case):
    def refused(self, body, error, status=400, path="/v1/messages"):
        answer = self.refusal(self.server.request("POST", path, body), status, error)
        self.assertEqual(sum(self.counts()), 0)
        return answer["message"]

    def test_bodies_that_are_not_json(self):
        for body in (b"{", b'{"to":}', b'{"to":"worker","payload":1}}', b"\xff\xfe", b'{"to":"worker","payload":"\xc3\x28"}',
                     b'{"to":"worker","payload":"\\ud800"}', b'{"to":"worker","payload":NaN}', b'{"a":1,"a":2}'):
            self.refused(body, "invalid_json")
        self.refused(b'{"to":"worker","payload":' + b"[" * 64 + b"]" * 64 + b"}", "invalid_json")
        self.assertIn("byte", self.refused(b"{]", "invalid_json"))

    def test_wrong_types_are_named(self):
        self.assertIn("to is a number", self.refused({"to": 5, "payload": 1}, "invalid_argument"))
        self.assertIn("to is missing", self.refused({"payload": 1}, "invalid_argument"))
        self.assertIn("payload is missing", self.refused({"to": "worker"}, "invalid_argument"))
        self.assertIn("from is a boolean", self.refused({"to": "worker", "payload": 1, "from": True}, "invalid_argument"))
        self.refused({"to": [], "payload": 1}, "invalid_argument")
        self.refused({"to": ["worker", 1], "payload": 1}, "invalid_argument")
        self.refused({"to": "worker", "payload": 1, "deliverAt": "tomorrow"}, "invalid_time")
        self.refused({"to": "worker", "payload": 1, "deliverAt": 1e300}, "invalid_time")
        self.refused({"to": "worker", "payload": 1, "deliverAt": True}, "invalid_argument")
        self.refused({"to": "worker", "payload": 1, "delayMs": 5, "deliverAt": "2099-01-01T00:00:00Z"}, "invalid_argument")
        self.refused({"to": "worker", "payload": 1, "expiresAt": "2001-01-01T00:00:00Z"}, "invalid_argument")
        self.refused({"to": "worker", "payload": 1, "key": "k" * 257}, "invalid_argument")
        self.refused({"to": "worker", "payload": 1, "key": ""}, "invalid_argument")
        self.refused([], "invalid_argument")
        self.refused(b"", "invalid_argument")

    def test_unknown_fields_are_named_with_the_known_ones(self):
        message = self.refused({"to": "worker", "payload": 1, "delay": 5}, "unknown_field")
        self.assertIn('"delay"', message)
        self.assertIn("delayMs", message)
        self.refused({"to": "worker", "payload": 1, "replies": ["a"]}, "unknown_field")
        self.refused({"max": 1, "wait": 5}, "unknown_field", path="/v1/mailboxes/worker:receive")
        self.refused({"ids": []}, "unknown_field", path="/v1/mailboxes/worker:ack")
        self.refusal(self.server.request("GET", "/v1/messages?sate=dead"), 400, "unknown_field")
        self.refused({"to": "worker", "payload": 1}, "unknown_field", path="/v1/messages?delayMs=5000")
        self.refusal(self.server.request("GET", "/v1/mailboxes/worker?state=dead"), 400, "unknown_field")
        self.refused({"x": 1}, "unknown_field", path="/v1/agents/worker:stop")
        self.refused(b"{bad", "invalid_json", path="/v1/agents/worker:start")
        for path in ("/v1/people/user/facts", "/v1/runs/x"):
            self.refusal(self.server.request("DELETE", path, {"number": 3}), 400, "unknown_field")
        self.refused({"step": 1}, "unknown_field", path="/v1/runs/x:cancel")
        self.refusal(self.server.request("PATCH", "/v1/messages/0000000000000", {"schedule": "soon"}), 400, "invalid_id")

    # D18
    def test_an_answer_that_was_not_sent_is_no_attempt(self):
        sent = self.server.call("POST", "/v1/messages", {"to": "worker", "payload": "hello"}, 201)["messageId"]
        for _ in range(6):
            with socket.create_connection(("127.0.0.1", self.server.port)) as client:
                # The request and the end of it in one piece: whoever is gone by the time of the answer has not seen it.
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
                client.sendall(b"POST /v1/mailboxes/worker:receive HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                               b"Content-Length: 2\r\n\r\n{}" % self.server.port)
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(client.recv(4096), b"")
        message = self.server.call("GET", f"/v1/messages/{sent}")
        self.assertEqual((message["state"], message["attempts"]), ("pending", 0))

    # D18: it may be too large for its receiver, for ever.
    def test_an_answer_that_broke_off_is_an_attempt(self):
        payload = "x" * 1_000_000
        sent = [self.server.call("POST", "/v1/messages", {"to": "worker", "payload": payload}, 201)["messageId"]
                for _ in range(20)]
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(b"POST /v1/mailboxes/worker:receive HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                           b"Content-Length: 10\r\n\r\n{\"max\":20}" % self.server.port)
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200"))
        # They are given back in the moment in which the server notices; a receive waits for it.
        again = self.server.call("POST", "/v1/mailboxes/worker:receive", {"max": 20, "waitMs": 30000})["messages"]
        self.assertEqual([(one["messageId"], one["attempt"]) for one in again],
                         [(one, 2) for one in sent[:len(again)]])
        self.assertGreater(len(again), 0)

    # D14
    def test_ids_and_recipients(self):
        self.refused({"to": "nobody", "payload": 1}, "unknown_recipient", 404)
        for name in ("Worker", "a b", "", "ü", "x" * 65, "a/b"):
            self.refused({"to": name, "payload": 1}, "invalid_id")
            self.refused({"id": name}, "invalid_id", path="/v1/agents")
        self.refused({"to": "worker", "payload": 1, "from": "Nobody!"}, "invalid_id")
        self.refused({"id": "x", "kind": "robot"}, "invalid_argument", path="/v1/agents")
        self.refusal(self.server.request("PATCH", "/v1/agents/worker", {"prompt": "x"}), 409, "wrong_state")
        self.refusal(self.server.request("GET", "/v1/messages/nonsense"), 400, "invalid_id")
        self.refusal(self.server.request("GET", "/v1/messages?to=No"), 400, "invalid_id")
        self.refusal(self.server.request("GET", "/v1/mailboxes/nobody"), 404, "unknown_recipient")

    def test_numbers_out_of_range(self):
        path = "/v1/mailboxes/worker:receive"
        for body in ({"max": 0}, {"max": 1001}, {"max": "1"}, {"max": 1.5}, {"waitMs": -1}, {"waitMs": 60001},
                     {"leaseMs": 1}, {"leaseMs": 1e18}, {"max": 1e99}):
            self.refused(body, "invalid_argument", path=path)
        for limit in ("0", "1001", "x", "-1", ""):
            self.refusal(self.server.request("GET", f"/v1/messages?limit={limit}"), 400, "invalid_argument")
        self.refusal(self.server.request("GET", "/v1/messages?state=sleeping"), 400, "invalid_argument")

    def test_lists_that_are_too_long_are_not_told_to_come_again(self):
        for path, body in (("/v1/messages", {"to": ["worker"] * 1001, "payload": 1}),
                           ("/v1/mailboxes/worker:ack", {"leases": ["x"] * 1001}),
                           ("/v1/mailboxes/worker:ack", {"messageIds": ["x"] * 1001}),
                           ("/v1/mailboxes/worker:release", {"leases": ["x"] * 1001})):
            response = self.server.request("POST", path, body)
            self.assertNotIn("retryAfterMs", self.refusal(response, 400, "invalid_argument"))
            self.assertIsNone(response.getheader("Retry-After"))

    def test_what_a_route_does_not_take_is_refused(self):
        path = f"/v1/messages/{self.send(delayMs=60000)['messageId']}"
        for method, route in (("DELETE", path), ("POST", path + ":retry"), ("POST", path + ":deliver"),
                              ("DELETE", "/v1/agents/worker")):
            answer = self.refusal(self.server.request(method, route, {"a": 1}), 400, "unknown_field")
            self.assertIn("takes no fields", answer["message"])
        self.assertEqual(self.counts(), (0, 1, 0))
        self.refusal(self.server.request("GET", "/v1/messages?to=worker&to=other"), 400, "invalid_argument")
        self.refusal(self.server.request("GET", "/v1/agents?limit=1&limit=2"), 400, "invalid_argument")

    def test_bodies_over_the_limit(self):
        big = b'{"to":"worker","payload":"' + b"x" * (1 << 20) + b'"}'
        self.refused(big, "too_large", 413)
        connection = self.server.raw()
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost:%d\r\nTransfer-Encoding: chunked\r\n\r\n"
                           % self.server.port)
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(big), big))
        self.assertIn(b" 413 ", read_until(connection, b"too_large"))
        connection.close()

    def test_heads_over_the_limit_and_nonsense(self):
        host = b"Host: localhost:%d\r\n" % self.server.port
        for head, status in ((b"GET /healthz HTTP/1.1\r\n" + host + b"X: " + b"x" * 20000 + b"\r\n\r\n", b" 431 "),
                             (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n" + host + b"\r\n", b" 431 "),
                             (b"nonsense\r\n\r\n", b" 400 "),
                             (b"GET /%zz HTTP/1.1\r\n" + host + b"\r\n", b" 400 "),
                             (b"GET / HTTP/3.0\r\n" + host + b"\r\n", b" 400 "),
                             (b"POST /v1/messages HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", b" 400 "),
                             (b"POST /v1/messages HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                              b" 400 "),
                             (b"POST /v1/messages HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip, chunked\r\n\r\n", b" 501 "),
                             (b"POST /v1/messages HTTP/1.1\r\n" + host + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n", b" 415 "),
                             (b"POST /v1/messages HTTP/1.1\r\n" + host + b"Expect: wonders\r\nContent-Length: 5\r\n\r\n", b" 417 ")):
            connection = self.server.raw()
            connection.sendall(head)
            self.assertIn(status, read_until(connection, b"\r\n\r\n").split(b"\r\n")[0], head[:60])
            connection.close()
        self.assertEqual(self.server.call("GET", "/healthz")["status"], "ok")

    def test_unknown_paths_methods_and_content_types(self):
        for path in ("/v1", "/v1/messages/", "/v1/messages/a/b", "/v2/messages", "/v1/mailboxes/worker:eat", "/../etc/passwd"):
            self.refusal(self.server.request("GET", path), 404, "not_found")
        response = self.server.request("PUT", "/v1/messages", {})
        self.refusal(response, 405, "method_not_allowed")
        self.assertEqual(response.getheader("Allow"), "POST, GET, HEAD")
        self.assertEqual(self.server.request("GET", "/v1/mailboxes/worker:receive").getheader("Allow"), "POST")
        self.refusal(self.server.request("OPTIONS", "/v1/agents"), 405, "method_not_allowed")
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        self.refusal(self.server.request("POST", "/v1/messages", b"to=worker", form), 415, "unsupported")


class Protocol(Case):
    def head(self, method, path, *lines):
        extra = b"".join(line + b"\r\n" for line in lines)
        return b"%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (method, path, self.server.port, extra)

    def test_pipelined_requests_are_answered_in_order(self):
        connection = self.server.raw()
        requests = b""
        for i in range(200):
            body = json.dumps({"to": "worker", "payload": i}).encode()
            requests += self.head(b"POST", b"/v1/messages", b"Content-Type: application/json", b"Content-Length: %d" % len(body)) + body
            requests += self.head(b"GET", b"/v1/nowhere/%d" % i)
        connection.sendall(requests + self.head(b"GET", b"/healthz", b"Connection: close"))
        answers = b""
        while piece := connection.recv(65536):
            answers += piece
        connection.close()
        statuses = re.findall(rb"HTTP/1\.1 (\d+)", answers)
        self.assertEqual(statuses, [b"201", b"404"] * 200 + [b"200"])
        self.assertEqual([int(n) for n in re.findall(rb"/v1/nowhere/(\d+)", answers)], list(range(200)))
        self.assertEqual([m["payload"] for m in self.receive(max=1000)], list(range(200)))

    def test_expect_100_continue(self):
        body = b'{"to":"worker","payload":1}'
        connection = self.server.raw()
        connection.sendall(self.head(b"POST", b"/v1/messages", b"Expect: 100-continue", b"Content-Length: %d" % len(body)))
        self.assertEqual(read_until(connection, b"\r\n\r\n"), b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(body)
        read_until(connection, b"messageId")
        connection.close()
        connection = self.server.raw()
        connection.sendall(self.head(b"POST", b"/v1/messages", b"Expect: 100-continue", b"Content-Length: 99999999"))
        self.assertIn(b" 413 ", read_until(connection, b"\r\n\r\n"))
        connection.close()

    def test_chunked_bodies_http_1_0_and_head(self):
        connection = self.server.raw()
        connection.sendall(self.head(b"POST", b"/v1/messages", b"Transfer-Encoding: chunked"))
        connection.sendall(b'5\r\n{"to"\r\n16;x=y\r\n:"worker","payload":1}\r\n0\r\nTrailer: x\r\n\r\n')
        read_until(connection, b"messageId")
        connection.sendall(self.head(b"HEAD", b"/healthz") + self.head(b"GET", b"/healthz"))
        answers = read_until(connection, b'"status":"ok"')
        self.assertEqual(answers.count(b"HTTP/1.1 200"), 2)
        self.assertEqual(answers.count(b'"status"'), 1)
        connection.close()
        connection = self.server.raw()
        connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost:%d\r\n\r\n" % self.server.port)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        self.assertIn(b"Connection: close", answer)
        connection.close()

    def test_every_answer_has_the_safe_headers(self):
        for path in ("/about", "/healthz", "/metrics", "/belfry.css", "/nowhere"):
            response = self.server.request("GET", path)
            self.assertEqual(response.getheader("X-Content-Type-Options"), "nosniff")
            self.assertEqual(response.getheader("Cache-Control"), "no-store")
            self.assertTrue(response.getheader("Date").endswith(" GMT"))
            # G19
            self.assertEqual(response.getheader("Cross-Origin-Resource-Policy"), "same-origin")
            self.assertEqual(response.getheader("Cross-Origin-Opener-Policy"), "same-origin")
            self.assertEqual(response.getheader("Cross-Origin-Embedder-Policy"), "require-corp")

    def test_the_date_keeps_up_with_the_clock(self):
        deadline = time.monotonic() + 2.5  # over two changes of the second
        while time.monotonic() < deadline:
            before = time.time()
            date = parsedate_to_datetime(self.server.request("GET", "/healthz").getheader("Date")).timestamp()
            self.assertGreater(date, before - 1.5)  # a date has whole seconds, and half of one is for a busy machine
            self.assertLessEqual(date, time.time())

    # D18: a client that left is not handed a message
    def test_a_client_that_disconnects_while_waiting_gets_nothing(self):
        body = b'{"waitMs":50000,"leaseMs":3600000}'
        for _ in range(8):  # more than a message has attempts
            connection = self.server.raw()
            connection.sendall(self.head(b"POST", b"/v1/mailboxes/worker:receive", b"Content-Length: %d" % len(body)) + body)
            connection.close()
        deadline = time.monotonic() + PATIENCE
        while "belfry_connections 1\n" not in self.server.request("GET", "/metrics").text:
            self.assertLess(time.monotonic(), deadline)

        sent = self.send()

        messages = self.receive(waitMs=5000)
        self.assertEqual([(m["messageId"], m["attempt"]) for m in messages], [(sent["messageId"], 1)])

    def test_a_waiting_client_may_send_its_next_request_ahead(self):
        body = b'{"waitMs":20000}'
        connection = self.server.raw()
        connection.sendall(self.head(b"POST", b"/v1/mailboxes/worker:receive", b"Content-Length: %d" % len(body)) + body)
        connection.sendall(self.head(b"GET", b"/healthz"))
        self.send(delayMs=100)
        answers = read_until(connection, b'"status":"ok"')
        self.assertLess(answers.index(b'"lease"'), answers.index(b'"status"'))
        connection.close()

    def test_many_waiting_clients_each_get_one(self):
        got = []
        def wait():
            got.extend(self.receive(waitMs=10000))
        threads = [threading.Thread(target=wait) for _ in range(20)]
        for thread in threads:
            thread.start()
        for i in range(20):
            self.send(payload=i)
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(sorted(m["payload"] for m in got), list(range(20)))


class Limits(Case):
    def test_connections_past_the_limit_are_told_so(self):
        self.server.end()
        self.server = self.start(environment={"BELFRY_LIMITS_CONNECTIONS": "2"})
        first, second = self.server.raw(), self.server.raw()
        host = b"Host: localhost:%d\r\n\r\n" % self.server.port
        for connection in (first, second):
            connection.sendall(b"GET /healthz HTTP/1.1\r\n" + host)
            read_until(connection, b'"status":"ok"')
        third = self.server.raw()
        answer = read_until(third, b"}")
        self.assertIn(b" 429 ", answer)
        self.assertIn(b"overloaded", answer)
        third.close()
        first.close()
        second.sendall(b"GET /healthz HTTP/1.1\r\n" + host)
        read_until(second, b'"status":"ok"')
        second.close()

    # G16: sixteen of them would keep everybody else's out
    def test_a_batch_that_drips_is_ended(self):
        head = (b"POST /v1/messages:batch HTTP/1.1\r\nHost: localhost:%d\r\nTransfer-Encoding: chunked\r\n\r\n"
                % self.server.port)
        slow = [self.server.raw() for _ in range(16)]
        for connection in slow:
            self.addCleanup(connection.close)
            connection.sendall(head)
        fair = slow.pop()
        self.refusal(self.server.request("POST", "/v1/messages:batch", b"{}\n"), 429, "overloaded")
        began = time.monotonic()
        answers = b""
        while not answers and time.monotonic() - began < 60:
            for connection in slow:
                connection.sendall(b"1\r\n \r\n")
            slow[0].settimeout(2)
            try:
                answers = slow[0].recv(65536)
            except TimeoutError:
                pass
            # One that brings enough is waited for, however long it takes.
            fair.sendall(b"2800\r\n" + b" " * 0x27ff + b"\n\r\n")
        self.assertIn(b" 408 ", answers)
        self.assertIn(b"4096 bytes a second", answers)
        fair.sendall(b"1c\r\n" + b'{"to":"worker","payload":1}\n' + b"\r\n0\r\n\r\n")
        self.assertIn(b" 200 ", read_until(fair, b"messageId"))
        self.assertGreater(time.monotonic() - began, 25)
        self.assertLess(time.monotonic() - began, 40)
        line = b'{"to":"worker","payload":1}\n'
        self.assertEqual(self.server.request("POST", "/v1/messages:batch", line).status, 200)

    # D18
    def test_the_number_of_attempts_can_be_set(self):
        self.server.end()
        self.server = self.start(environment={"BELFRY_LIMITS_ATTEMPTS": "1"})
        self.send()
        lease = self.receive()[0]["lease"]
        self.server.call("POST", "/v1/mailboxes/worker:release", {"leases": [lease]})
        self.server.wait_for_log("bus.died")


class Strangers(Case):
    """Connections of somebody who has not shown who they are."""

    TOKEN = "correct-horse-battery"

    def begin(self, **environment):
        self.server.end()
        token = Path(self.folder.name) / "token"
        token.write_text(self.TOKEN + "\n")
        self.server = self.start("--token-file", str(token), environment=environment)

    def ask(self, path="/healthz"):
        return self.server.request("GET", path, headers={"Authorization": f"Bearer {self.TOKEN}"})

    def many(self, count, text=b""):
        connections = [self.server.raw() for _ in range(count)]
        for connection in connections:
            self.addCleanup(connection.close)
            connection.sendall(text)
        return connections

    def ended(self, connections):
        """Those that the server has ended by now, with what it had said before."""
        found = []
        for connection in connections:
            connection.settimeout(0.01)
            try:
                data = connection.recv(65536)
                if not data or b"Connection: close" in data:
                    found.append(data)
            except TimeoutError:
                pass
            except ConnectionResetError:
                found.append(b"")
        return found

    # G23
    def test_whoever_was_silent_for_longest_makes_room(self):
        self.begin(BELFRY_LIMITS_CONNECTIONS="20")
        silent = self.many(30)
        for _ in range(5):
            self.assertEqual(self.ask().status, 200)
        self.assertGreaterEqual(self.server.wait_for_log("server.strangers_let_go")["count"], 1)
        self.assertGreaterEqual(len(self.ended(silent[:10])), 10)
        self.assertEqual(self.ended(silent[-5:]), [])

    # G23
    def test_who_had_begun_is_told_why(self):
        self.begin(BELFRY_LIMITS_CONNECTIONS="20")
        begun = self.many(20, b"GET / HTTP/1.1\r\nX:")
        self.many(20, b"GET / HTTP/1.1\r\nX:")
        self.assertEqual(self.ask().status, 200)
        told = [answer for answer in self.ended(begun) if b" 429 " in answer]
        self.assertGreater(len(told), 10)
        self.assertIn(b"overloaded", told[0])

    # G23: whoever has the token is no stranger, also between two requests and while nothing happens
    def test_whoever_has_the_token_keeps_its_place(self):
        self.begin(BELFRY_LIMITS_CONNECTIONS="20")
        own = self.many(15, b"GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\nAuthorization: Bearer %s\r\n\r\n" %
                        (self.server.port, self.TOKEN.encode()))
        for connection in own:
            read_until(connection, b'"status":"ok"')
        self.many(40)
        self.assertEqual(self.ask().status, 200)
        self.assertEqual(self.ended(own), [])

    # G23: a connection is known by what it asked last; behind one there may be many
    def test_who_asks_without_the_token_later_on_is_a_stranger_again(self):
        self.begin(BELFRY_LIMITS_CONNECTIONS="5")
        host = b"GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\n" % self.server.port
        own = self.many(5, host + b"Authorization: Bearer %s\r\n\r\n" % self.TOKEN.encode())
        for connection in own:
            read_until(connection, b'"status":"ok"')
        with self.server.raw() as turned_away:
            self.assertIn(b" 429 ", read_until(turned_away, b"}"))
        own[0].sendall(host + b"\r\n")
        self.assertIn(b" 401 ", read_until(own[0], b"}"))
        self.assertEqual(self.ask().status, 200)
        self.assertEqual(len(self.ended(own)), 1)

    # G23
    def test_bodies_that_nobody_signed_share_what_there_is(self):
        head = b"POST /v1/people/user/inbox HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 262144\r\n\r\n" % self.server.port
        before = self.memory()
        bodies = self.many(250, head + b"x" * 250_000)
        self.assertEqual(self.server.request("GET", "/healthz").status, 200)
        self.assertLess(self.memory() - before, 40 << 20)
        self.assertGreater(len(self.ended(bodies)), 100)

    def memory(self):
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) << 10

    # G23
    def test_a_greeting_has_32_KiB_and_what_comes_after_it_a_mebibyte(self):
        upgrade = (b"GET /v1/ws HTTP/1.1\r\nHost: localhost:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                   b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" % self.server.port)
        masked = lambda size: b"\x81\xff" + size.to_bytes(8, "big") + bytes(4)  # noqa: E731
        short = lambda size: b"\x81\xfe" + size.to_bytes(2, "big") + bytes(4)  # noqa: E731
        connection = self.many(1, upgrade)[0]
        read_until(connection, b"\r\n\r\n")
        connection.sendall(short((32 << 10) + 1))
        self.assertIn((1009).to_bytes(2, "big"), read_until(connection, b"larger"))
        connection = self.many(1, upgrade)[0]
        read_until(connection, b"\r\n\r\n")
        sessions = [{"id": "c%012d" % i, "after": 1_000_000} for i in range(500)]
        hello = json.dumps({"op": "hello", "token": "t" * 4096, "person": "user", "sessions": sessions},
                           separators=(",", ":")).encode()
        connection.sendall(short(len(hello)) + hello)
        data = read_until(connection, b'"op":"welcome"')
        connection.sendall(masked(1 << 20) + b'{"op":"ping"}' + b" " * ((1 << 20) - 13))
        read_until(connection, b'"op":"pong"', data)


class Pages(Case):
    def test_the_page_about_it_in_two_languages(self):
        self.send(delayMs=60000)
        english = self.server.request("GET", "/about")
        chinese = self.server.request("GET", "/about", headers={"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"})
        self.assertIn('lang="en"', english.text)
        self.assertIn("worker", english.text)
        self.assertIn('lang="zh-CN"', chinese.text)
        self.assertIn('lang="zh-CN"', self.server.request("GET", "/about?lang=zh").text)
        self.assertIn('lang="en"', self.server.request("GET", "/about?lang=en", headers={"Accept-Language": "zh"}).text)
        policy = english.getheader("Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        for page in (english.text, chinese.text):
            self.assertNotRegex(page, r"<script|<style|style=|\bon\w+=|src=\"http|href=\"http")
        self.assertNotIn("Authorization", english.text)
        self.assertIn("worker:ack", english.text)
        self.assertEqual(self.server.request("GET", "/belfry.css").getheader("Content-Type"), "text/css; charset=utf-8")

    def test_the_panel_is_served_from_the_program(self):
        page = self.server.request("GET", "/")
        self.assertEqual(page.getheader("Content-Type"), "text/html; charset=utf-8")
        policy = page.getheader("Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(page.text, r"<style|style=|\bon\w+=|src=\"http|href=\"http|<script(?![^>]*src=)")
        for path in re.findall(r'(?:src|href)="(/[^"]*)"', page.text):
            self.assertEqual(self.server.request("GET", path).status, 200, path)
        script = self.server.request("GET", "/panel.js", headers={"Accept-Encoding": "gzip"})
        self.assertEqual(script.getheader("Content-Encoding"), "gzip")
        tag = script.getheader("ETag")
        self.assertEqual(self.server.request("GET", "/panel.js", headers={"If-None-Match": tag}).status, 304)

    def test_the_socket_is_a_websocket_and_nothing_else(self):
        self.refusal(self.server.request("GET", "/v1/ws"), 426, "unsupported")
        self.refusal(self.server.request("POST", "/v1/ws", {}), 405, "method_not_allowed")

    # D11
    def test_metrics_are_prometheus_text(self):
        self.send(delayMs=20)
        self.ack(self.receive(waitMs=5000))
        self.send(delayMs=60000)
        text = self.server.request("GET", "/metrics").text
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) .+|[a-z_]+(\{[a-z_]+="[^"]*"\})? [0-9.e+-]+)$')
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        self.assertEqual(values['belfry_messages{state="delayed"}'], "1")
        self.assertEqual(values["belfry_messages_accepted_total"], "2")
        self.assertEqual(values["belfry_messages_acked_total"], "1")
        self.assertEqual(values["belfry_lateness_seconds_count"], "1")
        self.assertGreater(int(values["belfry_store_group_rows_count"]), 0)
        self.assertGreater(int(values["process_resident_memory_bytes"]), 1 << 20)
        self.assertIn("belfry_build_info", text)


class Doors(Case):
    def head_of(self, *headers):
        connection = self.server.raw()
        connection.sendall(b"GET /healthz HTTP/1.1\r\n" + b"".join(h.encode() + b"\r\n" for h in headers) + b"\r\n")
        answer = read_until(connection, b"}")
        connection.close()
        return int(answer.split()[1]), answer

    def test_a_foreign_host_or_origin_is_turned_away(self):
        port = self.server.port
        for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
            self.assertEqual(self.head_of(f"Host: {host}:{port}")[0], 200)
        for hosts in ([f"Host: evil.example:{port}"], ["Host: localhost"], [f"Host: localhost:{port + 1}"], [], ["Host:"],
                      [f"Host: localhost:{port}", "Host: evil.example"]):
            status, answer = self.head_of(*hosts)
            self.assertEqual(status, 403)
            self.assertIn(b"forbidden_host", answer)
        good = f"Host: localhost:{port}"
        self.assertEqual(self.head_of(good, f"Origin: http://127.0.0.1:{port}")[0], 200)
        for origin in ("http://evil.example", "null", f"https://localhost:{port}", "http://localhost", ""):
            status, answer = self.head_of(good, f"Origin: {origin}")
            self.assertEqual(status, 403)
            self.assertIn(b"forbidden_origin", answer)

    # G19
    def test_pages_of_other_sites_may_link_here_and_load_nothing(self):
        def asked(path, site, mode, dest, method="GET", body=None):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
            return self.server.request(method, path, body, headers)
        for path in ("/", "/about", "/v1/agents"):
            self.assertEqual(asked(path, "cross-site", "navigate", "document").status, 200)
            self.refusal(asked(path, "cross-site", "navigate", "iframe"), 403, "forbidden_origin")
        for path in ("/belfry.svg", "/panel.js", "/v1/files/x.0.y.png", "/healthz"):
            self.refusal(asked(path, "cross-site", "no-cors", "image"), 403, "forbidden_origin")
            self.assertIn(asked(path, "same-origin", "no-cors", "image").status, (200, 404))
        message = {"to": "worker", "payload": 1}
        self.refusal(asked("/v1/messages", "cross-site", "no-cors", "empty", "POST", message), 403, "forbidden_origin")
        self.assertEqual(asked("/v1/messages", "same-origin", "cors", "empty", "POST", message).status, 201)

    # G19
    def test_the_host_of_an_absolute_uri_is_looked_at_like_the_header(self):
        for host, status in ((f"localhost:{self.server.port}", b" 200 "), ("evil.example", b" 403 "), ("", b" 403 ")):
            connection = self.server.raw()
            connection.sendall(b"GET http://%s/healthz HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (host.encode(), self.server.port))
            self.assertIn(status, read_until(connection, b"}"))
            connection.close()

    def test_the_guard_comes_before_the_body(self):
        connection = self.server.raw()
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100000\r\n\r\n")
        self.assertIn(b" 403 ", read_until(connection, b"forbidden_host"))
        connection.close()

    def test_more_hosts_can_be_allowed(self):
        self.server.end()
        self.server = self.start("--allow-host", "bells.example")
        for host in ("bells.example", "bells.example:8443", "BELLS.example"):
            self.assertEqual(self.head_of(f"Host: {host}")[0], 200)
        self.assertEqual(self.head_of("Host: bells.example", "Origin: https://bells.example")[0], 200)
        self.assertEqual(self.head_of("Host: notbells.example")[0], 403)

    def test_with_a_token_nothing_is_answered_without_it(self):
        self.server.end()
        token = Path(self.folder.name) / "token"
        token.write_text("correct-horse-battery\n")
        self.server = self.start("--token-file", str(token))
        for path in ("/about", "/healthz", "/metrics", "/v1/agents", "/nowhere"):
            response = self.server.request("GET", path)
            self.refusal(response, 401, "unauthorized")
            self.assertIn("Bearer", response.getheader("WWW-Authenticate"))
        for wrong in ("Bearer wrong", "Bearer correct-horse-batterx", "Basic correct-horse-battery", "Bearer ",
                      "Bearer correct-horse-batteryy"):
            self.refusal(self.server.request("GET", "/healthz", headers={"Authorization": wrong}), 401, "unauthorized")
        right = {"Authorization": "Bearer correct-horse-battery"}
        self.assertEqual(self.server.request("GET", "/healthz", headers=right).status, 200)
        self.assertIn("Authorization: Bearer $TOKEN", self.server.request("GET", "/about", headers=right).text)
        # The panel's own files are no secret; it asks for the token and shows nothing before.
        self.assertEqual(self.server.request("GET", "/").status, 200)
        self.belfry("mailbox", "worker", code=1)
        self.belfry("mailbox", "worker", environment={"BELFRY_TOKEN": "correct-horse-battery"})
        self.belfry("mailbox", "worker", "--token-file", str(token))


class Starts(Case):
    def refused(self, *flags, code=1, says="", **options):
        server = self.start(*flags, **options)
        self.assertEqual(server.ready_line, "")
        self.assertEqual(server.end(), code)
        said = "".join(line for line in server.log if line)
        self.assertIn(says, said)
        self.assertEqual(len(said.splitlines()), 1, said)

    def test_a_second_server_on_the_same_data_refuses(self):
        self.refused(says="data_in_use")
        self.send()
        self.assertEqual(self.counts(), (1, 0, 0))

    def test_a_port_in_use_refuses(self):
        other = Path(self.folder.name) / "other"
        self.refused(data=other, listen=f"127.0.0.1:{self.server.port}", says="in use")
        self.assertFalse(other.exists())
        self.refused(listen=f"127.0.0.1:{self.server.port}", says="data_in_use")

    def test_bad_settings_refuse_and_leave_nothing_behind(self):
        folder = Path(self.folder.name)
        new = folder / "new"
        self.refused(data=new, listen="0.0.0.0:0", says="--token-file")
        self.refused(data=new, listen="nonsense", code=2, says='--listen: "nonsense": a port is missing')
        self.refused("--token-file", str(folder / "none"), data=new, says="cannot read a token")
        self.refused("--bogus", data=new, code=2, says="--bogus")
        self.refused("--on-stop", "explode", data=new, code=2, says="--on-stop: \"explode\" is not deliver or keep")
        self.refused("--log-level", "loud", data=new, code=2, says="--log-level")
        self.refused("--log-format", "loud", data=new, code=2, says="--log-format")
        self.refused("--stop-deadline", "2h", data=new, code=2, says="--stop-deadline")
        self.refused(data=new, environment={"BELFRY_SERVER_LISTN": "x"}, code=2, says="BELFRY_SERVER_LISTN")
        (folder / "bad.toml").write_text("[server]\nlisten = \"127.0.0.1:0\"\nlisen = 5\n")
        self.refused("--config", str(folder / "bad.toml"), data=new, code=2, says="bad.toml:3: [server] lisen")
        self.assertFalse(new.exists())
        (folder / "file").write_text("")
        self.refused(data=folder / "file", says="data directory")
        (folder / "broken").mkdir()
        (folder / "broken/belfry.db").write_bytes(b"not a database, not at all" * 100)
        self.refused(data=folder / "broken", says="cannot open the data")

    def test_a_start_that_fails_quotes_no_statement(self):
        self.server.end()
        damaged = Path(self.folder.name) / "damaged"
        shutil.copytree(self.data, damaged)
        whole = (damaged / "belfry.db").read_bytes()
        (damaged / "belfry.db").write_bytes(whole[:200] + b"\xff" * (len(whole) - 200))
        (damaged / "belfry.db-wal").unlink(missing_ok=True)
        self.refused(data=damaged, says="the file is damaged")
        strange = Path(self.folder.name) / "strange"
        shutil.copytree(self.data, strange)
        database = sqlite3.connect(strange / "belfry.db")
        database.execute("ALTER TABLE recipient RENAME TO recipients")
        database.commit()
        database.close()
        (strange / "belfry.db-witness").unlink()
        self.refused(data=strange, says="its tables are not those of this version of Belfry")
        noted = Path(self.folder.name) / "noted"
        noted.mkdir()
        (noted / "belfry.db").mkdir()
        self.refused(data=noted, says="the disk or the file's permissions do not allow it")

    def test_another_programs_database_is_left_alone(self):
        for mode in ("DELETE", "WAL", "WAL with a log"):
            folder = Path(self.folder.name) / mode
            folder.mkdir()
            database = sqlite3.connect(folder / "belfry.db")
            database.execute(f"PRAGMA journal_mode = {mode.split()[0]}")
            database.execute("CREATE TABLE birds(name)")
            database.commit()
            if mode == "WAL with a log":  # as after a crash: a copy while it is open
                other = Path(self.folder.name) / "crashed"
                shutil.copytree(folder, other, ignore=shutil.ignore_patterns("*-shm"))
                folder = other
            database.close()
            before = {file.name: file.read_bytes() for file in folder.iterdir()}
            self.refused(data=folder, says="another program's database")
            self.assertEqual({file.name: file.read_bytes() for file in folder.iterdir()}, before)

    def test_an_empty_value_is_not_the_same_as_none(self):
        new = Path(self.folder.name) / "new"
        for flag in ("--token-file", "--data", "--listen", "--allow-host", "--config"):
            self.refused(flag, "", data=new, code=2, says=flag)
        for name in ("BELFRY_SERVER_TOKEN_FILE", "BELFRY_SERVER_DATA", "BELFRY_SERVER_ALLOW_HOSTS"):
            self.refused(data=new, environment={name: ""}, code=2, says=name)
        self.assertFalse(new.exists())

    def test_an_allowed_host_is_one_name_without_scheme_and_path(self):
        new = Path(self.folder.name) / "new"
        for name in ("http://bells.example", "bells.example/path", "two names", "bells.example:port", "[::1"):
            self.refused("--allow-host", name, data=new, code=2, says="--allow-host")
        self.refused("--allow-host", "bells.example", "more.example", data=new, code=2, says='"more.example"')

    def test_a_token_file_that_others_can_read_is_warned_about(self):
        self.server.end()
        token = Path(self.folder.name) / "token"
        token.write_text("correct-horse-battery\n")
        token.chmod(0o600)
        self.server = self.start("--token-file", str(token))
        self.server.wait_for_log("server.started")
        self.server.end()
        self.assertEqual(self.server.events("server.token_exposed"), [])
        token.chmod(0o640)
        self.server = self.start("--token-file", str(token))
        self.assertEqual(self.server.wait_for_log("server.token_exposed")["level"], "warn")
        self.server.end()
        token.chmod(0o602)
        self.refused("--token-file", str(token), says="anybody can write")

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_an_unreadable_directory_refuses(self):
        closed = Path(self.folder.name) / "closed"
        closed.mkdir(mode=0)
        self.refused(data=closed, says="data directory")

    def test_file_environment_and_flags_in_rising_priority(self):
        self.server.end()
        folder = Path(self.folder.name)
        (folder / "belfry.toml").write_text('[server]\nlisten = "127.0.0.1:1"\non_stop = "keep"\n[retention]\ndays = 3\n')
        self.server = self.start(cwd=folder, environment={"BELFRY_SERVER_LISTEN": "127.0.0.1:2"})
        self.assertTrue(self.server.port)

    def test_the_data_is_nobody_elses(self):
        self.assertEqual(self.data.stat().st_mode & 0o777, 0o700)
        for file in self.data.iterdir():
            self.assertEqual(file.stat().st_mode & 0o077, 0, file)


class Stops(Case):
    # D12, D7
    def test_a_graceful_stop_delivers_what_is_delayed(self):
        later = self.send(delayMs=7200000)
        sooner = self.send(delayMs=3600000)
        self.assertEqual(self.server.end(), 0)
        self.assertEqual(self.server.events("server.forced_delivery")[0]["msg"], "关闭时强制投递延迟消息")
        self.assertEqual(self.server.events("server.forced_delivery")[0]["count"], 2)
        stopped = self.server.events("server.stopped")[0]
        self.assertEqual((stopped["accepted"], stopped["delayed"], stopped["pending"]), (2, 0, 2))
        self.assertEqual(self.server.events("server.waiting"), [])
        self.belfry("doctor", "--data", str(self.data))

        self.server = self.start()

        self.assertIn("clean", self.server.wait_for_log("server.started")["msg"])
        messages = self.receive(max=10, waitMs=5000)
        while len(messages) < 2:
            messages += self.receive(max=10, waitMs=5000)
        self.assertEqual([m["messageId"] for m in messages], [sooner["messageId"], later["messageId"]])
        self.assertTrue(all(m["forced"] for m in messages))
        self.assertEqual(messages[1]["deliverAt"], later["scheduledDeliveryTime"])

    # D12
    def test_a_signal_while_the_server_starts_stops_it_gracefully(self):
        data = Path(self.folder.name) / "new"
        process = subprocess.Popen([BELFRY, "serve", "--listen", "127.0.0.1:0", "--data", str(data)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while not data.exists():
            self.assertLess(time.monotonic(), deadline, "it does not start")
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("server.stopped", said)

    # D12
    def test_keep_leaves_them_scheduled(self):
        self.server.end()
        self.server = self.start("--on-stop", "keep")
        sent = self.send(delayMs=3600000)
        self.assertEqual(self.server.end(signal.SIGINT), 0)
        self.server = self.start("--on-stop", "keep")
        self.assertEqual(self.counts(), (0, 1, 0))
        self.assertEqual(self.server.call("GET", f"/v1/messages/{sent['messageId']}")["deliverAt"],
                         sent["scheduledDeliveryTime"])

    # G12
    def test_while_stopping_sends_are_refused_receives_are_empty_and_acks_are_taken(self):
        self.send()
        self.send()
        held = self.receive()
        waiting = []
        self.server.call("POST", "/v1/agents", {"id": "idle"}, 201)
        thread = threading.Thread(target=lambda: waiting.append(
            self.server.call("POST", "/v1/mailboxes/idle:receive", {"waitMs": 60000})))
        thread.start()
        self.server.process.send_signal(signal.SIGTERM)
        self.server.wait_for_log("server.forced_delivery")
        waits = self.server.wait_for_log("server.waiting")
        self.assertIn("waiting for 1 message in receivers' hands", waits["msg"])
        self.assertEqual(waits["inFlight"], 1)

        answer = self.refusal(self.server.request("POST", "/v1/messages", {"to": "worker", "payload": 1}), 503, "stopping")
        self.assertGreater(answer["retryAfterMs"], 0)
        self.assertEqual(self.server.call("GET", "/healthz")["status"], "stopping")
        empty = self.server.call("POST", "/v1/mailboxes/worker:receive", {"waitMs": 60000})
        self.assertEqual(empty, {"messages": [], "stopping": True})
        self.assertIn("the server is stopping", self.belfry("receive", "worker", code=1).stderr)
        self.assertTrue(json.loads(self.belfry("receive", "worker", "--json", code=1).stdout)["stopping"])
        thread.join(PATIENCE)
        self.assertEqual(waiting[0]["messages"], [])
        self.assertIsNone(self.server.process.poll())
        self.assertEqual(self.ack(held), {"acked": 1})

        self.assertEqual(self.server.process.wait(PATIENCE), 0)

    # G12
    def test_a_stop_ends_at_its_deadline(self):
        self.server.end()
        self.server = self.start("--stop-deadline", "500ms")
        self.send()
        self.assertEqual(len(self.receive()), 1)
        idle = self.server.raw()
        began = time.monotonic()
        self.assertEqual(self.server.end(), 0)
        # For acks it waits three quarters of the time; the rest is for the end itself.
        self.assertGreaterEqual(time.monotonic() - began, 0.375)
        self.assertLess(time.monotonic() - began, 10)
        idle.close()
        self.assertEqual(self.server.events("server.stopped")[0]["inFlight"], 1)

    # G12
    def test_a_stop_does_not_wait_for_a_slow_batch(self):
        slow = self.server.raw()
        slow.sendall(b"POST /v1/messages:batch HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 1000000\r\n\r\n"
                     % self.server.port)
        slow.sendall(b'{"to":"worker","payload":1,"delayMs":3600000}\n' * 1500)
        while self.counts()[1] < 1000:
            pass
        began = time.monotonic()
        self.assertEqual(self.server.end(), 0)
        self.assertLess(time.monotonic() - began, 10)
        slow.close()

    # D13
    def test_a_second_signal_ends_it_at_once_and_nothing_is_lost(self):
        self.send()
        self.send(delayMs=3600000)
        self.receive()
        self.server.process.send_signal(signal.SIGTERM)
        self.server.wait_for_log("server.stopping")
        began = time.monotonic()
        self.assertEqual(self.server.end(signal.SIGINT), 130)
        self.assertLess(time.monotonic() - began, 1)
        warning = self.server.events("server.forced_exit")[0]
        self.assertEqual((warning["level"], warning["msg"], warning["count"]), ("warn", "强制退出，延迟消息保留在存储中", 1))
        self.assertIn(warning["forced"], (0, 1))  # whether it had been made pending before that signal
        self.belfry("doctor", "--data", str(self.data))

        self.server = self.start()
        self.assertEqual(self.server.wait_for_log("server.started")["live"], 2)

    # D13
    def test_a_forced_exit_says_what_had_been_delivered_before(self):
        self.send()
        self.send(delayMs=3600000)
        self.receive()
        self.server.process.send_signal(signal.SIGTERM)
        self.server.wait_for_log("server.forced_delivery")
        self.assertEqual(self.server.end(signal.SIGINT), 130)
        warning = self.server.events("server.forced_exit")[0]
        self.assertEqual((warning["count"], warning["forced"]), (1, 1))

    def test_a_kill_loses_nothing(self):
        ids = {self.send(delayMs=0 if i % 2 else 3600000)["messageId"] for i in range(50)}
        self.server.end(signal.SIGKILL)
        self.assertIn('"lastStopWasClean":false', self.belfry("doctor", "--data", str(self.data), "--json").stdout)
        self.server = self.start()
        self.assertEqual(self.server.wait_for_log("server.started")["level"], "warn")
        page = self.server.call("GET", "/v1/messages?limit=1000")
        self.assertEqual({m["messageId"] for m in page["messages"]}, ids)

    # D12: whatever was answered before the stop is delivered by it
    def test_a_stop_under_load_loses_nothing(self):
        accepted, stopped = [], threading.Event()
        def sender():
            while not stopped.is_set():
                try:
                    response = self.server.request("POST", "/v1/messages", {"to": "worker", "payload": 1, "delayMs": 3600000})
                except (OSError, http.client.HTTPException):
                    return
                if response.status != 201:
                    return
                accepted.append(json.loads(response.text)["messageId"])
        threads = [threading.Thread(target=sender) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(accepted) < 50:
            pass
        self.assertEqual(self.server.end(), 0)
        stopped.set()
        for thread in threads:
            thread.join(PATIENCE)
        forced = self.server.events("server.forced_delivery")[0]["count"]
        self.assertGreaterEqual(forced, len(accepted))
        self.server = self.start()
        messages = []
        while len(messages) < forced:
            messages += self.receive(max=1000, waitMs=5000)
        self.assertLessEqual(set(accepted), {m["messageId"] for m in messages})
        self.assertTrue(all(m["forced"] for m in messages))


class Commands(Case):
    def prepare(self):
        self.belfry("agents", "add", "worker")

    # D10, D16, D18
    def test_the_commands_of_the_readme(self):
        self.assertRegex(self.belfry("send", "--to", "worker", "hello").stdout, r"^[0-9a-z]{13}\n$")
        self.assertIn('{"text":"hello"}', self.belfry("receive", "worker", "--ack").stdout)
        sent = self.belfry("send", "--to", "worker", "--delay", "1s", '{"text":"tea"}').stdout
        self.assertIn("delivery at", sent)
        self.assertRegex(self.belfry("mailbox", "worker").stdout, r"delayed\s+1\n")
        self.assertIn('{"text":"tea"}', self.belfry("receive", "worker", "--wait", "100s", "--ack").stdout)
        story = self.belfry("why", sent.split()[0]).stdout
        for part in ("is acked", "sent", "due", "delivered", "late", "acked", "by worker"):
            self.assertIn(part, story)
        self.assertIn(sent.split()[0], self.belfry("messages", "list", "--state", "acked").stdout)

    def test_what_is_sent(self):
        self.belfry("send", "--to", "worker", "-", text="from stdin\n")
        self.belfry("send", "--to", "worker", "[1,2]")
        self.belfry("send", "--to", "worker", "5")
        messages = json.loads(self.belfry("receive", "worker", "--max", "9", "--json").stdout)["messages"]
        self.assertEqual([m["payload"] for m in messages], [{"text": "from stdin"}, [1, 2], {"text": "5"}])
        self.belfry("agents", "add", "other")
        both = json.loads(self.belfry("send", "--to", "worker", "--to", "other", "--json", "x").stdout)
        self.assertEqual(len(both["results"]), 2)
        self.belfry("send", "--to", "worker", "--to", "nobody", "x", code=1)

    # W
    def test_times_in_words(self):
        now = ("--now", "2026-11-18T15:20:00+08:00", "--tz", "Asia/Shanghai")
        said = self.belfry("when", "next", "Friday", "at", "3pm", *now).stdout
        self.assertTrue(said.startswith("Friday 27 November 2026 at 15:00 (UTC+08:00)\n"), said)
        self.assertIn("in 8 days and 23 hours", said)
        self.assertIn("2026年11月19日星期四 09:00", self.belfry("when", "明天9点", *now).stdout)
        self.assertEqual(json.loads(self.belfry("when", "明天9点", "--json", *now).stdout)["alternatives"],
                         ["2026-11-19T21:00:00+08:00"])
        self.assertIn("ambiguous_time", self.belfry("when", "明天9点", "--strict", "--json", *now, code=1).stdout)
        self.assertIn("says nothing about time", self.belfry("when", "banana", code=1).stderr)
        self.assertIn("--tz", self.belfry("when", "noon", "--tz", "Mars", code=2).stderr)
        self.belfry("when", code=2)
        lines = '{"id":1,"text":"tomorrow","ref":"2026-11-18T15:20:00Z","tz":"UTC","lang":"en"}\n{"id":"b","text":"x"}\nnonsense\n{"id":2,"text":"noon","tz":8}\n'
        answers = [json.loads(line) for line in self.belfry("when", "--batch", text=lines).stdout.splitlines()]
        self.assertEqual([(one.get("id"), one["ok"]) for one in answers], [(1, True), ("b", False), (None, False), (2, False)])
        self.assertEqual(answers[3]["message"], "tz is not a string")
        sent = self.belfry("send", "--to", "worker", "--at", "in two days", "x")
        self.assertIn("read as: ", sent.stdout)
        self.assertIn("delivery at", self.belfry("messages", "move", sent.stdout.split()[0], "--at", "三天后").stdout)
        self.assertIn("not_a_time", self.belfry("send", "--to", "worker", "--at", "soon", "x", code=1).stderr)

    # D16
    def test_changing_messages(self):
        first, second, third = (self.belfry("send", "--to", "worker", "--delay", "1h", "x").stdout.split()[0] for _ in range(3))
        self.belfry("messages", "move", first, "--delay", "5m")
        self.belfry("messages", "move", first, "--at", "2099-01-01T00:00:00Z")
        self.belfry("messages", "now", second)
        self.belfry("messages", "cancel", third)
        self.assertIn("already_cancelled", self.belfry("messages", "cancel", third, code=1).stderr)
        self.assertIn("cancelled", self.belfry("messages", "show", third).stdout)
        self.assertIn("2099-01-01", self.belfry("messages", "list").stdout)
        self.assertIn("no messages", self.belfry("messages", "dead", "list").stderr)
        self.belfry("messages", "dead", "retry", first, code=1)
        self.belfry("messages", "dead", "drop", first, code=1)
        self.assertIn("worker", self.belfry("agents", "list").stdout)
        self.belfry("agents", "remove", "worker")
        self.belfry("agents", "remove", "concierge")
        self.assertIn("nobody yet", self.belfry("agents", "list").stderr)

    def test_exit_codes(self):
        self.belfry("--version")
        for command in ("serve", "send", "receive", "messages", "mailbox", "agents", "why", "when", "doctor"):
            self.assertIn("--json" if command not in ("messages", "agents") else "list", self.belfry(command, "--help").stdout)
            self.belfry(command, "--version")
        self.belfry("mailbox", "nobody", code=1)
        self.belfry("send", "--to", "worker", "--delay", "soon", "x", code=2)
        self.belfry("send", "--to", "worker", "--expires", "tomorrow", "x", code=2)
        self.belfry("send", "x", code=2)
        self.assertIn("bogus", self.belfry("bogus", code=2).stderr)
        self.assertIn("bogus", self.belfry("messages", "bogus", code=2).stderr)
        self.belfry("mailbox", "worker", "--server", "ftp://x", code=2)
        gone = self.belfry("mailbox", "worker", "--server", "http://127.0.0.1:1", code=3)
        self.assertIn("belfry serve", gone.stderr)
        refused = json.loads(self.belfry("mailbox", "nobody", "--json", code=1).stdout)
        self.assertEqual(refused["error"], "unknown_recipient")

    def test_what_speaks_no_http_is_told_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            process = self.begin("mailbox", "worker", "--server", f"http://127.0.0.1:{other.getsockname()[1]}")
            with other.accept()[0] as connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                said = process.communicate(timeout=PATIENCE)[1]  # less than it would wait for more
        self.assertIn("speaks no HTTP", said)
        self.assertEqual(process.returncode, 3)

    def test_flags_in_front_of_a_subcommand_are_refused(self):
        sent = self.belfry("send", "--to", "worker", "--delay", "1h", "x").stdout.split()[0]
        for arguments in (("messages", "--server", "http://127.0.0.1:1", "cancel", sent),
                          ("messages", "--json", "cancel", sent), ("messages", "--to", "worker", "list"),
                          ("messages", "dead", "--to", "worker", "list"), ("messages", "--to", "worker", "dead", "list"),
                          ("agents", "--server", "http://127.0.0.1:1", "remove", "worker")):
            done = self.belfry(*arguments, code=2)
            self.assertIn("stands in front of", done.stdout + done.stderr)
        self.assertIn(sent, self.belfry("messages", "--to", "worker").stdout)
        self.assertIn("worker", self.belfry("agents").stdout)

    def usage(self, *arguments, says, **options):
        done = self.belfry(*arguments, code=2, **options)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^error: [^\n]+\n$")
        self.assertIn(says, done.stderr)

    def test_wrong_usage_is_one_line_that_names_the_flag(self):
        sent = self.belfry("send", "--to", "worker", "--delay", "1h", "x").stdout.split()[0]
        for flag in ("--delay", "--at", "--expires", "--key", "--from", "--task", "--to", "--server", "--token-file"):
            self.usage("send", "--to", "worker", flag, "", "x", says=flag)
        for flag in ("--to", "--from", "--state", "--after", "--limit"):
            self.usage("messages", flag, "", says=flag)
        self.usage("mailbox", "worker", says="BELFRY_URL", environment={"BELFRY_URL": ""})
        self.usage("send", "--to", "Worker", "x", says='--to "Worker"')
        self.usage("send", "--to", "worker", "--delay", "5", "--at", "2099-01-01T00:00:00Z", "x", says="only one of")
        self.usage("receive", "worker", "--max", "0", says='--max: "0"')
        self.usage("receive", "worker", "--max", "many", says='--max: "many"')
        self.usage("receive", "worker", "--lease", "1ms", says="--lease: 1ms")
        self.usage("receive", "worker", "--max", "1", "--max", "2", says="--max")
        self.usage("messages", "--limit", "0", says='--limit: "0"')
        self.usage("messages", "--state", "asleep", says='--state: "asleep"')
        self.usage("messages", "move", sent, "--delay", "5m", "--at", "2099-01-01T00:00:00Z", says="only one of")
        self.usage("messages", "move", sent, says="--delay or --at is missing")
        for name in ("", "a/b", "a b", "..", "a:ack"):
            if name != "..":
                self.usage("receive", name, says="is not an id")
                self.usage("mailbox", name, says="is not an id")
                self.usage("agents", "remove", name, says="is not an id")
            self.usage("why", name, says="is not a message id")
            self.usage("messages", "cancel", name, says="is not a message id")
        self.usage("--foo", says="--foo")
        self.usage("send", "--to", "worker", "--delai", "5m", "x", says="--delai")
        self.usage("send", "--to", "worker", "x", "y", says='"y"')
        self.usage("send", "--to", "worker", says="message is missing")
        self.usage("send", "x", says="--to is missing")
        self.usage(says="a command is missing")

    # D17
    def test_text_that_is_not_utf_8_is_refused_and_file_names_are_not(self):
        bad = b"caf\xe9"
        for flag in ("--key", "--task", "--from", "--to", "--at", "--expires", "--server"):
            self.usage("send", "--to", "worker", flag, bad, "x", says=f"{flag}: the value is not UTF-8")
        for arguments in (("send", "--to", "worker", bad), ("why", bad), ("receive", bad), ("agents", "add", bad),
                          ("runs", "show", bad), ("runs", "list", "--session", bad), ("tools", "call", bad),
                          ("schedule", "add", "--session", "s", "--at", "noon", bad), ("when", "tomorrow", bad),
                          ("run", "--key", bad, "-"), ("agents", "add", "a", "--kind", "model", "--tools", bad)):
            self.usage(*arguments, says="is not UTF-8")
        said = json.loads(self.belfry("send", "--to", "worker", "--key", bad, "x", "--json", code=2).stdout)
        self.assertEqual(said["error"], "invalid_argument")
        self.assertEqual(self.counts(), (0, 0, 0))
        folder = os.fsencode(self.folder.name) + b"/" + bad
        os.mkdir(folder)
        self.assertIn("no Belfry data", self.belfry("doctor", "--data", folder, code=1).stderr)

    def test_with_json_errors_are_json_on_stdout(self):
        for arguments, code, error in ((("mailbox", "worker", "--foo", "--json"), 2, "invalid_argument"),
                                       (("receive", "worker", "--max", "0", "--json"), 2, "invalid_argument"),
                                       (("why", "nonsense", "--json"), 2, "invalid_id"),
                                       (("mailbox", "worker", "--json", "--server", "http://127.0.0.1:1"), 3, "unavailable"),
                                       (("doctor", "--json", "--data", "/nowhere"), 1, "not_found"),
                                       (("mailbox", "nobody", "--json"), 1, "unknown_recipient")):
            done = self.belfry(*arguments, code=code)
            self.assertEqual(done.stderr, "")
            answer = json.loads(done.stdout)
            self.assertEqual(answer["error"], error)
            self.assertTrue(answer["message"])
        gone = self.belfry("mailbox", "worker", "--server", "http://127.0.0.1:1", code=3).stderr
        self.assertEqual(len(gone.splitlines()), 1)

    def test_deep_json_comes_back_or_is_refused(self):
        deep = "[" * 63 + "]" * 63
        self.belfry("send", "--to", "worker", deep)
        self.assertIn(deep, self.belfry("receive", "worker", "--ack").stdout)
        self.assertIn("63 levels", self.belfry("send", "--to", "worker", "[" * 64 + "]" * 64, code=2).stderr)
        self.assertIn("63 levels", self.belfry("send", "--to", "worker", ' {"a":' + "[" * 99, code=2).stderr)
        self.assertIn("sent as text", self.belfry("send", "--to", "worker", "{bad").stderr)
        self.assertEqual(self.belfry("send", "--to", "worker", "bad}").stderr, "")
        self.assertIn('{"text":"{bad"}', self.belfry("receive", "worker", "--ack").stdout)

    def test_show_tells_attempts_reason_and_force(self):
        sent = self.belfry("send", "--to", "worker", "--delay", "1h", "--expires", "2099-01-01T00:00:00Z", "x").stdout.split()[0]
        self.assertIn("expires 2099-01-01", self.belfry("messages", "show", sent).stdout)
        self.server.end()
        self.server = self.start()
        self.receive(waitMs=5000)
        shown = self.belfry("messages", "show", sent).stdout
        self.assertIn("forced", shown)
        self.assertIn("attempts 1", shown)
        lost = self.belfry("send", "--to", "worker", "x").stdout.strip()
        self.belfry("agents", "remove", "worker")
        self.server.wait_for_log("bus.died")
        self.assertIn("reason recipient_removed", self.belfry("messages", "show", lost).stdout)

    def test_output_that_cannot_be_written_is_no_success(self):
        for arguments in (("agents", "list"), ("messages", "--json"), ("--help",), ("--version",)):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([BELFRY, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                      env={**os.environ, "BELFRY_URL": f"http://127.0.0.1:{self.server.port}"})
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("could not be written", done.stderr)

    def begin(self, *arguments, stdout=subprocess.PIPE):
        """A command at work, for what happens to its output."""
        process = subprocess.Popen([BELFRY, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "BELFRY_URL": f"http://127.0.0.1:{self.server.port}"})
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.stderr.close)
        return process

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)

    # D18
    def test_what_could_not_be_printed_is_not_acked(self):
        for size in (10, 5000, 100000):  # from the second on the buffer is full, and a flush does not see what failed
            for more in ((), ("--json",)):
                sent = self.belfry("send", "--to", "worker", "-", text="x" * size).stdout.strip()
                with open("/dev/full", "w", encoding="ascii") as full:
                    process = self.begin("receive", "worker", "--ack", *more, stdout=full)
                    said = process.communicate(timeout=PATIENCE)[1]
                self.assertEqual(process.returncode, 1, said)
                self.assertIn("were not acked", said)
                self.assertIn("is leased", self.belfry("why", sent).stdout)

    def test_a_stdin_that_cannot_be_read_is_not_an_empty_one(self):
        for arguments in (("send", "--to", "worker", "-"), ("run", "-"), ("when", "--batch"), ("chat",)):
            for stdin in ("< /", "<&-"):
                done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {stdin}', BELFRY, *arguments], timeout=PATIENCE,
                                      capture_output=True, text=True, check=False,
                                      env={**os.environ, "BELFRY_URL": f"http://127.0.0.1:{self.server.port}"})
                self.assertEqual(done.returncode, 2, f"{arguments} {stdin}: {done.stdout}{done.stderr}")
                self.assertIn("stdin cannot be read", done.stderr)
        self.assertEqual(self.counts(), (0, 0, 0))
        self.belfry("send", "--to", "worker", "-", text="")
        self.assertIn('{"text":""}', self.belfry("receive", "worker", "--ack").stdout)

    # D18
    def test_an_ack_that_is_refused_is_no_success(self):
        for more in ((), ("--json",)):
            sent = self.belfry("send", "--to", "worker", "-", text="x" * 500000).stdout.strip()
            process = self.begin("receive", "worker", "--ack", "--lease", "100ms", *more)
            # More than a pipe holds: until it is read, nothing can be acked.
            self.until(lambda sent=sent: self.server.call("GET", f"/v1/messages/{sent}").get("attempts") == 1 and
                       self.server.call("GET", f"/v1/messages/{sent}")["state"] == "pending", "its lease does not end")
            out, said = process.communicate(timeout=PATIENCE)
            self.assertIn(sent, out)
            self.assertIn(f"{sent} was not acked", said)
            self.assertEqual(process.returncode, 1)
            self.belfry("receive", "worker", "--ack")

    def test_many_agents_are_one_document(self):
        names = [f"a{number:04}" for number in range(1005)]
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        for name in names:
            connection.request("POST", "/v1/agents", json.dumps({"id": name}), {"Content-Type": "application/json"})
            self.assertEqual(connection.getresponse().read() and 201, 201)
        connection.close()
        page = self.server.call("GET", "/v1/agents")
        self.assertIn("next", page)
        for command in (("agents", "--json"), ("agents", "list", "--json")):
            every = json.loads(self.belfry(*command).stdout)
            self.assertEqual(list(every), ["agents"])
            self.assertEqual(every["agents"][:len(page["agents"])], page["agents"])
            self.assertLessEqual(set(names), {one["id"] for one in every["agents"]})
        self.assertIn(names[-1], self.belfry("agents").stdout)

    def test_a_benchmark_leaves_nothing_behind(self):
        folder = Path(self.folder.name) / "bench"
        folder.mkdir()
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("bench", "agents", "--data", str(folder), "--json")
            self.until(lambda: any(folder.glob("belfry-bench-*/*")), "it does not begin")
            process.send_signal(number)
            process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 128 + number)
            self.assertEqual(list(folder.iterdir()), [])
        said = self.belfry("bench", "agents", "--data", "/proc", code=1).stderr
        self.assertRegex(said, r"^error: cannot make a folder in /proc: .*\(storage_failed\)\n$")
        said = self.belfry("bench", "bus", "--json", "--data", "/proc", code=1).stdout
        self.assertIn("/proc has 0 MB free", json.loads(said)["message"])

    def test_doctor_wants_data_that_nobody_uses(self):
        self.assertIn("data_in_use", self.belfry("doctor", "--data", str(self.data), code=1).stderr)
        self.assertIn("no Belfry data", self.belfry("doctor", "--data", self.folder.name, code=1).stderr)
        self.belfry("send", "--to", "worker", "x")
        self.server.end()
        before = {file: file.read_bytes() for file in self.data.iterdir()}
        done = self.belfry("doctor", "--data", str(self.data)).stdout
        self.assertRegex(done, r"worker\s+1\s+1\s+0\s+0\s+0\s+0")
        self.assertTrue(done.endswith("clean\n"))
        self.assertIn(str(self.data), done.splitlines()[0])
        self.assertEqual({file: file.read_bytes() for file in self.data.iterdir()}, before)

    def end_and_alter(self, sql):
        self.server.end()
        database = sqlite3.connect(self.data / "belfry.db")
        database.execute(sql)
        database.commit()
        database.close()
        (self.data / "belfry.db-witness").unlink()  # else the change is harm

    # G14
    def test_data_of_a_newer_belfry_is_refused_by_the_doctor_as_by_a_start(self):
        self.end_and_alter("UPDATE schema_version SET version = version + 1")
        said = self.belfry("doctor", "--data", str(self.data), code=1)
        self.assertEqual(said.stdout, "")
        self.assertIn("a newer Belfry has written it", said.stderr)
        server = self.start()
        self.assertEqual(server.end(), 1)
        self.assertIn("a newer Belfry has written it", server.log[0])

    # G14
    def test_data_of_an_older_belfry_is_brought_up_to_date_by_a_start_before_the_doctor_looks(self):
        self.end_and_alter("UPDATE schema_version SET version = version - 1 WHERE part = 'bus'")
        said = self.belfry("doctor", "--data", str(self.data), code=1)
        self.assertEqual(said.stdout, "")
        self.assertIn("an older Belfry has written it", said.stderr)

    # G14
    def test_doctor_names_damage_of_what_tells_the_rest(self):
        self.end_and_alter("INSERT INTO tally(changes) VALUES('7a')")
        said = json.loads(self.belfry("doctor", "--json", "--data", str(self.data), code=1).stdout)
        self.assertFalse(said["clean"])
        self.assertIn('the table "tally" holds what Belfry did not write', said["problems"])
        self.assertNotIn("lastStopWasClean", said)
        said = self.belfry("doctor", "--data", str(self.data), code=1).stdout
        self.assertIn('problem: the table "tally" holds what Belfry did not write\n', said)
        self.assertNotIn("the last stop was", said)

    def test_doctor_names_a_message_that_is_missing(self):
        sent = self.belfry("send", "--to", "worker", "--delay", "1h", "x").stdout.split()[0]
        self.end_and_alter("DELETE FROM message")
        said = self.belfry("doctor", "--data", str(self.data), code=1).stdout
        self.assertIn(f"for example message {sent}\n", said)

    # G14
    def test_doctor_makes_no_log_where_there_is_none(self):
        self.server.end()
        folder = Path(self.folder.name) / "a 100% copy? #2"
        folder.mkdir()
        database = sqlite3.connect(self.data / "belfry.db")  # the last one to close moves the log into the file
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        shutil.copy(self.data / "belfry.db", folder)
        for _ in range(2):
            self.assertIn("clean", self.belfry("doctor", "--data", str(folder)).stdout)
            self.assertEqual([file.name for file in folder.iterdir()], ["belfry.db"])

    def test_doctor_says_why_it_may_not_look(self):
        loop = Path(self.folder.name) / "loop"
        loop.symlink_to(loop)
        self.assertIn("Too many levels of symbolic links", self.belfry("doctor", "--data", str(loop), code=1).stderr)
        if os.geteuid() == 0:
            return  # root may read everything
        closed = Path(self.folder.name) / "closed"
        closed.mkdir(mode=0)
        self.assertIn("Permission denied", self.belfry("doctor", "--data", str(closed), code=1).stderr)

    def test_doctor_looks_where_the_server_would(self):
        self.server.end()
        named = {"BELFRY_SERVER_DATA": str(self.data)}
        self.assertIn(str(self.data), self.belfry("doctor", environment=named).stdout)
        settings = Path(self.folder.name) / "belfry.toml"
        settings.write_text(f'[server]\ndata = "{self.data}"\n')
        self.assertIn(str(self.data), self.belfry("doctor", "--config", str(settings)).stdout)

    def test_doctor_leaves_files_alone_that_are_not_ours(self):
        folder = Path(self.folder.name) / "foreign"
        folder.mkdir()
        file = folder / "belfry.db"
        for kind in ("nothing", "no database", "rollback", "wal"):
            if kind in ("rollback", "wal"):
                file.unlink()
                database = sqlite3.connect(file)
                database.execute(f"PRAGMA journal_mode = {'WAL' if kind == 'wal' else 'DELETE'}")
                database.execute("CREATE TABLE bus(a)")
                database.commit()
                database.close()
            else:
                file.write_bytes(b"" if kind == "nothing" else b"not a database" * 100)
            before = file.read_bytes()
            said = self.belfry("doctor", "--data", str(folder), code=1).stderr
            self.assertIn("no Belfry data", said)
            self.assertNotIn("SELECT", said)
            self.assertEqual(file.read_bytes(), before)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and os.access(sys.argv[1], os.X_OK):
        BELFRY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
