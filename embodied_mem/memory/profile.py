"""User profile: a graph of three levels (user, knowledge, elements), built from the user's sentences.

    profile = UserProfile(Scope(user="james"))
    profile.tell("I usually keep the jug and cup on the bedroom table for my night drink.", episode=0, step=0, time=0)
    profile.retrieve("Could you set up my night drink?")[0].text
    # "night drink: place jug on bedroom table; then place cup on bedroom table"
    profile.nodes(), profile.edges()            # MEMENTO's tables 8 and 7

Each knowledge is a list of versions, with their times and sources; the graph is made from the last ones. Nodes: user;
knowledge (subtype object_semantics or user_pattern, alias, description); pattern (name, args); object (name,
granularity); location (name, expression). Hierarchical edges: user refers_to knowledge, knowledge entails pattern,
knowledge composed_of object, pattern target object or location. Temporal edges: pattern before pattern. Objects and
locations are in the graph once. Rules read the sentences (`knowledge`), or a chat writer, with the rules behind it.
What the user denies later has an end (`claims`).

Source: MEMENTO D.1, algorithms 1 (`propose`) and 2 (`recall`). Where there is no writer, or it has no usable answer,
rules decide whether something is new or an update. A pattern of the same alias is an update. So is object semantics of
the same alias about the very same things, or about the same class if the user calls it "my ..." (there is one favourite
mug, but there can be two gifts from a friend). So is what is at least `similar` and about the same things. What is
about no things at all is an update of the same words alone.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NotRequired, Self, TypedDict

from ..errors import InvalidInputError
from .arguments import checked_number, checked_real, checked_text, shown
from .chat_writer import ChatWriter, checked_writer
from .claims import claims_in
from .embedders import Embedder
from .events import Count, When, check
from .graph import Scope
from .knowledge import (
    OBJECT_SEMANTICS,
    SUBTYPES,
    USER_PATTERN,
    Action,
    Knowledge,
    Thing,
    about,
    ask_changes,
    ask_knowledge,
    ask_references,
    ask_words,
    full_name,
    knowledge_in,
    knowledge_of,
    normal,
    sentences_of,
)
from .record import Record, RecordMemory, Source
from .search import SIMILAR, QueryEmbedder, TextIndex
from .stored_modules import Selector
from .trust import unmarked

EVENT = "profile event"
_MAX_CANDIDATES = 5
_MAX_DENIED = 16
"""Knowledge most similar to a denial that is looked at."""


class KnowledgeChange(TypedDict):
    """New knowledge, other words of a target, or its end; `untold`: the event's note tells it no more."""

    target: str | None
    knowledge: NotRequired[Knowledge]
    ended: NotRequired[bool]
    untold: NotRequired[bool]


class ProfileEvent(When):
    """Changes by what the user said; `note`: the number of the note that holds it."""

    op: Literal["tell"]
    changes: list[KnowledgeChange]
    note: NotRequired[Count | None]


class Version(NamedTuple):
    """Knowledge as the user told it for a while.

    Attributes:
        things: objects that it is composed of.
        actions: steps, in order.
        since, until: times; the second is None while it is so.
        sources: [episode, step] of each time that it was told.
        notes: numbers of the notes that told this or an earlier version.
    """

    alias: str
    description: str
    things: tuple[Thing, ...]
    actions: tuple[Action, ...]
    since: int
    until: int | None
    sources: tuple[tuple[int, int], ...]
    notes: tuple[Count, ...]

    @property
    def all_things(self) -> list[Thing]:
        """Each thing that it is about, once."""
        things = [*self.things, *(action.thing for action in self.actions)]
        if len(things) < 2:
            return things
        return list({normal(full_name(thing)): thing for thing in reversed(things)}.values())[::-1]

    @property
    def names(self) -> list[str]:
        """Names of the things that it is about."""
        return list(map(full_name, self.all_things))

    @property
    def steps(self) -> list[list[str]]:
        """(thing, relation, location) of each action."""
        return [[one.thing.name, one.relation, one.location] for one in self.actions]

    @property
    def about(self) -> str:
        """The words that queries are compared with."""
        return about(self.alias, self.description, self.names)

    def text(self, subtype: str) -> str:
        """Write the alias and what it stands for: one line."""
        if subtype == OBJECT_SEMANTICS:
            told = ", ".join(self.names) or self.description
        else:
            told = "; then ".join(f"place {' '.join(step)}" for step in self.steps) or self.description
            extra = list(map(full_name, self.things))
            told += f"; with {', '.join(extra)}" if extra and self.actions else ""
        return self.alias if told == self.alias else f"{self.alias}: {told}"


