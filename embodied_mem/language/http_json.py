"""POST requests with JSON under one deadline, to servers that may be busy, slow, endless, cut off or wrong.

    http = HttpJson("http://localhost:8000/v1", timeout_s=20, deadline_s=60, max_answer_bytes=1 << 20)
    http.post("embeddings", {"input": ["an apple"]}, meter)                                    # a dict
    http.send("chat/completions", {"stream": True}, meter, list, is_streamed=True)             # a dict per event

Whatever the server does, a call ends within `deadline_s` and reads at most `max_answer_bytes`, and no answer and no
error holds the key. Requests run on one event loop per process: a blocking call can wait in a name look-up, a
handshake with a proxy, or for one byte a second, and no timeout of a socket ends all of these; a coroutine is
cancelled wherever it waits. Needs `pip install 'embodied_mem[chat]'`.
"""

from __future__ import annotations

import asyncio
import codecs
import dataclasses
import functools
import io
import ipaddress
import json
import math
import numbers
import os
import queue
import ssl
import threading
import time
import urllib.parse
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidInputError, MissingDependencyError
from ..forks import forking_lock
from .chat import ChatError, Json, UsageMeter
from .json_answers import load_json

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
_MAX_WAIT_S = 60.0
_SILENCE_S = 60.0
_RETRIED_STATUS = (408, 409, 425, 429)
_MAX_SHOWN = 300
_READ_TO_SHOW = 4096
# A shorter key is no secret (EMPTY, none), and its letters may well be in an answer.
_MIN_SECRET = 16


@dataclasses.dataclass(eq=False)
class FailedTry(Exception):
    """A failed try.

    Attributes:
        got, expected, kind: for the ChatError.
        may_pass: whether another try may help.
        status, text, retry_after: of a refusal; what the server said, and how long it asks to wait.
    """

    got: str
    kind: str = "failed"
    expected: str = "an answer"
    may_pass: bool = True
    status: int = 0
    text: str = ""
    retry_after: str | None = None


