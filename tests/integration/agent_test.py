#!/usr/bin/env python3
"""Agents that think, with the real program, real sockets and a scripted model server.

    agent_test.py [BELFRY]        drives build/release/belfry unless another program is named
"""

import json
import signal
import ssl
import subprocess
import sys
import threading
import time
import unittest
from datetime import datetime
from pathlib import Path

import http_test
from http_test import PATIENCE, Case
from model_server import ModelServer, told

KEY = "sk-a-key-that-nobody-may-see"
OPTIONS = ["Monday", "Tuesday", "Friday"]
DELAY_MS = 1500


def story(body):
    """The model of the story: it answers by what it is told, so it is the same after every restart."""
    system = body["messages"][0]["content"]
    text = told(body)
    if system.startswith("You are bob"):
        return {"text": "Tuesday"}
    if "谢谢" in text:
        return {"text": "不客气。"}
    if "answers your message" in text:
        return {"text": "Bob says Tuesday."}
    if body["messages"][-1]["role"] == "tool":
        return {"text": "都安排好了。"}
    return {"calls": [
        ("send_message", {"to": "bob", "payload": {"text": "Which day?"}, "delayMs": DELAY_MS, "quickReplies": OPTIONS}),
        ("schedule_private_message", {"send_at": "明天早上9点", "message_text": "提醒我带伞"})]}


