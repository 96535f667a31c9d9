"""A model that sees says whether a skill was done, from pictures before and after it.

    judge = OutcomeJudge(OpenAIChatModel("http://localhost:8000/v1", "qwen2.5-vl-7b-instruct"))
    judge.judge("pick_up(banana)", before, after)        # "success", "failure" or "unknown"

Source: RoboMemory B.2: the real world tells no success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embodied_mem.language.chat import ChatModel, Json
from embodied_mem.language.images import Picture
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.chat_writer import Chat, ChatWriter
from embodied_mem.memory.observation import Status

SCHEMA: Json = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "outcome": {"enum": ["success", "failure", "unknown"]}},
    "required": ["reason", "outcome"],
    "additionalProperties": False,
}


class OutcomeJudge:
    """Asks a model; `writer` counts its calls and useless answers, which leave the outcome unknown."""

    def __init__(self, model: ChatModel | Chat, max_pictures: int = 2):
        self.writer, self._max_pictures = ChatWriter(model), max_pictures

    def judge(self, command: str, before: Sequence[Picture], after: Sequence[Picture]) -> Status:
        """Judge a command by the newest pictures of each side."""
        first, then = before[-self._max_pictures :], after[-self._max_pictures :]
        if not then:
            return "unknown"
        question = f"Action: {command}\n\nPictures before it: {len(first)}, then after it: {len(then)}."
        instruction = prompt("embodied_mem.agents.robot", "judge")
        return self.writer.ask(instruction, question, _outcome, SCHEMA, [*first, *then]) or "unknown"


def _outcome(answer: Any) -> Status:
    outcome: Status = answer["outcome"]
    return outcome
