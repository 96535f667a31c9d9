"""Finds worlds by name. A world is a folder that holds all that knows one benchmark; everything else knows none.

    load("alfworld", "env")              # its vector environment; the module is imported now and not before
    names("tasks")                       # worlds that can be trained on

A world outside this package is a package with a card, named by an entry point:

    [project.entry-points."embodied_mem.worlds"]
    cellar = "cellar_world:WORLD"        # WORLD = World("cellar", env="cellar_world.env:Cellar")
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from .errors import InvalidInputError

GROUP = "embodied_mem.worlds"
"""Group of entry points under which packages of others give their cards."""

BUILT_IN = ("alfworld", "eb_alfred", "eb_habitat", "locomo", "memento", "scienceworld")
"""Worlds of this package: `embodied_mem.worlds.<name>` has a card `WORLD`."""

PARTS = (
    "env", "generated", "convert", "reader", "agent", "skills", "instruction", "tasks", "samples", "benchmark",
    "parity",
)  # fmt: skip
"""What a card may name beside backends."""


@dataclasses.dataclass(frozen=True)
class World:
    """A world's card: where its parts are, each as "module:attribute" and loaded on first use; "" for none.

    Attributes:
        name: by which it is found.
        env: class of its vector environment, a `NativeVectorEnv` or one with the same methods.
        backends: name of a real simulator -> class of the environment that it plays.
        generated: (number of tasks, seed) -> options of `env` for tasks of one new home, made without any data.
        data: what its data are and where their publishers put them, in sentences; "" where it needs none.
        convert: an `envs.originals.Converter`: makes its files from what the publishers give.
        native: whether the environment runs in this process, with snapshots; equal results for any number of threads.
        reader: a `memory.readers.reading.Reader` of its texts; the default reads household sentences.
        agent: (`PlannerCriticConfig`) -> planner, critic and rules of `agents.planner_critic`, by keyword.
        skills: (`PlannerCriticConfig`) -> its commands as `agents.robot.skills.Skill`, for planners that are told them.
        instruction: (grammar) -> what a published model is told before it acts: task, commands, the prompt, examples.
        tasks: a `training.teachers.lesson.TaskSource`: what it can be trained on.
        samples: a `training.teachers.episodes.SampleSource`, for a world that is recorded rather than played to train.
        benchmark: an `evaluation.benchmark.Benchmark`: how it is scored.
        parity: an `evaluation.parity.Parity`: how it is held against a backend.
    """

    name: str
    env: str = ""
    backends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    native: bool = True
    data: str = ""
    generated: str = ""
    convert: str = ""
    reader: str = ""
    agent: str = ""
    skills: str = ""
    instruction: str = ""
    tasks: str = ""
    samples: str = ""
    benchmark: str = ""
    parity: str = ""

    def __post_init__(self) -> None:
        places = [getattr(self, part) for part in PARTS] + list(self.backends.values())
        for place in filter(None, places):
            if place.count(":") != 1:
                raise InvalidInputError(f"world {self.name}: expected 'module:attribute', got {place!r}")
        if not any(places):
            raise InvalidInputError(f"world {self.name}: expected at least one part of {', '.join(PARTS)}, got none")


def names(part: str = "env") -> tuple[str, ...]:
    """Names of the worlds that have a part, in order.

    Raises:
        InvalidInputError: worlds have no such part.
    """
    if part not in PARTS:
        raise InvalidInputError(f"part: expected one of {', '.join(PARTS)}, got {part!r}")
    return tuple(sorted(name for name in _places() if getattr(card(name), part)))


def card(name: str) -> World:
    """The card of a world.

    Raises:
        InvalidInputError: there is no such world; the known ones are listed.
    """
    places = _places()
    if not isinstance(name, str) or name not in places:
        raise InvalidInputError(f"world: expected one of {', '.join(sorted(places))}, got {name!r}")
    found = _load(places[name])
    if not isinstance(found, World):
        raise InvalidInputError(f"world {name}: expected a World at {places[name]}, got {found!r}")
    return found


def load(name: str, part: str, backend: str | None = None) -> Any:
    """A part of a world.

    Args:
        name: of the world.
        part: of `PARTS`.
        backend: for "env": None for the world's own, or a real simulator that plays it.

    Raises:
        InvalidInputError: the world, its part or its backend is unknown.
    """
    world = card(name)
    if backend is not None:
        if not isinstance(backend, str) or backend not in world.backends:
            known = "".join(f" or {other!r}" for other in world.backends)
            raise InvalidInputError(f"backend: expected None{known} for {name}, got {backend!r}")
        return _load(world.backends[backend])
    if part not in PARTS:
        raise InvalidInputError(f"part: expected one of {', '.join(PARTS)}, got {part!r}")
    if not getattr(world, part):
        have = ", ".join(names(part)) or "none"
        raise InvalidInputError(f"world: expected one with {part} ({have}), got {name!r}")
    return _load(getattr(world, part))


@functools.cache
def _places() -> dict[str, str]:
    """Name of each world -> where its card is. Built-in names cannot be taken."""
    others = {point.name: point.value for point in importlib.metadata.entry_points(group=GROUP)}
    return others | {name: f"embodied_mem.worlds.{name}:WORLD" for name in BUILT_IN}


def _load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
