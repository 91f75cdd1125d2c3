#!/usr/bin/env python3
"""The webhook channel with the real program and real sockets: a receiver that answers, refuses, hangs and hangs up.

    webhook_test.py [BELFRY]        drives build/release/belfry unless another program is named
"""

import hashlib
import hmac
import http.server
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import http_test
from http_test import PATIENCE, Case

SECRET = "a secret of some length"


def sign(body, at=None, secret=SECRET):
    at = int(time.time() if at is None else at)
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class Receiver:
    """Answers what it is told to: a status, `slow` (200 when it is over), `hang` (nothing), `close`, `nonsense`."""

    def __init__(self, *script, tls=None):
        self.script = list(script)  # the last one stays
        self.heard = []
        self.news = threading.Condition()
        self.over = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.answer(self, body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def answer(self, request, body):
        with self.news:
            self.heard.append((dict(request.headers), body))
            what = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            self.news.notify_all()
        request.close_connection = True
        if what == "slow":
            self.over.wait(PATIENCE)
            what = 200
        if what == "hang":
            self.over.wait(PATIENCE)
        elif what == "nonsense":
            request.wfile.write(b"SSH-2.0-nothing\r\n\r\n")
        elif what != "close":
            status, headers = what if isinstance(what, tuple) else (what, {})
            request.send_response(status)
            for name, value in headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", "0")
            request.end_headers()

    def wait_for(self, count):
        deadline = time.monotonic() + PATIENCE
        with self.news:
            while len(self.heard) < count:
                if not self.news.wait(deadline - time.monotonic()):
                    raise AssertionError(f"{len(self.heard)} of {count} requests came")

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


class WebhookCase(Case):
    def prepare(self):
        self.server.call("POST", "/v1/agents", {"id": "bot", "kind": "external"}, 201)
        self.session = self.server.call("POST", "/v1/sessions", {"user": "ann", "agent": "bot"}, 201)["sessionId"]

    def receiver(self, *script, **options):
        receiver = Receiver(*script, **options)
        self.addCleanup(receiver.close)
        return receiver

    def set_webhook(self, port, **more):
        body = {"url": f"http://127.0.0.1:{port}/hook", "secret": SECRET, **more}
        return self.server.call("PUT", "/v1/people/ann/webhook", body)

    def schedule(self, text="hi", when="in 0 seconds"):
        body = {"session_id": self.session, "send_at": when, "message_text": text}
        return self.server.call("POST", "/v1/scheduled", body, 201)["task_id"]

    def task(self, task_id):
        return self.server.call("GET", f"/v1/scheduled/{task_id}")["task"]

    def wait_until(self, task_id, wanted):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            task = self.task(task_id)
            if wanted(task):
                return task
            time.sleep(0.02)
        raise AssertionError(f"it did not come to that: {task}")

    def end_of(self, task_id):
        return self.wait_until(task_id, lambda task: task["status"] != "pending")

    def texts(self):
        lines = self.server.call("GET", f"/v1/sessions/{self.session}/messages")["messages"]
        return [line["text"] for line in lines]

    def post(self, body, signature=None, person="ann", headers=None):
        data = json.dumps(body).encode()
        sent = {"Belfry-Signature": sign(data) if signature is None else signature, **(headers or {})}
        return self.server.request("POST", f"/v1/people/{person}/inbox", data, sent)


class Outgoing(WebhookCase):
    # P13
    def test_a_message_arrives_signed_and_is_said(self):
        receiver = self.receiver(200)
        shown = self.set_webhook(receiver.port, timeout_ms=5000)
        self.assertEqual((shown["user"], shown["idempotent"], shown["timeout_ms"]), ("ann", False, 5000))
        self.assertNotIn(SECRET, json.dumps(shown))
        task = self.end_of(self.schedule("喝水"))
        self.assertEqual(task["status"], "sent")
        headers, body = receiver.heard[0]
        at = int(headers["Belfry-Signature"].split(",")[0][2:])
        self.assertEqual(headers["Belfry-Signature"], sign(body, at))
        self.assertLess(abs(at - time.time()), 60)
        self.assertEqual(headers["Idempotency-Key"], task["sent_message_id"])
        message = json.loads(body)
        self.assertEqual((message["text"], message["user"], message["agent"], message["source"]),
                         ("喝水", "ann", "bot", "scheduled_send"))
        self.assertEqual(self.texts(), ["喝水"])
        self.server.end()
        self.assertFalse([line for line in self.server.log if line and SECRET in line])

    # P13
    def test_what_an_agent_says_is_in_the_log_and_goes_out(self):
        receiver = self.receiver(200)
        self.set_webhook(receiver.port)
        for text in ("one", "two"):
            body = {"to": "ann", "from": "bot", "sessionId": self.session, "payload": {"text": text}}
            self.server.call("POST", "/v1/messages", body, 201)
        receiver.wait_for(2)
        self.assertEqual([json.loads(body)["text"] for _, body in receiver.heard], ["one", "two"])
        self.assertEqual(self.texts(), ["one", "two"])

    # P12
    def test_refused_connections_busy_and_broken_receivers_are_tried_again(self):
        nobody = socket.socket()
        nobody.bind(("127.0.0.1", 0))
        self.addCleanup(nobody.close)
        receiver = self.receiver(500, (429, {"Retry-After": "15"}), 200)
        self.set_webhook(nobody.getsockname()[1])
        task_id = self.schedule()
        task = self.wait_until(task_id, lambda task: "last_error" in task)
        self.assertEqual(task["status"], "pending")
        self.assertIn("refused", task["last_error"])
        # Another address counts at once; being sent now, too.
        self.set_webhook(receiver.port)
        for count in (1, 2, 3):
            receiver.wait_for(count)
            if count < 3:
                self.wait_until(task_id, lambda task: str([500, 429][count - 1]) in task["last_error"])
                waiting = self.server.call("GET", "/v1/people/ann/outbox")["messages"][0]
                self.assertEqual((waiting["state"], waiting["attempts"]), ("waiting", count + 1))
                self.server.call("POST", f"/v1/scheduled/{task_id}:send")
        self.assertEqual(self.end_of(task_id)["status"], "sent")
        self.assertEqual(len({(headers["Idempotency-Key"], body) for headers, body in receiver.heard}), 1)

    # P13
    def test_a_lost_answer_is_an_unknown_outcome(self):
        for what in ("close", "hang", "nonsense"):
            receiver = self.receiver(what)
            self.set_webhook(receiver.port, timeout_ms=700)
            task = self.end_of(self.schedule(what))
            self.assertEqual((task["status"], task["reason"]), ("failed", "outcome_unknown"), what)
            self.assertIn("did not answer", task["last_error"])
            self.assertEqual(len(receiver.heard), 1)
        self.assertEqual(self.texts(), [])

    # P13
    def test_a_refusal_ends_it(self):
        for status in (302, 400, 404):
            receiver = self.receiver((status, {"Location": "http://127.0.0.1:1/"}))
            self.set_webhook(receiver.port)
            task = self.end_of(self.schedule())
            self.assertEqual((task["status"], task["reason"], task["last_error"]),
                             ("failed", "refused", f"the receiver answered {status}"))

    # P13
    def test_a_receiver_that_knows_keys_is_asked_again_after_a_kill(self):
        receiver = self.receiver("hang", 200)
        self.set_webhook(receiver.port, idempotent=True)
        task_id = self.schedule()
        receiver.wait_for(1)
        answer = self.server.request("DELETE", f"/v1/scheduled/{task_id}")
        self.refusal(answer, 409, "being_sent")
        self.server.end(signal.SIGKILL)
        self.server = self.start()
        self.refusal(self.server.request("DELETE", f"/v1/scheduled/{task_id}"), 409, "being_sent")
        self.server.call("POST", f"/v1/scheduled/{task_id}:send")
        self.assertEqual(self.end_of(task_id)["status"], "sent")
        self.assertEqual(len({(headers["Idempotency-Key"], body) for headers, body in receiver.heard}), 1)

    # P13
    def test_a_stop_waits_for_the_answer(self):
        receiver = self.receiver("slow")
        self.set_webhook(receiver.port)
        task_id = self.schedule()
        receiver.wait_for(1)
        timer = threading.Timer(0.5, receiver.over.set)
        timer.start()
        self.assertEqual(self.server.end(), 0)
        self.assertTrue(receiver.over.is_set(), "it has not waited")
        timer.join()
        self.server = self.start()
        self.assertEqual(self.task(task_id)["status"], "sent")

    # P13
    def test_a_stop_does_not_wait_for_ever(self):
        receiver = self.receiver("hang")
        self.set_webhook(receiver.port, timeout_ms=30000)
        self.server.end()
        self.server = self.start("--stop-deadline", "1s")
        task_id = self.schedule()
        receiver.wait_for(1)
        began = time.monotonic()
        self.assertEqual(self.server.end(), 0)
        self.assertLess(time.monotonic() - began, 10)
        self.server = self.start()
        self.assertEqual(self.task(task_id)["reason"], "outcome_unknown")
        self.assertEqual(len(receiver.heard), 1)

    # P13
    def test_names_and_certificates_are_checked(self):
        folder = Path(self.folder.name)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
            check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        receiver = self.receiver(200, tls=context)
        self.server.call("PUT", "/v1/people/ann/webhook", {"url": f"https://localhost:{receiver.port}/", "secret": SECRET})
        stranger = self.wait_until(self.schedule("to a stranger"), lambda task: "last_error" in task)
        self.assertIn("certificate verify failed", stranger["last_error"])
        self.assertEqual(receiver.heard, [])
        self.server.end()
        # With the certificate among those that are trusted, under its own name and under another one.
        self.server = self.start(environment={"SSL_CERT_FILE": str(folder / "cert.pem")})
        self.server.call("POST", f"/v1/scheduled/{stranger['task_id']}:send")
        self.assertEqual(self.end_of(stranger["task_id"])["status"], "sent")
        self.server.call("PUT", "/v1/people/ann/webhook", {"url": f"https://127.0.0.1:{receiver.port}/"})
        wrong = self.wait_until(self.schedule("wrong name"), lambda task: "last_error" in task)
        self.assertIn("certificate verify failed", wrong["last_error"])
        self.server.call("PUT", "/v1/people/ann/webhook", {"url": "http://nowhere.invalid/"})
        lost = self.wait_until(wrong["task_id"], lambda task: "nowhere.invalid" in task["last_error"])
        self.assertEqual(lost["status"], "pending")


class Incoming(WebhookCase):
    def prepare(self):
        super().prepare()
        self.set_webhook(9)

    # P13
    def test_what_a_person_says_outside_reaches_the_agent_once(self):
        for _ in range(2):
            response = self.post({"id": "m1", "text": "你好"})
            self.assertEqual(response.status, 201, response.text)
        got = self.server.call("POST", "/v1/mailboxes/bot:receive", {"max": 10})["messages"]
        self.assertEqual([(one["from"], one["payload"]["text"]) for one in got], [("ann", "你好")])
        self.refusal(self.post({"id": "m1", "text": "other"}), 409, "key_conflict")

    # P13
    def test_what_is_not_signed_is_not_heard(self):
        body = {"id": "m1", "text": "hi"}
        data = json.dumps(body).encode()
        said = set()
        for person, signature in (("ann", sign(data, secret="another secret entirely")), ("bob", sign(data)),
                                  ("ann", sign(b"other")), ("user", sign(data))):
            said.add(self.refusal(self.post(body, signature, person), 403, "bad_signature")["message"])
        self.assertEqual(len(said), 1, "who exists is not told")
        for signature in ("", "t=1", sign(data, time.time() - 400), sign(data, time.time() + 400)):
            self.refusal(self.post(body, signature), 403, "bad_signature")
        self.refusal(self.post({"id": "m2", "text": "x" * 300_000}), 413, "too_large")
        self.refusal(self.post({"id": "m2", "text": "x", "to": "bot"}), 400, "unknown_field")
        self.refusal(self.post({"text": "x"}), 400, "invalid_argument")
        self.refusal(self.post(body, headers={"Host": "evil.example"}), 403, "forbidden_host")
        self.refusal(self.post(body, headers={"Origin": "http://evil.example"}), 403, "forbidden_origin")
        self.assertEqual(self.texts(), [])

    # P13, G19
    def test_the_signature_stands_for_the_token_on_this_route_only(self):
        token = Path(self.folder.name) / "token"
        token.write_text("a-token-of-this-server\n")
        token.chmod(0o600)
        self.server.end()
        self.server = self.start("--token-file", str(token))
        self.assertEqual(self.post({"id": "m1", "text": "hi"}).status, 201)
        for method, path in (("GET", "/v1/people/ann/inbox"), ("GET", "/v1/people/ann/outbox"), ("GET", "/v1/nothing"),
                             ("GET", "/v1/people/ann/webhook"), ("DELETE", "/v1/people/ann/webhook")):
            self.refusal(self.server.request(method, path, headers={"Belfry-Signature": sign(b"")}), 401, "unauthorized")

    # P13
    def test_the_command_sets_shows_and_removes_them(self):
        secret = Path(self.folder.name) / "secret"
        secret.write_text(SECRET + "\n")
        secret.chmod(0o600)
        self.assertEqual(self.belfry("people").stdout.split(), ["ann", "user"])
        set_to = ("people", "webhook", "user", "--url", "http://127.0.0.1:9/x", "--timeout", "5s", "--idempotent")
        self.belfry(*set_to, code=1)  # the first time it needs a secret
        self.belfry(*set_to, "--secret-file", str(secret))
        shown = self.belfry("people", "webhook", "user").stdout
        self.assertIn("http://127.0.0.1:9/x  timeout 5 s  idempotent", shown)
        self.server.call("POST", "/v1/messages", {"to": "user", "from": "bot", "payload": {"text": "hi"}}, 201)
        deadline = time.monotonic() + PATIENCE
        while "refused" not in self.belfry("people", "outbox", "user").stdout:
            self.assertLess(time.monotonic(), deadline)
        self.belfry("people", "webhook", "user", "--idempotent", code=2)
        self.belfry("people", "webhook", "user", "--remove")
        self.belfry("people", "webhook", "user", code=1)

    # P13
    def test_webhooks_are_shown_without_their_secret_and_removed(self):
        shown = self.server.request("GET", "/v1/people/ann/webhook").text
        self.assertNotIn(SECRET, shown)
        self.assertNotIn("secret", shown)
        for status, error, body in ((400, "invalid_argument", {"url": "gopher://x", "secret": SECRET}),
                                    (400, "invalid_argument", {"secret": SECRET}),
                                    (400, "invalid_argument", {"url": "http://x/", "secret": "short"}),
                                    (400, "invalid_argument", {"url": "http://x/", "timeout_ms": 1}),
                                    (400, "unknown_field", {"url": "http://x/", "uri": 1})):
            self.refusal(self.server.request("PUT", "/v1/people/ann/webhook", body), status, error)
        self.refusal(self.server.request("GET", "/v1/people/nobody/webhook"), 404, "not_found")
        self.server.call("DELETE", "/v1/people/ann/webhook")
        self.refusal(self.server.request("GET", "/v1/people/ann/webhook"), 404, "not_found")
        self.refusal(self.post({"id": "m1", "text": "hi"}), 403, "bad_signature")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        http_test.BELFRY = sys.argv.pop(1)
    unittest.main()
