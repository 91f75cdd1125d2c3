"""A model server on loopback that speaks chat completions, and does what its test says.

`answer(request)` is asked what to say: {"text": …}, {"calls": [(name, arguments), …]} or both, with "trouble": one of
429, 500, 401 (a status), "cut" (the stream breaks off in the middle), "hang" (nothing comes), "garbage", "endless",
"huge" (10 MB), "half" (a stream that ends in the middle of a tool call, cleanly).
`at(stage, number)` is called at each step of each request: "asked", "begun", "half", "said".
"""

import http.server
import json
import threading


class ModelServer:
    def __init__(self, answer, tls=None):
        self.answer = answer
        self.at = lambda stage, number: None
        self.requests = []
        self.news = threading.Condition()
        self.over = threading.Event()
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.close_connection = True
                try:
                    model.serve(self, body)
                except OSError:
                    pass  # whoever asked is gone

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def wait_for(self, count, patience=20):
        with self.news:
            if not self.news.wait_for(lambda: len(self.requests) >= count, patience):
                raise AssertionError(f"{len(self.requests)} of {count} requests came")

    def serve(self, request, body):
        with self.news:
            self.requests.append((dict(request.headers), body))
            number = len(self.requests)
            said = self.answer(body)
            self.news.notify_all()
        self.at("asked", number)
        trouble = said.get("trouble")
        if isinstance(trouble, int):
            return self.refuse(request, trouble, said.get("headers", {}))
        if trouble == "hang":
            self.over.wait(60)
            return
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        self.at("begun", number)
        if trouble == "garbage":
            self.chunk(request, "data: {\"choices\": nonsense}\n\n")
        elif trouble in ("endless", "huge"):
            event = self.event({"content": "x" * 1000})
            for _ in range(10_000):
                self.chunk(request, event)
        else:
            events = self.events(said)
            middle = len(events) // 2
            for i, event in enumerate(events):
                if i == middle:
                    self.at("half", number)
                    if trouble == "cut":
                        return request.connection.close()
                    if trouble == "half":
                        break
                self.chunk(request, event)
        request.wfile.write(b"0\r\n\r\n")
        request.wfile.flush()
        self.at("said", number)

    @staticmethod
    def refuse(request, status, headers):
        text = json.dumps({"error": {"message": f"no, {status}"}}).encode()
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    @staticmethod
    def chunk(request, text):
        data = text.encode()
        request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        request.wfile.flush()

    @staticmethod
    def event(delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n"

    def events(self, said):
        events = [self.event({"role": "assistant", "content": None})]
        text = said.get("text", "")
        events += [self.event({"content": text[i:i + 3]}) for i in range(0, len(text), 3)]
        for index, (name, arguments) in enumerate(said.get("calls", [])):
            written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            events.append(self.event({"tool_calls": [
                {"index": index, "id": "same", "type": "function", "function": {"name": name, "arguments": ""}}]}))
            for i in range(0, len(written), 7):
                events.append(self.event({"tool_calls": [
                    {"index": index, "function": {"arguments": written[i:i + 7]}}]}))
        events.append(self.event({}, "tool_calls" if said.get("calls") else "stop"))
        events.append('data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10}}\n\n')
        events.append("data: [DONE]\n\n")
        return events


def told(body):
    """Everything but the system's part, as one text."""
    out = []
    for message in body["messages"][1:]:
        out.append(f"[{message['role']}] {message.get('content') or ''}")
        out += [f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls", [])]
    return "\n".join(out)
