"""Where things were seen last: near a pose, after a time, of a class.

memory.sightings(kind="mug")                                       # the latest first
memory.sightings(near=(1.0, 0.4, 0.0), within_m=1.5, after=1732.0, k=5)
memory.sightings(kind="mug")[0].view.pose
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..errors import InvalidInputError
from ._parts import MemoryParts
from .arguments import checked_number, checked_real, checked_text, shown
from .sighting import Sighting
from .views import checked_clock, checked_pose


class Seeing(MemoryParts):
    """The part of `LifelongMemory` that says where things are."""

    def sightings(
        self,
        kind: str | None = None,
        *,
        near: Any = None,
        within_m: float = 1.0,
        after: float | None = None,
        place: str | None = None,
        k: int | None = None,
    ) -> list[Sighting]:
        """Where things were seen last, the latest first; each with its view, if it has one.

        A thing is in one place: of those that were seen in several rooms of the home, the last one counts.

        Args:
            kind: a class, e.g. "mug"; None for all.
            near: only what was seen last from near this pose, as for `observe`; None for anywhere.
            within_m: how near, in metres.
            after: only what was seen last later than this time, in seconds of the clock that `observe` was given.
            place: one room; None for that of the running task and the other rooms of its home.
            k: at most so many.

        Raises:
            InvalidInputError: an argument of another type or out of range, a place that is not known.
        """
        kind = None if kind is None else checked_text("kind", kind)
        place = None if place is None else checked_text("place", place)
        within_m = checked_real("within_m", within_m)
        if within_m < 0:
            raise InvalidInputError(f"within_m: expected >= 0, got {shown(within_m)}")
        pose = None if near is None else checked_pose(near)
        clock = None if after is None else checked_clock(after)
        k = None if k is None else checked_number("k", k, least=0)
        with self._turns_taken.reading:
            views, spatial = self.views, self.spatial
            if spatial is None:
                return []
            if place is not None and (known := spatial.places()) and place not in known:
                raise InvalidInputError(f"place: expected one of {', '.join(known)}, got {shown(place)}")
            times = None
            if pose is not None or clock is not None:
                if views is None:
                    return []
                times = views.near(pose, within_m, clock)
            found = spatial.last_places(kind, place, times, k)
            if views is None or not len(views):
                return found
            at = {time: views.at(time) for time in {one.seen for one in found}}
            return [dataclasses.replace(one, view=at[one.seen]) for one in found]
