"""Plays a world in ALFWorld's wording as its rule teacher does that has no memory, for agents without a planner.

    player = TaughtPlayer(lambda order: ErrandTeacher(order), statistics_order)
    player.reset(goal, first_observation, ["fridge 1"])        # places to look into first
    command = player.act(first_observation)                    # then act(answer), or observe(command, answer)

A `Player` of `experiments/baselines/player.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embodied_mem.memory.readers import DEFAULT
from embodied_mem.training.teachers.lesson import Teacher
from embodied_mem.worlds.alfworld.wording.search_orders import SearchOrder
from embodied_mem.worlds.alfworld.wording.text import parse_room


class TaughtPlayer:
    """What a teacher says that an executor should do.

    Args:
        make_teacher: gives a teacher that searches in this order.
        order: in which things are looked for where nothing else is said.

    Attributes:
        order: places in which the goal's first thing is looked for, best first, after `reset`.
    """

    def __init__(self, make_teacher: Callable[[SearchOrder], Teacher], order: SearchOrder):
        self._make, self._default = make_teacher, order
        self.order: list[str] = []

    def reset(self, goal: str, first_observation: str, search_order: Sequence[str] | None = None) -> None:
        """As `Player.reset`."""
        thing, first = DEFAULT.goal_object(goal), dict.fromkeys(search_order or ())

        def order(kind: str, places: Sequence[str]) -> list[str]:
            ranked = self._default(kind, places)
            ahead = [place for place in first if place in ranked] if kind == thing else []
            return list(dict.fromkeys([*ahead, *ranked]))

        self.order = order(thing, parse_room(first_observation))
        self._teacher, self._given = self._make(order), ""
        self._lesson = self._teacher.begin(goal, first_observation, ())

    def act(self, observation: str) -> str:
        """As `Player.act`."""
        if self._given:
            self.observe(self._given, observation)
        self._given = self._lesson.action
        return self._given

    def observe(self, command: str, observation: str) -> None:
        """As `Player.observe`."""
        self._lesson, self._given = self._teacher.next(command, observation, self._lesson.state), ""
