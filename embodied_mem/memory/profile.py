"""User profile: a graph of three levels (user, knowledge, elements), built from the user's sentences.

    profile = UserProfile(Scope(user="james"))
    profile.tell("I usually keep the jug and cup on the bedroom table for my night drink.", episode=0, step=0, time=0)
    profile.retrieve("Could you set up my night drink?")[0].text
    # "night drink: place jug on bedroom table; then place cup on bedroom table"
    profile.nodes(), profile.edges()            # MEMENTO's tables 8 and 7

Nodes: user; knowledge (subtype object_semantics or user_pattern, alias, description); pattern (name, args); object
(name, granularity); location (name, expression). Hierarchical edges: user refers_to knowledge, knowledge entails
pattern, knowledge composed_of object, pattern target object or location. Temporal edges: pattern before pattern.
Objects and locations are in the graph once; an edge that is no longer true has an end. Rules read the sentences
(`knowledge`), or a chat writer, with the rules behind it. What the user denies later has an end, too (`claims`).

Source: MEMENTO D.1, algorithms 1 (`propose`) and 2 (`recall`). Where there is no writer, or it has no usable answer,
rules decide whether something is new or an update. A pattern of the same alias is an update. So is object semantics of
the same alias about the very same things, or about the same class if the user calls it "my ..." (there is one favourite
mug, but there can be two gifts from a friend). So is what is at least `similar` and about the same things. What is
about no things at all is an update of the same words alone.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ..errors import InvalidInputError
from .arguments import (
    WHEN,
    Fields,
    checked_event,
    checked_flag,
    checked_mapping,
    checked_number,
    checked_real,
    checked_rows,
    checked_text,
    shown,
)
from .chat_writer import ChatWriter, checked_writer
from .claims import claims_in
from .embedders import Embedder
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
    normal,
    sentences_of,
)
from .record import Record, RecordMemory, Source
from .relevance import SIMILAR
from .search import QueryEmbedder, TextIndex
from .store import Selector
from .trust import unmarked

EVENT = "profile event"


def _knowledge_of(said: Any) -> Knowledge:
    """Return the knowledge in an event. Raises InvalidInputError for anything else."""
    try:
        things = tuple(Thing(**one) for one in said.get("things", ()))
        actions = tuple(Action(**{**one, "thing": Thing(**one["thing"])}) for one in said.get("actions", ()))
        knowledge = Knowledge(**{**said, "things": things, "actions": actions})
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{EVENT}: expected the fields of knowledge, got {shown(said)}: {error}") from error
    texts = [knowledge.subtype, knowledge.alias, knowledge.description]
    texts += [text for thing in (*things, *(one.thing for one in actions)) for text in vars(thing).values()]
    texts += [text for one in actions for text in (one.relation, one.location, one.name)]
    for text in texts:
        checked_text(f"{EVENT}: knowledge", text)
    checked_flag(f"{EVENT}: extends", knowledge.extends)
    if knowledge.subtype not in SUBTYPES:
        raise InvalidInputError(f"{EVENT}: expected {' or '.join(SUBTYPES)}, got {shown(knowledge.subtype)}")
    return knowledge


_PREFIX = {"knowledge": "k", "pattern": "p", "object": "o", "location": "l"}
_TEXTS = {
    "user": ("name",), "knowledge": ("subtype", "alias", "description"), "object": ("name",), "location": ("name",),
    "pattern": ("name",),
}  # fmt: skip
"""Type of node -> what it has that is text."""

_OWN = ("origin", "notes", "past", "since", "said")
"""What a node of knowledge has that MEMENTO's does not."""


@dataclasses.dataclass
class Edge:
    """A row of MEMENTO's table 7, with its times and [episode, step] sources."""

    source: str
    target: str
    type: str
    relation: str
    valid_at: int
    invalid_at: int | None
    sources: list[list[int]]


