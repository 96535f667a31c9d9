"""A chat model behind an OpenAI-compatible server, streamed or not.

    model = OpenAIChatModel("http://localhost:8000/v1", model="qwen2.5-7b-instruct", stream=True, deadline_s=60)
    reply = model.complete([{"role": "user", "content": "Where is the apple?"}], on_text=print)

Needs `pip install 'embodied_mem[chat]'`; nothing is sent unless `complete` is called.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .chat import ChatError, ChatReply, Json, Message, Prices, Usage, UsageMeter, prices_of
from .http_json import HttpJson, RefusedError
from .images import texts_and_images
from .json_answers import strict_form

_ABOUT_STRICT = ("strict", "schema", "response_format")
_IMAGE_TOKENS = 1000
"""About those of a picture of 900 x 900 pixels for Qwen2.5-VL, which reads 28 x 28 pixels as one."""


class _Answer(NamedTuple):
    text: str
    pieces: tuple[str, ...]
    finish: str
    counts: object  # the server's `usage`


class OpenAIChatModel:
    """A model behind `POST <base_url>/chat/completions`. Threads may share one object.

    A schema with `"strict": True` is sent in its `strict_form`. Where it has none, or once the server has refused one
    with the status 400 or 422, schemas are sent as they are and without strict mode.

    Args:
        base_url: as `HttpJson`.
        model: name that the server knows.
        api_key: None for the environment variable OPENAI_API_KEY, if set.
        stream: ask for server-sent events also where nobody listens to the pieces: a server that has stopped working
            is then noticed after `timeout_s` and not at the end. A call with `on_text` is always streamed.
        prices: price table {model: Prices or (prompt, completion) per million tokens}; None to count no cost.
        max_total_tokens, max_cost: budgets over all calls, checked before each; None for no limit.
        extra_body: further fields of each request, e.g. `{"seed": 0}`; `stop` not where a `response_format` is asked
            for, since JSON that ends with its first line may be none.
        **http: further arguments of `HttpJson`: `timeout_s`, `deadline_s`, `max_answer_bytes`, `max_retries`, ...
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
        self._http = HttpJson(base_url, api_key=api_key or os.environ.get("OPENAI_API_KEY"), **http)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        response_format: Json | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ChatReply:
        """As `ChatModel.complete`."""
        body = {
            "model": self.name,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        since = time.monotonic()
        with self.meter.call(max_tokens):
            wanted = _strict_format(response_format) if self._strict else None
            try:
                asked = wanted or _loose_format(response_format)
                answer = self._ask(body, asked, on_text, since)
            except RefusedError as error:
                about_it = any(word in error.text.lower() for word in _ABOUT_STRICT)
                if wanted is None or error.status not in (400, 422) or not about_it:
                    raise
                self._strict = False
                self.meter.add(retries=1)
                answer = self._ask(body, _loose_format(response_format), on_text, since)
            usage = self._usage(answer.counts)
            if not answer.text.strip():
                self.meter.add(empty=1)
            self.meter.count(usage or _estimate(messages, answer.text), estimated=usage is None)
        return ChatReply(answer.text, usage or Usage(), answer.finish, answer.pieces)

    def _ask(
        self, body: Json, response_format: Json | None, on_text: Callable[[str], None] | None, since: float
    ) -> _Answer:
        more = self._extra_body
        if response_format:
            more = {"response_format": response_format} | {name: more[name] for name in more if name != "stop"}
        body = {**body, **more}
        if self._stream or on_text is not None:
            return self._streamed(body, on_text, since)
        answer = self._http.post("chat/completions", body, self.meter, since=since)
        text, finish, counts = self._parts(answer, "message")
        return _Answer(self._sound(text), (), finish, counts)

    def _streamed(self, body: Json, on_text: Callable[[str], None] | None, since: float) -> _Answer:
        pieces: list[str] = []
        finish, counts, half = "", None, ""

        def on_start() -> None:
            nonlocal finish, counts, half
            pieces.clear()
            finish, counts, half = "", None, ""

        def give(piece: str) -> None:
            if piece:
                pieces.append(self._sound(piece))
                if on_text is not None:
                    on_text(pieces[-1])

        def on_event(event: Json) -> None:
            nonlocal finish, counts, half
            counts = event.get("usage") or counts
            if event.get("choices") == []:  # the last event, with the usage
                return
            piece, reason, _ = self._parts(event, "delta")
            finish = reason or finish
            piece = half + piece
            half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""  # its other half comes with the next piece
            give(piece[: len(piece) - len(half)])

        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        self._http.post_stream(
            "chat/completions", body, self.meter, on_event,
            on_start=on_start, may_repeat=lambda: on_text is None or not pieces, since=since,
        )  # fmt: skip
        give(half)
        return _Answer("".join(pieces), tuple(pieces), finish, counts)

    def _parts(self, answer: Json, field: str) -> tuple[str, str, object]:
        """(text, finish reason, usage) of an answer or of one event of it."""
        try:
            choice = answer["choices"][0]
            text = choice[field].get("content") or ""
            reason = choice.get("finish_reason") or ""
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise self._malformed(f"choices[0].{field}.content", answer) from error
        if not isinstance(text, str):
            raise self._malformed("a text as content", answer)
        return text, str(reason), answer.get("usage")

    def _usage(self, counts: object) -> Usage | None:
        if not counts:
            return None
        try:
            return Usage.read(counts)
        except ValueError as error:
            raise self._malformed(f"numbers of tokens >= 0 as usage ({error})", {"usage": counts}) from error

    def _sound(self, text: str) -> str:
        """`text` as valid Unicode: JSON can hold halves of characters, and streams cut characters in two."""
        try:
            text.encode()
            return text
        except UnicodeEncodeError:
            joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            self.meter.add(wrong_encoding=int("\ufffd" in joined))
            return joined

    def _malformed(self, expected: str, answer: Json) -> ChatError:
        self.meter.add(malformed=1)
        return ChatError(f"{self._http.base_url}: expected {expected}, got {self._http.shown(answer)}", "malformed")


def _estimate(messages: Sequence[Message], text: str) -> Usage:
    """One token per four bytes, rounded up, and `_IMAGE_TOKENS` a picture; for servers that do not count."""
    texts, images = texts_and_images(messages)
    sent = sum(len(said.encode("utf-8", "replace")) for said in texts)
    return Usage(-(-sent // 4) + _IMAGE_TOKENS * images, -(-len(text.encode()) // 4))


def _strict_format(response_format: Json | None) -> Json | None:
    """The format with the strict form of its schema; None if strict mode is not wanted, or there is no such form."""
    described = _described(response_format)
    schema = strict_form(described.get("schema", {})) if described.get("strict") is True else None
    if schema is None or response_format is None:
        return None
    return {**response_format, "json_schema": {**described, "schema": schema}}


def _loose_format(response_format: Json | None) -> Json | None:
    described = _described(response_format)
    if response_format is None or not described.get("strict"):
        return response_format
    return {**response_format, "json_schema": {**described, "strict": False}}


def _described(response_format: Json | None) -> Json:
    described = response_format.get("json_schema") if isinstance(response_format, dict) else None
    return described if isinstance(described, dict) else {}
