"""A chat model behind an OpenAI-compatible server, streamed or not.

    model = OpenAIChatModel("http://localhost:8000/v1", model="qwen2.5-7b-instruct", stream=True, deadline_s=60)
    reply = model.complete([{"role": "user", "content": "Where is the apple?"}], on_text=print)

Needs `pip install 'embodied_mem[chat]'`; nothing is sent unless `complete` is called.
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .chat import ChatError, ChatReply, Json, Message, Prices, Usage, UsageMeter, prices_of
from .http_json import HttpJson, RefusedError
from .images import texts_and_images
from .json_answers import strict_form

_ABOUT_STRICT = re.compile("strict|schema|response_format|grammar")
_NEVER_LEFT_OUT = ("model", "messages", "stream")
_NEWER = {"max_tokens": "max_completion_tokens"}
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
            answer = self._asked(body, response_format, on_text, since)
            usage = self._usage(answer.counts)
            if not answer.text.strip():
                self.meter.add(empty=1)
            self.meter.count(usage or _estimate(messages, answer.text), estimated=usage is None)
        return ChatReply(answer.text, usage or Usage(), answer.finish, answer.pieces)

    def _asked(
        self, body: Json, response_format: Json | None, on_text: Callable[[str], None] | None, since: float
    ) -> _Answer:
        """The answer, without what the server refuses."""
        is_strict, refused = self._strict, dict(self.refused)
        while True:
            strict = _strict_format(response_format) if is_strict else None
            more = dict(self._extra_body)
            if response_format:
                more.pop("stop", None)
                more = {"response_format": strict or _loose_format(response_format)} | more
            streamed = self._stream or on_text is not None
            more |= {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
            wanted = {name: value for name, value in {**body, **more}.items() if value is not None}
            sent = {name: value for name, value in wanted.items() if name not in refused}
            sent |= {new: wanted[old] for old, new in refused.items() if new and old in wanted and new not in wanted}
            try:
                answer = self._ask(sent, on_text, since)
            except RefusedError as error:
                if error.status not in (400, 422):
                    raise
                if strict is not None and "response_format" in sent and _ABOUT_STRICT.search(error.text.lower()):
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
            return answer

    def _ask(self, body: Json, on_text: Callable[[str], None] | None, since: float) -> _Answer:
        if "stream" in body:
            return self._streamed(body, on_text, since)
        answer = self._http.post("chat/completions", body, self.meter, since=since)
        if not isinstance(choice := _choice(answer), dict) or not isinstance(choice.get("message"), dict):
            raise self._malformed("choices[0].message.content", answer)
        text = self._text(choice["message"], answer) or _argument(choice["message"])
        return _Answer(self._sound(text), (), str(choice.get("finish_reason") or ""), answer.get("usage"))

    def _streamed(self, body: Json, on_text: Callable[[str], None] | None, since: float) -> _Answer:
        pieces: list[str] = []
        finish, half, argument = "", "", ""
        counts: object = None
        unread: Json | None = {}

        def on_start() -> None:
            nonlocal finish, half, argument, counts, unread
            pieces.clear()
            finish, half, argument, counts, unread = "", "", "", None, {}

        def give(piece: str) -> None:
            if piece:
                pieces.append(self._sound(piece))
                if on_text is not None:
                    on_text(pieces[-1])

        def on_event(event: Json) -> None:
            nonlocal finish, half, argument, counts, unread
            if event.get("error") or event.get("object") == "error":
                raise self._malformed("choices[0].delta.content", event)
            counts = event.get("usage") or counts
            if (choice := _choice(event)) is None:  # the usage, a filter's results, a sign of life
                unread = unread if unread is None else event
                return
            unread = None
            if not isinstance(choice, dict):
                raise self._malformed("choices[0].delta.content", event)
            said = choice.get("delta")
            if said is None and not pieces:  # some say all at the end, or at once
                said = choice.get("message")
            if said is not None and not isinstance(said, dict):
                raise self._malformed("choices[0].delta.content", event)
            finish = str(choice.get("finish_reason") or finish)
            argument += _argument(said or {})
            piece = half + self._text(said or {}, event)
            half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""  # its other half comes with the next piece
            give(piece[: len(piece) - len(half)])

        self._http.post_stream(
            "chat/completions", body, self.meter, on_event, on_start=on_start,
            may_repeat=lambda: on_text is None or not pieces, is_complete=lambda: finish != "", since=since,
        )  # fmt: skip
        if unread is not None:
            raise self._malformed("choices[0].delta.content", unread)
        give(half)
        if not "".join(pieces).strip():
            give(argument)
        return _Answer("".join(pieces), tuple(pieces), finish, counts)

    def _text(self, message: Json, answer: Json) -> str:
        """The text of a message or of a part of one, without its reasoning; a refusal's if there is no other."""
        content = message.get("content")
        if isinstance(content, list) and all(isinstance(part, dict) for part in content):
            parts = [part.get("text") or part.get("refusal") or "" for part in content if not _is_thought(part)]
            content = "".join(parts) if all(isinstance(part, str) for part in parts) else content
        text = content or message.get("refusal") or ""
        if not isinstance(text, str):
            raise self._malformed("a text as content", answer)
        return text

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


def _choice(answer: Json) -> Any:
    """The first choice of an answer or of one event of it; None if there is none."""
    choices = answer.get("choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _is_thought(part: Json) -> bool:
    return any(word in str(part.get("type")) for word in ("think", "reason"))


def _argument(message: Json) -> str:
    """What the first tool, or the function of older servers, is called with; empty if none is."""
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else {}
    if first.get("index"):
        return ""
    called = first.get("function") or message.get("function_call")
    given = called.get("arguments") if isinstance(called, dict) else None
    return given if isinstance(given, str) else json.dumps(given) if given else ""


def _refused_field(sent: Json, text: str) -> str | None:
    """Which field a server's refusal is about; None if it names none that can be left out or renamed."""
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
