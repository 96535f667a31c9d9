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
(`profile_text`), or a chat writer, with the rules behind it.

Source: MEMENTO D.1, algorithms 1 and 2. Deviation: whether something is new or an update is decided by rules. A pattern
of the same alias is an update. So is object semantics of the same alias about the very same things, or about the same
class if the user calls it "my ..." (there is one favourite mug, but there can be two gifts from a friend). So is what
is at least `similar` and about the same things.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ...errors import InvalidInputError
from ..arguments import (
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
from ..chat_writer import ChatWriter, checked_writer, parse_text
from ..graph.records import Scope
from ..recollection import Item
from ..store.module import RecordedModule, Selector
from ..vectors.lexical import Embedder
from ..vectors.text_index import QueryEmbedder, TextIndex
from .profile_text import OBJECT_SEMANTICS, SUBTYPES, USER_PATTERN, Action, Knowledge, Thing, knowledge_in, sentences_of

_EVENT = "profile event"
_MINIMUM = 0.1
_PREFIX = {"knowledge": "k", "pattern": "p", "object": "o", "location": "l"}
_EXTRACT = (
    "You read what a user told a household robot and list what it tells about the user: names that things have for the "
    "user (object_semantics) and names of arrangements or routines (user_pattern). Answer with JSON only: a list of "
    '{"subtype": ..., "alias": ..., "description": ..., "objects": [{"name": ..., "description": ...}], "patterns": '
    '[{"name": "place", "args": [object, relation, location]}]}; an empty list if it tells nothing.'
)


@dataclasses.dataclass
class _Edge:
    """A row of MEMENTO's table 7, with the times between which it is true, and its sources as [episode, step]."""

    source: str
    target: str
    type: str
    relation: str
    valid_at: int
    invalid_at: int | None
    sources: list[list[int]]


class UserProfile(RecordedModule):
    """The graph of one scope's user."""

    format_name = "embodied_mem.user_profile"

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
            embedder: None for the lexical one.
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
        self._nodes: dict[str, dict[str, Any]] = {"u1": {"id": "u1", "type": "user", "name": self.scope.user or "user"}}
        self._edges: list[_Edge] = []
        self._counts = {kind: 0 for kind in _PREFIX}
        self._text_index = TextIndex(self.embedder)

    # Changing.

    def tell(self, text: str, *, episode: int, step: int, time: int) -> None:
        """Take note of what a user said."""
        self._record(self.propose(text, episode=episode, step=step, time=time))

    def propose(self, text: str, *, episode: int, step: int, time: int) -> dict[str, Any]:
        """The event that `tell` records; nothing changes. The writer is asked here, never on replay."""
        text = checked_text("text", text)
        event: dict[str, Any] = {"op": "tell", "time": time, "episode": episode, "step": step, "changes": []}
        found = None if self._writer is None else self._writer.ask(_EXTRACT, text, _parse_knowledge)
        for knowledge in knowledge_in(text) if found is None else found:
            target = self._resolve(knowledge)
            event["changes"].append({"target": target, "knowledge": dataclasses.asdict(knowledge)})
        return event

    def _resolve(self, knowledge: Knowledge) -> str | None:
        """Id of the knowledge that this updates; None if it is new."""
        alias = _normal(knowledge.alias)
        things = {_normal(_full_name(t)) for t in (*knowledge.things, *(a.thing for a in knowledge.actions))}
        kinds = {_normal(thing.name) for thing in knowledge.things}
        definite = knowledge.subtype == USER_PATTERN or knowledge.alias.lower().startswith("my ")
        same_subtype = [node for node in self._of_type("knowledge") if node["subtype"] == knowledge.subtype]
        for node in same_subtype:
            if _normal(node["alias"]) != alias:
                continue
            known = [self._nodes[i]["name"] for i in self._things_of(node["id"])]
            known_kinds = {_normal(name.partition(" (")[0]) for name in known}
            one_kind = knowledge.subtype == USER_PATTERN or known_kinds == kinds
            if (definite and one_kind) or {_normal(name) for name in known} == things:
                return str(node["id"])
        for number, cosine in self._text_index.search(self._about(knowledge), 5):
            node = self._nodes[f"k{number}"]
            if cosine < self._similar or node["subtype"] != knowledge.subtype:
                continue
            if {_normal(self._nodes[i]["name"]) for i in self._things_of(node["id"])} == things:
                return str(node["id"])
        return None

    @staticmethod
    def _about(knowledge: Knowledge) -> str:
        things = dict.fromkeys(_full_name(t) for t in (*knowledge.things, *(a.thing for a in knowledge.actions)))
        return _about(knowledge.alias, knowledge.description, things)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """`apply` of an event that has passed `check`. Raises InvalidInputError for unknown nodes."""
        known = {None, *(node["id"] for node in self._of_type("knowledge"))}
        if unknown := [change["target"] for change in event["changes"] if change["target"] not in known]:
            raise InvalidInputError(f"{_EVENT}: expected known nodes, got {shown(unknown)}")
        source = [event["episode"], event["step"]]
        for change in event["changes"]:
            said = change["knowledge"]
            things = tuple(Thing(**thing) for thing in said.get("things", ()))
            actions = tuple(
                Action(**{**action, "thing": Thing(**action["thing"])}) for action in said.get("actions", ())
            )
            knowledge = Knowledge(**{**said, "things": things, "actions": actions})
            self._write(change["target"], knowledge, source, event["time"])

    def check(self, event: Mapping[str, Any]) -> None:
        checked_event(_EVENT, event, {"tell": Fields(WHEN)})
        for change in checked_rows(f"{_EVENT}: changes", event.get("changes")):
            if checked_mapping(f"{_EVENT}: change", change).get("target") is not None:
                checked_text(f"{_EVENT}: target", change["target"])
            said = checked_mapping(f"{_EVENT}: knowledge", change.get("knowledge"))
            _check_texts(said, Knowledge, ("subtype", "alias", "description"), ("things", "actions", "extends"))
            checked_flag(f"{_EVENT}: extends", said.get("extends", False))
            if said["subtype"] not in SUBTYPES:
                raise InvalidInputError(f"{_EVENT}: expected {' or '.join(SUBTYPES)}, got {shown(said['subtype'])}")
            actions = checked_rows(f"{_EVENT}: actions", said.get("actions", ()))
            for action in actions:
                _check_texts(action, Action, ("relation", "location"), ("thing", "name"))
                checked_text(f"{_EVENT}: name", action.get("name", ""))
            things = [
                *checked_rows(f"{_EVENT}: things", said.get("things", ())),
                *(one.get("thing") for one in actions),
            ]
            for thing in things:
                _check_texts(thing, Thing, ("name",), ("description",))
                checked_text(f"{_EVENT}: description", thing.get("description", ""))

    def _write(self, target: str | None, knowledge: Knowledge, source: list[int], time: int) -> None:
        if target is None:
            node = self._new("knowledge", subtype=knowledge.subtype, alias="", description="", origin=source[0])
            self._edge("u1", "refers_to", node["id"], source, time)
        else:
            node = self._nodes[target]
            self._edge("u1", "refers_to", target, source, time)
        if not (knowledge.extends and target is not None):
            node |= {"alias": knowledge.alias, "description": knowledge.description, "origin": source[0]}
        before = {edge.target: edge for edge in self._out(node["id"])}
        kept = self._attach(node["id"], knowledge, source, time, list(before))
        if target is not None and not knowledge.extends and kept:
            for other, edge in before.items():
                if other not in kept:
                    self._end(edge, time)
        number = int(node["id"][1:])
        self._text_index.add(number, self._about_node(node))

    def _about_node(self, node: Mapping[str, Any]) -> str:
        return _about(node["alias"], node["description"], [self._nodes[i]["name"] for i in self._things_of(node["id"])])

    def _attach(
        self, owner: str, knowledge: Knowledge, source: list[int], time: int, present: list[str]
    ) -> dict[str, None]:
        """Put the elements below a knowledge node; the ids of those directly below it."""
        kept: dict[str, None] = {}
        for thing in knowledge.things:
            kept[self._object(thing)] = None
            self._edge(owner, "composed_of", self._object(thing), source, time)
        previous = None
        for action in knowledge.actions:
            arguments = [action.thing.name, action.relation, action.location]
            known = [i for i in present if self._nodes[i].get("args") == arguments and i not in kept]
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
        return self._canonical("object", _full_name(thing), granularity="instance" if thing.description else "class")

    def _location(self, relation: str, expression: str) -> str:
        name = "_".join(re.findall(r"\w+", expression.lower()))
        return self._canonical("location", name, expression=f"{relation} the {expression}")

    def _canonical(self, kind: str, name: str, **attributes: Any) -> str:
        """Id of the one node of this type and name."""
        for node in self._of_type(kind):
            if _normal(node["name"]) == _normal(name):
                return str(node["id"])
        return str(self._new(kind, name=name, **attributes)["id"])

    def _new(self, kind: str, **attributes: Any) -> dict[str, Any]:
        self._counts[kind] += 1
        number = f"{_PREFIX[kind]}{self._counts[kind]}"
        self._nodes[number] = {"id": number, "type": kind, **attributes}
        return self._nodes[number]

    def _edge(self, source_id: str, relation: str, target: str, source: list[int], time: int) -> None:
        """Add an edge, or a source to the one that says so already."""
        for edge in self._edges:
            same = (edge.source, edge.relation, edge.target) == (source_id, relation, target)
            if same and edge.invalid_at is None:
                if source not in edge.sources:
                    edge.sources.append(list(source))
                return
        kind = "Temporal" if relation == "before" else "Hierarchical"
        self._edges.append(_Edge(source_id, target, kind, relation, time, None, [list(source)]))

    def _end(self, edge: _Edge, time: int) -> None:
        ended = [edge]
        if edge.relation == "entails":  # a pattern has one owner: its targets and its place in the order end too
            ended += [e for e in self._edges if e.source == edge.target]
            ended += [e for e in self._edges if e.relation == "before" and e.target == edge.target]
        for one in ended:
            if one.invalid_at is None:
                one.invalid_at = time

    # Reading.

    def nodes(self) -> list[dict[str, Any]]:
        """All nodes, as in MEMENTO's table 8."""
        return [{k: v for k, v in node.items() if k != "origin"} for node in self._nodes.values()]

    def edges(self, ended: bool = False) -> list[dict[str, Any]]:
        """The edges that are true, as in MEMENTO's table 7, or with `ended` all, with times and sources."""
        if checked_flag("ended", ended):
            return [dict(vars(edge)) for edge in self._edges]
        keys = ("source", "target", "type", "relation")
        return [{key: getattr(edge, key) for key in keys} for edge in self._edges if edge.invalid_at is None]

    def _of_type(self, kind: str) -> list[dict[str, Any]]:
        return [node for node in self._nodes.values() if node["type"] == kind]

    def _out(self, node: str) -> list[_Edge]:
        return [edge for edge in self._edges if edge.source == node and edge.invalid_at is None]

    def _things_of(self, knowledge: str) -> list[str]:
        """Ids of the objects below a knowledge node."""
        found: dict[str, None] = {}
        for edge in self._out(knowledge):
            below = [edge.target] if edge.relation == "composed_of" else []
            below += [e.target for e in self._out(edge.target) if e.relation == "target"]
            found.update((i, None) for i in below if self._nodes[i]["type"] == "object")
        return list(found)

    def retrieve(self, query: str, k: int = 5, subtype: str | None = None) -> list[Item]:
        """What the user's words refer to: each sentence of the query is compared with all knowledge of the subtype.

        Args:
            query: an instruction.
            k: at most so many.
            subtype: "object_semantics" or "user_pattern"; None for both.
        """
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        if subtype is not None and (not isinstance(subtype, str) or subtype not in SUBTYPES):
            raise InvalidInputError(f"subtype: expected one of {', '.join(SUBTYPES)} or None, got {shown(subtype)}")
        best: dict[int, tuple[float, str]] = {}
        for part in dict.fromkeys([query, *sentences_of(query)]):
            for number, cosine in self._text_index.search(part, 2 * k):
                node = self._nodes[f"k{number}"]
                if subtype in (None, node["subtype"]) and cosine > max(_MINIMUM, best.get(number, (0.0, ""))[0]):
                    best[number] = (cosine, part)
        chosen = sorted(best, key=lambda number: (-best[number][0], number))[:k]
        return [self._item(self._nodes[f"k{number}"], *best[number]) for number in chosen]

    def _item(self, node: dict[str, Any], cosine: float, part: str) -> Item:
        steps = [self._nodes[e.target]["args"] for e in self._out(node["id"]) if e.relation == "entails"]
        things = [self._nodes[i]["name"] for i in self._things_of(node["id"])]
        if node["subtype"] == OBJECT_SEMANTICS:
            told = ", ".join(things) or node["description"]
        else:
            told = "; then ".join(f"place {' '.join(args)}" for args in steps) or node["description"]
            extra = [self._nodes[e.target]["name"] for e in self._out(node["id"]) if e.relation == "composed_of"]
            told += f"; with {', '.join(extra)}" if extra and steps else ""
        rows = next(e.sources for e in self._edges if e.target == node["id"] and e.relation == "refers_to")
        episode, step = rows[-1]
        sources = tuple(dict.fromkeys(row[0] for row in rows))
        data = {key: node[key] for key in ("subtype", "alias", "description")} | {"things": things, "steps": steps}
        why = f"{node['subtype'].replace('_', ' ')} {cosine:.2f} similar to {part!r}"
        return Item(f"{node['alias']}: {told}", "profile", min(cosine, 1.0), why, episode, step, sources, data)

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        nodes, edges = list(self._nodes.values()), [vars(edge) for edge in self._edges]
        return ({"embedder": self.embedder.name, "counts": self._counts, "nodes": nodes, "edges": edges},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        self.embedder.check(state)
        counts = {kind: int(state["counts"][kind]) for kind in _PREFIX}
        nodes, edges = {node["id"]: node for node in state["nodes"]}, [_Edge(**edge) for edge in state["edges"]]
        _check_graph(nodes, edges)
        self._clear()
        self._counts, self._nodes, self._edges = counts, nodes, edges
        self._index()

    def fork(self) -> Self:
        other = super().fork()
        other._nodes, other._edges, other._counts = copy.deepcopy((self._nodes, self._edges, self._counts))
        other._text_index = self._text_index.fork()
        return other

    def _index(self) -> None:
        self._text_index = TextIndex(self.embedder)
        nodes = self._of_type("knowledge")
        self._text_index.add_many((int(node["id"][1:]), self._about_node(node)) for node in nodes)

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove an object, what an episode said, or, for the scope's user, all; then what hangs on nothing any more.

        Knowledge whose words name the object, or come from the episode, goes with all below it that nothing else holds.
        """
        self.embedder.clear()
        before = (len(self._nodes), len(self._edges))
        if selector.is_all_of(self.scope):
            self._clear()
        for edge in self._edges:
            edge.sources = [row for row in edge.sources if row[0] != selector.episode]
        doomed = {
            node["id"]
            for node in self._nodes.values()
            if (selector.episode is not None and node.get("origin") == selector.episode)
            or any(selector.in_text(text) for text in _texts(node))
        } - {"u1"}
        alive = {"u1"}
        edges = [e for e in self._edges if e.sources and not doomed & {e.source, e.target}]
        while True:  # what can still be reached from the user, by edges of any time
            reached = {e.target for e in edges if e.source in alive} - alive
            if not reached:
                break
            alive |= reached
        self._nodes = {number: node for number, node in self._nodes.items() if number in alive}
        self._edges = [e for e in edges if e.source in alive]
        self._index()
        return {"nodes": before[0] - len(self._nodes), "edges": before[1] - len(self._edges)}


def _check_texts(value: Any, kind: type, texts: Iterable[str], others: Iterable[str]) -> None:
    """Raise InvalidInputError unless a mapping has these texts and no fields but these."""
    where = f"{_EVENT}: {kind.__name__.lower()}"
    for name in texts:
        checked_text(f"{where}: {name}", checked_mapping(where, value).get(name))
    if unknown := set(value) - {*texts, *others}:
        raise InvalidInputError(f"{where}: expected {', '.join((*texts, *others))}, got {shown(unknown)}")


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", re.sub(r"\A(?:my|the|a|an)\s+", "", text.strip(), flags=re.IGNORECASE).lower()))


def _full_name(thing: Thing) -> str:
    return f"{thing.name} ({thing.description})" if thing.description else thing.name


def _about(alias: str, description: str, things: Iterable[str]) -> str:
    """What queries are compared with: the alias, and what it stands for, each once."""
    return " ".join([alias, *([description] if description != alias else []), *things])


def _texts(node: Mapping[str, Any]) -> Iterable[str]:
    for key in ("name", "alias", "description", "expression"):
        if key in node:
            yield node[key].replace("_", " ")
    yield " ".join(node.get("args", ()))


def _parse_knowledge(value: Any) -> list[Knowledge]:
    """The knowledge in a chat answer. Raises ValueError, KeyError or TypeError for one that is malformed."""
    if not isinstance(value, list) or len(value) > 16:
        raise ValueError("expected a list of at most 16")
    found = []
    for one in value:
        if one["subtype"] not in SUBTYPES:
            raise ValueError(f"expected one of {', '.join(SUBTYPES)}, got {one['subtype']!r}")
        things = [Thing(parse_text(o["name"]), str(o.get("description") or "")[:400]) for o in one.get("objects", ())]
        described = {thing.name: thing for thing in things}
        actions = []
        for pattern in one.get("patterns", ()):
            name, relation, location = (parse_text(argument) for argument in pattern["args"])
            actions.append(Action(described.get(name, Thing(name)), relation, location, parse_text(pattern["name"])))
        composed = tuple(things) if one["subtype"] == OBJECT_SEMANTICS else ()
        alias, description = parse_text(one["alias"]), parse_text(one["description"])
        found.append(Knowledge(one["subtype"], alias, description, composed, tuple(actions)))
    return found


_TEXTS = {
    "user": ("name",), "knowledge": ("subtype", "alias", "description"), "object": ("name",), "location": ("name",),
    "pattern": ("name",),
}  # fmt: skip
"""Type of node -> what it has that is text."""


def _check_graph(nodes: Mapping[str, Mapping[str, Any]], edges: Iterable[_Edge]) -> None:
    """Raise InvalidInputError for nodes and edges of a state that no profile has."""
    for number, node in nodes.items():
        texts = [node[name] for name in _TEXTS[node["type"]]]
        if node["type"] == "pattern":
            thing, relation, location = node["args"]
            texts += [thing, relation, location]
        if not all(isinstance(text, str) for text in (number, *texts)):
            raise InvalidInputError(f"state: node {shown(number)}: expected texts, got {shown(texts)}")
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
