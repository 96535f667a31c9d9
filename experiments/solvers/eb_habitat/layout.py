"""How places stand to each other, as EB-Habitat's first text tells it, and how well a place fits a described relation.

layout = Layout.of("... \\nAround the sofa: the black table 0.4 m to the left, next to it.")
layout.facts                                # (("table 1", "left of", "sofa"), ("table 1", "next to", "sofa"))
layout.cost("left", "table 1", ("sofa",))   # 0.4; the least of several places is the one that is meant
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping, Sequence

from embodied_mem.worlds.eb_habitat.engine import TARGETS

_AROUND = re.compile(r"Around the ([^:]+): (.+)\.")
_OTHER = re.compile(r"the (.{1,80}?) (\d+\.\d) m([a-z ]*)(, next to it)?")
_UNDER = re.compile(r"Under the ([^:]+): the (.+)\.")
_NAMES = {looks: phrase for _, phrase, looks in TARGETS if not phrase.startswith(("cabinet", "refrigerator push"))}
_SIDES = {
    "to the left": "left of",
    "to the right": "right of",
    "in front": "at the front of",
    "behind": "at the back of",
}
RELATIONS = {
    "left": "left of",
    "right": "right of",
    "next": "next to",
    "front": "at the front of",
    "behind": "at the back of",
    "under": "under",
}
"""Relation of an instruction -> of a fact; "near" and "far", "between", "above" are found from these and distances."""
_UNTOLD_M, _AMISS_M, _ASIDE_M = 20.0, 40.0, 3.0
"""What it costs that a distance is not told, that a relation does not hold, that another side is told, too."""

Fact = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Layout:
    """What a first text tells.

    Attributes:
        facts: (place, relation, anchor), the places nearest to each anchor first.
        gaps_m: (place, anchor) -> metres from edge to edge.
    """

    facts: tuple[Fact, ...] = ()
    gaps_m: Mapping[tuple[str, str], float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Layout:
        """The layout that a text tells; an empty one if it tells none. A drawer stands as the counter above it does."""
        facts: dict[Fact, None] = {}
        gaps_m: dict[tuple[str, str], float] = {}
        for line in text.split("\n"):
            if around := _AROUND.fullmatch(line):
                anchor = _NAMES[around[1]]
                for found in _OTHER.finditer(around[2]):
                    place = _NAMES[found[1]]
                    gaps_m[place, anchor] = float(found[2])
                    facts |= {(place, name, anchor): None for side, name in _SIDES.items() if side in found[3]}
                    if found[4]:
                        facts[place, "next to", anchor] = None
            elif under := _UNDER.fullmatch(line):
                counter, drawer = _NAMES[under[1]], _NAMES[under[2]]
                for (place, anchor), gap in list(gaps_m.items()):
                    if counter in (place, anchor):
                        gaps_m[drawer if place == counter else place, drawer if anchor == counter else anchor] = gap
                for place, relation, anchor in list(facts):
                    if counter in (place, anchor) and relation != "under":
                        here, there = (drawer if name == counter else name for name in (place, anchor))
                        facts[here, relation, there] = None
                facts[drawer, "under", counter] = None
                gaps_m[drawer, counter] = gaps_m[counter, drawer] = 0.0
        return cls(tuple(facts), gaps_m)

    def cost(
        self, relation: str, place: str, anchors: Sequence[str], *, of_it: bool = False, no: bool = False
    ) -> float:
        """How badly a place fits, in metres: the farther, the worse; far worse if the relation is not told at all.

        Args:
            relation: a key of `RELATIONS`, "near", "far", "between", "above", "aside" (as "near"), or
                "beyond": on the far side of the first anchor from the second.
            place: that may be meant.
            anchors: the places that it is described by; of several, "between" and "beyond" take all, another the best.
            of_it: whether the anchors stand so to the place, as in "the table with the sofa on its left".
            no: whether the place is said not to stand so.
        """
        if relation == "between":
            return sum(self._gap_m(place, anchor) for anchor in anchors)
        if relation == "beyond" and len(anchors) > 1:
            middle, end = anchors[:2]
            to_middle, to_end = self._gap_m(place, middle), self._gap_m(place, end)
            return to_middle + (0 if to_end > max(to_middle, self._gap_m(middle, end)) else _AMISS_M)
        return min(self._cost(relation, place, anchor, of_it, no) for anchor in anchors)

    def _cost(self, relation: str, place: str, anchor: str, of_it: bool, no: bool) -> float:
        gap = self._gap_m(place, anchor)
        relation = "front" if relation == "beyond" else relation
        if relation == "far":
            return _UNTOLD_M - gap if (place, anchor) in self.gaps_m else _AMISS_M
        if of_it:
            place, anchor = anchor, place
        if relation == "above":
            relation, place, anchor = "under", anchor, place
        told = self._told(place, anchor)
        if relation in ("near", "aside"):
            holds = not no or "next to" not in told
        else:
            holds = (RELATIONS[relation] in told) != no
        aside = 0 if relation in ("near", "next", "aside") or no else sum(side in told for side in _SIDES.values()) - 1
        return gap + (0 if holds else _AMISS_M) + _ASIDE_M * max(aside, 0)

    def _told(self, place: str, anchor: str) -> Collection[str]:
        return self._relations.get((place, anchor), ())

    def _gap_m(self, place: str, anchor: str) -> float:
        return self.gaps_m.get((place, anchor), _UNTOLD_M)

    @functools.cached_property
    def _relations(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for place, relation, anchor in self.facts:
            found.setdefault((place, anchor), []).append(relation)
        return found
