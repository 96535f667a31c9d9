"""Knowledge about a user from sentences: by rules, or by a chat model.

    knowledge_in("Put the mug on the shelf. The mug is red with a dog on it. It was a gift from my sister.")
    knowledge_in("I usually keep the jug and cup on the table for my afternoon tea.")
    knowledge_in("breakfast: bread on the plate, cup next to the plate")

    ask_knowledge(writer, "I keep the jug on the desk for my night drink.")       # [Knowledge(...)]
    ask_changes(writer, text, found, candidates)                                 # [("update", "k3")]
    ask_references(writer, "Could you set up my night drink?")                      # [("user_pattern", "night drink")]
    ask_words(writer, request, candidates)                                 # {"k3": "For your night drink ..."}

Object semantics is a name that a thing has for the user ("my favourite mug"); a user pattern is a name for an
arrangement or routine ("afternoon tea"). To rules, sentences of other forms tell nothing, and are no error. The chat
model is asked once each, with a strict schema; None is returned where there is no usable answer, then rules do.

Source: MEMENTO D.1, algorithms 1 and 2. Deviations: ExtractKnowledge and ExtractElements are one call, and so are all
LLMResolve of one instruction and all Reformulate of one request.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from ..language.prompt_files import prompt
from .chat_writer import ChatWriter, parse_text
from .readers.reading import legible

OBJECT_SEMANTICS: Final = "object_semantics"
USER_PATTERN: Final = "user_pattern"
SUBTYPES = (OBJECT_SEMANTICS, USER_PATTERN)

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")
_DETERMINER = re.compile(r"\A(?:my|the|a|an)\s+", re.IGNORECASE)
_TELLS = re.compile(
    r":|['’](?:s|re)\b|belong|came\s+from|\b(?:add|I|my|is|are|was|were|has|have|holds?)\b", re.IGNORECASE
)
"""Without one of these a text is commands alone: each rule below needs one."""

# What follows reads single-spaced sentences. What is repeated inside a search is bounded: time is linear in the text.
_PREFERENCE = re.compile(
    r"(?:(?:in|on|at|when|while|during|after|before|every|each)\b[^,]*, ?)?"
    r"I (?:(?:usually|typically|always|often|normally|generally|really|also) )*"
    r"(?:prefer|like|love|want|tend|enjoy|keep|have(?! (?:put|set|kept|left|\w+ed)\b)|put|place|move|set|arrange|store"
    r"|display|use|do|start|need|eat)\b",
    re.IGNORECASE,
)
_ALSO_PREFERENCE = re.compile(r", and (?=I (?:usually|typically|always|often|prefer|like|love|want|keep)\b)")
_NAMED_PATTERN = re.compile(
    r"(?!(?:do|don't|never|please)\b)(?:my |for )?([a-z][a-z' -]{2,40}?) ?(?:is|means)? ?: "
    r"(?!(?:it|they|he|she|we|you)\b)(.+)\Z",
    re.IGNORECASE,
)
_MY_IS = re.compile(
    r"(my [a-z' -]+?) (?:is|are|means) (?!not\b|no longer\b)(.+?)(?:,? (?:now|at the moment|these days))?\Z",
    re.IGNORECASE | re.DOTALL,
)
_AND_MY = re.compile(r",? and (?=my [a-z' -]{1,80}? (?:is|are) )", re.IGNORECASE)
_IS = re.compile(
    r"(?:the|this|these|those|it|they)\b ?(?P<things>.*?) ?\b(?:is|are|was|were|has|have|holds?) (?P<what>.+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_BELONGS = re.compile(r"(?:the )?(?P<things>.+?) (?P<what>(?:belongs? to|came from) .+)\Z", re.IGNORECASE | re.DOTALL)
_PERSONAL = re.compile(
    r"\b(?:my|mine|me|our|gift|gifted|favou?rite|heirloom|souvenir|family|friend|inherited|cherished|belongs?)\b",
    re.IGNORECASE,
)
_ADD = re.compile(r"(?:also |please )?add (?P<things>.+?) to my (?P<alias>.+)\Z", re.IGNORECASE | re.DOTALL)
_AND_THE = re.compile(r"(?:,|,? and) (?=the [^,]{1,80}? (?:is|are|has|have)\b)")
_PURPOSE = re.compile(
    r"\b(?:for|when|while|before|during|after) (?!(?:each|it|them|him|her|you)\b)(.+)\Z", re.IGNORECASE | re.DOTALL
)
_AIM = re.compile(
    r"\bto ((?!have\b|keep\b|the\b|a\b|put\b|place\b|move\b|set\b|arrange\b|start\b)\w+ .+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_ASKS = r"(?=(?:move|put|place|bring|take|set|arrange|return|keep)\b)"
_CLAUSE = re.compile(
    rf"(?:[,;.] ?| )(?:and )?(?:then|after that|finally|also)\b,? {_ASKS}|; ?|,? and {_ASKS}", re.IGNORECASE
)
_TO_PLACE = r"(?P<relation>next to|onto|into|to|on|in) (?:the |an? |my )?(?P<location>[^.,;?!]+)"
_PLACEMENT = re.compile(
    r"(?>.*?\b(?:move|put|place|bring|take|set|arrange|return|keep|have|having|keeping|store|display"
    r"|change the positions? of) )"
    r"(?P<things>.+?) (?:(?:together|back|ready|displayed|placed|(?:neatly )?arranged|next to each other) ){,3}"
    rf"(?:from (?:the )?.{{1,80}}? (?=(?:back )?(?:to|onto|into)\b))?(?:back )?{_TO_PLACE}",
    re.IGNORECASE,
)
"""The first verb alone is tried: where no place follows it, none follows a later one."""

_NEXT_PLACEMENT = re.compile(
    rf" ?,? ?(?:and )?(?:then |finally )?(?P<things>(?:the|an?|my) .+?) {_TO_PLACE}", re.IGNORECASE
)
"""A placement without its verb: "put the cup on the desk, (and) the pen in the drawer"."""

_GOES_ON = re.compile(
    r" and (?:then |finally )?(?=(?:the|an?|my) .{1,80}? (?:onto|into|on|in|next to) )", re.IGNORECASE
)
_TOGETHER = re.compile(r"\b(?:next to|beside|close to) (?:each other|one another)\b|\bside by side\b", re.IGNORECASE)
_BESIDE = re.compile(r" (?:next to|beside) (?:the |an? |my )?(.+)\Z", re.IGNORECASE | re.DOTALL)
_IN_ORDER = re.compile(r" (?:in|by) (?:this|that|the same) \w+\Z", re.IGNORECASE)
_NEXT_CLAUSE = re.compile(r", (?:and|but|while|so) (?:the|my|an?|I)\b.*\Z", re.IGNORECASE | re.DOTALL)
_SHORT_PLACEMENT = re.compile(
    r"(?P<things>.+?) (?P<relation>next to|onto|into|on|in) (?:the |a )?(?P<location>[^.,;]+)"
)
_ARTICLE = re.compile(r"\A(?:(?:the|an?|my|some|both|then|and|finally|first|of|this|these|two) )+", re.IGNORECASE)
_LIST = re.compile(r"(?:, ?(?:and )?| and )(?:then |finally )?", re.IGNORECASE)
_PRONOUNS = frozenset(("it", "them", "both", "they", "these", "those", "everything", "ones", "items", "things"))
_TO_ON = {"to": "on", "onto": "on", "into": "in"}


class Thing(NamedTuple):
    """An object that is talked about; without a description, any of its class."""

    name: str
    description: str = ""


class Action(NamedTuple):
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

    subtype: Literal["object_semantics", "user_pattern"]
    alias: str
    description: str
    things: tuple[Thing, ...] = ()
    actions: tuple[Action, ...] = ()
    extends: bool = False


def knowledge_of(row: Mapping[str, Any]) -> Knowledge:
    """Make the knowledge of a row of an event."""
    things = tuple(Thing(*one) for one in row.get("things", ()))
    actions = tuple(Action(Thing(*thing), *rest) for thing, *rest in row.get("actions", ()))
    return Knowledge(**{**row, "things": things, "actions": actions})


def normal(text: str) -> str:
    """Return a name in small letters without its article and marks."""
    return " ".join(_WORD.findall(_DETERMINER.sub("", text.strip()).lower()))


def full_name(thing: Thing) -> str:
    """Name and description of a thing."""
    return f"{thing.name} ({thing.description})" if thing.description else thing.name


def about(alias: str, description: str, things: Iterable[str]) -> str:
    """Return the words that queries are compared with, each once."""
    return " ".join([alias, *([description] if description != alias else []), *things])


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each without its end mark."""
    text = re.sub(r"\b(It|it|They|they|This|this|That|that)['’](s|re)\b", _spelled_out, text)
    return [part.strip().rstrip(".!?").strip() for part in _SENTENCE.split(" ".join(text.split())) if part.strip()]