class AgentCase(Case):
    attempts = "4"

    def setUp(self):
        self.model = ModelServer(lambda body: {"text": "Yes."})
        self.addCleanup(self.model.close)
        super().setUp()

    def environment(self):
        return {"BELFRY_LLM_BASE_URL": f"http://127.0.0.1:{self.model.port}/v1", "BELFRY_LLM_MODEL": "scripted",
                "BELFRY_LLM_API_KEY_ENV": "TEST_MODEL_KEY", "TEST_MODEL_KEY": KEY,
                "BELFRY_LLM_ATTEMPTS": self.attempts, "BELFRY_USER_TIMEZONE": "Asia/Shanghai",
                "BELFRY_LLM_FIRST_BYTE_TIMEOUT_MS": "1000", "BELFRY_LLM_SILENCE_TIMEOUT_MS": "1000"}

    def start(self, *flags, **options):
        return super().start(*flags, environment=self.environment(), **options)

    def prepare(self):
        self.add("ann")
        self.session = self.server.call("POST", "/v1/sessions", {"user": "user", "agent": "ann"}, 201)["sessionId"]

    def add(self, name, **more):
        self.server.call("POST", "/v1/agents",
                         {"id": name, "kind": "model", "prompt": "You are {{agent}}.", **more}, 201)

    def say(self, text, key=None):
        self.server.call("POST", f"/v1/sessions/{self.session}/messages", {"text": text, **({"key": key} if key else {})}, 201)

    def lines(self):
        return self.server.call("GET", f"/v1/sessions/{self.session}/messages")["messages"]

    def texts(self):
        return [f"{line['from']}: {line['text']}" for line in self.lines()]

    def wait_for_text(self, text, patience=PATIENCE):
        return self.wait_for(lambda: text in self.texts(), self.texts, patience)

    def wait_for(self, wanted, shown, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if wanted():
                return
            time.sleep(0.02)
        raise AssertionError(f"it did not come to that: {shown()}\n{''.join(l or '' for l in self.server.log[-30:])}")

    def turns(self, agent):
        return self.server.call("GET", f"/v1/agents/{agent}/turns")["turns"]

    def kill_and_start(self):
        self.server.end(signal.SIGKILL)
        self.server = self.start()


class Story(AgentCase):
    """A person asks, the agent asks another one and sets a reminder; and the server is killed."""

    def prepare(self):
        super().prepare()
        self.add("bob")

    def tell(self, kill_at=None, then=0.0):
        self.killed = False
        self.aimed = False

        def at(stage, number):
            if self.aimed or (stage, number) != kill_at:
                return
            self.aimed = True
            if then:
                time.sleep(then)  # a moment later: what follows the answer is under way
            process = self.server.process
            process.kill()
            process.wait()  # a signal that was sent has ended nobody yet
            self.killed = True

        self.model.at = at
        self.model.answer = story
        self.say("问 bob 哪天，明天早上9点提醒我带伞", key="once")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.server.process.poll() is not None:
                self.kill_and_start()
            try:
                over = "ann: Bob says Tuesday." in self.texts() and all(t["state"] == "done" for t in self.turns("ann"))
                if over and self.killed == (kill_at is not None) and self.server.process.poll() is None:
                    break
            except OSError:
                continue
            time.sleep(0.02)
        self.check(f"killed at {kill_at} and {then} s")

    def check(self, context):
        self.assertEqual(self.texts(), ["user: 问 bob 哪天，明天早上9点提醒我带伞", "ann: 都安排好了。",
                                        "ann: Bob says Tuesday."], context)
        turns = self.turns("bob")
        self.assertEqual(len(turns), 1, context)
        written, began = (datetime.fromisoformat(turns[0][name]) for name in ("createdAt", "beganAt"))
        self.assertGreaterEqual((began - written).total_seconds() * 1000, DELAY_MS, context)
        bobs = [told(body) for _, body in self.model.requests if body["messages"][0]["content"].startswith("You are bob")]
        self.assertTrue(bobs)
        for text in bobs:
            self.assertIn('offered answers: "Monday", "Tuesday", "Friday"', text, context)
        tasks = self.server.call("GET", f"/v1/scheduled?session_id={self.session}")["tasks"]
        self.assertEqual([task["message_text"] for task in tasks], ["提醒我带伞"], context)
        self.assertIn("T01:00:00", tasks[0]["send_at"], "nine o'clock in Shanghai")
        # Its time comes: said without a model, and in the next context as the agent's own.
        before = len(self.model.requests)
        self.server.call("POST", f"/v1/scheduled/{tasks[0]['task_id']}:send", {})
        self.wait_for_text("ann: 提醒我带伞")
        self.assertEqual(len(self.model.requests), before, context)
        self.say("谢谢")
        self.wait_for_text("ann: 不客气。")
        last = self.model.requests[-1][1]["messages"]
        own = [m for m in last if m["role"] == "assistant" and "提醒我带伞" in (m.get("content") or "")]
        self.assertEqual(len(own), 1, context)
        self.assertIn("⟦written ", own[0]["content"])
        self.assertEqual(len([t for t in self.texts() if t == "ann: 提醒我带伞"]), 1, context)


# A1, A3, A5, D18, D20, P7
class StoryWithKills(Story):
    def test_nobody_is_killed(self):
        self.tell()
        self.assertFalse(self.killed)
        headers, _ = self.model.requests[0]
        self.assertEqual(headers["Authorization"], f"Bearer {KEY}")


def add_kill(stage, number, then):
    def test(self):
        self.tell((stage, number), then)
        self.assertTrue(self.killed)
    later = f"_{int(then * 1000)}_ms_later" if then else ""
    setattr(StoryWithKills, f"test_killed_when_request_{number}_is_{stage}{later}", test)


for request in (1, 2, 3, 4):
    for stage in ("asked", "half", "said"):
        add_kill(stage, request, 0)
    for then in (0.002, 0.006, 0.02):
        add_kill("said", request, then)


class Trouble(AgentCase):
    def troubled(self, trouble, times, **more):
        """The story, with each model request in trouble the first `times` times."""
        seen = {}

        def answer(body):
            name = json.dumps(body["messages"], ensure_ascii=False)
            seen[name] = seen.get(name, 0) + 1
            return {**story(body), **({"trouble": trouble, **more} if seen[name] <= times else {})}

        self.add("bob")
        self.model.answer = answer
        self.say("问 bob 哪天，明天早上9点提醒我带伞")
        self.wait_for_text("ann: Bob says Tuesday.", 60)
        Story.check(self, f"trouble {trouble}")

    def test_busy_servers_are_asked_again_when_they_say(self):
        self.troubled(429, 1, headers={"Retry-After": "1"})

    def test_broken_servers_are_asked_again(self):
        self.troubled(500, 1)

    def test_a_stream_cut_in_the_middle_of_a_tool_call_has_no_effect(self):
        self.troubled("cut", 1)

    def test_half_a_tool_call_has_no_effect(self):
        self.troubled("half", 1)

    def test_a_server_that_hangs_is_left(self):
        self.troubled("hang", 1)


class Ends(AgentCase):
    attempts = "1"

    def test_garbage_endless_and_huge_answers_are_said_to_be_so_and_the_talk_goes_on(self):
        for trouble in ("garbage", "huge"):
            self.model.answer = lambda body, trouble=trouble: {"trouble": trouble}
            before = len(self.texts())
            self.say("hello")
            self.wait_for(lambda: len(self.texts()) == before + 2, self.texts, 30)
            self.assertTrue(self.texts()[-1].startswith("belfry: ann could not answer: "), self.texts())
        self.model.answer = lambda body: {"text": "fine again"}
        self.say("still there?")
        self.wait_for_text("ann: fine again")

    def test_a_wrong_key_is_said_without_the_key(self):
        self.model.answer = lambda body: {"trouble": 401}
        self.say("hello")
        self.wait_for(lambda: len(self.texts()) == 2, self.texts)
        self.assertIn("401", self.texts()[1])
        self.server.end()
        self.assertFalse([line for line in self.server.log if line and KEY in line])

    def test_a_busy_server_is_waited_for_and_the_person_is_told_once(self):
        self.model.answer = lambda body: {"trouble": 429, "headers": {"Retry-After": "3600"}}
        self.say("hello?")
        self.wait_for(lambda: len(self.texts()) == 2, self.texts)
        self.assertIn("The model does not answer at the moment", self.texts()[1])
        self.model.answer = lambda body: {"text": "back"}
        self.wait_for_text("ann: back", 60)
        self.assertEqual(len(self.texts()), 3)

    def test_a_person_can_stop_it_and_a_stop_of_the_server_is_quick(self):
        self.model.answer = lambda body: {"trouble": "hang"}
        self.say("think")
        self.model.wait_for(1)
        self.assertEqual(self.server.call("POST", f"/v1/sessions/{self.session}:cancel", {})["cancelled"], 1)
        self.wait_for_text("belfry: Stopped.")
        self.say("think again")
        self.model.wait_for(2)
        began = time.monotonic()
        self.assertEqual(self.server.end(), 0)
        self.assertLess(time.monotonic() - began, 5)
        self.model.answer = lambda body: {"text": "after the stop"}
        self.server = self.start()
        self.wait_for_text("ann: after the stop")

    def test_text_streams_as_a_draft(self):
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        self.model.at = lambda stage, number: stage == "half" and go_on.wait(PATIENCE)
        self.model.answer = lambda body: {"text": "Once upon a time there was a bell."}
        self.say("story")
        drafts = lambda: self.server.call("GET", f"/v1/sessions/{self.session}/drafts")["drafts"]
        self.wait_for(lambda: drafts() and drafts()[0]["text"].startswith("Once"), drafts)
        self.assertNotIn("bell.", drafts()[0]["text"])
        go_on.set()
        self.wait_for_text("ann: Once upon a time there was a bell.")
        self.assertEqual(drafts(), [])


class Many(AgentCase):
    """Two hundred conversations that are thought about at the same time."""

    COUNT = 200
    KIB_MAX = 256  # a session, beyond its context

    def environment(self):
        return {**super().environment(), "BELFRY_LLM_SILENCE_TIMEOUT_MS": "60000",
                "BELFRY_LLM_FIRST_BYTE_TIMEOUT_MS": "60000"}

    def status(self, field):
        text = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(field + ":"))

    # A1, G18
    def test_no_thread_and_little_memory_for_each(self):
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        sessions = [self.server.call("POST", "/v1/sessions", {"user": f"p{i}", "agent": "ann"}, 201)["sessionId"]
                    for i in range(self.COUNT)]
        self.say("hello")  # what is made once for all of them is there
        self.wait_for_text("ann: Yes.")
        threads, before = self.status("Threads"), self.status("VmRSS")
        self.model.at = lambda stage, number: stage == "half" and go_on.wait(60)
        asked = len(self.model.requests)
        for session in sessions:
            self.server.call("POST", f"/v1/sessions/{session}/messages", {"text": "hello"}, 201)
        self.model.wait_for(asked + self.COUNT, 60)
        grown = self.status("VmRSS") - before
        self.assertEqual(self.status("Threads"), threads)
        self.assertLessEqual(grown / self.COUNT, self.KIB_MAX, f"{grown} KiB for {self.COUNT} sessions")
        # Others do not wait for them.
        self.server.call("POST", "/v1/agents", {"id": "worker", "kind": "external"}, 201)
        self.send(delayMs=50)
        got = self.receive(waitMs=5000)
        self.assertEqual(len(got), 1)
        go_on.set()
        for session in sessions:
            page = f"/v1/sessions/{session}/messages?after=1&waitMs=20000"
            self.assertEqual(self.server.call("GET", page)["messages"][0]["text"], "Yes.")
        print(f"{grown / self.COUNT:.1f} KiB a session", file=sys.stderr)


