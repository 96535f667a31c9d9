"""A chat server that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import http.server
import json
import threading
import time


class Server:
    """Answers POSTs with the given (status, body, headers) in order, the last one for ever; remembers the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests: list[tuple[str, dict, dict]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, dict(self.headers), body))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                status, data, headers = answer(body) if callable(answer) else answer
                if status == "drop":
                    self.connection.close()
                    return
                if status == "slow":
                    time.sleep(0.6)
                    status = 200
                data = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (OSError, ValueError):
                    self.close_connection = True

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *args: None
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def reply(text="in fridge 1", prompt=11, completion=4):
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage}, {}