def _spelled_out(found: re.Match[str]) -> str:
    return f"{found[1]} {'is' if found[2] == 's' else 'are'}"


def names_in(text: str) -> list[str]:
    """Return the things of a list.

    "the jug, the cup, and then a plate" -> jug, cup, plate.
    """
    names = [_ARTICLE.sub("", part.strip()).strip() for part in _LIST.split(text)]
    return [name for name in names if name]


def knowledge_in(text: str) -> list[Knowledge]:
    """Return what a user's sentences tell about the user, in order."""
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
        if (placed := _PLACEMENT.match(sentence)) and not set(names_in(placed["things"])) & _PRONOUNS:
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
    """Return name -> description.

    "The jug is green, and the cup is pink" -> {"jug": "green", "cup": "pink"}.
    """
    found = {}
    for part in _AND_THE.split(sentence):
        match = _IS.match(part)
        if match and match["things"]:
            found[_ARTICLE.sub("", match["things"]).lower()] = match["what"].strip()
    return found


def _thing(name: str, described: dict[str, str]) -> Thing:
    """Return the thing of a name with its description.

    A shorter or longer name will do ("dog statue", "statue").
    """
    key = name.lower()
    if key in described:
        return Thing(name, described[key])
    near = [other for other in described if f" {other} " in f" {key} " or other.endswith(f" {key}")]
    return Thing(name, described[near[0]] if len(near) == 1 else "")