class Saying(NamedTuple):
    """One time that the user told knowledge, or, without knowledge, ended it.

    Attributes:
        source: [episode, step].
        note: number of the note that holds it.
        untold: whether that note tells it no more.
    """

    knowledge: Knowledge | None
    source: tuple[int, int]
    time: int
    note: Count | None
    untold: bool


class KnownRow(TypedDict):
    """Knowledge in a state."""

    id: str
    subtype: Literal["object_semantics", "user_pattern"]
    said: list[Saying]


class Known:
    """Knowledge under one id: what was said of it, and the versions that this makes, oldest first."""

    def __init__(self, id: str, subtype: str, sayings: Iterable[Saying] = ()):
        self.id, self.subtype = id, subtype
        self.sayings: list[Saying] = []
        self.versions: list[Version] = []
        for saying in sayings:
            self.say(saying)

    def fork(self) -> Known:
        """Make an independent copy."""
        other = Known(self.id, self.subtype)
        other.sayings, other.versions = list(self.sayings), list(self.versions)
        return other

    def row(self) -> dict[str, Any]:
        """Make the row of a state."""
        rows = [(first and dataclasses.asdict(first), *rest) for first, *rest in self.sayings]
        return {"id": self.id, "subtype": self.subtype, "said": rows}

    def without(self, selector: Selector) -> Known:
        """Make what is left where an episode or an object is forgotten."""
        return Known(self.id, self.subtype, [one for one in self.sayings if not _is_gone(one, selector)])

    def say(self, saying: Saying) -> None:
        """Change the versions by one saying."""
        knowledge, source, time, note, untold = saying
        if knowledge is None:
            if not self.versions:
                return  # what it ended was forgotten
            if self.now.until is None:
                self.versions[-1] = self.now._replace(until=time)
        else:
            if self.versions:
                self._tell(knowledge, source, time)
            else:
                self.versions.append(version_of(knowledge, source, time))
            if note is not None:
                notes = [number for number in self.now.notes if number != note]
                self.versions[-1] = self.now._replace(notes=tuple(notes if untold else [*notes, note]))
        self.sayings.append(saying)

    @property
    def now(self) -> Version:
        """The last version."""
        return self.versions[-1]

    def at(self, time: int | None) -> Version:
        """Find the version of a time; before the first one began, that."""
        began = [one for one in self.versions if time is None or one.since <= time]
        return began[-1] if began else self.versions[0]

    def is_so(self, time: int | None = None) -> bool:
        """Return whether the user refers to it, or did at a time."""
        if time is None:
            return self.now.until is None
        return any(one.since <= time and (one.until is None or time < one.until) for one in self.versions)

    def _tell(self, said: Knowledge, source: tuple[int, int], time: int) -> None:
        """Make a version if the text differs or the last one ended."""
        was = self.now
        new = version_of(said, source, time)._replace(notes=was.notes)
        if said.extends:
            new = new._replace(alias=was.alias, description=was.description)
        if said.extends or not (said.things or said.actions):
            things = {normal(full_name(one)): one for one in (*was.things, *new.things)}
            actions = {(one.thing.name, one.relation, one.location): one for one in (*was.actions, *new.actions)}
            new = new._replace(things=tuple(things.values()), actions=tuple(actions.values()))
        same = was[:2] == new[:2] and was.text(self.subtype) == new.text(self.subtype)
        if was.since < time and (was.until is not None or not same):
            self.versions[-1:] = [was if was.until is not None else was._replace(until=time), new]
        else:
            sources = was.sources if source in was.sources else (*was.sources, source)
            self.versions[-1] = new._replace(since=was.since, sources=sources)


def version_of(said: Knowledge, source: tuple[int, int], time: int) -> Version:
    """Make the first version of what is said."""
    return Version(said.alias, said.description, said.things, said.actions, time, None, (source,), ())


def known_of(row: Mapping[str, Any]) -> Known:
    """Make the knowledge of a row of a state."""
    sayings = (Saying(knowledge_of(first) if first else None, (source[0], source[1]), *rest)
            for first, source, *rest in row["said"])  # fmt: skip
    one = Known(row["id"], row["subtype"], sayings)
    if not one.versions or not re.fullmatch("k[0-9]+", one.id):
        raise InvalidInputError(f"state: known: expected an id and what was said, got {shown(row)}")
    return one


