"""Records and replays chat calls: a program gives the same results again, bit for bit, without the model.

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
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from ..errors import InvalidInputError, StorageError
from ..forks import forking_lock
from .chat import ChatError, ChatModel, ChatReply, Json, Message, Prices, Usage, UsageMeter
from .images import without_images
from .json_answers import load_json


class RecordedChatModel:
    """Answers of `model`, written to a file as they come and read from it when the same is asked again.

    The n-th call with some request gets the n-th answer that the file has for it; so a program that makes the same
    calls, in whatever order, gets the same answers, a streamed one in the same pieces. The file is described in
    `docs/formats.md`; each line is on disk before `complete` returns. A last line without an end (a crash while
    writing) is dropped; any other damage is an error. A picture is recorded as its hash. Threads may share one object;
    one process at a time may write. Errors are not recorded: a failed call is made again.

    Args:
        model: asked for what the file does not have; None to replay only. Its own meter counts, and its budgets stop,
            what it is really asked.
        path: the file; made on the first write.
        name: of the recorded model; needed if `model` is None.
        prices: to count the cost of all calls, replayed ones included; None for the model's own.

    Raises:
        InvalidInputError: the file is damaged, or was changed.
    """

    def __init__(
        self,
        model: ChatModel | None,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        prices: Prices | None = None,
    ):
        if name is None:
            if model is None:
                raise InvalidInputError("name: expected the recorded model's name where there is no model, got None")
            name = model.name
        self._model, self.name = model, name
        self.meter = UsageMeter(prices=prices or (model.meter.prices if model is not None else None))
        self._path = pathlib.Path(path).absolute()
        self._lock = forking_lock()
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
                entry = load_json(line)
                if not isinstance(entry, dict) or entry.pop("checksum", None) != _checksum(entry):
                    raise ValueError("one without its checksum")
                usage = Usage(entry["prompt_tokens"], entry["completion_tokens"])
                reply = ChatReply(entry["text"], usage, entry.get("finish_reason", ""), tuple(entry.get("pieces", ())))
                self._answers[entry["key"], entry["n"]] = reply
            except (ValueError, LookupError, TypeError) as error:
                raise InvalidInputError(
                    f"{self._path}, line {number}: expected a recorded call, got {error}"
                ) from error

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
        settings: Json = {"max_tokens": max_tokens, "temperature": temperature, "response_format": response_format}
        settings |= {} if seed is None else {"seed": seed}
        try:
            request = {"model": self.name, "messages": without_images(messages), **settings}
            key = hashlib.sha256(_canonical(request)).hexdigest()
            load_json(json.dumps(request))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"request: expected JSON data, got {error}") from error
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
        except BaseException as error:
            with self._lock:  # the number goes to the next call, so that the file has no gap
                heapq.heappush(self._failed[key], n)
            self.meter.fail(error)
            raise
        self.meter.count(reply.usage)
        return reply

    def _next(self, key: str) -> int:
        if self._failed[key]:
            return heapq.heappop(self._failed[key])
        self._asked[key] += 1
        return self._asked[key] - 1

    def _append(self, key: str, n: int, request: Json, reply: ChatReply) -> None:
        entry = {"key": key, "n": n, "request": request, "text": reply.text, **dataclasses.asdict(reply.usage)}
        entry |= {"finish_reason": reply.finish_reason} if reply.finish_reason else {}
        entry |= {"pieces": list(reply.pieces)} if reply.pieces else {}
        entry["checksum"] = _checksum(entry)
        data = _canonical(entry) + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._path, "ab") as file:
                if file.tell() != self._size:
                    if self._path.read_bytes()[self._size :].count(b"\n"):
                        raise ChatError(f"{self._path}: another process has written to it; use one file per process")
                    file.truncate(self._size)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"{self._path}: cannot record the answer: {error}") from error
        self._size += len(data)
        self._answers[key, n] = reply


def _checksum(entry: Json) -> str:
    return hashlib.sha256(_canonical(entry)).hexdigest()[:16]


def _canonical(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
