"""POST requests with JSON under one deadline, to servers that may be busy, slow, endless, cut off or wrong.

    http = HttpJson("http://localhost:8000/v1", timeout_s=20, deadline_s=60, max_answer_bytes=1 << 20)
    http.post("embeddings", {"input": ["an apple"]}, meter)                  # a dict
    http.post_stream("chat/completions", {"stream": True}, meter, print)     # a dict per event

Whatever the server does, a call ends within `deadline_s` and reads at most `max_answer_bytes`, and no answer and no
error holds the key. Needs `pip install 'embodied_mem[chat]'`.

Requests run on the loop of `background_loop`: there one can be cancelled wherever it waits.
"""

from __future__ import annotations

import asyncio
import codecs
import functools
import json
import os
import ssl
import time
import urllib.parse
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidInputError, MissingDependencyError
from .background_loop import finish_later, received
from .chat import ChatError, Json, UsageMeter
from .json_answers import load_json

if TYPE_CHECKING:
    import httpx

_Made = TypeVar("_Made")
_Receive = Callable[["httpx.Response"], AsyncIterator[Any]]
_MAX_WAIT_S = 60.0
_MAX_DOUBLINGS = 16
_RETRIED_STATUS = (408, 409, 425, 429)
_SHOWN = 300
_READ_TO_SHOW = 4096
# A shorter key is no secret (EMPTY, none), and its letters may well be in an answer.
_MIN_SECRET = 16


class RefusedError(ChatError):
    """The server refused a request.

    Attributes:
        status: of HTTP.
        text: what the server said, up to `_READ_TO_SHOW` bytes.
    """

    def __init__(self, message: str, status: int, text: str):
        super().__init__(message)
        self.status, self.text = status, text


class _FailedTry(Exception):
    """A try failed.

    Attributes:
        got, expected, kind: for the ChatError.
        again: whether it may pass.
        retry_after: what the server asks for, as it says it.
        status: of a refusal, else 0.
        text: of a refusal.
    """

    def __init__(
        self,
        got: str,
        kind: str = "failed",
        *,
        expected: str = "an answer",
        again: bool = True,
        retry_after: str | None = None,
        status: int = 0,
        text: str = "",
    ):
        super().__init__(got)
        self.got, self.kind, self.expected, self.again = got, kind, expected, again
        self.retry_after, self.status, self.text = retry_after, status, text


