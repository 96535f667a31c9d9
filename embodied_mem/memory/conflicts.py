"""Checks of a graph: an audit of all of it, and a second look at the conflicts of one change.

    report = audit(graph)
    report.counts                           # {"near_names": 1, ...}
    print(report.text)                      # the same with names

    review = ConflictReview(graph, ChatResolver(ChatWriter(chat)), timeout_s=2.0)
    change = graph.update(triples)          # by rules: of two facts that exclude each other the older one has ended
    review(change)                          # where the resolver sees it otherwise, one batch puts it right
    review.asked, review.corrected, review.malformed, review.late, review.stale

An audit reads one snapshot and changes nothing. What to do about a finding is the caller's decision.

The rules come first, so no reader ever sees a contradiction and nobody waits for a model; and they stay in force where
there is no usable answer in time. Each such case is counted.

Source: RoboMemory, Algorithm 1, step 3 (a model finds the conflicts in the local subgraph). Deviation: the rules find
them, and the model is asked only about these.
"""

from __future__ import annotations

import collections
import dataclasses
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, cast, get_args

from ..errors import EmbodiedMemError, InvalidInputError
from ..language.prompt_files import prompt
from .arguments import checked_number, checked_real, shown
from .chat_writer import ChatWriter, checked_writer
from .graph import Applied, Change, ConflictRule, Ended, Fact, KnowledgeGraph, NewFact, Snapshot, Subgraph

_SHOWN = 20
_NESTING = frozenset(("in", "on", "under"))
_ARTICLES = {"a", "an", "the"}


@dataclasses.dataclass(frozen=True)
class Contradiction:
    """Current facts in one slot of `node`, where a rule allows one."""

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
    """Return a name without case, articles, punctuation and spacing of numbers."""
    words = re.findall(r"[^\W\d_]+|\d+", name.casefold())
    kept = [word for word in words if word not in _ARTICLES]
    return " ".join(kept or words) or name


def audit(graph: KnowledgeGraph) -> Audit:
    """Return what is wrong with the newest version of a graph."""
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
    return Audit(len(nodes), len(facts), **found, text=_report_text(len(nodes), facts, found, names))


def _loops(facts: list[Fact]) -> Iterator[tuple[int, ...]]:
    """Yield each ring of things in one another, once."""
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


def _report_text(num_nodes: int, facts: list[Fact], found: Mapping[str, tuple[Any, ...]], names: dict[int, str]) -> str:
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


Verdict = Literal["old", "new", "neither"]
"""The fact that ends: the one that was there, the one that contradicts it (it never held), or none."""

_VERDICTS = get_args(Verdict)


@dataclasses.dataclass(frozen=True)
class Conflict:
    """Two facts as text, and the rule that they break together."""

    old: str
    new: str
    rule: str


class ConflictResolver(Protocol):
    """Decides about conflicts from the facts around them and nothing else."""

    def __call__(self, facts: Sequence[str], conflicts: Sequence[Conflict]) -> Sequence[Verdict] | None:
        """Return a verdict for each conflict; None if there is none.

        Called in a thread of its own.
        """


class Corrected(Protocol):
    """A graph that takes corrections, recorded first or not."""

    def snapshot(self) -> Snapshot: ...

    def apply(self, *, invalidate: Iterable[tuple[int, int]], add: Iterable[NewFact]) -> Applied: ...