class UserProfile(RecordMemory):
    """The graph of one scope's user."""

    format_name = "embodied_mem.user_profile"
    module = "profile"

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        embedder: Embedder | None = None,
        writer: ChatWriter | None = None,
        similar: float = 0.8,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make a graph that holds the user's node alone.

        Args:
            scope, record: as for `RecordedModule`; the scope's `user` names the user.
            embedder: None for word vectors, or the lexical one where their table is not installed.
            writer: reads what the user says; None for rules alone.
            similar: cosine from which on a description about the same things is an update.
        """
        if not 0 < checked_real("similar", similar) <= 1:
            raise InvalidInputError(f"similar: expected a cosine in (0, 1], got {similar}")
        super().__init__(scope, record)
        self.embedder = QueryEmbedder.of(embedder)
        self._writer = checked_writer(writer)
        self._similar = similar
        self._clear()

    def _clear(self) -> None:
        self.known: dict[str, Known] = {}
        self._count = 0  # of ids that were given
        self._index()

    # Changing.

    def tell(self, text: str, *, episode: int, step: int, time: int) -> None:
        """Take note of what a user said."""
        self._record(self.propose(text, episode=episode, step=step, time=time))

    def propose(self, text: str, *, episode: int, step: int, time: int, note: int | None = None) -> dict[str, Any]:
        """Return the event that `tell` records; nothing changes.

        The writer is asked here, never on replay.

        Args:
            text: what the user said.
            episode, step, time: when.
            note: number of the note that holds the text; None for none.
        """
        text = checked_text("text", text)
        event: dict[str, Any] = {"op": "tell", "time": time, "episode": episode, "step": step, "changes": []}
        if unmarked(text)[1] is not None:
            return event  # what others say is nothing of the user's
        read = None if self._writer is None else ask_knowledge(self._writer, text)
        if read is None:
            resolutions = [(knowledge, self._resolve(knowledge)) for knowledge in knowledge_in(text)]
        else:
            resolutions = self._resolved(text, read)
        for knowledge, target in resolutions:
            event["changes"].append({"target": target, "knowledge": dataclasses.asdict(knowledge)})
        if ended := self._denied(text):
            event["changes"] += [{"target": target, "ended": True} for target in ended]
        if note is not None:
            event["note"] = note
        return event

    def untold(self, left: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
        """Return changes of knowledge that lost a note: other texts, ends.

        Args:
            left: knowledge -> the other texts that told it and are still so, the latest first.
        """
        changes: list[dict[str, Any]] = []
        for target, texts in left.items():
            read = (one for text in texts for one in knowledge_in(text) if self._resolve(one) == target)
            if (knowledge := next(read, None)) is None:
                changes.append({"target": target, "ended": True})
            else:
                changes.append({"target": target, "knowledge": dataclasses.asdict(knowledge), "untold": True})
        return changes

    def _resolved(self, text: str, found: Sequence[Knowledge]) -> list[tuple[Knowledge, str | None]]:
        """Return what the writer read, each with the knowledge that it changes."""
        near: dict[str, None] = {}
        for knowledge in found:
            new = version_of(knowledge, (0, 0), 0)
            for words in dict.fromkeys([new.about, *new.names]):
                for number, _ in self._text_index.search(words, _MAX_CANDIDATES, above=SIMILAR):
                    known = self.known[f"k{number}"]
                    if known.subtype == knowledge.subtype and known.is_so():
                        near.setdefault(known.id)
        shown_to = [self._expanded(number) for number in itertools.islice(near, _MAX_CANDIDATES)]
        said = ask_changes(self._writer, text, found, shown_to) if shown_to and self._writer is not None else None
        if said is None:
            return [(knowledge, self._resolve(knowledge)) for knowledge in found]
        return [(dataclasses.replace(k, extends=do == "extend"), target) for k, (do, target) in zip(found, said)]

    def _expanded(self, number: str) -> dict[str, Any]:
        """Return knowledge with all below it, for the writer."""
        known, now = self.known[number], self.known[number].now
        own = {"id": number, "subtype": known.subtype, "alias": now.alias, "description": now.description}
        return own | {"objects": now.names, "patterns": now.steps}

    def _denied(self, text: str) -> list[str]:
        """Return ids of the knowledge that a text denies."""
        if not len(self._text_index):
            return []
        denials = [claim for claim in claims_in(text) if claim.denied]
        if not denials:
            return []
        found = []
        for number, _ in self._text_index.search(text, _MAX_DENIED, above=0.0):
            known, now = self.known[f"k{number}"], self.known[f"k{number}"].now
            of_mine = known.subtype == OBJECT_SEMANTICS and now.alias.lower().startswith("my ")
            said = claims_in(f"{now.alias} is {now.description}" if of_mine else now.description)
            if known.is_so() and said and all(any(new.ends(old) for new in denials) for old in said):
                found.append(known.id)
        return found

    def _resolve(self, knowledge: Knowledge) -> str | None:
        """Return the id of the knowledge that this updates, or None."""
        new = version_of(knowledge, (0, 0), 0)
        things = set(map(normal, new.names))
        kinds = {normal(thing.name) for thing in knowledge.things}
        called, about = _keys(knowledge.subtype, new)
        if not knowledge.things and not knowledge.actions and not knowledge.extends:  # the same words about no things
            return next(iter(self._called.get(about, ())), None)
        definite = knowledge.subtype == USER_PATTERN or knowledge.alias.lower().startswith("my ")
        for known in map(self.known.__getitem__, self._called.get(about if things and not definite else called, ())):
            one_kind = knowledge.subtype == USER_PATTERN or {normal(one.name) for one in known.now.all_things} == kinds
            if (definite and one_kind) or set(map(normal, known.now.names)) == things:
                return known.id
        for number, cosine in self._text_index.search(new.about, _MAX_CANDIDATES):
            known = self.known[f"k{number}"]
            is_like = cosine >= self._similar and known.subtype == knowledge.subtype
            if is_like and set(map(normal, known.now.names)) == things:
                return known.id
        return None

    def check(self, event: Mapping[str, Any]) -> None:
        check(ProfileEvent, EVENT, event)
        if any("knowledge" not in change and not change.get("ended") for change in event["changes"]):
            raise InvalidInputError(f"{EVENT}: changes: expected knowledge or an end, got {shown(event['changes'])}")

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """Apply as `RecordedModule`. Raises InvalidInputError for unknown knowledge and changes nothing then."""
        for change in event["changes"]:
            target = change["target"]
            if target not in self.known and (target is not None or change.get("ended")):
                raise InvalidInputError(f"{EVENT}: expected known nodes, got {shown(target)}")
        source, time = (event["episode"], event["step"]), event["time"]
        self.changed = list[tuple[str, str]]()
        for change in event["changes"]:
            target = change["target"]
            if change.get("ended"):
                self.known[target].say(Saying(None, source, time, None, False))
                self.changed.append(("end", target))
                continue
            knowledge = knowledge_of(change["knowledge"])
            if target is None:
                self._count += 1
                known = self.known[f"k{self._count}"] = Known(f"k{self._count}", knowledge.subtype)
            else:
                known = self.known[target]
                for key in _keys(known.subtype, known.now):
                    self._called[key].pop(target)
            known.say(Saying(knowledge, source, time, event.get("note"), change.get("untold", False)))
            self._enter(known)
            self._text_index.add(int(known.id[1:]), known.now.about)
            self.changed.append(("add" if target is None else "update", known.id))

    # Reading.

    def nodes(self) -> list[dict[str, Any]]:
        """Return all nodes, as in MEMENTO's table 8."""
        return self._graph()[0]

    def edges(self) -> list[dict[str, Any]]:
        """Return the edges that are true, as in MEMENTO's table 7."""
        return self._graph()[1]

    def _graph(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        nodes: dict[tuple[str, Any], dict[str, Any]] = {}
        edges: list[dict[str, Any]] = []
        counts = dict.fromkeys("pol", 0)

        def node(kind: str, key: Any, **attributes: Any) -> str:
            if (kind, key) not in nodes:
                counts[kind[0]] += 1
                nodes[kind, key] = {"id": f"{kind[0]}{counts[kind[0]]}", "type": kind, **attributes}
            return str(nodes[kind, key]["id"])

        def edge(source: str, relation: str, target: str) -> None:
            kind = "Temporal" if relation == "before" else "Hierarchical"
            edges.append({"source": source, "target": target, "type": kind, "relation": relation})

        def thing_node(thing: Thing) -> str:
            name = full_name(thing)
            return node("object", normal(name), name=name, granularity="instance" if thing.description else "class")

        nodes["user", ""] = {"id": "u1", "type": "user", "name": self.scope.user or "user"}
        for known in self.known.values():
            now, id, first, before = known.now, known.id, len(edges), ""
            own = {"subtype": known.subtype, "alias": now.alias, "description": now.description}
            nodes["knowledge", id] = {"id": id, "type": "knowledge", **own}
            edge("u1", "refers_to", id)
            for thing in now.things:
                edge(id, "composed_of", thing_node(thing))
            for number, action in enumerate(now.actions):
                pattern = node("pattern", (id, number), name=action.name, args=now.steps[number])
                edge(id, "entails", pattern)
                edge(pattern, "target", thing_node(action.thing))
                name = "_".join(re.findall(r"\w+", action.location.lower()))
                where = f"{action.relation} the {action.location}"
                edge(pattern, "target", node("location", name, name=name, expression=where))
                if before:
                    edge(before, "before", pattern)
                before = pattern
            if not known.is_so():
                del edges[first:]
        return list(nodes.values()), edges

    def retrieve(
        self,
        query: str,
        k: int = 5,
        subtype: str | None = None,
        *,
        as_of: int | None = None,
        above: float = SIMILAR,
    ) -> list[Record]:
        """Return the knowledge that the sentences of a query are similar to.

        Args:
            query: an instruction.
            k: at most so many.
            subtype: "object_semantics" or "user_pattern"; None for both.
            as_of: None for what the user refers to now; else what the user referred to at this time.
            above: cosine below which nothing is similar; -1 for whoever judges by other means.
        """
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        if subtype is not None and (not isinstance(subtype, str) or subtype not in SUBTYPES):
            raise InvalidInputError(f"subtype: expected one of {', '.join(SUBTYPES)} or None, got {shown(subtype)}")
        if not len(self._text_index):
            return []
        parts = dict.fromkeys([query, *sentences_of(query)])
        return self._nearest([(subtype, part) for part in parts], k, as_of, above)

    def _nearest(
        self, parts: Iterable[tuple[str | None, str]], k: int, as_of: int | None, above: float = SIMILAR
    ) -> list[Record]:
        """Return the `k` most similar to any (subtype or None, text)."""
        best: dict[int, tuple[float, str]] = {}
        parts = list(parts)
        changed = [] if as_of is None else [one for one in self.known.values() if one.now.since > as_of]
        was = {int(one.id[1:]): one.at(as_of).about for one in changed}
        past = TextIndex(self.embedder)
        past.add_many(was.items())
        asked = set[tuple[str | None, bytes]]()  # an end mark less is the same to word vectors
        for subtype, part in parts:
            key = subtype, self.embedder.query(part).tobytes()
            if key in asked:
                continue
            asked.add(key)
            found = self._text_index.search(part, 2 * k if as_of is None else len(self.known))
            for number, cosine in [row for row in found if row[0] not in was] + past.search(part, len(was)):
                known = self.known[f"k{number}"]
                is_asked = subtype in (None, known.subtype) and known.is_so(as_of)
                if is_asked and cosine > max(above, best.get(number, (-1.0, ""))[0]):
                    best[number] = (cosine, part)
        items = []
        for number in sorted(best, key=lambda number: (-best[number][0], number))[:k]:
            known, (cosine, part) = self.known[f"k{number}"], best[number]
            why = f"{known.subtype.replace('_', ' ')} {cosine:.2f} similar to {part!r}"
            items.append(self._record_of(known, known.at(as_of))._replace(score=min(cosine, 1.0), why=why))
        return items

    def recall(self, request: str, k: int = 5) -> list[Record]:
        """Return what a request refers to, in the writer's plain words.

        It is asked once before a task, not at every step.

        Without a writer, or where it has no usable answer, as `retrieve`.

        Source: MEMENTO D.1, algorithm 2.
        """
        references = None if self._writer is None else ask_references(self._writer, checked_text("request", request))
        if self._writer is None or references is None:
            found = self.retrieve(request, k)
        else:
            found = self._nearest(references, checked_number("k", k, least=0), None)
        if self._writer is None or not found:
            return found
        texts = ask_words(self._writer, request, [self._expanded(item.number) for item in found]) or {}
        return [item._replace(text=texts.get(item.number, item.text)) for item in found]

    def numbers(self) -> list[str]:
        return list(self.known)

    def record(self, number: str) -> Record:
        known = self.known[number]
        sources = dict.fromkeys(source for one in known.versions for source in one.sources)
        return self._record_of(known, known.now._replace(sources=tuple(sources)))

    def past(self, number: str) -> list[Record]:
        return [self._record_of(self.known[number], was) for was in self.known[number].versions[:-1]]

    def record_at(self, number: str, time: int) -> Record | None:
        was = self._record_of(self.known[number], self.known[number].at(time))
        return was.until(time) if was.recorded <= time else None

    def _record_of(self, known: Known, was: Version) -> Record:
        """Make the record of a version of knowledge."""
        data = {
            "subtype": known.subtype, "alias": was.alias, "description": was.description, "things": was.names,
            "steps": was.steps, "notes": was.notes,
        }  # fmt: skip
        return Record(
            f"profile:{known.id}", "profile", known.subtype, was.text(known.subtype), data=data, trust="user",
            recorded=known.versions[0].since, valid_from=was.since, ended=was.until,
            sources=tuple(itertools.starmap(Source, was.sources)),
        )  # fmt: skip

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        known = [one.row() for one in self.known.values()]
        return ({"embedder": self.embedder.name, "count": self._count, "known": known},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        check(list[KnownRow], "state: known", state.get("known"))
        known = {row["id"]: known_of(row) for row in state["known"]}
        least = max((int(id[1:]) for id in known), default=0)
        count = checked_number("state: count", state.get("count"), least)
        self.known, self._count = known, count
        self._index()

    def fork(self) -> Self:
        other = super().fork()
        other.known = {id: one.fork() for id, one in self.known.items()}
        other._called = {name: dict(ids) for name, ids in self._called.items()}
        other._text_index, other.changed = self._text_index.fork(), []
        return other

    def _index(self) -> None:
        """Make anew what knowledge is found by."""
        self.changed = []
        self._called: dict[tuple[Any, ...], dict[str, None]] = {}  # `_keys` -> ids
        self._text_index = TextIndex(self.embedder)
        self._text_index.add_many((int(one.id[1:]), one.now.about) for one in self.known.values())
        for one in self.known.values():
            self._enter(one)

    def _enter(self, known: Known) -> None:
        for key in _keys(known.subtype, known.now):
            self._called.setdefault(key, {})[known.id] = None

    def told_by(self, selector: Selector, before: bool = True) -> dict[str, list[int]]:
        """Return ids of a note's knowledge, with the other notes of each.

        Args:
            selector: of a note.
            before: whether knowledge counts of which the note tells only what it was.
        """
        if not (number := selector.number_in("notes")):
            return {}
        found = {}
        for known in self.known.values():
            told = dict.fromkeys(note for one in known.versions if before or one is known.now for note in one.notes)
            if len(others := [note for note in told if str(note) != number]) < len(told):
                found[known.id] = others
        return found

    def is_known(self, knowledge: str) -> bool:
        """Return whether the user still refers to this knowledge."""
        return self.known[knowledge].is_so()

    def read_again(self, said: Iterable[tuple[int, str, Mapping[str, int]]]) -> None:
        """Derive lost knowledge from notes, by rules; nothing is recorded.

        Args:
            said: number, text and episode, step and time of each note, oldest first.
        """
        made: set[str | None] = {None}
        for note, text, where in said:
            read = [(knowledge, self._resolve(knowledge)) for knowledge in knowledge_in(text)]
            changes = [{"target": i, "knowledge": dataclasses.asdict(one)} for one, i in read if i in made]
            self.apply_checked({"op": "tell", **where, "changes": changes, "note": note})
            made.update(number for _, number in self.changed)

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove an object, an episode, or all.

        Knowledge whose words name the object goes, and so does what was said of it or in an episode; versions are made
        anew of what is left.
        """
        self.embedder.clear()
        before = self.known
        if selector.everything or selector.is_user_of(self.scope):
            self._clear()
        left = {}
        for known in self.known.values():
            if selector.is_entry("profile", known.id) or any(map(selector.in_text, _texts(known.now))):
                continue
            rest = known.without(selector)
            if rest.versions:
                left[known.id] = rest
        self.known = left
        self._index()
        counts = [sum(len(one.versions) for one in some.values()) for some in (before, left)]
        return {"knowledge": len(before) - len(left), "versions": counts[0] - counts[1]}


def _is_gone(saying: Saying, selector: Selector) -> bool:
    if saying.knowledge is None:
        return False
    if saying.source[0] == selector.episode:
        return True
    return selector.in_text(" ".join(_texts(version_of(saying.knowledge, saying.source, saying.time))))


def _texts(version: Version) -> list[str]:
    """List all that a version says."""
    steps = [" ".join(step) for step in version.steps]
    return [text.replace("_", " ") for text in (version.alias, version.description, *version.names, *steps)]


def _keys(subtype: str, version: Version) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return two keys of knowledge: its alias; alias with things."""
    alias = subtype, normal(version.alias)
    return alias, (*alias, frozenset(map(normal, version.names)) or normal(version.description))
