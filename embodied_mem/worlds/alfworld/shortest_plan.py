"""Shortest plans for ALFWorld from the full, hidden state.

    state = WorldState.from_env(Env(game))                   # an engine env, at any moment of play
    shortest_plan(state)                                     # ["go to fridge 1", "open fridge 1", "take ...", ...]

The plan is the best of all plans that use each needed step once: for every choice of object, source, preparing
receptacle, target and (with a wrong object in hand) place to drop it, the order of the steps is forced, a receptacle
is opened when it is first needed, and one walks only when the next step is elsewhere.
`tests/worlds/alfworld/test_experts.py` compares the lengths with breadth-first search over the engine's states.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.readers.reading import STATE_AFTER
from embodied_mem.worlds.alfworld.wording.text import CHANGERS, Task, parse_goal, put_command

if TYPE_CHECKING:
    from embodied_mem.worlds.alfworld.engine import Env

_Step = tuple[str, str, str]
"""(verb, object, receptacle): "take", "put", "clean", "heat", "cool", "use", or "at" for only being there."""


@dataclasses.dataclass(slots=True)
class WorldState:
    """Everything that decides how an ALFWorld game can be won. Names are those of the text, e.g. "fridge 1".

    Attributes:
        task: what is asked.
        at: location of the agent (any key that `location` uses).
        held: the object in the hand, "" for none.
        location: receptacle -> its location; receptacles of one location are reached together.
        closed: receptacles that must be opened before anything is taken out or put in.
        inside: object -> the receptacles it lies in (mostly one; a pan can stand on two burners).
        marks: "clean", "hot", "cool", "toggled" -> the objects that are so.
        able: "cleanable", "heatable", "coolable", "toggleable", "pickupable" -> the objects that can be so.
        accepts: (receptacle, object) -> whether the object may be put there.
        types: object or receptacle -> its type where this is not the first word of its name.
    """

    task: Task
    at: str
    held: str
    location: dict[str, str]
    closed: set[str]
    inside: dict[str, tuple[str, ...]]
    marks: dict[str, set[str]]
    able: dict[str, set[str]]
    accepts: Callable[[str, str], bool]
    types: dict[str, str]

    @classmethod
    def from_env(cls, env: Env) -> WorldState:
        """Return the state of an engine env at this moment of play."""
        state, game = env.state(), env.game
        objects, receptacles = state["objects"], state["receptacles"]
        types = {name: entry["type"].removesuffix("type") for name, entry in (objects | receptacles).items()}

        def these(key: str) -> set[str]:
            return {name for name, entry in objects.items() if entry[key]}

        return cls(
            task=parse_goal(game.task),
            at=state["location"],
            held=state["holding"][0] if state["holding"] else "",
            location={name: entry["location"] for name, entry in receptacles.items() if entry["location"]},
            closed={name for name, entry in receptacles.items() if entry["openable"] and not entry["open"]},
            inside={name: tuple(sorted(entry["receptacles"])) for name, entry in objects.items() if entry["type"]},
            marks={key: these(key) for key in ("clean", "hot", "cool", "toggled")},
            able={key: these(key) for key in ("pickupable", "cleanable", "heatable", "coolable", "toggleable")},
            accepts=game.accepts,
            types=types,
        )


def shortest_plan(state: WorldState, grammar: str = "0.4") -> list[str]:
    """Return a shortest list of commands to the goal, perhaps empty.

    Args:
        state: the full state.
        grammar: wording of the commands, "0.4" or "0.3".

    Raises:
        InvalidInputError: the goal cannot be reached from this state, or an unknown grammar.
    """
    steps = _best_steps(state)
    if steps is None:
        raise InvalidInputError(f"task: no plan reaches {state.task} from this state")
    commands: list[str] = []
    for verb, name, receptacle in _walked(state, steps):
        match verb:
            case "go":
                commands.append(f"go to {receptacle}")
            case "open" | "use":
                commands.append(f"{verb} {name or receptacle}")
            case "take":
                commands.append(f"take {name} from {receptacle}")
            case "put":
                commands.append(put_command(name, receptacle, grammar))
            case _:
                commands.append(f"{verb} {name} with {receptacle}")
    return commands


def _walked(state: WorldState, steps: list[_Step]) -> list[_Step]:
    """Return the steps with the walks and opened doors between them."""
    at, walked = state.at, list[_Step]()
    opened: set[str] = set()
    location, closed = state.location, state.closed
    for step in steps:
        verb, _, receptacle = step
        if location[receptacle] != at:
            walked.append(("go", "", receptacle))
            at = location[receptacle]
        if receptacle in closed and receptacle not in opened and verb in ("take", "put"):
            walked.append(("open", "", receptacle))
            opened.add(receptacle)
        if verb != "at":
            walked.append(step)
    return walked


def _best_steps(state: WorldState) -> list[_Step] | None:
    """Return a shortest plan, [] if the goal holds, None without one."""
    task = state.task
    if task.task_type == "look_at_obj_in_light":
        candidates = _look(state)
    elif task.count == 2:
        candidates = _place_two(state)
    else:
        candidates = _place_one(state)
    best, best_length = None, 1 << 30
    for steps in candidates:
        for complete in _with_drop(state, steps):
            length = len(_walked(state, complete))
            if length < best_length:
                best, best_length = complete, length
                if not length:
                    return []
    return best


def _type(state: WorldState, name: str) -> str:
    return state.types.get(name) or name.partition(" ")[0]


def _wanted(state: WorldState) -> list[str]:
    """Return the goal type's objects in the hand or to take."""
    return [
        name
        for name, places in state.inside.items()
        if _type(state, name) == state.task.object_type and (name == state.held or places)
    ]


