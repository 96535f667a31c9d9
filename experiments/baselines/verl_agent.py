"""verl-agent's way to play: the last two steps and the admissible actions in one message, a reply in tags.

    agent = VerlAgent(chat)                        # or by rules: VerlAgent(player=ObservingExpert())
    rollout(envs, [agent], [[0, 1, 2]])

Source: Feng et al., "Group-in-Group Policy Optimization for LLM Agent Training" (2025), and its public code. Fields,
tags, history of two steps and the list of actions are theirs (`compiler.think_action`); the sentences are ours. It has
no memory of other episodes. A reply without an action is an empty command, which the world answers "Nothing happens."
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.planner_critic.agent import TaskRecord
from embodied_mem.compiler.think_action import MAX_REPLY_TOKENS, ThinkAction
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.chat import ChatModel

from .player import Player


class VerlAgent(Agent):
    """An agent of which each step is one message to a model.

    Args:
        chat: is asked for each command; None for rules.
        put: unused, since actions are listed.
        player: acts where there is no model.
        scheme: of the messages.
        reply_tokens: longest reply, thoughts included.

    Attributes:
        record: of the task that is played.

    Raises:
        InvalidInputError: neither a model nor a player is given, or both are.
    """

    reads_actions = True
    """The world's `admissible_commands` are part of its messages."""

    def __init__(
        self,
        chat: ChatModel | None = None,
        put: str = "",
        player: Player | None = None,
        scheme: ThinkAction | None = None,
        reply_tokens: int = MAX_REPLY_TOKENS,
    ):
        if (chat is None) is (player is None):
            raise InvalidInputError(f"{type(self).__name__}: expected a chat model or a player, got both or neither")
        self._chat, self._player, self.scheme = chat, player, scheme or ThinkAction()
        self._reply_tokens = reply_tokens
        self.record = TaskRecord()

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        self._goal, self._first = goal, observation
        self._turns: list[tuple[str, str]] = []
        self._command: str | None = None
        self.record = TaskRecord()
        if self._player is not None:
            self._player.reset(goal, observation)

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        if self._command is not None:
            self._turns.append((self._command, observation))
        self.record.steps += 1
        if self._player is not None:
            self._command = self._player.act(observation)
        else:
            self._command = self.scheme.command(self.reply(info.get("admissible_commands", ())))
        return self._command

    def reply(self, admissible: Any) -> str:
        """Ask the model for this step."""
        return self.ask(self.scheme.prompt(self._first, self._turns, admissible))

    def ask(self, message: str, system: str = "", max_tokens: int | None = None) -> str:
        """Send one message, behind a system message if there is one."""
        assert self._chat is not None
        before = [{"role": "system", "content": system}] if system else []
        messages = [*before, {"role": "user", "content": message}]
        return self._chat.complete(messages, max_tokens=max_tokens or self._reply_tokens).text
