"""Record and replay: a program with a paid model gives the same results again, bit for bit, without it.

model = RecordedChatModel(OpenAIChatModel(url, "qwen2.5-7b-instruct"), "calls.jsonl")
model = RecordedChatModel(None, "calls.jsonl", name="qwen2.5-7b-instruct")     # never asks anybody
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import json
import os
import pathlib
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from ..errors import InvalidInputError
from .chat import ChatError, ChatModel, ChatReply, Message, Prices, Usage, UsageMeter


class RecordedChatModel:
    """Answers of `model`, written to a file as they come and read from it when the same is asked again.

    The n-th call with some request gets the n-th answer that the file has for it; so a program that makes the same
    calls, in whatever order, gets the same answers, a streamed one in the same pieces. File: one JSON object per line
    {key, n, request, text, prompt_tokens, completion_tokens, and finish_reason and pieces where there are any}, where
    key is the SHA-256 of the request; each line is on disk before `complete` returns. A last line without an end (a
    crash while writing) is dropped; any other damage is an error. Threads may share one object; one process at a time
    may write. Errors are not recorded: a failed call is made again.

    Args:
        model: asked for what the file does not have; None to replay only. Its own meter counts, and its budgets stop,
            what it is really asked.
        path: the file; made on the first write.
        name: of the recorded model; needed if `model` is None.
        prices: to count the cost of all calls, replayed ones included; None for the model's own.
    """

    def __init__(
        self,
        model: ChatModel | None,
        path: str | os.PathLike,
        name: str | None = None,
        *,
        prices: Prices | None = None,
    ):
        if model is None and name is None:
            raise InvalidInputError("name: expected the recorded model's name where there is no model, got None")
        self._model = model
        self.name = name if name is not None else model.name
        self.meter = UsageMeter(prices=prices or (model.meter.prices if model is not None else None))
        self._path = pathlib.Path(path)
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._failed: defaultdict[str, list[int]] = defaultdict(list)
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
                reply = ChatReply(
                    entry["text"],
                    Usage(entry["prompt_tokens"], entry["completion_tokens"]),
                    entry.get("finish_reason", ""),
                    tuple(entry.get("pieces", ())),
                )
                if reply.pieces and "".join(reply.pieces) != reply.text:
                    raise ValueError("the pieces are not the text")
                self._answers[entry["key"], entry["n"]] = reply
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
        on_text: Callable[[str], None] | None = None,
    ) -> ChatReply:
        """As `ChatModel.complete`, from the file if it is there.

        Raises:
            ChatError: not in the file, and there is no model to ask, or it failed.
        """
        settings = {"max_tokens": max_tokens, "temperature": temperature, "response_format": response_format}
        request = {"model": self.name, "messages": list(messages), **settings}
        key = _request_key(request)
        with self._lock:
            n = self._next(key)
            reply = self._answers.get((key, n))
        if reply is not None:
            self.meter.count(reply.usage, replayed=True)
            if on_text is not None:
                for piece in reply.pieces or ((reply.text,) if reply.text else ()):
                    on_text(piece)
            return reply
        if self._model is None:
            raise ChatError(f"{self._path}: expected call {n} of request {key[:12]}, which was not recorded; record it")
        if on_text is not None:
            settings["on_text"] = on_text
        try:
            reply = self._model.complete(messages, **settings)
            with self._lock:
                self._append(key, n, request, reply)
        except BaseException:
            with self._lock:  # the number goes to the next call, so that the file has no gap
                heapq.heappush(self._failed[key], n)
            self.meter.add(failed=1)
            raise
        self.meter.count(reply.usage)
        return reply

    def _next(self, key: str) -> int:
        if self._failed[key]:
            return heapq.heappop(self._failed[key])
        self._asked[key] += 1
        return self._asked[key] - 1

    def _append(self, key: str, n: int, request: dict, reply: ChatReply) -> None:
        entry = {"key": key, "n": n, "request": request, "text": reply.text, **dataclasses.asdict(reply.usage)}
        entry |= {"finish_reason": reply.finish_reason} if reply.finish_reason else {}
        entry |= {"pieces": list(reply.pieces)} if reply.pieces else {}
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
