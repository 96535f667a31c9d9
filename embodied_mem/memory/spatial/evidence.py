"""Weighs what a detector gives against what is known: what is not believed stays a note.

    evidence = Evidence()
    evidence.add(("home", "mug", "in sink"), 0.3, episode=0)
    evidence.sure(("home", "mug", "in sink"), 0.3)          # 0.51: it was seen there twice

A fact of a confidence c that contradicts a surer one is believed if c >= 0.5. Below that it is not, until sightings of
the same add up: of confidences c_i since the thing was last seen where it is known to be, 1 - prod(1 - c_i) >= 0.5. So
is a denial. A thing that is in or on itself is never believed: two things of one name would be meant, and nothing tells
which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..arguments import checked_number, checked_real, checked_text
from ..store import Selector

BELIEVED = 0.5
_MAX_DOUBTED = 1024

Doubt = tuple[str, str, str]  # place, thing, and what was said of it


class Evidence:
    """What was said and not believed yet: how likely all of it was wrong, and in which episode it was said last."""

    def __init__(self) -> None:
        self._rows: dict[Doubt, tuple[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def sure(self, doubt: Doubt, confidence: float) -> float:
        """How sure something is with what was said of it before."""
        return 1 - self._rows.get(doubt, (1.0, 0))[0] * (1 - confidence)

    def add(self, doubt: Doubt, confidence: float, episode: int) -> None:
        """Take note of what was not believed."""
        self._rows[doubt] = 1 - self.sure(doubt, confidence), episode
        if len(self._rows) > _MAX_DOUBTED:
            del self._rows[next(iter(self._rows))]

    def settle(self, place: str, things: Iterable[str]) -> None:
        """What is known of these things was seen again, or is something else now."""
        gone = set(things)
        self._rows = {key: row for key, row in self._rows.items() if key[0] != place or key[1] not in gone}

    def remove(self, selector: Selector) -> None:
        """Forget what names an object or was said last in an episode."""
        self._rows = {
            key: row
            for key, row in self._rows.items()
            if row[1] != selector.episode and not any(map(selector.in_text, key))
        }

    def fork(self) -> Evidence:
        other = Evidence()
        other._rows = dict(self._rows)
        return other

    def rows(self) -> list[list[Any]]:
        """For a state."""
        return [[*key, *row] for key, row in self._rows.items()]

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]]) -> Evidence:
        """What `rows` gave. Raises InvalidInputError for anything else."""
        other = cls()
        for place, thing, said, wrong, episode in rows:
            key = checked_text("state: doubt", place), checked_text("state: doubt", thing), checked_text("doubt", said)
            other._rows[key] = checked_real("state: doubt", wrong), checked_number("state: doubt", episode)
        return other
