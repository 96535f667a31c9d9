"""Parses a user's sentences into object semantics and user patterns, by rules.

    knowledge_in("Put the mug on the shelf. The mug is red with a dog on it. It was a gift from my sister.")
    knowledge_in("I usually keep the jug and cup on the table for my afternoon tea.")
    knowledge_in("breakfast: bread on the plate, cup next to the plate")

Object semantics is a name that a thing has for the user ("my favourite mug"); a user pattern is a name for an
arrangement or routine ("afternoon tea"). Sentences of other forms tell nothing, and are no error.

Source: MEMENTO D.1, ExtractKnowledge and ExtractElements, which are model calls there.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from ..readers.reading import legible

OBJECT_SEMANTICS = "object_semantics"
USER_PATTERN = "user_pattern"
SUBTYPES = (OBJECT_SEMANTICS, USER_PATTERN)

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_PREFERENCE = re.compile(
    r"(?:(?:in|on|at|when|while|during|after|before|every|each)\b[^,]*,\s*)?I\s+(?:(?:usually|typically|always|often|normally|generally|really|also)\s+)*"
    r"(?:prefer|like|love|want|tend|enjoy|keep|have|put|place|move|set|arrange|store|display|use|do|start|need|eat)\b",
    re.IGNORECASE,
)
_ALSO_PREFERENCE = re.compile(r",\s+and\s+(?=I\s+(?:usually|typically|always|often|prefer|like|love|want|keep)\b)")
_NAMED_PATTERN = re.compile(r"(?:my\s+|for\s+)?([a-z][a-z' -]{2,40}?)\s*(?:is|means)?\s*:\s+(.+)\Z", re.IGNORECASE)
_MY_IS = re.compile(
    r"(my\s+[a-z' -]+?)\s+(?:is|are|means)\s+(?!not\b|no longer\b)(.+?)(?:,?\s+(?:now|at the moment|these days))?\Z",
    re.IGNORECASE,
)
_AND_MY = re.compile(r",?\s+and\s+(?=my\s+[a-z' -]+?\s+(?:is|are)\s)", re.IGNORECASE)
_IS = re.compile(
    r"(?:the|this|these|those|it|they)\b\s*(?P<things>.*?)\s*\b(?:is|are|was|were|has|have|holds?)\s+(?P<what>.+)\Z",
    re.IGNORECASE,
)
_BELONGS = re.compile(r"(?:the\s+)?(?P<things>.+?)\s+(?P<what>(?:belongs?\s+to|came\s+from)\s+.+)\Z", re.IGNORECASE)
_PERSONAL = re.compile(
    r"\b(?:my|mine|me|our|gift|gifted|favou?rite|heirloom|souvenir|family|friend|inherited|cherished|belongs?)\b",
    re.IGNORECASE,
)
_ADD = re.compile(r"(?:also\s+|please\s+)?add\s+(?P<things>.+?)\s+to\s+my\s+(?P<alias>.+)\Z", re.IGNORECASE)
_TELLS = re.compile(
    r":|['’](?:s|re)\b|belong|came\s+from|\b(?:add|I|my|is|are|was|were|has|have|holds?)\b", re.IGNORECASE
)
"""Without one of these a text is commands alone: each rule above needs one."""

_PURPOSE = re.compile(r"\b(?:for|when|while|before|during|after)\s+(?!each\b)(.+)\Z", re.IGNORECASE)
_AIM = re.compile(
    r"\bto\s+((?!have\b|keep\b|the\b|a\b|put\b|place\b|move\b|set\b|arrange\b|start\b)\w+\s.+)\Z", re.IGNORECASE
)
_ASKS = r"(?=(?:move|put|place|bring|take|set|arrange|return|keep)\b)"
_CLAUSE = re.compile(
    rf"(?:[,;.]\s*|\s+)(?:and\s+)?(?:then|after that|finally|also)\b,?\s+{_ASKS}|;\s*|,?\s+and\s+{_ASKS}",
    re.IGNORECASE,
)
_PLACEMENT = re.compile(
    r"\b(?P<verb>move|put|place|bring|take|set|arrange|return|keep|have|having|keeping|store|display"
    r"|change\s+the\s+positions?\s+of)\s+"
    r"(?P<things>.+?)\s+(?:(?:together|back|ready|displayed|placed|(?:neatly\s+)?arranged|next\s+to\s+each\s+other)\s+)*"
    r"(?:from\s+(?:the\s+)?.+?\s+(?=(?:back\s+)?(?:to|onto|into)\b))?(?:back\s+)?"
    r"(?P<relation>next\s+to|onto|into|to|on|in)\s+(?:the\s+|a\s+|my\s+)?"
    r"(?P<location>[^.,;?!]+)",
    re.IGNORECASE,
)
_NEXT_PLACEMENT = re.compile(
    r"\s*,?\s*(?:and\s+)?(?:then\s+|finally\s+)?(?P<things>(?:the|an?|my)\s.+?)\s+"
    r"(?P<relation>next\s+to|onto|into|to|on|in)\s+(?:the\s+|an?\s+|my\s+)?(?P<location>[^.,;?!]+)",
    re.IGNORECASE,
)
"""What goes on without its verb: "put the cup on the desk, (and) the pen in the drawer"."""

_GOES_ON = re.compile(
    r"\s+and\s+(?:then\s+|finally\s+)?(?=(?:the|an?|my)\s.+?\s(?:onto|into|on|in|next\s+to)\s)", re.IGNORECASE
)
_TOGETHER = re.compile(
    r"\b(?:next\s+to|beside|close\s+to)\s+(?:each\s+other|one\s+another)\b|\bside\s+by\s+side\b", re.IGNORECASE
)
_BESIDE = re.compile(r"\s+(?:next\s+to|beside)\s+(?:the\s+|an?\s+|my\s+)?(.+)\Z", re.IGNORECASE)
_IN_ORDER = re.compile(r"\s+(?:in|by)\s+(?:this|that|the\s+same)\s+\w+\Z", re.IGNORECASE)
_NEXT_CLAUSE = re.compile(r",\s+(?:and|but|while|so)\s+(?:the|my|an?|I)\b.*\Z", re.IGNORECASE)
_SHORT_PLACEMENT = re.compile(
    r"(?P<things>.+?)\s+(?P<relation>next\s+to|onto|into|on|in)\s+(?:the\s+|a\s+)?(?P<location>[^.,;]+)"
)
_ARTICLE = re.compile(r"\A(?:(?:the|an?|my|some|both|then|and|finally|first|of|this|these|two)\s+)+", re.IGNORECASE)
_LIST = re.compile(r",\s*(?:and\s+)?(?:then\s+|finally\s+)?|\s+and\s+(?:then\s+|finally\s+)?", re.IGNORECASE)
_PRONOUNS = frozenset(("it", "them", "both", "they", "these", "those", "everything", "ones", "items", "things"))
_TO_ON = {"to": "on", "onto": "on", "into": "in"}


@dataclasses.dataclass(frozen=True)
class Thing:
    """An object that is talked about; `description` is empty where any of its class is meant."""

    name: str
    description: str = ""


@dataclasses.dataclass(frozen=True)
class Action:
    """One step of a pattern: put `thing` `relation` `location`."""

    thing: Thing
    relation: str
    location: str
    name: str = "place"


@dataclasses.dataclass(frozen=True)
class Knowledge:
    """One thing that a user let know.

    Attributes:
        subtype: `OBJECT_SEMANTICS` or `USER_PATTERN`.
        alias: what the user calls it.
        description: what it is, or the user's sentence.
        things: objects that it is composed of (object semantics).
        actions: steps, in order (user pattern).
        extends: whether it adds to something known by this alias and does not replace it.
    """

    subtype: str
    alias: str
    description: str
    things: tuple[Thing, ...] = ()
    actions: tuple[Action, ...] = ()
    extends: bool = False


def normal(text: str) -> str:
    """A name without its article and marks, in small letters."""
    return " ".join(re.findall(r"\w+", re.sub(r"\A(?:my|the|a|an)\s+", "", text.strip(), flags=re.IGNORECASE).lower()))


def full_name(thing: Thing) -> str:
    """Name and description of a thing."""
    return f"{thing.name} ({thing.description})" if thing.description else thing.name


def about(alias: str, description: str, things: Iterable[str]) -> str:
    """What queries are compared with: the alias, and what it stands for, each once."""
    return " ".join([alias, *([description] if description != alias else []), *things])


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, each without its end mark."""
    text = re.sub(r"\b(It|it|They|they|This|this|That|that)['’](s|re)\b", _spelled_out, text)
    return [part.strip().rstrip(".!?").strip() for part in _SENTENCE.split(" ".join(text.split())) if part.strip()]