class ProfileGraph:
    """What one user said, with what it is about.

    Attributes:
        nodes, edges: to read.
        known: knowledge -> the edges from the user, of which the last one alone may have no end.
    """

    def __init__(self, user: str):
        self.nodes: dict[str, dict[str, Any]] = {"u1": {"id": "u1", "type": "user", "name": user}}
        self.edges: list[Edge] = []
        self._counts = {kind: 0 for kind in _PREFIX}
        self._find_again()

    def _find_again(self) -> None:
        """Make anew what nodes and edges are found by."""
        self._named: dict[tuple[str, str], str] = {}  # type and name of an element -> id
        self._called: dict[tuple[str, str], dict[str, None]] = {}  # subtype and alias -> ids of knowledge
        self._edges_of: dict[str, list[Edge]] = {}  # by source
        for node in self.nodes.values():
            self._enter(node)
        for edge in self.edges:
            self._edges_of.setdefault(edge.source, []).append(edge)
        self.known: dict[str, list[Edge]] = {}
        for edge in self._edges_of.get("u1", ()):
            self.known.setdefault(edge.target, []).append(edge)

    def _enter(self, node: Mapping[str, Any]) -> None:
        if node["type"] == "knowledge":
            self._called.setdefault((node["subtype"], normal(node["alias"])), {})[node["id"]] = None
        elif node["type"] in ("object", "location"):
            self._named.setdefault((node["type"], normal(node["name"])), node["id"])

    # Changing.

    def write(self, target: str | None, knowledge: Knowledge, source: list[int], time: int) -> str:
        """Write knowledge, perhaps in place of a target's; return its id."""
        was = None if target is None else self.version(target)
        if target is None:
            node = self._new("knowledge", subtype=knowledge.subtype, alias="", description="", origin=source[0])
        else:
            node = self.nodes[target]
        self._edge("u1", "refers_to", node["id"], source, time)
        if not (knowledge.extends and target is not None):
            self._called.get((node["subtype"], normal(node["alias"])), {}).pop(node["id"], None)
            node |= {"alias": knowledge.alias, "description": knowledge.description, "origin": source[0]}
            self._enter(node)
        before = {edge.target: edge for edge in self.out(node["id"])}
        kept = self._attach(node["id"], knowledge, source, time, list(before))
        if target is not None and not knowledge.extends and kept:
            for other, edge in before.items():
                if other not in kept:
                    self._end_edge(edge, time)
        if was is not None:
            self._keep(node, was, source, time)
        return str(node["id"])

    def _keep(self, node: dict[str, Any], was: dict[str, Any], source: list[int], time: int) -> None:
        """Keep what knowledge was, if it changed or had ended."""
        now = self.version(node["id"])
        same = all(now[name] == was[name] for name in ("alias", "description", "text"))
        if was["since"] < time and (was["until"] is not None or not same):
            until = time if was["until"] is None else was["until"]
            node.setdefault("past", []).append({**was, "until": until})
            node["since"], node["said"] = time, [list(source)]
        elif "said" in node and source not in node["said"]:
            node["said"].append(list(source))

    def end(self, knowledge: str, time: int) -> None:
        """End the user's reference to knowledge at a time."""
        self._end_edge(self.known[knowledge][-1], time)

    def _attach(
        self, owner: str, knowledge: Knowledge, source: list[int], time: int, present: list[str]
    ) -> dict[str, None]:
        """Attach elements to a knowledge node; return ids right below it."""
        kept: dict[str, None] = {}
        for thing in knowledge.things:
            kept[self._object(thing)] = None
            self._edge(owner, "composed_of", self._object(thing), source, time)
        previous = None
        for action in knowledge.actions:
            arguments = [action.thing.name, action.relation, action.location]
            known = [i for i in present if self.nodes[i].get("args") == arguments and i not in kept]
            pattern = known[0] if known else self._new("pattern", name=action.name, args=arguments)["id"]
            kept[pattern] = None
            self._edge(owner, "entails", pattern, source, time)
            self._edge(pattern, "target", self._object(action.thing), source, time)
            self._edge(pattern, "target", self._location(action.relation, action.location), source, time)
            if previous is not None:
                self._edge(previous, "before", pattern, source, time)
            previous = pattern
        return kept

    def _object(self, thing: Thing) -> str:
        return self._canonical("object", full_name(thing), granularity="instance" if thing.description else "class")

    def _location(self, relation: str, expression: str) -> str:
        name = "_".join(re.findall(r"\w+", expression.lower()))
        return self._canonical("location", name, expression=f"{relation} the {expression}")

    def _canonical(self, kind: str, name: str, **attributes: Any) -> str:
        """Return the id of the one node of this type and name."""
        known = self._named.get((kind, normal(name)))
        return str(self._new(kind, name=name, **attributes)["id"]) if known is None else known

    def _new(self, kind: str, **attributes: Any) -> dict[str, Any]:
        self._counts[kind] += 1
        number = f"{_PREFIX[kind]}{self._counts[kind]}"
        self.nodes[number] = {"id": number, "type": kind, **attributes}
        if kind != "knowledge":
            self._enter(self.nodes[number])
        return self.nodes[number]

    def _edge(self, source_id: str, relation: str, target: str, source: list[int], time: int) -> None:
        """Add an edge, or a source to the same one."""
        for edge in self.known.get(target, ()) if source_id == "u1" else self._edges_of.get(source_id, ()):
            if (edge.relation, edge.target) == (relation, target) and edge.invalid_at is None:
                if source not in edge.sources:
                    edge.sources.append(list(source))
                return
        kind = "Temporal" if relation == "before" else "Hierarchical"
        edge = Edge(source_id, target, kind, relation, time, None, [list(source)])
        self.edges.append(edge)
        self._edges_of.setdefault(source_id, []).append(edge)
        if source_id == "u1":
            self.known.setdefault(target, []).append(edge)

    def _end_edge(self, edge: Edge, time: int) -> None:
        ended = [edge]
        if edge.relation == "entails":  # a pattern has one owner: its targets and its place in the order end too
            ended += self._edges_of.get(edge.target, [])
            ended += [e for e in self.edges if e.relation == "before" and e.target == edge.target]
        for one in ended:
            if one.invalid_at is None:
                one.invalid_at = time

    # Reading.

    def version(self, knowledge: str, as_of: int | None = None) -> dict[str, Any]:
        """Return knowledge as it is, or as it was at a time.

        `about` is what queries are compared with; `until` is None while it is so. Before it began, it is the first one.
        """
        node, edges = self.nodes[knowledge], self.known[knowledge]
        past = node.get("past", ())
        if past and as_of is not None and as_of < node["since"]:
            return dict(next((was for was in reversed(past) if was["since"] <= as_of), past[0]))
        sources = node["said"] if "said" in node else [row for edge in edges for row in edge.sources]
        things = self.names_of(knowledge)
        return {
            "alias": node["alias"], "description": node["description"], "text": self.text_of(knowledge),
            "about": self.words_of(knowledge), "things": things,
            "steps": self.steps_of(knowledge), "origin": node.get("origin", -1),
            "since": node.get("since", edges[-1].valid_at), "until": edges[-1].invalid_at,
            "sources": [list(row) for row in sources], "notes": list(node.get("notes", ())),
        }  # fmt: skip

    def words_of(self, knowledge: str) -> str:
        """Return the text of knowledge that queries are compared with."""
        node = self.nodes[knowledge]
        return about(node["alias"], node["description"], self.names_of(knowledge))

    def text_of(self, knowledge: str) -> str:
        """Return the alias and what it stands for: one line."""
        node, steps, things = self.nodes[knowledge], self.steps_of(knowledge), self.names_of(knowledge)
        if node["subtype"] == OBJECT_SEMANTICS:
            told = ", ".join(things) or node["description"]
        else:
            told = "; then ".join(f"place {' '.join(args)}" for args in steps) or node["description"]
            extra = [self.nodes[e.target]["name"] for e in self.out(knowledge) if e.relation == "composed_of"]
            told += f"; with {', '.join(extra)}" if extra and steps else ""
        return node["alias"] if told == node["alias"] else f"{node['alias']}: {told}"

    def shown(self) -> list[dict[str, Any]]:
        """Return all nodes, as MEMENTO's."""
        return [{name: value for name, value in node.items() if name not in _OWN} for node in self.nodes.values()]

    def is_known(self, knowledge: str, as_of: int | None = None) -> bool:
        """Return whether knowledge has no end, or held at a time."""
        edges = self.known[knowledge]
        if as_of is None:
            return edges[-1].invalid_at is None
        return any(e.valid_at <= as_of and (e.invalid_at is None or as_of < e.invalid_at) for e in edges)

    def out(self, node: str) -> list[Edge]:
        """Return the edges from a node that are true."""
        return [edge for edge in self._edges_of.get(node, ()) if edge.invalid_at is None]

    def things_of(self, knowledge: str) -> list[str]:
        """Return ids of the objects below a knowledge node."""
        found: dict[str, None] = {}
        for edge in self.out(knowledge):
            below = [edge.target] if edge.relation == "composed_of" else []
            below += [e.target for e in self.out(edge.target) if e.relation == "target"]
            found.update((i, None) for i in below if self.nodes[i]["type"] == "object")
        return list(found)

    def names_of(self, knowledge: str) -> list[str]:
        """Return names of the objects below a knowledge node."""
        return [self.nodes[i]["name"] for i in self.things_of(knowledge)]

    def steps_of(self, knowledge: str) -> list[list[str]]:
        """Return (thing, relation, location) of each pattern of knowledge, in order."""
        return [self.nodes[e.target]["args"] for e in self.out(knowledge) if e.relation == "entails"]

    def called(self, subtype: str, alias: str) -> list[str]:
        """Return ids of the knowledge of a normal alias."""
        return list(self._called.get((subtype, alias), ()))

    # Keeping.

    def state(self) -> dict[str, Any]:
        """Return all of it, for `write_state`."""
        return {
            "counts": self._counts,
            "nodes": list(self.nodes.values()),
            "edges": [vars(edge) for edge in self.edges],
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> ProfileGraph:
        """Return the graph of a state. Raises InvalidInputError for others."""
        other = cls("")
        other._counts = {kind: int(state["counts"][kind]) for kind in _PREFIX}
        other.nodes = {node["id"]: node for node in state["nodes"]}
        other.edges = [Edge(**edge) for edge in state["edges"]]
        _check_graph(other.nodes, other.edges)
        other._find_again()
        return other

    def fork(self) -> ProfileGraph:
        other = copy.copy(self)
        other.nodes, other.edges, other._counts = copy.deepcopy((self.nodes, self.edges, self._counts))
        other._find_again()
        return other

    def remove(self, doomed: set[str], episode: int | None, names_it: Callable[[str], bool]) -> None:
        """Remove nodes, an episode's words, and all that hangs on nothing then."""
        for node in self.nodes.values():
            for one in [node, *node.get("past", ())] if node.get("past") else ():
                field = "said" if one is node else "sources"
                one[field] = [row for row in one[field] if row[0] != episode]
            if "past" in node:
                was = [one for one in node["past"] if one["sources"] and one["origin"] != episode]
                node["past"] = [one for one in was if not names_it(f"{one['about']} {one['text']}")]
        for edge in self.edges:
            edge.sources = [row for row in edge.sources if row[0] != episode]
        alive = {"u1"}
        edges = [e for e in self.edges if e.sources and not doomed & {e.source, e.target}]
        while True:  # what can still be reached from the user, by edges of any time
            reached = {e.target for e in edges if e.source in alive} - alive
            if not reached:
                break
            alive |= reached
        self.nodes = {number: node for number, node in self.nodes.items() if number in alive}
        self.edges = [e for e in edges if e.source in alive]
        self._find_again()


def _check_graph(nodes: Mapping[str, Mapping[str, Any]], edges: Iterable[Edge]) -> None:
    """Raise InvalidInputError for a state that no profile has."""
    for number, node in nodes.items():
        texts = [node[name] for name in _TEXTS[node["type"]]]
        if node["type"] == "pattern":
            thing, relation, location = node["args"]
            texts += [thing, relation, location]
        texts += [was[name] for was in node.get("past", ()) for name in ("alias", "description", "text", "about")]
        if not all(isinstance(text, str) for text in (number, *texts)):
            raise InvalidInputError(f"state: node {shown(number)}: expected texts, got {shown(texts)}")
        times = [was[name] for was in node.get("past", ()) for name in ("since", "until")]
        rows = [row for was in node.get("past", ()) for row in was["sources"]] + list(node.get("said", ()))
        for time in (*times, *([node["since"]] if "past" in node else []), *(value for row in rows for value in row)):
            checked_number("state: version", time)
    referred = {edge.target for edge in edges if edge.relation == "refers_to"}
    if missing := [i for i, node in nodes.items() if node["type"] == "knowledge" and i not in referred]:
        raise InvalidInputError(f"state: expected an edge refers_to to every knowledge node, got none to {missing[0]}")
    for edge in edges:
        if unknown := {edge.source, edge.target} - nodes.keys():
            raise InvalidInputError(f"state: expected edges between known nodes, got {shown(unknown)}")
        checked_number("state: valid_at", edge.valid_at)
        if edge.invalid_at is not None:
            checked_number("state: invalid_at", edge.invalid_at)
        if not edge.sources:
            raise InvalidInputError(f"state: expected a source of every edge, got none of {shown(edge)}")
        for episode, step in edge.sources:
            checked_number("state: episode", episode), checked_number("state: step", step)


_MAX_CANDIDATES = 5
_MAX_DENIED = 16
"""How much of what is most similar to a denial is looked at."""


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
        self._graph = ProfileGraph(self.scope.user or "user")
        self._text_index = TextIndex(self.embedder)

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
        """Return changes of knowledge that lost a note: to other texts, or its end.

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
            elements = [full_name(t) for t in (*knowledge.things, *(a.thing for a in knowledge.actions))]
            for words in dict.fromkeys([self._about(knowledge), *elements]):
                for number, _ in self._text_index.search(words, _MAX_CANDIDATES, above=SIMILAR):
                    node = self._graph.nodes[f"k{number}"]
                    if node["subtype"] == knowledge.subtype and self._graph.is_known(node["id"]):
                        near.setdefault(node["id"])
        known = [self._expanded(number) for number in itertools.islice(near, _MAX_CANDIDATES)]
        said = ask_changes(self._writer, text, found, known) if known and self._writer is not None else None
        if said is None:
            return [(knowledge, self._resolve(knowledge)) for knowledge in found]
        return [(dataclasses.replace(k, extends=do == "extend"), target) for k, (do, target) in zip(found, said)]

    def _expanded(self, number: str) -> dict[str, Any]:
        """Return knowledge with all below it, for the writer."""
        node = self._graph.nodes[number]
        steps = self._graph.steps_of(number)
        things = self._graph.names_of(number)
        return {key: node[key] for key in ("id", "subtype", "alias", "description")} | {
            "objects": things, "patterns": steps,
        }  # fmt: skip

    def _denied(self, text: str) -> list[str]:
        """Return ids of the knowledge that a text denies."""
        if not len(self._text_index):
            return []
        denials = [claim for claim in claims_in(text) if claim.denied]
        if not denials:
            return []
        found = []
        for number, _ in self._text_index.search(text, _MAX_DENIED, above=0.0):
            node = self._graph.nodes[f"k{number}"]
            of_mine = node["subtype"] == OBJECT_SEMANTICS and node["alias"].lower().startswith("my ")
            said = claims_in(f"{node['alias']} is {node['description']}" if of_mine else node["description"])
            if self._graph.is_known(node["id"]) and said and all(any(new.ends(old) for new in denials) for old in said):
                found.append(node["id"])
        return found

    def _resolve(self, knowledge: Knowledge) -> str | None:
        """Return the id of the knowledge that this updates, or None."""
        alias = normal(knowledge.alias)
        if not knowledge.things and not knowledge.actions and not knowledge.extends:
            return self._same_words(knowledge, alias)
        things = {normal(full_name(t)) for t in (*knowledge.things, *(a.thing for a in knowledge.actions))}
        kinds = {normal(thing.name) for thing in knowledge.things}
        definite = knowledge.subtype == USER_PATTERN or knowledge.alias.lower().startswith("my ")
        for node in [self._graph.nodes[i] for i in self._graph.called(knowledge.subtype, alias)]:
            known = self._graph.names_of(node["id"])
            known_kinds = {normal(name.partition(" (")[0]) for name in known}
            one_kind = knowledge.subtype == USER_PATTERN or known_kinds == kinds
            if (definite and one_kind) or {normal(name) for name in known} == things:
                return str(node["id"])
        for number, cosine in self._text_index.search(self._about(knowledge), 5):
            node = self._graph.nodes[f"k{number}"]
            if cosine < self._similar or node["subtype"] != knowledge.subtype:
                continue
            if {normal(name) for name in self._graph.names_of(node["id"])} == things:
                return str(node["id"])
        return None

    def _same_words(self, knowledge: Knowledge, alias: str) -> str | None:
        """Return the id of the same words about no things, or None."""
        for number in self._graph.called(knowledge.subtype, alias):
            words = normal(self._graph.nodes[number]["description"])
            if words == normal(knowledge.description) and not self._graph.things_of(number):
                return number
        return None

    @staticmethod
    def _about(knowledge: Knowledge) -> str:
        things = dict.fromkeys(full_name(t) for t in (*knowledge.things, *(a.thing for a in knowledge.actions)))
        return about(knowledge.alias, knowledge.description, things)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """Apply an event that has passed `check`.

        Raises InvalidInputError for unknown nodes.
        """
        for change in event["changes"]:
            target = change["target"]
            if target not in self._graph.known and (target is not None or change.get("ended")):
                raise InvalidInputError(f"{EVENT}: expected known nodes, got {shown(target)}")
        source = [event["episode"], event["step"]]
        self.changed = []
        for change in event["changes"]:
            if change.get("ended"):
                self._graph.end(change["target"], event["time"])
                self.changed.append(("end", change["target"]))
                continue
            knowledge = _knowledge_of(change["knowledge"])
            number = self._graph.write(change["target"], knowledge, source, event["time"])
            self._text_index.add(int(number[1:]), self._graph.words_of(number))
            self.changed.append(("add" if change["target"] is None else "update", number))
            if (note := event.get("note")) is not None:
                notes = self._graph.nodes[number].setdefault("notes", [])
                if change.get("untold"):
                    notes.remove(note)
                notes += [note] if note not in notes and not change.get("untold") else []

    def check(self, event: Mapping[str, Any]) -> None:
        checked_event(EVENT, event, {"tell": Fields(WHEN)})
        if event.get("note") is not None:
            checked_number(f"{EVENT}: note", event["note"], 0)
        for change in checked_rows(f"{EVENT}: changes", event.get("changes")):
            if checked_mapping(f"{EVENT}: change", change).get("target") is not None:
                checked_text(f"{EVENT}: target", change["target"])
            checked_flag(f"{EVENT}: untold", change.get("untold", False))
            if not checked_flag(f"{EVENT}: ended", change.get("ended", False)):
                _knowledge_of(change.get("knowledge"))

    # Reading.

    def nodes(self) -> list[dict[str, Any]]:
        """Return all nodes, as in MEMENTO's table 8."""
        return self._graph.shown()

    def edges(self, ended: bool = False) -> list[dict[str, Any]]:
        """Return the true edges as in MEMENTO's table 7, or all."""
        if checked_flag("ended", ended):
            return [dict(vars(edge)) for edge in self._graph.edges]
        keys = ("source", "target", "type", "relation")
        return [{key: getattr(edge, key) for key in keys} for edge in self._graph.edges if edge.invalid_at is None]

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
        was = {} if as_of is None else self._other_then(as_of)
        past = TextIndex(self.embedder)
        past.add_many(was.items())
        for subtype, part in parts:
            found = self._text_index.search(part, 2 * k if as_of is None else len(self._graph.known))
            for number, cosine in [row for row in found if row[0] not in was] + past.search(part, len(was)):
                node = self._graph.nodes[f"k{number}"]
                if not self._graph.is_known(node["id"], as_of):
                    continue
                if subtype in (None, node["subtype"]) and cosine > max(above, best.get(number, (-1.0, ""))[0]):
                    best[number] = (cosine, part)
        chosen = sorted(best, key=lambda number: (-best[number][0], number))[:k]
        return [self._item(self._graph.nodes[f"k{number}"], *best[number], as_of) for number in chosen]

    def _other_then(self, as_of: int) -> dict[int, str]:
        """Return the words of knowledge that was something else at a time."""
        changed = [number for number in self._graph.known if self._graph.nodes[number].get("since", -1) > as_of]
        return {int(number[1:]): self._graph.version(number, as_of)["about"] for number in changed}

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
        return list(self._graph.known)

    def record(self, number: str) -> Record:
        sources = dict.fromkeys(tuple(row) for edge in self._graph.known[number] for row in edge.sources)
        return self._record_of(number, self._graph.version(number), sources)

    def past(self, number: str) -> list[Record]:
        return [self._record_of(number, was) for was in self._graph.nodes[number].get("past", ())]

    def record_at(self, number: str, time: int) -> Record | None:
        was = self._record_of(number, self._graph.version(number, time))
        return was.until(time) if was.recorded <= time else None

    def _record_of(
        self, number: str, was: Mapping[str, Any], sources: Iterable[Sequence[int]] | None = None, **found: Any
    ) -> Record:
        """Make the record of a version of knowledge."""
        subtype, recorded = self._graph.nodes[number]["subtype"], self._graph.known[number][0].valid_at
        data = {"subtype": subtype} | {name: was[name] for name in ("alias", "description", "things", "steps")}
        data["notes"] = tuple(was["notes"])
        rows = was["sources"] if sources is None else sources
        return Record(
            f"profile:{number}", "profile", subtype, was["text"], recorded=recorded, valid_from=was["since"],
            ended=was["until"], data=data, sources=tuple(Source(*row) for row in rows), trust="user", **found,
        )  # fmt: skip

    def _item(self, node: dict[str, Any], cosine: float, part: str, as_of: int | None) -> Record:
        why = f"{node['subtype'].replace('_', ' ')} {cosine:.2f} similar to {part!r}"
        was = self._graph.version(node["id"], as_of)
        return self._record_of(node["id"], was, score=min(cosine, 1.0), why=why)

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        return ({"embedder": self.embedder.name, **self._graph.state()},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        self._graph = ProfileGraph.of_state(state)
        self._index()

    def fork(self) -> Self:
        other = super().fork()
        other._graph, other._text_index, other.changed = self._graph.fork(), self._text_index.fork(), []
        return other

    def _index(self) -> None:
        self.changed = []
        self._text_index = TextIndex(self.embedder)
        self._text_index.add_many((int(number[1:]), self._graph.words_of(number)) for number in self._graph.known)

    def told_by(self, selector: Selector, before: bool = True) -> dict[str, list[int]]:
        """Return ids of a note's knowledge, with the other notes of each.

        Args:
            selector: of a note.
            before: whether knowledge counts of which the note tells only what it was.
        """
        if not (number := selector.number_in("notes")):
            return {}
        found = {}
        for node in map(self._graph.nodes.__getitem__, self._graph.known):
            told = dict.fromkeys(node.get("notes", ()))
            if before:
                told.update(dict.fromkeys(note for was in node.get("past", ()) for note in was["notes"]))
            if len(others := [note for note in told if str(note) != number]) < len(told):
                found[node["id"]] = others
        return found

    def is_known(self, knowledge: str) -> bool:
        """Return whether the user still refers to this knowledge."""
        return self._graph.is_known(knowledge)

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
        """Remove an object, an episode, or all; then what hangs on nothing.

        Knowledge whose words name the object, or come from the episode, goes with all below it that nothing else holds.
        """
        self.embedder.clear()
        before = (len(self._graph.nodes), len(self._graph.edges))
        if selector.everything or selector.is_user_of(self.scope):
            self._clear()
        doomed = {
            node["id"]
            for node in self._graph.nodes.values()
            if (selector.episode is not None and node.get("origin") == selector.episode)
            or selector.is_entry("profile", node["id"])
            or any(selector.in_text(text) for text in _texts(node))
        } - {"u1"}
        self._graph.remove(doomed, selector.episode, selector.in_text)
        self._index()
        return {"nodes": before[0] - len(self._graph.nodes), "edges": before[1] - len(self._graph.edges)}


def _texts(node: Mapping[str, Any]) -> Iterable[str]:
    for key in ("name", "alias", "description", "expression"):
        if key in node:
            yield node[key].replace("_", " ")
    yield " ".join(node.get("args", ()))
