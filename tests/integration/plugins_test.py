#!/usr/bin/env python3
"""The bundled plugins, started as Belfry starts them: a clean environment, one line in, lines out. Whoever they ask is a
server on loopback that answers, refuses, drips, hangs and talks nonsense.

    plugins_test.py [-v] [Case.test…]
"""

import base64
import http.server
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib
from html.parser import HTMLParser
from pathlib import Path

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
NAMES = ("github_repo_info", "html_to_app", "image_draw", "qq_message_markGroupAsRead", "realtime_search")
PATIENCE = 60
KEY = "a-key-that-nobody-may-see"
ERROR_CODE = re.compile(r"[a-z][a-z_]*")


class Service:
    """Answers as `answer(method, path, headers, body)` says: (status, content), or a word: `close`, `drip`, `hang`, `nonsense`.
    Content that is not bytes is sent as JSON; a status of 302 sends to the address that is its content."""

    def __init__(self, answer):
        self.heard = []
        self.over = threading.Event()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                service.heard.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
                try:
                    service.serve(self, answer(*service.heard[-1]))
                except OSError:
                    pass  # whoever asked is gone

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def serve(self, request, said):
        if said == "hang":
            self.over.wait(PATIENCE)
        elif said == "nonsense":
            request.wfile.write(b"SSH-2.0-nothing\r\n\r\n")
        elif said == "drip":
            request.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n[")
            while not self.over.wait(0.05):
                request.wfile.write(b" ")
        elif said != "close":
            status, content = said
            request.send_response(status)
            if status == 302:
                request.send_header("Location", content)
                content = b""
            request.end_headers()
            request.wfile.write(content if isinstance(content, bytes) else json.dumps(content).encode())

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


class Case(unittest.TestCase):
    plugin = None

    def setUp(self):
        self.output = Path(tempfile.mkdtemp(prefix="belfry-plugins-"))
        self.addCleanup(shutil.rmtree, self.output)

    def service(self, answer):
        service = Service(answer if callable(answer) else lambda *_: answer)
        self.addCleanup(service.close)
        return service

    def lines(self, args, settings=None, **context):
        """What the plugin writes: lines of JSON, of which the last is the result, and the end is a good one."""
        folder = PLUGINS / self.plugin
        context = {"runId": "r1", "stepIndex": 0, "timeoutMs": 30_000, "outputDir": str(self.output), **context}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.output), "LANG": "C.UTF-8", **(settings or {})}
        done = subprocess.run([folder / "handler"], cwd=folder, env=environment, timeout=PATIENCE, capture_output=True,
                              check=False,
                              input=json.dumps({"args": args, "context": context}).encode() + b"\n")
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        self.assertNotIn(KEY, done.stdout.decode())
        lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertTrue(all("progress" in line for line in lines[:-1]))
        self.assertIn("success", lines[-1])
        return lines

    def ok(self, args, settings=None, **context):
        result = self.lines(args, settings, **context)[-1]
        self.assertTrue(result["success"], result)
        self.assertTrue(result["data"]["text"])
        return result["data"]

    def fails(self, code, args, settings=None, **context):
        result = self.lines(args, settings, **context)[-1]
        self.assertFalse(result["success"], result)
        self.assertEqual(result["error"]["code"], code, result)
        self.assertRegex(result["error"]["code"], ERROR_CODE)
        self.assertTrue(result["error"]["message"].endswith((".", "?")), result)
        return result["error"]["message"]

    def troubles(self, args, settings_for):
        """What every plugin says that asks somebody who is not as he should be."""
        for said, code in (((500, b"{}"), "http_error"), ((200, b"<html>hello"), "bad_answer"), ((200, b""), "bad_answer"),
                           ("close", "unreachable"),
                           ("nonsense", "bad_answer"), ((200, b"[" + b" " * 3_000_000 + b"]"), "too_large"),
                           ((302, "http://localhost:1/elsewhere"), "http_error"),
                           ((302, "file:///etc/passwd"), "http_error"),
                           ((200, b"[" * 100_000), "bad_answer"), ((401, {}), "http_error"), ((200, 17), "bad_answer")):
            with self.subTest(said=str(said)[:50]):
                self.fails(code, args, settings_for(self.service(said).url))
        for said in ("drip", "hang"):
            with self.subTest(said=said):
                begun = time.monotonic()
                self.fails("unreachable", args, settings_for(self.service(said).url), timeoutMs=1500)
                self.assertLess(time.monotonic() - begun, 10)
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            self.fails("unreachable", args, settings_for(f"http://127.0.0.1:{nobody.getsockname()[1]}"))
        for address in ("file:///etc/passwd", "ftp://127.0.0.1/", "127.0.0.1:80", "http://", "http://127.0.0.1:99999",
                        f"{KEY}"):
            with self.subTest(address=address):
                self.fails("not_configured", args, settings_for(address))
        # A proxy that the environment names is not used.
        proxy = self.service((200, {}))
        self.fails("http_error", args, {**settings_for(self.service((500, b"")).url), "http_proxy": proxy.url,
                                        "HTTP_PROXY": proxy.url})
        self.assertEqual(proxy.heard, [])


