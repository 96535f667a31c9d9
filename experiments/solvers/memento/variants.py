"""Other memories, other instructions, other captions of the same MEMENTO tasks, for its tables.

    SHOWN["summarised"](trace).note       # "Moved candle_0 from table_11 in dining_room_1 onto shelves_17 ..."
    damaged(traces, "random_noise")                  # 30 % unrelated steps
    indirect(record)                                 # the entry with a reworded instruction; None if no rule applies
    elsewhere(record, scene)                         # the same pattern on other furniture; None if it is not simple
    reworded(record, "I need you to {request_lower}.")["instruction"]     # "I need you to move my lamp to the stand."
    in_memory(trace, "own"), now(record, rows, "own")                     # captions said otherwise; the same object

Words stand in text files, two of each: `own` was written by the author beforehand, `blind` by somebody who never saw
the code that reads them. None is taken from the benchmark.

Source: MEMENTO 6.1 (formats; a summary is made by a chat model there, by rules here), E.2.2 (noise, gaps), E.4.2 (30
instructions reworded by hand) and E.4.3 (altered locations, "this time"). The paper's instructions are not published;
these are made by rule, of every entry that a rule fits.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.worlds.memento.traces.trace import (
    HELD,
    Trace,
    TraceStep,
    parse_action,
    parse_description,
    parse_objects,
    succeeded,
)

from .reading import alternatives, gerund

_SUMMARY: dict[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string", "minLength": 1, "maxLength": 2000}},
    "required": ["summary"],
    "additionalProperties": False,
}
NOISE = 0.3
GAPS = 0.2


def instruction_only(trace: Trace) -> Trace:
    """Return the instruction without what was done."""
    return dataclasses.replace(trace, steps=(), note="")


def summarised(trace: Trace) -> Trace:
    """Return the trace with a note in place of its steps.

    It says what was moved from where to where, in order.
    """
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


def written(writer: ChatWriter) -> Callable[[Trace], Trace]:
    """Make `summarised` in a model's words, or else by rules.

    Rules serve where the model has no usable answer.
    """
    instruction = prompt("embodied_mem.worlds.memento.agent", "summary")

    @functools.cache
    def summarised_by_model(trace: Trace) -> Trace:
        note = writer.ask(instruction, trace.render(), lambda value: str(value["summary"]).strip(), _SUMMARY)
        return dataclasses.replace(trace, steps=(), note=" ".join(note.split())) if note else summarised(trace)

    return summarised_by_model


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
    """Put steps of other houses into the trace at random places.

    Their number is `NOISE` times that of its own.
    """
    steps = list(trace.steps)
    for _ in range(round(NOISE * len(trace.steps)) if strangers else 0):
        steps.insert(rng.randint(0, len(steps)), rng.choice(strangers))
    return dataclasses.replace(trace, steps=tuple(steps))


def shuffled(trace: Trace, rng: random.Random) -> Trace:
    """Return the trace with its steps in random order."""
    return dataclasses.replace(trace, steps=tuple(rng.sample(trace.steps, len(trace.steps))))


def thinned(trace: Trace, rng: random.Random) -> Trace:
    """Return the trace without `GAPS` of its steps, drawn at random."""
    gone = set(rng.sample(range(len(trace.steps)), round(GAPS * len(trace.steps))))
    return dataclasses.replace(trace, steps=tuple(step for i, step in enumerate(trace.steps) if i not in gone))


def without(trace: Trace, action: str) -> Trace:
    """Return the trace without the steps of one action, e.g. `Pick`."""
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
    """Damage all traces of all scenes in one way of `DAMAGES`.

    What chance decides depends on the seed and the episode id.
    """
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
    """Replace each step with chance `share` by one of another trace.

    All traces are returned; the other trace may be of any house. What a step said is lost, and what comes in its place
    may be of an object of the same name.
    """
    mixed = []
    for trace in traces:
        rng = random.Random(f"{seed}/{share}/{trace.episode_id}")
        others = [step for other in traces if other is not trace for step in other.steps]
        steps = tuple(rng.choice(others) if others and rng.random() < share else step for step in trace.steps)
        mixed.append(dataclasses.replace(trace, steps=steps))
    return mixed


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


def reworded_caption(caption: str, kind: str, name: str, rng: random.Random) -> str:
    """Return a caption said otherwise.

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
    """Reword every description in a trace, each object's always the same way."""
    steps = []
    for step in trace.steps:
        if told := parse_description(step.observation):
            kind = told[0].rpartition("_")[0].replace("_", " ")
            other = reworded_caption(told[1], kind, name, random.Random(f"{seed}/{trace.episode_id}/{told[0]}"))
            step = dataclasses.replace(step, observation=step.observation.replace(told[1], other))
        steps.append(step)
    return dataclasses.replace(trace, steps=tuple(steps))


