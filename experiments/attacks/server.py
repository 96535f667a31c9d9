"""A faulty chat server: drips, ends early, never ends, states wrong lengths, redirects, tells the key.

Whatever it does ends in a reply or an error of the library, within the deadline, and no error holds the key.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import socket
import threading
import time
import traceback

from embodied_mem.errors import EmbodiedMemError

from . import Counts

KEY = "sk-SECRETKEY"
DEADLINE_S = 0.6
TRIES = 8
_NUMBERS = (10**400, -1, 1e308, float("1e999"), "7", None, [], {}, True, 2**63, 0.5, -(10**30))
_LINES = ("data: ", "data:", ": ping", "event: x", "id: 1", "", "data: [DONE]", "retry: 99999999999999999999")


def server(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Answers made by chance, each on a real socket."""
    from embodied_mem.language import OpenAIChatModel

    os.environ["no_proxy"] = "127.0.0.1"
    landed = 0
    for _ in range(TRIES):
        with _Liar(rng) as liar:
            stream = rng.random() < 0.4
            began = time.monotonic()
            try:
                model = OpenAIChatModel(
                    liar.url, "m", api_key=KEY, deadline_s=DEADLINE_S, timeout_s=0.3, max_retries=1, backoff_s=0.01,
                    max_answer_bytes=200_000, stream=stream, prices={"m": (1, 1)},
                )  # fmt: skip
                model.complete([{"role": "user", "content": "where is the apple?"}])
            except EmbodiedMemError as error:
                shown = "".join(traceback.format_exception(error))
                assert KEY not in shown, f"the key is in the error after {liar.told}"
            except Exception as error:
                raise AssertionError(f"{type(error).__name__}: {error} after {liar.told}") from error
            took = time.monotonic() - began
            assert took < DEADLINE_S + 5, f"{took:.1f} s with a deadline of {DEADLINE_S} s after {liar.told}"
            landed += liar.asked
    return Counts(TRIES, landed)


class _Liar:
    """One server with one behaviour, chosen by chance.

    Attributes:
        asked: whether anybody asked; told: what it answers with, for messages.
    """

    def __init__(self, rng: random.Random):
        self.asked = False
        self._rng, self._stop = rng, threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._answer, self._pause = self._make()
        self.told = f"{self._answer[:300]!r}, {len(self._answer)} bytes, a pause of {self._pause} s"
        self._endless = rng.random() < 0.1

    def __enter__(self) -> _Liar:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(2)
                connection.recv(1 << 16)
                self.asked = True
                size = 1 if self._pause else 1 << 14
                for at in range(0, len(self._answer), size):
                    if self._stop.is_set():
                        return
                    connection.sendall(self._answer[at : at + size])
                    time.sleep(self._pause)
                while self._endless and not self._stop.is_set():
                    connection.sendall(b"data: x\n\n" * 500)
            except OSError:
                return

    def _make(self) -> tuple[bytes, float]:
        """Return (all bytes of an answer, the pause after each of them)."""
        rng = self._rng
        body = self._body()
        status = rng.choice(
            ["200 OK"] * 5 + ["400 Bad", "401 No", "429 Busy", "500 Oh", "302 Found", "307 There", "999", "-1 x", ""]
        )
        lines = [f"HTTP/1.1 {status}"]
        kind = rng.choice(["application/json", "text/event-stream", "text/html", "", "application/json; charset=utf-7"])
        lines.append(f"Content-Type: {kind}")
        length = rng.choice(
            [len(body)] * 4 + [len(body) + 9, max(len(body) - 3, 0), -1, 2**63, 10**400, "x", "", "1, 2", None]
        )
        if length is not None:
            lines.append(f"Content-Length: {length}")
        elif rng.random() < 0.5:
            lines.append("Transfer-Encoding: chunked")
            size = rng.choice(["ffffffffffffffffffff", "-5", "zz", "", f"{len(body):x}", f"{len(body) + 4:x}"])
            body = size.encode() + b"\r\n" + body + rng.choice([b"\r\n0\r\n\r\n", b""])
        if status.startswith("3"):
            places = [
                "ftp://127.0.0.1/x",
                "file:///etc/hostname",
                "http://[::1",
                "/v1/again",
                "//",
                "http://127.0.0.1:1/",
                "\x00",
                "",
            ]
            lines.append(f"Location: {rng.choice([*places, self.url])}")
        if rng.random() < 0.2:
            lines.append(
                rng.choice(
                    ["Retry-After: 1e999", "Retry-After: -5", "Retry-After: x", "X: " + "y" * 100_000, "no colon"]
                )
            )
        lines += [f"X-{i}: {i}" for i in range(rng.choice([0, 0, 0, 200]))]
        whole = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
        if rng.random() < 0.2:
            whole = whole[: rng.randrange(len(whole))]
        return whole, rng.choice([0, 0, 0, 0.01])

    def _body(self) -> bytes:
        rng = self._rng
        usage = {name: rng.choice(_NUMBERS) for name in ("prompt_tokens", "completion_tokens")}
        text = rng.choice(["in fridge 1", "", None, 7, ["x"], "\ud800", f"Bearer {KEY}", "x" * 300_000])
        part = {"content": text}
        answer = {"choices": [{"message": part, "delta": part, "finish_reason": rng.choice(["stop", None, 3])}]}
        answer["usage"] = rng.choice([usage, usage, None, [], "many"])
        whole = json.dumps(answer).encode()
        kind = rng.randrange(6)
        if kind == 0:
            lines = [
                rng.choice(_LINES) + (whole.decode() if rng.random() < 0.5 else "") for _ in range(rng.randrange(12))
            ]
            return "\n".join(lines).encode()
        if kind == 1:
            return json.dumps(
                {"error": {"message": f"wrong key {KEY}", "headers": f"Authorization: Bearer {KEY}"}}
            ).encode()
        if kind == 2:
            return rng.choice(
                [b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe{", b"null", b"[]", b"3", b"9" * 10_000, b""]
            )
        return whole
