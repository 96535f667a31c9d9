"""Language models behind one protocol: messages, replies, and the meter that counts and stops their calls.

    model = OpenAIChatModel("http://localhost:8000/v1", model="qwen2.5-7b-instruct", max_total_tokens=100_000)
    reply = model.complete([{"role": "user", "content": "Where is the apple?"}], max_tokens=64)
    reply.text, model.meter.prompt_tokens, model.meter.cost

Models: `OpenAIChatModel` (a server), `RecordedChatModel` (a file in front of another model),
`embodied_mem.models.chat.FlaxChatModel` (our own decoder).
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..errors import EmbodiedMemError, InvalidInputError
from ..forks import forking_lock

Message = dict[str, object]
"""`{"role": "system" | "user" | "assistant", "content": text}`, or content with pictures: `images.content`."""
Json = dict[str, Any]
"""A JSON object."""

MAX_TOKENS = 1 << 40
"""Most tokens of one call; more is no count."""


class ChatError(EmbodiedMemError, RuntimeError):
    """A model call failed: the message names the server, what it answered, and after how many tries.

    Attributes:
        kind: why, in the meter's words: "empty", "late", "malformed", "too_long", "truncated", "wrong_encoding",
            "budget", or "failed" for anything else.
        status: of HTTP, if the server refused the request; else 0.
        text: what the server said when it refused.
    """

    def __init__(self, message: str, kind: str = "failed", status: int = 0, text: str = ""):
        super().__init__(message)
        self.kind, self.status, self.text = kind, status, text


@dataclasses.dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the server counts them.

    Attributes:
        prompt_tokens: tokens sent.
        completion_tokens: tokens received.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @classmethod
    def read(cls, counts: object) -> Usage:
        """Read a server's `usage`; missing numbers are 0. Raises ValueError."""
        if not isinstance(counts, Mapping):
            raise ValueError(f"expected numbers of tokens by name, got {type(counts).__name__}")
        numbers = []
        for name in ("prompt_tokens", "completion_tokens"):
            try:
                numbers.append(int(counts.get(name) or 0))
            except (TypeError, ValueError, OverflowError):
                numbers.append(-1)
            if not 0 <= numbers[-1] <= MAX_TOKENS:
                raise ValueError(f"{name}: expected a number of 0 to {MAX_TOKENS}")
        return cls(*numbers)


@dataclasses.dataclass(frozen=True)
class ChatReply:
    """An answer of a model.

    Attributes:
        text: the answer; empty if the model gave none.
        usage: tokens of this call; zeros if the server did not say.
        finish_reason: why it ended, in the server's word ("stop", "length", ...); empty if it did not say.
        pieces: the parts in which a streamed answer came; `text` is their concatenation. Empty if it was not streamed.
    """

    text: str
    usage: Usage = Usage()
    finish_reason: str = ""
    pieces: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Prices:
    """Prices of a million tokens, in any one currency.

    Attributes:
        prompt: of tokens sent.
        completion: of tokens received.
    """

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < float("inf"):
                raise InvalidInputError(f"prices.{field.name}: expected a finite price >= 0, got {value!r}")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Price these tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


def prices_of(table: Mapping[str, Prices | tuple[float, float]] | None, model: str) -> Prices | None:
    """Look up `model` in a table of prices; None without one.

    The entries are Prices or (prompt, completion).

    Raises:
        InvalidInputError: the table does not have the model: a cost of zero would be a wrong result.
    """
    if table is None:
        return None
    if model not in table:
        raise InvalidInputError(f"prices: expected an entry for {model!r}, got entries for {sorted(table)}")
    entry = table[model]
    return entry if isinstance(entry, Prices) else Prices(*entry)