class HttpJson:
    """POST requests with JSON, repeated when the server is busy.

    A try is repeated on the status 408, 409, 425, 429 and 5xx, on a refused or dropped connection, on an answer that is
    empty or cut off, and on silence, after `backoff_s * 2**i` seconds or what the server's `Retry-After` asks for (at
    most 60 s). What is wrong in another way is wrong the second time too and is an error at once. Redirections are not
    followed. Proxies are those of the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY). Threads may share one
    object, and connections are kept.

    Args:
        base_url: `http://...` or `https://...`, with the version part (`/v1`).
        api_key: sent as bearer token; None for none.
        timeout_s: longest silence within one try.
        deadline_s: limit of a whole call: all tries, the waits between them, and a streamed answer to its end.
        max_answer_bytes: limit of an answer.
        max_retries: tries after the first.
        backoff_s: first waiting time.
        sleep: waits; replaced in tests.

    Raises:
        InvalidInputError: an argument, or a proxy of the environment, cannot be used.
        MissingDependencyError: httpx is not installed.
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
        self.base_url = _checked_url(base_url)
        self._secrets = _secrets(_checked_key(api_key))
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout_s = _number("timeout_s", timeout_s)
        self._deadline_s = _number("deadline_s", deadline_s)
        self._backoff_s = _number("backoff_s", backoff_s, zero=True)
        for name, value, least in (("max_answer_bytes", max_answer_bytes, 1), ("max_retries", max_retries, 0)):
            if not isinstance(value, int) or value < least:
                raise InvalidInputError(f"{name}: expected an integer >= {least}, got {value!r}")
        self._max_answer_bytes, self._max_retries, self._sleep = max_answer_bytes, max_retries, sleep
        self._open()

    def post(self, path: str, body: Json, meter: UsageMeter, *, since: float | None = None) -> Json:
        """The JSON object with which the server answers `body`.

        Args:
            since: when the call began that this is a part of (`time.monotonic()`); None: it begins now.

        Raises:
            ChatError: the server refused (`RefusedError`), or failed after all tries, or was late, or answered
                something else.
            InvalidInputError: the body is no JSON data.
        """

        def read(parts: Iterable[bytes]) -> Json:
            answer = b"".join(parts)
            if not answer.strip():
                raise _FailedTry("an empty answer", "empty")
            try:
                return self._object(answer.decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                shown = repr(self._hide(answer.decode("latin-1"))[:200])
                raise _not_utf8(f"{shown} ({error.reason})") from None

        return self._tries(path, body, meter, receive=self._parts, read=read, since=since)

    def post_stream(
        self,
        path: str,
        body: Json,
        meter: UsageMeter,
        on_event: Callable[[Json], None],
        *,
        on_start: Callable[[], None] = lambda: None,
        may_repeat: Callable[[], bool] = lambda: True,
        is_complete: Callable[[], bool] = lambda: False,
        since: float | None = None,
    ) -> None:
        """Call `on_event` with each JSON object of an answer in server-sent events, up to the event `[DONE]`.

        A server that answers with one JSON object all the same is read as a stream of one event.

        Args:
            on_start: called before each try: what came before is void.
            may_repeat: whether that is still possible; if not, a broken answer is an error.
            is_complete: whether all that matters has come; if so, a missing end is no error.
            since: as `post`.

        Raises:
            ChatError: as `post`; of kind "truncated" if the stream broke off in all tries, or could not be repeated.
            InvalidInputError: as `post`.
        """

        def read(events: Iterable[str]) -> None:
            on_start()
            try:
                for event in events:
                    on_event(self._object(event))
            except _FailedTry as error:
                if error.kind not in ("truncated", "late") or not is_complete():
                    raise

        self._tries(path, body, meter, receive=self._events, read=read, since=since, may_repeat=may_repeat)

    def shown(self, answer: object) -> str:
        """The beginning of an answer, for an error."""
        return self._hide(json.dumps(answer))[:_SHOWN]

    # In the thread of the caller.

    def _tries(
        self,
        path: str,
        body: Json,
        meter: UsageMeter,
        *,
        receive: _Receive,
        read: Callable[[Iterable[Any]], _Made],
        since: float | None,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> _Made:
        url = f"{self.base_url}/{path}"
        try:
            data = json.dumps(body).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"request to {url}: expected JSON data, got {error}") from error
        if self._process != os.getpid():
            self._open()
        end = (time.monotonic() if since is None else since) + self._deadline_s
        for attempt in range(self._max_retries + 1):
            start = time.monotonic()
            answer = received(functools.partial(self._answer, url, data, receive, end - start))
            try:
                return read(answer)
            except _FailedTry as error:
                failure = error
            finally:
                answer.close()
                meter.add(seconds_s=time.monotonic() - start)
            if failure.kind != "failed":
                meter.add(**{failure.kind: 1})
            message = f"{url}: expected {failure.expected}, got {failure.got}"
            if not failure.again:
                if failure.status:
                    raise RefusedError(message, failure.status, failure.text)
                raise ChatError(message, failure.kind)
            default_s = self._backoff_s * 2 ** min(attempt, _MAX_DOUBLINGS)
            wait_s = min(_retry_after(failure.retry_after, default_s), _MAX_WAIT_S)
            late = time.monotonic() + wait_s >= end
            if late and failure.kind != "late" and may_repeat():
                meter.add(late=1)
            if attempt == self._max_retries or late or not may_repeat():
                why = f"; the call's limit is {self._deadline_s:g} s" if late else ""
                kind = "late" if late and may_repeat() else failure.kind
                raise ChatError(f"{message} (tried {attempt + 1} times){why}", kind)
            meter.add(retries=1)
            self._sleep(wait_s)
        raise AssertionError("unreachable")

    def _object(self, text: str) -> Json:
        if self._secrets and len(self._secrets[0]) >= _MIN_SECRET:
            text = self._hide(text)
        try:
            parsed = load_json(text)
        except ValueError:
            raise _FailedTry(repr(self._hide(text)[:200]), "malformed", expected="JSON", again=False) from None
        if not isinstance(parsed, dict):
            raise _FailedTry(repr(self._hide(text)[:200]), "malformed", expected="a JSON object", again=False)
        return parsed

    def _hide(self, text: str) -> str:
        """`text` with stars in place of the key."""
        for secret in self._secrets:
            text = text.replace(secret, "*" * len(secret))
        return text

    def _open(self) -> None:
        """Make the client of this process; one that was inherited by a fork belongs to the parent's loop."""
        import httpx

        try:
            self._client = httpx.AsyncClient(
                verify=_certificates(),
                timeout=httpx.Timeout(self._timeout_s, pool=None),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            raise InvalidInputError(
                "proxy: expected http://... or https://... in HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, got another "
                f"({type(error).__name__}); for socks5://... pip install 'httpx[socks]'"
            ) from None
        self._process = os.getpid()
        weakref.finalize(self, _close, self._client, self._process).atexit = False

    # In the thread of the loop.

    async def _answer(
        self, url: str, data: bytes, receive: _Receive, seconds_s: float, give: Callable[[Any], None]
    ) -> None:
        """Give what `receive` makes of one answer. Any failure is a `_FailedTry`."""
        import httpx

        try:
            async with (
                asyncio.timeout(max(seconds_s, 0.0)),
                self._client.stream("POST", url, content=data, headers=self._headers) as response,
            ):
                if not response.is_success:
                    raise await self._refusal(response)
                async for item in receive(response):
                    give(item)
        except TimeoutError:
            raise _FailedTry(f"none within the {self._deadline_s:g} s of the call", "late") from None
        except httpx.TimeoutException:
            raise _FailedTry(f"nothing for {self._timeout_s:g} s", "late") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RuntimeError) as error:
            again = not isinstance(error, (httpx.LocalProtocolError, httpx.InvalidURL, ValueError))
            raise _FailedTry(self._hide(f"{type(error).__name__}: {error}"), again=again) from None

    async def _parts(self, response: httpx.Response) -> AsyncIterator[bytes]:
        import httpx

        size = 0
        try:
            async for part in response.aiter_raw():
                size += len(part)
                if size > self._max_answer_bytes:
                    limit = f"at most {self._max_answer_bytes} bytes"
                    raise _FailedTry("more", "too_long", expected=limit, again=False)
                yield part
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            raise _FailedTry(self._hide(f"{size} bytes of an answer: {error}"), "truncated") from None

    async def _events(self, response: httpx.Response) -> AsyncIterator[str]:
        """The data of server-sent events that are not empty, up to `[DONE]`."""
        import httpx
        import httpx_sse

        ended, half, num_events = False, False, 0
        decoder = codecs.getincrementaldecoder("utf-8")()
        parts, start = self._parts(response), b""
        async for part in parts:
            start += part
            if start.strip():
                break
        if start.lstrip().startswith(b"{"):  # no stream, but the whole answer
            data = b"".join([start, *[part async for part in parts]])
            try:
                yield data.decode()
            except UnicodeDecodeError as error:
                raise _not_utf8(f"other bytes ({error.reason})") from None
            return

        async def from_start() -> AsyncIterator[bytes]:
            yield start
            async for part in parts:
                yield part

        async def whole() -> AsyncIterator[bytes]:
            nonlocal ended
            async for part in from_start():
                try:
                    decoder.decode(part)
                except UnicodeDecodeError as error:
                    raise _not_utf8(f"other bytes ({error.reason})") from None
                yield part
            ended = True
            yield b"\n\n"

        # Whatever kind the server says it is: some stream as text/plain.
        stream = httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=whole())
        async for event in httpx_sse.EventSource(stream).aiter_sse():
            if event.data.strip() == "[DONE]":  # often without the empty line that ends an event
                return
            half = ended and event.data != ""
            if half:
                try:
                    load_json(event.data)
                except ValueError:
                    break
            if event.data:
                num_events += 1
                yield event.data
        if not num_events and not half:
            raise _FailedTry("an empty answer", "empty")
        raise _FailedTry(f"a stream that ended without [DONE] after {num_events} events", "truncated")

    async def _refusal(self, response: httpx.Response) -> _FailedTry:
        import httpx

        status, text = response.status_code, b""
        if response.is_redirect:
            target = self._hide(response.headers.get("Location", "nowhere"))[:_SHOWN]
            got = f"status {status}, a redirection to {target!r}; give the address itself as base_url"
            return _FailedTry(got, again=False, status=status)
        try:
            async for part in response.aiter_raw():
                text += part
                if len(text) > _READ_TO_SHOW:
                    break
        except httpx.HTTPError:
            text = text or b"(no text)"
        said = self._hide(text.decode("utf-8", "replace"))
        again = status in _RETRIED_STATUS or status >= 500
        return _FailedTry(
            f"status {status}: {said[:_SHOWN]}", again=again, retry_after=response.headers.get("Retry-After"),
            status=status, text=said,
        )  # fmt: skip


