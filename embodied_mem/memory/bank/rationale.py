"""Explains why an episode succeeded, by rules over its text.

    rationale_for(episode)       # "apple 1 was in fridge 1; cleaned at sinkbasin 1; placed in microwave 1; 9 steps"
    key_actions(episode)         # ("go to fridge 1", "open fridge 1", "take apple 1 from fridge 1", ...)

What happened is what a reader says; of an episode that it cannot read, the number of steps is left.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...types import Episode
from ..arguments import checked_episode
from ..readers import DEFAULT, Event, Reader

_PAST = {"clean": "cleaned at", "heat": "heated in", "cool": "cooled in"}


def relevant_events(episode: Episode, reader: Reader = DEFAULT) -> list[Event]:
    """The events that the goal needed: first take, last change of each kind and last placing of each goal object.

    A goal object that was placed at the end counts, or all of them if none was; with an unknown goal wording every
    object is one. The last `use` of each device counts.
    """
    kind_of_goal = reader.goal_object(episode.goal)
    events = reader.events(episode)
    about = {name for _, kind, name, _ in events if kind != "use"}
    named = {name for name in about if kind_of_goal and name.rstrip("0123456789 ") == kind_of_goal}
    about = named or about
    held_or_placed = {name for _, kind, name, _ in events if kind in ("take", "place") and name in about}
    first_take: dict[str, Event] = {}
    last: dict[tuple[str, str], Event] = {}
    for event in events:
        _, kind, name, _ = event
        if kind == "use":
            last[kind, name] = event
        elif name in held_or_placed and kind == "take":
            first_take.setdefault(name, event)
        elif name in about:
            last[kind, name] = event
    dropped = _put_back(first_take, last)
    chosen = [event for event in (*first_take.values(), *last.values()) if event[2] not in dropped]
    return sorted(chosen)


def _put_back(first_take: Mapping[str, Event], last: Mapping[tuple[str, str], Event]) -> set[str]:
    """Objects that ended where they were first taken from, unless no object ended elsewhere."""
    ended = {name: event[3] for (kind, name), event in last.items() if kind == "place"}
    back = {name for name, event in first_take.items() if ended.get(name) == event[3]}
    return back if set(first_take) - back else set()


def rationale_for(episode: Episode, reader: Reader = DEFAULT) -> str:
    """Why the episode succeeded, in one line: where things were, what was done to them where, number of steps."""
    episode = checked_episode(episode)
    clauses = []
    subject = ""
    for _, kind, name, place in relevant_events(episode, reader):
        if kind == "use":
            clauses.append(f"used {name} in {place}" if place else f"used {name}")
            continue
        if kind == "take":
            clauses.append(f"{name} was in {place}")
        else:
            what = "placed in" if kind == "place" else _PAST[kind]
            clauses.append(f"{what} {place}" if name == subject else f"{name} {what} {place}")
        subject = name
    count = len(episode.steps)
    clauses.append(f"{count} step" if count == 1 else f"{count} steps")
    return "; ".join(clauses)


def key_actions(episode: Episode, reader: Reader = DEFAULT) -> tuple[str, ...]:
    """The actions that a repetition would need: the relevant ones, each after the move and opening right before it."""
    episode = checked_episode(episode)
    chosen: list[str] = []
    position = 0
    for index, *_ in relevant_events(episode, reader):
        lead_in = []
        for step in reversed(episode.steps[position:index]):
            if not step.action.startswith(("go to ", "open ")):
                break
            lead_in.append(step.action)
            if step.action.startswith("go to "):
                break
        chosen.extend(reversed(lead_in))
        chosen.append(episode.steps[index].action)
        position = index + 1
    return tuple(chosen)
