"""Reads plain English about where things are and how they are: a few forms of sentences, each of them certain.

    ENGLISH.read("I see a red mug on the counter, next to the sink. The fridge is closed. Grasp failed.")
    # facts: ("red mug", "on", "counter"), ("red mug", "next to", "sink"), ("fridge", "is", "closed"); refused

A sentence says what is seen or there ("there is", "I see"), what something is ("the fridge is not closed"), what the
agent did or holds ("I put the cup in the sink"), or is a thing with a preposition alone ("mug on table"). After a comma
a preposition goes on about the same thing, without one about the place before it. Names are short and have no word of
another kind in them; places have an article or a number, and are no figures of speech ("on the phone"). A sentence of
another form, or with a word of time, doubt or ownership, asserts nothing and stays a text that is found by its words;
so does what stands before it, if it may take that back ("Just kidding."). Texts beyond `reading.MAX_READ` and sentences
beyond `MAX_WORDS` are not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..words import IRREGULAR, called_by_name, normal, singular
from .reading import AGENT, NOT, ROOM, SENTENCE_END, Reader, Reading, legible, says_failure

Fact = tuple[str, str, str]

TOKEN = re.compile(r"\w(?:[\w'’-]*\w)?|[,:&]|\S")
SHORT_FORMS = (("n't", " not"), ("n’t", " not"), ("i'm ", "i am "), ("i’m ", "i am "),
          ("'re ", " are "), ("’re ", " are "), ("'ve ", " have "), ("no longer", "not"), ("cannot", "can not"),
          ("any more ", " "), ("any longer ", " "), ("nobody ", "no person "), ("no one ", "no person "),
          ("no-one ", "no person "), ("somebody ", "a person "), ("someone ", "a person "))  # fmt: skip
_IS = re.compile(
    r"(?:\b(?P<who>there|here|it|that|he|she)['’]s(?=\s))"
    r"|['’]s(?=\s+(?:on|in|at|under|not|a|an|the|now|still|next|behind|near|by|inside|above|below|off)\b)"
)
"""An ending that is "is" in any sentence; elsewhere it is only if the sentence has no other."""

_HAS_BE = re.compile(r"\b(?:is|are|am|was|were)\b|['’](?:m|re)\b")
PREPOSITIONS = dict(
    pair.partition(":")[::2] for pair in (
        "in front of:in front of", "on top of:on", "to the left of:left of", "to the right of:right of",
        "left of:left of", "right of:right of", "next to:next to", "close to:near", "inside of:inside", "in:in",
        "inside:inside", "into:in", "within:inside", "on:on", "onto:on", "upon:on", "atop:on", "under:under",
        "underneath:under", "beneath:under", "below:below", "above:above", "over:above", "behind:behind",
        "beside:next to", "near:near", "at:at", "against:against", "between:between", "among:among",
    )
)  # fmt: skip
_TABLE = """
    article: a an the some another this these those my our your one both all several many few only
    article: two three four five six seven eight nine ten eleven twelve
    adverb: here also now still currently just already again carefully anymore
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
    figure: diet budget case charge fence loop dark spot picture pictures photo photograph image movie film video
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
    other: keep keeps stay come comes give gives depend depends focus rely count congratulations thanks
    verb: is are am be was were been see sees saw notice noticed spot spotted detect detected observe observed perceive
    verb: perceived put placed moved dropped released brought laid stored place move leave drop bring found find
    verb: stands lie lies sit sits rest rests hangs hang remains remain stays standing lying sitting resting hanging
    verb: located seen kept parked positioned rolled fell slid landed ended no nothing there i you we robot
    verb: agent contains contain holds
