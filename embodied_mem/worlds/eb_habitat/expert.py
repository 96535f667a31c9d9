"""An expert that sees the hidden state of EB-Habitat: for teacher data and to check that tasks can be solved.

    env = Env(load_tasks("base")[0])
    for action in solve(env):
        env.step(action)
    assert env.won

It knows where everything is; an agent at evaluation must not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem.errors import InternalError, InvalidInputError
from embodied_mem.native import part
from embodied_mem.worlds.eb_habitat.engine import ACTIONS
from embodied_mem.worlds.eb_habitat.env import MAX_STEPS, Env

_TARGETS = part("eb_habitat").TARGETS
_PARTS = tuple(name for name, _, _ in _TARGETS if not name.startswith("receptacle_"))
_PHRASES = {name: phrase for name, phrase, _ in _TARGETS}
_INSIDE = {
    "receptacle_aabb_middle_topfrl_apartment_refrigerator": "fridge_push_point",
    "receptacle_aabb_drawer_left_top_frl_apartment_kitchen_counter": "cab_push_point_7",
    "receptacle_aabb_drawer_right_top_frl_apartment_kitchen_counter": "cab_push_point_5",
}
_OPEN_AIR = tuple(name for name, _, _ in _TARGETS if name not in _PARTS and name not in _INSIDE)

MAX_PLAN = 60
"""Actions after which a way to the goal is given up."""

MAX_WAYS = 4096
"""Limit of ways to make a goal true; every goal in the data has fewer than 50."""

Way = frozenset[tuple[tuple[str, ...], bool]]
"""Literals and the truth each must have, together enough for the goal."""


def solve(env: Env) -> list[str]:
    """Return actions that take a copy of `env` to its goal.

    They start from where it stands, and none is refused.

    Every way to make the goal true is a set of literals; the cheapest that works is taken. Objects are moved one after
    the other, what can be picked from here first; then doors are set, then the robot goes where it must be.

    Raises:
        InvalidInputError: no way was found, or the env has ended without success.
    """
    if env.won:
        return []
    if env.ended:
        raise InvalidInputError(f"{env.task.name}: the env has ended; reset it to plan")
    found = list(itertools.islice(_ways(env.task.goal, True), MAX_WAYS))
    for way in sorted(found, key=lambda way: _cost(way, env.state())):
        actions = _follow(way, env.copy())
        if actions is not None:
            return actions
    raise InvalidInputError(f"{env.task.name}: no plan found among {len(found)} ways to the goal")


def _ways(tree: tuple[Any, ...], truth: bool) -> Iterator[Way]:
    """Yield sets of literals that each give the tree this truth."""
    op, *children = tree
    if op not in ("AND", "OR", "NAND", "NOR"):
        yield frozenset({(tree, truth)})
        return
    if op in ("NAND", "NOR"):
        truth = not truth
    if (op in ("AND", "NAND")) == truth:  # all children have this truth
        yield from _together([list(itertools.islice(_ways(child, truth), MAX_WAYS)) for child in children])
    else:
        for child in children:
            yield from _ways(child, truth)


def _together(choices: list[list[Way]]) -> Iterator[Way]:
    for chosen in itertools.product(*choices):
        way: Way = frozenset().union(*chosen)
        if len({literal for literal, _ in way}) == len(way):  # none both true and false
            yield way


def _cost(way: Way, state: Mapping[str, Any]) -> int:
    wanted = {literal for literal, truth in way if _holds(literal, state) != truth}
    return sum(4 if literal[0] in ("on_top", "in") else 2 for literal in wanted)


def _holds(literal: tuple[str, ...], state: Mapping[str, Any]) -> bool:
    objects = state["objects"]
    match literal:
        case ("not_holding",):
            return state["holding"] is None
        case ("holding", name):
            return bool(state["holding"] == name)
        case ("on_top", name, place):
            return bool(objects[name]["receptacle"] == place)
        case ("in", name, door):
            return _INSIDE.get(objects[name]["receptacle"]) == door
        case ("robot_at", place):
            return place in state["near"]
        case ("robot_at_obj", name):
            return bool(objects[name]["near"])
        case (predicate, door):
            return bool(state["open"][door] == predicate.startswith("opened"))
    raise InternalError(f"goal: expected a literal that the expert knows, got {literal}")


def _follow(way: Way, env: Env) -> list[str] | None:
    """Return actions that make all literals of the way true at once.

    None where that fails.
    """
    actions: list[str] = []
    while not env.won and len(actions) < MAX_PLAN:
        action = _next(way, env)
        if action is None:
            return None
        refused = env.num_invalid
        env.step(action)
        actions.append(action)
        if env.num_invalid != refused:
            return None
    return actions if env.won else None


def _next(way: Way, env: Env) -> str | None:
    """Return the next action.

    With the hand first, then at doors, then to where the robot must be.
    """
    state = env.state()
    objects, held = state["objects"], state["holding"]
    pending = [name for name in objects if name != held and _destination(name, way, state, pending=()) is not None]
    kept = next((literal[1] for literal, truth in way if truth and literal[0] == "holding"), None)
    if held is not None and (held != kept or pending):
        return _put(held, way, state, [*pending, kept] if kept not in (None, held) else pending)
    if held is None and (pending or kept is not None):
        return _take(min(pending or [kept], key=lambda name: not objects[name]["pickable"]), env, state)
    unmet = sorted(literal for literal, truth in way if _holds(literal, state) != truth)
    doors = [literal[1] for literal in unmet if literal[0].endswith(("_fridge", "_cab"))]
    if doors:
        return _door(doors[0], not state["open"][doors[0]]) if doors[0] in state["near"] else _go(doors[0])
    predicate, place = next((literal for literal in unmet if literal[0].startswith("robot_at")), ("", ""))
    if predicate == "robot_at" and place in state["near"]:
        return _go(next(name for name in _OPEN_AIR if name != place))
    if predicate == "robot_at":
        return _go(place)
    return _approach(place, env) if predicate else None


def _put(held: str, way: Way, state: Mapping[str, Any], fetched: Sequence[str]) -> str | None:
    """Return an action that helps place the object in the hand.

    It is the way to where the object goes, or to a spare place, or that it is placed there.
    """
    receptacle = _destination(held, way, state, fetched) or _spare(held, way, state, fetched)
    if receptacle is None:
        return None
    return f"place at the {_PHRASES[receptacle]}" if receptacle in state["near"] else _go(receptacle)


def _destination(name: str, way: Way, state: Mapping[str, Any], pending: Sequence[str]) -> str | None:
    """Return where an object has to go, None where it may stay."""
    here = state["objects"][name]["receptacle"]
    forbidden = set()
    for (predicate, *arguments), truth in way:
        if predicate not in ("on_top", "in") or arguments[0] != name:
            continue
        places = {arguments[1]} if predicate == "on_top" else {r for r, door in _INSIDE.items() if door == arguments[1]}
        if not truth:
            forbidden |= places
        elif here not in places:
            return min(places, default=None)
        else:
            return None
    return _spare(name, way, state, pending) if here in forbidden else None


def _spare(name: str, way: Way, state: Mapping[str, Any], pending: Sequence[str]) -> str | None:
    """Return a place for an object that is wanted nowhere.

    There it hides nothing of its kind that is to be moved.
    """
    objects = state["objects"]
    taken = {literal[2] for literal, truth in way if not truth and literal[0] == "on_top" and literal[1] == name}
    taken |= {objects[o]["receptacle"] for o in pending if objects[o]["category"] == objects[name]["category"]}
    free = [place for place in _OPEN_AIR if place not in taken and place != objects[name]["receptacle"]]
    return min(free, key=lambda place: place not in state["near"], default=None)


def _take(name: str, env: Env, state: Mapping[str, Any]) -> str | None:
    entry = state["objects"][name]
    if entry["pickable"]:
        return f"pick up the {entry['category']}"
    if entry["near"]:  # so it is in a closed drawer
        door = _INSIDE[entry["receptacle"]]
        return _door(door, True) if door in state["near"] else _go(door)
    return _approach(name, env)


def _approach(name: str, env: Env) -> str | None:
    """Return a walk that brings the object near.

    It goes to where the object lies, or to where else it can be reached from.
    """
    own = env.state()["objects"][name]["receptacle"]
    for target in sorted(_PHRASES, key=lambda target: target != own):
        ahead = env.copy()
        ahead.step(_go(target))
        if ahead.state()["objects"][name]["near"]:
            return _go(target)
    return None


def _go(target: str) -> str:
    return f"navigate to the {_PHRASES[target]}"


def _door(door: str, to_open: bool) -> str:
    phrase = "refrigerator" if door == "fridge_push_point" else _PHRASES[door]
    action = f"{'open' if to_open else 'close'} the {phrase}"
    assert action in ACTIONS, action
    return action


MISTAKES = 0.25
"""Share of actions that are drawn from all."""


class EbHabitatParity:
    """The expert's way with random actions between, after each of which it plans anew."""

    options: dict[str, object] = {"max_steps": MAX_STEPS}  # noqa: RUF012

    def actions(self, env: Env, rng: np.random.Generator) -> list[str]:
        """Return actions to the goal of an env's copy, or its end.

        They reach the goal, or end the copy's episode.
        """
        played: list[str] = []
        while not (env.ended or env.won) and len(played) < MAX_STEPS:
            drawn = rng.random() < MISTAKES
            played.append(ACTIONS[rng.integers(len(ACTIONS))] if drawn else solve(env)[0])
            env.step(played[-1])
        return played

    def feedback(self, observation: str) -> str:
        """Return the first line.

        What is in view and in the hand stands for the image.
        """
        return observation.partition("\n")[0]


PARITY = EbHabitatParity()
