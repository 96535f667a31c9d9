"""The memories that a `LifelongMemory` is made of, by name, and how they run.

memory.profile, memory.notes            # None for one that is switched off
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InvalidInputError
from .arguments import checked_mapping, shown
from .episodic import EpisodicMemory
from .locks import Turns
from .mentions import normal
from .notes import NoteMemory
from .parallel_calls import ParallelCalls
from .profile.profile import UserProfile
from .record import FIELDS
from .semantic import SemanticMemory
from .spatial.spatial import SpatialMemory
from .store.module import RecordedModule
from .temporal import TemporalMemory
from .trust import checked_trust
from .views import ViewMemory

MODULES = ("spatial", "temporal", "episodic", "semantic", "profile", "notes", "views")
PER_STEP = ("spatial", "temporal")
"""Modules that change with every step."""

LATER = ("notes", "views")
"""Modules that older versions had not."""


class MemoryParts(RecordedModule):
    """The modules of one memory, and whose turn it is."""

    time: int
    _modules: dict[str, Any]
    _shared: set[str]
    _turns_taken: Turns
    _parallel: bool
    _calls: ParallelCalls

    @property
    def spatial(self) -> SpatialMemory | None:
        return self._modules.get("spatial")

    @property
    def temporal(self) -> TemporalMemory | None:
        return self._modules.get("temporal")

    @property
    def episodic(self) -> EpisodicMemory | None:
        return self._modules.get("episodic")

    @property
    def semantic(self) -> SemanticMemory | None:
        return self._modules.get("semantic")

    @property
    def profile(self) -> UserProfile | None:
        return self._modules.get("profile")

    @property
    def notes(self) -> NoteMemory | None:
        return self._modules.get("notes")

    @property
    def views(self) -> ViewMemory | None:
        return self._modules.get("views")

    def _is_user(self, speaker: str) -> bool:
        """Whether a speaker is the user of the scope, whose profile it is; nobody named is the user."""
        return not speaker or normal(speaker) == normal(self.scope.user)

    def _checked_filter(self, where: Any) -> dict[str, Any]:
        """The values of a filter, all of them of fields or of labels that a note has or had.

        An empty memory has no labels yet, so it takes any key.
        """
        wanted: dict[str, Any] = dict(checked_mapping("where", {} if where is None else where))
        if "module" in wanted and wanted["module"] not in (*self._modules,):
            known = ", ".join(self._modules)
            raise InvalidInputError(f"where: module: expected one of {known}, got {shown(wanted['module'])}")
        if "trust" in wanted:
            checked_trust("where: trust", wanted["trust"])
        if self.time and (unknown := wanted.keys() - FIELDS):
            with self._turns_taken.reading:
                labels = self.notes.label_names() if self.notes is not None else set()
            if unknown := unknown - labels:
                known = f"a field ({', '.join(FIELDS)}) or a label ({', '.join(sorted(labels)) or 'no note has one'})"
                raise InvalidInputError(f"where: expected {known}, got {shown(min(unknown, key=str))}")
        return wanted

    def _own(self, name: str) -> Any:
        """The module to change: not one that a fork has, too."""
        if name in self._shared:
            self._modules[name] = self._modules[name].fork()
            self._shared.discard(name)
        return self._modules[name]

    def _run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        if not self._parallel or len(calls) < 2:
            return [call() for call in calls]
        return self._calls.run(calls)
