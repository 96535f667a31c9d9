"""Whose word each fact of a graph is, and which facts of others may enter.

    trust = FactTrust()
    trust.admitted(graph, [("home/mug 1", "on", "home/desk 1")], "document")       # [0]: it may be written
    trust.wrote(change, "document")
    trust.of(0)                          # "document"

What another agent or a document says of the robot itself does not enter, nor what a more trusted fact says already or
contradicts: such texts stay notes. So no fact is ended or refreshed by a source that is trusted less than its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import InvalidInputError
from ..arguments import checked_number, shown
from ..graph import Change, ConflictRule, KnowledgeGraph, Snapshot
from ..readers.reading import AGENT
from ..trust import RANK, Trust, checked_trust
from .records import SEPARATOR

Names = tuple[str, str, str]


class FactTrust:
    """Levels of facts; those that the robot saw itself, nearly all, take no room.

    Attributes:
        levels: of the facts of anyone else, to read.
    """

    def __init__(self) -> None:
        self.levels: dict[int, Trust] = {}

    def of(self, fact: int) -> Trust:
        """The level of the most trusted source of a fact."""
        return self.levels.get(fact, "sensor")

    def __bool__(self) -> bool:
        return bool(self.levels)

    def admitted(self, graph: KnowledgeGraph, facts: Sequence[Names], trust: Trust) -> list[int]:
        """The positions of the facts between nodes that a source of this level may write."""
        with graph.snapshot() as now:
            return [
                position
                for position, fact in enumerate(facts)
                if not any(name.partition(SEPARATOR)[0] == AGENT for name in fact)  # itself and its hands
                and all(RANK[self.of(other)] <= RANK[trust] for other in rivals(now, fact, graph.rules))
            ]

    def wrote(self, change: Change, trust: Trust) -> None:
        """Take note of who said the facts of a change."""
        for fact in change.added:
            self._put(fact, trust)
        for fact in change.repeated:
            self._put(fact, max(self.of(fact), trust, key=RANK.__getitem__))

    def _put(self, fact: int, trust: Trust) -> None:
        if trust == "sensor":
            self.levels.pop(fact, None)
        else:
            self.levels[fact] = trust

    def keep(self, now: Snapshot) -> None:
        """Forget the facts that are not in a graph any more."""
        self.levels = {fact: trust for fact, trust in self.levels.items() if now.has_fact(fact)}

    def fork(self) -> FactTrust:
        other = FactTrust()
        other.levels = dict(self.levels)
        return other

    def rows(self) -> list[tuple[int, Trust]]:
        """For a state: facts with their levels."""
        return sorted(self.levels.items())

    @classmethod
    def of_rows(cls, rows: Any, num_facts: int) -> FactTrust:
        """What `rows` gave. Raises InvalidInputError for anything else."""
        other = cls()
        for row in rows:
            if len(row) != 2:
                raise InvalidInputError(f"state: trust: expected a fact and its level, got {shown(row)}")
            fact = checked_number("state: trust: fact", row[0], 0, num_facts - 1)
            other.levels[fact] = checked_trust("state: trust", row[1])
        return other


def rivals(now: Snapshot, fact: Names, rules: Sequence[ConflictRule]) -> Iterator[int]:
    """The current facts that say the same, or that cannot be so together with a fact."""
    subject, relation, object_ = fact
    ends = {"subject": now.find(subject), "object": now.find(object_)}
    if relation in now.relations and None not in ends.values():
        same = now.find_fact(ends["subject"], relation, ends["object"])  # type: ignore[arg-type]
        if same is not None:
            yield same
    for rule in rules:
        members = [(member[0], member[1], member[2] if len(member) > 2 else ()) for member in rule.members]
        for mine, end, objects in members:
            node = ends[end]
            if mine != relation or node is None or (objects and object_ not in objects):
                continue
            for other in now.facts_of(node, "both").tolist():
                known = now.fact(other)
                if any(
                    known.relation == name
                    and (known.subject if its == "subject" else known.object) == node
                    and (not only or now.name(known.object) in only)
                    for name, its, only in members
                ):
                    yield other
