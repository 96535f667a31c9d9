"""Language models behind one protocol, and a thin client for OpenAI-compatible servers with recordings.

    model = OpenAIChatModel("http://localhost:8000/v1", model="qwen2.5-7b-instruct")
    model = RecordedChatModel(model, "calls.jsonl")          # the same command again is answered from the file
    reply = model.complete([{"role": "user", "content": "Where is the apple?"}], max_tokens=64)
    reply.text, model.meter.prompt_tokens

Only the standard library; nothing is sent unless `complete` is called.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from ..errors import EmbodiedMemError, InvalidInputError

Message = dict[str, object]
"""`{"role": "system" | "user" | "assistant", "content": text}`."""

_MAX_WAIT_S = 60.0


class ChatError(EmbodiedMemError, RuntimeError):
    """A model call failed: the message names the server, what it answered, and after how many tries."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the server counts them.

    Attributes:
        prompt_tokens: tokens sent.
        completion_tokens: tokens received.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclasses.dataclass(frozen=True)
class ChatReply:
    """What a model answered.

    Attributes:
        text: the answer; empty if the model gave none.
        usage: tokens of this call.
    """

    text: str
    usage: Usage = Usage()


@dataclasses.dataclass
class UsageMeter:
    """Running totals of a model's calls.

    Attributes:
        calls, retries: number of answered calls and of repeated tries.
        replayed: calls answered from a recording; they are part of `calls`.
        prompt_tokens, completion_tokens: totals, replayed calls included.
        seconds_s: time spent waiting for servers.
        max_total_tokens: budget; None for no limit.
    """

    calls: int = 0
    retries: int = 0
    replayed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds_s: float = 0.0
    max_total_tokens: int | None = None

    def check(self) -> None:
        """Raise ChatError if the budget is used up."""
        total = self.prompt_tokens + self.completion_tokens
        if self.max_total_tokens is not None and total >= self.max_total_tokens:
            raise ChatError(
                f"the budget of {self.max_total_tokens} tokens is used up: {total} tokens, {self.calls} calls"
            )

    def count(self, usage: Usage, *, replayed: bool = False) -> None:
        """Add one answered call."""
        self.calls += 1
        self.replayed += replayed
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens


class ChatModel(Protocol):
    """Whatever answers messages.

    Attributes:
        name: identifies the model in records and reports.
        meter: totals of its calls.
    """

    name: str
    meter: UsageMeter

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        response_format: dict | None = None,
    ) -> ChatReply:
        """The model's answer to `messages`.

        Args:
            messages: the conversation so far.
            max_tokens: upper limit of the answer.
            temperature: 0 for the most likely answer.
            response_format: e.g. `{"type": "json_schema", "json_schema": {...}}`; None for free text.

        Raises:
            ChatError: no answer could be had.
        """
        ...


class HttpJson:
    """POST requests with JSON, repeated when the server is busy.

    A try is repeated on the status 408, 409, 425, 429 and 5xx, on a refused or dropped connection and on a timeout,
    after `backoff_s * 2**i` seconds or what the server's `Retry-After` asks for (at most 60 s).

    Args:
        base_url: `http://...` or `https://...`, with the version part (`/v1`).
        api_key: sent as bearer token, to this host only; None for none.
        timeout_s: limit of one try.
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
        max_retries: int = 5,
        backoff_s: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ):
        if urllib.parse.urlsplit(base_url).scheme not in ("http", "https"):
            raise InvalidInputError(f"base_url: expected http://... or https://..., got {base_url!r}")
        if max_retries < 0 or timeout_s <= 0:
            raise InvalidInputError(f"expected max_retries >= 0 and timeout_s > 0, got {max_retries} and {timeout_s}")
        self.base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._timeout_s, self._max_retries, self._backoff_s, self._sleep = timeout_s, max_retries, backoff_s, sleep

    def post(self, path: str, body: dict, meter: UsageMeter) -> dict:
        """The JSON object with which the server answers `body`.

        Raises:
            ChatError: the server refused, or failed after all tries, or answered something else.
        """
        url = f"{self.base_url}/{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        if self._api_key:
            request.add_unredirected_header("Authorization", f"Bearer {self._api_key}")
        for attempt in range(self._max_retries + 1):
            start = time.monotonic()
            wait_s = self._backoff_s * 2**attempt
            try:
                with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                    answer = response.read()
                break
            except urllib.error.HTTPError as error:
                text = error.read(300).decode("utf-8", "replace")
                problem = f"status {error.code}: {text}"
                if not (error.code in (408, 409, 425, 429) or error.code >= 500):
                    raise ChatError(f"{url}: expected an answer, got {problem}") from error
                wait_s = _retry_after(error.headers.get("Retry-After"), wait_s)
            except OSError as error:  # URLError, timeouts, dropped connections
                problem = f"{type(error).__name__}: {error}"
            except urllib.error.ContentTooShortError as error:
                problem = f"{error}"
            finally:
                meter.seconds_s += time.monotonic() - start
            if attempt == self._max_retries:
                raise ChatError(f"{url}: expected an answer, got {problem} (tried {attempt + 1} times)")
            meter.retries += 1
            self._sleep(min(wait_s, _MAX_WAIT_S))
        try:
            parsed = json.loads(answer)
        except ValueError as error:
            raise ChatError(f"{url}: expected JSON, got {answer[:200]!r}") from error
        if not isinstance(parsed, dict):
            raise ChatError(f"{url}: expected a JSON object, got {answer[:200]!r}")
        return parsed


def _retry_after(header: str | None, default_s: float) -> float:
    try:
        return max(0.0, float(header)) if header is not None else default_s
    except ValueError:  # a date: rare; the exponential waiting time does
        return default_s


class OpenAIChatModel:
    """A model behind `POST <base_url>/chat/completions`.

    Args:
        base_url: as `HttpJson`.
        model: name that the server knows.
        api_key: None for the environment variable OPENAI_API_KEY, if set.
        max_total_tokens: budget over all calls; None for no limit.
        extra_body: further fields of each request, e.g. `{"seed": 0}`.
        **http: further arguments of `HttpJson`.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        max_total_tokens: int | None = None,
        extra_body: dict | None = None,
        **http,
    ):
        self.name = model
        self.meter = UsageMeter(max_total_tokens=max_total_tokens)
        self._extra_body = dict(extra_body or {})
        self._http = HttpJson(base_url, api_key=api_key or os.environ.get("OPENAI_API_KEY"), **http)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        response_format: dict | None = None,
    ) -> ChatReply:
        """As `ChatModel.complete`."""
        self.meter.check()
        body = {
            "model": self.name,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
            **({"response_format": response_format} if response_format is not None else {}),
            **self._extra_body,
        }
        answer = self._http.post("chat/completions", body, self.meter)
        try:
            text = answer["choices"][0]["message"].get("content") or ""
            counts = answer.get("usage") or {}
            usage = Usage(int(counts.get("prompt_tokens") or 0), int(counts.get("completion_tokens") or 0))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise ChatError(
                f"{self._http.base_url}: expected choices[0].message.content, got {json.dumps(answer)[:300]}"
            ) from error
        if not isinstance(text, str):
            raise ChatError(f"{self._http.base_url}: expected a text as content, got {text!r}")
        self.meter.count(usage)
        return ChatReply(text, usage)


