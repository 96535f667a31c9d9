"""Reads plain English about where things are and how they are, in whatever words a world, a robot or a person says it.

    ENGLISH.read("I see a red mug on the counter, next to the sink. The fridge is closed. Grasp failed.")
    # facts: ("red mug", "on", "counter"), ("red mug", "next to", "sink"), ("fridge", "is", "closed"); refused

A small grammar over words, not a list of phrases: a sentence says what is seen or there ("there is", "I see"), what
something is ("the fridge is not closed"), what the agent did or holds ("I put the cup in the sink"), or is a thing with
a preposition alone ("mug on table"). Things stand in lists, places in chains: after a comma a preposition goes on about
the same thing, without one about the place before it. Names are short and have no word of another kind in them; places
have an article or a number, and are no figures of speech ("on the phone"). A sentence with any other word in a
grammatical position, or with one of time, doubt or ownership, is not understood and asserts nothing; neither does what
stands before it, if it may take that back ("Just kidding."). Texts beyond `reading.MAX_READ` and sentences beyond
`MAX_WORDS` are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..mentions import called_by_name, normal, singular
from ..words import IRREGULAR
from .reading import AGENT, NOT, ROOM, SENTENCE_END, Reader, Reading, legible, says_failure

_TOKEN = re.compile(r"\w(?:[\w'’-]*\w)?|[,:&]|\S")
_SHORT = (("n't", " not"), ("n’t", " not"), ("i'm ", "i am "), ("i’m ", "i am "),
          ("'re ", " are "), ("’re ", " are "), ("'ve ", " have "), ("no longer", "not"), ("cannot", "can not"),
          ("any more ", " "), ("any longer ", " "), ("nobody ", "no person "), ("no one ", "no person "),
          ("no-one ", "no person "), ("somebody ", "a person "), ("someone ", "a person "))  # fmt: skip
_IS = re.compile(
    r"(?:\b(?P<who>there|here|it|that|he|she)['’]s(?=\s))"
    r"|['’]s(?=\s+(?:on|in|at|under|not|a|an|the|now|still|next|behind|near|by|inside|above|below|off)\b)"
)
"""Where an ending is "is", whatever else a sentence has; elsewhere it is, if the sentence has no other."""

_HAS_BE = re.compile(r"\b(?:is|are|am|was|were)\b|['’](?:m|re)\b")
_PREPOSITIONS = {
    tuple(words.split()): relation
    for words, _, relation in (pair.partition(":") for pair in (
        "in front of:in front of", "on top of:on", "to the left of:left of", "to the right of:right of",
        "left of:left of", "right of:right of", "next to:next to", "close to:near", "inside of:inside", "in:in",
        "inside:inside", "into:in", "within:inside", "on:on", "onto:on", "upon:on", "atop:on", "under:under",
        "underneath:under", "beneath:under", "below:below", "above:above", "over:above", "behind:behind",
        "beside:next to", "near:near", "at:at", "against:against", "between:between", "among:among",
    ))
}  # fmt: skip
_LONGEST = max(map(len, _PREPOSITIONS))
_WORDS_OF_PREPOSITIONS = {word for words in _PREPOSITIONS for word in words} - {"front", "top", "left", "right", "of"}
_TABLE = """
    article: a an the some another this these those my our your one both all several many few only
    article: two three four five six seven eight nine ten eleven twelve
    adverb: also now still currently just already again carefully anymore
    there: there here visible
    be: is are am be
    was: was were been
    stand: stands stand lies lie sits sit rests rest hangs hang remains remain stays stay standing lying sitting resting
    stand: hanging located placed found seen left kept put stored parked positioned rolled fell slid landed ended
    self: i we you robot agent
    see: see sees saw notice noticed spot spotted detect detected observe observed find found perceive perceived
    hold: holding carrying grasped grabbed took picked lifted gripped hold holds carry carries take pick grasp grab
    put: put placed moved set left dropped released brought laid stored place move leave drop bring
    go: reached entered arrived went walked moved navigated drove came returned reach enter arrive go walk
    switch: turned switched turn switch
    contain: contains contain holds hold
    list: visible seen detected objects object items things see detections
    hand: hand gripper arm claw hands grippers arms
    no: no nothing
    guess: if unless would should could may might must maybe perhaps probably possibly likely think believe guess want
    guess: need try trying will shall going please let used whether or apparently gone missing how why like almost
    guess: nearly hardly never usually often sometimes always rarely hopefully supposedly supposed allegedly reportedly
    guess: presumably surely pretend imagine suppose assume ensure remember wish hope doubt claim claims instead except
    guess: without neither nor either ought soon later earlier before after until till while when whenever every since
    guess: his her their its ago once twice yesterday today tomorrow tonight noon midnight morning afternoon evening
    guess: night nights last least most time times hour hours minute minutes day days week weeks weekend month months
    guess: year years summer winter autumn monday tuesday wednesday thursday friday saturday sunday mondays tuesdays
    guess: wednesdays thursdays fridays saturdays sundays originally previously formerly temporarily planned
    hour: first present
    figure: way phone mood market tip moment end beginning middle hurry list menu mess loss mend rise run move go hunt
    figure: diet budget case charge fence loop dark spot hook picture pictures photo photograph image movie film video
    figure: dream story novel poster advert news radio tv internet web mind head heart eye eyes soul future past
    figure: world sky things percent euro euros dollar dollars degree degrees litre litres liter liters gram grams kilo
    figure: kilos metre metres meter meters people persons problem problems chance reason idea point doubt need risk
    figure: difference question answer meeting party rush trouble danger love use work sale fire order control progress
    figure: holiday hold opinion fact general top bottom side edge air plan race ball house family
    other: not and or but with from to for as than so because by that about it he she they them him me us who which what
    other: when where
    other: has have had do does did can say says said reads shows looks look seems seem goes gets get makes made takes
    other: then finally too very away out up down anybody anyone anything something everything everybody
    state: open closed shut locked unlocked on off clean dirty hot cold warm cool wet dry empty full broken sliced
    state: cooked lit ajar washed plugged unplugged charged tidy untidy
    state: red green blue yellow black white brown orange grey gray
    definite: a an the my our your this these those some two three four five six
    pronoun: it they them this that these those he she one ones there i you we
    role: daughter son child baby mother father mum mom dad parent sister brother wife husband partner aunt uncle cousin
    role: niece nephew grandmother grandfather grandma grandpa granddaughter grandson friend girlfriend boyfriend
    role: flatmate roommate neighbour neighbor colleague boss teacher doctor nurse guest owner user dog cat puppy kitten
    other: everyone none each either neither mine yours hers ours theirs ones else
