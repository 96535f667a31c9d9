"""Seats of one agent at chat models: planner, critic, preprocessor, memory, perceiver, each with its own count.

    seats = Seats(model, "chat_planner_critic", memory=another_model)
    agent = PlannerCriticAgent(**chat_parts(seats, skills))
    seats.begin("task 7")                # counts start anew
    seats.counts()                       # {"planner_calls": 3, "planner_tokens": 1210, "planner_ms": 840.2, ...}

All calls of a task have one seed, made of the agent's name and the task's. So a server's draws, and the answers of a
recording, do not depend on which tasks are played before it or side by side with it.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence

from ..errors import InvalidInputError
from .chat import ChatError, ChatModel, ChatReply, Json, Message, UsageMeter

SEATS = ("planner", "critic", "preprocessor", "memory", "perceiver")
COUNTS = ("calls", "tokens", "ms", "failed")
"""Counts of a seat: answered calls, their tokens, the time spent waiting, calls without an answer."""


class Seat:
    """A `ChatModel` as one part of an agent asks it.

    Attributes:
        name, meter: the model's.
        usage: what this seat was answered since the task began.
        seed: of the task.
    """

    def __init__(self, model: ChatModel):
        self.name, self.meter, self._model = model.name, model.meter, model
        self.usage = UsageMeter()
        self.seed: int | None = None
        self.budget_error: ChatError | None = None

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
        seed = self.seed if seed is None else seed
        more = {} if seed is None else {"seed": seed}
        start = time.perf_counter()
        try:
            reply = self._model.complete(
                messages, max_tokens=max_tokens, temperature=temperature, response_format=response_format,
                on_text=on_text, **more,
            )  # fmt: skip
        except ChatError as error:
            self.usage.fail(error)
            self.budget_error = error if error.kind == "budget" else self.budget_error
            raise
        finally:
            self.usage.add(seconds_s=time.perf_counter() - start)
        self.usage.count(reply.usage)
        return reply


class Seats:
    """The seats of an agent.

    Args:
        model: planner, critic and preprocessor ask it.
        name: of the agent; calls of an agent without a name have no seed.
        memory: writes its memory; None for rules.
        perceiver: looks at each answer of the world; None for rules, which read texts.

    Attributes:
        memory, perceiver: their seats; None for rules.
    """

    def __init__(
        self, model: ChatModel, name: str = "", memory: ChatModel | None = None, perceiver: ChatModel | None = None
    ):
        if not callable(getattr(model, "complete", None)):
            raise InvalidInputError(
                f"model: expected a chat model with complete(messages, ...), such as OpenAIChatModel, got {model!r}; "
                "planners and critics that are functions of their own need no chat model: see docs/agents.md"
            )
        self._name = name
        models = {**dict.fromkeys(SEATS, model), "memory": memory, "perceiver": perceiver}
        self._seats = {seat: Seat(own) for seat, own in models.items() if own is not None}
        self.memory, self.perceiver = self._seats.get("memory"), self._seats.get("perceiver")

    def __getitem__(self, seat: str) -> Seat:
        return self._seats[seat]

    def begin(self, task: str) -> None:
        """Begin a task of this name."""
        for seat in self._seats.values():
            seat.usage = UsageMeter()
            seat.seed = zlib.crc32(f"{self._name}\n{task}".encode()) >> 1 if self._name else None

    def counts(self) -> dict[str, float]:
        """Return `COUNTS` of each seat since the task began, by `SEAT_COUNT`.

        Raises:
            ChatError: a budget was used up, whoever caught that.
        """
        counts: dict[str, float] = {}
        for name, seat in self._seats.items():
            if seat.budget_error is not None:
                raise seat.budget_error
            use = seat.usage
            values = use.calls, use.prompt_tokens + use.completion_tokens, round(1000 * use.seconds_s, 3), use.failed
            counts |= {f"{name}_{count}": value for count, value in zip(COUNTS, values)}
        return counts


def seat_tokens(counts: Mapping[str, float]) -> float:
    """Return the tokens of all seats together."""
    return sum(counts.get(f"{seat}_tokens", 0) for seat in SEATS)
