"""How memory reaches the executor: one protocol, and the ways that are compared. A new method is one more class.

    delivery = make_delivery("compiled", compiler=compiler)
    delivery.begin(views)
    for each step: delivered = delivery.deliver(views, keys)

Every delivery gets the same retrieved experiences, and the same executor reads what it gives.

    none               nothing
    static             the experiences as text, in the prompt from the first step on (AMMI in the paper)
    compiled           guidance and soft tokens compiled at every step from Brief State, observation and experiences
    compiled_text      the same without soft tokens (w/o Soft-Mem)
    compiled_no_brief  the same, the Brief State replaced by goal and action history (w/o Brief State)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import jax
import numpy as np

from embodied_mem.agents.views import View, compile_prompt, render_experiences, start_state
from embodied_mem.compiler.brief_state import apply_all
from embodied_mem.compiler.memory_compiler import Compiled, MemoryCompiler
from embodied_mem.errors import InvalidInputError


@dataclasses.dataclass(frozen=True)
class Delivered:
    """What one row gets at one step.

    Attributes:
        memory: experiences in the executor's prompt.
        hint: guidance for this step.
        soft: float32[N, D] soft tokens, or None.
        tokens: tokens read and written by the compiler.
        record: the compiler's sample, for training and for explanations; None without a compiler.
    """

    memory: str = ""
    hint: str = ""
    soft: np.ndarray | None = None
    tokens: int = 0
    record: Compiled | None = None


class Delivery(Protocol):
    """A way of giving memory to the executor."""

    name: str

    def begin(self, views: Sequence[View]) -> None:
        """Prepares the state of episodes that start."""

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """What each of these B running episodes gets at this step; `keys` holds their B keys first."""


class NoMemory:
    """Nothing is delivered."""

    name = "none"

    def begin(self, views: Sequence[View]) -> None:
        """Nothing to prepare."""

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Empty deliveries."""
        return [Delivered()] * len(views)


class StaticInjection(NoMemory):
    """The experiences stand in the prompt from the first step to the last."""

    name = "static"

    def begin(self, views: Sequence[View]) -> None:
        """Renders the experiences once."""
        for view in views:
            view.state = Delivered(memory=render_experiences(view.experiences))

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """The same text at every step."""
        return [view.state for view in views]


class CompiledMemory:
    """The compiler reads the runtime state at every step and writes guidance, edits of the Brief State, soft tokens.

    Args:
        compiler: the model.
        soft: deliver soft tokens too.
        brief: keep a Brief State; without, the compiler reads goal and action history in its place.
    """

    def __init__(self, compiler: MemoryCompiler, *, soft: bool = True, brief: bool = True, name: str = "compiled"):
        self.name = name
        self._compiler = compiler
        self._soft = soft and compiler.num_soft > 0
        self._brief = brief

    def begin(self, views: Sequence[View]) -> None:
        """The Brief State of an episode that starts: its goal, and the room as a fact."""
        for view in views:
            view.state = start_state(view.goal, view.room)

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Compiles one step for every row and applies the edits."""
        prompts = [compile_prompt(view, self._brief) for view in views]
        compiled = self._compiler.compile(prompts, keys, soft=self._soft)
        delivered = []
        for view, record in zip(views, compiled):
            view.state, refused = apply_all(record.output.edits, view.state)
            guidance = record.output.guidance
            record = dataclasses.replace(record, refused_edits=refused)
            soft = record.soft if guidance and self._soft else None
            delivered.append(Delivered("", guidance, soft, record.num_tokens, record))
        return delivered


def make_delivery(name: str, compiler: MemoryCompiler | None = None) -> Delivery:
    """The delivery called `name`.

    Raises:
        InvalidInputError: no such delivery (the message lists them), or it needs a compiler and none is given.
    """
    check_names((name,))
    if name.startswith("compiled") and compiler is None:
        raise InvalidInputError(f"delivery {name!r}: expected a compiler, got none")
    return DELIVERIES[name](compiler)


def check_names(names: Sequence[str]) -> None:
    """Raises InvalidInputError for a name that is no delivery; the message lists them."""
    for name in names:
        if name not in DELIVERIES:
            raise InvalidInputError(f"delivery: expected one of {', '.join(DELIVERIES)}, got {name!r}")


DELIVERIES: dict[str, Callable[[MemoryCompiler | None], Delivery]] = {
    "none": lambda compiler: NoMemory(),
    "static": lambda compiler: StaticInjection(),
    "compiled": lambda compiler: CompiledMemory(compiler),
    "compiled_text": lambda compiler: CompiledMemory(compiler, soft=False, name="compiled_text"),
    "compiled_no_brief": lambda compiler: CompiledMemory(compiler, brief=False, name="compiled_no_brief"),
}
