#!/usr/bin/env python3
"""Conversations, tools and agents as clients see them, with the real program: races, kills, every door.

    chat_test.py [BELFRY]        drives build/release/belfry unless another program is named
"""

import codecs
import json
import os
import pty
import re
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from datetime import datetime, timezone

import http_test
from http_test import PATIENCE, Case

RACES = 1000


class ChatCase(Case):
    def prepare(self):
        self.server.call("POST", "/v1/agents", {"id": "bot", "kind": "external"}, 201)
        self.session = self.open()

    def open(self, **wanted):
        wanted = {"kind": "private", "user": "ann", "agent": "bot", **wanted}
        return self.server.call("POST", "/v1/sessions", wanted, 201)["sessionId"]

    def post(self, status=201, session=None, **body):
        return self.server.call("POST", f"/v1/sessions/{session or self.session}/messages", body, status)

    def lines(self, after=0, wait=0, session=None):
        path = f"/v1/sessions/{session or self.session}/messages?after={after}&waitMs={wait}"
        return self.server.call("GET", path)["messages"]

    def ask(self, *replies, **more):
        body = {"to": "ann", "from": "bot", "sessionId": self.session, "payload": {"text": "?"},
                "quickReplies": list(replies), **more}
        return self.server.call("POST", "/v1/messages", body, 201)["messageId"]

    def wait_for_line(self, message_id):
        deadline = time.monotonic() + PATIENCE
        after = 0
        while time.monotonic() < deadline:
            for line in self.lines(after, wait=1000):
                after = line["seq"]
                if line["messageId"] == message_id:
                    return line
        raise AssertionError(f"{message_id} did not come")

    def call_tool(self, tool, arguments, status=200, **context):
        return self.server.call("POST", f"/v1/tools/{tool}:call", {"arguments": arguments, "context": context}, status)


