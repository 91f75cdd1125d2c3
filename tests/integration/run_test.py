#!/usr/bin/env python3
"""Tools that start now and report later, and plans: the real server with real plugins.

    run_test.py PROGRAM
"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))
import http_test

PATIENCE = http_test.PATIENCE
BUNDLED = ["github_repo_info", "html_to_app", "image_draw", "qq_message_markGroupAsRead", "realtime_search"]

# Each is one way in which a plugin goes wrong, and the word that its result has.
WRONG = {
    "hangs": ("sleep 1000", "timed_out"),
    "crashes": ("kill -SEGV $$", "crashed"),
    "fails": ("echo oops >&2; exit 3", "crashed"),
    "floods": ("while :; do echo '{\"progress\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}'; done", "too_much_output"),
    "no_json": ("echo hello", "bad_output"),
    "two_results": ("echo '{\"success\":true}'; echo '{\"success\":true}'", "bad_output"),
    "closes_stdout": ("exec 1>&-; sleep 1000", "bad_output"),
    "ignores_term": ("trap '' TERM; while :; do sleep 1; done", "timed_out"),
    "forks": ("setsid sh -c 'trap \"\" TERM; sleep 1000' >/dev/null 2>&1 & echo '{\"success\":false,\"error\":\"gone\"}'", "plugin_failed"),
}


def processes(marker):
    """The ids of processes with this in their environment or command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if marker.encode() in text and state != "Z":
            found.append(int(entry.name))
    return found


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        self.plugins = self.root / "plugins"
        self.plugins.mkdir()
        self.marker = f"belfry_run_test_{os.getpid()}_{id(self)}"
        self.server = None

    def tearDown(self):
        if self.server:
            self.server.end(signal.SIGKILL)

    def plugin(self, name, script, **config):
        folder = self.plugins / name
        folder.mkdir(exist_ok=True)
        (folder / ".env").write_text(f"MARKER={self.marker}\n")
        handler = folder / "handler"
        handler.write_text("#!/bin/sh\n" + textwrap.dedent(script) + "\n")
        handler.chmod(0o755)
        (folder / "config.json").write_text(json.dumps({"name": name, "description": name, "schedule": True, **config}))

    def start(self, *flags):
        self.server = http_test.Server(self.root / "data", "--plugins", str(self.plugins), *flags)

    def run_one(self, name, arguments, **more):
        body = {"plan": {"steps": [{"aiName": f"local__{name}", "draftArgs": arguments}]}, **more}
        return self.server.call("POST", "/v1/runs", body, 201)["runId"]

    def wait_for(self, run, least=None):
        """The events of a run up to its end, or at least up to one of a kind."""
        after, all_events = 0, []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            page = self.server.call("GET", f"/v1/runs/{run}/events?format=json&after={after}&waitMs=5000")["events"]
            all_events += page
            after = all_events[-1]["seq"] if all_events else 0
            if any(event["type"] in ("done", least) for event in all_events):
                return all_events
        self.fail(f"{run} did not end: {all_events}")

    def result_of(self, run):
        return [event for event in self.wait_for(run) if event["type"] == "tool_result"][0]

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def step(self, run):
        return self.server.call("GET", f"/v1/runs/{run}")["steps"][0]

    # F3
    def test_a_held_result_survives_a_kill_and_is_reported_at_its_time(self):
        self.plugin("quick", """read line; echo '{"success":true,"data":{"text":"ready"}}'""")
        self.start()
        self.server.call("POST", "/v1/agents", {"id": "bot"}, 201)
        session = self.server.call("POST", "/v1/sessions", {"kind": "private", "user": "ann", "agent": "bot"}, 201)["sessionId"]
        run = self.run_one("quick", {"schedule": "in 6 seconds"}, context={"sessionId": session, "agentId": "bot"})
        self.until(lambda: self.step(run)["state"] == "held", "it is not held")
        due = self.step(run)["feedbackAt"]
        self.assertEqual(self.server.call("GET", f"/v1/sessions/{session}/coming")["items"][0]["kind"], "run")
        self.server.end(signal.SIGKILL)
        self.start()
        self.assertIn(self.step(run)["state"], ("held", "reported"))  # the latter if the start took that long
        result = self.result_of(run)
        self.assertTrue(result["success"])
        self.assertGreaterEqual(result["time"], due)
        lines = self.server.call("GET", f"/v1/sessions/{session}/messages")["messages"]
        self.assertEqual([line["text"] for line in lines], ["ready"])
        self.assertEqual(lines[0]["source"], "tool")
        got = self.server.call("POST", "/v1/mailboxes/bot:receive", {"waitMs": 5000})["messages"]
        self.assertEqual(got[0]["payload"]["runId"], run)
        self.server.call("POST", "/v1/mailboxes/bot:ack", {"leases": [got[0]["lease"]]})
        self.server.end()
        self.server = None
        doctor = subprocess.run([http_test.BELFRY, "doctor", "--data", str(self.root / "data")], capture_output=True)
        self.assertEqual(doctor.returncode, 0, doctor.stdout)

    # F5
    def test_after_a_kill_no_process_of_a_plugin_is_left_and_its_step_is_interrupted(self):
        self.plugin("stubborn", """trap '' TERM; (trap '' TERM; setsid sleep 1000 & sleep 1000) & sleep 1000""")
        self.start()
        run = self.run_one("stubborn", {"schedule": "in 30 seconds"})
        self.until(lambda: len(processes(self.marker)) >= 3, "it has not forked")
        self.server.end(signal.SIGKILL)
        self.until(lambda: not processes(self.marker), "something is left")
        self.start()
        result = self.result_of(run)
        self.assertEqual(result["error"]["code"], "interrupted")
        self.assertEqual(self.step(run)["state"], "interrupted")

    # F5
    def test_a_plugin_that_goes_wrong_ends_with_a_clear_result_and_leaves_nothing(self):
        for name, (script, _) in WRONG.items():
            self.plugin(name, script, timeoutMs=6000 if name == "closes_stdout" else 1500)
        self.plugin("good", """read line; echo '{"success":true,"data":1}'""")
        self.start()
        runs = {name: self.run_one(name, {}) for name in WRONG}
        good = self.run_one("good", {})
        for name, run in runs.items():
            with self.subTest(name):
                result = self.result_of(run)
                self.assertFalse(result["success"])
                self.assertEqual(result["error"]["code"], WRONG[name][1], result)
        self.assertTrue(self.result_of(good)["success"])
        self.until(lambda: not processes(self.marker), "something is left")

    # F2, F14
    def test_a_persistent_plugin_serves_many_runs_with_one_process(self):
        self.plugin("warm", """
            n=0
            while read line; do
              n=$((n+1)); id=$(printf '%s' "$line" | sed 's/.*"id":"\\([0-9]*\\)".*/\\1/')
              echo "{\\"id\\":\\"$id\\",\\"success\\":true,\\"data\\":{\\"n\\":$n,\\"pid\\":$$}}"
            done""", mode="persistent")
        self.start()
        results = [self.result_of(self.run_one("warm", {}))["data"] for _ in range(3)]
        self.assertEqual([one["n"] for one in results], [1, 2, 3])
        self.assertEqual(len({one["pid"] for one in results}), 1)

    # F8
    def test_events_are_streamed_from_any_number_and_the_stream_ends(self):
        self.plugin("slow", """read line; echo '{"progress":{"percent":50}}'; sleep 0.2; echo '{"success":true,"data":"你好"}'""")
        self.start()
        run = self.run_one("slow", {"schedule": "in 4 seconds"})

        def stream(headers):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
            connection.request("GET", f"/v1/runs/{run}/events", headers=headers)
            response = connection.getresponse()
            self.assertEqual(response.getheader("Content-Type"), "text/event-stream")
            events = []
            for block in response.read().decode().split("\n\n"):
                fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
                if "data" in fields:
                    events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
            connection.close()
            return events

        whole = stream({})
        self.assertEqual([kind for _, kind, _ in whole], ["start", "plan", "args", "tool_result", "done"])
        for number, kind, data in whole:
            self.assertEqual((data["seq"], data["type"], data["runId"]), (number, kind, run))
            self.assertIn("time", data)
        self.assertEqual(whole[2][2]["aiName"], "local__slow")
        self.assertEqual(whole[2][2]["stepIndex"], 0)
        self.assertEqual(whole[3][2]["data"], "你好")
        self.assertEqual([number for number, _, _ in stream({"Last-Event-ID": "3"})], [4, 5])
        # A browser connects again after each end, until it hears that there is nothing more.
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        connection.request("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": "5"})
        response = connection.getresponse()
        self.assertEqual((response.status, response.reason, response.read()), (204, "No Content", b""))
        self.assertIsNone(response.getheader("Content-Length"))
        connection.request("GET", f"/v1/runs/{run}")  # and the connection can still be used
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def open_stream(self, run, receive_buffer=None):
        """A client that has begun to read the events of a run."""
        client = socket.socket()
        self.addCleanup(client.close)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(10)
        client.connect(("127.0.0.1", self.server.port))
        client.sendall(f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n\r\n".encode())
        self.assertEqual(client.recv(len(b"HTTP/1.1 200 OK")), b"HTTP/1.1 200 OK")
        return client

    # F8, G16: at most 100 may wait for one run.
    def test_readers_who_have_left_do_not_count(self):
        self.plugin("slow", "sleep 1000")
        self.start()
        run = self.run_one("slow", {})
        self.wait_for(run, "args")
        for _ in range(130):
            reader = self.open_stream(run)
            # All that there is: who leaves before is noticed anyway, when the rest cannot be sent.
            read = b""
            while not re.search(rb"event: args\n.*\n\n", read):
                read += reader.recv(65536)
            reader.close()
        self.server.call("GET", f"/v1/runs/{run}/events?format=json&after=3&waitMs=100")

    # F8
    def test_a_large_event_reaches_a_slow_reader_without_waiting_for_the_next_one(self):
        self.plugin("large", "head -c 900000 /dev/zero | tr '\\0' x | sed 's/.*/{\"success\":true,\"data\":\"&\"}/'; echo")
        self.plugin("slow", "sleep 1000")
        self.start()
        # More than the system keeps for a reader: the rest is the server's to send, as the reader goes on.
        count = 9
        steps = [{"aiName": "local__large", "dependsOn": [i - 1] if i else []} for i in range(count)]
        plan = {"steps": [*steps, {"aiName": "local__slow", "dependsOn": [count - 1]}]}
        run = self.server.call("POST", "/v1/runs", {"plan": plan}, 201)["runId"]
        reader = self.open_stream(run, receive_buffer=4096)
        self.until(lambda: self.server.call("GET", f"/v1/runs/{run}?results=false")["steps"][count]["state"] == "running",
                   "the large ones are not done")
        read = 0
        while read < count * 900_000:
            read += len(reader.recv(65536))  # within its time limit, which is shorter than the pause of the heartbeat

    # F1, F7, F9
    def test_what_cannot_be_carried_out_is_refused_with_a_word_and_starts_nothing(self):
        self.plugin("tool", f"""echo started >> {self.root}/started; echo '{{"success":true}}'""", inputSchema={
            "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
        self.plugin("plain", "echo '{\"success\":true}'", schedule=False)
        self.start()
        step = {"aiName": "local__tool", "draftArgs": {"n": 1}}
        for body, word in [
            ({"plan": {"steps": [step, {**step, "dependsOn": [2]}]}}, "invalid_plan"),
            ({"plan": {"steps": [{**step, "dependsOn": [1]}, {**step, "dependsOn": [0]}]}}, "invalid_plan"),
            ({"plan": {"steps": [step] * 10000}}, "invalid_plan"),
            ({"plan": {"steps": []}}, "invalid_plan"),
            ({"plan": {}}, "invalid_plan"),
            ({}, "invalid_plan"),
            ({"plan": {"steps": [step]}, "plam": 1}, "unknown_field"),
            ({"plan": {"steps": [{"aiName": "local__nobody"}]}}, "unknown_tool"),
            ({"plan": {"steps": [{"aiName": "local__../tool"}]}}, "unknown_tool"),
            ({"plan": {"steps": [step, {"aiName": "local__tool", "draftArgs": {"n": "x"}}]}}, "invalid_argument"),
            ({"plan": {"steps": [step, {**step, "draftArgs": {"n": 1, "schedule": "someday maybe"}}]}}, "invalid_schedule"),
            ({"plan": {"steps": [{"aiName": "local__plain", "draftArgs": {"schedule": "in 2 minutes"}}]}}, "invalid_argument"),
            ({"plan": {"steps": [step]}, "context": {"sessionId": "nowhere"}}, "not_found"),
            ({"plan": {"steps": [step]}, "overlays": {"global": 7}}, "invalid_argument"),
        ]:
            response = self.server.request("POST", "/v1/runs", body)
            self.assertIn(response.status, (400, 404), response.text)
            self.assertEqual(json.loads(response.text)["error"], word, response.text)
        self.assertEqual(self.server.call("GET", "/v1/runs")["runs"], [])
        self.assertFalse((self.root / "started").exists())
        self.assertEqual(self.server.request("GET", "/v1/runs/nobody").status, 404)
        self.assertEqual(self.server.request("GET", "/v1/runs/nobody/events").status, 404)
        self.assertEqual(self.server.request("POST", "/v1/runs/nobody:cancel").status, 404)

    # F6, F8
    def test_a_tool_call_runs_the_plugin_without_the_schedule_and_acknowledges_at_once(self):
        self.plugin("echoes", """read line; printf '{"success":true,"data":%s}\\n' "$line" """)
        self.start()
        direct = self.server.call("POST", "/v1/tools/local__echoes:call", {"arguments": {"a": 1}})["result"]
        self.assertEqual(direct["data"]["args"], {"a": 1})
        self.assertEqual(direct["data"]["context"]["timeoutMs"], 60000)
        later = self.server.call("POST", "/v1/tools/local__echoes:call",
                                 {"arguments": {"a": 2, "schedule": {"when": "in 1 second", "mood": "good"}}})["result"]
        self.assertEqual(later["status"], "running")
        self.assertEqual(self.result_of(later["runId"])["data"]["args"], {"a": 2})
        refused = self.server.request("POST", "/v1/tools/local__echoes:call", {"arguments": {"schedule": "blue"}})
        self.assertEqual((refused.status, json.loads(refused.text)["error"]), (400, "invalid_schedule"))

    # F14
    def test_plugins_come_change_and_go_while_the_server_runs(self):
        self.start()

        def names():
            return [one["function"]["name"] for one in self.server.call("GET", "/v1/tools")["tools"]]

        self.assertNotIn("local__fresh", names())
        self.plugin("fresh", "echo '{\"success\":true,\"data\":1}'")
        self.until(lambda: "local__fresh" in names(), "it was not found")
        self.assertEqual(self.result_of(self.run_one("fresh", {}))["data"], 1)
        self.plugin("fresh", "echo '{\"success\":true,\"data\":2}'", description="changed")
        self.until(lambda: "changed" in json.dumps(self.server.call("GET", "/v1/tools")), "it was not read again")
        self.assertEqual(self.result_of(self.run_one("fresh", {}))["data"], 2)
        schedule = {"oneOf": [{"type": "string"}]}
        referring = {"schedule": schedule, "label": {"$ref": "#/properties/schedule/oneOf/0"}}
        (self.plugins / "fresh" / "config.json").write_text(json.dumps({"name": "fresh", "inputSchema": {"properties": referring}}))
        self.until(lambda: "local__fresh" not in names(), "it is still there")
        self.plugin("fresh", "echo '{\"success\":true,\"data\":1}'")
        self.until(lambda: "local__fresh" in names(), "it did not come back")
        (self.plugins / "fresh" / "config.json").write_text("{ broken")
        self.until(lambda: "local__fresh" not in names(), "it is still there")
        self.assertIn("fresh", self.server.wait_for_log("plugin.broken")["folder"])
        self.assertIn("local__image_draw", names())

    # F12
    def test_the_bundled_plugins_are_there_and_take_a_schedule(self):
        self.start()
        tools = {one["function"]["name"]: one["function"] for one in self.server.call("GET", "/v1/tools")["tools"]}
        for name in BUNDLED:
            self.assertIn("schedule", tools[f"local__{name}"]["parameters"]["properties"], name)
        result = self.result_of(self.run_one("image_draw", {"prompt": "sunset over the sea", "width": 160, "height": 120}))
        self.assertTrue(result["success"], result)
        run = result["runId"]
        name = result["data"]["files"][0]["name"]
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        connection.request("GET", f"/v1/files/{run}.0.{name}")
        response = connection.getresponse()
        picture = response.read()
        connection.close()
        self.assertEqual((response.status, response.getheader("Content-Type")), (200, "image/png"))
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        shown = subprocess.run([http_test.BELFRY, "runs", "show", run, "--server", f"http://127.0.0.1:{self.server.port}"],
                               capture_output=True, text=True, timeout=PATIENCE).stdout
        self.assertIn(f"\n  http://127.0.0.1:{self.server.port}/v1/files/{run}.0.{name}\n", shown)
        folder = self.root / "data" / "files" / run / "0"
        (folder / "PIC.PNG").write_bytes(picture)
        self.assertIsNone(self.server.request("GET", f"/v1/files/{run}.0.PIC.PNG").headers.get("Content-Disposition"))
        for bad in (f"{run}.0.nobody.png", f"{run}.1.{name}", f"{run}.0.../{name}", f"{run}.0.%2e%2e", "x", f"..%2f.0.{name}"):
            self.assertEqual(self.server.request("GET", f"/v1/files/{bad}").status, 404, bad)
        missing = self.result_of(self.run_one("realtime_search", {"query": "x"}))
        self.assertEqual(missing["error"]["code"], "not_configured")
        called = subprocess.run([http_test.BELFRY, "tools", "call", "local__qq_message_markGroupAsRead", '{"group_id":"1"}',
                                 "--server", f"http://127.0.0.1:{self.server.port}"], capture_output=True, text=True)
        self.assertEqual(called.returncode, 1)
        self.assertIn("not_configured", called.stderr)

    # G10, F3
    def test_what_a_cancelled_step_left_is_never_anybodys(self):
        self.plugin("writer", '''read line; echo hello > "$BELFRY_OUTPUT_DIR/note.txt"; echo '{"success":true}' ''')
        self.start()
        run = self.run_one("writer", {"schedule": "in 1 hour"})
        self.until(lambda: self.step(run)["state"] == "held", "it is not done")
        self.assertEqual(self.server.request("GET", f"/v1/files/{run}.0.note.txt").status, 404)
        self.server.call("POST", f"/v1/runs/{run}:cancel")
        self.assertEqual(self.server.request("GET", f"/v1/files/{run}.0.note.txt").status, 404)
        plain = self.run_one("writer", {})
        self.wait_for(plain)
        self.assertEqual(self.server.request("GET", f"/v1/files/{plain}.0.note.txt").status, 200)

    # G10
    def test_a_cancel_ends_the_process_and_says_so(self):
        self.plugin("long", "sleep 1000")
        self.start()
        run = self.run_one("long", {})
        self.until(lambda: processes(self.marker), "it does not run")
        self.assertEqual(self.server.request("DELETE", f"/v1/runs/{run}").status, 409)
        self.assertEqual(self.server.call("POST", f"/v1/runs/{run}:cancel")["state"], "cancelled")
        self.assertEqual(self.wait_for(run)[-1]["status"], "cancelled")
        self.until(lambda: not processes(self.marker), "it still runs")
        self.assertEqual(self.server.request("POST", f"/v1/runs/{run}:cancel").status, 409)

    # G12
    def test_a_stop_waits_for_tools_until_its_deadline_and_ends_them(self):
        self.plugin("long", "sleep 1000")
        self.start("--stop-deadline", "2s")
        run = self.run_one("long", {})
        self.until(lambda: processes(self.marker), "it does not run")
        self.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.process.wait(PATIENCE), 0)
        self.assertEqual(processes(self.marker), [])
        self.server.end()
        self.start()
        self.assertEqual(self.result_of(run)["error"]["code"], "interrupted")

    # F4, F7
    def test_the_command_says_what_a_step_waits_for(self):
        self.plugin("slow", "sleep 1000", concurrency=1)
        self.start()
        first = self.run_one("slow", {"schedule": "now"})
        second = self.run_one("slow", {"schedule": "in 1 second"})

        def shown(run):
            return subprocess.run([http_test.BELFRY, "runs", "show", run, "--server", f"http://127.0.0.1:{self.server.port}"],
                                  capture_output=True, text=True, timeout=PATIENCE).stdout

        self.until(lambda: "late" in shown(second), "it is never late")
        self.assertIn("waits for its turn, was to report at ", shown(second))
        self.assertIn(", reports when done", shown(first))

    # G18: what a tool left is removed beside all other work, and the next start goes on where a kill ended it.
    def test_a_kill_in_the_middle_of_a_removal_is_gone_on_with(self):
        self.plugin("leaves", 'read -r request; : > "$BELFRY_OUTPUT_DIR/file"; echo \'{"success":true}\'')
        self.start()
        run = self.run_one("leaves", {})
        self.wait_for(run)
        files = self.root / "data/files"
        at = os.open(files / run / "0", os.O_PATH)
        for _ in range(3_000):
            os.mkdir("d" * 200, 0o700, dir_fd=at)
            below = os.open("d" * 200, os.O_PATH, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
        self.assertEqual(self.server.request("DELETE", f"/v1/runs/{run}").status // 100, 2)
        deadline = time.monotonic() + PATIENCE
        while (files / run / "0").exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        self.server.end(signal.SIGKILL)
        self.assertTrue((files / run).exists(), "it was removed too fast to be half removed")
        self.start()
        self.assertEqual(self.server.request("GET", "/healthz").status, 200)
        while (files / run).exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertFalse((files / run).exists())

    # F9
    def test_the_command_carries_out_a_plan_and_shows_it(self):
        self.plugin("one", """read line; echo '{"success":true,"data":{"n":7}}'""")
        self.plugin("two", """read line; printf '{"success":true,"data":%s}\\n' "$line" """)
        self.plugin("bad", """echo '{"success":false,"error":{"code":"teapot","message":"short and stout"}}'""")
        self.start()
        url = f"http://127.0.0.1:{self.server.port}"

        def belfry(*arguments, plan=None):
            return subprocess.run([http_test.BELFRY, *arguments, "--server", url], input=plan, capture_output=True,
                                  text=True, timeout=PATIENCE)

        plan = {"steps": [{"aiName": "local__one", "draftArgs": {"schedule": "1秒后"}},
                          {"aiName": "local__two", "draftArgs": {"n": "{{steps.0.result.n}}"}, "dependsOn": [0]}]}
        done = belfry("run", "-", plan=json.dumps(plan))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tool_result  0 one", done.stdout)
        self.assertIn('"args":{"n":7}', done.stdout)
        self.assertIn("done", done.stdout.splitlines()[-1])
        lines = [json.loads(line) for line in belfry("run", "-", "--json", plan=json.dumps({"plan": plan})).stdout.splitlines()]
        self.assertEqual(lines[-1]["status"], "completed")
        failed = belfry("run", "-", plan=json.dumps({"steps": [{"aiName": "local__bad"}]}))
        self.assertEqual(failed.returncode, 1)
        self.assertIn("short and stout (teapot)", failed.stdout)
        both = belfry("run", "-", plan=json.dumps({"steps": [{"aiName": "local__bad"}, {"aiName": "local__one", "dependsOn": [0]}]}))
        self.assertIn("1 one  skipped: ", both.stdout)
        folder = belfry("run", str(self.root))
        self.assertEqual((folder.returncode, "is a folder" in folder.stderr), (2, True))
        self.assertEqual(belfry("run", "-", plan="{").returncode, 2)
        refused = belfry("run", "-", plan=json.dumps({"steps": [{"aiName": "nobody"}]}))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("nobody", refused.stderr)
        detached = belfry("run", "-", "--detach", "--key", "k", plan=json.dumps(plan)).stdout.strip()
        self.assertEqual(belfry("run", "-", "--detach", "--key", "k", plan=json.dumps(plan)).stdout.strip(), detached)
        # A flag replaces its own member of a whole request, and nothing else.
        self.server.call("POST", "/v1/agents", {"id": "bot"}, 201)
        request = {"plan": plan, "context": {"agentId": "nobody", "taskId": "t-7"}}
        whole = belfry("run", "-", "--detach", "--agent", "bot", plan=json.dumps(request)).stdout.strip()
        shown = self.server.call("GET", f"/v1/runs/{whole}")
        self.assertEqual((shown["agentId"], shown["taskId"]), ("bot", "t-7"))
        for run in (detached, whole):
            self.assertEqual(belfry("runs", "watch", run).returncode, 0)  # from here on none of them changes
        self.assertIn("reported", belfry("runs", "show", detached).stdout)
        self.assertIn(detached, belfry("runs", "list").stdout)
        self.assertEqual(belfry("runs", "--limit", "2").stdout, belfry("runs", "list", "--limit", "2").stdout)
        self.assertEqual(belfry("runs", "--state", "failed").stdout.count("failed"),
                         belfry("runs", "list", "--state", "failed").stdout.count("failed"))
        self.assertEqual(belfry("runs", "cancel", detached).returncode, 1)
        self.assertEqual(belfry("runs", "delete", detached).stdout, f"{detached} is deleted\n")
        self.assertEqual(belfry("runs", "show", detached).returncode, 1)


if __name__ == "__main__":
    http_test.BELFRY = sys.argv.pop(1)
    unittest.main(verbosity=2)