"""
_ROWS = [line.strip().split(": ") for line in _TABLE.strip().splitlines()]
_OF = {kind: frozenset(" ".join(words for name, words in _ROWS if name == kind).split()) for kind, _ in _ROWS}
_BE, _WAS, _STAND, _THERE, _SELF, _NO = (_OF[kind] for kind in ("be", "was", "stand", "there", "self", "no"))
_SEE, _HOLD, _PUT, _GO, _CONTAIN = (_OF[kind] for kind in ("see", "hold", "put", "go", "contain"))
_VERBS = (_BE | _WAS | _STAND | _CONTAIN) - {"left"}
_MAKE = {
    "opened": "open", "closed": "closed", "shut": "closed", "cleaned": "clean", "washed": "clean", "heated": "hot",
    "warmed": "hot", "cooled": "cool", "sliced": "sliced", "locked": "locked", "unlocked": "unlocked", "filled": "full",
    "emptied": "empty", "open": "open", "close": "closed", "clean": "clean", "heat": "hot", "cool": "cool",
}  # fmt: skip
_DONE = re.compile(r"\w+ed|\w+ing|took|went|came|drove|brought|found|saw|left|laid")
"""Words that report what was done by themselves; "pick" without a subject asks for it."""

_NO_NAME = (
    (_BE | _WAS | _SEE | _PUT | _STAND | _SELF | _NO | _THERE | _OF["guess"] | _OF["other"] | _WORDS_OF_PREPOSITIONS)
    - {"left", "set", "stand", "going", "used", "missing"}
)  # fmt: skip
_MAX_NAME = 4
_OF_PLACE = re.compile(r" (?:in|of) the ")
MAX_WORDS = 100
"""Words of a sentence that the grammar looks at; a longer one asserts nothing."""

_DEFINITE = _OF["definite"]
_ANY_KIND = frozenset().union(*_OF.values(), _WORDS_OF_PREPOSITIONS)
_COUNT_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTS = {word: count for count, word in enumerate(_COUNT_WORDS, 2)} | {"dozen": 12}


class _Placed(NamedTuple):
    """The things and their (relation, place) in one part of a sentence."""

    things: list[str]
    places: list[tuple[str, str]]


def read_english(text: str) -> Reading:
    """Read a text; it is understood if every sentence of it is."""
    text = legible(text)
    found = list[Reading | None]()
    for sentence in filter(None, map(str.strip, SENTENCE_END.split(text))):
        reading = _read_sentence(sentence)
        if reading is None and _may_take_back(sentence, found):
            found = [None] * len(found)
        found.append(reading)
    known = [reading for reading in found if reading is not None]
    return Reading(
        tuple(dict.fromkeys(fact for reading in known for fact in reading.facts)),
        tuple(container for reading in known for container in reading.complete),
        understood=bool(found) and len(known) == len(found),
        refused=says_failure(text),
    )


def _may_take_back(sentence: str, before: Sequence[Reading | None]) -> bool:
    """Return whether an unread sentence may take back what stands before.

    It does not if it fails, or is about things of its own.
    """
    words = _TOKEN.findall(normal(sentence))
    told = {word for reading in before if reading for fact in reading.facts for name in fact for word in name.split()}
    has_subject = len(words) > 2 and (words[0] in _DEFINITE or words[0] not in _ANY_KIND)
    return not (has_subject and (told | _OF["pronoun"]).isdisjoint(words)) and not says_failure(sentence)


def _read_sentence(sentence: str) -> Reading | None:
    """Read a sentence; None if it is not understood."""
    if sentence.rstrip().endswith("?") or says_failure(sentence):
        return None
    plain = f"{normal(called_by_name(sentence, _OF['role'])).strip().rstrip('.!;')} "
    plain = _IS.sub(lambda found: f"{found['who'] or ''} is", plain)
    if not _HAS_BE.search(plain):
        plain = plain.replace("'s ", " is ").replace("’s ", " is ")
    for short, full in _SHORT:
        plain = plain.replace(short, full)
    words = [word for word in _TOKEN.findall(plain) if word not in _OF["adverb"]]
    while words and words[0] in ("and", "ok", "okay", "then", "finally", ","):
        words = words[1:]
    if (
        not 0 < len(words) <= MAX_WORDS
        or _OF["guess"] & set(words)
        or any(not (word[0].isalnum() or word in ",:&") for word in words)
    ):
        return None
    return _read_clauses(words)


def _read_clauses(words: list[str]) -> Reading | None:
    """Read one clause, or two beside each other: both or none."""
    if (whole := _read_words(words)) is not None:
        return whole
    for i in range(2, len(words) - 2):
        if words[i] not in (",", "and", "but", "with") or (left := _read_words(words[:i])) is None:
            continue
        rest = words[i + 2 :] if words[i + 1] in ("and", "but") else words[i + 1 :]
        if words[i] != "with":
            right = _read_words(rest)
        else:  # "You stand in a kitchen with a kettle on the stove"
            right = _there(rest) if left.facts[:1] and left.facts[0][:2] == (AGENT, "at") else None
        if right is not None:
            return Reading(left.facts + right.facts, left.complete + right.complete)
    return None


def _read_words(words: list[str]) -> Reading | None:
    subject = 2 if words[:2] in (["the", "robot"], ["the", AGENT]) else 1 if words[0] in _SELF else 0
    if (found := _read_self(words[subject:], told=subject > 0)) is not None:
        return found
    if subject:
        return None
    if words[0] == "there" and len(words) > 2 and words[1] in _BE:
        return _there(words[2:])
    if ":" in words:
        label, rest = words[: words.index(":")], words[words.index(":") + 1 :]
        if (place := _fronted(label, words)) is not None:
            return _in_place(place, rest)
        if _preposition(rest) is not None:
            return _read_copula(label, ["is", *rest])
        seen = not _OF["list"].isdisjoint(label)
        return _there(rest, bare=not seen) if len(label) <= 3 and (seen or _name(label) is not None) else None
    if _preposition(words) is not None:
        return _read_fronted(words)
    verb = next((i for i, word in enumerate(words) if word in _VERBS and i), None)
    return _there(words, bare=True) if verb is None else _read_copula(words[:verb], words[verb:])


def _read_self(words: list[str], told: bool) -> Reading | None:
    """Read the agent's report of itself, perhaps without a subject."""
    while words and (words[0] in ("have", "has") or (words[0] == "can" and words[1:2] and words[1] in _SEE)):
        words = words[1:]
    if told and words and words[0] in _BE:
        words = words[1:]
        if words and words[0] not in _HOLD | _GO:
            return _here([word for word in words if word not in _STAND], told)
    if told and words and words[0] in ("stand", "stands", "sit", "sits"):
        return _here(words[1:], told)
    if not words or not (told or (_DONE.fullmatch(words[0]) and not (_BE | _CONTAIN) & set(words))):
        return None
    verb, rest = words[0], words[1:]
    rest = rest[1:] if rest[:1] == [":"] else rest
    if verb in _SEE:
        return _there(rest)
    if verb in _HOLD:
        return _hold([word for word in rest if word != "up"])
    if verb in _OF["switch"]:
        state = next((word for word in rest[:1] + rest[-1:] if word in ("on", "off")), "")
        name = _name([word for word in rest if word not in ("on", "off")])
        return Reading(((name, "is", state),)) if name is not None and state else None
    if verb in _MAKE and (name := _name(rest)) is not None:
        return Reading(((name, "is", _MAKE[verb]),))
    if verb in _PUT and (found := _placed([word for word in rest if word != "down"])) is not None:
        if not any(part.places for part in found):
            return Reading(tuple((AGENT, f"{NOT}holds", thing) for part in found for thing in part.things))
        return _facts(found, needed=True)
    return _here(rest, told) if verb in _GO else None


