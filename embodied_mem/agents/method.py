"""Memory methods: what they are told, what they are asked, how they are found by name.

    class LastGoals(MemoryMethod):
        def observe(self, episode): ...
        def recall(self, task, observation, newest=""): return ["here: apple was in fridge 1"]

    method = make_method("mem0_2")              # of `registry.names("methods")`; rules answer, with `chat` a model does
    method.observe(episode)
    method.recall("put a clean apple in fridge.", first_observation)      # lines, best first

`agents.deliveries.MethodDelivery` puts what they recall into the executor's prompt. A file of yours is enough:
`embodied-mem evaluate --method FILE.py:CLASS`. See docs/baselines.md.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable
from typing import Any

from embodied_mem import registry
from embodied_mem.language.chat import ChatModel, Json
from embodied_mem.language.json_answers import complete_json
from embodied_mem.types import Episode


class MemoryMethod(abc.ABC):
    """A memory of episodes that recalls lines of text; the base of every method.

    A subclass has `observe` and `recall`. What it asks with `ask` is answered by the model, or by a rule without one.

    Args:
        chat: answers the calls; None for rules.

    Attributes:
        calls: made so far, of the model or of rules in its place.
        tokens: [sent, received] by these. Of rules, what a model would have been sent, at four bytes a token.
    """

    def __init__(self, chat: ChatModel | None = None):
        self.chat, self.calls, self.tokens = chat, 0, [0, 0]

    @abc.abstractmethod
    def observe(self, episode: Episode) -> None:
        """Take note of an episode."""

    @abc.abstractmethod
    def recall(self, task: str, observation: str, newest: str = "") -> list[str]:
        """Return memories for a task, best first.

        Args:
            task: the goal.
            observation: the first text of the episode.
            newest: answer to the last command, where something is recalled at a later step.
        """

    def texts(self) -> list[str]:
        """Return all stored texts, to count their growth."""
        return []

    def ask(self, instruction: str, given: Json, schema: Json, rule: Callable[[], Any]) -> Any:
        """Return the answer of the model, or of the rule without one.

        The answer fits the schema.

        Raises:
            ChatError: the model gave none that fits.
        """
        self.calls += 1
        told, shown = f"{instruction} Answer with JSON only.", json.dumps(given)
        if self.chat is None:
            answer = rule()
            self._count(num_tokens(told) + num_tokens(shown), num_tokens(json.dumps(answer)))
            return answer
        messages: list[dict[str, object]] = [
            {"role": "system", "content": told},
            {"role": "user", "content": shown},
        ]
        meter = self.chat.meter
        sent, received = meter.prompt_tokens, meter.completion_tokens
        answer = complete_json(self.chat, messages, schema, max_tokens=1024)
        self._count(meter.prompt_tokens - sent, meter.completion_tokens - received)
        return answer

    def _count(self, sent: int, received: int) -> None:
        self.tokens = [self.tokens[0] + sent, self.tokens[1] + received]


def num_tokens(text: str) -> int:
    """Count tokens without a tokenizer: one for four bytes, rounded up."""
    return -(-len(text.encode()) // 4)


def make_method(name: str, chat: ChatModel | None = None) -> MemoryMethod:
    """Make the method of a name, empty.

    `chat` answers its calls, or rules without one.

    Raises:
        InvalidInputError: no such method; the message lists them.
    """
    method: MemoryMethod = registry.load("methods", name)(chat)
    return method


def row_name(name: str, chat: ChatModel | None = None) -> str:
    """Return the name of a method's row.

    With rules it is never named as the original.
    """
    return name if chat is not None else f"{name} (rule extraction)"
