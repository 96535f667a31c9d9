"""Where a thing was seen.

memory.sightings(kind="mug", near=(1.0, 0.4, 0.0), within_m=1.5)[0].receptacle      # "table"
"""

from __future__ import annotations

import dataclasses

from .graph import Fact
from .readers.reading import AGENT, class_of
from .relations import Relations
from .spatial_index import Known, split
from .trust import Trust
from .views import View


@dataclasses.dataclass(frozen=True)
class Sighting:
    """Where a thing was seen.

    Attributes:
        name, kind: the thing, and its class.
        relation, receptacle: "on", "desk 1"; or "held by", "agent".
        place: the room, as given to `begin`.
        since, seen: times when it came there, as far as known, and when it was seen there last.
        episode, step: of the last sighting.
        current: whether nothing seen later contradicts.
        confidence: of the detector that was the surest; None if it was told without one.
        trust: of the most trusted source of it.
        view: from where, when and with which images it was seen; None if it was told in words alone.
    """

    name: str
    kind: str
    relation: str
    receptacle: str
    place: str
    since: int
    seen: int
    episode: int
    step: int
    current: bool
    confidence: float | None = None
    trust: Trust = "sensor"
    view: View | None = None


def sighting(known: Known, fact: Fact, relations: Relations, trust: Trust) -> Sighting:
    """What a fact about the place of a thing says."""
    thing, other, relation = known.subject, known.object, known.relation
    if relation in relations.holding:
        thing, other, relation = other, thing, "held by"
    place, name = split(thing)
    where, receptacle = split(other)
    if relation != "held by" and where != AGENT:
        place = where or place  # a thing that is known from another room by its looks is where it is now
    return Sighting(
        name,
        class_of(name),
        relation,
        receptacle,
        place,
        fact.valid_at,
        *known.seen,
        current=fact.invalid_at is None,
        confidence=known.sure,
        trust=trust,
    )