class HttpJson:
    """POST requests with JSON, repeated when the server is busy.

    A try is repeated on the status 408, 409, 425, 429 and 5xx, on a refused or dropped connection, on an answer that is
    empty or cut off, and on silence, after `backoff_s * 2**i` seconds or what the server's `Retry-After` asks for (at
    most 60 s). Other errors are raised at once. Redirections are not followed. Proxies are those of the environment
    (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY). Threads may share one object, and connections are kept.

    Args:
        base_url: `http://...` or `https://...`, with the version part (`/v1`).
        api_key: sent as bearer token; None for none.
        timeout_s: longest silence within one try. None: 60 s; of a server on this machine `deadline_s`, since silence
            there is work: of a process that ended the system tells at once.
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
        timeout_s: float | None = None,
        deadline_s: float = 600.0,
        max_answer_bytes: int = 16 << 20,
        max_retries: int = 5,
        backoff_s: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.base_url = _checked_url(base_url)
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._secrets: list[str] = []
        if api_key is not None:
            if not isinstance(api_key, str) or not all("!" <= sign <= "~" for sign in api_key):
                raise InvalidInputError("api_key: expected printable ASCII characters without spaces, got others")
            forms = (api_key, json.dumps(api_key)[1:-1], urllib.parse.quote(api_key, safe=""))
            self._secrets = [form for form in dict.fromkeys(forms) if form]
            self._headers["Authorization"] = f"Bearer {api_key}"
        if timeout_s is None:
            timeout_s = deadline_s if _is_here(self.base_url) else _SILENCE_S
        for name, value in {"deadline_s": deadline_s, "timeout_s": timeout_s, "backoff_s": backoff_s}.items():
            is_seconds = isinstance(value, numbers.Real) and (0 <= value < 1e301 or value == math.inf)
            if not is_seconds or (value == 0 and name != "backoff_s"):
                raise InvalidInputError(f"{name}: expected a number of seconds > 0, got {value!r}")
        for name, count, least in (("max_answer_bytes", max_answer_bytes, 1), ("max_retries", max_retries, 0)):
            if not isinstance(count, int) or count < least:
                raise InvalidInputError(f"{name}: expected an integer >= {least}, got {count!r}")
        self._timeout_s, self._deadline_s, self._backoff_s = timeout_s, deadline_s, backoff_s
        self._max_answer_bytes, self._max_retries, self._sleep = max_answer_bytes, max_retries, sleep
        self._open()

    def post(self, path: str, body: Json, meter: UsageMeter) -> Json:
        """Return the JSON object that answers `body`. Raises as `send`."""
        return self.send(path, body, meter, next)

    def send(
        self,
        path: str,
        body: Json,
        meter: UsageMeter,
        read: Callable[[Iterator[Json]], T],
        *,
        is_streamed: bool = False,
        since: float | None = None,
    ) -> T:
        """Return what `read` makes of the answer or a stream's events.

        A server that answers with one JSON object in place of a stream is read as a stream of one event.

        Args:
            read: called in each try. A broken answer is a `FailedTry` there: it may take what came as the whole, or
                raise it again, with `may_pass` False where no other try is possible.
            is_streamed: whether a stream was asked for.
            since: when the call began (`time.monotonic()`); None: now.

        Raises:
            ChatError: the server refused, or failed after all tries, or was late, or answered something else; of kind
                "truncated" if a stream broke off and could not be repeated.
            InvalidInputError: the body is no JSON data.
        """
        url = f"{self.base_url}/{path}"
        try:
            data = json.dumps(body).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"request to {url}: expected JSON data, got {error}") from error
        if self._process != os.getpid():
            self._open()
        end = (time.monotonic() if since is None else since) + self._deadline_s
        attempt = 0
        while True:
            attempt += 1
            start = time.monotonic()
            texts = _items_of(functools.partial(self._answer, url, data, is_streamed, end - start))
            try:
                return read(map(self._object, texts))
            except FailedTry as error:
                failure = error
            finally:
                texts.close()
                meter.add(seconds_s=time.monotonic() - start)
            if failure.kind != "failed":
                meter.add(**{failure.kind: 1})
            message = f"{url}: expected {failure.expected}, got {failure.got}"
            if not failure.may_pass:
                raise ChatError(message, failure.kind, failure.status, failure.text)
            wait_s = self._wait_s(failure, attempt)
            is_late = time.monotonic() + wait_s >= end
            if attempt <= self._max_retries and not is_late:
                meter.add(retries=1)
                self._sleep(wait_s)
                continue
            message += f" (tried {attempt} times)"
            if not is_late:
                raise ChatError(message, failure.kind)
            if failure.kind != "late":
                meter.add(late=1)
            raise ChatError(f"{message}; the call's limit is {self._deadline_s:g} s", "late")

    def excerpt(self, answer: object) -> str:
        """Return the beginning of an answer, for an error."""
        return self._hide(json.dumps(answer))[:_MAX_SHOWN]

    def _wait_s(self, failure: FailedTry, attempt: int) -> float:
        """Return the seconds before the next try.

        A date in `Retry-After` is ignored.
        """
        try:
            wait_s = max(0.0, float(failure.retry_after or "none"))
        except ValueError:
            wait_s = self._backoff_s * 2 ** min(attempt - 1, 16)
        return min(wait_s, _MAX_WAIT_S)

    def _object(self, text: str) -> Json:
        """Read a JSON object, with stars in place of the key."""
        if self._secrets and len(self._secrets[0]) >= _MIN_SECRET:
            text = self._hide(text)
        try:
            value = load_json(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise FailedTry(repr(self._hide(text)[:200]), "malformed", "a JSON object", may_pass=False)
        return value

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "*" * len(secret))
        return text

    def _open(self) -> None:
        """Make the client of this process.

        That of its parent has another loop.
        """
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

    # On the loop: any failure is a `FailedTry`.

    async def _answer(
        self, url: str, data: bytes, is_streamed: bool, seconds_s: float, give: Callable[[Any], None]
    ) -> None:
        """Give the text of an answer or of each event."""
        import httpx

        try:
            async with (
                asyncio.timeout(max(seconds_s, 0.0)),
                self._client.stream("POST", url, content=data, headers=self._headers) as response,
            ):
                if not response.is_success:
                    raise await self._refusal(response)
                async for text in _texts(self._parts(response), is_streamed):
                    give(text)
        except TimeoutError:
            raise FailedTry(f"none within the {self._deadline_s:g} s of the call", "late") from None
        except httpx.TimeoutException:
            raise FailedTry(f"nothing for {self._timeout_s:g} s", "late") from None
        except UnicodeDecodeError as error:
            raise FailedTry(f"other bytes ({error.reason})", "wrong_encoding", "UTF-8", may_pass=False) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RuntimeError) as error:
            may_pass = not isinstance(error, (httpx.LocalProtocolError, httpx.InvalidURL, ValueError))
            raise FailedTry(self._hide(f"{type(error).__name__}: {error}"), may_pass=may_pass) from None

    async def _parts(self, response: httpx.Response) -> AsyncIterator[bytes]:
        import httpx

        size = 0
        try:
            async for part in response.aiter_raw():
                size += len(part)
                if size > self._max_answer_bytes:
                    limit = f"at most {self._max_answer_bytes} bytes"
                    raise FailedTry("more", "too_long", limit, may_pass=False)
                yield part
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            raise FailedTry(self._hide(f"{size} bytes of an answer: {error}"), "truncated") from None

    async def _refusal(self, response: httpx.Response) -> FailedTry:
        import httpx

        status, data = response.status_code, b""
        if response.is_redirect:
            target = self._hide(response.headers.get("Location", "nowhere"))[:_MAX_SHOWN]
            got = f"status {status}, a redirection to {target!r}; give the address itself as base_url"
            return FailedTry(got, may_pass=False, status=status)
        try:
            async for part in response.aiter_raw():
                data += part
                if len(data) > _READ_TO_SHOW:
                    break
        except httpx.HTTPError:
            data = data or b"(no text)"
        text = self._hide(data.decode("utf-8", "replace"))
        return FailedTry(
            f"status {status}: {text[:_MAX_SHOWN]}", may_pass=status in _RETRIED_STATUS or status >= 500,
            status=status, text=text, retry_after=response.headers.get("Retry-After"),
        )  # fmt: skip


async def _texts(parts: AsyncIterator[bytes], is_streamed: bool) -> AsyncIterator[str]:
    """Yield the whole answer, or the data of its events before `[DONE]`.

    The kind that the server names does not matter: some stream as text/plain, some answer a stream with one object.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    rest, text, num_events = "", "", 0
    data: list[str] = []  # lines of an unfinished event
    is_whole, has_begun, has_ended = not is_streamed, False, False
    while not has_ended:
        part = await anext(parts, None)
        has_ended = part is None
        rest += decoder.decode(part or b"")
        if not has_begun:
            rest = rest.lstrip()
            has_begun, is_whole = bool(rest), is_whole or rest.startswith("{")
        if is_whole:
            continue
        *lines, rest = rest.split("\n")
        for line in [*lines, rest, ""] if has_ended else lines:
            name, _, value = line.partition(":")
            if name == "data":
                if not data and value.strip() == "[DONE]":  # often without the empty line that ends an event
                    return
                data.append(value.removeprefix(" "))
            elif not line:
                text, data = "\n".join(data), []
                if has_ended and text:
                    try:
                        load_json(text)
                    except ValueError:
                        break
                if text:
                    num_events += 1
                    yield text
    if is_whole:
        rest += decoder.decode(b"", True)
    if is_whole and rest:
        yield rest
    elif num_events or text:
        raise FailedTry(f"a stream that ended without [DONE] after {num_events} events", "truncated")
    else:
        raise FailedTry("an empty answer", "empty")


