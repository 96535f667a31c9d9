"""Forms in which an episode is remembered: in full, summarised, its instruction alone; and what damages a memory.

    SHOWN["summarised"](trace).note       # "Moved candle_0 from table_11 in dining_room_1 onto shelves_17 ..."
    noisy(trace, strangers, rng)          # 30 % unrelated steps
    without(trace, "Navigate")

Source: MEMENTO 6.1 (formats; a summary is made by a chat model there, by rules here) and E.2.2 (noise, gaps).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence

from .trace_texts import HELD, parse_action, parse_description, parse_objects, succeeded
from .traces import Trace, TraceStep

NOISE = 0.3
GAPS = 0.2


def instruction_only(trace: Trace) -> Trace:
    """The instruction without what was done."""
    return dataclasses.replace(trace, steps=(), note="")


def full(trace: Trace) -> Trace:
    """The trace as it is."""
    return trace


def summarised(trace: Trace) -> Trace:
    """The trace with a note in place of its steps: what was moved from where to where, in order."""
    places: dict[str, str] = {}
    described: dict[str, str] = {}
    origin: dict[str, str] = {}
    sentences: list[str] = []
    for step in trace.steps:
        name, arguments = parse_action(step.action)
        worked = succeeded(step.observation)
        if told := parse_description(step.observation):
            described[told[0]] = told[1].rstrip(".")
        elif name == "Pick" and arguments and worked:
            origin[arguments[0]] = places.get(arguments[0], "")
        elif name == "Place" and len(arguments) >= 3 and worked:
            sentences.append(_moved(arguments, origin, described))
        for thing, (place, room) in parse_objects(step.observation).items():
            if place != HELD:
                places[thing] = f"{place} in {room}"
    return dataclasses.replace(trace, steps=(), note=" ".join(sentences) or "Nothing was moved.")


def _moved(arguments: Sequence[str], origin: dict[str, str], described: dict[str, str]) -> str:
    thing, relation, place = arguments[:3]
    text = f"Moved {thing}"
    if thing in described:
        text += f" ({described.pop(thing)})"
    if origin.get(thing):
        text += f" from {origin[thing]}"
    text += f" {'into' if relation == 'within' else 'onto'} {place}"
    if len(arguments) >= 5 and arguments[3] == "next_to" and arguments[4] != "None":
        text += f" next to {arguments[4]}"
    return text + "."


SHOWN: dict[str, Callable[[Trace], Trace]] = {
    "full": full,
    "summarised": summarised,
    "instruction_only": instruction_only,
}
"""Formats by name, as in table 2. The format "gold" is the full one of a reference trajectory."""


def noisy(trace: Trace, strangers: Sequence[TraceStep], rng: random.Random) -> Trace:
    """The trace with steps of other houses put in at random places, `NOISE` of its own number."""
    steps = list(trace.steps)
    for _ in range(round(NOISE * len(trace.steps)) if strangers else 0):
        steps.insert(rng.randint(0, len(steps)), rng.choice(strangers))
    return dataclasses.replace(trace, steps=tuple(steps))


def shuffled(trace: Trace, rng: random.Random) -> Trace:
    """The trace with its steps in random order."""
    return dataclasses.replace(trace, steps=tuple(rng.sample(trace.steps, len(trace.steps))))


def thinned(trace: Trace, rng: random.Random) -> Trace:
    """The trace without `GAPS` of its steps, drawn at random."""
    gone = set(rng.sample(range(len(trace.steps)), round(GAPS * len(trace.steps))))
    return dataclasses.replace(trace, steps=tuple(step for i, step in enumerate(trace.steps) if i not in gone))


def without(trace: Trace, action: str) -> Trace:
    """The trace without the steps of one action, e.g. `Pick`."""
    return dataclasses.replace(
        trace, steps=tuple(step for step in trace.steps if parse_action(step.action)[0] != action)
    )


def damaged(traces: Sequence[Trace], how: str, seed: int = 0) -> list[Trace]:
    """All traces damaged in one way of table 9.

    Args:
        traces: of all scenes; noise for one scene comes from the others.
        how: `random_noise`, `shuffle`, `random_gaps`, `without_Pick`, `without_Place` or `without_Navigate`.
        seed: decides, with the episode id, what chance decides.
    """
    result = []
    steps_by_scene: dict[str, list[TraceStep]] = {}
    for trace in traces:
        steps_by_scene.setdefault(trace.scene_id, []).extend(trace.steps)
    for trace in traces:
        rng = random.Random(f"{seed}/{trace.episode_id}")
        if how == "random_noise":
            strangers = [s for scene, steps in steps_by_scene.items() if scene != trace.scene_id for s in steps]
            result.append(noisy(trace, strangers, rng))
        elif how == "shuffle":
            result.append(shuffled(trace, rng))
        elif how == "random_gaps":
            result.append(thinned(trace, rng))
        else:
            result.append(without(trace, how.removeprefix("without_")))
    return result


DAMAGES = ("random_noise", "shuffle", "random_gaps", "without_Pick", "without_Place", "without_Navigate")
"""The rows of table 9, in its order."""