def _spelled_out(found: re.Match[str]) -> str:
    return f"{found[1]} {'is' if found[2] == 's' else 'are'}"


def names_in(text: str) -> list[str]:
    """Things in a list: "the jug, the cup, and then a plate" -> jug, cup, plate."""
    names = [_ARTICLE.sub("", part.strip()).strip() for part in _LIST.split(text)]
    return [name for name in names if name]


def knowledge_in(text: str) -> list[Knowledge]:
    """What the sentences of a user tell about the user, in their order."""
    text = " ".join(part for part in _SENTENCE.split(legible(text)) if not part.rstrip().endswith("?"))
    if _TELLS.search(text) is None:
        return []
    sentences = [
        part for whole in sentences_of(text) for part in (_AND_MY.split(whole) if _MY_IS.match(whole) else [whole])
    ]
    named: list[Knowledge] = []
    personal: list[tuple[list[str], str]] = []
    described: dict[str, str] = {}
    preferences: list[str] = []
    commands: list[str] = []
    last: list[str] = []
    for position, sentence in enumerate(sentences, 1):
        if found := _ADD.match(sentence):
            things = tuple(Thing(name) for name in names_in(found["things"]))
            alias = found["alias"].strip()
            named.append(Knowledge(USER_PATTERN, alias, sentence, things, extends=True))
        elif _PREFERENCE.match(sentence):
            preferences += _ALSO_PREFERENCE.split(sentence)
        elif (found := _NAMED_PATTERN.match(sentence)) and not found[1].lower().startswith("the "):
            named.append(_named_pattern(found[1].strip(), found[2], sentence))
        elif (found := _MY_IS.match(sentence)) is not None:
            named.append(_my_thing(found[1].strip(), found[2].strip()))
        elif (found := _BELONGS.match(sentence) or _IS.match(sentence)) is not None and "?" not in sentence:
            if _PERSONAL.search(found["what"]):
                personal.append((_referred(found["things"], last), found["what"].strip()))
            else:
                described |= _descriptions(sentence)
        else:
            commands.append(sentence)
        if position == len(sentences):
            break  # what it names would be for the next one
        if (placed := _PLACEMENT.search(sentence)) and not set(names_in(placed["things"])) & _PRONOUNS:
            last = names_in(placed["things"])
        elif (found := _IS.match(sentence)) and names_in(found["things"]):
            last = names_in(found["things"])
    actions = _actions(commands, described) if preferences else []
    found_patterns = [_preference(sentence, actions, described, len(preferences)) for sentence in preferences]
    return named + [_semantics(things, what, described) for things, what in personal] + found_patterns


