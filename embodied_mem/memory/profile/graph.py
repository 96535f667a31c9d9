"""The graph of a user profile: nodes and edges with their times and sources, of which elements are there once.

    graph = ProfileGraph("james")
    mug = Knowledge("object_semantics", "my mug", "the red mug", (Thing("mug", "red"),))
    number = graph.write(None, mug, source=[0, 0], time=5)
    graph.names_of(number)              # ["mug (red)"]
    graph.end(number, 9)

Ids are "u1" for the user, and "k", "p", "o" and "l" with a number for knowledge, patterns, objects and locations. What
knowledge was before it changed is kept as its versions.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...errors import InvalidInputError
from ..arguments import checked_number, shown
from .text import OBJECT_SEMANTICS, Knowledge, Thing, about, full_name, normal

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
    """A row of MEMENTO's table 7, with the times between which it is true, and its sources as [episode, step]."""

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
        """Write knowledge, in place of a target's if there is one; its id."""
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
        """Take note of what knowledge was, if it is something else now or had ended."""
        now = self.version(node["id"])
        same = all(now[name] == was[name] for name in ("alias", "description", "text"))
        if was["since"] < time and (was["until"] is not None or not same):
            until = time if was["until"] is None else was["until"]
            node.setdefault("past", []).append({**was, "until": until})
            node["since"], node["said"] = time, [list(source)]
        elif "said" in node and source not in node["said"]:
            node["said"].append(list(source))

    def end(self, knowledge: str, time: int) -> None:
        """The user does not refer to this knowledge any more, from `time` on."""
        self._end_edge(self.known[knowledge][-1], time)

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
        """Id of the one node of this type and name."""
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
        """Add an edge, or a source to the one that says so already."""
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
        """What knowledge is, or was at a time: words, things, steps, `since` and `until` when, by which sources.

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
            "about": about(node["alias"], node["description"], things), "things": things,
            "steps": self.steps_of(knowledge), "origin": node.get("origin", -1),
            "since": node.get("since", edges[-1].valid_at), "until": edges[-1].invalid_at,
            "sources": [list(row) for row in sources], "notes": list(node.get("notes", ())),
        }  # fmt: skip

    def text_of(self, knowledge: str) -> str:
        """What the user calls it, and what it is: one line."""
        node, steps, things = self.nodes[knowledge], self.steps_of(knowledge), self.names_of(knowledge)
        if node["subtype"] == OBJECT_SEMANTICS:
            told = ", ".join(things) or node["description"]
        else:
            told = "; then ".join(f"place {' '.join(args)}" for args in steps) or node["description"]
            extra = [self.nodes[e.target]["name"] for e in self.out(knowledge) if e.relation == "composed_of"]
            told += f"; with {', '.join(extra)}" if extra and steps else ""
        return node["alias"] if told == node["alias"] else f"{node['alias']}: {told}"

    def shown(self) -> list[dict[str, Any]]:
        """All nodes, as MEMENTO's."""
        return [{name: value for name, value in node.items() if name not in _OWN} for node in self.nodes.values()]

    def is_known(self, knowledge: str, as_of: int | None = None) -> bool:
        """Whether knowledge has no end, or had begun and not ended at a time."""
        edges = self.known[knowledge]
        if as_of is None:
            return edges[-1].invalid_at is None
        return any(e.valid_at <= as_of and (e.invalid_at is None or as_of < e.invalid_at) for e in edges)

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The nodes of a type."""
        return [node for node in self.nodes.values() if node["type"] == kind]

    def out(self, node: str) -> list[Edge]:
        """The edges from a node that are true."""
        return [edge for edge in self._edges_of.get(node, ()) if edge.invalid_at is None]

    def things_of(self, knowledge: str) -> list[str]:
        """Ids of the objects below a knowledge node."""
        found: dict[str, None] = {}
        for edge in self.out(knowledge):
            below = [edge.target] if edge.relation == "composed_of" else []
            below += [e.target for e in self.out(edge.target) if e.relation == "target"]
            found.update((i, None) for i in below if self.nodes[i]["type"] == "object")
        return list(found)

    def names_of(self, knowledge: str) -> list[str]:
        """Names of the objects below a knowledge node."""
        return [self.nodes[i]["name"] for i in self.things_of(knowledge)]

    def steps_of(self, knowledge: str) -> list[list[str]]:
        """Thing, relation and location of each pattern of a knowledge node, in order."""
        return [self.nodes[e.target]["args"] for e in self.out(knowledge) if e.relation == "entails"]

    def called(self, subtype: str, alias: str) -> list[str]:
        """Ids of the knowledge that the user calls by this normal form of an alias."""
        return list(self._called.get((subtype, alias), ()))

    # Keeping.

    def state(self) -> dict[str, Any]:
        """All of it, for `write_state`."""
        return {
            "counts": self._counts,
            "nodes": list(self.nodes.values()),
            "edges": [vars(edge) for edge in self.edges],
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> ProfileGraph:
        """What `state` gave. Raises InvalidInputError for nodes and edges that no profile has."""
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
        """Remove nodes, what an episode alone tells and versions that name it, then what hangs on nothing any more."""
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
    """Raise InvalidInputError for nodes and edges of a state that no profile has."""
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
