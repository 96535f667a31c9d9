"""A chat model behind an OpenAI-compatible server, streamed or not.

    model = OpenAIChatModel("http://localhost:8000/v1", model="qwen2.5-7b-instruct", stream=True, deadline_s=60)
    reply = model.complete([{"role": "user", "content": "Where is the apple?"}], on_text=print)

Only the standard library; nothing is sent unless `complete` is called.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from .chat import ChatError, ChatReply, Message, Prices, Usage, UsageMeter, prices_of
from .http_json import HttpJson


class OpenAIChatModel:
    """A model behind `POST <base_url>/chat/completions`. Threads may share one object.

    Args:
        base_url: as `HttpJson`.
        model: name that the server knows.
        api_key: None for the environment variable OPENAI_API_KEY, if set.
        stream: ask for server-sent events also where nobody listens to the pieces: a server that has stopped working
            is then noticed after `timeout_s` and not at the end. A call with `on_text` is always streamed.
        prices: price table {model: Prices or (prompt, completion) per million tokens}; None to count no cost.
        max_total_tokens, max_cost: budgets over all calls, checked before each; None for no limit.
        extra_body: further fields of each request, e.g. `{"seed": 0}`.
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
        extra_body: dict | None = None,
        **http,
    ):
        self.name = model
        self.meter = UsageMeter(max_total_tokens=max_total_tokens, max_cost=max_cost, prices=prices_of(prices, model))
        self._stream = stream
        self._extra_body = dict(extra_body or {})
        self._http = HttpJson(base_url, api_key=api_key or os.environ.get("OPENAI_API_KEY"), **http)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        response_format: dict | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ChatReply:
        """As `ChatModel.complete`."""
        body = {
            "model": self.name,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
            **({"response_format": response_format} if response_format is not None else {}),
            **self._extra_body,
        }
        with self.meter.call(max_tokens):
            if self._stream or on_text is not None:
                text, pieces, finish, counts = self._streamed(body, on_text)
            else:
                answer = self._http.post("chat/completions", body, self.meter)
                text, finish, counts = self._parts(answer, "message")
                text, pieces = self._sound(text), ()
            usage = self._usage(counts)
            if not text.strip():
                self.meter.add(empty=1)
            said = usage is not None
            self.meter.count(usage if said else _estimate(messages, text), estimated=not said)
        return ChatReply(text, usage or Usage(), finish, pieces)

    def _streamed(self, body: dict, on_text: Callable[[str], None] | None) -> tuple[str, tuple[str, ...], str, object]:
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

        def on_event(event: dict) -> None:
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
            on_start=on_start, may_repeat=lambda: on_text is None or not pieces,
        )  # fmt: skip
        give(half)
        return "".join(pieces), tuple(pieces), finish, counts

    def _parts(self, answer: dict, field: str) -> tuple[str, str, object]:
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
            usage = Usage(int(counts.get("prompt_tokens") or 0), int(counts.get("completion_tokens") or 0))
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise self._malformed("numbers of tokens as usage", {"usage": counts}) from error
        if min(usage.prompt_tokens, usage.completion_tokens) < 0:
            raise self._malformed("numbers of tokens >= 0 as usage", {"usage": counts})
        return usage

    def _sound(self, text: str) -> str:
        """`text` as valid Unicode: JSON can hold halves of characters, and streams cut characters in two."""
        try:
            text.encode()
            return text
        except UnicodeEncodeError:
            joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            self.meter.add(wrong_encoding=int("\ufffd" in joined))
            return joined

    def _malformed(self, expected: str, answer: dict) -> ChatError:
        self.meter.add(malformed=1)
        return ChatError(f"{self._http.base_url}: expected {expected}, got {json.dumps(answer)[:300]}", "malformed")


def _estimate(messages: Sequence[Message], text: str) -> Usage:
    """One token per four bytes, rounded up; for servers that do not count."""
    sent = sum(len(str(message.get("content", "")).encode("utf-8", "replace")) for message in messages)
    return Usage(-(-sent // 4), -(-len(text.encode()) // 4))