def _here(words: list[str], told: bool) -> Reading | None:
    """Read the agent's place: "at the stove", "to the kitchen", "the stove"."""
    found = _preposition(words)
    relation, rest = ("at", words[1:]) if words[:1] == ["to"] else ("at", words) if found is None else found
    parts = _placed(rest)
    if not parts or len(parts[0].things) != 1 or (told and not _is_definite(rest)):
        return None
    place = parts[0].things[0]
    rest_of = [part for part in parts if part.places]
    more = _facts(rest_of, needed=True) if rest_of else Reading()
    relation = "at" if relation in ("in", "inside", "on") else relation
    return None if more is None else Reading(((AGENT, relation, place), *more.facts))


def _hold(words: list[str]) -> Reading | None:
    if "from" in words:
        if _fronted(["on", *words[words.index("from") + 1 :]], words) is None:
            return None  # more than a place follows, such as what else was done
        words = words[: words.index("from")]
    if words == ["nothing"]:
        return Reading(complete=((AGENT, ()),))
    found = _placed(words)
    if not found or any(part.places for part in found):
        return None
    return Reading(tuple((AGENT, "holds", thing) for thing in found[0].things))


def _there(words: list[str], bare: bool = False) -> Reading | None:
    """Read what is seen or there; `bare`: only "mug on table"."""
    words = [word for word in words if word not in _THERE]
    if words and words[0] in _NO:
        parts = _placed(words[1:] if words[0] == "no" else ["thing", *words[1:]])
        if not parts or len(parts) != 1 or not parts[0].places:
            return None
        if words[0] == "nothing":
            return Reading(complete=tuple((place, ()) for _, place in parts[0].places))
        return _facts(parts, denied=True)
    found = _placed(words)
    if bare and found and any(_ends_in_verb(thing) for part in found for thing in part.things):
        return None  # "the dog chased a cat", "a kettle hums on the stove": a verb that is not known
    return None if not found else _facts(found, needed=bare)


