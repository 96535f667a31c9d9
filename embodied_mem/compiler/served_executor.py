"""An executor behind a chat model: a server (vLLM, llama.cpp, hosted), a recording of one, or a model in this process.

    chat = RecordedChatModel(OpenAIChatModel(url, "qwen2.5-coder-1.5b", extra_body={"stop": ["\\n"]}), "calls.jsonl")
    executor = ServedExecutor(chat, instruction, max_parallel=8)
    executor.act(prompts, keys).actions                        # ["go to fridge 1", ...]

It is told the world's instruction (what a command looks like, with examples as turns of the conversation), reads the
same prompt as any executor, and its first line is the command. Deliveries are texts: it reads no soft tokens. A model
that sees is also sent the pictures of the newest observation, as chat agents are.
"""

from __future__ import annotations

import concurrent.futures
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import jax
import numpy as np

from embodied_mem.compiler.executor import Turn
from embodied_mem.compiler.executor_format import ASKED, command_in, conversation
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.chat import ChatModel, ChatReply, Message
from embodied_mem.language.images import content
from embodied_mem.language.json_answers import without_thoughts

_AROUND = 12
"""Tokens that a server may write around JSON: quotation marks, and the lines of a block of code."""

_Told = tuple[str, tuple[bytes, ...]]
"""A prompt with its pictures."""


class ServedExecutor:
    """`compiler.executor.Acts` by a chat model.

    Args:
        chat: asked, from several threads.
        instruction: what the world asks for and how commands are worded.
        max_action_tokens: longest answer.
        temperature: 0 is greedy. Draws are the server's: `keys` have no part in them.
        max_parallel: requests at a time.
        sees: whether the model reads pictures; to another one none is sent.
    """

    def __init__(
        self,
        chat: ChatModel,
        instruction: str,
        *,
        max_action_tokens: int = 24,
        temperature: float = 0.0,
        max_parallel: int = 8,
        sees: bool = False,
    ):
        self._chat, self._sees = chat, sees
        self._told: list[Message] = [{"role": role, "content": text} for role, text in conversation(instruction)]
        self._max_tokens, self._temperature, self._max_parallel = max_action_tokens, temperature, max_parallel

    def act(
        self,
        prompts: Sequence[str],
        keys: jax.Array | None,
        soft: Sequence[np.ndarray | None] | None = None,
        choices: Sequence[Sequence[str]] | None = None,
        pictures: Sequence[Sequence[bytes]] | None = None,
    ) -> Turn:
        """Act as `Executor.act`.

        With choices, the server is given a JSON schema that is an enumeration of them. Where a server does not keep to
        it, the answer counts as it is. Rows with the same prompt and pictures: see `ask_rows`.

        Raises:
            InvalidInputError: a row has soft tokens, or something that is no picture.
            ChatError: an answer could not be had.
        """
        if any(value is not None for value in soft or ()):
            raise InvalidInputError("soft: expected none, got some: a model that is asked reads words alone")
        shown = [tuple(row) for row in pictures] if pictures and self._sees else [()] * len(prompts)
        rows = list(zip(prompts, shown))
        started = time.perf_counter()
        answers = ask_rows(
            rows, lambda row: self._ask(rows[row], None if choices is None else choices[row]), self._max_parallel
        )
        return Turn(
            [self.command(answer.text) for answer in answers],
            [answer.usage.prompt_tokens for answer in answers],
            [answer.usage.completion_tokens for answer in answers],
            decode_s=time.perf_counter() - started,
        )

    def messages(self, prompt: str, pictures: tuple[bytes, ...]) -> list[Message]:
        """Write what the model is sent for a prompt."""
        text = prompt.removesuffix("\n>")
        return [*self._told, {"role": "user", "content": content(f"{text}\n{ASKED}", pictures)}]

    def command(self, reply: str) -> str:
        """Find the command in a reply."""
        return command_in(without_thoughts(reply))

    def _ask(self, told: _Told, choices: Sequence[str] | None) -> ChatReply:
        messages = self.messages(*told)
        return self._chat.complete(
            messages, max_tokens=self._max_tokens + (_AROUND if choices else 0), temperature=self._temperature,
            response_format=None if choices is None else one_of(choices),
        )  # fmt: skip


def ask_rows(rows: Sequence[Hashable], ask: Callable[[int], ChatReply], max_parallel: int) -> list[ChatReply]:
    """Ask for each row, given by its number, several at a time.

    Equal rows are asked one after the other, in their order, so that a recording gives each its own answer again.
    """
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        groups[row].append(number)
    replies: dict[int, ChatReply] = {}

    def ask_group(numbers: list[int]) -> None:
        for number in numbers:
            replies[number] = ask(number)

    with concurrent.futures.ThreadPoolExecutor(max_parallel) as pool:
        for done in [pool.submit(ask_group, numbers) for numbers in groups.values()]:
            done.result()
    return [replies[number] for number in range(len(rows))]


def one_of(choices: Sequence[str]) -> dict[str, object]:
    """Return a `response_format` that allows only one of these texts.

    It stands in quotation marks, in one line.
    """
    return {
        "type": "json_schema",
        "json_schema": {"name": "command", "strict": True, "schema": {"type": "string", "enum": list(choices)}},
    }
