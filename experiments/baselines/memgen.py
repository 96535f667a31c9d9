"""MemGen: latent memory that an executor's own adapters write from what it reads, as soft tokens in its prompt.

    memgen = MemGen(executor, model, shown)               # `weaver.load_weaving`
    woven = memgen.weave(views, keys)                     # of each episode soft tokens, or None where it is skipped

It observes no episodes: what it remembers of the training games is in its adapters (`memgen_training`). So it is no
`MemoryMethod`, and another bank does not reach it. The first step of an episode always gets the prompt's soft tokens;
at later ones the trigger decides at the end of the newest answer, where its sentence and its line end.

Source: MemGen (Zhang et al. 2026); what differs is in docs/baselines.md.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from embodied_mem.agents.deliveries import Delivered, NoMemory
from embodied_mem.compiler.prompts import Shown
from embodied_mem.compiler.view import View, executor_text
from embodied_mem.errors import InvalidInputError

if TYPE_CHECKING:
    import jax

    from embodied_mem.compiler.executor import Executor

    from .weaver import Weaving

NUM_SOFT = 8
WEAVER = "memgen.safetensors"
"""Name of the file beside the weights of its executor."""


class Woven(NamedTuple):
    """The soft tokens of one row.

    Attributes:
        soft: float32[8, D]; None where the trigger says SKIP.
        tokens: that trigger and weaver have read, queries included.
    """

    soft: np.ndarray | None
    tokens: int


def place_prompt(goal: str, room: str, turns: Sequence[tuple[str, str]], shown: Shown, num_soft: int = NUM_SOFT) -> str:
    """Write the executor's prompt with places for soft tokens alone."""
    return executor_text(goal, room, turns, shown, num_soft=num_soft)


class MemGen:
    """Weaver and trigger of an executor, as they act.

    Args:
        executor: that reads the soft tokens.
        model: trained with it.
        shown: as the executor was trained with.
        sampled: the trigger's decisions are drawn, as in its training; else INVOKE unless SKIP is likelier.
    """

    def __init__(self, executor: Executor, model: Weaving, shown: Shown, sampled: bool = False):
        from flax import nnx

        self._executor, self._shown, self._sampled = executor, shown, sampled
        self._graph, self._state = nnx.split(model)
        self._rows = 0

    def weave(self, views: Sequence[View], keys: jax.Array) -> list[Woven]:
        """Return what each of these episodes gets at this step.

        `keys` holds their keys first.
        """
        prefixes = self.prefixes([(view.goal, view.room, tuple(view.turns)) for view in views])
        soft, logits = self.read(prefixes, [bool(view.turns) for view in views])
        bars = self._bars(keys)[: len(views)] if self._sampled else np.zeros(len(views))
        invoked = (logits >= bars) | np.array([not view.turns for view in views])
        lengths = map(len, prefixes)
        return [
            Woven(one, 2 * length + NUM_SOFT) if use else Woven(None, length)
            for one, use, length in zip(soft, invoked, lengths)
        ]

    def prefixes(self, steps: Sequence[tuple[str, str, Sequence[tuple[str, str]]]]) -> list[list[int]]:
        """Return the tokens before the places of steps (goal, room, turns)."""
        encoded = self._executor.read([place_prompt(*step, self._shown) for step in steps])
        return [ids[: ids.index(self._soft_id)] for ids in encoded]

    def padded(self, prefixes: Sequence[Sequence[int]], places: int = NUM_SOFT) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens int32[B, L], mask bool[B, L]) of left-padded rows.

        The rows end with so many places.
        """
        from embodied_mem.models.sampling import pad_prompts

        rows = [[*ids, *[self._soft_id] * places] for ids in prefixes]
        return pad_prompts(rows, buckets=self._executor.length_buckets)

    def read(self, prefixes: Sequence[Sequence[int]], later: Sequence[bool]) -> tuple[np.ndarray, np.ndarray]:
        """Return (soft tokens float32[B, 8, D], logits of INVOKE [B]).

        Batches that become smaller keep their shape.
        """
        from .weaver import woven

        count = len(prefixes)
        self._rows = max(self._rows, count)
        missing = self._rows - count
        tokens, mask = self.padded([*prefixes, *[prefixes[0]] * missing])
        places = np.broadcast_to(np.arange(tokens.shape[1]) >= tokens.shape[1] - NUM_SOFT, tokens.shape)
        flags = np.array([*later, *[False] * missing])
        soft, logits = woven(self._graph, self._state, tokens, mask, places, flags)
        return np.asarray(soft)[:count], np.asarray(logits)[:count]

    @property
    def _soft_id(self) -> int:
        soft_id = self._executor.tokenizer.soft_id
        assert soft_id is not None  # of every tokenizer that is trained here
        return soft_id

    def _bars(self, keys: jax.Array) -> np.ndarray:
        """Return what the logits have to pass: logits of uniform draws.

        So INVOKE has its own probability.
        """
        import jax

        drawn = jax.vmap(lambda key: jax.random.logistic(jax.random.fold_in(key, 2)))(keys)
        return np.asarray(drawn)


class WovenMemory(NoMemory):
    """Soft tokens without a word, where MemGen's trigger asks for them."""

    name = "memgen"

    def __init__(self, memgen: MemGen):
        self._memgen = memgen

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Return what the weaver writes for every row, or nothing."""
        return [Delivered(soft=one.soft, tokens=one.tokens) for one in self._memgen.weave(views, keys)]


def woven_memory(executor: Executor, folder: pathlib.Path, shown: Shown) -> WovenMemory:
    """Make the delivery by the weaver beside an executor's weights.

    Raises:
        InvalidInputError: there is none.
        CheckpointError: it is another executor's.
    """
    from .weaver import load_weaving

    path = folder / WEAVER
    if not path.exists():
        raise InvalidInputError(
            f"delivery 'memgen': expected {path}, which is not there; train it with: "
            f"python experiments/memgen.py --weights {folder}"
        )
    return WovenMemory(MemGen(executor, load_weaving(path, executor.decoder), shown))