def _ends_in_verb(thing: str) -> bool:
    """Return whether the last word may be a verb, not a noun."""
    first, _, last = thing.rpartition(" ")
    if not first:
        return False
    return _DONE.fullmatch(last) is not None or last in IRREGULAR or (last[-1] == "s" and last[-2:] not in ("ss", "us"))


def _read_fronted(words: list[str]) -> Reading | None:
    """Read "On the counter there is a mug"."""
    for i in range(2, len(words)):
        if words[i] in _BE | _STAND | _THERE | _SELF and (place := _fronted(words[:i], words)) is not None:
            rest = words[i:]
            while rest and rest[0] in _BE | _STAND | _SEE | _SELF | _THERE | {"can", ","}:
                rest = rest[1:]
            return _in_place(place, rest)
    return None


def _fronted(words: list[str], sentence: Sequence[str]) -> tuple[str, str] | None:
    """Return (relation, place) of "on the counter"."""
    if (found := _preposition(words)) is None:
        return None
    inside = found[1][:-1] if found[1][-1:] == [","] else found[1]
    name = _place(inside, not _DEFINITE.isdisjoint(sentence))
    return None if name is None else (found[0], name)


def _place(words: list[str], definite: bool) -> str | None:
    """Return the name of a place; None for a figure of speech."""
    name = _name(words)
    return None if name is None or (definite and not _is_definite(words)) or _is_figure(name) else name