"""


def kinds_of(table: str) -> dict[str, frozenset[str]]:
    """Return kind -> words of lines "kind: words"."""
    rows = [line.strip().split(": ") for line in table.strip().splitlines()]
    return {kind: frozenset(" ".join(words for name, words in rows if name == kind).split()) for kind, _ in rows}


KINDS = kinds_of(_TABLE)
_DEFINITE = KINDS["definite"]
NO_NAME = (
    (KINDS["guess"] | KINDS["other"] | KINDS["verb"] | set(" ".join(PREPOSITIONS).split()))
    - {"front", "top", "left", "right", "of", "set", "stand", "going", "used", "missing"}
)  # fmt: skip
_ANY_KIND = frozenset().union(*KINDS.values(), NO_NAME)
_MAX_NAME = 4
_OF_PLACE = re.compile(r" (?:in|of) the ")
MAX_WORDS = 100
"""Words of a sentence that the grammar looks at; a longer one asserts nothing."""

_COUNT_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTS = {word: count for count, word in enumerate(_COUNT_WORDS, 2)} | {"dozen": 12}
_MAKE = {
    "opened": "open", "closed": "closed", "shut": "closed", "cleaned": "clean", "washed": "clean", "heated": "hot",
    "warmed": "hot", "cooled": "cool", "sliced": "sliced", "locked": "locked", "unlocked": "unlocked", "filled": "full",
    "emptied": "empty", "open": "open", "close": "closed", "clean": "clean", "heat": "hot", "cool": "cool",
}  # fmt: skip
_HAND = re.compile(r"\b(?:hand|gripper|arm|claw)\b")
_DONE = re.compile(r"\w+ed|\w+ing|took|went|came|drove|brought|found|saw|left|laid")
"""Words that report what was done by themselves; "pick" without a subject asks for it."""

_VERBS = """
    eat drink play ride walk run read write cook talk sit stand hold wear use make sleep drive watch look show take
    carry push pull cut pour feed ask call clean dance enjoy fight go hang help jump kiss lean lie meet open pose
    prepare reach share sing smile speak swim teach throw touch wait wash work
"""
_MAY_BE_VERB = frozenset(_VERBS.split())
"""Verbs of captions without articles, "girl eat breakfast at restaurant"."""

_WHERE = "|".join(sorted(PREPOSITIONS, key=len, reverse=True))
_PLACES = re.compile(rf"(?:\A| )((?:, )?(?:and )?)({_WHERE}) ")
_DOWN = re.compile(r" down(?= (?:on|onto|in|into|at|by|beside|next) )")
_BETWEEN = frozenset((",", "and", "but", "with"))
_LISTED = re.compile(r"(?: (?:,|and|&))+ ")
_SEE = r"(?:sees?|saw|notice[sd]?|spot(?:s|ted)?|detect(?:s|ed)?|observe[sd]?|finds?|found|perceived?)"
_SAW = r"(?:sees|saw|noticed|spotted|detected|observed|found|perceived)"
"""Not "see the big picture" or "find the keys", which ask for it."""
_STAND = r"(?:stands?|lies?|sits?|rests?|hangs?|remains?|stays?)"
_LEFT = (
    r"(?:standing|lying|sitting|resting|hanging|located|placed|found|seen|left|kept|put|stored|parked|positioned|both)"
)
_SELF = r"(?:i|we|you|(?:the )?(?:robot|agent))"
_ACT = rf"(?P<self>{_SELF} (?:have |has )?)?"
_HAVE_BEEN = r"(?:was|were|has been|have been)"
_SEEN = r"(?:(?:visible|seen) )?(?:objects?|items?|things?|visible|seen)(?: visible| seen| detected)?"
_PARTS = r"(?P<parts>.+)"
_HOLD = (
    r"(?P<verb>holding|carrying|holds?|carry|carries|take|pick|grasp|grab|grasped|grabbed|took|picked|lifted|gripped)"
)
_PUT = r"(?P<verb>put|placed?|moved?|left|leave|drop|dropped|released?|laid|stored?)"
_GO = r"(?P<verb>reached|entered|arrived|went|walked|moved|navigated|drove|came|returned|arrives?|reach|enter|go|walk)"
_CHANGE = rf"(?P<verb>turned|switched|turn|switch|{'|'.join(_MAKE)})"


def read_english(text: str) -> Reading:
    """Read a text; it is understood if every sentence of it is."""
    text = legible(text)
    found = list[Reading | None]()
    for sentence in filter(None, map(str.strip, SENTENCE_END.split(text))):
        reading = _read_sentence(sentence)
        if reading is None and _may_take_back(sentence, found):
            found = [None] * len(found)
        found.append(reading)
    is_whole = bool(found) and None not in found
    known = [reading for reading in found if reading is not None and (is_whole or reading.understood)]
    return Reading(
        tuple(dict.fromkeys(fact for reading in known for fact in reading.facts)),
        tuple(container for reading in known for container in reading.complete),
        understood=is_whole,
        refused=says_failure(text),
    )


def _may_take_back(sentence: str, before: Sequence[Reading | None]) -> bool:
    """Return whether an unread sentence may take back what stands before.

    It does not if it fails, or is about things of its own.
    """
    words = TOKEN.findall(normal(sentence))
    told = {word for reading in before if reading for fact in reading.facts for name in fact for word in name.split()}
    has_subject = len(words) > 2 and (words[0] in _DEFINITE or words[0] not in _ANY_KIND)
    return not (has_subject and (told | KINDS["pronoun"]).isdisjoint(words)) and not says_failure(sentence)


def _read_sentence(sentence: str) -> Reading | None:
    """Read a sentence; None if it is not understood."""
    if sentence.rstrip().endswith("?") or says_failure(sentence):
        return None
    plain = f"{normal(called_by_name(sentence, KINDS['role'])).strip().rstrip('.!;')} "
    plain = _IS.sub(lambda found: f"{found['who'] or ''} is", plain)
    if not _HAS_BE.search(plain):
        plain = plain.replace("'s ", " is ").replace("’s ", " is ")
    for short, full in SHORT_FORMS:
        plain = plain.replace(short, full)
    words = [word for word in TOKEN.findall(plain) if word not in KINDS["adverb"]]
    while words and words[0] in ("and", "ok", "okay", "then", "finally", ","):
        words = words[1:]
    if (
        not 0 < len(words) <= MAX_WORDS
        or KINDS["guess"] & set(words)
        or any(not (word[0].isalnum() or word in ",:&") for word in words)
    ):
        return None
    return _read_clauses(words, not _DEFINITE.isdisjoint(words))


def _read_clauses(words: list[str], definite: bool) -> Reading | None:
    """Read one clause, or several beside each other: all or none.

    Args:
        words: of the clauses.
        definite: whether the sentence has articles, so that places have one.
    """
    ends = [i for i in range(1, len(words)) if words[i] in _BETWEEN and words[i - 1] != ","]
    read: dict[int, Reading] = {}  # of the clauses that begin a sentence: where they end -> their reading
    for end in (*ends, len(words)):
        for start in (0, *(i for i in ends if i in read)):
            clause = words[start:end]
            if clause[:1] == ["with"] and not (
                start and read[start].facts[:1] and read[start].facts[0][:2] == (AGENT, "at")
            ):
                continue  # only "I stand in a kitchen with a kettle on the stove" are two clauses
            while clause and clause[0] in _BETWEEN:
                clause = clause[1:]
            if clause and (last := _read_clause(clause, definite)) is not None:
                before = read[start] if start else Reading()
                sure = before.understood and last.understood
                read[end] = Reading(before.facts + last.facts, before.complete + last.complete, understood=sure)
                break
    return read.get(len(words))


def _read_clause(words: list[str], definite: bool) -> Reading | None:
    text = " ".join(words)
    for pattern, read in _COMPILED:
        if (found := pattern.fullmatch(text)) is None:
            continue
        is_report = "self" not in pattern.groupindex or found["self"] or _DONE.fullmatch(found["verb"])
        if is_report and (reading := read(found, definite)) is not None:
            return reading
    return None


def _read_there(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "a mug on the table", "no mug on it", "a mug"."""
    first, _, rest = found["parts"].partition(" ")
    located = located_in(rest if first == "no" else f"thing {rest}" if first == "nothing" else found["parts"], definite)
    if located is None or any(map(_is_figure, located[0])):
        return None
    things, facts = located
    if first == "nothing":
        return Reading(complete=((facts[0][2], ()),)) if len(facts) == 1 else None
    if first == "no":
        return _denied(facts)
    return Reading(tuple(facts) or tuple((thing, "in room", ROOM) for thing in things))


