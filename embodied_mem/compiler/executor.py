"""The executor: the model that acts. It reads a prompt, with or without soft tokens, and writes one command.

Whatever has the method `act` can stand in its place (`Acts`): a model behind a server
(`compiler.served_executor.ServedExecutor`), or a rule (`TaskSource.follower`).

    executor = Executor(decoder, tokenizer)
    turn = executor.act(prompts, keys, soft=soft_tokens)
    turn.actions            # ["go to fridge 1", ...]

It is frozen: training the compiler never changes it (paper, C.3).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Protocol

import jax
import numpy as np

from embodied_mem.compiler.executor_format import PlainFormat
from embodied_mem.compiler.memory_compiler import PROMPT_LENGTHS, buckets_within, end_and_padding
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.completions import CompletionServer
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.prompt_cache import PromptCache
from embodied_mem.models.sampling import SamplingSettings
from embodied_mem.models.served_sampler import ServedSampler
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.parallel.placement import ONE_DEVICE, Placement


@dataclasses.dataclass(frozen=True)
class Turn:
    """One step of the executor, for a batch.

    Attributes:
        actions: one command per row.
        tokens_in: prompt tokens per row, soft positions included.
        tokens_out: generated tokens per row.
        prefill_s: wall time in which the batch's prompts were read.
        decode_s: likewise, in which its commands were written.
    """

    actions: list[str]
    tokens_in: list[int]
    tokens_out: list[int]
    prefill_s: float = 0.0
    decode_s: float = 0.0


class Acts(Protocol):
    """Whoever gives commands."""

    def act(
        self,
        prompts: Sequence[str],
        keys: jax.Array,
        soft: Sequence[np.ndarray | None] | None = None,
        choices: Sequence[Sequence[str]] | None = None,
        pictures: Sequence[Sequence[bytes]] | None = None,
    ) -> Turn:
        """Answer each prompt with one command; see `Executor.act`."""
        ...


class Executor:
    """A frozen decoder with its tokenizer.

    Args:
        decoder: the model.
        tokenizer: its tokenizer; must know the end and the soft token.
        max_action_tokens: longest command in tokens.
        temperature: 0 is greedy.
        length_buckets: prompt lengths that are compiled; a longer prompt loses tokens from its middle.
        batch_buckets: numbers of rows that are compiled.
        placement: where the decoder's parameters lie and rows go; on a mesh, rows fill up to a multiple of its split.
        format: how prompts and commands are written; None for the prompt as it is.
        reader: of pictures; None for an executor that reads texts alone.
        server: of these weights, which writes the commands; None to write them here.
    """

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer,
        *,
        format: PlainFormat | None = None,
        max_action_tokens: int = 16,
        temperature: float = 0.0,
        length_buckets: Sequence[int] = (128, *PROMPT_LENGTHS),
        batch_buckets: Sequence[int] = (16, 64),
        placement: Placement = ONE_DEVICE,
        reader: PictureReader | None = None,
        server: CompletionServer | None = None,
    ):
        self.decoder = decoder
        self._reader = reader or PictureReader(None, tokenizer)
        self.tokenizer = tokenizer
        self.length_buckets = buckets_within(decoder.config.max_length - max_action_tokens, length_buckets)
        self._placement, self._max_action_tokens = placement, max_action_tokens
        self._format = format or PlainFormat(tokenizer)
        settings = end_and_padding(tokenizer) | {"eos_tokens": self._format.ends}
        self._sampler = (functools.partial(ServedSampler, server) if server else PromptCache)(
            decoder,
            SamplingSettings(temperature=temperature, **settings),
            max_new_tokens=max_action_tokens,
            length_buckets=self.length_buckets,
            batch_buckets=batch_buckets,
            soft_token=_soft_id(tokenizer),
            rows=placement.rows,
            place=placement.batch,
        )

    def act(
        self,
        prompts: Sequence[str],
        keys: jax.Array,
        soft: Sequence[np.ndarray | None] | None = None,
        choices: Sequence[Sequence[str]] | None = None,
        pictures: Sequence[Sequence[bytes]] | None = None,
    ) -> Turn:
        """Answer each prompt with one command.

        Args:
            prompts: texts that end where the command begins (`embodied_mem.compiler.prompts.executor_prompt`).
            keys: PRNG keys [B] or more.
            soft: per row float32[N, D] for its placeholder tokens, or None for a row without.
            choices: per row the commands of which it gives one; None for any text.
            pictures: of each prompt, files of which its reader takes the last ones.

        Raises:
            InvalidInputError: a row's number of placeholders is not its number of soft tokens, or a row has no choice
                or one that is longer than a command may be.
        """
        shown = pictures or [()] * len(prompts)
        encoded = self._format.prompts(prompts, self.length_buckets[-1], [self._reader.tokens(row) for row in shown])
        self._check_soft(encoded, soft)
        self._reader.check(encoded, shown)
        pixels = [self._reader.pixels(row) for row in shown]
        written_choices = None if choices is None else self._encoded_choices(choices)
        with self._placement.scope():
            result = self._sampler.generate(encoded, keys, soft=soft, choices=written_choices, pictures=pixels)
        lengths, written = (a[: len(encoded)] for a in self._placement.fetch((result.lengths, result.tokens)))
        # Published models have more output rows than their tokenizers have tokens; such a token has no text.
        said = [[i for i in row[:length] if i < self.tokenizer.vocab_size] for row, length in zip(written, lengths)]
        actions = [self._format.command(self.tokenizer.decode(ids, skip_special=True)) for ids in said]
        sampler = self._sampler
        return Turn(actions, [len(ids) for ids in encoded], lengths.tolist(), sampler.prefill_s, sampler.decode_s)

    def read(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of prompts without pictures as `act` reads them."""
        return self._format.prompts(prompts, self.length_buckets[-1])

    def _encoded_choices(self, choices: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        commands = sorted({command for row in choices for command in row})
        ids = dict(zip(commands, self._format.commands(commands) if commands else ()))
        if long := next((command for command, own in ids.items() if len(own) > self._max_action_tokens), None):
            raise InvalidInputError(
                f"choices: expected commands of at most {self._max_action_tokens} tokens, got {long!r} with "
                f"{len(ids[long])}; raise max_action_tokens"
            )
        return [[ids[command] for command in row] for row in choices]

    def _check_soft(self, encoded: list[list[int]], soft: Sequence[np.ndarray | None] | None) -> None:
        for row, (ids, value) in enumerate(zip(encoded, soft or [None] * len(encoded))):
            expected, count = ids.count(_soft_id(self.tokenizer)), 0 if value is None else len(value)
            if count != expected:
                raise InvalidInputError(
                    f"soft[{row}]: expected {expected} soft tokens for the prompt's placeholders, got {count}"
                )


def _soft_id(tokenizer: Tokenizer) -> int:
    """Return the soft token's id; -1, never in a text, without one."""
    return -1 if tokenizer.soft_id is None else tokenizer.soft_id
