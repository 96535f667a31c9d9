"""The space of all texts, as `gymnasium` asks for one: observations and actions of every world are in it.

space = AnyText()
"go to desk 1\\n" in space               # True, as is any other str
space.batch(16)                         # what 16 envs answer and take: lists or tuples of 16 str
"""

from __future__ import annotations

import copy
import string
from typing import Any

import gymnasium
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Text
from gymnasium.vector.utils import create_shared_memory

SAMPLE_LENGTH = 32
"""Characters of the longest sample."""


class AnyText(Text):
    """Every `str`, of any length and with any characters, the empty one too.

    What `Text` says of lengths and characters (`max_length`, `character_set`) holds here for samples alone: they are
    printable ASCII. Hence it has no flat form as numbers: flattened, a text stays what it is.
    """

    def __init__(self, seed: int | None = None):
        super().__init__(SAMPLE_LENGTH, min_length=0, charset=string.printable[:95], seed=seed)

    def contains(self, x: Any) -> bool:
        """Tell whether it is a str."""
        return isinstance(x, str)

    def batch(self, num_envs: int) -> gymnasium.spaces.Tuple[Any]:
        """Return the space of a list, tuple or array of texts.

        There are `num_envs` of them; each part has its own generator.

        The same as gymnasium's `batch_space`, which takes seconds for thousands of envs.
        """
        unseeded = AnyText()
        return gymnasium.spaces.Tuple([copy.copy(unseeded) for _ in range(num_envs)])

    @property
    def is_np_flattenable(self) -> bool:
        """No: texts have no longest one."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText)

    def __repr__(self) -> str:
        return "AnyText()"


@create_shared_memory.register(AnyText)
def _no_shared_memory(space: AnyText, n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError("texts of any length have no place in shared memory; pass shared_memory=False")


@gymnasium.spaces.utils.flatten_space.register(AnyText)
def _flat_space(space: AnyText) -> AnyText:
    return space


@gymnasium.spaces.utils.flatten.register(AnyText)
@gymnasium.spaces.utils.unflatten.register(AnyText)
def _same(space: gymnasium.Space[Any], x: Any) -> Any:  # type: ignore[misc]  # Space is generic there
    return x
