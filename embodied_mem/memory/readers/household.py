"""Reads household sentences into facts by rules: both wordings of ALFWorld ("move X to Y", "put X in/on Y").

    reading = read_observation("You arrive at desk 1. On the desk 1, you see a pen 2, and a mug 1.")
    reading.facts        # (("agent", "at", "desk 1"), ("pen 2", "on", "desk 1"), ("mug 1", "on", "desk 1"))
    reading.complete     # (("desk 1", ("pen 2", "mug 1")),): what else was thought to be there is gone

Pure functions over text. What no rule knows gives a reading that is not `understood`, never an error.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import zlib

from ...types import Episode
from .english import is_name
from .reading import AGENT, MAX_READ, PLACED, ROOM, STATE_AFTER, Event, Reader, Reading, of_lines, says_failure

_ROOM_MARK = "Looking quickly around you, you see "
_LISTED = re.compile(r"(?:\A|, )(?:and )?(?:an? |some )?([^,]+)(?=, |\Z)")
_NUMBERED = re.compile(r"[a-z]{1,40} \d{1,9}")
_SEEN_ON = re.compile(r"On the (.+?), you see (.*?)\.?\Z", re.DOTALL)
_SEEN_IN = re.compile(r"The (.+?) is open\. In it, you see (.*?)\.?\Z", re.DOTALL)
_CLOSED = re.compile(r"The (.+?) is closed\.?\Z")
_PAIRS = {
    "pick up": re.compile(r"You pick up the (.+) from the (.+?)\.?\Z", re.DOTALL),
    "move": re.compile(r"You move the (.+) to the (.+?)\.?\Z", re.DOTALL),
    "put": re.compile(r"You put the (.+) in/on the (.+?)\.?\Z", re.DOTALL),
    "clean": re.compile(r"You clean the (.+) using the (.+?)\.?\Z", re.DOTALL),
    "heat": re.compile(r"You heat the (.+) using the (.+?)\.?\Z", re.DOTALL),
    "cool": re.compile(r"You cool the (.+) using the (.+?)\.?\Z", re.DOTALL),
}
_CONTAINER = re.compile(r"This is a normal (.+?)\. In it, you see (.*?)\.?\Z", re.DOTALL)
_OBJECT = re.compile(r"This is an? (.+?)\.?\Z")
_MARKS = {"hot": "hot", "cool": "cool", "cold": "cool", "clean": "clean", "sliced": "sliced"}
_IS_ON = re.compile(r"This (.+) is on\.?\Z")
_GOAL = re.compile(
    r"(?:put|find|place|take|pick up|clean|heat|cool|wash|look at|examine) (?:(?:some|an?|the|two|all) )?"
    r"(?:(?:clean|hot|cool|cold|warm) )?(.+?) (?:in|on|under|with|to|and)\b"
)
_TAKE = re.compile(r"take (.+?) from (.+)\Z", re.DOTALL)
_MOVE = re.compile(r"(?:move (.+?) to|put (.+?) in/on) (.+)\Z", re.DOTALL)
_CHANGE = re.compile(r"(clean|heat|cool) (.+?) with (.+)\Z", re.DOTALL)
_USE = re.compile(r"use (.+)\Z")
_GO = re.compile(r"go to (.+)\Z")
_SAYS_NOTHING = ("There's nothing special about ", "Available commands", "-= Welcome to ", "Your task is to")
_DONE_VERBS = ("arrive", "pick", "put", "move", "open", "close", "clean", "heat", "cool", "turn")
_DONE = tuple(f"You {verb} " for verb in _DONE_VERBS)
"""First words of answers that report a finished action: nobody needs to read them to the end."""

_NAMES_SOMETHING = re.compile(r"\b(?:the|an?|any|it|its|your)\b|\d")
"""Words of a refusal's object or reason: they say more than that nothing happened, and no rule reads them."""