def _not_utf8(got: str) -> _FailedTry:
    return _FailedTry(got, "wrong_encoding", expected="UTF-8", again=False)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Those that the system trusts. Read once: that takes longer than a request."""
    return ssl.create_default_context()


def _close(client: httpx.AsyncClient, process: int) -> None:
    if process == os.getpid():
        finish_later(client.aclose)


def _checked_url(base_url: Any) -> str:
    """The address without a slash at its end."""
    try:
        import httpx
        import httpx_sse  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(f"{error.name} is missing: pip install 'embodied_mem[chat]'") from error

    # What stands before an @ may be a password.
    shown = repr(base_url) if "@" not in str(base_url) else "one with @"
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError, ValueError) as error:
        raise InvalidInputError(f"base_url: expected http://... or https://..., got {shown}") from error
    wrong_port = url.port is not None and not 0 < url.port < 1 << 16
    if url.scheme not in ("http", "https") or not url.host or wrong_port:
        raise InvalidInputError(f"base_url: expected http://HOST[:PORT]/... or https://..., got {shown}")
    if url.userinfo or url.query or url.fragment:
        raise InvalidInputError(f"base_url: expected an address without @, ? and #, got {shown}; a key goes to api_key")
    return str(base_url).rstrip("/")


def _checked_key(api_key: object) -> str:
    if api_key is None:
        return ""
    if not isinstance(api_key, str) or not all("!" <= sign <= "~" for sign in api_key):
        what = f"a text of {len(api_key)} characters" if isinstance(api_key, str) else type(api_key).__name__
        raise InvalidInputError(f"api_key: expected printable ASCII characters, no spaces or line breaks, got {what}")
    return api_key


def _secrets(api_key: str) -> list[str]:
    """The forms in which a server may say the key again, the key itself first."""
    return list(dict.fromkeys(filter(None, (api_key, json.dumps(api_key)[1:-1], urllib.parse.quote(api_key, safe="")))))


def _number(name: str, value: Any, zero: bool = False) -> float:
    try:
        number = float(value) if not isinstance(value, (str, bytes)) else 0.0
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not (number > 0 or (zero and number == 0)):
        raise InvalidInputError(f"{name}: expected a number of seconds {'>=' if zero else '>'} 0, got {value!r}")
    return number


def _retry_after(header: str | None, default_s: float) -> float:
    try:
        return max(0.0, float(header)) if header is not None else default_s
    except ValueError:  # a date: rare; the exponential waiting time does
        return default_s
