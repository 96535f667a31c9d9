"""A household agent that asks a chat model for each action, with memories as examples in the prompt (ReAct).

    agent = ReActAgent(OpenAIChatModel("http://localhost:8000/v1", "qwen2.5-7b-instruct", max_total_tokens=1_000_000))
    agent.begin(instruction, observation, memories)
    agent.act(observation), agent.malformed

Prompt, in the paper's order: who you are; the memories as example solutions; what is known of the user; task and house;
actions; format of an answer. Then answers and observations in turn. The wording is ours.

Source: MEMENTO C.1 and F.2 (ReAct prompting), D.1 (text of the user profile).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from embodied_mem.language.chat import ChatError, ChatModel, Message
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.profile.profile import UserProfile

from ..traces.trace import Trace, parse_action
from .agent import Reply

_PACKAGE = "embodied_mem.worlds.memento.agent"
_CALL = re.compile(r"\w+\s*\[[^\[\]\n]*\]")


class ReActAgent:
    """The agent.

    Args:
        model: asked once per action. A used-up budget ends the run with its ChatError; another error counts as an
            answer that is no action.
        max_examples: memories shown, best first; the paper shows five.
        max_tokens: of an answer.

    Attributes:
        answers: answers asked for, over all tasks.
        malformed: those of them without an action.
    """

    def __init__(self, model: ChatModel, *, max_examples: int = 5, max_tokens: int = 300):
        self._model = model
        self._max_examples = max_examples
        self._max_tokens = max_tokens
        self.answers = self.malformed = 0
        self._messages: list[Message] = []

    def begin(
        self, instruction: str, observation: str, memories: Sequence[Trace] = (), profile: UserProfile | None = None
    ) -> None:
        """As `HouseholdAgent.begin`."""
        parts = []
        if memories and self._max_examples > 0:
            parts.append(
                "Below are example solutions that you performed before in the same house. Use what is related."
            )
            for number, memory in enumerate(memories[: self._max_examples], 1):
                parts.append(f"Example {number}:\n{memory.render()}")
        known = profile.recall(instruction, 5) if profile is not None else []
        if known:
            parts.append("What is known of the user:\n" + "\n".join(f"- {item.text}" for item in known))
        parts += [observation.strip(), prompt(_PACKAGE, "household_actions")]
        self._messages = [
            {"role": "system", "content": prompt(_PACKAGE, "household")},
            {"role": "user", "content": "\n\n".join(parts)},
        ]
        self._first = True

    def act(self, observation: str) -> Reply:
        """As `HouseholdAgent.act`. An answer without an action is played as it is: the world answers and counts it."""
        if not self._first:
            self._messages.append({"role": "user", "content": observation})
        self._first = False
        self.answers += 1
        try:
            text = self._model.complete(self._messages, max_tokens=self._max_tokens).text
        except ChatError as error:
            if error.kind == "budget":
                raise
            text = ""
        text = text.partition("Assigned!")[0].strip()
        reply = parse_reply(text)
        if not parse_action(reply.action)[0]:
            self.malformed += 1
        self._messages.append({"role": "assistant", "content": f"{text}\nAssigned!"})
        return reply


def parse_reply(text: str) -> Reply:
    """Thought and action of a model's answer.

    The action is the last line, as in the paper's code, or where that is none the first call on a line of its own; what
    stands before it is the thought. Without any call the last line is the action, and the world says what is wrong.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return Reply("", "")
    calls = [i for i, line in enumerate(lines) if _CALL.fullmatch(line.removeprefix("Action:").strip().strip("`"))]
    at = len(lines) - 1 if not calls or calls[-1] == len(lines) - 1 else calls[0]
    thought = " ".join(lines[:at]).removeprefix("Thought:").strip()
    return Reply(thought, lines[at].removeprefix("Action:").strip().strip("`"))


class ChatFinder:
    """Answers the world's finding tools with a chat model, as the original does: `make("memento", ..., finder=...)`.

    Args:
        model: asked.
        max_tokens: of an answer.
    """

    def __init__(self, model: ChatModel, *, max_tokens: int = 200):
        self._model = model
        self._max_tokens = max_tokens

    def __call__(self, tool: str, query: str, candidates: str) -> str:
        """The answer to a query: names out of the list of candidates, or that nothing fits.

        Raises:
            ChatError: the model could not be asked.
        """
        kind = {"FindRoomTool": "rooms", "FindReceptacleTool": "furniture"}.get(tool, "objects")
        told = f"These are the {kind} of a house:\n{candidates}\n\nWhich of them fit: {query}?"
        system = (
            "Answer with one line '- name in room' for each that fits, or say that none does and name near matches."
        )
        messages: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": told}]
        return self._model.complete(messages, max_tokens=self._max_tokens).text.strip()