_REFUSED = Reading(refused=True)
_NOTHING = Reading()
_UNKNOWN = Reading(understood=False)
_UNKNOWN_REFUSED = Reading(understood=False, refused=True)


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a list of things.

    Such a list is "a pen 2, a mug 1, and a cup 3".
    """
    return _names_in(text.strip().removesuffix("."))


@functools.lru_cache(256)
def _names_in(text: str) -> tuple[str, ...]:
    """Return cached names: a room's list is read twice."""
    return () if text in ("", "nothing") else tuple(_LISTED.findall(text))


@functools.lru_cache(4096)
def _is_name(text: str) -> bool:
    """Return whether a text names one thing, unlike "drawer slowly"."""
    return text == AGENT or _NUMBERED.fullmatch(text) is not None or is_name(text)


def is_refusal(text: str) -> bool:
    """Return whether an answer says that the command had no effect."""
    return text.startswith(("Nothing happens", "You don't", "You can't", "You cannot"))


def read_observation(text: str) -> Reading:
    """Read one answer of the world, line by line."""
    text = text.strip()
    if is_refusal(text):
        return _UNKNOWN_REFUSED if _NAMES_SOMETHING.search(text) else _REFUSED
    if "\n" not in text:
        return _read_whole(text)
    whole = of_lines([_read_whole(line) for line in text.split("\n") if line.strip()])
    return dataclasses.replace(whole, refused=whole.refused and not whole.facts)


def _read_whole(text: str) -> Reading:
    """Read a line; without a rule it may still say a failure."""
    reading = _read_line(text) if len(text) <= MAX_READ else _UNKNOWN
    if reading.understood and not _has_names(reading):
        reading = _UNKNOWN
    return _UNKNOWN_REFUSED if not reading.understood and says_failure(text) else reading


def _has_names(reading: Reading) -> bool:
    """Return whether all things in a reading have names."""
    names = [one for one, _, _ in reading.facts] + [other for _, relation, other in reading.facts if relation != "is"]
    for container, contents in reading.complete:
        names += (container, *contents)
    return all(map(_is_name, names))


def _read_line(text: str) -> Reading:
    if _ROOM_MARK in text:
        return _read_room(text)
    if text.startswith("You "):
        return _read_you(text)
    if text.startswith(("On the ", "The ")):
        return _read_receptacle(text, arrived=False)
    if text.startswith("This "):
        return _read_object(text)
    if text.startswith(_SAYS_NOTHING):
        return _NOTHING
    return _UNKNOWN


def _read_room(text: str) -> Reading:
    seen = text.partition(_ROOM_MARK)[2].partition("\n")[0]
    return Reading(tuple([(name, "in room", ROOM) for name in names_in(seen)]))


def _read_receptacle(text: str, arrived: bool) -> Reading:
    place, relation, contents, state = "", "", None, ""
    if found := _SEEN_ON.match(text):
        place, relation, contents = found[1], "on", names_in(found[2])
    elif found := _SEEN_IN.match(text):
        place, relation, contents, state = found[1], "in", names_in(found[2]), "open"
    elif found := _CLOSED.match(text):
        place, state = found[1], "closed"
    if not place or any(". " in name for name in (place, *(contents or ()))):
        return _UNKNOWN  # or more than one sentence
    facts = [(AGENT, "at", place)] if arrived else []
    if state:
        facts.append((place, "is", state))
    facts += [(name, relation, place) for name in contents or ()]
    return Reading(tuple(facts), () if contents is None else ((place, contents),))