class Tls(AgentCase):
    """A model server with a certificate of a CA that only this test knows."""

    def setUp(self):
        import tempfile
        folder = tempfile.TemporaryDirectory(prefix="belfry-tls-")
        self.addCleanup(folder.cleanup)
        self.ca = Path(folder.name)
        make = lambda *args: subprocess.run(["openssl", *args], cwd=self.ca, check=True, capture_output=True)
        for name in ("ca", "other"):
            make("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem",
                 "-days", "2", "-subj", f"/CN={name}")
        make("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=model")
        (self.ca / "names").write_text("subjectAltName=DNS:localhost\n")
        make("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
             "server.pem", "-days", "2", "-extfile", "names")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca / "server.pem", self.ca / "server.key")
        self.tls_model = ModelServer(lambda body: {"text": "over TLS"}, tls=context)
        self.addCleanup(self.tls_model.close)
        super().setUp()

    host = "localhost"
    trusted = "ca.pem"
    attempts = "1"

    def environment(self):
        return {**super().environment(), "BELFRY_LLM_BASE_URL": f"https://{self.host}:{self.tls_model.port}/v1",
                "BELFRY_LLM_CA_FILE": str(self.ca / self.trusted)}

    def test_a_server_of_a_local_ca_is_trusted(self):
        self.say("hello")
        self.wait_for_text("ann: over TLS")