def _own(record: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """Return the rows of an entry's objects."""
    templates = {handle.rpartition("_:")[0] for handle in record["name_to_receptacle"]}
    return [row for row in rows if row[0] in templates]


def now(record: Mapping[str, Any], rows: Sequence[Row], name: str, seed: int = 0) -> list[Row]:
    """Return the rows of an entry's objects, reworded_caption."""

    def other(template: str, kind: str, caption: str) -> str:
        rng = random.Random(f"{seed}/{record['episode_id']}/{template}")
        return reworded_caption(caption, kind.replace("_", " "), name, rng)

    return [(one, kind, caption and other(one, kind, caption)) for one, kind, caption in _own(record, rows)]


def swapped(record: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """Return the rows of an entry's objects with their captions swapped.

    Each has the caption of the next one of its category.
    """
    own = _own(record, rows)
    groups: dict[str, list[Row]] = {}
    for row in own:
        groups.setdefault(row[1], []).append(row)
    return [
        (one, kind, other)
        for group in groups.values() for (one, kind, _), (_, _, other) in zip(group, [*group[1:], group[0]])
    ]  # fmt: skip


def untold(record: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    """Return the rows of an entry's objects, without captions."""
    return [(one, kind, None) for one, kind, _ in _own(record, rows)]


_REWORDINGS = (
    (r"\bgift(?:ed)? by\b", "that I was given by"),
    (r"\bgift (\w+) from\b", r"\1 that I was once given by"),
    (r"\bgift from\b", "present of"),
    (r"\bmy gifted (\w+)\b", r"the \1 that I got as a present"),
    (r"\bspecial gift (\w+)\b", r"\1 that somebody gave me"),
    (r"\btravel souvenir (\w+)\b", r"\1 that I brought home from a trip"),
    (r"\bsouvenir (\w+)\b", r"\1 that I brought home"),
    (r"\bfamily heirloom (\w+)\b", r"\1 that was handed down to me"),
    (r"\bmy favou?rite childhood toy\b", "the toy that I loved to play with when I was little"),
    (r"\bmy favou?rite\b", "the one I am most fond of, the"),
    (r"\bmy (?:usual|go[- ]to|go to) breakfast\b", "the first meal of the day the way I have it"),
    (r"\bset up my (.+?)(?: for me)?\?", r"get things ready the usual way? It is time for my \1."),
    (r"\b(?:arrange|organi[sz]e|prepare) my (.+?)(?: as I (?:usually )?(?:do|like|prefer))?\?",
     r"see to things the usual way? I am thinking of my \1."),
    (r"\bcozy\b", "snug"),
    (r"\bcalming (?:atmosphere|vibe|ambiance)\b", "soothing mood"),
    (r"\brelaxing (?:atmosphere|vibe|ambiance)\b", "restful mood"),
    (r"\bfor easy access\b", "so that I can reach them quickly"),
    (r"\bwelcoming\b", "inviting to guests"),
    (r"\bwork ?(?:space|station|area)\b", "place where I do my job"),
    (r"\bas I (?:usually )?(?:like|do|prefer)(?: it)?\b", "in the way you know from me"),
    (r"\bwhere I usually (?:keep|like) (?:it|them)(?: to be)?\b", "in the place you know"),
)  # fmt: skip


def indirect(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Reword an instruction by the first two rules that fit.

    The result is a copy of the entry, or None if no rule fits.
    """
    text, applied = record["instruction"], 0
    for pattern, replacement in _REWORDINGS:
        changed = re.sub(pattern, replacement, text, count=1, flags=re.IGNORECASE)
        if changed != text:
            text, applied = changed, applied + 1
        if applied == 2:
            break
    return {**copy.deepcopy(dict(record)), "instruction": text} if applied else None


def elsewhere(record: Mapping[str, Any], scene: Mapping[str, Any], seed: int = 0) -> dict[str, Any] | None:
    """Return a user pattern asked for on another kind of furniture.

    It is None where the task is not simple. Simple: all that is put somewhere goes on top of the same pieces, in any
    order, and the instruction names no furniture of the house. The new place is a type of furniture of a room that the
    house has one of.

    Args:
        record: an entry of the single utilisation stage.
        scene: the house, as in `scenes.json`.
        seed: decides, with the episode id, the new place.
    """
    places = [p["args"] for p in record["evaluation_propositions"] if p["function_name"] == "is_on_top"]
    kinds = {proposition["function_name"] for proposition in record["evaluation_propositions"]}
    ordered = any(
        constraint["args"].get("dag_edges")
        for constraint in record["evaluation_constraints"]
        if constraint["type"] == "TemporalConstraint"
    )
    handles = {tuple(args["receptacle_handles"]) for args in places}
    if record["metadata"]["episode_type"] != "user_pattern" or ordered or len(handles) != 1:
        return None
    text = record["instruction"].strip()
    types = {piece["type"] for piece in scene["furniture"]}
    if not kinds <= {"is_on_top", "is_next_to"} or any(t.replace("_", " ") in text.lower() for t in types):
        return None
    old = {piece["type"] for piece in scene["furniture"] if piece["sim_handle"] in next(iter(handles))}
    choices: dict[tuple[str, str], list[str]] = {}
    single = [room["type"] for room in scene["rooms"]]
    for piece in scene["furniture"]:
        room = next((r for r in scene["rooms"] if r["name"] == piece["room"]), None)
        open_top = any(receptacle["relation"] == "on" for receptacle in piece["receptacles"])
        if room is None or not room["floor_points"] or single.count(room["type"]) != 1 or not open_top:
            continue
        if piece["type"] not in old and piece["type"] not in ("unknown", "toilet", "bathtub", "washer_dryer"):
            choices.setdefault((piece["type"], room["name"]), []).append(piece["sim_handle"])
    if not choices:
        return None
    kind, room_name = random.Random(f"{seed}/{record['episode_id']}").choice(sorted(choices))
    changed = copy.deepcopy(dict(record))
    for proposition in changed["evaluation_propositions"]:
        if proposition["function_name"] == "is_on_top":
            proposition["args"]["receptacle_handles"] = choices[kind, room_name]
    room_words = room_name.rpartition("_")[0].replace("_", " ")
    ending = "?" if text.endswith("?") else "."
    changed["instruction"] = (
        f"{text.rstrip('?. ')}, but on the {kind.replace('_', ' ')} in the {room_words} this time{ending}"
    )
    return changed


HALVES = ("own", "blind")
_LEAD_IN = re.compile(
    r"\A(?:(?:can|could|would|will) (?:you|we)\s+|please\s+|help me (?:to )?(?!by\b)|first,\s+)+", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")
_NEXT_VERB = re.compile(rf"(,? and (?:then )?)((?:{alternatives('verbs')})\b)(?=\s+(?:the|my|them|it|both|a)\b)")


@functools.cache
def templates(half: str) -> tuple[str, ...]:
    """Return the templates of one of `HALVES`."""
    lines = Path(__file__).with_name(f"rewordings_{half}.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))


def reworded(record: Mapping[str, Any], template: str) -> dict[str, Any]:
    """Return the entry with a template as its first sentence's lead-in.

    The other sentences follow it.
    """
    first, *rest = _SENTENCE.split(record["instruction"].strip())
    request = _LEAD_IN.sub("", first).rstrip("?.! ")
    lower = request[0].lower() + request[1:]
    early = re.match(r"(?:first\s+)?", lower)
    start = early.end() if early else 0
    verb, _, after = lower[start:].partition(" ")
    after = _NEXT_VERB.sub(lambda match: match[1] + gerund(match[2]), after)
    slot = re.search(r"\{request\w*\}[^.?!]*[.?!]*", template)
    end = slot.end() if slot else len(template)
    filled = [
        part.format(
            request=request[0].upper() + request[1:],
            request_lower=lower,
            request_to=f"to {lower}",
            request_ing=f"{lower[:start]}{gerund(verb)} {after}",
        )
        for part in (template[:end], template[end:])
    ]
    text = " ".join(part for part in (filled[0], *rest, filled[1].strip()) if part)
    return {**copy.deepcopy(dict(record)), "instruction": text}


def bare(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry in small letters without punctuation.

    It is as heard or typed in haste.
    """
    text = re.sub(r"(?<!\w)['\"]|['\"](?!\w)|[.,;:?!()]", "", record["instruction"].lower())
    return {**copy.deepcopy(dict(record)), "instruction": " ".join(text.split())}


def drawn(records: Sequence[Mapping[str, Any]], half: str, draw: int, seed: int = 0) -> list[dict[str, Any]]:
    """Reword each entry by the `draw`-th of its own shuffled templates."""
    known = templates(half)
    return [
        reworded(record, random.Random(f"{seed}/{record['episode_id']}").sample(known, draw + 1)[draw])
        for record in records
    ]