def _read_you(text: str) -> Reading:
    if text.startswith("You arrive at "):
        name, _, rest = text[14:].partition(". ")
        reading = _read_receptacle(rest, arrived=True)
        return reading if reading.understood else Reading(((AGENT, "at", name.rstrip(".")),), understood=not rest)
    if text.startswith("You open the "):
        name, _, rest = text[13:].partition(". ")
        reading = _read_receptacle(rest, arrived=False)
        return reading if reading.understood else Reading(((name.rstrip("."), "is", "open"),), understood=not rest)
    if text.startswith("You close the "):
        return Reading(((text[14:].rstrip("."), "is", "closed"),))
    if text.startswith(("You turn on the ", "You turn off the ")):
        name = text.partition(" the ")[2].rstrip(".")
        return Reading(((name, "is", "on" if text.startswith("You turn on") else "off"),))
    if text.startswith("You are carrying: "):
        held = names_in(text[18:])
        return Reading(tuple((AGENT, "holds", name) for name in held), ((AGENT, held),))
    if text.startswith("You are not carrying anything"):
        return Reading(complete=((AGENT, ()),))
    if text.startswith("You are facing the "):
        return _read_facing(text[19:])
    if text.startswith("You are in the middle of "):
        return _NOTHING
    for verb, pattern in _PAIRS.items():
        if text.startswith(verb, 4):
            found = pattern.match(text)
            return _read_pair(verb, found[1], found[2]) if found else _UNKNOWN
    return _UNKNOWN


def _read_pair(verb: str, name: str, place: str) -> Reading:
    if not _is_name(place):
        return _UNKNOWN
    if verb == "pick up":
        return Reading(((AGENT, "holds", name),))
    if verb in ("move", "put"):
        return Reading(((name, PLACED, place),), ((AGENT, ()),))
    return Reading(((name, "is", STATE_AFTER[verb]),))


def _read_facing(text: str) -> Reading:
    here = names_in(text.partition(". Next to it")[0])
    if not here:
        return _UNKNOWN
    return Reading(tuple((name, "next to", here[0]) for name in here[1:]))


def _read_object(text: str) -> Reading:
    if found := _CONTAINER.match(text):
        contents = names_in(found[2])
        return Reading(tuple((name, "in", found[1]) for name in contents), ((found[1], contents),), examined=found[1])
    if found := _IS_ON.match(text):
        return Reading(((found[1], "is", "on"),))
    found = _OBJECT.match(text)
    words = found[1].split() if found else []
    marks = []
    while words and (words[0] in _MARKS or words[0] == "and"):
        if (word := words.pop(0)) != "and":
            marks.append(_MARKS[word])
    if not marks or not words:
        return _UNKNOWN
    return Reading(tuple((" ".join(words), "is", mark) for mark in marks))


class HouseholdReader(Reader):
    """Household sentences."""

    name = "household"

    def read(self, text: str) -> Reading:
        return read_observation(text)

    def room(self, first_observation: str) -> str:
        text = first_observation.partition("Your task is to:")[0]
        _, found, seen = text.partition("you see ")
        text = seen if found else text.replace("-= Welcome to TextWorld, ALFRED! =-", "")
        return " ".join(text.split()).rstrip(".")

    def place(self, first_observation: str) -> str:
        """Return a checksum of the furniture's names, if they are listed."""
        if _ROOM_MARK not in first_observation:
            return ""
        names = sorted(names_in(self.room(first_observation)))
        return f"room-{zlib.crc32(', '.join(names).encode()):08x}" if len(names) > 1 else ""

    def goal_object(self, goal: str) -> str:
        found = _GOAL.match(" ".join(goal.lower().split()))
        return found[1] if found else ""

    def events(self, episode: Episode) -> list[Event]:
        """Return actions that changed something, unless their answers say otherwise."""
        events = []
        here = ""
        for index, (step, answer) in enumerate(zip(episode.steps, episode.answers)):
            action = " ".join(step.action.split())
            if not answer.startswith(_DONE) and read_observation(answer).refused:
                continue
            if found := _GO.match(action):
                here = found[1]
            elif found := _TAKE.match(action):
                events.append(Event(index, "take", found[1], found[2]))
            elif found := _MOVE.match(action):
                events.append(Event(index, "place", found[1] or found[2], found[3]))
            elif found := _CHANGE.match(action):
                events.append(Event(index, found[1], found[2], found[3]))
            elif found := _USE.match(action):
                events.append(Event(index, "use", found[1], here))
        return events


HOUSEHOLD = HouseholdReader()