def _referred(text: str, last: list[str]) -> list[str]:
    names = [name for name in names_in(text) if name.lower() not in _PRONOUNS]
    return names or list(last)


def _descriptions(sentence: str) -> dict[str, str]:
    """ "The jug is green, and the cup is pink" -> {"jug": "green", "cup": "pink"}."""
    parts = re.split(
        r",?\s+and\s+(?=the\s+[^,]+?\s+(?:is|are|has|have)\b)|,\s+(?=the\s+[^,]+?\s+(?:is|are|has|have)\b)", sentence
    )
    found = {}
    for part in parts:
        match = _IS.match(part)
        if match and match["things"]:
            found[_ARTICLE.sub("", match["things"]).lower()] = match["what"].strip()
    return found


def _thing(name: str, described: dict[str, str]) -> Thing:
    """The thing of a name, with what is said of it, also under a shorter or longer name ("dog statue", "statue")."""
    key = name.lower()
    if key in described:
        return Thing(name, described[key])
    near = [other for other in described if f" {other} " in f" {key} " or other.endswith(f" {key}")]
    return Thing(name, described[near[0]] if len(near) == 1 else "")


def _semantics(names: list[str], what: str, described: dict[str, str]) -> Knowledge:
    things = tuple(_thing(name, described) for name in names)
    detail = "; ".join(f"{thing.name}: {thing.description}" if thing.description else thing.name for thing in things)
    alias = re.sub(r"\A(?:part of|an?|the)\s+", "", what)
    return Knowledge(OBJECT_SEMANTICS, alias, detail or what, things)