def _sources(state: WorldState, name: str) -> list[str]:
    """Return the receptacles that an object can be taken from."""
    if name not in state.able["pickupable"]:
        return []
    return [place for place in state.inside[name] if place in state.location]


def _targets(state: WorldState, objects: list[str], others: list[str]) -> list[str]:
    """Return the goal's receptacles, of equivalent remote ones only one."""
    special = {state.at, *(state.location.get(other) for other in others)}
    special |= {state.location.get(place) for name in objects for place in state.inside[name]}
    holding = {place for name in objects for place in state.inside[name]}
    kept: list[str] = []
    spare: dict[bool, str] = {}
    for receptacle, place in state.location.items():
        if _type(state, receptacle) == state.task.receptacle_type:
            if place in special or receptacle in holding:
                kept.append(receptacle)
            else:
                spare.setdefault(receptacle in state.closed, receptacle)
    if spare:
        kept.append(spare[min(spare)])
    return kept


def _with_drop(state: WorldState, steps: list[_Step]) -> Iterator[list[_Step]]:
    """Yield the steps, emptying a full hand before taking."""
    held = state.held
    taking = next((i for i, step in enumerate(steps) if step[0] == "take"), None)
    if not held or taking is None or any(step[1] == held for step in steps[:taking]):
        yield steps
        return
    places = {state.at, *(state.location[receptacle] for _, _, receptacle in steps)}
    spare: dict[bool, str] = {}
    for receptacle, place in state.location.items():
        if not state.accepts(receptacle, held):
            continue
        if place in places:
            for i in range(taking + 1):
                yield [*steps[:i], ("put", held, receptacle), *steps[i:]]
        else:
            spare.setdefault(receptacle in state.closed, receptacle)
    if spare:
        for i in range(taking + 1):
            yield [*steps[:i], ("put", held, spare[min(spare)]), *steps[i:]]


def _place_one(state: WorldState) -> Iterator[list[_Step]]:
    """Yield plans that place one object, prepared if the task says so."""
    task = state.task
    change = task.change
    objects = _wanted(state)
    changers = [r for r in state.location if change and _type(state, r) == CHANGERS[change]]
    targets = _targets(state, objects, changers)
    for name in objects:
        ready = not change or name in state.marks[STATE_AFTER[change]]
        if change and name not in state.able[f"{change}able"]:
            continue
        changes: list[list[_Step]] = [[]] if ready else [[(change, name, changer)] for changer in changers]
        if name == state.held:
            starts: list[tuple[list[_Step], tuple[str, ...]]] = [([], state.inside[name])]
        else:
            starts = [([("take", name, source)], tuple(p for p in state.inside[name] if p != source))
                      for source in _sources(state, name)]  # fmt: skip
        for target in targets:
            if ready and target in state.inside[name]:
                yield []
                return
            for (start, remaining), prepare in itertools.product(starts, changes):
                if target in remaining:
                    yield [*start, *prepare]
                elif state.accepts(target, name):
                    yield [*start, *prepare, ("put", name, target)]


def _place_two(state: WorldState) -> Iterator[list[_Step]]:
    """Yield plans that bring two objects into one receptacle."""
    objects = _wanted(state)
    for target in _targets(state, objects, []):
        for pair in itertools.combinations(objects, 2):
            missing = [name for name in pair if target not in state.inside[name]]
            if any(not state.accepts(target, name) for name in missing):
                continue
            for order in itertools.permutations(missing):
                if state.held in order and order[0] != state.held:
                    continue
                sources = [[""] if name == state.held else _sources(state, name) for name in order]
                for chosen in itertools.product(*sources):
                    steps: list[_Step] = []
                    for name, source in zip(order, chosen, strict=True):
                        if source:
                            steps.append(("take", name, source))
                        steps.append(("put", name, target))
                    yield steps


def _look(state: WorldState) -> Iterator[list[_Step]]:
    """Yield plans that hold the object at a switched-on lamp."""
    task = state.task
    lamps = [name for name in state.able["toggleable"] if _type(state, name) == task.lamp_type]
    for lamp in sorted(lamps):
        for spot in state.inside[lamp]:
            if spot not in state.location:
                continue
            use: list[_Step] = [] if lamp in state.marks["toggled"] else [("use", lamp, spot)]
            for name in _wanted(state):
                if name == state.held:
                    yield [*use, ("at", "", spot)]
                    continue
                for source in _sources(state, name):
                    yield [("take", name, source), *use, ("at", "", spot)]
