"""POST requests with JSON to a server that may be busy, late, endless, cut off, or wrong.

    http = HttpJson("http://localhost:8000/v1", timeout_s=20, deadline_s=60, max_answer_bytes=1 << 20)
    http.post("embeddings", {"input": ["an apple"]}, meter)                  # a dict
    http.post_stream("chat/completions", {"stream": True}, meter, print)     # a dict per event

Whatever the server does, a call ends within `deadline_s` and reads at most `max_answer_bytes`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InvalidInputError
from .chat import ChatError, UsageMeter

_MAX_WAIT_S = 60.0
_CHUNK_BYTES = 1 << 16
_RETRIED_STATUS = (408, 409, 425, 429)


class _Again(Exception):
    """A try failed in a way that may pass."""

    def __init__(self, problem: str, kind: str = "failed", retry_after: str | None = None):
        super().__init__(problem)
        self.kind, self.retry_after = kind, retry_after


class _ListenerError(Exception):
    """Carries an error of the caller's callback past the handling of the connection's errors."""


class _Watch:
    """Shuts a connection's socket down at a moment, whatever its thread is waiting for: a server that sends one byte a
    second is never silent for long, so that a socket's own timeout does not end it."""

    def __init__(self, seconds_s: float):
        self.sock = None
        self.expired = False
        self._timer = threading.Timer(max(seconds_s, 0.0), self._expire)
        self._timer.daemon = True

    def _expire(self) -> None:
        self.expired = True
        with contextlib.suppress(OSError, AttributeError):  # closed already, or not yet open
            self.sock.shutdown(2)

    def opened(self, sock) -> None:
        self.sock = sock
        if self.expired:  # while it was being opened
            self._expire()

    def __enter__(self) -> _Watch:
        self._timer.start()
        return self

    def __exit__(self, *_) -> None:
        self._timer.cancel()

    def opener(self) -> urllib.request.OpenerDirector:
        """An opener (proxies and redirects as usual) whose connections are watched."""
        watch = self

        class Plain(http.client.HTTPConnection):
            def connect(self):
                super().connect()
                watch.opened(self.sock)

        class Secure(http.client.HTTPSConnection):
            def connect(self):
                super().connect()
                watch.opened(self.sock)

        class PlainHandler(urllib.request.HTTPHandler):
            def http_open(self, request):
                return self.do_open(Plain, request)

        class SecureHandler(urllib.request.HTTPSHandler):
            def https_open(self, request):
                return self.do_open(Secure, request)

        return urllib.request.build_opener(PlainHandler, SecureHandler)