class Conversations(ChatCase):
    # A8
    def test_a_conversation_over_http(self):
        self.post(text="你好")
        got = self.server.call("POST", "/v1/mailboxes/bot:receive", {"max": 1, "waitMs": 5000})["messages"][0]
        self.assertEqual((got["from"], got["sessionId"], got["payload"]["text"]), ("ann", self.session, "你好"))
        answer = {"to": "ann", "from": "bot", "sessionId": got["sessionId"], "payload": {"text": "hello"},
                  "taskId": got["taskId"]}
        sent = self.server.call("POST", "/v1/messages", answer, 201)["messageId"]
        line = self.wait_for_line(sent)
        self.assertEqual((line["seq"], line["source"], line["text"]), (2, "agent", "hello"))
        self.assertEqual([one["seq"] for one in self.lines()], [1, 2])
        self.assertEqual([one["seq"] for one in self.lines(after=1)], [2])
        sessions = self.server.call("GET", "/v1/sessions?member=ann")["sessions"]
        self.assertEqual([one["sessionId"] for one in sessions], [self.session])
        people = [one["id"] for one in self.server.call("GET", "/v1/people")["people"]]
        self.assertEqual(people, ["ann", "user"])

    def test_bad_requests_are_refused_and_change_nothing(self):
        question = self.ask("yes", "no")
        self.wait_for_line(question)
        elsewhere = self.open()
        for status, error, body in [
            (400, "invalid_argument", {"text": " "}),
            (400, "invalid_argument", {"text": "x", "from": "bob"}),
            (400, "invalid_argument", {"inReplyTo": question, "quickReplyIndex": 2}),
            (400, "invalid_argument", {"inReplyTo": question, "quickReplyIndex": 0, "text": "no"}),
            (400, "invalid_argument", {"quickReplyIndex": 0}),
            (400, "invalid_argument", {"text": 5}),
            (404, "not_found", {"inReplyTo": "nothing", "quickReplyIndex": 0}),
            (400, "unknown_field", {"txt": "x"}),
        ]:
            path = f"/v1/sessions/{self.session}/messages"
            self.refusal(self.server.request("POST", path, body), status, error)
        path = f"/v1/sessions/{elsewhere}/messages"
        answer = {"inReplyTo": question, "quickReplyIndex": 0}
        self.refusal(self.server.request("POST", path, answer), 404, "not_found")
        self.refusal(self.server.request("POST", "/v1/sessions/nowhere/messages", {"text": "x"}), 404, "not_found")
        self.refusal(self.server.request("POST", "/v1/sessions", {"agent": "nobody"}), 404, "unknown_recipient")
        self.refusal(self.server.request("POST", "/v1/sessions", {"user": "bot", "agent": "bot"}), 400, "invalid_argument")
        self.refusal(self.server.request("POST", "/v1/agents", {"id": "ann"}), 409, "already_exists")
        for query in ("after=nonsense", "limit=0", "limit=99999"):
            self.refusal(self.server.request("GET", f"/v1/sessions?{query}"), 400, "invalid_argument")
        for query in ("after=-1", "limit=0", "limit=99999", "after=1&before=2", "waitMs=60001"):
            self.refusal(self.server.request("GET", f"/v1/sessions/{self.session}/messages?{query}"), 400, "invalid_argument")
        self.refusal(self.server.request("POST", "/v1/messages", {"to": ["bot", "bot"], "payload": 1}), 400, "invalid_argument")
        self.refusal(self.server.request("POST", "/v1/mailboxes/ann:receive", {}), 409, "wrong_state")
        self.assertEqual(len(self.lines()), 1)
        self.assertEqual(self.server.call("GET", "/v1/mailboxes/bot")["pending"], 0)

    def poll(self, session):
        """A client that waits for lines, and its connection."""
        connection = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)
        self.addCleanup(connection.close)
        path = f"/v1/sessions/{session}/messages?after=0&waitMs=60000"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n\r\n".encode())
        return connection

    def test_a_stop_does_not_wait_for_whoever_waits_for_lines(self):
        connection = self.poll(self.session)
        self.lines()  # by now the server has read what the other connection wanted
        began = time.monotonic()
        self.assertEqual(self.server.end(), 0)
        self.assertLess(time.monotonic() - began, 10)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        self.assertIn(b"200 OK", answer)
        self.assertTrue(answer.endswith(b'{"messages":[]}'), answer)

    def test_readers_that_are_gone_keep_nobody_from_reading(self):
        for _ in range(1100):
            self.poll(self.session).close()
        waiting = self.poll(self.session)
        self.lines()
        self.post(text="hello")
        self.assertIn(b'"text":"hello"', http_test.read_until(waiting, b"hello"))

    # A7
    def test_people_are_no_agents_and_speak_in_sessions(self):
        for method in ("GET", "DELETE"):
            for name in ("ann", "user"):
                answer = self.refusal(self.server.request(method, f"/v1/agents/{name}"), 404, "not_found")
                self.assertIn("/v1/people", answer["message"])
        for name in ("user", "belfry"):
            self.refusal(self.server.request("POST", "/v1/agents", {"id": name}), 400, "invalid_id")
        answer = self.refusal(self.server.request("POST", "/v1/messages", {"to": "nobody", "payload": 1}), 404, "unknown_recipient")
        self.assertIn("POST /v1/sessions", answer["message"])
        for sender in ({}, {"from": "user"}):
            body = {"to": "ann", "payload": {"text": "psst"}, **sender}
            answer = self.refusal(self.server.request("POST", "/v1/messages", body), 409, "wrong_state")
            self.assertIn("POST /v1/sessions/{id}/messages", answer["message"])
        for text in ("one", "two"):
            self.server.call("POST", "/v1/messages", {"to": "user", "payload": {"text": text}}, 201)
        deadline = time.monotonic() + PATIENCE
        lines = []
        while len(lines) < 2 and time.monotonic() < deadline:
            for session in self.server.call("GET", "/v1/sessions?member=user")["sessions"]:
                self.assertEqual((session["users"], session["agents"]), (["user"], ["belfry"]))
                lines = self.lines(after=0, session=session["sessionId"])
        self.assertEqual([(one["from"], one["source"], one["text"]) for one in lines],
                         [("belfry", "system", "one"), ("belfry", "system", "two")])
        self.assertEqual(len(self.server.call("GET", "/v1/sessions?member=user")["sessions"]), 1)

    # Q9
    def test_every_door_refuses_a_deadline_that_makes_no_sense(self):
        body = {"to": "ann", "from": "bot", "quickReplies": ["yes"], "payload": {"text": "?", "answerBy": "tomorrow"}}
        self.refusal(self.server.request("POST", "/v1/messages", body), 400, "invalid_time")
        ndjson = {"Content-Type": "application/x-ndjson"}
        batch = self.server.request("POST", "/v1/messages:batch", json.dumps(body) + "\n", ndjson)
        self.assertEqual(json.loads(batch.text)["error"], "invalid_time")
        del body["from"]
        call = {"arguments": body, "context": {"agentId": "bot"}}
        self.refusal(self.server.request("POST", "/v1/tools/send_message:call", call), 400, "invalid_time")
        self.assertEqual(self.lines(), [])

    # Q7
    def test_two_clients_race_for_one_question_and_one_wins(self):
        told = 0
        for number in range(RACES):
            question = self.ask("left", "right")
            line = self.wait_for_line(question)
            barrier = threading.Barrier(2)
            answers = [None, None]

            def answer(index):
                barrier.wait()
                response = self.server.request("POST", f"/v1/sessions/{self.session}/messages",
                                               {"inReplyTo": question, "quickReplyIndex": index})
                answers[index] = (response.status, json.loads(response.text))

            racers = [threading.Thread(target=answer, args=(index,)) for index in range(2)]
            for racer in racers:
                racer.start()
            for racer in racers:
                racer.join()
            winners = [index for index in range(2) if answers[index][0] == 201]
            self.assertEqual(len(winners), 1, answers)
            loser = answers[1 - winners[0]]
            self.assertEqual((loser[0], loser[1]["error"]), (409, "already_answered"))
            told += 1
            if number % 250 == 249:
                self.server.end(signal.SIGKILL)
                self.server = self.start()
            after = self.lines(line["seq"] - 1)
            self.assertEqual(len(after), 2)
            self.assertEqual(after[0]["answer"]["index"], winners[0])
            self.assertEqual(after[1]["closes"], [question])
            # A new session now and then keeps the looking short.
            if number % 50 == 49:
                self.session = self.open()
        self.assertEqual(told, RACES)
        self.server.end()
        self.belfry("doctor", "--data", str(self.data))

    # Q6, D1
    def test_a_delayed_question_comes_on_time_after_a_kill_and_its_answer_closes_it(self):
        arguments = {"to": "ann", "payload": {"text": "Lunch?"}, "delayMs": 3000, "quickReplies": ["noodles", "rice", "no"]}
        result = self.call_tool("send_message", arguments, agentId="bot", sessionId=self.session, callId="c1")["result"]
        self.server.end(signal.SIGKILL)
        self.server = self.start()
        line = self.wait_for_line(result["messageId"])
        # By our own clock, too: not only the server's word for it.
        due = datetime.fromisoformat(result["scheduledDeliveryTime"].replace("Z", "+00:00"))
        self.assertGreaterEqual(datetime.now(timezone.utc), due)
        self.assertGreaterEqual(line["saidAt"], result["scheduledDeliveryTime"])
        self.assertEqual(line["quickReplies"], ["noodles", "rice", "no"])
        again = self.call_tool("send_message", arguments, agentId="bot", sessionId=self.session, callId="c1")["result"]
        self.assertEqual(again, result)
        self.post(inReplyTo=line["messageId"], quickReplyIndex=1)
        question, answer = self.lines()
        self.assertEqual((question["questionState"], question["answer"]["text"]), ("answered", "rice"))
        self.assertEqual((answer["text"], answer["closes"]), ("rice", [line["messageId"]]))


