"""A chat model, streamed or not, and an embedder behind an OpenAI-compatible server.

    model = OpenAIChatModel("http://localhost:8000/v1", model="qwen2.5-7b-instruct", stream=True, deadline_s=60)
    reply = model.complete([{"role": "user", "content": "Where is the apple?"}], on_text=print)
    embedder = ServerEmbedder("http://localhost:8000/v1", model="bge-small-en")     # for `memory.Experiences`

Needs `pip install 'embodied_mem[chat]'`; nothing is sent unless `complete` is called.
"""

from __future__ import annotations

import functools
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from .chat import ChatError, ChatReply, Json, Message, Prices, Usage, UsageMeter, prices_of
from .http_json import FailedTry, HttpJson
from .images import texts_and_images
from .json_answers import strict_form

_ABOUT_STRICT = re.compile("strict|schema|response_format|grammar")
_NEVER_LEFT_OUT = ("model", "messages", "stream")
_NEWER = {"max_tokens": "max_completion_tokens"}
_IMAGE_TOKENS = 1000
"""About those of a picture of 900 x 900 pixels for Qwen2.5-VL, which reads 28 x 28 pixels as one."""


class OpenAIChatModel:
    """A model behind `POST <base_url>/chat/completions`. Threads may share one object.

    A schema with `"strict": True` is sent in its `strict_form`. Where it has none, or once the server has refused one
    with the status 400 or 422, schemas are sent as they are and without strict mode.

    Where a server refuses another field that was sent (`temperature`, `seed`, `response_format`, ...), the call is made
    again without it, with `max_completion_tokens` in place of `max_tokens`; if that passes, it is warned of and so for
    all later calls. A limit of tokens is renamed and never left out.

    Args:
        base_url: as `HttpJson`.
        model: name that the server knows.
        api_key: None for the environment variable OPENAI_API_KEY, if set.
        stream: ask for server-sent events also where nobody listens to the pieces: a server that has stopped working
            is then noticed after `timeout_s` and not at the end. A call with `on_text` is always streamed.
        prices: price table {model: Prices or (prompt, completion) per million tokens}; None to count no cost.
        max_total_tokens, max_cost: budgets over all calls, checked before each; None for no limit.
        extra_body: further fields of each request, e.g. `{"seed": 0}`, with None for a field that is left out, e.g.
            `{"max_tokens": None, "max_completion_tokens": 4000}`; `stop` not where a `response_format` is asked for,
            since JSON that ends with its first line may be none.
        **http: further arguments of `HttpJson`: `timeout_s`, `deadline_s`, `max_answer_bytes`, `max_retries`, ...

    Attributes:
        refused: fields that the server refused, with the name that is sent in place of each; None for none.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        stream: bool = False,
        prices: Mapping[str, Prices | tuple[float, float]] | None = None,
        max_total_tokens: int | None = None,
        max_cost: float | None = None,
        extra_body: Json | None = None,
        **http: Any,
    ):
        self.name = model
        self.meter = UsageMeter(max_total_tokens=max_total_tokens, max_cost=max_cost, prices=prices_of(prices, model))
        self._stream = stream
        self._extra_body = dict(extra_body or {})
        self._strict = True
        self.refused: dict[str, str | None] = {}
        self._http = HttpJson(base_url, api_key=api_key or os.environ.get("OPENAI_API_KEY"), **http)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        response_format: Json | None = None,
        on_text: Callable[[str], None] | None = None,
        seed: int | None = None,
    ) -> ChatReply:
        body = {
            "model": self.name,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
        }
        since = time.monotonic()
        with self.meter.call(max_tokens):
            reading = self._ask(body, response_format, on_text, since)
            text = "".join(reading.pieces)
            usage = self._usage(reading.counts)
            if not text.strip():
                self.meter.add(empty=1)
            self.meter.count(usage or _estimate(messages, text), estimated=usage is None)
        return ChatReply(text, usage or Usage(), reading.finish, tuple(reading.pieces) if reading.is_streamed else ())

    def _ask(
        self, body: Json, response_format: Json | None, on_text: Callable[[str], None] | None, since: float
    ) -> _Reading:
        """Ask without what the server refuses."""
        is_strict, refused = self._strict, dict(self.refused)
        while True:
            more = dict(self._extra_body)
            if response_format:
                more.pop("stop", None)
                more = {"response_format": _format(response_format, is_strict)} | more
            is_streamed = self._stream or on_text is not None
            more |= {"stream": True, "stream_options": {"include_usage": True}} if is_streamed else {}
            wanted = {name: value for name, value in {**body, **more}.items() if value is not None}
            sent = {name: value for name, value in wanted.items() if name not in refused}
            sent |= {new: wanted[old] for old, new in refused.items() if new and old in wanted and new not in wanted}
            read = functools.partial(_Reading, self, on_text, is_streamed)
            try:
                reading = self._http.send(
                    "chat/completions", sent, self.meter, read, is_streamed=is_streamed, since=since
                )
            except ChatError as error:
                if error.status not in (400, 422):
                    raise
                if is_strict and _is_strict(sent) and _ABOUT_STRICT.search(error.text.lower()):
                    is_strict = False
                elif (name := _refused_field(sent, error.text)) is not None:
                    refused[name] = _NEWER.get(name)
                else:
                    raise
                self.meter.add(retries=1)
                continue
            self._strict = is_strict
            for name in refused.keys() - self.refused.keys():
                instead = f"{refused[name]} is sent in its place" if refused[name] else "it is left out"
                warnings.warn(f"{self._http.base_url}: the server refuses {name!r}; {instead}", stacklevel=3)
            self.refused |= refused
            return reading

    def _usage(self, counts: object) -> Usage | None:
        if not counts:
            return None
        try:
            return Usage.read(counts)
        except ValueError as error:
            raise self.malformed(f"numbers of tokens >= 0 as usage ({error})", {"usage": counts}) from error

    def malformed(self, expected: str, answer: Json) -> ChatError:
        """Count an answer of another form and return the error to raise."""
        self.meter.add(malformed=1)
        return ChatError(f"{self._http.base_url}: expected {expected}, got {self._http.excerpt(answer)}", "malformed")


class _Reading:
    """An answer that is put together from its events; one that is not streamed is one event."""

    def __init__(
        self,
        model: OpenAIChatModel,
        on_text: Callable[[str], None] | None,
        is_streamed: bool,
        events: Iterator[Json],
    ):
        self._model, self._on_text, self.is_streamed = model, on_text, is_streamed
        self._wanted = f"choices[0].{'delta' if is_streamed else 'message'}.content"
        self.pieces: list[str] = []
        self.finish, self._half, self._argument = "", "", ""
        self.counts: object = None  # the server's `usage`
        self._unread: Json | None = {}  # an event without a choice, before any with one
        try:
            for event in events:
                self._add(event)
        except FailedTry as failure:
            if failure.kind not in ("truncated", "late") or not self.finish:  # else all that matters has come
                failure.may_pass &= on_text is None or not self.pieces  # those cannot be taken back
                raise
        if self._unread is not None:
            raise self._model.malformed(self._wanted, self._unread)
        self._give(self._half)
        if not "".join(self.pieces).strip():
            self._give(self._argument)

    def _add(self, event: Json) -> None:
        if event.get("object") == "error" or (self.is_streamed and event.get("error")):
            raise self._model.malformed(self._wanted, event)
        self.counts = event.get("usage") or self.counts
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:  # the usage, a filter's results, a sign of life
            self._unread = self._unread if self._unread is None else event
            return
        self._unread = None
        if not isinstance(choices[0], dict):
            raise self._model.malformed(self._wanted, event)
        message = choices[0].get("delta") if self.is_streamed else None
        if message is None and not self.pieces:  # some say all at the end, or at once
            message = choices[0].get("message")
        if not isinstance(message, dict) and (message is not None or not self.is_streamed):
            raise self._model.malformed(self._wanted, event)
        message = message or {}
        self.finish = str(choices[0].get("finish_reason") or self.finish)
        self._argument += _argument(message)
        piece = self._half + self._text(message, event)
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""  # the next piece brings the other half
        self._give(piece[: len(piece) - len(self._half)])

    def _give(self, piece: str) -> None:
        """Pass on a piece as valid Unicode.

        JSON can hold halves of characters.
        """
        if not piece:
            return
        try:
            piece.encode()
        except UnicodeEncodeError:
            piece = piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            self._model.meter.add(wrong_encoding=int("\ufffd" in piece))
        self.pieces.append(piece)
        if self._on_text is not None:
            self._on_text(piece)

    def _text(self, message: Json, event: Json) -> str:
        """Return the text without its reasoning; or that of a refusal."""
        content = message.get("content")
        if isinstance(content, list) and all(isinstance(part, dict) for part in content):
            parts = [part.get("text") or part.get("refusal") or "" for part in content if not _is_thought(part)]
            content = "".join(parts) if all(isinstance(part, str) for part in parts) else content
        text = content or message.get("refusal") or ""
        if not isinstance(text, str):
            raise self._model.malformed("a text as content", event)
        return text


def _is_thought(part: Json) -> bool:
    return any(word in str(part.get("type")) for word in ("think", "reason"))


def _argument(message: Json) -> str:
    """Return the argument of the first call of a tool or function."""
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else {}
    if first.get("index"):
        return ""
    called = first.get("function") or message.get("function_call")
    given = called.get("arguments") if isinstance(called, dict) else None
    return given if isinstance(given, str) else json.dumps(given) if given else ""


def _refused_field(sent: Json, text: str) -> str | None:
    """Find the field that a server refuses; None if it must stay."""
    try:
        param = json.loads(text)["error"]["param"]
    except (ValueError, LookupError, TypeError, RecursionError):
        param = None
    mentions = {name: found.start() for name in sent if (found := re.search(rf"\b{re.escape(name)}\b", text))}
    for name in [param] if isinstance(param, str) and param in sent else sorted(mentions, key=mentions.__getitem__):
        if name in _NEVER_LEFT_OUT or name in _NEWER.values():
            continue
        if name != "temperature" or 0 <= sent[name] <= 1:  # a temperature that is too high is the caller's error
            return name
    return None


def _estimate(messages: Sequence[Message], text: str) -> Usage:
    """Count one token per four bytes, rounded up, and `_IMAGE_TOKENS` a picture."""
    texts, images = texts_and_images(messages)
    sent = sum(len(said.encode("utf-8", "replace")) for said in texts)
    return Usage(-(-sent // 4) + _IMAGE_TOKENS * images, -(-len(text.encode()) // 4))


def _format(response_format: Json | None, is_strict: bool) -> Json | None:
    """Write the format with the strict form of its schema.

    Strict mode is off where there is no such form.
    """
    described = response_format.get("json_schema") if isinstance(response_format, dict) else None
    if response_format is None or not isinstance(described, dict) or not described.get("strict"):
        return response_format
    schema = strict_form(described.get("schema", {})) if is_strict and described["strict"] is True else None
    changed = {"strict": False} if schema is None else {"schema": schema}
    return {**response_format, "json_schema": {**described, **changed}}


def _is_strict(sent: Json) -> bool:
    asked = sent.get("response_format")
    described = asked.get("json_schema") if isinstance(asked, dict) else None
    return isinstance(described, dict) and described.get("strict") is True


class ServerEmbedder:
    """A model behind `POST <base_url>/embeddings`, as OpenAI-compatible servers offer it.

    Args:
        base_url: with the version part, e.g. `http://localhost:8000/v1`.
        model: name that the server knows.
        api_key: None for the environment variable OPENAI_API_KEY, if set.
        batch_size: texts per request.
        **http: further arguments of `HttpJson`.
    """

    def __init__(self, base_url: str, model: str, *, api_key: str | None = None, batch_size: int = 64, **http: Any):
        if batch_size < 1:
            raise InvalidInputError(f"batch_size: expected >= 1, got {batch_size}")
        self.name = model
        self.meter = UsageMeter()
        self._batch_size = batch_size
        self._http = HttpJson(base_url, api_key=api_key or os.environ.get("OPENAI_API_KEY"), **http)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, d], one row per text.

        Raises:
            ChatError: the server failed or answered something else.
        """
        if isinstance(texts, str):
            raise InvalidInputError("texts: expected a sequence of texts, got one text; pass [text]")
        rows = []
        for start in range(0, len(texts), self._batch_size):
            batch = list(texts[start : start + self._batch_size])
            with self.meter.call(0):
                rows.append(self._embedded(batch))
        if not rows:
            return np.zeros((0, 0), np.float32)
        vectors = np.concatenate(rows)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def _embedded(self, batch: list[str]) -> np.ndarray:
        answer = self._http.post("embeddings", {"model": self.name, "input": batch}, self.meter)
        try:
            data = sorted(answer["data"], key=lambda entry: entry["index"])
            vectors = np.array([entry["embedding"] for entry in data], np.float64)
            usage = Usage.read(answer.get("usage") or {})
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ChatError(
                f"{self._http.base_url}: expected data[i].embedding, got {self._http.excerpt(answer)}"
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(batch) or not np.isfinite(vectors).all():
            raise ChatError(f"{self._http.base_url}: expected {len(batch)} finite vectors, got {vectors.shape}")
        self.meter.count(Usage(usage.prompt_tokens, 0))
        return vectors
