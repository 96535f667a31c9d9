"""Cradle: gathers information, reflects on the last command, infers the task at hand, curates skills, plans.

    agent = Cradle(player=ObservingExpert())         # by rules
    rollout(envs, [agent], [tasks])

It knows its five last steps and a rolling summary of those before. The task at hand is the part of the goal that memory
helps with: that its thing is to be found. A skill is curated when that is done, whatever the goal was, and found by the
inner product of embeddings with the part at hand. It is not tried where recent steps or summary say that the thing is
not there.

Source: Tan et al., "Cradle" (2024). Ours: all modules are rules, texts stand for pictures and commands for keys; a
skill tells where a thing was found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

import numpy as np

from embodied_mem.agents.agent import CommandGenerator
from embodied_mem.agents.planner_critic.agent import TaskRecord
from embodied_mem.agents.planner_critic.beliefs import home_told
from embodied_mem.compiler.prompts import compact_room
from embodied_mem.memory.embedders import default_embedder
from embodied_mem.memory.readers import DEFAULT

from .player import Player, looked_for, things_at
from .voyager import rooms_places

RECENT, SKILLS, SUMMARY_WORDS = 5, 5, 60


class Cradle(CommandGenerator):
    """An agent of five modules before each command, and a memory.

    Args:
        player: plans what no skill is for.

    Attributes:
        skills: (part of a task in words, commands).
        recent: the last (command, answer) pairs.
        summary: of what was before these.
        record: of the task that is played; `plans` counts skills tried, `vetoes` those that reflection ended.
    """

    def __init__(self, player: Player):
        self._player, self._embedder = player, default_embedder()
        self.skills: list[tuple[str, tuple[str, ...]]] = []
        self._vectors: list[np.ndarray] = []
        self.recent: deque[tuple[str, str]] = deque(maxlen=RECENT)
        self.summary, self.record = "", TaskRecord()

    def found(self, part: str) -> list[tuple[str, ...]]:
        """Return the commands of the skills nearest to a task's part.

        The nearest have the largest inner products with it.
        """
        if not self.skills:
            return []
        products = np.stack(self._vectors) @ self._embedder.embed([part])[0]
        return [self.skills[i][1] for i in np.argsort(-products, kind="stable")[:SKILLS]]

    def play(self, goal: str, text: str) -> Generator[str, str, None]:
        self.record, self.summary = TaskRecord(), ""
        self.recent.clear()
        self._goal, self._room, self._answers, self._curated = goal, compact_room(text), list[str](), False
        self._home = home_told(text)
        self._player.reset(goal, text)
        last, places = text, rooms_places(self._room)
        for skill in self.found(self.part()):
            place = skill[0].removeprefix("go to ")
            if self._curated or place not in places or f"no {self._thing} in {place}" in self._told():
                continue
            self.record.plans += 1
            for command in skill:
                if command.startswith("open ") and DEFAULT.read(last).looked_into == place:
                    continue
                last = yield from self._given(command)
                self._player.observe(command, last)
                if DEFAULT.read(last).refused:  # reflection: it had no effect
                    self.record.vetoes += 1
                    break
        while True:
            last = yield from self._given(self._player.act(last))

    @property
    def _thing(self) -> str:
        return DEFAULT.goal_object(self._goal)

    def part(self) -> str:
        """Return the part of the task that is at hand."""
        return f"find {self._thing} in a room with {self._room}" + f" of home {self._home}" * bool(self._home)

    def _told(self) -> str:
        """Summary and recent steps, as one text."""
        return "; ".join([self.summary, *(self._gathered(answer) for _, answer in self.recent)])

    def _gathered(self, answer: str) -> str:
        """Return what an answer tells about the thing that is looked for."""
        looked = looked_for(self._goal, [answer])
        said = [f"{self._thing} in {p}" for p in looked.found] + [f"no {self._thing} in {p}" for p in looked.empty]
        return "; ".join(said)

    def _given(self, command: str) -> Generator[str, str, str]:
        self.record.steps += 1
        answer = yield command
        if len(self.recent) == RECENT:  # the oldest one goes into the summary
            words = f"{self.summary} {self._gathered(self.recent[0][1])}".split()
            self.summary = " ".join(words[-SUMMARY_WORDS:])
        self.recent.append((command, answer))
        self._curate(answer)
        return answer

    def _curate(self, answer: str) -> None:
        """Make a skill of where the thing was first found."""
        place = DEFAULT.read(answer).looked_into
        if self._curated or not place or f"{self._thing} in {place}" != self._gathered(answer):
            return
        assert things_at(answer, place)
        last = self.recent[-1][0]
        commands = (f"go to {place}", f"open {place}") if last.startswith("open ") else (f"go to {place}",)
        self._curated = True
        if (self.part(), commands) not in self.skills:
            self.skills.append((self.part(), commands))
            self._vectors.append(self._embedder.embed([self.part()])[0])