class Tools(ChatCase):
    # A5, D15
    def test_tools_are_listed_called_and_recorded(self):
        tools = {tool["function"]["name"] for tool in self.server.call("GET", "/v1/tools")["tools"]}
        private = {"schedule_private_message", "list_scheduled_private_messages", "cancel_scheduled_private_message",
                   "reschedule_scheduled_private_message"}
        everywhere = {"send_message", "ask", "list_messages", "cancel_message", "reschedule_message", "reply",
                      "stay_silent", "tool_search", "spawn_agent", "remove_agent", "run_plan", "cancel_run",
                      "local__github_repo_info", "local__html_to_app", "local__image_draw",
                      "local__qq_message_markGroupAsRead", "local__realtime_search"}
        self.assertEqual(tools, private | everywhere)
        group = self.open(kind="group", user=None, users=["ann", "bob"])
        offered = self.server.call("GET", f"/v1/tools?session={group}")["tools"]
        self.assertEqual({tool["function"]["name"] for tool in offered}, everywhere)
        # As a model writes them: a text with JSON in it.
        self.call_tool("send_message", '{"to":"bot","payload":"hi"}', agentId="bot", callId="c9")
        refused = self.call_tool("send_message", {"to": "bot"}, 400)
        self.assertEqual(refused["error"], "invalid_argument")
        self.assertEqual(refused["violations"][0]["keyword"], "required")
        self.call_tool("nothing", {}, 404)
        calls = self.server.call("GET", "/v1/calls")["calls"]
        self.assertEqual(
            [(one["tool"], one["state"]) for one in calls],
            [("nothing", "failed"), ("send_message", "failed"), ("send_message", "done")],
        )
        self.assertEqual(calls[2]["callId"], "c9")
        self.assertIn("send_message", self.belfry("tools", "list").stdout)
        out = self.belfry("tools", "call", "send_message", '{"to":"bot","payload":{}}', "--agent", "bot").stdout
        self.assertIn("messageId", json.loads(out))
        self.assertIn("done", self.belfry("tools", "calls").stdout)

    # Q1, Q2, Q3, Q4, Q5, Q6
    def test_every_door_judges_quick_replies_alike(self):
        dice = random.Random(4)

        def element():
            return dice.choice(["yes", "no", "好的", " ", "", "a b", 5, None, ["x"], True])

        def expected(value):
            if value is None or value == []:
                return "taken"
            if not isinstance(value, list) or any(not isinstance(one, str) for one in value):
                return "quickReplies_invalid_type"
            if len(value) > 10:
                return "quickReplies_too_many"
            return "quickReplies_empty_string" if any(not one.strip() for one in value) else "taken"

        values = [None, [], "yes", {}, 7]
        for _ in range(150):
            bad = dice.random() < 0.5
            count = dice.randrange(0, 13)
            values.append([element() if bad else dice.choice(["yes", "no", "好的"]) for _ in range(count)])
        taken = []
        for value in values:
            for inside in (False, True):
                payload = {"text": "?", "quickReplies": value} if inside else {"text": "?"}
                body = {"to": "bot", "payload": payload, **({} if inside else {"quickReplies": value})}
                line = json.dumps(body) + "\n"
                doors = {
                    "http": json.loads(self.server.request("POST", "/v1/messages", body).text),
                    "batch": json.loads(self.server.request("POST", "/v1/messages:batch", line,
                                                            {"Content-Type": "application/x-ndjson"}).text),
                    "tool": json.loads(self.server.request("POST", "/v1/tools/send_message:call", {"arguments": body}).text),
                }
                for door, answer in doors.items():
                    self.assertEqual(answer.get("error", "taken"), expected(value), (door, inside, value))
                    if expected(value) == "taken":
                        taken.append(value or None)
        for value in taken:
            got = self.server.call("POST", "/v1/mailboxes/bot:receive", {"max": 1, "waitMs": 5000})["messages"][0]
            self.assertEqual(got["payload"].get("quickReplies"), value)
            self.server.call("POST", "/v1/mailboxes/bot:ack", {"leases": [got["lease"]]})
        self.assertEqual(self.server.call("GET", "/v1/mailboxes/bot")["pending"], 0)