class WrongHost(Tls):
    host = "127.0.0.1"

    def test_a_server_of_a_local_ca_is_trusted(self):
        self.say("hello")
        self.wait_for(lambda: len(self.texts()) == 2, self.texts)
        self.assertIn("The model does not answer", self.texts()[1])
        self.assertEqual(self.tls_model.requests, [])


class WrongCa(WrongHost):
    host = "localhost"
    trusted = "other.pem"


class Settings(AgentCase):
    # A9
    def test_agents_of_the_settings_are_there_and_profiles_can_be_changed(self):
        self.server.end()
        (Path(self.folder.name) / "helper.md").write_text("You are {{agent}}, with {{people}}.")
        config = Path(self.folder.name) / "belfry.toml"
        config.write_text('[[agents]]\nid = "helper"\nprompt = "helper.md"\ntools = ["reply", "send_message"]\n')
        self.server = self.start("--config", str(config))
        self.wait_for(lambda: self.server.request("GET", "/v1/agents/helper").status == 200, lambda: "no helper")
        shown = self.server.call("GET", "/v1/agents/helper")
        self.assertEqual(shown["profile"]["prompt"], "You are {{agent}}, with {{people}}.")
        self.assertEqual(shown["profile"]["tools"], ["reply", "send_message"])
        changed = self.server.call("PATCH", "/v1/agents/helper", {"stepsMax": 3})
        self.assertEqual((changed["profile"]["stepsMax"], changed["profile"]["tools"]), (3, ["reply", "send_message"]))
        for body, word in (({"prompt": "{{nobody}}"}, "nobody"), ({"stepsMax": 0}, "stepsMax"), ({"x": 1}, "x"),
                           ({"groups": "often"}, "groups")):
            answer = json.loads(self.server.request("PATCH", "/v1/agents/helper", body).text)
            self.assertIn(word, answer["message"])
        done = self.belfry("agents", "turns", "helper")
        self.assertEqual(done.stdout, "")
        self.belfry("agents", "remove", "helper")
        self.refusal(self.server.request("GET", "/v1/agents/helper"), 404, "not_found")

    def test_a_wrong_prompt_or_agent_refuses_to_start(self):
        config = Path(self.folder.name) / "belfry.toml"
        for text, word in (('[[agents]]\nid = "a b"', "id"), ('[[agents]]\nid = "x"\nprompt = "no-such.md"', "no-such.md"),
                           ('[[agents]]\nid = "x"\nprompt_text = "{{what}}"', "what"),
                           ('[[agents]]\nid = "x"\n[[agents]]\nid = "x"', "twice"),
                           ('[[agents]]\nid = "x"\nkind = "echo"', "kind")):
            config.write_text(text)
            done = subprocess.run([http_test.BELFRY, "serve", "--listen", "127.0.0.1:0", "--config", str(config),
                                   "--data", str(self.data) + "2"], capture_output=True, text=True, timeout=PATIENCE,
                                  check=False)
            self.assertNotEqual(done.returncode, 0, text)
            self.assertIn(word, done.stderr, text)

    # A6
    def test_facts_are_shown_and_forgotten(self):
        self.add("mem", memory=True)
        self.session = self.server.call("POST", "/v1/sessions", {"user": "user", "agent": "mem"}, 201)["sessionId"]
        self.model.answer = lambda body: {"text": '{"facts":[{"person":"user","text":"likes tea"}],"forget":[]}'} \
            if "short facts" in body["messages"][0]["content"] else {"text": "noted"}
        self.say("I like tea")
        facts = lambda: self.server.call("GET", "/v1/people/user/facts")["facts"]
        self.wait_for(facts, facts)
        self.assertEqual(facts()[0]["text"], "likes tea")
        self.assertIn("likes tea", self.belfry("people", "facts", "user").stdout)
        self.belfry("people", "forget", "user", "--number", str(facts()[0]["number"]))
        self.assertEqual(facts(), [])
        self.refusal(self.server.request("GET", "/v1/people/nobody/facts"), 404, "not_found")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        http_test.BELFRY = sys.argv.pop(1)
    unittest.main()
