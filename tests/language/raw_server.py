"""A server that sends whatever bytes it is told to, and the bytes of chat answers, sound and broken."""

from __future__ import annotations

import json
import socket
import threading
import time

QUESTION = [{"role": "user", "content": "Where is the apple?"}]


class RawServer:
    """Runs `scripts[i](connection)` for the i-th connection, the last one for ever, after reading its request.

    Attributes:
        bodies: requests as JSON.
        gone: set when a script found that the client had closed the connection.
    """

    def __init__(self, *scripts):
        self.scripts, self.bodies, self.gone = list(scripts), [], threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
            threading.Thread(target=self.answer, args=(connection, script), daemon=True).start()

    def answer(self, connection, script):
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(next(line for line in head.split(b"\r\n") if b"content-length" in line.lower()).split()[1])
            while len(body) < length:
                body += connection.recv(65536)
            self.bodies.append(json.loads(body))
            try:
                script(connection)
            except OSError:
                self.gone.set()


def response(
    body: bytes, length: int | None = None, kind: str = "application/json", connection: str = "close"
) -> bytes:
    """An HTTP answer; `length` None leaves its end to the closing of the connection.

    That the connection will be closed is said in the header: a client might ask on it again before it finds out.
    """
    header = f"Content-Length: {length}\r\n" if length is not None else ""
    header += f"Content-Type: {kind}\r\nConnection: {connection}\r\n"
    return f"HTTP/1.1 200 OK\r\n{header}\r\n".encode() + body


def sends(*parts: bytes, pause_s: float = 0.0):
    def script(connection):
        for part in parts:
            connection.sendall(part)
            time.sleep(pause_s)

    return script


def event(text=None, finish=None, usage=None, **more) -> bytes:
    choices = [] if usage else [{"delta": {} if text is None else {"content": text}, "finish_reason": finish}]
    return b"data: " + json.dumps({"choices": choices, "usage": usage, **more}).encode() + b"\r\n\r\n"


def stream(*events: bytes, pause_s: float = 0.0):
    return sends(response(b"", kind="text/event-stream"), *events, pause_s=pause_s)


def whole(text: str, **fields) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}, **fields}], "usage": {"prompt_tokens": 7}}).encode()


DONE = b"data: [DONE]\n\n"
COUNTS = event(usage={"prompt_tokens": 9, "completion_tokens": 3})
GOOD = whole("in fridge 1", finish_reason="stop")
good = sends(response(GOOD, len(GOOD)))
good_stream = stream(event(""), event("in "), event("fridge 1"), event(finish="stop"), COUNTS, DONE)