class ConflictReview:
    """A second look at the conflicts of a change by a resolver.

    Attributes:
        asked: questions.
        corrected: conflicts that were decided against the rules.
        malformed: answers that are no list of verdicts, and failures of the resolver.
        late: answers that were not there in time, and changes that came while one was still waited for.
        stale: conflicts that had changed before the answer came.
    """

    def __init__(
        self,
        graph: Corrected,
        resolver: ConflictResolver,
        *,
        timeout_s: float = 2.0,
        max_facts: int = 64,
        otherwise: Callable[[Ended], Verdict] | None = None,
    ):
        """Review changes of a graph.

        Args:
            graph: whose changes.
            resolver: who is asked.
            timeout_s: how long an answer is waited for.
            max_facts: of those around a conflict that the resolver is shown.
            otherwise: the verdict on a conflict where there is no usable answer; None for that of the rules.
        """
        if not 0 < checked_real("timeout_s", timeout_s) <= threading.TIMEOUT_MAX:
            raise InvalidInputError(f"timeout_s: expected more than 0, got {timeout_s}")
        if checked_number("max_facts", max_facts) < 1:
            raise InvalidInputError(f"max_facts: expected at least 1, got {max_facts}")
        if not callable(resolver) or not callable(getattr(graph, "snapshot", None)):
            raise InvalidInputError(f"expected a graph and a resolver, got {shown(graph)} and {shown(resolver)}")
        self._graph, self._resolver, self._otherwise = graph, resolver, otherwise
        self._timeout_s, self._max_facts = timeout_s, max_facts
        self._thread: threading.Thread | None = None
        self.asked = self.corrected = self.malformed = self.late = self.stale = 0
        self.last_error = ""

    def __call__(self, change: Change) -> Applied | None:
        """Return what was put right; None where the rules were.

        Called by one thread at a time, the graph's writer.

        A fact that should not have ended holds again from the moment of its end on, as a new fact with its last source.
        """
        if not isinstance(change, Change):
            raise InvalidInputError(f"change: expected what an update returned, got {shown(change)}")
        return self.review(change.ended, change.subgraph)

    def review(self, conflicts: Sequence[Ended], around: Subgraph | None) -> Applied | None:
        """Do the same with the conflicts and what lies around them."""
        if not conflicts:
            return None
        verdicts = self._ask(*self._question(conflicts, around))
        if verdicts is None and self._otherwise is not None:
            verdicts = [self._otherwise(ended) for ended in conflicts]
        if verdicts is None:
            return None
        with self._graph.snapshot() as now:
            invalidate, add = self._corrections(now, conflicts, verdicts)
        return self._graph.apply(invalidate=invalidate.items(), add=add) if add else None

    def _question(self, conflicts: Sequence[Ended], around: Subgraph | None) -> tuple[list[str], list[Conflict]]:
        with self._graph.snapshot() as now:
            near = [] if around is None else around.facts.tolist()
            new = {ended.by for ended in conflicts}
            facts = [_fact_text(now, fact) for fact in near if fact not in new][: self._max_facts]
            return facts, [Conflict(_fact_text(now, e.fact), _fact_text(now, e.by), e.rule) for e in conflicts]

    def _ask(self, facts: list[str], conflicts: list[Conflict]) -> Sequence[Verdict] | None:
        too_late = f"no answer within {self._timeout_s:g} s"
        if self._thread is not None and self._thread.is_alive():
            self.late, self.last_error = self.late + 1, too_late
            return None
        self.asked += 1
        box: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(1)

        def work() -> None:
            try:
                box.put((self._resolver(facts, conflicts), None))
            except BaseException as error:
                box.put((None, error))

        self._thread = threading.Thread(target=work, daemon=True, name="conflict-resolver")
        self._thread.start()
        try:
            verdicts, error = box.get(timeout=self._timeout_s)
        except queue.Empty:
            self.late, self.last_error = self.late + 1, too_late
            return None
        if error is not None and not isinstance(error, (EmbodiedMemError, OSError)):
            raise error
        if isinstance(verdicts, Sequence) and len(verdicts) == len(conflicts) and all(v in _VERDICTS for v in verdicts):
            return verdicts
        self.malformed, self.last_error = self.malformed + 1, shown(verdicts if error is None else error)
        return None

    def _corrections(
        self, now: Snapshot, conflicts: Sequence[Ended], verdicts: Sequence[Verdict]
    ) -> tuple[dict[int, int], list[NewFact]]:
        invalidate: dict[int, int] = {}
        add: list[NewFact] = []
        for conflict, verdict in zip(conflicts, verdicts):
            if verdict == "old":
                continue
            if not _stands(now, conflict):
                self.stale += 1
                continue
            old, new = now.fact(conflict.fact), now.fact(conflict.by)
            if verdict == "new":
                invalidate[new.id] = new.valid_at
            add.append(_again(old, new.valid_at))
            self.corrected += 1
        return invalidate, add


class ChatResolver:
    """A `ConflictResolver` that asks a chat model; `writer` counts its failures."""

    def __init__(self, writer: ChatWriter):
        if checked_writer(writer) is None:
            raise InvalidInputError("writer: expected a ChatWriter, got None")
        self.writer = writer

    def __call__(self, facts: Sequence[str], conflicts: Sequence[Conflict]) -> Sequence[Verdict] | None:
        lines = [f"{i}. old: {c.old}; new: {c.new}; rule: {c.rule}" for i, c in enumerate(conflicts, start=1)]
        question = "\n".join(["What is known:", *(facts or ["nothing"]), "", "Conflicts:", *lines])
        return self.writer.ask(_INSTRUCTION, question, lambda value: cast(list[Verdict], list(map(str, value["ends"]))))


_INSTRUCTION = prompt("embodied_mem.memory", "conflicts")


def _fact_text(now: Snapshot, id: int) -> str:
    fact = now.fact(id)
    return f"{now.node(fact.subject).name} {fact.relation} {now.node(fact.object).name} (since {fact.valid_at})"


def _stands(now: Snapshot, conflict: Ended) -> bool:
    """Return whether both facts are still as the rule left them."""
    if not now.has_fact(conflict.fact) or not now.has_fact(conflict.by):
        return False
    old, new = now.fact(conflict.fact), now.fact(conflict.by)
    return new.invalid_at is None and old.invalid_at == new.valid_at


def _again(old: Fact, valid_at: int) -> NewFact:
    return NewFact(old.subject, old.relation, old.object, valid_at, old.sources[-1] if old.sources else None)
