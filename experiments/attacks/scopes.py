"""Names that try to reach another scope: quotes, separators, other forms of a letter, control characters, paths."""

from __future__ import annotations

import pathlib
import random
import unicodedata
from collections.abc import Callable

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import KnowledgeGraph, LifelongMemory, Scope, Triple

from . import Counts

_PARTS = (
    "ann", "Ann", "a", "", " ", "\0", "\n", "\r", "\t", '"', "'", "\\", "/", "..", "../ann", ",", ":", "{", "}",
    '","robot":"', "}{", '"}', "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9"), "\u202eann", "\u200b", "\ufeff",
    "\U0001f600", "stra\u00dfe", "STRASSE", "None", "null", "%00", "*", "?", "ann\0", "a" * 300, "\u0430nn", "\x7f",
    "\u2028",
)  # fmt: skip
TRIES = 12
SECRET = "I keep my blue secretbox on the desk."


def _scope(rng: random.Random) -> Scope:
    name = lambda: "".join(rng.choice(_PARTS) for _ in range(rng.randrange(1, 3)))  # noqa: E731
    return Scope(user=name(), robot=rng.choice(["", name()]), environment=rng.choice(["", name()]))


def scopes(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Open folders, states and graphs by their own and another scope.

    Another scope never opens them, their own always does.
    """
    landed = 0
    for number in range(TRIES):
        try:
            mine, other = _scope(rng), _scope(rng)
        except EmbodiedMemError:
            continue
        if rng.random() < 0.3:  # the parts of one, moved to other places
            parts = [mine.user, mine.robot, mine.environment]
            rng.shuffle(parts)
            other = Scope(*parts)
        if mine == other:
            continue
        path = folder / str(number)
        try:
            with LifelongMemory.open(path, mine, fsync="never") as memory:
                memory.tell(SECRET)
                if rng.random() < 0.5:
                    memory.store.snapshot()
                state = memory.state()
        except EmbodiedMemError:
            continue  # a name that is refused at once crosses nothing
        landed += 1
        with LifelongMemory.open(path, mine, read_only=True) as memory:
            assert "secretbox" in memory.retrieve("where is the secretbox?").render()
        graph = KnowledgeGraph(scope=mine)
        graph.update([Triple("secretbox", "on", "desk", valid_at=1)])
        for what, call in {
            "a folder": lambda: LifelongMemory.open(path, other),  # noqa: B023
            "a folder, read only": lambda: LifelongMemory.open(path, other, read_only=True),  # noqa: B023
            "a state": lambda: LifelongMemory(other).restore(state),  # noqa: B023
            "a graph": lambda: KnowledgeGraph.from_bytes(graph.to_bytes(), other),  # noqa: B023
        }.items():
            said = _refusal(call)
            assert said, f"{what} of {mine} was opened as {other}"
            assert "secretbox" not in said, f"{what}: the error tells what is in it"
        assert [item.name for item in folder.iterdir() if not item.name.isdigit()] == [], "a file beside the folder"
    return Counts(TRIES, landed)


def _refusal(call: Callable[[], object]) -> str:
    """Return what the library's error says; "" if there is none."""
    try:
        call()
    except EmbodiedMemError as error:
        return str(error)
    return ""
