"""Circles of facts, as a box in a bag in the box: one of them cannot be true any more."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..graph import Change, Snapshot
from .index import SpatialIndex

_RESTING = ("in", "on")
"""What is in or on a thing cannot carry it."""
_MAX_NESTED = 8  # things in one another


def circular(
    index: SpatialIndex, facts: Sequence[tuple[str, str, str]], change: Change, placing: Collection[str]
) -> list[int]:
    """Of each circle that new facts close, the fact that was seen the longest ago.

    Args:
        facts: (node, relation, node), as they were written; `change` is what that changed.
        placing: relations that say where a thing is.
    """
    found: list[int] = []
    for (_, relation, _), subject, object_, fact in zip(facts, change.subjects, change.objects, change.facts):
        if relation not in placing or index.last_place(object_) is None or fact in found:
            continue
        with index.graph.snapshot() as now:
            chain = _chain(index, object_, subject, _RESTING if relation in _RESTING else (relation,), now)
            if chain and not set(chain) & set(found):
                found.append(min(chain, key=lambda one: (index.known(one, now).seen.time, one)))
    return found


def _chain(index: SpatialIndex, node: int, outer: int, relations: Sequence[str], now: Snapshot) -> list[int]:
    """The current facts by which a node is in or on what is in or on the outer one; none if it is not."""
    chain: list[int] = []
    while len(chain) < _MAX_NESTED:
        fact = index.last_place(node)
        if fact is None or not now.are_current((fact,))[0]:
            return []
        known = index.known(fact, now)
        if known.subject_id != node or known.relation not in relations:
            return []
        chain.append(fact)
        if known.object_id == outer:
            return chain
        node = known.object_id
    return []