def _items_of(start: Callable[[Callable[[Any], None]], Coroutine[Any, Any, None]]) -> Generator[Any, None, None]:
    """Yield what a coroutine on the loop gives; raise its error.

    It runs from the first `next` on, and is cancelled when the generator is closed.

    Args:
        start: makes the coroutine from the function that it calls with each item.
    """
    items: queue.SimpleQueue[tuple[Any, bool]] = queue.SimpleQueue()

    async def run() -> None:
        try:
            await start(lambda item: items.put((item, False)))
            items.put((None, True))
        except BaseException as error:
            items.put((error, True))

    future = asyncio.run_coroutine_threadsafe(run(), _running_loop())
    try:
        while not (answer := items.get())[1]:
            yield answer[0]
        if answer[0] is not None:
            raise answer[0]
    finally:
        future.cancel()


def _running_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of this process, not that of its parent."""
    with _lock:
        return _loop_of(os.getpid())


@functools.cache
def _loop_of(process: int) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="embodied_mem requests", daemon=True).start()
    return loop


_lock = forking_lock()


def _close(client: httpx.AsyncClient, process: int) -> None:
    if process == os.getpid():
        asyncio.run_coroutine_threadsafe(client.aclose(), _running_loop())


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Read the certificates that the system trusts.

    This takes longer than a request.
    """
    return ssl.create_default_context()


def _is_here(url: str) -> bool:
    """Return whether an address is of this machine."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_url(base_url: Any) -> str:
    """Return the address without a slash at its end."""
    try:
        import httpx
    except ImportError as error:
        raise MissingDependencyError(f"{error.name} is missing: pip install 'embodied_mem[chat]'") from error

    # What stands before an @ may be a password.
    got = repr(base_url) if "@" not in str(base_url) else "one with @"
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError, ValueError) as error:
        raise InvalidInputError(f"base_url: expected http://HOST[:PORT]/... or https://..., got {got}") from error
    is_port = url.port is None or 0 < url.port < 1 << 16
    if url.scheme not in ("http", "https") or not url.host or not is_port:
        raise InvalidInputError(f"base_url: expected http://HOST[:PORT]/... or https://..., got {got}")
    if url.userinfo or url.query or url.fragment:
        raise InvalidInputError(f"base_url: expected an address without @, ? and #, got {got}; a key goes to api_key")
    return str(base_url).rstrip("/")