def _my_thing(alias: str, what: str) -> Knowledge:
    """ "my favourite mug is the red one": the thing is what the alias ends in."""
    return Knowledge(OBJECT_SEMANTICS, alias, what, (Thing(alias.split()[-1], what),))


def _named_pattern(alias: str, text: str, sentence: str) -> Knowledge:
    actions = []
    for part in re.split(r"[,;]\s*(?:and\s+|then\s+)*", text):
        found = _PLACEMENT.search(part) or _SHORT_PLACEMENT.match(part)
        if found:
            actions += _placed(found, {}, [])[0]
    return Knowledge(USER_PATTERN, alias, sentence, actions=tuple(actions))


def _placed(found: re.Match[str], described: dict[str, str], last: list[str]) -> tuple[list[Action], list[str]]:
    names = names_in(found["things"])
    if not names or names[0].lower() in _PRONOUNS:
        names = last
    relation = " ".join(found["relation"].lower().split())
    location = _IN_ORDER.sub("", _GOES_ON.split(found["location"])[0].strip())
    if relation == "next to" and (rest := re.match(r"each other\s+(on|in)\s+(?:the\s+)?(.+)", location)):
        relation, location = rest[1], rest[2]
    elif relation == "next to" and location.startswith("each other"):
        return _side_by_side(names, described), names
    relation = _TO_ON.get(relation, relation)
    if relation != "next to" and (rest := _BESIDE.search(location)):
        there = [Action(_thing(name, described), relation, location[: rest.start()]) for name in names]
        return [*there, *(Action(action.thing, "next to", rest[1]) for action in there)], [*names, rest[1]]
    both = [*names, *names_in(location)[:1]] if relation == "next to" else names
    return [Action(_thing(name, described), relation, location) for name in names], both


def _side_by_side(names: list[str], described: dict[str, str]) -> list[Action]:
    return [Action(_thing(name, described), "next to", names[0]) for name in names[1:]]


def _actions(sentences: list[str], described: dict[str, str]) -> list[Action]:
    """The placements that commands ask for, in order, each once."""
    actions: list[Action] = []
    last: list[str] = []
    for sentence in sentences:
        for clause in _CLAUSE.split(sentence):
            found = _PLACEMENT.search(clause)
            while found:
                placed, last = _placed(found, described, last)
                for action in placed:
                    _take(actions, action)
                more = _GOES_ON.search(found["location"])
                end = found.start("location") + more.start() if more else found.end()
                found = _NEXT_PLACEMENT.match(found.string, end)
            if _TOGETHER.search(clause):
                for action in _side_by_side(last, described):
                    _take(actions, action)
    return actions


def _take(actions: list[Action], action: Action) -> None:
    """Add an action; one that says the place of the last one again, or more of it, is no other action.

    "Move the cup to the kitchen table. Put it next to the jug on the table": one table.
    """
    for number in reversed(range(len(actions))):
        old = actions[number]
        if old.thing.name != action.thing.name or (old.relation == "next to") != (action.relation == "next to"):
            continue
        before, now = (set(re.findall(r"\w+", one.location.lower())) - {"the"} for one in (old, action))
        if now <= before:
            return
        if before < now:
            actions[number] = action
            return
        break
    actions.append(action)


def _preference(sentence: str, actions: list[Action], described: dict[str, str], count: int) -> Knowledge:
    """A pattern: its name is what it is for; its steps are the commands', or where there are several, its own."""
    said = re.search(r"\bI\b", sentence)
    start = said.start() if said else 0  # "When tidying, I prefer ... for a tidy look": the purpose comes after "I"
    found = _PURPOSE.search(sentence, start) or _AIM.search(sentence, start)
    alias = (
        _NEXT_CLAUSE.sub("", re.sub(r"\A(?:my|a|an|the|I'm|I am|I)\s+", "", found[1])).strip() if found else sentence
    )
    own = _actions([sentence[: found.start()] if found else sentence], described)
    chosen = own if own and (count > 1 or not actions) else actions
    return Knowledge(USER_PATTERN, alias, sentence, actions=tuple(chosen))
