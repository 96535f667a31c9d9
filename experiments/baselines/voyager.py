"""Voyager: a library of skills that grows with every task that is solved.

    agent = Voyager(player=ObservingExpert())        # by rules
    rollout(envs, [agent], [tasks])                  # one life; skills of earlier tasks are tried in later ones

A skill is what solved a task, described in words, with what it needs. For a task the five whose descriptions are
nearest are looked at; those whose needs hold are carried out one after the other, at most four times. A critic looks at
each answer and ends a try whose next command makes no sense. What no skill solves, the player does.

Source: Wang et al., "Voyager" (2023). Ours: a skill is a macro of commands and no program, and stands with the names of
things left open; critic and descriptions are rules. Tasks are given here, so that a curriculum only orders them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Generator, Iterable, Sequence

from embodied_mem.agents.agent import CommandGenerator
from embodied_mem.agents.planner_critic.agent import TaskRecord
from embodied_mem.agents.planner_critic.beliefs import home_told
from embodied_mem.compiler.prompts import compact_room, plain_goal
from embodied_mem.memory.bank import key_actions
from embodied_mem.memory.readers import DEFAULT
from embodied_mem.memory.readers.reading import class_of
from embodied_mem.types import Episode, Step

from .method import Entries
from .player import Player, things_at

NEAREST, RETRIES = 5, 4
_TAKE = re.compile(r"take ([a-z]+ \d+) from ([a-z]+ \d+)")
_PLACE = re.compile(r"(?:go to|open|from|to|with|in/on) ([a-z]+ \d+)\Z")


@dataclasses.dataclass(frozen=True)
class Skill:
    """A macro.

    Attributes:
        description: in words, by which it is found.
        thing: kind of the goal's thing.
        goal: that it reached.
        steps: commands.
    """

    description: str
    thing: str
    goal: str
    steps: tuple[str, ...]

    @property
    def places(self) -> set[str]:
        """Places that it needs."""
        return {found[1] for step in self.steps if step.startswith("go to ") and (found := _PLACE.search(step))}


class Voyager(CommandGenerator):
    """An agent with a skill library.

    Args:
        player: does what no skill does.

    Attributes:
        skills: by number, in the order in which they were learned.
        record: of the task that is played; `plans` counts tries, `vetoes` those that the critic ended.
    """

    def __init__(self, player: Player):
        self._player, self.skills, self._index = player, dict[int, Skill](), Entries()
        self.record = TaskRecord()

    @staticmethod
    def curriculum(goals: Sequence[str]) -> list[int]:
        """Order task numbers by the words of their goals, fewest first.

        Whatever is to be done besides needs a word.
        """
        return sorted(range(len(goals)), key=lambda number: (len(plain_goal(goals[number]).split()), number))

    def candidates(self, goal: str, room: str, home: str = "") -> list[Skill]:
        """Filter the nearest skills by the goal and this room's places.

        The nearest come first.
        """
        near = [self.skills[number] for number, _ in self._index.index.search(_described(goal, room, home), NEAREST)]
        has = rooms_places(room)
        return [one for one in near if one.goal == plain_goal(goal) and one.places <= has]

    def play(self, goal: str, text: str) -> Generator[str, str, None]:
        self.record, self._goal, self._room = TaskRecord(), goal, compact_room(text)
        self._home = home_told(text)
        self._steps: list[Step] = []
        self._player.reset(goal, text)
        last = text
        for skill in self.candidates(goal, self._room, self._home)[:RETRIES]:
            self.record.plans += 1
            names: dict[str, str] = {}
            for step in skill.steps:
                command = fitted(step, last, names)
                if command is None:
                    continue
                if not command:
                    self.record.vetoes += 1
                    break
                for told in (*opening(command, last), command):
                    last = yield from self._given(told, last)
                    self._player.observe(told, last)
                if DEFAULT.read(last).refused:
                    self.record.vetoes += 1
                    break
        while True:
            last = yield from self._given(self._player.act(last), last)

    def _given(self, command: str, before: str) -> Generator[str, str, str]:
        self.record.steps += 1
        self._steps.append(Step(before, command))
        answer = yield command
        return answer

    def end(self, won: bool, observation: str) -> None:
        """Make a skill of a solved task, unless the library has it."""
        if not won:
            return
        episode = Episode("", self._goal, tuple(self._steps), True, observation)
        description, steps = _described(self._goal, self._room, self._home), key_actions(episode)
        skill = Skill(description, DEFAULT.goal_object(self._goal), plain_goal(self._goal), steps)
        if steps and skill not in self.skills.values():
            self.skills[self._index.add(description)] = skill


def _described(goal: str, room: str, home: str) -> str:
    return f"{plain_goal(goal)} in a room with {room}" + f" of home {home}" * bool(home)


def rooms_places(room: str) -> set[str]:
    """Return the places that `compact_room` tells of.

    Of each kind these are all numbers up to the one that it names.
    """
    kinds = (item.rpartition(" ") for item in room.split("; ") if item)
    return {f"{kind} {n}" for kind, _, count in kinds if count.isdecimal() for n in range(1, int(count) + 1)}


def opening(command: str, last: str) -> list[str]:
    """Find what must precede a command that puts something somewhere closed.

    The agent stands at the place; whoever learned the skill had opened it earlier.
    """
    shut = [place for place, relation, state in DEFAULT.read(last).facts if (relation, state) == ("is", "closed")]
    puts = command.startswith(("move ", "put "))
    return [f"open {place}" for place in shut if puts and command.endswith(f" {place}")]


def fitted(step: str, last: str, names: dict[str, str]) -> str | None:
    """Fill a macro's step with this room's names.

    None where it is done already, "" where it cannot be.

    Args:
        step: as it was given when the skill was learned.
        last: the newest answer.
        names: of the macro's things -> of this room's; what is taken is added.
    """
    if step.startswith("open ") and DEFAULT.read(last).looked_into == step.removeprefix("open "):
        return None
    if taken := _TAKE.fullmatch(step):
        there = [one for one in things_at(last, taken[2]) if class_of(one) == class_of(taken[1])]
        left: Iterable[str] = (one for one in there if one not in names.values())
        names[taken[1]] = name = next(iter(left), "")
        return f"take {name} from {taken[2]}" if name else ""
    for old, new in names.items():
        step = re.sub(rf"\b{re.escape(old)}\b(?! \d)", new, step, count=1)
    return step
