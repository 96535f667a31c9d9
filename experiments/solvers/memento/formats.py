"""Formats of a remembered episode (full, summarised, instruction alone), and damage to a memory.

    SHOWN["summarised"](trace).note       # "Moved candle_0 from table_11 in dining_room_1 onto shelves_17 ..."
    noisy(trace, strangers, rng)          # 30 % unrelated steps
    without(trace, "Navigate")

Source: MEMENTO 6.1 (formats; a summary is made by a chat model there, by rules here) and E.2.2 (noise, gaps).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence

from embodied_mem.worlds.memento.traces.trace import (
    HELD,
    Trace,
    TraceStep,
    parse_action,
    parse_description,
    parse_objects,
    succeeded,
)

NOISE = 0.3
GAPS = 0.2


def instruction_only(trace: Trace) -> Trace:
    """The instruction without what was done."""
    return dataclasses.replace(trace, steps=(), note="")


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
    "full": lambda trace: trace,
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
    steps = tuple(step for step in trace.steps if parse_action(step.action)[0] != action)
    return dataclasses.replace(trace, steps=steps)


DAMAGES: dict[str, Callable[[Trace, Sequence[TraceStep], random.Random], Trace]] = {
    "random_noise": noisy,
    "shuffle": lambda trace, _, rng: shuffled(trace, rng),
    "random_gaps": lambda trace, _, rng: thinned(trace, rng),
    "without_Pick": lambda trace, *_: without(trace, "Pick"),
    "without_Place": lambda trace, *_: without(trace, "Place"),
    "without_Navigate": lambda trace, *_: without(trace, "Navigate"),
}
"""The rows of table 9, in its order: (trace, steps of other houses, chance) -> the trace damaged."""


def damaged(traces: Sequence[Trace], how: str, seed: int = 0) -> list[Trace]:
    """All traces, of all scenes, damaged in one way of `DAMAGES`; the seed decides, with the episode id, what chance
    decides."""
    steps_by_scene: dict[str, list[TraceStep]] = {}
    for trace in traces:
        steps_by_scene.setdefault(trace.scene_id, []).extend(trace.steps)
    strangers = {
        scene: [step for other, steps in steps_by_scene.items() if other != scene for step in steps]
        for scene in steps_by_scene
    }
    return [
        DAMAGES[how](trace, strangers[trace.scene_id], random.Random(f"{seed}/{trace.episode_id}")) for trace in traces
    ]


def mixed_up(traces: Sequence[Trace], share: float, seed: int = 0) -> list[Trace]:
    """All traces, each step with chance `share` replaced by one of another trace, of any house.

    What a step said is lost, and what comes in its place may be of an object of the same name.
    """
    mixed = []
    for trace in traces:
        rng = random.Random(f"{seed}/{share}/{trace.episode_id}")
        others = [step for other in traces if other is not trace for step in other.steps]
        steps = tuple(rng.choice(others) if others and rng.random() < share else step for step in trace.steps)
        mixed.append(dataclasses.replace(trace, steps=steps))
    return mixed