def _is_definite(words: Sequence[str]) -> bool:
    return bool(words) and (words[0] in _DEFINITE or words[0].endswith(("'s", "’s")) or words[-1].isdigit())


def _is_figure(name: str) -> bool:
    return name.rpartition(" ")[2] in _OF["figure"] or name.partition(" of ")[0].rpartition(" ")[2] in _OF["figure"]


def _in_place(place: tuple[str, str], words: list[str]) -> Reading | None:
    if words == ["nothing"]:
        return Reading(complete=((place[1], ()),))
    denied = words[:1] == ["no"]
    found = _placed(words[1:] if denied else words)
    if not found or len(found) > 1 or found[0].places:
        return None
    return _facts([_Placed(found[0].things, [place])], denied=denied)


def _read_copula(subject: list[str], rest: list[str]) -> Reading | None:
    """Read "The mug is (not) on the table", "the fridge is closed"."""
    verb, rest = rest[0], rest[1:]
    none = subject[:1] == ["no"]
    subjects = _placed(subject[1:] if none else ["thing"] if subject == ["nothing"] else subject)
    if not subjects or len(subjects) > 1:
        return None
    things = subjects[0].things
    known = tuple((thing, *place) for thing in things for place in subjects[0].places)
    if verb in _CONTAIN:
        found = _placed(rest)
        if rest == ["nothing"] and len(things) == 1:
            return Reading(complete=((things[0], ()),))
        if not found or len(found) > 1 or found[0].places or len(things) > 1:
            return None
        if verb.startswith("hold") and _OF["hand"] & set(things[0].split()):
            return Reading((*known, *((things[0], "holds", thing) for thing in found[0].things)))
        return Reading((*known, *((thing, "in", things[0]) for thing in found[0].things)))
    denied, here = none, rest[-1:] == ["here"]
    while rest and rest[0] in _BE | _WAS | _STAND | _THERE | {"not", "both", "all", "being"}:
        denied ^= rest[0] == "not"
        verb = rest[0] if rest[0] in _STAND else verb
        rest = rest[1:]
    if not rest and here and not denied:
        return _facts([_Placed(things, [])])
    if not rest or (subject == ["nothing"] and len(rest) < 2) or (verb in _WAS and verb not in _STAND):
        return None  # what was so may be so no more
    mark = NOT if denied else ""
    if len(rest) > 1 and _preposition(rest) is not None:
        found = _placed([*(["the"] if not _DEFINITE.isdisjoint(subject) else []), "thing", *rest], places_end=True)
        if found and subject == ["nothing"]:
            return Reading(complete=tuple((place, ()) for _, place in found[0].places))
        if not found or not found[0].places or (denied and len(found) > 1):
            return None
        return _facts([_Placed(things, found[0].places), *found[1:]], denied=denied)
    states = [word for word in rest if word not in ("and", ",")]
    if verb not in _BE or len(states) > 2 or not all(map(_is_state, states)):
        return None
    complete = tuple((thing, ()) for thing in things if "empty" in states and not denied)
    facts = tuple((thing, f"{mark}is", _MAKE.get(state, state)) for thing in things for state in states)
    return Reading((*known, *facts), complete)


