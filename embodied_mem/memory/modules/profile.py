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
(`profile_text`), or a chat writer, with the rules behind it. What the user denies later has an end, too (`claims`).

Source: MEMENTO D.1, algorithms 1 and 2. Deviation: whether something is new or an update is decided by rules. A pattern
of the same alias is an update. So is object semantics of the same alias about the very same things, or about the same
class if the user calls it "my ..." (there is one favourite mug, but there can be two gifts from a friend). So is what
is at least `similar` and about the same things. What is about no things at all is an update of the same words alone.
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
from ..chat_writer import ChatWriter, checked_writer
from ..claims import claims_in
from ..graph.records import Scope
from ..recollection import Item
from ..store.module import RecordedModule, Selector
from ..vectors.lexical import Embedder
from ..vectors.text_index import QueryEmbedder, TextIndex
from .profile_checks import EVENT, EXTRACT, Edge, check_graph, check_texts, parse_knowledge
from .profile_text import OBJECT_SEMANTICS, SUBTYPES, USER_PATTERN, Action, Knowledge, Thing, knowledge_in, sentences_of

_MINIMUM = 0.1
_MAX_DENIED = 16
"""How much of what is most similar to a denial is looked at."""

_PREFIX = {"knowledge": "k", "pattern": "p", "object": "o", "location": "l"}


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
        self._edges: list[Edge] = []
        self._counts = {kind: 0 for kind in _PREFIX}
        self._text_index = TextIndex(self.embedder)
        self._find_again()

    def _find_again(self) -> None:
        """Make anew what nodes and edges are found by."""
        self._named: dict[tuple[str, str], str] = {}  # type and name of an element -> id
        self._called: dict[tuple[str, str], dict[str, None]] = {}  # subtype and alias -> ids of knowledge
        self._edges_of: dict[str, list[Edge]] = {}  # by source
        for node in self._nodes.values():
            self._enter(node)
        for edge in self._edges:
            self._edges_of.setdefault(edge.source, []).append(edge)
        self._known: dict[str, list[Edge]] = {}  # knowledge -> the edges from the user, the last one may have no end
        for edge in self._edges_of.get("u1", ()):
            self._known.setdefault(edge.target, []).append(edge)
        self.changed: list[tuple[str, str]] = []

    def _enter(self, node: Mapping[str, Any]) -> None:
        if node["type"] == "knowledge":
            self._called.setdefault((node["subtype"], _normal(node["alias"])), {})[node["id"]] = None
        elif node["type"] in ("object", "location"):
            self._named.setdefault((node["type"], _normal(node["name"])), node["id"])

    # Changing.

    def tell(self, text: str, *, episode: int, step: int, time: int) -> None:
        """Take note of what a user said."""
        self._record(self.propose(text, episode=episode, step=step, time=time))

    def propose(self, text: str, *, episode: int, step: int, time: int, note: int | None = None) -> dict[str, Any]:
        """The event that `tell` records; nothing changes. The writer is asked here, never on replay.

        Args:
            text: what the user said.
            episode, step, time: when.
            note: number of the note that holds the text; None for none.
        """
        text = checked_text("text", text)
        event: dict[str, Any] = {"op": "tell", "time": time, "episode": episode, "step": step, "changes": []}
        found = None if self._writer is None else self._writer.ask(EXTRACT, text, parse_knowledge)
        for knowledge in knowledge_in(text) if found is None else found:
            target = self._resolve(knowledge)
            event["changes"].append({"target": target, "knowledge": dataclasses.asdict(knowledge)})
        if ended := self._denied(text):
            event["changes"] += [{"target": target, "ended": True} for target in ended]
        if note is not None:
            event["note"] = note
        return event

    def _denied(self, text: str) -> list[str]:
        """Ids of the knowledge of which a text says that it is not so any more."""
        denials = [claim for claim in claims_in(text) if claim.denied]
        if not denials:
            return []
        found = []
        for number, _ in self._text_index.search(text, _MAX_DENIED, above=0.0):
            node = self._nodes[f"k{number}"]
            said = claims_in(node["description"])
            if self._is_known(node["id"]) and said and all(any(new.ends(old) for new in denials) for old in said):
                found.append(node["id"])
        return found

    def _is_known(self, knowledge: str, as_of: int | None = None) -> bool:
        """Whether knowledge has no end, or had begun and not ended at a time."""
        edges = self._known[knowledge]
        if as_of is None:
            return edges[-1].invalid_at is None
        return any(e.valid_at <= as_of and (e.invalid_at is None or as_of < e.invalid_at) for e in edges)

    def _resolve(self, knowledge: Knowledge) -> str | None:
        """Id of the knowledge that this updates; None if it is new."""
        alias = _normal(knowledge.alias)
        if not knowledge.things and not knowledge.actions and not knowledge.extends:
            return self._same_words(knowledge, alias)
        things = {_normal(_full_name(t)) for t in (*knowledge.things, *(a.thing for a in knowledge.actions))}
        kinds = {_normal(thing.name) for thing in knowledge.things}
        definite = knowledge.subtype == USER_PATTERN or knowledge.alias.lower().startswith("my ")
        for node in [self._nodes[i] for i in self._called.get((knowledge.subtype, alias), ())]:
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

    def _same_words(self, knowledge: Knowledge, alias: str) -> str | None:
        """Id of what says the same in the same words about no things: else nothing tells that it is the same."""
        for number in self._called.get((knowledge.subtype, alias), ()):
            words = _normal(self._nodes[number]["description"])
            if words == _normal(knowledge.description) and not self._things_of(number):
                return number
        return None

    @staticmethod
    def _about(knowledge: Knowledge) -> str:
        things = dict.fromkeys(_full_name(t) for t in (*knowledge.things, *(a.thing for a in knowledge.actions)))
        return _about(knowledge.alias, knowledge.description, things)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """`apply` of an event that has passed `check`. Raises InvalidInputError for unknown nodes."""
        for change in event["changes"]:
            target = change["target"]
            if target not in self._known and (target is not None or change.get("ended")):
                raise InvalidInputError(f"{EVENT}: expected known nodes, got {shown(target)}")
        source = [event["episode"], event["step"]]
        self.changed = []
        for change in event["changes"]:
            if change.get("ended"):
                self._end(self._known[change["target"]][-1], event["time"])
                self.changed.append(("end", change["target"]))
                continue
            said = change["knowledge"]
            things = tuple(Thing(**thing) for thing in said.get("things", ()))
            actions = tuple(
                Action(**{**action, "thing": Thing(**action["thing"])}) for action in said.get("actions", ())
            )
            knowledge = Knowledge(**{**said, "things": things, "actions": actions})
            number = self._write(change["target"], knowledge, source, event["time"])
            self.changed.append(("add" if change["target"] is None else "update", number))
            if (note := event.get("note")) is not None:
                notes = self._nodes[number].setdefault("notes", [])
                notes += [note] if note not in notes else []

    def check(self, event: Mapping[str, Any]) -> None:
        checked_event(EVENT, event, {"tell": Fields(WHEN)})
        if event.get("note") is not None:
            checked_number(f"{EVENT}: note", event["note"], 0)
        for change in checked_rows(f"{EVENT}: changes", event.get("changes")):
            if checked_mapping(f"{EVENT}: change", change).get("target") is not None:
                checked_text(f"{EVENT}: target", change["target"])
            if checked_flag(f"{EVENT}: ended", change.get("ended", False)):
                continue
            said = checked_mapping(f"{EVENT}: knowledge", change.get("knowledge"))
            check_texts(said, Knowledge, ("subtype", "alias", "description"), ("things", "actions", "extends"))
            checked_flag(f"{EVENT}: extends", said.get("extends", False))
            if said["subtype"] not in SUBTYPES:
                raise InvalidInputError(f"{EVENT}: expected {' or '.join(SUBTYPES)}, got {shown(said['subtype'])}")
            actions = checked_rows(f"{EVENT}: actions", said.get("actions", ()))
            for action in actions:
                check_texts(action, Action, ("relation", "location"), ("thing", "name"))
                checked_text(f"{EVENT}: name", action.get("name", ""))
            things = [
                *checked_rows(f"{EVENT}: things", said.get("things", ())),
                *(one.get("thing") for one in actions),
            ]
            for thing in things:
                check_texts(thing, Thing, ("name",), ("description",))
                checked_text(f"{EVENT}: description", thing.get("description", ""))

    def _write(self, target: str | None, knowledge: Knowledge, source: list[int], time: int) -> str:
        """Write knowledge, in place of a target's if there is one; its id."""
        if target is None:
            node = self._new("knowledge", subtype=knowledge.subtype, alias="", description="", origin=source[0])
            self._edge("u1", "refers_to", node["id"], source, time)
        else:
            node = self._nodes[target]
            self._edge("u1", "refers_to", target, source, time)
        if not (knowledge.extends and target is not None):
            self._called.get((node["subtype"], _normal(node["alias"])), {}).pop(node["id"], None)
            node |= {"alias": knowledge.alias, "description": knowledge.description, "origin": source[0]}
            self._enter(node)
        before = {edge.target: edge for edge in self._out(node["id"])}
        kept = self._attach(node["id"], knowledge, source, time, list(before))
        if target is not None and not knowledge.extends and kept:
            for other, edge in before.items():
                if other not in kept:
                    self._end(edge, time)
        number = int(node["id"][1:])
        self._text_index.add(number, self._about_node(node))
        return str(node["id"])

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
        known = self._named.get((kind, _normal(name)))
        return str(self._new(kind, name=name, **attributes)["id"]) if known is None else known

    def _new(self, kind: str, **attributes: Any) -> dict[str, Any]:
        self._counts[kind] += 1
        number = f"{_PREFIX[kind]}{self._counts[kind]}"
        self._nodes[number] = {"id": number, "type": kind, **attributes}
        if kind != "knowledge":
            self._enter(self._nodes[number])
        return self._nodes[number]

    def _edge(self, source_id: str, relation: str, target: str, source: list[int], time: int) -> None:
        """Add an edge, or a source to the one that says so already."""
        for edge in self._known.get(target, ()) if source_id == "u1" else self._edges_of.get(source_id, ()):
            if (edge.relation, edge.target) == (relation, target) and edge.invalid_at is None:
                if source not in edge.sources:
                    edge.sources.append(list(source))
                return
        kind = "Temporal" if relation == "before" else "Hierarchical"
        edge = Edge(source_id, target, kind, relation, time, None, [list(source)])
        self._edges.append(edge)
        self._edges_of.setdefault(source_id, []).append(edge)
        if source_id == "u1":
            self._known.setdefault(target, []).append(edge)

    def _end(self, edge: Edge, time: int) -> None:
        ended = [edge]
        if edge.relation == "entails":  # a pattern has one owner: its targets and its place in the order end too
            ended += self._edges_of.get(edge.target, [])
            ended += [e for e in self._edges if e.relation == "before" and e.target == edge.target]
        for one in ended:
            if one.invalid_at is None:
                one.invalid_at = time

    # Reading.

    def nodes(self) -> list[dict[str, Any]]:
        """All nodes, as in MEMENTO's table 8."""
        return [{k: v for k, v in node.items() if k not in ("origin", "notes")} for node in self._nodes.values()]

    def edges(self, ended: bool = False) -> list[dict[str, Any]]:
        """The edges that are true, as in MEMENTO's table 7, or with `ended` all, with times and sources."""
        if checked_flag("ended", ended):
            return [dict(vars(edge)) for edge in self._edges]
        keys = ("source", "target", "type", "relation")
        return [{key: getattr(edge, key) for key in keys} for edge in self._edges if edge.invalid_at is None]

    def knowledge(self, number: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """A node of knowledge, and the edges by which the user refers to it, with times and sources."""
        return dict(self._nodes[number]), [dict(vars(edge)) for edge in self._known[number]]

    def _of_type(self, kind: str) -> list[dict[str, Any]]:
        return [node for node in self._nodes.values() if node["type"] == kind]

    def _out(self, node: str) -> list[Edge]:
        return [edge for edge in self._edges_of.get(node, ()) if edge.invalid_at is None]

    def _things_of(self, knowledge: str) -> list[str]:
        """Ids of the objects below a knowledge node."""
        found: dict[str, None] = {}
        for edge in self._out(knowledge):
            below = [edge.target] if edge.relation == "composed_of" else []
            below += [e.target for e in self._out(edge.target) if e.relation == "target"]
            found.update((i, None) for i in below if self._nodes[i]["type"] == "object")
        return list(found)

    def retrieve(self, query: str, k: int = 5, subtype: str | None = None, *, as_of: int | None = None) -> list[Item]:
        """What the user's words refer to: each sentence of the query is compared with all knowledge of the subtype.

        Args:
            query: an instruction.
            k: at most so many.
            subtype: "object_semantics" or "user_pattern"; None for both.
            as_of: None for what the user refers to now; else what the user referred to at this time.
        """
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        if subtype is not None and (not isinstance(subtype, str) or subtype not in SUBTYPES):
            raise InvalidInputError(f"subtype: expected one of {', '.join(SUBTYPES)} or None, got {shown(subtype)}")
        best: dict[int, tuple[float, str]] = {}
        for part in dict.fromkeys([query, *sentences_of(query)]):
            for number, cosine in self._text_index.search(part, 2 * k):
                node = self._nodes[f"k{number}"]
                if not self._is_known(node["id"], as_of):
                    continue
                if subtype in (None, node["subtype"]) and cosine > max(_MINIMUM, best.get(number, (0.0, ""))[0]):
                    best[number] = (cosine, part)
        chosen = sorted(best, key=lambda number: (-best[number][0], number))[:k]
        return [self._item(self._nodes[f"k{number}"], *best[number]) for number in chosen]

    def text_of(self, knowledge: str) -> str:
        """What the user calls it, and what it is: one line."""
        node = self._nodes[knowledge]
        steps = [self._nodes[e.target]["args"] for e in self._out(node["id"]) if e.relation == "entails"]
        things = [self._nodes[i]["name"] for i in self._things_of(node["id"])]
        if node["subtype"] == OBJECT_SEMANTICS:
            told = ", ".join(things) or node["description"]
        else:
            told = "; then ".join(f"place {' '.join(args)}" for args in steps) or node["description"]
            extra = [self._nodes[e.target]["name"] for e in self._out(node["id"]) if e.relation == "composed_of"]
            told += f"; with {', '.join(extra)}" if extra and steps else ""
        return node["alias"] if told == node["alias"] else f"{node['alias']}: {told}"

    def _item(self, node: dict[str, Any], cosine: float, part: str) -> Item:
        steps = [self._nodes[e.target]["args"] for e in self._out(node["id"]) if e.relation == "entails"]
        things = [self._nodes[i]["name"] for i in self._things_of(node["id"])]
        rows = self._known[node["id"]][-1].sources
        episode, step = rows[-1]
        sources = tuple(dict.fromkeys(row[0] for row in rows))
        data = {key: node[key] for key in ("subtype", "alias", "description")} | {"things": things, "steps": steps}
        why = f"{node['subtype'].replace('_', ' ')} {cosine:.2f} similar to {part!r}"
        data |= {"id": f"profile:{node['id']}", "notes": tuple(node.get("notes", ()))}
        return Item(self.text_of(node["id"]), "profile", min(cosine, 1.0), why, episode, step, sources, data)

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        nodes, edges = list(self._nodes.values()), [vars(edge) for edge in self._edges]
        return ({"embedder": self.embedder.name, "counts": self._counts, "nodes": nodes, "edges": edges},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        self.embedder.check(state)
        counts = {kind: int(state["counts"][kind]) for kind in _PREFIX}
        nodes, edges = {node["id"]: node for node in state["nodes"]}, [Edge(**edge) for edge in state["edges"]]
        check_graph(nodes, edges)
        self._clear()
        self._counts, self._nodes, self._edges = counts, nodes, edges
        self._index()

    def fork(self) -> Self:
        other = super().fork()
        other._nodes, other._edges, other._counts = copy.deepcopy((self._nodes, self._edges, self._counts))
        other._text_index = self._text_index.fork()
        other._find_again()
        return other

    def _index(self) -> None:
        self._find_again()
        self._text_index = TextIndex(self.embedder)
        nodes = self._of_type("knowledge")
        self._text_index.add_many((int(node["id"][1:]), self._about_node(node)) for node in nodes)

    def only_from(self, selector: Selector) -> list[Selector]:
        """What to forget with a note: the knowledge that no other note tells."""
        if not (number := selector.number_in("notes")).isdecimal():
            return []
        nodes = [node for node in self._of_type("knowledge") if node.get("notes") == [int(number)]]
        return [Selector(entry=f"profile:{node['id']}") for node in nodes]

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
            or selector.is_entry("profile", node["id"])
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
