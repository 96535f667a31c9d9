"""EB-Habitat's task source: training tasks in ALFWorld's wording, and their teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embodied_mem.worlds.alfworld.wording.text import type_of

from ..errands import ErrandTasks, held_out
from .generator import PER_LAYOUT, generate, training_records
from .kinds import KINDS, PLACES
from .text_adapter import EbHabitatTextAdapter


def apartment_order(thing: str, places: Sequence[str]) -> list[str]:
    """The order in which to look through an apartment: open places first (`PLACES`)."""
    order = list(PLACES)
    return sorted(places, key=lambda place: order.index(type_of(place)))


def training_sides() -> tuple[list[Any], list[Any]]:
    """EB-Habitat's training tasks and `PER_LAYOUT` more made in the layout of each: (to train on, held out to choose
    by). A layout in seven is held out; none is of an evaluation subset.

    Raises:
        DataNotFoundError: the data is not installed.
    """
    return held_out(generate(training_records(), PER_LAYOUT), lambda task: task.name.partition("+")[0], 7)


class EbHabitatTasks(ErrandTasks):
    """`TaskSource` of EB-Habitat."""

    adapter, order, kinds = EbHabitatTextAdapter, apartment_order, tuple(KINDS)

    def sides(self) -> tuple[list[Any], list[Any]]:
        return training_sides()
