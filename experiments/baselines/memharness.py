"""MemHarness: an agent that asks its memory, judges what it gets against the present state, and acts by what is left.

    agent = MemHarness(chat)                       # or by rules: MemHarness(player=ObservingExpert())
    rollout(envs, [agent], [[0, 1, 2]])

Source: Wu et al., "MemHarness: Memory Is Reconstructed, Not Replayed" (2026), and its public code. In a step the model
may answer with `<memory_retrieve>query</memory_retrieve>`. The nearest memories, each with the state that it was
learned in, are adapted to the present one by the same model, or rejected with `<EMPTY>`; then it acts. After an episode
it writes at most three memories (situation, memory). Ours: sentences of the prompts, the embedder, a threshold for
equal memories, no pruning by utility. Without a model the player acts; a rule remembers where the goal's thing was, and
rejects what was learned in another state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from embodied_mem.compiler.prompts import plain_goal
from embodied_mem.language.chat import ChatError
from embodied_mem.language.json_answers import complete_json

from .method import TEXT, Entries, schema_list, schema_of
from .player import looked_for
from .reflexion import order_after, reflection
from .verl_agent import VerlAgent

TOP_K = 3
MAX_SCHEMA = 3
EQUAL = 0.95
"""Cosine from which a memory counts as known."""
EMPTY = "<EMPTY>"
_QUERY = ("<memory_retrieve>", "</memory_retrieve>")

HINT = (
    "Before you act you may ask your memory of earlier tasks: answer with one query between <memory_retrieve> and "
    "</memory_retrieve> and nothing else. You act in the next answer."
)
ADAPT = (
    "You are given a memory of another situation. Rewrite it as one short piece of advice for the task and the "
    f"situation now, or answer {EMPTY} if it does not apply. Do not reason aloud and do not list steps."
)
NOTHING = "No memory applies; rely on what you see."
WRITE = (
    "Read an agent's finished episode and write down what will help later in similar situations: when the advice "
    "applies (situation), and the advice (memory), one short sentence each. Do not retell the episode."
)
_SCHEMA = schema_of(memories=schema_list(situation=TEXT, memory=TEXT))


@dataclasses.dataclass(frozen=True)
class Memory:
    """Advice, and the situation and the observation that it comes from."""

    situation: str
    memory: str
    state: str


class MemHarness(VerlAgent):
    """See the module.

    Attributes:
        memories: by id, in the order in which they were written.
        guidance: what the last step was told.
    """

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **settings)
        self.memories: dict[int, Memory] = {}
        self._entries = Entries()
        self.guidance = ""

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        super().reset(goal, observation, info)
        self.guidance = ""
        if self._player is not None:
            advice = [one.memory for one in self._near(self._state()) if one.state == self._state()]
            self._player.reset(goal, observation, order_after(advice, self._player.order))

    def reply(self, admissible: Any) -> str:
        """Ask for the step, and again if the model asked its memory."""
        prompt = self.scheme.prompt(self._first, self._turns, admissible)
        self.guidance = ""
        answer = self.ask(f"{prompt}\n\n{HINT}" if self.memories else prompt)
        query, end, _ = answer.partition(_QUERY[0])[2].partition(_QUERY[1])
        if not end:
            return answer
        self.guidance = "\n".join(self._advice(" ".join(query.split()))) or NOTHING
        return self.ask(f"{prompt}\n\n<memory>\n{self.guidance}\n</memory>")

    def end(self, won: bool, observation: str) -> None:
        """Write memories of the episode."""
        turns = [*self._turns, (self._command or "", observation)]
        if self._player is not None:
            search = looked_for(self._goal, [answer for _, answer in turns])
            self._write([(plain_goal(self._goal), reflection(search))])
            return
        assert self._chat is not None
        lines = [self._first, *(f"> {command}\n{answer}" for command, answer in turns)]
        lines.append("The task was done." if won else "The task was not done.")
        try:
            answer: Any = complete_json(
                self._chat, [{"role": "system", "content": WRITE}, {"role": "user", "content": "\n".join(lines)}],
                _SCHEMA, name="memories",
            )  # fmt: skip
        except ChatError as error:
            if error.kind != "malformed":
                raise
            return  # the episode teaches nothing
        self._write([(one["situation"], one["memory"]) for one in answer["memories"][:MAX_SCHEMA]])

    def _write(self, memories: list[tuple[str, str]]) -> None:
        for situation, memory in memories:
            text = f"{situation} {memory}"
            if any(score >= EQUAL for _, score in self._entries.index.search(text, 1)):
                continue
            self.memories[self._entries.add(text)] = Memory(situation, memory, self._state())

    def _near(self, query: str) -> list[Memory]:
        return [self.memories[number] for number, _ in self._entries.index.search(query, TOP_K)]

    def _state(self) -> str:
        return plain_goal(self._goal) + "\n" + " ".join(self._first.partition("Your task is to:")[0].split())

    def _advice(self, query: str) -> list[str]:
        newest = self._turns[-1][1] if self._turns else self._first
        lines = []
        for one in self._near(query):
            context = (
                f"Task: {plain_goal(self._goal)}\nSituation now: {newest}\nSituation of the memory: {one.situation}\n"
            )
            answer = self.ask(f"{context}Its task and place: {one.state}\nMemory: {one.memory}", ADAPT, 128).strip()
            lines += [] if not answer or EMPTY in answer else [answer]
        return lines
