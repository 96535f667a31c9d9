"""Why an episode succeeded, read off its own text by rules.

    rationale_for(episode)       # "apple 1 was in fridge 1; cleaned at sinkbasin 1; placed in microwave 1; 9 steps"
    goal_object(episode.goal)    # "apple"
    room_text(episode.first_observation)       # "a bed 1, a desk 1, and a safe 1"

The rules know the household worlds' wording (both action grammars of ALFWorld, `move X to Y` and `put X in/on Y`). An
episode of another world gets what still holds: the number of steps and, if actions have those forms, their clauses.
"""

from __future__ import annotations

import re

from ..types import Episode

_GOAL = re.compile(
    r"(?:put|find|place|take|pick up|clean|heat|cool|wash|look at|examine)\s+(?:(?:some|an?|the|two|all)\s+)?"
    r"(?:(?:clean|hot|cool|cold|warm)\s+)?(.+?)\s+(?:in|on|under|with|to|and)\b"
)
_TAKE = re.compile(r"take (.+?) from (.+)\Z")
_MOVE = re.compile(r"(?:move (.+?) to|put (.+?) in/on) (.+)\Z")
_CHANGE = re.compile(r"(clean|heat|cool) (.+?) with (.+)\Z")
_USE = re.compile(r"use (.+)\Z")
_GO = re.compile(r"go to (.+)\Z")
_PAST = {"clean": "cleaned at", "heat": "heated in", "cool": "cooled in"}
_FAILED = ("Nothing happens", "You don't", "You can't")


def goal_object(goal: str) -> str:
    """Kind of object that the goal is about, lower case, e.g. `apple`; empty if the wording is unknown."""
    found = _GOAL.match(" ".join(goal.lower().split()))
    return found[1] if found else ""


def room_text(observation: str) -> str:
    """The part of a first observation that describes the room: no banner, no task sentence, one line."""
    text = observation.partition("Your task is to:")[0]
    _, found, seen = text.partition("you see ")
    text = seen if found else text.replace("-= Welcome to TextWorld, ALFRED! =-", "")
    return " ".join(text.split()).rstrip(".")


def events_of(episode: Episode) -> list[tuple[int, str, str, str]]:
    """Actions that changed something, in order: (step, kind, object, receptacle).

    kind is `take`, `place`, `clean`, `heat`, `cool` or `use`; the receptacle of `use` is where the agent stood. An
    action counts unless the next observation says that it failed.
    """
    answers = [step.observation for step in episode.steps[1:]] + [episode.final_observation]
    events = []
    here = ""
    for index, (step, answer) in enumerate(zip(episode.steps, answers)):
        action = " ".join(step.action.split())
        if answer.startswith(_FAILED):
            continue
        if found := _GO.match(action):
            here = found[1]
        elif found := _TAKE.match(action):
            events.append((index, "take", found[1], found[2]))
        elif found := _MOVE.match(action):
            events.append((index, "place", found[1] or found[2], found[3]))
        elif found := _CHANGE.match(action):
            events.append((index, found[1], found[2], found[3]))
        elif found := _USE.match(action):
            events.append((index, "use", found[1], here))
    return events


def relevant_events(episode: Episode) -> list[tuple[int, str, str, str]]:
    """The events that the goal needed: first take, last change of each kind and last placing of each goal object.

    A goal object that was placed at the end counts, or all of them if none was; with an unknown goal wording every
    object is one. The last `use` of each device counts.
    """
    kind_of_goal = goal_object(episode.goal)
    events = events_of(episode)
    about = {name for _, kind, name, _ in events if kind != "use"}
    named = {name for name in about if kind_of_goal and name.rstrip("0123456789 ") == kind_of_goal}
    about = named or about
    held_or_placed = {name for _, kind, name, _ in events if kind in ("take", "place") and name in about}
    first_take: dict[str, tuple] = {}
    last: dict[tuple[str, str], tuple] = {}
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


def _put_back(first_take: dict, last: dict) -> set[str]:
    """Objects that ended where they were first taken from, unless no object ended elsewhere."""
    ended = {name: event[3] for (kind, name), event in last.items() if kind == "place"}
    back = {name for name, event in first_take.items() if ended.get(name) == event[3]}
    return back if set(first_take) - back else set()


def rationale_for(episode: Episode) -> str:
    """Why the episode succeeded, in one line: where things were, what was done to them where, number of steps."""
    clauses = []
    subject = ""
    for _, kind, name, place in relevant_events(episode):
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


def key_actions(episode: Episode) -> tuple[str, ...]:
    """The actions that a repetition would need: the relevant ones, each after the move and opening right before it."""
    chosen: list[str] = []
    position = 0
    for index, *_ in relevant_events(episode):
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
