"""The knowledge graph as a plain list of facts, every answer by scanning it, for tests."""

from __future__ import annotations

import dataclasses

from embodied_mem.memory import KnowledgeGraph

RELATIONS = ("in", "on", "near")


@dataclasses.dataclass
class Item:
    subject: int
    relation: str
    object: int
    valid_at: int
    invalid_at: int | None
    sources: list[int]

    def true_at(self, as_of: int | None) -> bool:
        if as_of is None:
            return self.invalid_at is None
        return self.valid_at <= as_of and (self.invalid_at is None or as_of < self.invalid_at)


class Model:
    """The graph as a list of facts; every answer by scanning it."""

    def __init__(self, names: list[str] = (), items: list[Item] = ()):
        self.names = list(names)
        self.items = [dataclasses.replace(item, sources=list(item.sources)) for item in items]

    def copy(self) -> Model:
        return Model(self.names, self.items)

    def node(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def add(self, subject: int, relation: str, object_: int, time: int, source: int | None) -> int:
        for i, item in enumerate(self.items):
            if (item.subject, item.relation, item.object, item.invalid_at) == (subject, relation, object_, None):
                if source is not None and item.sources[-1:] != [source]:
                    item.sources.append(source)
                return i
        self.items.append(Item(subject, relation, object_, time, None, [] if source is None else [source]))
        return len(self.items) - 1

    def slots(self, item: Item) -> set:
        """The slots that a fact fills, by HOUSEHOLD_RULES, written independently of how rules are given."""
        slots = set()
        if item.relation in ("in", "on"):
            slots.add(("place", item.subject))
        if item.relation == "holds":
            slots |= {("place", item.object), ("hand", item.subject)}
        if item.relation == "is" and self.names[item.object] in ("open", "closed"):
            slots.add(("door", item.subject))
        if item.relation == "is" and self.names[item.object] in ("on", "off"):
            slots.add(("switch", item.subject))
        return slots

    def update(self, subject: str, relation: str, object_: str, time: int) -> None:
        """Times never go back here; the native tests have late reports."""
        new = Item(self.node(subject), relation, self.node(object_), time, None, [time])
        same = [i for i in self.items if (i.subject, i.relation, i.object) == (new.subject, relation, new.object)]
        if not any(item.invalid_at is None for item in same):
            for item in self.items:
                if item.invalid_at is None and self.slots(item) & self.slots(new):
                    item.invalid_at = time
        self.add(new.subject, relation, new.object, time, time)

    def khop(self, sources, hops, direction, relations, as_of) -> tuple[dict[int, int], set[int]]:
        found, facts = dict.fromkeys(sources, 0), set()
        for hop in range(hops):
            level = {node for node, at in found.items() if at == hop}
            for i, item in enumerate(self.items):
                if not item.true_at(as_of) or (relations is not None and item.relation not in relations):
                    continue
                for here, there, way in ((item.subject, item.object, "out"), (item.object, item.subject, "in")):
                    if here in level and direction in (way, "both"):
                        found.setdefault(there, hop + 1)
                        facts.add(i)
        return found, facts


def check(graph_or_snapshot, model: Model) -> None:
    """The whole content is the model's."""
    snapshot = graph_or_snapshot.snapshot() if isinstance(graph_or_snapshot, KnowledgeGraph) else graph_or_snapshot
    assert snapshot.num_nodes == len(model.names)
    assert snapshot.num_facts == len(model.items)
    assert snapshot.num_current_facts == sum(item.invalid_at is None for item in model.items)
    for i, name in enumerate(model.names):
        assert snapshot.find(name) == i
        assert snapshot.node(i).name == name
    for i, item in enumerate(model.items):
        fact = snapshot.fact(i)
        assert fact._asdict() == {"id": i, **dataclasses.asdict(item), "sources": tuple(item.sources)}
    for as_of in (None, 0, 3, 7):
        expected = [i for i, item in enumerate(model.items) if item.true_at(as_of)]
        assert snapshot.facts(as_of).tolist() == expected
