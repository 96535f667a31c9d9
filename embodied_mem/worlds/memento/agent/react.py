"""A household agent that asks a chat model for each action, with memories as examples in the prompt (ReAct).

    agent = ReActAgent(OpenAIChatModel("http://localhost:8000/v1", "qwen2.5-7b-instruct", max_total_tokens=1_000_000))
    agent.begin(instruction, observation, memories)
    agent.act(observation), agent.malformed

Prompt, in the paper's order: who you are; the memories as example solutions, or one of another house where there are
none; what is known of the user; task and house; actions; format of an answer. Then answers and observations in turn.
The wording is ours. An observation lists all objects that were seen so far: only the newest list is sent. An action
that was refused again is named.

Source: MEMENTO C.1 and F.2 (ReAct prompting), D.1 (text of the user profile).
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Sequence
from typing import Protocol, cast

from embodied_mem.language.chat import ChatError, ChatModel, Message
from embodied_mem.language.json_answers import find_json, without_thoughts
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.profile import UserProfile

from ..traces.trace import Trace, parse_action, parse_result, succeeded

_PACKAGE = "embodied_mem.worlds.memento.agent"
_MOTOR_SKILLS = frozenset(("Navigate", "Explore", "Pick", "Place", "Open", "Close"))
_TIMES = {2: "twice"}
_NUM_INSTRUCTIONS = 2
"""Messages before the first answer."""
_CALL = re.compile(r"\w+\s*\[[^\[\]\n]*\]")


@dataclasses.dataclass(frozen=True)
class Reply:
    """One answer of an agent.

    Attributes:
        thought: why, for people and for memory; never read by the world.
        action: the call, e.g. `Place[cup_1, on, table_2, None, None]`.
    """

    thought: str
    action: str


class HouseholdAgent(Protocol):
    """Whatever plays household tasks."""

    def begin(
        self, instruction: str, observation: str, memories: Sequence[Trace] = (), profile: UserProfile | None = None
    ) -> None:
        """Start a task.

        Args:
            instruction: what the user said.
            observation: the world's first observation, with the house text.
            memories: what was retrieved for the instruction, best first.
            profile: what is known of the user; None for nothing.
        """
        ...

    def act(self, observation: str) -> Reply:
        """Return the next action, after `observation`."""
        ...


class ReActAgent:
    """The agent.

    Args:
        model: asked once per action. A used-up budget ends the run with its ChatError; another error counts as an
            answer that is no action.
        max_examples: most memories shown, best first; None for all that are given.
        max_tokens: of an answer.

    Attributes:
        answers: answers asked for, over all tasks.
        malformed: those of them without an action.
        last_error: the last reason for one; empty if there was none.
    """

    def __init__(self, model: ChatModel, *, max_examples: int | None = None, max_tokens: int = 300):
        self._model = model
        self._max_examples = max_examples
        self._max_tokens = max_tokens
        self.answers = self.malformed = 0
        self.last_error = ""
        self._messages: list[Message] = []

    def begin(
        self, instruction: str, observation: str, memories: Sequence[Trace] = (), profile: UserProfile | None = None
    ) -> None:
        examples = enumerate(memories[: self._max_examples], 1)
        texts = [f"Example {number}:\n{memory.render()}" for number, memory in examples]
        facts = [f"- {item.text}" for item in profile.recall(instruction, 5)] if profile is not None else []
        parts = [
            prompt(_PACKAGE, "household_memories" if texts else "household_example").format(
                memories="\n\n".join(texts)
            ),
            prompt(_PACKAGE, "household_profile").format(facts="\n".join(facts)) if facts else "",
            observation.strip(),
            prompt(_PACKAGE, "household_actions"),
        ]
        self._messages = [
            {"role": "system", "content": prompt(_PACKAGE, "household")},
            {"role": "user", "content": "\n\n".join(filter(None, parts))},
        ]
        self._action = ""
        self._refusals: collections.Counter[str] = collections.Counter()

    def act(self, observation: str) -> Reply:
        """Act on an observation; an answer without action is played verbatim."""
        if len(self._messages) > _NUM_INSTRUCTIONS:
            self._observe(observation)
        self.answers += 1
        failure = ""
        try:
            text = self._model.complete(self._messages, max_tokens=self._max_tokens).text
        except ChatError as error:
            if error.kind == "budget":
                raise
            text, failure = "", str(error) or type(error).__name__
        text = without_thoughts(text).partition("Assigned!")[0].strip()
        reply = parse_reply(text)
        if not parse_action(reply.action)[0]:
            self.malformed += 1
            self.last_error = failure or f"no action in {text[:200]!r}"
        self._messages.append({"role": "assistant", "content": f"{text}\nAssigned!"})
        self._action = reply.action
        return reply

    def messages(self) -> list[Message]:
        """Return what the model is sent next, but for the newest observation."""
        return list(self._messages)

    def _observe(self, observation: str) -> None:
        """Add an observation; shorten the last one to its result."""
        before = self._messages[-2]
        if len(self._messages) > _NUM_INSTRUCTIONS + 1 and "\nObjects:" in str(before["content"]):
            before["content"] = f"Result: {parse_result(str(before['content']))}"
        name, _ = parse_action(self._action)
        if name in _MOTOR_SKILLS and not succeeded(observation):
            self._refusals[self._action] += 1
        else:
            del self._refusals[self._action]
        if (times := self._refusals[self._action]) > 1:
            observation += f"\n{self._action} was refused {_TIMES.get(times, f'{times} times')}: try another action."
        self._messages.append({"role": "user", "content": observation})


def parse_reply(text: str) -> Reply:
    """Return thought and action of a model's answer.

    The action is the last line, as in the paper's code, or where that is none the first call on a line of its own; of
    steps that are numbered, the first. What stands before it is the thought. Labels, numbers, quotation marks and
    Markdown around a call are left out, and a JSON object with an `action` is one. Without any call the last line is
    the action, and the world says what is wrong.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _FENCE.fullmatch(line.strip())]
    if not lines:
        return Reply("", "")
    calls = [(i, *found) for i, line in enumerate(lines) if (found := _call(line)) is not None]
    if not calls:
        value, wrong = find_json(text, _json_call)
        if not wrong:
            return cast(Reply, value)
        return Reply(_thought(lines[:-1]), lines[-1].removeprefix("Action:").strip().strip("`"))
    last, _, number, _ = calls[-1]
    numbered = [call for call in calls if call[2]] if number > 1 else []
    at, before, _, call = numbered[0] if numbered else calls[-1] if last == len(lines) - 1 else calls[0]
    return Reply(_thought([*lines[:at], before]), call)