def _semantics(names: list[str], what: str, described: dict[str, str]) -> Knowledge:
    things = tuple(_thing(name, described) for name in names)
    detail = "; ".join(f"{thing.name}: {thing.description}" if thing.description else thing.name for thing in things)
    alias = re.sub(r"\A(?:part of|an?|the) ", "", what)
    return Knowledge(OBJECT_SEMANTICS, alias, detail or what, things)


def _my_thing(alias: str, what: str) -> Knowledge:
    """Return the knowledge in "my favourite mug is the red one"."""
    return Knowledge(OBJECT_SEMANTICS, alias, what, (Thing(alias.split()[-1], what),))


def _named_pattern(alias: str, text: str, sentence: str) -> Knowledge:
    actions = []
    for part in re.split(r"[,;] ?(?:and |then )*", text):
        found = _PLACEMENT.match(part) or _SHORT_PLACEMENT.match(part)
        if found:
            actions += _placed(found, {}, [])[0]
    return Knowledge(USER_PATTERN, alias, sentence, actions=tuple(actions))


def _placed(found: re.Match[str], described: dict[str, str], last: list[str]) -> tuple[list[Action], list[str]]:
    names = names_in(found["things"])
    if not names or names[0].lower() in _PRONOUNS:
        names = last
    relation = " ".join(found["relation"].lower().split())
    location = _IN_ORDER.sub("", _GOES_ON.split(found["location"])[0].strip())
    if relation == "next to" and (rest := re.match(r"each other (on|in) (?:the )?(.+)", location)):
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
    """Return the placements that commands ask for, in order, each once."""
    actions: list[Action] = []
    last: list[str] = []
    for sentence in sentences:
        for clause in _CLAUSE.split(sentence):
            found = _PLACEMENT.match(clause)
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
    """Add an action; a repeated place is skipped, a fuller one replaces.

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
    """Return a pattern, named by its purpose.

    Its steps are the commands', or where there are several, its own.
    """
    said = re.search(r"\bI\b", sentence)
    start = said.start() if said else 0  # "When tidying, I prefer ... for a tidy look": the purpose comes after "I"
    found = _PURPOSE.search(sentence, start) or _AIM.search(sentence, start)
    alias = _NEXT_CLAUSE.sub("", re.sub(r"\A(?:my|a|an|the|I'm|I am|I) ", "", found[1])).strip() if found else sentence
    own = _actions([sentence[: found.start()] if found else sentence], described)
    chosen = own if own and (count > 1 or not actions) else actions
    return Knowledge(USER_PATTERN, alias, sentence, actions=tuple(chosen))


Candidate = Mapping[str, Any]
"""Knowledge with all below it: id, subtype, alias, description, objects, patterns."""

_TEXT = {"type": "string", "minLength": 1, "maxLength": 400}
_MAX = 16


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def _list(items: dict[str, Any], least: int = 0, most: int = _MAX) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


_SUBTYPE = {"type": "string", "enum": list(SUBTYPES)}
_THINGS = _list({**_object(name=_TEXT, description={"type": "string", "maxLength": 400}), "required": ["name"]})
_PATTERNS = _list(_object(name=_TEXT, args=_list(_TEXT, 3, 3)))
_KNOWLEDGE = _object(subtype=_SUBTYPE, alias=_TEXT, description=_TEXT, objects=_THINGS, patterns=_PATTERNS)
_KNOWLEDGE["required"] = ["subtype", "alias", "description"]
KNOWLEDGE = _object(knowledge=_list(_KNOWLEDGE))
_DO = ("add", "update", "extend")
CHANGES = _object(
    changes=_list(
        _object(new={"type": "integer"}, do={"type": "string", "enum": list(_DO)}, id={"type": ["string", "null"]})
    )
)
REFERENCES = _object(references=_list(_object(subtype=_SUBTYPE, alias=_TEXT)))
DESCRIPTIONS = _object(descriptions=_list(_object(id={"type": "string"}, text=_TEXT)))

_KINDS = "names that things have for the user (object_semantics) and names of arrangements or routines (user_pattern)"
_EXTRACT = prompt("embodied_mem.memory", "knowledge").format(kinds=_KINDS)
_RESOLVE = prompt("embodied_mem.memory", "knowledge_update")
_REFER = prompt("embodied_mem.memory", "references").format(kinds=_KINDS)
_REFORMULATE = prompt("embodied_mem.memory", "descriptions")


def ask_knowledge(writer: ChatWriter, text: str) -> list[Knowledge] | None:
    """Ask for the knowledge in a text: ExtractKnowledge and ExtractElements."""
    return writer.ask(_EXTRACT, text, lambda value: list(map(_knowledge, value["knowledge"])), KNOWLEDGE)


def _knowledge(one: Mapping[str, Any]) -> Knowledge:
    things = [Thing(parse_text(o["name"]), str(o.get("description") or "")) for o in one.get("objects", ())]
    described = {thing.name: thing for thing in things}
    actions = []
    for pattern in one.get("patterns", ()):
        name, relation, location = map(parse_text, pattern["args"])
        actions.append(Action(described.get(name, Thing(name)), relation, location, parse_text(pattern["name"])))
    composed = tuple(things) if one["subtype"] == OBJECT_SEMANTICS else ()
    alias, description = parse_text(one["alias"]), parse_text(one["description"])
    return Knowledge(one["subtype"], alias, description, composed, tuple(actions))


def ask_changes(
    writer: ChatWriter, text: str, found: Sequence[Knowledge], known: Sequence[Candidate]
) -> list[tuple[str, str | None]] | None:
    """Ask for the known knowledge to update or extend: LLMResolve."""
    new = [
        {"new": i, "subtype": k.subtype, "alias": k.alias, "description": k.description} for i, k in enumerate(found)
    ]
    question = json.dumps({"said": text, "new": new, "known": list(known)}, ensure_ascii=False)
    return writer.ask(_RESOLVE, question, lambda value: _changes(value["changes"], found, known), CHANGES)


def _changes(
    changes: Sequence[Mapping[str, Any]], found: Sequence[Knowledge], known: Sequence[Candidate]
) -> list[tuple[str, str | None]]:
    if sorted(change["new"] for change in changes) != list(range(len(found))):
        raise ValueError(f"expected one change for each of {len(found)}")
    subtypes = {one["id"]: one["subtype"] for one in known}
    chosen: list[tuple[str, str | None]] = []
    for change in sorted(changes, key=lambda change: int(change["new"])):
        target = None if change["do"] == "add" else change["id"]
        if change["do"] != "add" and subtypes.get(target) != found[change["new"]].subtype:
            raise ValueError(f"expected an id of a known one of the same subtype, got {target!r}")
        chosen.append((change["do"], target))
    targets = [target for do, target in chosen if do == "update"]
    if len(targets) != len(set(targets)):
        raise ValueError("expected at most one update of each")
    return chosen


def ask_references(writer: ChatWriter, request: str) -> list[tuple[str, str]] | None:
    """Ask for (subtype, alias) of a request's references: ExtractKnowledge."""
    return writer.ask(
        _REFER, request, lambda value: [(r["subtype"], parse_text(r["alias"])) for r in value["references"]], REFERENCES
    )


def ask_words(writer: ChatWriter, request: str, known: Sequence[Candidate]) -> dict[str, str] | None:
    """Ask for each entry in plain words, by id: Reformulate."""

    def read(value: Mapping[str, Any]) -> dict[str, str]:
        texts = {one["id"]: parse_text(one["text"]) for one in value["descriptions"]}
        if texts.keys() != {one["id"] for one in known}:
            raise ValueError("expected one description for each entry")
        return texts

    question = json.dumps({"request": request, "known": list(known)}, ensure_ascii=False)
    return writer.ask(_REFORMULATE, question, read, DESCRIPTIONS)