class HttpJson:
    """POST requests with JSON, repeated when the server is busy.

    A try is repeated on the status 408, 409, 425, 429 and 5xx, on a refused or dropped connection, on an answer that is
    empty or cut off, and on silence, after `backoff_s * 2**i` seconds or what the server's `Retry-After` asks for (at
    most 60 s). What is wrong in another way is wrong the second time too and is an error at once. Names are resolved
    without a limit of time. Threads may share one object.

    Args:
        base_url: `http://...` or `https://...`, with the version part (`/v1`).
        api_key: sent as bearer token, to this host only; None for none.
        timeout_s: longest silence within one try.
        deadline_s: limit of a whole call: all tries, the waits between them, and a streamed answer to its end.
        max_answer_bytes: limit of an answer.
        max_retries: tries after the first.
        backoff_s: first waiting time.
        sleep: waits; replaced in tests.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        deadline_s: float = 600.0,
        max_answer_bytes: int = 16 << 20,
        max_retries: int = 5,
        backoff_s: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ):
        if urllib.parse.urlsplit(base_url).scheme not in ("http", "https"):
            raise InvalidInputError(f"base_url: expected http://... or https://..., got {base_url!r}")
        if max_retries < 0 or timeout_s <= 0:
            raise InvalidInputError(f"expected max_retries >= 0 and timeout_s > 0, got {max_retries} and {timeout_s}")
        if deadline_s <= 0 or max_answer_bytes < 1:
            raise InvalidInputError(
                f"expected deadline_s > 0 and max_answer_bytes >= 1, got {deadline_s} and {max_answer_bytes}"
            )
        self.base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._timeout_s, self._deadline_s, self._max_answer_bytes = timeout_s, deadline_s, max_answer_bytes
        self._max_retries, self._backoff_s, self._sleep = max_retries, backoff_s, sleep

    def post(self, path: str, body: dict, meter: UsageMeter) -> dict:
        """The JSON object with which the server answers `body`.

        Raises:
            ChatError: the server refused, or failed after all tries, or was late, or answered something else.
        """
        return self._tries(path, body, meter, self._read_object)

    def post_stream(
        self,
        path: str,
        body: dict,
        meter: UsageMeter,
        on_event: Callable[[dict], None],
        *,
        on_start: Callable[[], None] = lambda: None,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> None:
        """Calls `on_event` with each JSON object of an answer in server-sent events, up to the event `[DONE]`.

        Args:
            on_start: called before each try: what came before is void.
            may_repeat: whether that is still possible; if not, a broken answer is an error.

        Raises:
            ChatError: as `post`; of kind "truncated" if the stream broke off in all tries, or could not be repeated.
        """

        def read(response, watch, meter, url):
            on_start()
            for event in self._events(response, watch, meter, url):
                try:
                    on_event(event)
                except OSError as error:  # the listener's own, not the connection's
                    raise _ListenerError from error

        try:
            self._tries(path, body, meter, read, may_repeat)
        except _ListenerError as error:
            raise error.__cause__ from None

    def _tries(self, path: str, body: dict, meter: UsageMeter, read: Callable, may_repeat=lambda: True) -> Any:
        url = f"{self.base_url}/{path}"
        data = json.dumps(body).encode()
        end = time.monotonic() + self._deadline_s
        for attempt in range(self._max_retries + 1):
            start = time.monotonic()
            try:
                return self._try(url, data, meter, read, end - start)
            except _Again as error:
                problem, failure = str(error), error
            finally:
                meter.add(seconds_s=time.monotonic() - start)
            if failure.kind != "failed":
                meter.add(**{failure.kind: 1})
            wait_s = min(_retry_after(failure.retry_after, self._backoff_s * 2**attempt), _MAX_WAIT_S)
            late = time.monotonic() + wait_s >= end
            if late and failure.kind != "late" and may_repeat():
                meter.add(late=1)
            if attempt == self._max_retries or late or not may_repeat():
                why = f"; the call's limit is {self._deadline_s:g} s" if late else ""
                raise ChatError(
                    f"{url}: expected an answer, got {problem} (tried {attempt + 1} times){why}",
                    "late" if late and may_repeat() else failure.kind,
                )
            meter.add(retries=1)
            self._sleep(wait_s)
        raise AssertionError("unreachable")

    def _try(self, url: str, data: bytes, meter: UsageMeter, read: Callable, seconds_s: float) -> Any:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        if self._api_key:
            request.add_unredirected_header("Authorization", f"Bearer {self._api_key}")
        with _Watch(seconds_s) as watch:
            try:
                with watch.opener().open(request, timeout=min(self._timeout_s, seconds_s)) as response:
                    return read(response, watch, meter, url)
            except urllib.error.HTTPError as error:
                text = _beginning(error)
                if not (error.code in _RETRIED_STATUS or error.code >= 500):
                    raise ChatError(f"{url}: expected an answer, got status {error.code}: {text}") from error
                raise _Again(f"status {error.code}: {text}", retry_after=error.headers.get("Retry-After")) from error
            except (OSError, http.client.HTTPException, _Again) as error:
                if watch.expired:
                    raise _Again(f"none within the {self._deadline_s:g} s of the call", "late") from error
                if isinstance(error, _Again):
                    raise
                reason = getattr(error, "reason", error)
                if isinstance(reason, TimeoutError):
                    raise _Again(f"nothing for {self._timeout_s:g} s", "late") from error
                cut = isinstance(error, http.client.IncompleteRead)
                raise _Again(f"{type(error).__name__}: {error}", "truncated" if cut else "failed") from error

    def _read_object(self, response, watch: _Watch, meter: UsageMeter, url: str) -> dict:
        parts, size = [], 0
        while part := response.read(_CHUNK_BYTES):
            parts.append(part)
            size += len(part)
            if size > self._max_answer_bytes:
                raise self._bad(meter, url, "too_long", f"at most {self._max_answer_bytes} bytes", "more")
        answer = b"".join(parts)
        if watch.expired:  # without a length, an end made by us looks like any other
            raise _Again("a part of an answer", "late")
        if response.length:  # what the header promised and did not come
            raise _Again(f"{len(answer)} bytes of an answer with {response.length} more", "truncated")
        if not answer.strip():
            raise _Again("an empty answer", "empty")
        return self._object(answer, meter, url)

    def _events(self, response, watch: _Watch, meter: UsageMeter, url: str) -> Iterator[dict]:
        """The JSON objects of server-sent events: fields `data`, joined up to an empty line; all else is skipped."""
        left, lines, num_events = self._max_answer_bytes, [], 0
        while True:
            line = response.readline(left + 1)
            left -= len(line)
            if left < 0:
                raise self._bad(meter, url, "too_long", f"at most {self._max_answer_bytes} bytes", "more")
            stripped = line.rstrip(b"\r\n")
            if stripped.startswith(b"data:"):
                lines.append(stripped[5:].removeprefix(b" "))
            elif not stripped and lines:
                data, lines = b"\n".join(lines), []
                if data.strip() == b"[DONE]":
                    return
                num_events += 1
                yield self._object(data, meter, url)
            if not line:
                break
        # Lines that no empty line ended are no event, by the standard; a last [DONE] without one is common.
        if b"\n".join(lines).strip() == b"[DONE]":
            return
        if not num_events and not lines and not watch.expired:
            raise _Again("an empty answer", "empty")
        raise _Again(f"a stream that ended without [DONE] after {num_events} events", "truncated")

    def _object(self, data: bytes, meter: UsageMeter, url: str) -> dict:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self._bad(meter, url, "wrong_encoding", "UTF-8", f"{data[:200]!r} ({error})") from error
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._bad(meter, url, "malformed", "JSON", repr(text[:200])) from error
        if not isinstance(parsed, dict):
            raise self._bad(meter, url, "malformed", "a JSON object", repr(text[:200]))
        return parsed

    @staticmethod
    def _bad(meter: UsageMeter, url: str, kind: str, expected: str, got: str) -> ChatError:
        meter.add(**{kind: 1})
        return ChatError(f"{url}: expected {expected}, got {got}", kind)


def _beginning(error: urllib.error.HTTPError) -> str:
    try:
        return error.read(300).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return "(no text)"


def _retry_after(header: str | None, default_s: float) -> float:
    try:
        return max(0.0, float(header)) if header is not None else default_s
    except ValueError:  # a date: rare; the exponential waiting time does
        return default_s
