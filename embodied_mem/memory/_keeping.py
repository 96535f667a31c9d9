"""Makes the modules of a `LifelongMemory`, and writes, reads and forks all that it holds.

other = LifelongMemory(memory.scope)
other.restore(memory.state())           # the same entries; later changes of one are not seen by the other
what_if = memory.fork()                 # the same at hardly any cost, in this process only
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ..errors import InvalidInputError
from ._parts import LATER, MODULES, PER_STEP
from ._reviewing import Reviewing
from .arguments import WHEN, checked_flag, checked_number
from .episodic import EpisodicMemory
from .graph.relations import Relations
from .locks import Turns
from .notes import NoteMemory
from .parallel_calls import ParallelCalls
from .profile.profile import UserProfile
from .readers.once import ReadOnce
from .recollection import Item, Recollection
from .references import Recent, References
from .search import QueryEmbedder
from .semantic import SemanticMemory
from .spatial.spatial import SpatialMemory
from .store.module import RecordedModule
from .store.store import MemoryStore
from .temporal import TemporalMemory
from .views import ViewMemory


def _text(value: Any) -> str:
    """A text of a state: older versions took whatever they were given for one."""
    return value if isinstance(value, str) else "" if value is None else str(value)


class Keeping(Reviewing):
    """The part of `LifelongMemory` that makes it, keeps it and copies it."""

    store: MemoryStore | None
    reader: ReadOnce
    goal: str
    place: str
    running: bool
    _use: tuple[str, ...]
    _embedder: QueryEmbedder
    _capacity: int
    _relations: Relations
    _task_ids: list[str]
    _turns: list[tuple[str, str]]
    _outcomes: dict[int, bool]
    _references: References

    def _make(self) -> dict[str, Any]:
        scope, embedder, writer, reader = self.scope, self._embedder, self.writer, self.reader
        relations = self._relations
        facts, summary, said = (None,) * 3 if writer is None else (writer.facts, writer.summary, writer.step_summary)
        makers: dict[str, Callable[[], Any]] = {
            "spatial": lambda: SpatialMemory(scope, extractor=facts, reader=reader, relations=relations),
            "temporal": lambda: TemporalMemory(
                scope, capacity=self._capacity, summarizer=summary, step_summarizer=said, reader=reader
            ),
            "episodic": lambda: EpisodicMemory(scope, embedder=embedder, writer=writer, reader=reader),
            "semantic": lambda: SemanticMemory(scope, embedder=embedder, writer=writer, reader=reader),
            "profile": lambda: UserProfile(scope, embedder=embedder, writer=writer),
            "notes": lambda: NoteMemory(scope, embedder=embedder),
            "views": lambda: ViewMemory(scope),
        }
        return {name: makers[name]() for name in MODULES if name in self._use}

    def _set_modules(self, modules: dict[str, RecordedModule]) -> None:
        self._modules: dict[str, Any] = modules
        self._shared: set[str] = set()  # modules that a fork has, too: whoever changes one takes a copy first
        self._cache: dict[tuple[Any, ...], list[Item]] = {}
        self._last: Recollection | None = None
        self._recent = Recent()

    def _state(self) -> tuple[Any, ...]:
        """The task, then each module as a part."""
        own = {
            "modules": list(self._modules),
            "goal": self.goal,
            "place": self.place,
            "episode": self.episode,
            "step": self.step,
            "time": self.time,
            "running": self.running,
            "task_ids": self._task_ids,
            "turns": [list(turn) for turn in self._turns],
        }
        with self._turns_taken.reading:
            if self._outcomes:
                own["outcomes"] = [list(pair) for pair in sorted(self._outcomes.items())]
            if references := self._references.rows():
                own["references"] = references
            return own, *(module.state() for module in self._modules.values())

    def _restore(self, own: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        expected = list(self._modules)
        if own["modules"] != [name for name in expected if name in own["modules"] or name not in LATER]:
            raise InvalidInputError(f"state: expected modules {expected}, got {own['modules']}")
        modules = self._make()
        for name, part in zip(own["modules"], parts, strict=True):
            modules[name].restore(part)
        outcomes = {checked_number("step", step): checked_flag("failed", f) for step, f in own.get("outcomes", ())}
        goal, place, running = _text(own["goal"]), _text(own["place"]), bool(own["running"])
        episode, step, time = (checked_number(name, own[name]) for name in WHEN)
        task_ids = [_text(task_id) for task_id in own["task_ids"]]
        turns = [(_text(action), _text(text)) for action, text in own["turns"]]
        references = References.of_rows(own.get("references", {}))
        self._set_modules(modules)
        self.goal, self.place, self.running = goal, place, running
        self.episode, self.step, self.time = episode, step, time
        self._task_ids, self._turns, self._outcomes, self._references = task_ids, turns, outcomes, references

    def fork(self) -> Self:
        """An independent memory, in this process only, that starts as what this one is now.

        It costs no more for more facts: the graph shares what neither side changes, and a module that changes with
        tasks is copied when one side changes it first.
        """
        with self._turns_taken.reading:
            return self._forked()

    def _forked(self) -> Self:
        other = super().fork()
        other._turns_taken = Turns()
        other.store, other._calls = None, ParallelCalls(len(MODULES))
        self._shared = {name for name in self._modules if name not in PER_STEP}
        other._shared = set(self._shared)
        other._modules = {
            name: module if name in self._shared else module.fork() for name, module in self._modules.items()
        }
        other._cache, other._recent, other._references = dict(self._cache), Recent(), self._references.fork()
        other.review = other._make_review()
        other._task_ids, other._turns = list(self._task_ids), list(self._turns)
        other._outcomes = dict(self._outcomes)
        return other
