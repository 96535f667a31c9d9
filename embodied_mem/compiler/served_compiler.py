"""A compiler behind a chat model: a server, a recording of one, or a model in this process; nothing is trained.

    compiler = ServedCompiler(RecordedChatModel(OpenAIChatModel(url, "qwen2.5-7b-instruct"), "calls.jsonl"))
    CompiledMemory(compiler, name="compiled_chat")             # the delivery; or, of one prompt:
    compiler.compile([compile_prompt(view)])[0].output.guidance

It is told the task and the grammar of outputs (`prompts/compile.txt`) and reads the prompt that a trained compiler
reads. What it writes is guidance and edits of the Brief State; an executor of any family reads the guidance as text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem.compiler.memory_compiler import Compiled
from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.compiler.served_executor import ask_rows
from embodied_mem.language.chat import ChatModel, ChatReply
from embodied_mem.language.images import content
from embodied_mem.language.json_answers import without_thoughts
from embodied_mem.language.prompt_files import prompt
from embodied_mem.language.tokenizers import Tokenizer


@dataclasses.dataclass(frozen=True)
class ServedOutput(Compiled):
    """An output whose tokens stayed with the server, which only counts them."""

    counted_tokens: int = 0

    @property
    def num_tokens(self) -> int:
        return self.counted_tokens


class ServedCompiler:
    """`MemoryCompiler.compile` by a chat model, without soft tokens.

    Args:
        chat: asked, from several threads.
        max_tokens: longest answer.
        temperature: 0 is greedy. Draws are the server's: keys have no part in them.
        max_parallel: requests at a time.
        sees: whether the model reads pictures; to another one none is sent.
    """

    num_soft = 0
    tokenizer: Tokenizer | None = None
    """The server's, which nobody here knows."""

    def __init__(
        self,
        chat: ChatModel,
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        max_parallel: int = 8,
        sees: bool = False,
    ):
        self.chat, self._sees = chat, sees
        self._max_tokens, self._temperature, self._max_parallel = max_tokens, temperature, max_parallel
        self._instruction = prompt("embodied_mem.compiler", "compile")

    def compile(
        self,
        prompts: Sequence[str],
        keys: Any = None,
        *,
        soft: bool = False,
        pictures: Sequence[Sequence[bytes]] | None = None,
    ) -> list[Compiled]:
        """Compile like `MemoryCompiler.compile`.

        Raises:
            ChatError: an answer could not be had.
        """
        images = [tuple(row) for row in pictures] if pictures and self._sees else [()] * len(prompts)
        rows = list(zip(prompts, images))
        return [_output(reply) for reply in ask_rows(rows, lambda row: self._ask(*rows[row]), self._max_parallel)]

    def _ask(self, text: str, images: tuple[bytes, ...]) -> ChatReply:
        messages: list[dict[str, object]] = [
            {"role": "system", "content": self._instruction},
            {"role": "user", "content": content(text, images)},
        ]
        return self.chat.complete(messages, max_tokens=self._max_tokens, temperature=self._temperature)


def _output(reply: ChatReply) -> ServedOutput:
    """Read an answer; lines of a Markdown fence are left out."""
    lines = [line for line in without_thoughts(reply.text).split("\n") if not line.strip().startswith("```")]
    count = reply.usage.prompt_tokens + reply.usage.completion_tokens
    no_ids, no_log_probs = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return ServedOutput(parse_output("\n".join(lines)), [], no_ids, no_log_probs, counted_tokens=count)