@dataclasses.dataclass
class UsageMeter:
    """Running totals of a model's calls. Threads may share one.

    Attributes:
        calls, retries: number of answered calls and of repeated tries.
        replayed: calls answered from a recording; they are part of `calls`.
        prompt_tokens, completion_tokens: totals, replayed calls included.
        cost: of these tokens by `prices`; 0 without.
        estimated: calls whose server did not say how many tokens they had; counted here as one per four bytes, rounded
            up, so that a budget holds all the same.
        failed: calls that ended in an error.
        empty, late, malformed, too_long, truncated, wrong_encoding: answers that were so, repeated tries included:
            empty or white; not there in time; not what was asked for; over the limit of size; cut off in transfer; not
            UTF-8.
        last_error: why the last call failed; empty if none did.
        repaired: malformed answers that the model put right when it was told what was wrong.
        seconds_s: time spent waiting for servers, summed over threads.
        max_total_tokens, max_cost: budgets; None for no limit.
        prices: None if calls cost nothing or nobody counts.
    """

    calls: int = 0
    retries: int = 0
    replayed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    estimated: int = 0
    failed: int = 0
    empty: int = 0
    late: int = 0
    malformed: int = 0
    too_long: int = 0
    truncated: int = 0
    wrong_encoding: int = 0
    repaired: int = 0
    last_error: str = ""
    seconds_s: float = 0.0
    max_total_tokens: int | None = None
    max_cost: float | None = None
    prices: Prices | None = None
    _in_flight_tokens: int = dataclasses.field(default=0, repr=False, compare=False)
    _lock: threading.RLock = dataclasses.field(default_factory=forking_lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_cost is not None and self.prices is None:
            raise InvalidInputError("max_cost: expected prices with a budget in money, got none; pass prices")

    def add(self, **counts: float) -> None:
        """Add to attributes by name, e.g. `add(retries=1, late=1)`."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def fail(self, error: BaseException) -> None:
        """Count a call that ended in an error."""
        with self._lock:
            self.add(failed=1)
            self.last_error = str(error) or type(error).__name__

    def check(self) -> None:
        """Raise ChatError if a budget is used up, running calls included."""
        with self._lock:
            waiting = self._in_flight_tokens
            total = self.prompt_tokens + self.completion_tokens + waiting
            spent = self.cost + (self.prices.cost(0, waiting) if self.prices else 0.0)
            of = f"{self.calls} calls" + (f", {waiting} of them for calls that are running" if waiting else "")
            if self.max_total_tokens is not None and total >= self.max_total_tokens:
                raise ChatError(
                    f"the budget of {self.max_total_tokens} tokens is used up: {total} tokens, {of}", "budget"
                )
            if self.max_cost is not None and spent >= self.max_cost:
                raise ChatError(f"the budget of {self.max_cost:g} is used up: {spent:g} spent, {of}", "budget")

    @contextlib.contextmanager
    def call(self, max_tokens: int) -> Iterator[None]:
        """Surround one call: check budgets, reserve `max_tokens`, count its failure.

        So a budget is passed by the size of one call at most, however many threads there are.
        """
        with self._lock:
            self.check()
            self._in_flight_tokens += max_tokens
        try:
            yield
        except Exception as error:
            self.fail(error)
            raise
        finally:
            self.add(_in_flight_tokens=-max_tokens)

    def count(self, usage: Usage, *, replayed: bool = False, estimated: bool = False) -> None:
        """Add one answered call."""
        cost = self.prices.cost(usage.prompt_tokens, usage.completion_tokens) if self.prices else 0.0
        self.add(
            calls=1,
            replayed=int(replayed),
            estimated=int(estimated),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cost=cost,
        )

    def to_json(self) -> dict[str, float]:
        """Return the totals by name, for reports."""
        with self._lock:
            return {
                field.name: value
                for field in dataclasses.fields(self)
                if isinstance(value := getattr(self, field.name), (int, float)) and not field.name.startswith("_")
            }


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
        response_format: Json | None = None,
        on_text: Callable[[str], None] | None = None,
        seed: int | None = None,
    ) -> ChatReply:
        """Answer `messages`.

        Args:
            messages: the conversation so far.
            max_tokens: upper limit of the answer.
            temperature: 0 for the most likely answer.
            response_format: e.g. `{"type": "json_schema", "json_schema": {...}}`; None for free text. Whether the
                model keeps to it is not guaranteed: `complete_json` checks.
            on_text: called with each piece of the answer as it comes; a model that does not stream calls it once.
                After the first piece nothing is tried again: what was given cannot be taken back. A model that is only
                ever called without may leave it out.
            seed: of what is drawn; None leaves it to the model. One that is only ever called without may leave it out.

        Raises:
            ChatError: no answer could be had.
        """
        ...
