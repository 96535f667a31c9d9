"""Reads plain captions of pictures: a few forms, each certain; anything else stays text.

    caption_facts("The image shows a kitchen with a stove and a sink.")     # ("stove", "in", "kitchen"), ...
    caption_facts("a cat sitting on a couch")                               # ("cat", "on", "couch")
    caption_facts("a wooden table with a vase on it")                       # ("vase", "on", "wooden table")

The forms become sentences of the library's English reader, which decides whether they say a fact. Captions are looser
than reports, so a sentence with a name that has a verb, a colour alone, or no thing in it asserts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from embodied_mem.memory.readers import ENGLISH, Reader
from embodied_mem.memory.readers.reading import SENTENCE_END, legible
from embodied_mem.memory.words import normal

Fact = tuple[str, str, str]

_LEAD = re.compile(
    r"\A(?:(?:this is|here is|(?:the|this) (?:image|picture|photo|photograph|scene|frame) (?:shows|depicts|contains)"
    r"|(?:an? )?(?:(?:black and white|close[- ]up|interior|inside|indoor|overhead) )?"
    r"(?:image|picture|photo|photograph|view|shot|close[- ]up) of) ){1,3}"
)
_BESIDE = ("next to", "beside", "near", "in front of", "behind")
_WHERE = rf"(?:on top of|on|inside|in|under|underneath|above|{'|'.join(_BESIDE)})"
_PLACES = re.compile(rf" ({_WHERE})(?= )")
_POSTURE = r"(?:sitting|standing|lying|laying|resting|hanging|placed|located|parked|seated|mounted|stacked)"
_POSTURES = re.compile(rf" (?:(?:that|which) (?:is|are) (?:{_POSTURE} )?|{_POSTURE} )(?={_WHERE} )")
_ROOM = r"(?:kitchen|bathroom|bedroom|living room|dining room|hallway|garage|office|restroom|laundry room|pantry)"
_HAS = re.compile(r" (?:with|that has|has) ")
_ROOM_NAME = re.compile(rf"(?:an?|the|this) (?:[a-z]+ ){{0,2}}?{_ROOM}")
_IN_IT = re.compile(r" (on top of|on|in|inside) (?:it|them)\Z")
_ITEMS = re.compile(r"(?:, | )(?:and )?(?=(?:an?|the|some|two|three|four|five) )|, (?:and )?| and ")
_WORDS = """
    vague: look design scheme theme style decor view feel touch plan layout color colour motif setup space area room
    vague: people light lighting scene display background foreground picture photo image day night sun rain shade air
    vague: lot lots bunch variety row group pair couple number top bottom side corner middle center edge end back front
    vague: other others outdoors indoors outside inside intersection street road sidewalk work decorations reflection
    vague: man woman person
    bare: red green blue yellow black white brown orange grey gray pink purple silver gold large small empty full open
    bare: closed dirty clean messy other
    worn: shirt hat suit dress jacket uniform jeans coat costume boots shoes pants shorts helmet cap glasses tie wig
    worn: outfit clothes clothing gear apron robe sweater hoodie skirt vest gloves scarf socks wetsuit pajamas
    adjective: tiled wooden carpeted stuffed baked fried cooked sliced dining living sleeping cutting washing swimming
    adjective: building ceiling mixed red bed shed ironing sewing
    verb: has have having yet very asleep awake alone alive ajar nearby away together upright
"""
_ROWS = [line.strip().split(": ") for line in _WORDS.strip().splitlines()]
_OF = {kind: frozenset(" ".join(words for name, words in _ROWS if name == kind).split()) for kind, _ in _ROWS}


def caption_facts(caption: str, reader: Reader = ENGLISH) -> tuple[Fact, ...]:
    """Return the facts that a caption states for certain."""
    sentences = [_LEAD.sub("", normal(one).strip().rstrip(".")) for one in SENTENCE_END.split(legible(caption))]
    return tuple(dict.fromkeys(fact for one in sentences for fact in _facts_in(one, reader)))


def _facts_in(sentence: str, reader: Reader) -> Sequence[Fact]:
    """Return the facts of a sentence; none if one is doubtful."""
    clauses = [_told_of_one(_POSTURES.sub(" is ", sentence, count=1))]
    place, *rest = _HAS.split(sentence, maxsplit=1)
    within = _IN_IT.search(sentence)
    things = _IN_IT.sub("", rest[0]) if rest else ""
    if things and (within or _ROOM_NAME.fullmatch(place)) and not _PLACES.search(f"{place} {things} "):
        where = "on" if within and within[1].startswith("on") else "in"
        clauses = [f"there is {thing} {where} {place}" for thing in _ITEMS.split(things) if thing]
    facts: list[Fact] = []
    for clause in clauses:
        reading = reader.read(clause)
        places = {fact[2] for fact in reading.facts if fact[1] not in (*_BESIDE, "is") and not _is_room(fact[2])}
        if not reading.facts or not reading.understood or len(places) > 1 or any(map(_is_doubtful, reading.facts)):
            return []
        facts += reading.facts
    return facts


def _is_room(name: str) -> bool:
    return re.search(rf"\b{_ROOM}\Z", name) is not None


def _told_of_one(sentence: str) -> str:
    """Put a comma before a second place, about the thing."""
    text, *rest = _PLACES.split(sentence)
    for number, (word, place) in enumerate(zip(rest[::2], rest[1::2])):
        is_second = number > 0 and word in _BESIDE and not text.endswith(",")
        text += f"{',' if is_second else ''} {word}{place}"
    return text


def _is_doubtful(fact: Fact) -> bool:
    """Return whether a name of a fact may be no thing."""
    subject, relation, object_ = fact
    for name in (subject,) if relation == "is" else (subject, object_):
        words = name.rstrip(" 0123456789").split()
        if not words or words[-1] in _OF["vague"] | _OF["bare"] or ("of" in words and words[0] in _OF["vague"]):
            return True
        if any((len(word) > 4 and word.endswith(("ed", "ing"))) or word in _OF["verb"] for word in words
               if word not in _OF["adjective"]):  # fmt: skip
            return True
    return relation in ("in", "on") and not _OF["worn"].isdisjoint(object_.split())