class RecordedChatModel:
    """Answers of `model`, written to a file as they come and read from it when the same is asked again.

    The n-th call with some request gets the n-th answer that the file has for it; so a program that makes the same
    calls, in whatever order, gets the same answers. File: one JSON object per line {key, n, request, text,
    prompt_tokens, completion_tokens}, where key is the SHA-256 of the request; each line is on disk before `complete`
    returns. A last line without an end (a crash while writing) is dropped; any other damage is an error. Threads may
    share one object; one process at a time may write.

    Args:
        model: asked for what the file does not have; None to replay only.
        path: the file; made on the first write.
        name: of the recorded model; needed if `model` is None.
    """

    def __init__(self, model: ChatModel | None, path: str | os.PathLike, name: str | None = None):
        if model is None and name is None:
            raise InvalidInputError("name: expected the recorded model's name where there is no model, got None")
        self._model = model
        self.name = name if name is not None else model.name
        self.meter = UsageMeter()
        self._path = pathlib.Path(path)
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._answers: dict[tuple[str, int], ChatReply] = {}
        self._size = 0
        if self._path.exists():
            self._read()

    def _read(self) -> None:
        data = self._path.read_bytes()
        *lines, rest = data.split(b"\n")
        self._size = len(data) - len(rest)
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                if _request_key(entry["request"]) != entry["key"]:
                    raise ValueError("the key does not match the request")
                usage = Usage(entry["prompt_tokens"], entry["completion_tokens"])
                self._answers[entry["key"], entry["n"]] = ChatReply(entry["text"], usage)
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInputError(
                    f"{self._path}, line {number}: expected a recorded call, got {error}"
                ) from error

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        response_format: dict | None = None,
    ) -> ChatReply:
        """As `ChatModel.complete`, from the file if it is there.

        Raises:
            ChatError: not in the file, and there is no model to ask, or it failed.
        """
        settings = {"max_tokens": max_tokens, "temperature": temperature, "response_format": response_format}
        request = {"model": self.name, "messages": list(messages), **settings}
        key = _request_key(request)
        with self._lock:
            n = self._asked[key]
            self._asked[key] += 1
            reply = self._answers.get((key, n))
            if reply is not None:
                self.meter.count(reply.usage, replayed=True)
                return reply
        if self._model is None:
            raise ChatError(f"{self._path}: expected call {n} of request {key[:12]}, which was not recorded; record it")
        try:
            reply = self._model.complete(messages, **settings)
        except BaseException:
            with self._lock:
                self._asked[key] -= 1
            raise
        with self._lock:
            self._append(key, n, request, reply)
            self.meter.count(reply.usage)
        return reply

    def _append(self, key: str, n: int, request: dict, reply: ChatReply) -> None:
        entry = {"key": key, "n": n, "request": request, "text": reply.text, **dataclasses.asdict(reply.usage)}
        data = json.dumps(entry, sort_keys=True).encode() + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            if file.tell() != self._size:
                if self._path.read_bytes()[self._size :].count(b"\n"):
                    raise ChatError(f"{self._path}: another process has written to it; use one file per process")
                file.truncate(self._size)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._size += len(data)
        self._answers[key, n] = reply


def _request_key(request: dict) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
