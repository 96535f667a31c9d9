"""Reflexion: an agent that says after a failed trial what it should do otherwise, and reads that in the next one.

    agent = Reflexion(chat)
    rollout(envs, [agent], [[task] * 3])           # three trials of a task

Source: Shinn et al., "Reflexion" (2023), ALFWorld. The last three reflections on a task stand before its prompt; a
command that is given twice in a row with the same answer ends a trial; a solved task is not reflected on. Ours:
prompts, in which two short examples are made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embodied_mem.agents.agent import Agent
from embodied_mem.compiler.prompts import plain_goal
from embodied_mem.language.chat import ChatModel

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
        chat: is asked for each command, and after each failed trial.
        put: how the world words putting a thing down.

    Attributes:
        reflections: of a task, by its goal and first text; the newest last, at most three.
    """

    def __init__(self, chat: ChatModel, put: str = "move THING to PLACE"):
        self._chat, self._act = chat, ACT.replace("{put}", put)
        self.reflections: dict[tuple[str, str], list[str]] = {}

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        """As `Agent.reset`."""
        self._key, self._goal = (goal, observation), plain_goal(goal)
        self._lines = [" ".join(observation.split())]
        self._last: tuple[str, str] = ("", "")
        self._command = ""

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """As `Agent.act`; None where the same command was answered the same twice."""
        if self._command:
            self._lines.append(f"> {self._command}\n{observation}")
            if self._last == (self._command, observation):
                return None
            self._last = (self._command, observation)
        learned = self.reflections.get(self._key, [])
        plans = ["Plans from past trials:", *learned, ""] if learned else []
        text = "\n".join([*plans, f"Task: {self._goal}", *self._lines, ">"])
        reply = self._chat.complete(
            [{"role": "system", "content": self._act}, {"role": "user", "content": text}], max_tokens=32
        )
        self._command = next(iter(reply.text.strip().splitlines()), "").removeprefix(">").strip() or "look"
        return self._command

    def end(self, won: bool, observation: str) -> None:
        """Reflects on a failed trial."""
        if won:
            return
        text = "\n".join([f"Task: {self._goal}", *self._lines, "The task was not done.", "Plan:"])
        reply = self._chat.complete(
            [{"role": "system", "content": REFLECT}, {"role": "user", "content": text}], max_tokens=256
        )
        said = " ".join(reply.text.split())
        self.reflections[self._key] = [*self.reflections.get(self._key, []), said][-KEPT:]
