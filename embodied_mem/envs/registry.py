"""Names the worlds and makes them.

from embodied_mem.envs import make

envs = make("alfworld", tasks="train", num_envs=16, seed=0)
envs = make("eb_alfred", backend="embodiedbench", tasks="base")     # the real simulator instead of the native world
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

BACKENDS: dict[tuple[str, str], str] = {
    ("eb_alfred", "embodiedbench"): "embodied_mem.envs.simulator_env:EbAlfredSimulator",
    ("eb_habitat", "embodiedbench"): "embodied_mem.envs.simulator_env:EbHabitatSimulator",
    ("memento", "habitat"): "embodied_mem.envs.simulator_env:PartnrSimulator",
}
"""(World id, backend) to the same for native worlds played by the real simulator."""


def world_class(world: str, backend: str | None = None) -> type[NativeVectorEnv]:
    """Return the class of a world's vector env.

    Raises:
        InvalidInputError: the world is unknown, or has no such backend.
    """
    known = WORLDS | SIMULATORS
    if world not in known:
        raise InvalidInputError(f"world: expected one of {', '.join(sorted(known))}, got {world!r}")
    if backend is not None and (world, backend) not in BACKENDS:
        has = ", ".join(repr(name) for of, name in BACKENDS if of == world)
        raise InvalidInputError(f"backend: expected None{' or ' * bool(has)}{has} for {world}, got {backend!r}")
    module, name = (known[world] if backend is None else BACKENDS[world, backend]).split(":")
    return getattr(importlib.import_module(module), name)


def make(world: str, backend: str | None = None, **options: Any) -> NativeVectorEnv:
    """Return the vector env of a world.

    Args:
        world: id of the world, one of `WORLDS` or `SIMULATORS`.
        backend: None for the world itself; the name of a real simulator, see `BACKENDS`, to have that play it.
        **options: arguments of its class; all worlds know `tasks`, `num_envs`, `seed`, `max_steps`.

    Raises:
        InvalidInputError: the world or its backend is unknown, or an option is.
    """
    cls = world_class(world, backend)
    known = list(inspect.signature(cls).parameters)
    for name in options:
        if name not in known:
            raise InvalidInputError(f"{world}: expected options among {', '.join(known)}, got {name!r}")
    return cls(**options)
