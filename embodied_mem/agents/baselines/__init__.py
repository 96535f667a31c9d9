"""Memory methods of other papers as peers, one file each: whatever has a file here with `METHODS` is found by name.

    method = make_method("mem0_2")              # rules answer; with chat=model, a model does
    method.observe(episode)
    method.recall("put a clean apple in fridge.", first_observation)      # lines, best first

`agents.deliveries.MethodDelivery` puts what they recall into the executor's prompt. See docs/baselines.md.
"""

from __future__ import annotations

import importlib
import pkgutil

from embodied_mem.errors import InvalidInputError
from embodied_mem.language.chat import ChatModel

from .method import MemoryMethod


def _found() -> dict[str, type[MemoryMethod]]:
    methods: dict[str, type[MemoryMethod]] = {}
    for file in pkgutil.iter_modules(__path__):
        methods |= getattr(importlib.import_module(f"{__name__}.{file.name}"), "METHODS", {})
    return methods


METHODS = _found()
"""Class by name."""


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