class Scheduled(ChatCase):
    # P7, P11
    def test_what_is_scheduled_is_said_at_its_time_after_a_stop_and_not_at_the_stop(self):
        wanted = {"session_id": self.session, "send_at": "3秒后", "message_text": "喝水"}
        created = self.server.call("POST", "/v1/scheduled", wanted, 201)
        self.assertIn("sentence", created["understood"])
        self.assertEqual(self.server.end(), 0)
        self.server = self.start()
        line = self.wait_for_line("s" + created["task_id"])
        self.assertEqual((line["source"], line["from"], line["text"]), ("scheduled_send", "bot", "喝水"))
        self.assertGreaterEqual(line["saidAt"], created["send_at"])
        task = self.server.call("GET", f"/v1/scheduled/{created['task_id']}")["task"]
        self.assertEqual((task["status"], task["sent_message_id"]), ("sent", line["messageId"]))

    # P3, P10
    def test_they_are_listed_moved_cancelled_and_sent_now_by_people(self):
        def add(when, text, *more):
            out = self.belfry("schedule", "add", "--session", self.session, "--at", when, text, "--json", *more).stdout
            return json.loads(out)["task_id"]

        first, second, third = add("in 2 hours", "one"), add("明天早上9点", "two"), add("in 3 hours", "three")
        listed = self.belfry("schedule", "list").stdout
        self.assertLess(listed.index(first), listed.index(third))
        self.assertIn("two", listed)
        self.assertIn(third, self.belfry("schedule", "move", third, "--at", "in 1 hour", "--text", "drei").stdout)
        self.assertIn("cancelled", self.belfry("schedule", "cancel", first).stdout)
        self.assertIn("sent", self.belfry("schedule", "now", third).stdout)
        self.assertEqual([one["text"] for one in self.lines()], ["drei"])
        self.refusal(self.server.request("DELETE", f"/v1/scheduled/{first}"), 409, "already_cancelled")
        self.refusal(self.server.request("POST", f"/v1/scheduled/{third}:send"), 409, "already_sent")
        self.refusal(self.server.request("PATCH", f"/v1/scheduled/{second}", {}), 400, "invalid_argument")
        self.refusal(self.server.request("GET", "/v1/scheduled/nothing"), 404, "not_found")
        self.refusal(self.server.request("GET", "/v1/scheduled?status=odd"), 400, "invalid_argument")
        wanted = {"session_id": self.session, "send_at": "tomorrow at 9", "message_text": "x"}
        for change, error in (
            ({"session_id": None}, "not_private_chat"),
            ({"session_id": self.open(kind="group", user=None, users=["ann", "bob"])}, "not_private_chat"),
            ({"send_at": "yesterday"}, "invalid_time"),
            ({"send_at": "every day at 9"}, "invalid_time"),
            ({"message_text": " "}, "empty_text"),
            ({"message_texts": "x"}, "unknown_field"),
            ({"max_late_ms": -1}, "invalid_argument"),
        ):
            self.refusal(self.server.request("POST", "/v1/scheduled", {**wanted, **change}), 400, error)
        pending = self.server.call("GET", "/v1/scheduled?status=pending")["tasks"]
        self.assertEqual([one["task_id"] for one in pending], [second])


