"""Methods and agents of other papers as peers, one file each: whatever has a file here with `METHODS` or `AGENTS` is
found by name.

    method = make_method("mem0_2")              # rules answer; with chat=model, a model does
    method.observe(episode)
    method.recall("put a clean apple in fridge.", first_observation)      # lines, best first

`agents.deliveries.MethodDelivery` puts what they recall into the executor's prompt. An agent plays by itself:
`AGENTS["voyager"](player=player)`, see `player.Player`. See docs/baselines.md.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from embodied_mem.agents.agent import Agent
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.chat import ChatModel

from .method import MemoryMethod


def _found(kind: str) -> dict[str, Any]:
    modules = [importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)]
    return {name: found for module in modules for name, found in getattr(module, kind, {}).items()}


METHODS: dict[str, type[MemoryMethod]] = _found("METHODS")
"""Class by name."""

AGENTS: dict[str, Callable[..., Agent]] = _found("AGENTS")
"""Class by name; made with `player=`, and acting by rules."""


def make_method(name: str, chat: ChatModel | None = None) -> MemoryMethod:
    """The method called `name`, empty; `chat` answers its calls, or rules without one.

    Raises:
        InvalidInputError: no such method; the message lists them.
    """
    if name not in METHODS:
        raise InvalidInputError(f"method: expected one of {', '.join(METHODS)}, got {name!r}")
    return METHODS[name](chat)


def row_name(name: str, chat: ChatModel | None = None) -> str:
    """What a row of this method is called: with rules it is never named as the original."""
    return name if chat is not None else f"{name} (rule extraction)"
