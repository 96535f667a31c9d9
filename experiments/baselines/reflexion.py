"""Reflexion: an agent that says after a failed trial what it should do otherwise, and reads that in the next one.

    agent = Reflexion(chat)                        # or by rules: Reflexion(player=ObservingExpert())
    rollout(envs, [agent], [[task] * 3])           # three trials of a task

Source: Shinn et al., "Reflexion" (2023), ALFWorld. The last three reflections on a task stand before its prompt; a
command that is given twice in a row with the same answer ends a trial; a solved task is not reflected on. Ours:
prompts, in which two short examples are made up; without a model a player acts, and a rule reflects on where the goal's
thing was looked for, in words that the next trial reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.planner_critic.agent import TaskRecord
from embodied_mem.compiler.prompts import plain_goal
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.chat import ChatModel
from embodied_mem.language.json_answers import without_thoughts

from .player import Looked, Player, looked_for

KEPT = 3
ACT = (
    "You act in a house by text commands. Answer with the next command alone, in the wording of: go to PLACE, open "
    "PLACE, take THING from PLACE, {put}, clean THING with PLACE, heat THING with PLACE, cool THING with PLACE, use "
    "THING, look, inventory."
)
REFLECT = """You failed at a task. Say in two or three sentences what went wrong and what to do in the next trial.

Example. Task: put a book on the bed. It opened drawers until the end and never looked on the desk.
Plan: I searched closed places first. Next time I look at the desk and the shelves before I open a drawer.

Example. Task: put a warm egg in the sink. It put the egg down cold.
Plan: I forgot to heat the egg. Next time I take the egg to the microwave first, heat it there, and then put it down."""


class Reflexion(Agent):
    """An agent whose commands and reflections are a chat model's.

    Args:
        chat: is asked for each command, and after each failed trial; None for rules.
        put: how the world words putting a thing down.
        player: acts where there is no model.

    Attributes:
        reflections: of a task, by its goal and first text; the newest last, at most three.
        record: of the task that is played.

    Raises:
        InvalidInputError: neither a model nor a player is given, or both are.
    """

    def __init__(self, chat: ChatModel | None = None, put: str = "move THING to PLACE", player: Player | None = None):
        if (chat is None) is (player is None):
            raise InvalidInputError("Reflexion: expected a chat model or a player, got both or neither")
        self._chat, self._act, self._player = chat, ACT.replace("{put}", put), player
        self.reflections: dict[tuple[str, str], list[str]] = {}
        self.record = TaskRecord()

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        self._key, self._goal = (goal, observation), plain_goal(goal)
        self._lines = [" ".join(observation.split())]
        self._last: tuple[str, str] = ("", "")
        self._command, self.record = "", TaskRecord()
        self._answers: list[str] = []
        if self._player is not None:
            self._player.reset(goal, observation)
            learned = self.reflections.get(self._key)
            if learned:
                self._player.reset(goal, observation, order_after(learned, self._player.order))

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """Act as `Agent.act`; None where one command got one answer twice."""
        if self._command:
            self._lines.append(f"> {self._command}\n{observation}")
            self._answers.append(observation)
            if self._last == (self._command, observation):
                return None
            self._last = (self._command, observation)
        self.record.steps += 1
        self._command = self._player.act(observation) if self._player is not None else self._asked()
        return self._command

    def _asked(self) -> str:
        assert self._chat is not None
        learned = self.reflections.get(self._key, [])
        plans = ["Plans from past trials:", *learned, ""] if learned else []
        text = "\n".join([*plans, f"Task: {self._goal}", *self._lines, ">"])
        reply = self._chat.complete(
            [{"role": "system", "content": self._act}, {"role": "user", "content": text}], max_tokens=32
        )
        return next(iter(without_thoughts(reply.text).splitlines()), "").removeprefix(">").strip() or "look"

    def end(self, won: bool, observation: str) -> None:
        """Reflects on a failed trial."""
        if won:
            return
        if self._command:
            self._answers.append(observation)
        said = reflection(looked_for(self._goal, self._answers)) if self._chat is None else self._reflected()
        self.reflections[self._key] = [*self.reflections.get(self._key, []), said][-KEPT:]

    def _reflected(self) -> str:
        assert self._chat is not None
        text = "\n".join([f"Task: {self._goal}", *self._lines, "The task was not done.", "Plan:"])
        reply = self._chat.complete(
            [{"role": "system", "content": REFLECT}, {"role": "user", "content": text}], max_tokens=256
        )
        return " ".join(without_thoughts(reply.text).split())


_FOUND = re.compile(r"\w+ was in ([a-z]+ \d+)\. Next time I go there first\.")
_EMPTY = re.compile(r"There was no \w+ in (.*)\. Next time I look elsewhere first\.")


def reflection(looked: Looked) -> str:
    """Derive by rule what a failed trial teaches about where to look."""
    if looked.found:
        return f"{looked.thing} was in {looked.found[0]}. Next time I go there first."
    if looked.empty:
        return f"There was no {looked.thing} in {', '.join(looked.empty)}. Next time I look elsewhere first."
    return "I saw nothing. Next time I look into more places."


def order_after(reflections: Sequence[str], order: Sequence[str]) -> list[str]:
    """Choose where to look, from rules' reflections and the usual order."""
    found = [said[1] for text in reflections if (said := _FOUND.fullmatch(text))]
    empty = {place for text in reflections if (said := _EMPTY.fullmatch(text)) for place in said[1].split(", ")}
    return list(dict.fromkeys([*found, *(p for p in order if p not in empty), *order]))
