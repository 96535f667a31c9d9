"""Finds worlds, memory methods and agents by name.

    load("alfworld", "env")              # a world's vector environment; the module is imported now and not before
    names("tasks")                       # worlds that can be trained on
    load("methods", "mem0_2")            # a class of `agents.method.MemoryMethod`
    register("methods", "mine", "my_file.py:Mine")

A world is a folder that holds all that knows one benchmark; everything else knows none. Another package names what it
brings by entry points:

    [project.entry-points."embodied_mem.worlds"]
    cellar = "cellar_world:WORLD"        # WORLD = World("cellar", env="cellar_world.env:Cellar")
    [project.entry-points."embodied_mem.methods"]
    mine = "my_file:Mine"
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import pathlib
import sys
import types
from collections.abc import Mapping
from typing import Any

from .errors import InvalidInputError

GROUPS = ("worlds", "methods", "agents", "deliveries")
"""Groups of names: cards of worlds, `MemoryMethod`s, agents of other papers, deliveries that need weights.
Another package names its own in the group of entry points `embodied_mem.<group>`."""

BUILT_IN = ("alfworld", "eb_alfred", "eb_habitat", "memento", "scienceworld")
"""Worlds of this package: `embodied_mem.worlds.<name>` has a card `WORLD`."""

PARTS = (
    "env", "generated", "convert", "reader", "agent", "skills", "examples", "instruction", "tasks", "samples",
    "benchmark", "parity",
)  # fmt: skip
"""Parts that a card may name beside backends."""


@dataclasses.dataclass(frozen=True)
class World:
    """A world's card: where its parts are, each as "module:attribute" and loaded on first use; "" for none.

    Attributes:
        name: by which it is found.
        env: class of its vector environment, a `NativeVectorEnv` or one with the same methods.
        backends: name of a real simulator -> class of the environment that it plays.
        generated: (number of tasks, seed) -> options of `env` for tasks of one new home, made without any data.
        data: what its data are and where their publishers put them, in sentences; "" where it needs none.
        convert: an `envs.data_files.Converter`: makes its files from what the publishers give.
        native: whether the environment runs in this process, with snapshots; equal results for any number of threads.
        reader: a `memory.readers.reading.Reader` of its texts; the default reads household sentences.
        agent: (`PlannerCriticConfig`) -> planner, critic and rules of `agents.planner_critic`, by keyword.
        skills: (`PlannerCriticConfig`) -> its commands as `agents.robot.skills.Skill`, for planners that are told them.
        examples: (`PlannerCriticConfig`) -> what a chat model as planner is told of it, with worked examples.
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
    examples: str = ""
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


ONLY_IN_CLONE = frozenset((
    "beam", "eb_alfred", "eb_habitat", "locomo", "memento", "robot_week", "scienceworld",
    "mem0_1", "mem0_2", "a_mem", "g_memory", "langmem", "memgen", "reflexion", "voyager", "cradle",
    "verl_agent", "memharness", "life",
))  # fmt: skip
"""Benchmarks, methods and agents that `experiments/` registers and a wheel does not have."""

_registered: dict[str, dict[str, str]] = {}
"""Group, or name of a world -> name, or part -> "module:attribute"."""


def register(group: str, name: str, place: str) -> None:
    """Add something under a name; it is imported when it is loaded.

    Args:
        group: of `GROUPS`, or a world, which gets another part.
        name: by which it is found; of a world, one of `PARTS`.
        place: "module:attribute", or "path/of/file.py:attribute".

    Raises:
        InvalidInputError: there is no such group or part, the name is taken, or the place is not of that form.
    """
    if place.count(":") != 1:
        raise InvalidInputError(f"register {group} {name}: expected 'module:attribute', got {place!r}")
    if group not in GROUPS:
        card(group)
        _check_part(name)
    elif group == "worlds" and name in BUILT_IN:
        raise InvalidInputError(f"register: expected a name of no world of this package, got {name!r}")
    _registered.setdefault(group, {})[name] = place


def registered() -> dict[str, dict[str, str]]:
    """Return what was registered here, for `take` in another process."""
    return {group: dict(places) for group, places in _registered.items()}


