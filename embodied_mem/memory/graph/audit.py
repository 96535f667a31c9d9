"""Audits a graph: duplicates, contradictions, orphans, facts without source, loops.

    report = audit(graph)
    report.counts          # {"near_names": 1, ...}
    print(report.text)     # the same with names

Reads one snapshot, whole; nothing is changed. What to do about a finding is the caller's decision.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .graph import KnowledgeGraph
from .records import ConflictRule, Fact

_SHOWN = 20
_NESTING = frozenset(("in", "on", "under"))
_ARTICLES = {"a", "an", "the"}


@dataclasses.dataclass(frozen=True)
class Contradiction:
    """Current facts that fill one slot of `node`, of which the rule allows one."""

    rule: str
    node: int
    facts: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Audit:
    """The findings as ids, each list in the order of ids.

    Attributes:
        num_nodes, num_facts: looked at; facts that ended included.
        duplicate_facts: ids of current facts that say the same.
        near_names: ids of nodes whose names differ in case, articles, punctuation or spacing only.
        contradictions: violated rules.
        orphans: nodes without any fact, current or past.
        unsourced: facts that no episode supports.
        self_loops: facts from a node to itself.
        loops: facts of which each says that a thing is in or on what the next one is about: a box in a bag in the box.
        text: all of it to read, names included.
    """

    num_nodes: int
    num_facts: int
    duplicate_facts: tuple[tuple[int, ...], ...]
    near_names: tuple[tuple[int, ...], ...]
    contradictions: tuple[Contradiction, ...]
    orphans: tuple[int, ...]
    unsourced: tuple[int, ...]
    self_loops: tuple[int, ...]
    loops: tuple[tuple[int, ...], ...]
    text: str

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings of each kind."""
        names = ("duplicate_facts", "near_names", "contradictions", "orphans", "unsourced", "self_loops", "loops")
        return {name: len(getattr(self, name)) for name in names}

    @property
    def clean(self) -> bool:
        return not any(self.counts.values())


def plain_name(name: str) -> str:
    """Return the name without what people write differently: case, articles, punctuation, a space before a number."""
    words = re.findall(r"[^\W\d_]+|\d+", name.casefold())
    kept = [word for word in words if word not in _ARTICLES]
    return " ".join(kept or words) or name


def audit(graph: KnowledgeGraph) -> Audit:
    """Return what is wrong with the newest version of the graph. Takes time in proportion to its size."""
    with graph.snapshot() as now:
        nodes = [now.node(i) for i in now.node_ids()]
        facts = [now.fact(i) for i in range(now.num_facts) if now.has_fact(i)]
    names = {node.id: node.name for node in nodes}
    current = [fact for fact in facts if fact.invalid_at is None]
    same: dict[object, list[int]] = collections.defaultdict(list)
    for fact in current:
        same[fact.subject, fact.relation, fact.object].append(fact.id)
    near: dict[str, list[int]] = collections.defaultdict(list)
    for node in nodes:
        near[plain_name(node.name)].append(node.id)
    used = {node for fact in facts for node in (fact.subject, fact.object)}
    found: dict[str, Any] = {
        "duplicate_facts": _several(same),
        "near_names": _several(near),
        "contradictions": tuple(_contradictions(current, graph.rules, names)),
        "orphans": tuple(node.id for node in nodes if node.id not in used),
        "unsourced": tuple(fact.id for fact in facts if not fact.sources),
        "self_loops": tuple(fact.id for fact in facts if fact.subject == fact.object),
        "loops": tuple(_loops(current)),
    }
    return Audit(len(nodes), len(facts), **found, text=_text(len(nodes), facts, found, names))


def _loops(facts: list[Fact]) -> Iterator[tuple[int, ...]]:
    """Each ring of things that are in or on one another, once, from its lowest fact on."""
    outward: dict[int, list[Fact]] = collections.defaultdict(list)
    for fact in facts:
        if fact.relation in _NESTING and fact.subject != fact.object:
            outward[fact.subject].append(fact)
    done: set[int] = set()
    found: set[tuple[int, ...]] = set()
    for start in sorted(outward):
        path: list[Fact] = []
        on_path, stack = {start: 0}, [(start, iter(outward[start]))]
        while stack:
            node, left = stack[-1]
            edge = next(left, None)
            if edge is None:
                stack.pop()
                done.add(node)
                on_path.pop(node)
                path = path[:-1]
            elif edge.object in on_path:
                ring = [one.id for one in [*path[on_path[edge.object] :], edge]]
                lowest = ring.index(min(ring))
                found.add(tuple(ring[lowest:] + ring[:lowest]))
            elif edge.object not in done:
                path.append(edge)
                on_path[edge.object] = len(path)
                stack.append((edge.object, iter(outward[edge.object])))
    yield from sorted(found)


def _several(groups: Mapping[Any, list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(tuple(ids) for ids in groups.values() if len(ids) > 1))


def _contradictions(
    facts: list[Fact], rules: tuple[ConflictRule, ...], names: dict[int, str]
) -> Iterator[Contradiction]:
    for rule in rules:
        slots: dict[int, set[int]] = collections.defaultdict(set)
        members = [(member[0], member[1], member[2] if len(member) > 2 else ()) for member in rule.members]
        for fact in facts:
            for relation, end, objects in members:
                if fact.relation == relation and (not objects or names[fact.object] in objects):
                    slots[fact.subject if end == "subject" else fact.object].add(fact.id)
        for node in sorted(slots):
            if len(slots[node]) > 1:
                yield Contradiction(rule.name, node, tuple(sorted(slots[node])))


def _text(num_nodes: int, facts: list[Fact], found: Mapping[str, tuple[Any, ...]], names: dict[int, str]) -> str:
    by_id = {fact.id: fact for fact in facts}

    def say(item: Any, kind: str) -> str:
        if isinstance(item, Contradiction):
            return f"{item.rule} of {names[item.node]!r}: " + "; ".join(say(fact, "") for fact in item.facts)
        if isinstance(item, tuple):
            return "; ".join(say(one, kind) for one in item)
        if kind in ("near_names", "orphans"):
            return f"{item}: {names[item]!r}"
        fact = by_id[item]
        return f"{item}: {names[fact.subject]!r} {fact.relation} {names[fact.object]!r}"

    lines = [f"{num_nodes} nodes, {len(facts)} facts"]
    for kind, items in found.items():
        lines.append(f"{kind.replace('_', ' ')}: {len(items)}")
        lines += [f"  {say(item, kind)}" for item in items[:_SHOWN]]
        if len(items) > _SHOWN:
            lines.append(f"  ... and {len(items) - _SHOWN} more")
    return "\n".join(lines)
