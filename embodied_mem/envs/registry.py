"""Names the worlds and makes them.

from embodied_mem.envs import make

envs = make("alfworld", tasks="train", num_envs=16, seed=0)
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from embodied_mem.errors import InvalidInputError

if TYPE_CHECKING:
    from embodied_mem.envs.vector_env import NativeVectorEnv

WORLDS: dict[str, str] = {
    "alfworld": "embodied_mem.envs.alfworld:AlfworldVectorEnv",
    "eb_alfred": "embodied_mem.envs.eb_alfred:EbAlfredVectorEnv",
    "eb_habitat": "embodied_mem.envs.eb_habitat:EbHabitatVectorEnv",
    "memento": "embodied_mem.envs.memento:MementoVectorEnv",
}
"""World id to `module:class`; modules load on first use."""

SIMULATORS: dict[str, str] = {"scienceworld": "embodied_mem.envs.scienceworld:ScienceWorldVectorEnv"}
"""The same for worlds that run in a program of others: no snapshots, and rewards of their own."""


def world_class(world: str) -> type[NativeVectorEnv]:
    """Return the class of a world's vector env.

    Raises:
        InvalidInputError: the world is unknown.
    """
    known = WORLDS | SIMULATORS
    if world not in known:
        raise InvalidInputError(f"world: expected one of {', '.join(sorted(known))}, got {world!r}")
    module, name = known[world].split(":")
    return getattr(importlib.import_module(module), name)


def make(world: str, **options: Any) -> NativeVectorEnv:
    """Return the vector env of a world.

    Args:
        world: id of the world, one of `WORLDS` or `SIMULATORS`.
        **options: arguments of its class; all worlds know `tasks`, `num_envs`, `seed`, `max_steps`.

    Raises:
        InvalidInputError: the world is unknown, or an option is.
    """
    cls = world_class(world)
    known = list(inspect.signature(cls).parameters)
    for name in options:
        if name not in known:
            raise InvalidInputError(f"{world}: expected options among {', '.join(known)}, got {name!r}")
    return cls(**options)