def _read_bare(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "mug on table"; return it only if all is understood."""
    located = located_in(found["parts"], definite)
    if located is None or not located[1] or any(map(_has_verb, located[0])):
        return None
    return Reading(tuple(located[1]), understood=False)


def _read_fronted(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "On the counter there is a mug"."""
    first, _, rest = found["things"].partition(" ")
    at = located_in(f"thing {found['at']}", definite)
    if at is None:
        return None
    if found["things"] == "nothing":
        return Reading(complete=((at[1][0][2], ()),)) if len(at[1]) == 1 else None
    things = names_in(rest if first == "no" else found["things"])
    facts = [(thing, *at[1][0][1:]) for thing in things or ()]
    return _denied(facts) if first == "no" else Reading((*facts, *at[1][1:])) if facts else None


def _read_contents(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "The drawer contains two forks", "The left hand holds a cup"."""
    place, things = name_in(found["thing"].split()), names_in(found["things"])
    if place is not None and found["things"] == "nothing":
        return Reading(complete=((place, ()),))
    if place is None or things is None:
        return None
    held = found["verb"].startswith("hold") and _HAND.search(place)
    return Reading(tuple((place, "holds", thing) if held else (thing, "in", place) for thing in things))


def _read_is(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "The mug is (not) on the table", "the fridge is closed"."""
    said, rest = found["things"], found["rest"]
    denied = (found["denied"] is not None) != said.startswith("no ")
    located = located_in("thing" if said == "nothing" else said.removeprefix("no "), definite)
    if located is None:
        return None
    things, known = located
    if _PLACES.match(rest):
        at = located_in(f"thing {rest}", definite)
        if at is None or (denied and len(at[1]) > 1):
            return None
        if said == "nothing":
            return Reading(complete=((at[1][0][2], ()),)) if len(at[1]) == 1 else None
        facts = [(one, *row[1:]) for row in at[1] for one in (things if row[0] == "thing" else row[:1])]
        return _denied(facts) if denied else Reading((*known, *facts))
    states = [word for word in rest.split() if word not in ("and", ",")]
    if said == "nothing" or len(states) > 2 or not KINDS["state"].issuperset(states):
        return None
    facts = [(thing, "is", _MAKE.get(state, state)) for thing in things for state in states]
    if denied:
        return _denied(facts)
    return Reading((*known, *facts), tuple((thing, ()) for thing in things if "empty" in states))


def _read_carried(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "I picked up the cup from the shelf"."""
    if found["things"] == "nothing":
        return Reading(complete=((AGENT, ()),))
    things = names_in(found["things"])
    if things is None or (found["at"] is not None and _place(found["at"].split(), definite) is None):
        return None
    return Reading(tuple((AGENT, "holds", thing) for thing in things))


def _read_put(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "I put the cup in the sink", "I dropped the cup"."""
    located = located_in(_DOWN.sub("", found["parts"], count=1), definite)
    if located is None:
        return None
    return Reading(tuple(located[1])) if located[1] else _denied([(AGENT, "holds", thing) for thing in located[0]])


def _read_went(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "I am at the stove", "walked to the kitchen"."""
    at = found["at"].removeprefix("to ")
    located = located_in(f"{AGENT}_ {at if _PLACES.match(at) else f'at {at}'}", True)
    if located is None:
        return None
    (_, relation, place), *more = located[1]
    return Reading(((AGENT, "at" if relation in ("in", "inside", "on") else relation, place), *more))


def _read_made(found: re.Match[str], definite: bool) -> Reading | None:
    """Read "I opened the drawer", "I turned on the light"."""
    name = name_in(found["thing"].split())
    state = _MAKE.get(found["verb"]) or found["before"] or found["after"]
    return Reading(((name, "is", state),)) if name is not None and state else None


_FORMS = (
    (rf"there (?:is|are) {_PARTS}", _read_there),
    (rf"(?:{_SELF} (?:have |has |can )?{_SEE}|{_SAW}|{_SEEN}) (?:: )?{_PARTS}", _read_there),
    (rf"(?P<at>(?:{_WHERE}) .+?) (?:, )?(?:there (?:is|are)|{_SELF} (?:can )?{_SEE}|is|are|{_STAND}) (?P<things>.+)",
     _read_fronted),
    (r"(?P<thing>.+?) (?P<verb>contains?|holds?) (?P<things>.+)", _read_contents),
    (rf"{_ACT}(?:am |are |is )?{_HOLD}(?: up)? (?P<things>.+?)(?: up)?(?: from (?P<at>.+))?", _read_carried),
    (rf"{_ACT}{_PUT}(?: down)? (?P<parts>.+?)(?: down)?", _read_put),
    (rf"{_SELF} (?:am|are|is|stands?|sits?)(?: {_LEFT})? (?P<at>(?:{_WHERE}) .+)", _read_went),
    (rf"{_ACT}{_GO} (?P<at>.+)", _read_went),
    (rf"{_ACT}{_CHANGE} (?:(?P<before>on|off) )?(?P<thing>.+?)(?: (?P<after>on|off))?", _read_made),
    (rf"(?P<things>.+?) (?:is|are)(?P<denied> not)?(?: {_LEFT})? (?P<rest>.+)", _read_is),
    (rf"(?P<things>.+?) (?:{_STAND}|{_HAVE_BEEN}(?P<denied> not)? {_LEFT}|:) (?P<rest>(?:{_WHERE}) .+)", _read_is),
    (_PARTS, _read_bare),
)  # fmt: skip
"""Forms of a clause, each with its reading; the first that gives one counts."""

_COMPILED = [(re.compile(pattern, re.DOTALL), read) for pattern, read in _FORMS]


def _denied(facts: Sequence[Fact]) -> Reading | None:
    return Reading(tuple((one, f"{NOT}{relation}", other) for one, relation, other in facts)) if facts else None


def located_in(text: str, definite: bool) -> tuple[list[str], list[Fact]] | None:
    """Return the things in "a cup on the table", with all facts."""
    head, *rest = _PLACES.split(text)
    things = names_in(head)
    if things is None:
        return None
    facts: list[Fact] = []
    last: str | None = None
    for mark, word, said in zip(rest[::3], rest[1::3], rest[2::3]):
        relation = PREPOSITIONS[word]
        names = _LISTED.split(said) if relation in ("between", "among") else [said.removesuffix(" ,")]
        places = [_place(name.split(), definite) for name in names]
        about = things if last is None or mark else [last]  # "on the table in the kitchen"
        for place in places:
            if place is None:
                return None
            facts += [(thing, relation, place) for thing in about]
        last = places[-1]
    return things, facts


def names_in(text: str) -> list[str] | None:
    """Return the names in a list; None for no name.

    Two plates are "plate" and "plate 2", as the second of one name is called in the graph.
    """
    found: list[str] = []
    for part in _LISTED.split(text):
        count, one = _count(part.split())
        name = name_in(one)
        if name is None:
            return None
        found += [name, *(f"{name} {number}" for number in range(2, count + 1))]
    return found


def _count(words: list[str]) -> tuple[int, list[str]]:
    """Return how many things words name, and the words of one."""
    rest = words
    while rest and rest[0] in ("the", "my", "our", "your", "these", "those", "only"):
        rest = rest[1:]
    if rest[:3] == ["a", "couple", "of"]:
        rest = ["two", *rest[3:]]
    rest = rest[1:] if rest[:2] == ["a", "dozen"] else rest
    count = _COUNTS.get(rest[0], int(rest[0]) if rest[0].isdecimal() else 1) if rest else 1
    head = rest.index("of", 1) - 1 if "of" in rest[1:] else len(rest) - 1
    if not 1 < count <= max(_COUNTS.values()) or head < 1 or (one := singular(rest[head])) == rest[head]:
        return 1, words
    return count, [*rest[1:head], one, *rest[head + 1 :]]


def name_in(words: Sequence[str]) -> str | None:
    """Return the name in "the two red mugs"; None for no name."""
    while words and (words[0] in KINDS["article"] or (words[0].isdigit() and _is_count(words))):
        words = words[1:]
    if not 0 < len(words) <= _MAX_NAME or words[0] == "of" or words[-1] == "of" or all(map(str.isdigit, words)):
        return None
    wrong = any(
        word in NO_NAME or word in KINDS["article"] or not word[0].isalnum() or _is_adverb(word) for word in words
    )
    return None if wrong else " ".join(words)


def _place(words: list[str], definite: bool) -> str | None:
    """Return a place's name; None for "on the phone", "at 80 percent"."""
    name = name_in(words)
    if name is None or words[0].isdigit() or words[0] in KINDS["hour"] or _is_figure(name):
        return None
    is_definite = words[0] in _DEFINITE or words[0].endswith(("'s", "’s")) or words[-1].isdigit()
    return name if is_definite or not definite else None


def _is_figure(name: str) -> bool:
    return name.rpartition(" ")[2] in KINDS["figure"] or name.partition(" of ")[0].rpartition(" ")[2] in KINDS["figure"]


def _has_verb(thing: str) -> bool:
    """Decide whether a word of a bare name may be a verb."""
    first, _, last = thing.rpartition(" ")
    if not _MAY_BE_VERB.isdisjoint(thing.split()[1:]) or thing == "hold":
        return True
    if not first:
        return False
    return _DONE.fullmatch(last) is not None or last in IRREGULAR or (last[-1] == "s" and last[-2:] not in ("ss", "us"))


def _is_adverb(word: str) -> bool:
    return word.endswith("ly") and word not in ("jelly", "lily", "fly", "dolly", "brolly", "trolly")


def is_name(text: str) -> bool:
    """Return whether a text can name one thing, without an article."""
    parts = [part.split() for part in _OF_PLACE.split(normal(text), maxsplit=1)]
    wrong = NO_NAME | KINDS["article"] | KINDS["guess"]
    return all(0 < len(words) <= _MAX_NAME for words in parts) and not any(
        word in wrong or "," in word or _is_adverb(word) for words in parts for word in words
    )


def _is_count(words: Sequence[str]) -> bool:
    """Return whether words begin with a count, as in "20 plates"."""
    return words[0] == "1" or singular(words[-1]) != words[-1]


class EnglishReader(Reader):
    """Plain English; it names no rooms and reads no goals."""

    name = "english"

    def read(self, text: str) -> Reading:
        return read_english(text)


ENGLISH = EnglishReader()