def take(places: Mapping[str, Mapping[str, str]]) -> None:
    """Register what another process has registered."""
    for group, some in places.items():
        _registered.setdefault(group, {}).update(some)


def names(part: str = "env") -> tuple[str, ...]:
    """Return the worlds with a part, or all names of a group.

    The worlds are in order; a group is one of `GROUPS`.

    Raises:
        InvalidInputError: worlds have no such part.
    """
    if part in GROUPS:
        return tuple(_places(part))
    _check_part(part)
    return tuple(sorted(name for name in _places("worlds") if getattr(card(name), part)))


def card(name: str) -> World:
    """Return the card of a world, with the parts that were registered.

    Raises:
        InvalidInputError: there is no such world; the known ones are listed.
    """
    places = _places("worlds")
    if not isinstance(name, str) or name not in places:
        raise InvalidInputError(f"world: expected one of {', '.join(sorted(places))}, got {name!r}{hint(name)}")
    try:
        found = _load(places[name])
    except ImportError as error:
        raise InvalidInputError(f"world {name}: expected a World at {places[name]}, got an error: {error}") from error
    if not isinstance(found, World):
        raise InvalidInputError(f"world {name}: expected a World at {places[name]}, got {found!r}")
    more: dict[str, Any] = dict(_registered.get(name, {}))
    return dataclasses.replace(found, **more) if more else found


def load(name: str, part: str, backend: str | None = None) -> Any:
    """Return a world's part, or something of a group: `load("methods", "mem0_2")`.

    Args:
        name: of the world, or of `GROUPS`.
        part: of `PARTS`, or the name in the group.
        backend: for "env": None for the world's own, or a real simulator that plays it.

    Raises:
        InvalidInputError: the world, its part or its backend is unknown, or the name in the group.
    """
    if name in GROUPS:
        places = _places(name)
        if part not in places:
            known = ", ".join(places) or "none"
            raise InvalidInputError(f"{name}: expected one of {known}, got {part!r}{hint(part)}")
        return _load(places[part])
    world = card(name)
    if backend is not None:
        if not isinstance(backend, str) or backend not in world.backends:
            known = "".join(f" or {other!r}" for other in world.backends)
            raise InvalidInputError(f"backend: expected None{known} for {name}, got {backend!r}")
        return _load(world.backends[backend])
    _check_part(part)
    if not getattr(world, part):
        have = ", ".join(names(part)) or "none"
        raise InvalidInputError(f"world: expected one with {part} ({have}), got {name!r}{hint(name, part)}")
    return _load(getattr(world, part))


def hint(name: object, part: str = "") -> str:
    """Return a hint to the clone of the repository.

    It is empty for names that are not only there.
    """
    if not isinstance(name, str) or name.removesuffix("_steps") not in ONLY_IN_CLONE:
        return ""
    what = f"the {part} of {name}" if part else name
    return f"; {what} is in a clone of the repository only: `python experiments/evaluate.py` there"


def _check_part(part: str) -> None:
    if part not in PARTS:
        raise InvalidInputError(f"part: expected one of {', '.join(PARTS)}, got {part!r}")


def _places(group: str) -> dict[str, str]:
    """Return name -> place of all in a group.

    Built-in names cannot be taken.
    """
    own = {name: f"embodied_mem.worlds.{name}:WORLD" for name in BUILT_IN} if group == "worlds" else {}
    return _entry_points(group) | _registered.get(group, {}) | own


@functools.cache
def _entry_points(group: str) -> dict[str, str]:
    return {point.name: point.value for point in importlib.metadata.entry_points(group=f"embodied_mem.{group}")}


def _load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    loaded = _file(module) if module.endswith(".py") else importlib.import_module(module)
    if not hasattr(loaded, attribute):
        raise InvalidInputError(f"{module}: expected {attribute!r} in it, got none of that name")
    return getattr(loaded, attribute)


@functools.cache
def _file(path: str) -> types.ModuleType:
    """Run a file as a module of its own."""
    spec = importlib.util.spec_from_file_location(path, path)
    if spec is None or spec.loader is None or not pathlib.Path(path).is_file():
        raise InvalidInputError(f"expected a Python file, got {path}, which is not there")
    module = sys.modules[path] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
