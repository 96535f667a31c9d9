"""Rewords captions: other words, another order, details lost; the same object.

    reworded("A black vase with white dots.", "vase", "own", random.Random(0))    # "Vase, ebony, with pale spots."
    in_memory(trace, "own", seed=0)                  # what an agent remembers, said otherwise than what it will be told
    now(record, rows, "own", seed=0)                 # what it will be told, said otherwise than what it remembers
    swapped(record, rows), untold(record, rows)      # controls: of another object of the category; of none

Two lists of synonyms stand in two files. `own` was written by the author of what recognises objects, who developed with
it; `blind` by somebody who never saw the code. None is taken from the benchmark.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from embodied_mem.worlds.memento.traces.trace import Trace, parse_description

LISTS = ("own", "blind")
_CHANGED, _LOST, _REORDERED = 0.7, 0.4, 0.6
"""Chances of a word to be replaced, of a detail to be lost, of another order."""
_LEAST = 2
"""Words of its look that a caption keeps."""
_DETAILS = re.compile(r",\s*|(?<!\s)\s+(?=(?:with|featuring|on|in|of|for|holding|from|titled|called)\b)")


@functools.cache
def synonyms(name: str) -> dict[str, tuple[str, ...]]:
    """Other words by word, of one of `LISTS`."""
    lines = Path(__file__).with_name(f"caption_synonyms_{name}.txt").read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line.strip() and not line.startswith("#"))
    return {word.strip().lower(): tuple(other.strip() for other in others) for word, *others in rows}


def reworded(caption: str, kind: str, name: str, rng: random.Random) -> str:
    """A caption said otherwise.

    Args:
        caption: as the world says it.
        kind: the object's category, in words.
        name: of the list of synonyms.
        rng: decides everything.
    """
    text = re.sub(r"\A(?:an?|the)\s+", "", caption.strip().rstrip("."), flags=re.IGNORECASE)
    head, *details = _DETAILS.split(text)
    noun = re.search(rf"\b(?:{'|'.join(map(re.escape, [kind, *reversed(kind.split())]))})s?\b", head, re.IGNORECASE)
    looks = re.findall(r"[\w'-]+", head[: noun.start()] if noun else head)
    if details and rng.random() < _LOST and len(looks) + len(details) > _LEAST:
        details.pop(rng.randrange(len(details)))
    if noun and len(looks) > _LEAST and rng.random() < _LOST:
        looks.remove(rng.choice([word for word in looks if word.lower() != "and"]))
        looks = re.sub(r"\A(?:and )+|(?: and)+\Z|\b(and )(?=and )", "", " ".join(looks)).split()
    if noun:
        head = " ".join([*looks, head[noun.start() :]])
    if rng.random() < _REORDERED:
        if noun and looks and rng.random() < 0.5:
            head = f"{head[len(' '.join(looks)) :].strip()}, {' '.join(looks)}"
        elif len(details) > 1:
            rng.shuffle(details)
        elif details:
            head, details = details[0], [head]
    text = ", ".join([head, *details])
    known = synonyms(name)

    def other(match: re.Match[str]) -> str:
        choices = known.get(match[0].lower())
        return rng.choice(choices) if choices and rng.random() < _CHANGED else match[0]

    phrases = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    text = re.sub(rf"(?<![\w-])(?:{phrases})(?![\w-])", other, text, flags=re.IGNORECASE)
    return f"{text[:1].upper()}{text[1:]}."


Row = tuple[str, str, str | None]
"""Template, category, caption or None, as `data.load_captions` gives them."""


def in_memory(trace: Trace, name: str, seed: int = 0) -> Trace:
    """The trace with every description in it reworded, each object's always the same way."""
    steps = []
    for step in trace.steps:
        if told := parse_description(step.observation):
            kind = told[0].rpartition("_")[0].replace("_", " ")
            other = reworded(told[1], kind, name, random.Random(f"{seed}/{trace.episode_id}/{told[0]}"))
            step = dataclasses.replace(step, observation=step.observation.replace(told[1], other))
        steps.append(step)
    return dataclasses.replace(trace, steps=tuple(steps))


def _own(record: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """The rows of an entry's objects."""
    templates = {handle.rpartition("_:")[0] for handle in record["name_to_receptacle"]}
    return [row for row in rows if row[0] in templates]


def now(record: Mapping[str, Any], rows: Sequence[Row], name: str, seed: int = 0) -> list[Row]:
    """The rows of an entry's objects, reworded."""

    def other(template: str, kind: str, caption: str) -> str:
        rng = random.Random(f"{seed}/{record['episode_id']}/{template}")
        return reworded(caption, kind.replace("_", " "), name, rng)

    return [(one, kind, caption and other(one, kind, caption)) for one, kind, caption in _own(record, rows)]


def swapped(record: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """The rows of an entry's objects, each with the caption of the next one of its category."""
    own = _own(record, rows)
    groups: dict[str, list[Row]] = {}
    for row in own:
        groups.setdefault(row[1], []).append(row)
    return [
        (one, kind, other)
        for group in groups.values() for (one, kind, _), (_, _, other) in zip(group, [*group[1:], group[0]])
    ]  # fmt: skip


def untold(record: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """The rows of an entry's objects, without captions."""
    return [(one, kind, None) for one, kind, _ in _own(record, rows)]
