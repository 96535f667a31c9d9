"""Reviews contradictions: a resolver sees their neighbourhood and decides which facts end.

    review = ConflictReview(graph, ChatResolver(ChatWriter(chat)), timeout_s=2.0)
    change = graph.update(triples)          # by rules: of two facts that exclude each other the older one has ended
    review(change)                          # where the resolver sees it otherwise, one batch puts it right
    review.asked, review.corrected, review.malformed, review.late, review.stale

The rules come first, so no reader ever sees a contradiction and nobody waits for a model; and they stay in force where
there is no usable answer in time. Each such case is counted.

Source: RoboMemory, Algorithm 1, step 3 (a model finds the conflicts in the local subgraph). Deviation: the rules find
them, and the model is asked only about these.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, cast, get_args

from ...errors import EmbodiedMemError, InvalidInputError
from ..arguments import checked_number, checked_real, shown
from ..chat_writer import ChatWriter, checked_writer
from .records import Applied, Change, Ended, Fact, NewFact
from .snapshot import Snapshot

Verdict = Literal["old", "new", "neither"]
"""Which of the two ends: the fact that was there, the one that contradicts it (it never held), or none."""

_VERDICTS = get_args(Verdict)


@dataclasses.dataclass(frozen=True)
class Conflict:
    """Two facts as text, and the rule by which they exclude each other."""

    old: str
    new: str
    rule: str


class ConflictResolver(Protocol):
    """Decides about conflicts from the facts around them and nothing else."""

    def __call__(self, facts: Sequence[str], conflicts: Sequence[Conflict]) -> Sequence[Verdict] | None:
        """Return a verdict for each conflict; None if there is none to be had. Called in a thread of its own."""


class Corrected(Protocol):
    """The graph whose changes are reviewed: a `KnowledgeGraph`, or what records corrections before they are made."""

    def snapshot(self) -> Snapshot: ...

    def apply(self, *, invalidate: Iterable[tuple[int, int]], add: Iterable[NewFact]) -> Applied: ...


class ConflictReview:
    """Asks a resolver about the conflicts of a change and puts into the graph what it says.

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
        """Return what was put right; None where the rules were. Called by one thread at a time, the graph's writer.

        A fact that should not have ended holds again from the moment of its end on, as a new fact with its last source.
        """
        if not isinstance(change, Change):
            raise InvalidInputError(f"change: expected what an update returned, got {shown(change)}")
        if not change.ended:
            return None
        verdicts = self._ask(*self._question(change))
        if verdicts is None and self._otherwise is not None:
            verdicts = [self._otherwise(ended) for ended in change.ended]
        if verdicts is None:
            return None
        with self._graph.snapshot() as now:
            invalidate, add = self._corrections(now, change.ended, verdicts)
        return self._graph.apply(invalidate=invalidate.items(), add=add) if add else None

    def _question(self, change: Change) -> tuple[list[str], list[Conflict]]:
        with self._graph.snapshot() as now:
            around = [] if change.subgraph is None else change.subgraph.facts.tolist()
            new = {ended.by for ended in change.ended}
            facts = [_text(now, fact) for fact in around if fact not in new][: self._max_facts]
            return facts, [Conflict(_text(now, e.fact), _text(now, e.by), e.rule) for e in change.ended]

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
    """A `ConflictResolver` that asks a chat model; `writer` counts what it did not answer well."""

    def __init__(self, writer: ChatWriter):
        if checked_writer(writer) is None:
            raise InvalidInputError("writer: expected a ChatWriter, got None")
        self.writer = writer

    def __call__(self, facts: Sequence[str], conflicts: Sequence[Conflict]) -> Sequence[Verdict] | None:
        lines = [f"{i}. old: {c.old}; new: {c.new}; rule: {c.rule}" for i, c in enumerate(conflicts, start=1)]
        question = "\n".join(["What is known:", *(facts or ["nothing"]), "", "Conflicts:", *lines])
        return self.writer.ask(_INSTRUCTION, question, lambda value: cast(list[Verdict], list(map(str, value["ends"]))))


_INSTRUCTION = (
    "A household robot keeps facts with the times since when they hold. Two facts of each conflict cannot both hold by "
    "its rule. Say for each conflict which one ends: the old one if the world has changed, the new one if it is a "
    "mistake, neither if the rule does not apply here. Answer with JSON only, one word for each conflict in order: "
    '{"ends": ["old" | "new" | "neither", ...]}.'
)


def _text(now: Snapshot, id: int) -> str:
    fact = now.fact(id)
    return f"{now.node(fact.subject).name} {fact.relation} {now.node(fact.object).name} (since {fact.valid_at})"


def _stands(now: Snapshot, conflict: Ended) -> bool:
    """Whether both facts are there as the rule left them: the new one current, the old one ended by it."""
    if not now.has_fact(conflict.fact) or not now.has_fact(conflict.by):
        return False
    old, new = now.fact(conflict.fact), now.fact(conflict.by)
    return new.invalid_at is None and old.invalid_at == new.valid_at


def _again(old: Fact, valid_at: int) -> NewFact:
    return NewFact(old.subject, old.relation, old.object, valid_at, old.sources[-1] if old.sources else None)