class Folders(unittest.TestCase):
    # F12, F1, F14
    def test_each_bundled_plugin_declares_itself_and_takes_a_schedule(self):
        timeouts = {"image_draw": 300_000, "html_to_app": 900_000}
        self.assertEqual(sorted(path.parent.name for path in PLUGINS.glob("*/config.json")), sorted(NAMES))
        for name in NAMES:
            with self.subTest(name=name):
                config = json.loads((PLUGINS / name / "config.json").read_text(encoding="utf-8"))
                self.assertEqual(config["name"], name)
                self.assertTrue(re.search(r"[\u4e00-\u9fff]", config["description"])
                                and re.search(r"[a-z]", config["description"]))
                schedule = config["inputSchema"]["properties"]["schedule"]
                text, parts = schedule["oneOf"]
                self.assertEqual((text["type"], parts["type"], sorted(parts["properties"])),
                                 ("string", "object", ["language", "timezone", "when"]))
                self.assertTrue(parts["additionalProperties"])
                self.assertTrue(os.access(PLUGINS / name / "handler", os.X_OK))
                if name in timeouts:
                    self.assertEqual(config["timeoutMs"], timeouts[name])

    # F12: as the documentation says, to change it.
    def test_a_plugin_can_be_taken_along_with_what_it_shares(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("realtime_search", "shared"):
                shutil.copytree(PLUGINS / name, Path(folder, name))
            done = subprocess.run([Path(folder, "realtime_search", "handler")], input=b'{"args":{"query":"bells"}}\n',
                                  env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=PATIENCE, check=False)
        self.assertIn(b"not_configured", done.stdout, done.stderr)

    # F12, F6: no handler knows of `schedule`; Belfry keeps it.
    def test_no_handler_reads_the_schedule(self):
        for path in PLUGINS.glob("*/*"):
            if path.suffix == ".py" or path.name == "handler":
                self.assertNotIn("schedule", path.read_text(encoding="utf-8"), path)

    # F12
    def test_every_plugin_with_settings_has_an_example_of_them(self):
        for name in set(NAMES) - {"image_draw"}:
            example = (PLUGINS / name / ".env.example").read_text(encoding="utf-8")
            code = "".join(path.read_text(encoding="utf-8") for path in (PLUGINS / name).glob("*") if path.name == "handler")
            used = set(re.findall(r'"((?:SEARCH|GITHUB|GIT|LLM|ONEBOT)_[A-Z_]+)"',
                                  code)) - {name for name in re.findall(r'"(GIT_[A-Z_]+)":', code)}
            used -= {"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_TERMINAL_PROMPT", "GIT_NO_LAZY_FETCH",
                     "GIT_OPTIONAL_LOCKS", "GIT_CEILING_DIRECTORIES"}
            self.assertTrue(used)
            for variable in used:
                self.assertIn(f"{variable}=", example)


def decode_png(content):
    """Width, height and rows of RGB; everything that the format promises is checked."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, kinds = 8, b"", []
    while at < len(content):
        size, kind = struct.unpack(">I4s", content[at:at + 8])
        body = content[at + 8:at + 8 + size]
        assert struct.unpack(">I", content[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body), kind
        kinds.append(kind)
        if kind == b"IHDR":
            width, height, depth, colours, method, filters, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, colours, method, filters, interlaced) == (8, 2, 0, 0, 0)
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND" and at == len(content)
    raw = zlib.decompress(packed)
    assert len(raw) == height * (1 + 3 * width)
    rows, above = [], bytearray(3 * width)
    for y in range(height):
        start = y * (1 + 3 * width)
        row = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + 3 * width]), above)
        rows.append(bytes(row))
        above = row
    return width, height, rows


def unfilter(kind, row, above):
    assert kind <= 4
    for i, value in enumerate(row):
        left, up, corner = (row[i - 3] if i > 2 else 0), above[i], (above[i - 3] if i > 2 else 0)
        guess = (0, left, up,
                 (left + up) // 2)[kind] if kind < 4 else min((left, up, corner),
                                                              key=lambda near: abs(left + up - corner - near))
        row[i] = (value + guess) & 255
    return row


def difference(one, other):
    """How far two pictures are from each other in each channel, 0..255, on average."""
    pairs = [(a, b) for row, line in zip(one, other) for a, b in zip(row, line)]
    return sum(abs(a - b) for a, b in pairs) / len(pairs)


def mean_colour(rows):
    return [sum(sum(row[i::3]) for row in rows) / (len(rows) * len(rows[0]) / 3) for i in range(3)]


class ImageDraw(Case):
    plugin = "image_draw"

    def draw(self, prompt, width=120, height=80, **more):
        data = self.ok({"prompt": prompt, "width": width, "height": height, **more})
        file = data["files"][0]
        content = (self.output / file["name"]).read_bytes()
        self.assertEqual((file["mimeType"], file["bytes"]), ("image/png", len(content)))
        self.assertEqual(len(list(self.output.iterdir())), 1)
        (self.output / file["name"]).unlink()
        got_width, got_height, rows = decode_png(content)
        self.assertEqual((got_width, got_height), (width, height))
        self.assertGreater(len({row[i:i + 3] for row in rows for i in range(0, len(row), 3)}), 50, "it is one colour")
        return rows

    # F12
    def test_a_prompt_becomes_a_picture_of_the_asked_size(self):
        for width, height in ((64, 64), (64, 300), (301, 65)):
            self.draw("sunset over the sea", width, height)
        data = self.ok({"prompt": "夜空下的城市"})
        self.assertEqual(decode_png((self.output / data["files"][0]["name"]).read_bytes())[:2], (768, 512))

    # F12
    def test_the_same_prompt_gives_the_same_picture_and_another_one_another(self):
        first = self.draw("a quiet forest")
        self.assertEqual(first, self.draw("a quiet forest"))
        self.assertGreater(difference(first, self.draw("a quiet forest", seed=2)), 3)
        self.assertGreater(difference(first, self.draw("火焰")), 10)
        # Even words that it does not know make a difference.
        self.assertGreater(difference(self.draw("qwxzv"), self.draw("vbnrt")), 10)

    # F12
    def test_words_in_both_languages_choose_the_colours(self):
        for day, night in (("sunny mountains", "mountains at midnight"), ("白天的山", "夜里的山")):
            self.assertGreater(sum(mean_colour(self.draw(day))), 1.5 * sum(mean_colour(self.draw(night))))
        for prompt in ("fire", "火焰"):
            red, _, blue = mean_colour(self.draw(prompt))
            self.assertGreater(red, 1.5 * blue)
        for prompt in ("ocean", "大海"):
            red, _, blue = mean_colour(self.draw(prompt))
            self.assertGreater(blue, red)

    # F12
    def test_every_word_that_it_knows_can_be_drawn(self):
        sys.path.insert(0, str(PLUGINS / "image_draw"))
        sys.dont_write_bytecode = True
        try:
            from words import MOTIF_WORDS
        finally:
            sys.path.pop(0)
        for english, chinese in MOTIF_WORDS.values():
            self.draw(f"{english.split()[0]}", 96, 64)
            self.draw(f"{chinese.split()[0]}", 64, 96)
        self.draw(" ".join(english for english, _ in MOTIF_WORDS.values()), 96, 64)

    # F12
    def test_styles_finish_it_differently(self):
        plain = self.draw("spring meadow")
        for style in ("vivid", "soft", "ink"):
            self.assertGreater(difference(plain, self.draw("spring meadow", style=style)), 2, style)

    # F12
    def test_it_says_how_far_it_is_and_speaks_the_language_of_the_prompt(self):
        lines = self.lines({"prompt": "玫瑰", "width": 64, "height": 64})
        self.assertGreater(len(lines), 3)
        self.assertRegex(lines[0]["progress"]["text"], r"\d+%")
        self.assertIn("画好了", lines[-1]["data"]["text"])
        self.assertIn("Here is", self.ok({"prompt": "roses", "width": 64, "height": 64})["text"])

    # F12
    def test_without_a_folder_a_small_picture_comes_in_the_result_and_a_large_one_is_refused(self):
        file = self.ok({"prompt": "sea", "width": 64, "height": 64}, outputDir=None)["files"][0]
        self.assertEqual(decode_png(base64.b64decode(file["base64"]))[:2], (64, 64))
        self.fails("too_large", {"prompt": "sea", "width": 700, "height": 500}, outputDir=None)

    # F12: whoever runs it by hand may say it in the environment.
    def test_a_folder_in_the_environment_is_used_too(self):
        file = self.ok({"prompt": "sea", "width": 64, "height": 64}, {"BELFRY_OUTPUT_DIR": str(self.output)},
                       outputDir=None)["files"][0]
        self.assertNotIn("base64", file)
        self.assertTrue((self.output / file["name"]).is_file())

    # F12
    def test_what_cannot_be_drawn_is_refused(self):
        for args in ({}, {"prompt": ""}, {"prompt": "  "}, {"prompt": 3}, {"prompt": "x" * 4001},
                     {"prompt": "x", "width": 63},
                     {"prompt": "x", "height": 2049}, {"prompt": "x", "width": "100"}, {"prompt": "x", "width": True},
                     {"prompt": "x", "width": 100.5}, {"prompt": "x", "style": "photo"}):
            with self.subTest(args=str(args)[:40]):
                self.fails("invalid_argument", args)
        self.assertEqual(list(self.output.iterdir()), [])

    # F12
    def test_a_file_that_cannot_be_written_is_an_error(self):
        self.fails("output_failed", {"prompt": "sea", "width": 64, "height": 64}, outputDir=str(self.output / "absent"))

    # F12
    def test_a_request_that_cannot_be_read_is_an_error(self):
        for line in (b"", b"nonsense\n", b"[]\n", b'{"args":3}\n', b'{"args":{"prompt":"\xff"}}\n'):
            done = subprocess.run([PLUGINS / self.plugin / "handler"], cwd=PLUGINS / self.plugin, input=line,
                                  timeout=PATIENCE,
                                  capture_output=True, check=True)
            self.assertEqual(json.loads(done.stdout)["error"]["code"], "invalid_argument")

    # F12
    def test_the_name_of_the_file_stays_in_its_folder(self):
        for prompt in ("../../etc/passwd", "/", "\n..", "🙂", "\ud800", "a" * 300):
            name = self.ok({"prompt": prompt, "width": 64, "height": 64})["files"][0]["name"]
            self.assertRegex(name, r"^[0-9a-z\u3400-\u9fff-]{1,40}\.png$")
            self.assertTrue((self.output / name).is_file())


class RealtimeSearch(Case):
    plugin = "realtime_search"
    FOUND = [{"title": "First  one", "url": "https://example.org/1", "content": "what it says"},
             {"title": "Second", "url": "https://example.org/2", "content": "x" * 5000},
             {"title": "a trap", "url": "javascript:alert(1)", "content": ""}]

    # F12: never an invented answer.
    def test_without_an_endpoint_nothing_is_found_and_the_setting_is_named(self):
        for settings in ({}, {"SEARCH_ENDPOINT": "  "}, {"SEARCH_API_KEY": KEY}):
            message = self.fails("not_configured", {"query": "weather"}, settings)
            self.assertIn("SEARCH_ENDPOINT", message)
            self.assertIn(".env", message)

    # F12
    def test_results_of_searxng_are_told_as_they_are(self):
        service = self.service((200, {"query": "x", "results": self.FOUND}))
        data = self.ok({"query": "今天 weather & more", "freshness": "day", "language": "zh-CN"},
                       {"SEARCH_ENDPOINT": f"{service.url}/search"})
        self.assertEqual(service.heard[0][1],
                         "/search?q=%E4%BB%8A%E5%A4%A9+weather+%26+more&format=json&time_range=day&language=zh-CN")
        self.assertEqual([result["url"] for result in data["results"]], ["https://example.org/1", "https://example.org/2"])
        self.assertEqual(data["results"][0],
                         {"title": "First one", "url": "https://example.org/1", "snippet": "what it says"})
        self.assertLessEqual(len(data["results"][1]["snippet"]), 600)

    # F12
    def test_a_plain_list_and_an_address_with_a_place_for_the_query_will_do_too(self):
        service = self.service((200, [{"title": f"t{i}", "url": f"http://example.org/{i}", "snippet": "s"}
                                      for i in range(30)]))
        data = self.ok({"query": "a b/c&d", "max_results": 20}, {"SEARCH_ENDPOINT": service.url + "/api?text={query}&n=30",
                                                                 "SEARCH_API_KEY": KEY})
        self.assertEqual(service.heard[0][1], "/api?text=a%20b%2Fc%26d&n=30")
        self.assertEqual(service.heard[0][2]["Authorization"], f"Bearer {KEY}")
        self.assertEqual(len(data["results"]), 20)

    # F12: half a character is no reason to end without a result.
    def test_a_query_that_is_no_unicode_is_searched_as_well_as_it_can_be(self):
        service = self.service((200, []))
        for address in (service.url, service.url + "/?text={query}"):
            self.ok({"query": "a\ud800"}, {"SEARCH_ENDPOINT": address})
        self.assertIn("a%3F", service.heard[0][1])

    # F12
    def test_nothing_found_is_an_answer(self):
        service = self.service((200, {"results": []}))
        self.assertIn("没有找到", self.ok({"query": "没有的东西"}, {"SEARCH_ENDPOINT": service.url})["text"])
        self.assertIn("Nothing", self.ok({"query": "nothing"}, {"SEARCH_ENDPOINT": service.url})["text"])

    # F12
    def test_troubles_of_the_service_are_errors_that_say_which(self):
        self.troubles({"query": "x"}, lambda url: {"SEARCH_ENDPOINT": url, "SEARCH_API_KEY": KEY})
        for answer in ({"error": KEY}, {"results": {}}, [1, 2], {"results": [{"title": "no address"}]}):
            self.fails("bad_answer", {"query": "x"}, {"SEARCH_ENDPOINT": self.service((200, answer)).url})

    # F12
    def test_a_key_is_not_taken_to_another_server(self):
        other = self.service((200, []))
        service = self.service((302, f"{other.url}/"))
        self.fails("http_error", {"query": "x"}, {"SEARCH_ENDPOINT": service.url, "SEARCH_API_KEY": KEY})
        self.assertEqual(other.heard, [])
        turning = self.service(lambda method, path, *_: (302, "/there") if path != "/there" else (200, self.FOUND))
        self.assertEqual(len(self.ok({"query": "x"}, {"SEARCH_ENDPOINT": turning.url})["results"]), 2)
        endless = self.service(lambda method, path, *_: (302, path + "x"))
        self.fails("http_error", {"query": "x"}, {"SEARCH_ENDPOINT": endless.url})
        self.assertLessEqual(len(endless.heard), 5)

    # F12
    def test_a_search_that_makes_no_sense_is_refused_before_anybody_is_asked(self):
        service = self.service((200, []))
        for args in ({}, {"query": " "}, {"query": 1}, {"query": "x" * 501}, {"query": "x", "max_results": 0},
                     {"query": "x", "max_results": 21},
                     {"query": "x", "max_results": "3"}, {"query": "x", "freshness": "century"}):
            self.fails("invalid_argument", args, {"SEARCH_ENDPOINT": service.url})
        self.assertEqual(service.heard, [])


class GithubRepoInfo(Case):
    plugin = "github_repo_info"
    REPO = {"full_name": "ann/bells", "html_url": "https://github.com/ann/bells", "description": "Rings",
            "stargazers_count": 12, "forks_count": 3,
            "open_issues_count": 4, "language": "C++", "default_branch": "main", "license": {"spdx_id": "MIT"},
            "archived": False,
            "pushed_at": "2026-01-02T03:04:05Z"}

    @staticmethod
    def github(release=(404, {})):
        return lambda method, path, *_: release if path.endswith("/releases/latest") else (200, GithubRepoInfo.REPO)

    # F12
    def test_a_repository_is_told_as_github_has_it(self):
        service = self.service(self.github((200, {"tag_name": "v2", "name": "Two", "published_at": "2026-01-01T00:00:00Z"})))
        data = self.ok({"repo": "ann/bells"}, {"GITHUB_API": service.url + "/", "GITHUB_TOKEN": KEY})
        self.assertEqual([heard[1] for heard in service.heard], ["/repos/ann/bells", "/repos/ann/bells/releases/latest"])
        self.assertEqual(service.heard[0][2]["Authorization"], f"Bearer {KEY}")
        self.assertEqual((data["stars"], data["forks"], data["openIssues"], data["license"], data["latestRelease"]["tag"]),
                         (12, 3, 4, "MIT", "v2"))
        plain = self.service(self.github())
        self.assertIsNone(self.ok({"repo": "https://github.com/ann/bells.git"}, {"GITHUB_API": plain.url})["latestRelease"])
        self.assertNotIn("Authorization", plain.heard[0][2])

    # F12
    def test_troubles_of_github_are_errors_that_say_which(self):
        self.troubles({"repo": "ann/bells"}, lambda url: {"GITHUB_API": url, "GITHUB_TOKEN": KEY})
        self.fails("not_found", {"repo": "ann/none"}, {"GITHUB_API": self.service((404, {"message": "Not Found"})).url})
        self.fails("http_error", {"repo": "ann/bells"}, {"GITHUB_API": self.service(self.github((500, {}))).url})

    # F12
    def test_without_settings_neither_github_nor_this_machine_is_asked(self):
        self.assertIn("GITHUB_API", self.fails("not_configured", {"repo": "ann/bells"}))
        self.assertIn("GIT_ROOTS", self.fails("not_configured", {"path": str(self.output)}))

    # F12
    def test_what_is_no_repository_is_refused(self):
        service = self.service((200, self.REPO))
        for args in ({}, {"repo": "bells"}, {"repo": "ann/.."}, {"repo": "../x"}, {"repo": "ann/bells/issues"},
                     {"repo": "ann/be lls"}, {"repo": 3},
                     {"repo": "ann/bells?x"}, {"repo": "ann/bells", "path": "/x"},
                     {"repo": "https://evil.example/ann/bells"}):
            self.fails("invalid_argument", args, {"GITHUB_API": service.url})
        self.assertEqual(service.heard, [])

    def git(self, folder, *arguments):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.output), "GIT_CONFIG_NOSYSTEM": "1",
                       "GIT_AUTHOR_NAME": "Ann", "GIT_COMMITTER_NAME": "Ann",
                       "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_COMMITTER_EMAIL": "ann@example.org"}
        subprocess.run(["git", "-C", folder, *arguments], env=environment, check=True, capture_output=True)

    def repository(self, *path):
        folder = self.output.joinpath(*path)
        folder.mkdir(parents=True)
        self.git(folder, "init", "-q", "-b", "trunk")
        return folder

    # F12
    def test_a_local_repository_is_told_without_credentials(self):
        folder = self.repository("roots", "bells")
        for subject in ("first", "second, with “quotes” and 中文"):
            self.git(folder, "commit", "-q", "--allow-empty", "-m", subject)
        self.git(folder, "tag", "v1")
        self.git(folder, "remote", "add", "origin", f"https://ann:{KEY}@example.org/ann/bells.git?token={KEY}")
        self.git(folder, "remote", "add", "other", "git@example.org:ann/bells.git")
        data = self.ok({"path": str(folder)}, {"GIT_ROOTS": f"/nowhere:{self.output / 'roots'}"})
        self.assertEqual((data["branch"], data["commits"], data["tags"]), ("trunk", 2, {"count": 1, "latest": ["v1"]}))
        self.assertEqual(data["lastCommit"]["subject"], "second, with “quotes” and 中文")
        self.assertEqual(data["contributors"], {"count": 1, "top": [{"name": "Ann", "commits": 2}]})
        self.assertEqual(data["remotes"],
                         {"origin": "https://example.org/ann/bells.git", "other": "example.org:ann/bells.git"})

    # F12
    def test_a_repository_without_commits_has_none(self):
        folder = self.repository("roots", "empty")
        data = self.ok({"path": str(folder)}, {"GIT_ROOTS": str(self.output / "roots")})
        self.assertEqual((data["commits"], data["lastCommit"], data["branch"]), (0, None, "trunk"))

    # F12
    def test_only_what_is_inside_the_roots_is_read(self):
        outside = self.repository("outside")
        around = self.repository("around")
        (around / "roots").mkdir()
        roots = around / "roots"
        (roots / "link").symlink_to(outside)
        (roots / "plain").mkdir()
        (roots / "pointer").mkdir()
        (roots / "pointer" / ".git").write_text(f"gitdir: {outside}/.git\n", encoding="utf-8")
        settings = {"GIT_ROOTS": str(roots)}
        for path in (outside, roots / ".." / ".." / "outside", roots / "link", roots / "pointer", roots / "absent",
                     "relative", "/"):
            self.fails("invalid_argument", {"path": str(path)}, settings)
        for path in (roots / "plain", roots):
            self.fails("not_a_repository", {"path": str(path)}, settings)

    # F12
    def test_a_repository_runs_no_program_of_its_own(self):
        folder = self.repository("roots", "trap")
        self.git(folder, "commit", "-q", "--allow-empty", "-m", "x")
        trap = self.output / "trap.sh"
        trap.write_text(f"#!/bin/sh\ntouch {self.output}/sprung\n", encoding="utf-8")
        trap.chmod(0o755)
        for setting in ("core.fsmonitor", "core.pager", "core.sshCommand", "gpg.program", "diff.external", "core.editor",
                        "core.alternateRefsCommand"):
            self.git(folder, "config", setting, str(trap))
        self.git(folder, "config", "log.showSignature", "true")
        self.ok({"path": str(folder)}, {"GIT_ROOTS": str(self.output)})
        self.assertFalse((self.output / "sprung").exists())

    # F12
    def test_without_git_that_is_what_it_says(self):
        tools = self.output / "bin"
        tools.mkdir()
        (tools / "python3").symlink_to(sys.executable)
        (tools / "env").symlink_to("/usr/bin/env")
        self.fails("git_missing", {"path": str(self.output)}, {"GIT_ROOTS": str(self.output), "PATH": str(tools)})


class MarkGroupAsRead(Case):
    plugin = "qq_message_markGroupAsRead"
    DONE = (200, {"status": "ok", "retcode": 0, "data": None})

    # F12
    def test_a_group_is_marked_through_onebot(self):
        for group in (123456, "123456"):
            service = self.service(self.DONE)
            data = self.ok({"group_id": group}, {"ONEBOT_URL": service.url + "/", "ONEBOT_ACCESS_TOKEN": KEY})
            method, path, headers, body = service.heard[0]
            self.assertEqual((method, path, body), ("POST", "/mark_group_msg_as_read", {"group_id": 123456}))
            self.assertEqual((headers["Authorization"], headers["Content-Type"]), (f"Bearer {KEY}", "application/json"))
            self.assertEqual(data["results"], [{"group_id": 123456, "marked": True, "action": "mark_group_msg_as_read"}])

    # F12
    def test_of_several_groups_each_has_its_own_result(self):
        service = self.service(lambda method, path, headers, body: self.DONE if body["group_id"] != 2
                               else (200, {"status": "failed", "retcode": 100, "wording": "no such group"}))
        lines = self.lines({"group_id": [1, "2", 3, 3]}, {"ONEBOT_URL": service.url}, language="zh")
        data = lines[-1]["data"]
        self.assertEqual([(result["group_id"], result["marked"]) for result in data["results"]],
                         [(1, True), (2, False), (3, True)])
        self.assertIn("no such group", data["results"][1]["error"]["message"])
        self.assertEqual((data["marked"], len(lines)), (2, 4))
        self.assertIn("2 个群", data["text"])

    # F12
    def test_a_service_without_the_action_is_given_a_message_instead(self):
        for missing in ((404, b""), (200, {"status": "failed", "retcode": 1404})):
            service = self.service(lambda method, path, *_: self.DONE if path == "/mark_msg_as_read" else missing)
            data = self.ok({"group_id": 1, "message_id": "-77"}, {"ONEBOT_URL": service.url})
            self.assertEqual(service.heard[1][3], {"message_id": -77})
            self.assertEqual(data["results"][0]["action"], "mark_msg_as_read")
            self.fails("not_supported", {"group_id": 1}, {"ONEBOT_URL": service.url})
            self.fails("not_supported", {"group_id": 1, "message_id": 5}, {"ONEBOT_URL": self.service(missing).url})

    # F12
    def test_what_onebot_did_not_do_is_no_success(self):
        for answer in ({"status": "failed", "retcode": 100}, {"status": "async", "retcode": 1},
                       {"status": "ok", "retcode": 3}):
            self.fails("refused", {"group_id": 1}, {"ONEBOT_URL": self.service((200, answer)).url})
        self.fails("bad_answer", {"group_id": 1}, {"ONEBOT_URL": self.service((200, {"hello": "world"})).url})
        self.fails("refused", {"group_id": [1, 2]},
                   {"ONEBOT_URL": self.service((200, {"status": "failed", "retcode": 9})).url})

    # F12
    def test_a_wrong_token_is_said_and_not_shown(self):
        service = self.service(lambda method, path, headers, body: self.DONE
                               if headers.get("Authorization") == "Bearer right" else (403, b""))
        message = self.fails("http_error", {"group_id": 1}, {"ONEBOT_URL": service.url, "ONEBOT_ACCESS_TOKEN": KEY})
        self.assertIn("ONEBOT_ACCESS_TOKEN", message)
        self.ok({"group_id": 1}, {"ONEBOT_URL": service.url, "ONEBOT_ACCESS_TOKEN": "right"})

    # F12
    def test_troubles_of_the_service_are_errors_that_say_which(self):
        self.troubles({"group_id": 1}, lambda url: {"ONEBOT_URL": url, "ONEBOT_ACCESS_TOKEN": KEY})
        self.assertIn("ONEBOT_URL", self.fails("not_configured", {"group_id": 1}))

    # F12
    def test_what_is_no_group_is_refused(self):
        service = self.service(self.DONE)
        for args in ({}, {"group_id": 0}, {"group_id": -1}, {"group_id": "abc"}, {"group_id": "1/2"}, {"group_id": []},
                     {"group_id": list(range(1, 52))},
                     {"group_id": True}, {"group_id": 1.5}, {"group_id": 1, "message_id": "x"},
                     {"group_id": [1, 2], "message_id": 3}):
            self.fails("invalid_argument", args, {"ONEBOT_URL": service.url})
        self.assertEqual(service.heard, [])


class Page(HTMLParser):
    """Which scripts, styles and references a page has, as a parser sees it that is not the packer's."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.styles, self.references, self.metas, self.tags, self.title = [], [], [], [], [], ""
        self.within = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.within = tag if tag in ("script", "style", "title") else None
        if tag in ("script", "style"):
            getattr(self, tag + "s").append("")
        if tag == "meta":
            self.metas.append(attributes)
        self.references += [value for name, value in attrs if name in ("src", "srcset", "poster", "data") or name == "href"
                            and tag == "link"]

    def handle_endtag(self, tag):
        self.within = None

    def handle_data(self, data):
        if self.within in ("script", "style"):
            getattr(self, self.within + "s")[-1] += data
        elif self.within == "title":
            self.title += data


PIXEL = base64.b64encode(b"\x89PNG not really").decode()


class HtmlToApp(Case):
    plugin = "html_to_app"

    def pack(self, html=None, files=None, name="demo", **more):
        args = {"app_name": name, **({"html": html} if html is not None else {}), **({"files": files} if files else {}),
                **more}
        data = self.ok(args)
        self.assertEqual([path.name for path in self.output.iterdir()], [data["files"][0]["name"]])
        content = (self.output / data["files"][0]["name"]).read_text(encoding="utf-8")
        self.assertEqual(data["files"][0]["bytes"], len(content.encode()))
        return content, Page(content)

    # F12
    def test_a_page_and_its_files_become_one_file_without_references(self):
        html = """<!DOCTYPE html><html lang="fr"><head><meta charset="latin1"><title>Mine</title><link rel=stylesheet href="./css/a.css?v=1">
            <link rel="preload" href="x.js" as="script"><script src='app.js' defer></script></head>
            <body style="background:url(bg.png)"><!-- <img src="missing.png"> --><img src="bg.png" alt="a > b"><script>let a = "<img src=no.png>";</script></body></html>"""
        content, page = self.pack(html, {"css/a.css": "@import 'b.css' print; p{background:url('../bg.png')}",
                                         "css/b.css": "i{color:red}",
                                         "app.js": "document.title = 'ran'", "bg.png": PIXEL})
        self.assertTrue(all(reference.startswith("data:") for reference in page.references), page.references)
        self.assertEqual(page.scripts, ['let a = "<img src=no.png>";', "document.title = 'ran'"])
        self.assertIn("@media print {i{color:red}}", page.styles[0])
        self.assertNotRegex(content, r"url\((?!&quot;data:|\"data:)")
        self.assertEqual((page.title, content.count("<html"), page.tags.count("head")), ("Mine", 1, 1))
        self.assertIn('<html lang="fr">', content)
        self.assertEqual([meta["charset"] for meta in page.metas if "charset" in meta], ["utf-8"])

    # F12
    def test_a_fragment_gets_a_whole_document(self):
        content, page = self.pack("<p>hi &amp; bye</p>", name="计算 <b>&\"器", description='says "hi"')
        self.assertTrue(content.startswith("<!doctype html>"))
        self.assertEqual(page.title, '计算 <b>&"器')
        self.assertIn("<p>hi &amp; bye</p>", content)
        names = {meta.get("name") for meta in page.metas}
        self.assertTrue({"viewport", "theme-color", "description"} <= names)
        policy = next(meta["content"] for meta in page.metas if meta.get("http-equiv") == "Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("http", policy)
        self.assertTrue(page.references[0].startswith("data:image/svg+xml,"))

    # F12
    def test_a_script_from_a_file_cannot_end_its_element(self):
        script = 'let a = "</script><img src=x onerror=alert(1)>"; let b = "</SCRIPT>"; let c = "<!-- <script>";'
        _, page = self.pack('<script src="a.js"></script><p>after</p><link rel="stylesheet" href="a.css">',
                            {"a.js": script, "a.css": 'p::after{content:"</style><script>alert(1)</script>"}'})
        self.assertEqual(len(page.scripts), 1)
        self.assertEqual(page.scripts[0].replace("<\\/", "</").replace("<\\!", "<!"), script)
        self.assertNotIn("img", page.tags)
        self.assertEqual(page.styles, ['p::after{content:"<\\/style><script>alert(1)</script>"}'])

    # F12
    def test_the_policy_stands_before_everything_of_the_page(self):
        for html in ("<script>one()</script><head><title>x</title></head>", "<!--<head>--><script>one()</script>",
                     "<html><script>one()</script><body>",
                     "<head><script>one()</script>", "<title><head></title><script>one()</script>"):
            content, _ = self.pack(html)
            self.assertLess(content.index("Content-Security-Policy"), content.index("one()"), html)
            self.assertLess(content.index("Content-Security-Policy"), content.find("<!--") if "<!--" in content
                            else len(content))

    # F12
    def test_what_the_network_would_have_to_bring_is_refused_unless_it_may(self):
        for html in ('<script src="https://example.org/a.js"></script>',
                     '<link rel="stylesheet" href="//example.org/a.css">', '<img src="http://example.org/a.png">',
                     "<style>p{background:url(https://example.org/a.png)}</style>",
                     '<style>@import "https://example.org/a.css";</style>', '<iframe src="https://example.org"></iframe>'):
            self.assertIn("example.org", self.fails("invalid_argument", {"app_name": "a", "html": html}))
            self.assertIn("example.org", self.pack(html, allow_network=True)[0])
        self.assertNotIn("Content-Security-Policy", self.pack("<p>", allow_network=True)[0])
        self.assertIn("missing.js",
                      self.fails("invalid_argument", {"app_name": "a", "html": '<script src="missing.js"></script>'}))
        self.assertNotIn("refresh", self.pack('<meta http-equiv="refresh" content="0;url=https://example.org"><p>x</p>')[0])

    # F12
    def test_the_name_of_the_file_stays_in_its_folder(self):
        for name, wanted in (("../../etc/passwd", "etc-passwd.html"), ("..", "app.html"), ("/", "app.html"),
                             ("a\\b\0c", "a-b-c.html"), ("\ud800", "app.html"), ("我的 应用", "我的 应用.html"),
                             (".hidden", "hidden.html"), ("字" * 80, "字" * 60 + ".html")):
            self.assertEqual(self.ok({"app_name": name, "html": "<p>"})["files"][0]["name"], wanted)
        self.assertEqual(len(list(self.output.iterdir())), 6)

    # F12
    def test_what_cannot_be_packed_is_refused(self):
        for args in ({}, {"app_name": " ", "html": "x"}, {"app_name": "a"}, {"app_name": "a", "html": 3},
                     {"app_name": "a", "html": "x", "files": []},
                     {"app_name": "a", "html": "x", "files": {"a": 1}},
                     {"app_name": "a", "html": "<img src=a.png>", "files": {"a.png": "not base64!"}},
                     {"app_name": "a", "html": '<link rel=stylesheet href=a.css>', "files": {"a.css": "@import 'a.css';"}},
                     {"app_name": "a", "html": '<script type=module src=a.js></script>',
                      "files": {"a.js": "import './b.js'"}}):
            with self.subTest(args=str(args)):
                self.fails("invalid_argument", args)
        self.fails("too_large", {"app_name": "a", "html": "<p>" + "x" * 300_000}, outputDir=None)
        self.assertIn("base64", self.ok({"app_name": "a", "html": "<p>"}, outputDir=None)["files"][0])

    # F12: never an invented app.
    def test_without_html_and_without_a_model_the_settings_are_named(self):
        for settings in ({}, {"LLM_BASE_URL": "http://127.0.0.1:1"}, {"LLM_MODEL": "m"}):
            message = self.fails("not_configured", {"app_name": "calc", "description": "创建一个计算器"}, settings)
            for word in (".env", "LLM_BASE_URL", "LLM_MODEL", "LLM_API_KEY"):
                self.assertIn(word, message)

    @staticmethod
    def said(text, finish="stop"):
        return (200, {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}]})

    def settings(self, url):
        return {"LLM_BASE_URL": url, "LLM_MODEL": "m1", "LLM_API_KEY": KEY}

    # F12
    def test_a_configured_model_writes_the_app(self):
        page = "<!DOCTYPE html><html><body><script>const r = /[\"'`(]/g; let t = `a ${[1].map((x) => `<${x}>`)}`; // it's\n</script>计算器</body></html>"
        service = self.service(self.said(f"Here it is:\n```html\n{page}\n```\nEnjoy!"))
        data = self.ok({"app_name": "calc", "description": "创建一个计算器", "details": "大按钮"}, self.settings(service.url + "/v1/"))
        _, path, headers, body = service.heard[0]
        self.assertEqual((path, body["model"], headers["Authorization"]), ("/v1/chat/completions", "m1", f"Bearer {KEY}"))
        self.assertIn("大按钮", body["messages"][1]["content"])
        content = (self.output / "calc.html").read_text(encoding="utf-8")
        self.assertIn("计算器</body>", content.replace("\n", ""))
        self.assertNotIn("Enjoy", content)
        self.assertTrue(data["written_by_model"])

    # F12
    def test_what_a_model_says_that_is_no_app_is_an_error(self):
        whole = "<html><body><script>{}</script></body></html>"
        for answer in (self.said("I cannot do that."), self.said(whole, "length"), self.said(None), (200, {"choices": []}),
                       (200, {"error": KEY}),
                       self.said(whole.format("function a() {")), self.said(whole.format("let a = 'b")),
                       self.said(whole.format("let a = `b")),
                       self.said('<html><body><script src="https://cdn.example/x.js"></script></body></html>')):
            with self.subTest(answer=str(answer)[:80]):
                self.fails("bad_answer", {"app_name": "a", "description": "b"}, self.settings(self.service(answer).url))
        self.assertEqual(list(self.output.iterdir()), [])

    # F12
    def test_troubles_of_the_model_are_errors_that_say_which(self):
        self.troubles({"app_name": "a", "description": "b"}, self.settings)


del Case  # it is no test itself


if __name__ == "__main__":
    unittest.main()