_FENCE = re.compile(r"(?:```|~~~)\w*")
_LABEL = re.compile(r"\bact(?:ion)? ?(\d{0,3})[\"'*_` ]{0,5}[:\uff1a=]", re.IGNORECASE)
_NUMBER = re.compile(r"(\d{1,3})[.):]")
_MARKS = " \t\"'`*_#>-\u2022:.,;{}()"
_TAG = re.compile(r"</?\|?\w{1,20}\|?>")


def _call(line: str) -> tuple[str, int, str] | None:
    """Parse a line into (text before, number or 0, call), or None."""
    label = max(_LABEL.finditer(line), key=re.Match.start, default=None)
    before, line = (line[: label.start()], line[label.end() :]) if label else ("", line)
    line = _TAG.sub("", line).strip(_MARKS)
    number = label[1] if label else ""
    if listed := _NUMBER.match(line):
        number, line = listed[1], line[listed.end() :].strip(_MARKS)
    if not _CALL.fullmatch(line):
        return None
    return before.strip() if any(map(str.isalpha, before)) else "", int(number or 0), line


def _json_call(value: object) -> tuple[object, str]:
    said = value.get("action") if isinstance(value, dict) else None
    found = _call(said) if isinstance(value, dict) and isinstance(said, str) else None
    if found is None or not isinstance(value, dict):
        return None, "no object with an action"
    return Reply(str(value.get("thought") or ""), found[2]), ""


def _thought(lines: Sequence[str]) -> str:
    text = " ".join(line for line in lines if line)
    return re.sub(
        r"^[*_#`\"' ]{0,5}thought ?\d{0,3}[*_` ]{0,5}[:\uff1a][*_` ]{0,5}", "", text, flags=re.IGNORECASE
    ).strip()
