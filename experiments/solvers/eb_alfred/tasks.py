"""EB-ALFRED's task source: training tasks in ALFWorld's wording, and their teacher."""

from __future__ import annotations

import re
from typing import Any

from embodied_mem.worlds.alfworld.statistics import household_kinds
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.eb_alfred.env import load_tasks

from ..errands import ErrandTasks, held_out
from .text_adapter import EbAlfredTextAdapter

_TRIAL = re.compile(r"trial_T\w+")


def training_sides() -> tuple[list[Any], list[Any]]:
    """EB-ALFRED's training tasks, all instructions of a trial: (to train on, held out to choose by).

    Neither has a trial of an evaluation subset; a trial in ten is held out.

    Raises:
        DataNotFoundError: the data is not installed.
    """
    return held_out(load_tasks("train"), lambda task: task.trial, 10)


class EbAlfredTasks(ErrandTasks):
    """`TaskSource` of EB-ALFRED."""

    adapter, order, kinds = EbAlfredTextAdapter, statistics_order, household_kinds()

    def sides(self) -> tuple[list[Any], list[Any]]:
        return training_sides()

    def task_key(self, task_id: str) -> str:
        """As `TaskSource.task_key`: the trial, which has several instructions."""
        found = _TRIAL.search(task_id)
        return found[0] if found else task_id