def _is_state(word: str) -> bool:
    return word in _OF["state"]


def _preposition(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return (relation, what follows) of words that begin with a preposition."""
    for length in range(min(_LONGEST, len(words)), 0, -1):
        relation = _PREPOSITIONS.get(tuple(words[:length]))
        if relation is not None:
            return relation, list(words[length:])
    return None


def _placed(words: list[str], places_end: bool = False) -> list[_Placed] | None:
    """Return things with their places, in parts of a sentence.

    Args:
        words: "a red mug on the counter, next to the sink and a plate on the table".
        places_end: whether a list at the end names places, rather than more things.
    """
    segments = list(_segments(words))
    first = _counted(segments[0][1])
    if first is None or segments[0][2] or len(words) > MAX_WORDS:
        return None
    definite = not _DEFINITE.isdisjoint(words)
    parts = [_Placed([name for group in first for name in group], [])]
    follows_comma = False
    for position, (relation, inside, comma) in enumerate(segments[1:], 1):
        groups = _counted(inside)
        if groups is None or groups[0][0] in _OF["hour"] or inside[0].isdigit():
            return None  # "at noon", "at 80 percent"
        if definite and not _names_place(inside):
            return None  # "the boss is on the phone", "the mug on the table and on the shelf"
        last = position == len(segments) - 1
        many = groups if relation in ("between", "among") or (places_end and last) else groups[:1]
        if parts[-1].places and not follows_comma:
            parts.append(_Placed([parts[-1].places[-1][1]], []))  # "on the table in the kitchen"
        elif parts[-1].places and follows_comma and len(parts) > 1 and parts[-2].places[-1:] and not parts[-1].things:
            parts.pop()
        parts[-1].places.extend((relation, group[0]) for group in many)
        if more := [name for group in groups[len(many) :] for name in group]:
            parts.append(_Placed(more, []))
            comma = False
        follows_comma = comma
    return parts


def _segments(words: list[str]) -> Iterator[tuple[str, list[str], bool]]:
    """Yield (preposition, words up to the next one, whether a comma follows)."""
    relation, inside = "", list[str]()
    position = 0
    while position < len(words):
        found = _preposition(words[position:])
        if found is None or (not inside and not position):
            inside.append(words[position])
            position += 1
            continue
        yield relation, _stripped(inside), inside[-1:] == [","]
        relation, rest = found
        inside, position = [], len(words) - len(rest)
    yield relation, _stripped(inside), False


def _names_place(words: list[str]) -> bool:
    """Return whether a list begins with a place."""
    ends = [i for i, word in enumerate(words) if word in (",", "and", "&")]
    return _place(words[: ends[0]] if ends else words, True) is not None


def _stripped(words: list[str]) -> list[str]:
    return words[:-1] if words[-1:] == [","] else words


def _counted(words: list[str]) -> list[list[str]] | None:
    """Return the names in the parts of a list; None for no name.

    Two plates are "plate" and "plate 2", as the second of one name is called in the graph.
    """
    groups: list[list[str]] = [[]]
    for word in words:
        if word in (",", "and", "&"):
            groups.append([])
        else:
            groups[-1].append(word)
    found = []
    for group in filter(None, groups):
        count, one = _count(group)
        name = _name(group if count == 1 else one)
        if name is None:
            return None
        found.append([name, *(f"{name} {number}" for number in range(2, count + 1))])
    return found or None


def _count(words: list[str]) -> tuple[int, list[str]]:
    """Return how many things words name, and the words of one."""
    while words and words[0] in ("the", "my", "our", "your", "his", "her", "their", "these", "those", "only"):
        words = words[1:]
    if words[:3] == ["a", "couple", "of"]:
        words = ["two", *words[3:]]
    words = words[1:] if words[:2] == ["a", "dozen"] else words
    count = _COUNTS.get(words[0], int(words[0]) if words and words[0].isdecimal() else 1) if words else 1
    head = words.index("of", 1) - 1 if "of" in words[1:] else len(words) - 1
    if not 1 < count <= max(_COUNTS.values()) or head < 1 or (one := singular(words[head])) == words[head]:
        return 1, words
    return count, [*words[1:head], one, *words[head + 1 :]]


def _name(words: Sequence[str]) -> str | None:
    """Return the name in "the two red mugs"; None for no name."""
    words = words[3:] if words[1:3] == ["couple", "of"] else words
    while words and (words[0] in _OF["article"] or (words[0].isdigit() and _is_count(words))):
        words = words[1:]
    if not 0 < len(words) <= _MAX_NAME or words[0] == "of" or words[-1] == "of":
        return None
    no_name = all(map(str.isdigit, words)) or any(
        word in _NO_NAME or word in _OF["article"] or not word[0].isalnum() or _is_adverb(word) for word in words
    )
    return None if no_name else " ".join(words)


def _is_adverb(word: str) -> bool:
    return word.endswith("ly") and word not in ("jelly", "lily", "fly", "dolly", "brolly", "trolly")


def is_name(text: str) -> bool:
    """Return whether a text can name one thing, without an article."""
    parts = [part.split() for part in _OF_PLACE.split(normal(text), maxsplit=1)]
    wrong = _NO_NAME | _OF["article"] | _OF["guess"]
    return all(0 < len(words) <= _MAX_NAME for words in parts) and not any(
        word in wrong or "," in word or _is_adverb(word) for words in parts for word in words
    )


def _is_count(words: Sequence[str]) -> bool:
    """Return whether words begin with a count, as in "20 plates"."""
    return words[0] == "1" or singular(words[-1]) != words[-1]


def _facts(parts: Sequence[_Placed], needed: bool = False, denied: bool = False) -> Reading | None:
    """Return the facts of parts.

    Without a place, a thing is in the room, or `needed` makes it no reading.
    """
    if needed and not all(part.places for part in parts):
        return None
    mark = NOT if denied else ""
    facts = []
    for part in parts:
        if not part.places and any(map(_is_figure, part.things)):
            return None
        places = part.places or [("in room", ROOM)]
        facts += [(thing, f"{mark}{relation}", place) for thing in part.things for relation, place in places]
    return Reading(tuple(facts))


class EnglishReader(Reader):
    """Plain English; it names no rooms and reads no goals."""

    name = "english"

    def read(self, text: str) -> Reading:
        return read_english(text)


ENGLISH = EnglishReader()
