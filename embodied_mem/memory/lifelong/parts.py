"""The memories that a `LifelongMemory` is made of, by name, and how they run.

memory.profile, memory.notes            # None for one that is switched off
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..mentions import normal
from ..modules.episodic import EpisodicMemory
from ..modules.notes import NoteMemory
from ..modules.semantic import SemanticMemory
from ..modules.temporal import TemporalMemory
from ..parallel_calls import ParallelCalls
from ..profile.profile import UserProfile
from ..spatial.spatial import SpatialMemory
from ..store.module import RecordedModule
from ..turns import Turns
from ..views.views import ViewMemory

MODULES = ("spatial", "temporal", "episodic", "semantic", "profile", "notes", "views")
PER_STEP = ("spatial", "temporal")
"""Modules that change with every step."""

LATER = ("notes", "views")
"""Modules that older versions had not."""


class MemoryParts(RecordedModule):
    """The modules of one memory, and whose turn it is."""

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
