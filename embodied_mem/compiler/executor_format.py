"""Formats of an executor's prompt and command in tokens: as a model trained here reads them, or in a chat.

    PlainFormat(tokenizer)                        # the prompt as it is; the command ends with the end token
    ChatFormat(tokenizer, instruction)            # the family's chat template, told what its job is
    ids = format.prompts(texts, limit=2048)       # [[...], ...]
    format.commands(["go to fridge 1"])           # what training teaches, the end included

Both hold the same deliveries, word for word: the instruction is all that a published model is told besides. What stands
around the words is special tokens, which no observation can write.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from embodied_mem.compiler.memory_compiler import end_and_padding, fit
from embodied_mem.compiler.prompts import split_soft
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.chat import ChatTemplate, template_of

Pictures = Sequence[Sequence[int]]

ASKED = "next command:"
"""Stands where the prompts of models trained here have `>`."""

_EXAMPLE = "\n\nExample:\n"

_MARKS = " \t`\"'*>."
"""Characters that models put around a command."""


class PlainFormat:
    """The prompt as it is, which models trained here read; the line of soft tokens becomes placeholders.

    Attributes:
        ends: tokens that end a command.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self.ends: tuple[int, ...] = end_and_padding(tokenizer)["eos_tokens"]

    def prompts(
        self, texts: Sequence[str], limit: int | None = None, pictures: Pictures | None = None
    ) -> list[list[int]]:
        """Return token ids of prompts (`compiler.prompts.executor_prompt`), soft placeholders among them.

        Args:
            texts: prompts.
            limit: tokens of a prompt; of a longer one the middle is left out, of an instruction nothing.
            pictures: of each text the token ids of its pictures, which stand behind all that is told.

        Raises:
            InvalidInputError: an instruction alone is longer than the limit.
        """
        encoded = encode_prompts(self._tokenizer, texts, pictures)
        return encoded if limit is None else fit(encoded, limit, "executor")

    def commands(self, actions: Sequence[str]) -> list[list[int]]:
        """Return token ids of commands, the end included."""
        return [[*ids, self.ends[0]] for ids in self._tokenizer.encode_batch([f" {action}" for action in actions])]

    def command(self, written: str) -> str:
        """Return the command in what was written."""
        return " ".join(written.split("\n")[0].split())


class ChatFormat(PlainFormat):
    """A conversation (`conversation`), with the prompt as its last question; the answer's first line is the command.

    Args:
        tokenizer: of the model.
        instruction: what the world asks for and how commands are worded (`instruction` of its card).
        template: of the model's family; None finds it by the signs in the vocabulary.
    """

    def __init__(self, tokenizer: Tokenizer, instruction: str, template: ChatTemplate | None = None):
        self._tokenizer = tokenizer
        template = template or template_of(tokenizer)

        def signs(text: str) -> list[int]:
            return tokenizer.encode(text, special=True) if text else []

        heads = {role: signs(template.head.format(role=role)) for role in ("system", "user", "assistant")}
        tail, self._before = signs(template.tail), signs(template.begin)
        for role, text in conversation(instruction):
            self._before += [*heads[role], *tokenizer.encode(text), *tail]
        self._before += heads["user"]
        self._after = [*tail, *heads["assistant"]]
        family = template.known_ends(tokenizer)
        self.ends = (*family, *(token for token in line_ends(tokenizer) if token not in family))

    def prompts(
        self, texts: Sequence[str], limit: int | None = None, pictures: Pictures | None = None
    ) -> list[list[int]]:
        heads, counts, _ = zip(*map(split_soft, texts))
        soft = -1 if self._tokenizer.soft_id is None else self._tokenizer.soft_id
        placed = [[*shown, *[soft] * count] for shown, count in zip(pictures or [()] * len(texts), counts)]
        said = [head.removesuffix("\n>") + "\n" + ("" if own else ASKED) for head, own in zip(heads, placed)]
        asked = self._tokenizer.encode(f"\n{ASKED}")
        middles = [[*ids, *own, *asked] if own else ids for ids, own in zip(self._tokenizer.encode_batch(said), placed)]
        if limit is not None:
            room = limit - len(self._before) - len(self._after)
            if room < 1:
                raise InvalidInputError(
                    f"executor: expected room for its instruction, {len(self._before) + len(self._after)} tokens, got "
                    f"prompts of at most {limit}; take a model with a larger max_length"
                )
            middles = fit(middles, room, "executor")
        return [[*self._before, *middle, *self._after] for middle in middles]

    def commands(self, actions: Sequence[str]) -> list[list[int]]:
        return [[*ids, self.ends[0]] for ids in self._tokenizer.encode_batch(list(actions))]

    def command(self, written: str) -> str:
        return command_in(written)


def conversation(instruction: str) -> list[tuple[str, str]]:
    """List the (role, text) messages before a published model's prompt.

    They are the rules, then each example as if it had been asked and answered, since a small model does as it did
    before rather than as it is told. An example is a paragraph of the instruction that begins with the line `Example:`
    and ends with `ASKED` and, in a line of its own, the command.

    Raises:
        InvalidInputError: an example that does not end so.
    """
    rules, *examples = instruction.strip().split(_EXAMPLE)
    told = [("system", rules)]
    for number, example in enumerate(examples, 1):
        asked, _, command = example.strip().rpartition("\n")
        if not asked.endswith(f"\n{ASKED}"):
            raise InvalidInputError(
                f"instruction: expected example {number} to end with the line {ASKED!r} and a line with the command, "
                f"got {example.strip()[-80:]!r}"
            )
        told += [("user", asked), ("assistant", command)]
    return told


@functools.cache
def line_ends(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the ids of all tokens with a newline in them.

    A server's stop word ends a line the same way.
    """
    return tuple(i for i in range(tokenizer.vocab_size) if "\n" in tokenizer.decode([i]))


def encode_prompts(tokenizer: Tokenizer, prompts: Sequence[str], pictures: Pictures | None = None) -> list[list[int]]:
    """Return token ids of executor prompts.

    The line of soft tokens becomes placeholders, those of pictures (as `PlainFormat.prompts`) stand before it, all else
    is plain text.
    """
    soft = -1 if tokenizer.soft_id is None else tokenizer.soft_id
    heads, placed, tails = [], [], []
    for prompt, shown in zip(prompts, pictures or [()] * len(prompts)):
        head, count, tail = split_soft(prompt)
        if shown and not count:
            head, tail = head.removesuffix("\n>"), "\n>"
        heads.append(head)
        placed.append([*shown, *[soft] * count])
        tails.append(tail)
    pairs = zip(tokenizer.encode_batch(heads), placed, tokenizer.encode_batch(tails))
    return [[*head, *own, *tail] for head, own, tail in pairs]


def command_in(answer: str) -> str:
    """Return the command in an answer: its first non-empty line without marks."""
    for line in answer.split("\n"):
        if words := " ".join(line.strip(_MARKS).split()):
            return words
    return ""