class Terminal(Case):
    """belfry chat with the concierge, as somebody at a terminal uses it; here through pipes."""

    def prepare(self):
        self.output = ""
        self.came = threading.Condition()
        self.chat = subprocess.Popen([http_test.BELFRY, "chat", "--stay", "60s", "--server", f"http://127.0.0.1:{self.server.port}"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.close)
        threading.Thread(target=self.read, daemon=True).start()

    def close(self):
        self.chat.kill()
        self.chat.wait()
        self.chat.stdin.close()
        self.chat.stdout.close()

    def read(self):
        for line in self.chat.stdout:
            with self.came:
                self.output += line
                self.came.notify_all()

    def say(self, text):
        self.chat.stdin.write(text + "\n")
        self.chat.stdin.flush()

    def expect(self, *parts, times=1):
        """Waits until each part stands in what was printed since the last time, and gives that back."""
        with self.came:
            found = self.came.wait_for(lambda: all(self.output.count(part) >= times for part in parts), PATIENCE)
            self.assertTrue(found, f"{parts} not in {self.output!r}")
            printed, self.output = self.output, ""
            return printed

    # P1, P7, P10
    def test_reminders_are_asked_about_listed_moved_and_said(self):
        self.say("remind me in 2 seconds to stretch")
        self.expect("I will remind you on", "stretch")
        self.expect("concierge: Reminder: stretch")
        self.say("明天9点提醒我开会")
        self.expect("1) ", "上午09:00", "2) ", "晚上21:00")
        self.say("2")
        self.expect("21:00", "提醒你：开会")
        self.say("列表")
        self.expect("1. ", "开会")
        self.say("/scheduled")
        self.expect("1. ", "提醒：开会")
        self.say("/move 1 明天早上8点")
        self.expect("(moved to")
        self.say("/now 1")
        self.expect("concierge: 提醒：开会")
        self.say("/scheduled")
        self.expect("(nothing is scheduled)")
        self.say("/cancel 7")
        self.expect("not a number from /scheduled")

    # P7, P11
    def test_a_reminder_comes_on_time_across_a_stop_and_not_at_the_stop(self):
        address = f"127.0.0.1:{self.server.port}"
        self.say("4秒后提醒我喝水")
        self.expect("提醒你：喝水")
        due = time.monotonic() + 4
        self.assertEqual(self.server.end(signal.SIGINT), 0)
        self.assertNotIn("concierge: 提醒", self.output)
        self.server = self.start(listen=address)
        self.expect("the server is back", "concierge: 提醒：喝水")
        self.assertGreaterEqual(time.monotonic(), due - 0.5)
        self.say("谢谢")
        self.expect("不客气")

    # P10
    def test_what_the_server_refuses_does_not_end_the_conversation(self):
        self.say("remind me in 2 hours to eat")
        self.expect("I will remind you on")
        for typed, refusal in (("/move 1 gibberish", "(send_at: \"gibberish\" says"), ("/move 1 yesterday", "past"),
                               ("x" * 100_001, "100001 bytes"), ("/say", "say what?")):
            self.say(typed)
            self.expect(refusal)
        self.say("list")
        self.expect("1. ", "eat")


class AtATerminal(Terminal):
    """The same, typed at a terminal."""

    def prepare(self):
        self.output = ""
        self.came = threading.Condition()
        self.terminal, other = pty.openpty()
        self.chat = subprocess.Popen([http_test.BELFRY, "chat", "--server", f"http://127.0.0.1:{self.server.port}"],
                                     stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"})
        os.close(other)
        self.addCleanup(self.close)
        threading.Thread(target=self.read, daemon=True).start()
        self.expect("> ")

    def close(self):
        self.chat.kill()
        self.chat.wait()
        os.close(self.terminal)

    def read(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while some := os.read(self.terminal, 4096):
                with self.came:
                    self.output += decoder.decode(some)
                    self.came.notify_all()
        except OSError:
            pass  # closed

    def say(self, text):
        os.write(self.terminal, text.encode() + b"\r")

    # P7
    def test_what_is_half_typed_stays_when_a_line_comes(self):
        self.say("remind me in 2 seconds to stretch")
        self.expect("I will remind you on", "> ")
        os.write(self.terminal, "半句 half".encode())
        # Behind the reminder, not where it was typed: that alone proves nothing.
        again = re.compile("concierge: Reminder: stretch.*> 半句 half", re.DOTALL)
        with self.came:
            self.assertTrue(self.came.wait_for(lambda: again.search(self.output), PATIENCE), repr(self.output))
            self.output = ""
        os.write(self.terminal, "\x7f\x7f\x7f\x7f列表\r".encode())
        self.expect("concierge: ")
        session = self.server.call("GET", "/v1/sessions?member=user")["sessions"][0]["sessionId"]
        said = [line["text"] for line in self.server.call("GET", f"/v1/sessions/{session}/messages")["messages"] if line["source"] == "user"]
        self.assertEqual(said[-1], "半句 列表")

    # P7
    def test_the_arrow_brings_back_what_was_said(self):
        self.say("你好")
        self.expect("concierge: ")
        os.write(self.terminal, b"\x1b[A")
        self.expect("你好")
        os.write(self.terminal, b"\x04")  # in the middle of a line: nothing ends
        self.say("")
        self.expect("concierge: ")
        os.write(self.terminal, b"\x04")
        self.assertEqual(self.chat.wait(timeout=PATIENCE), 0)

    def test_what_the_server_refuses_does_not_end_the_conversation(self):
        self.say("/move 1 gibberish")
        self.expect("is not a number from /scheduled")



class Agents(ChatCase):
    # D19
    def test_an_agent_that_belfry_runs_answers_stops_and_starts(self):
        self.belfry("agents", "add", "parrot", "--kind", "echo")
        session = self.open(agent="parrot")
        self.post(session=session, text="hello")
        self.assertEqual(self.lines(1, wait=PATIENCE * 1000 // 2, session=session)[0]["text"], "hello")
        self.belfry("agents", "stop", "parrot")
        self.post(session=session, text="are you there?")
        self.assertEqual(self.server.call("GET", "/v1/agents/parrot")["stopped"], True)
        self.server.end(signal.SIGKILL)
        self.server = self.start()
        counts = self.server.call("GET", "/v1/mailboxes/parrot")  # in one look: it becomes pending as the calendar is read
        self.assertEqual(counts["pending"] + counts["delayed"], 1)
        self.belfry("agents", "start", "parrot")
        self.assertEqual(self.lines(3, wait=PATIENCE * 1000 // 2, session=session)[0]["text"], "are you there?")
        self.refusal(self.server.request("POST", "/v1/agents", {"id": "x", "kind": "robot"}), 400, "invalid_argument")
        self.refusal(self.server.request("POST", "/v1/agents/bot:stop", {}), 409, "wrong_state")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        http_test.BELFRY = sys.argv.pop(1)
    unittest.main()
