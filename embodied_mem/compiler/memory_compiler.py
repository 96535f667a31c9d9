"""The memory compiler: reads experiences, Brief State and observation; writes text and soft tokens.

    compiler = MemoryCompiler(decoder, soft_mem, tokenizer)
    compiled = compiler.compile(prompts, keys)
    compiled[0].output.guidance        # "find apple in fridge 1"
    compiled[0].soft                   # float32[N, D_executor]

After the text, N placeholder positions are read with the same cache; their final hidden states give the soft tokens
(eq. 5). The sampled token ids and soft values are kept with their log-probs, so that training sees what was sampled and
not a text that is tokenised again.

Source: MemCompiler 3.2.2 and 3.2.3, eqs. 3 to 5.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.compiler.brief_state import apply_all
from embodied_mem.compiler.guide import ALL, Guide, sources_of, withheld_from
from embodied_mem.compiler.output_grammar import CompilerOutput, parse_output
from embodied_mem.compiler.prompts import unmarked
from embodied_mem.compiler.view import View, compile_prompt, start_view
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.completions import CompletionServer
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.pool import Reading
from embodied_mem.models.decoder import Decoder, mean_attention
from embodied_mem.models.prompt_cache import PromptCache
from embodied_mem.models.sampling import SamplingSettings, append, pad_prompts
from embodied_mem.models.served_sampler import ServedSampler
from embodied_mem.models.soft_mem import SoftMem, log_density, sample
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.models.weights_version import WeightsWatch
from embodied_mem.parallel.placement import ONE_DEVICE, Placement

PROMPT_LENGTHS = (256, 384, 512, 768, 1024, 1536, 2048)
"""Buckets that are compiled when a prompt needs them, as far as the model has room."""
TRACED_ROWS = 16
"""Outputs whose attention is worked out side by side."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """One sample of the compiler, as text and as what training needs.

    Attributes:
        output: the parsed text.
        prompt: token ids of the prompt.
        tokens: int32[T] sampled ids, the end token included if it was reached.
        log_probs: float32[T] under the sampling temperature, not truncated by top-k or top-p.
        soft: float32[N, D] sampled soft tokens, or None.
        soft_log_density: float32[N], mean over the width (see `models.soft_mem`); None if nothing was sampled.
        refused_edits: edits that the Brief State did not admit.
        weights_version: of compiler and Soft-Mem head, see `models.weights_version`.
        pictures: uint8[K, side, side, 3] that the prompt's placeholders stand for; None for none.
    """

    output: CompilerOutput
    prompt: list[int]
    tokens: np.ndarray
    log_probs: np.ndarray
    soft: np.ndarray | None = None
    soft_log_density: np.ndarray | None = None
    refused_edits: int = 0
    weights_version: int = 0
    pictures: np.ndarray | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens read and written, soft positions included."""
        return len(self.prompt) + len(self.tokens) + (0 if self.soft is None else len(self.soft))


@functools.partial(jax.jit, static_argnames=("graphdef", "temperature"))
def _sample_soft(
    graphdef: Any, state: Any, hidden: jax.Array, keys: jax.Array, temperature: float
) -> tuple[jax.Array, jax.Array]:
    """Return (soft [B, N, D], log density [B, N]).

    Temperature 0 gives the mean and no density.
    """
    soft_mem = nnx.merge(graphdef, state)
    gaussian = soft_mem(hidden)
    soft_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, 2**31 - 1)
    soft = sample(gaussian, soft_keys, temperature)
    if temperature == 0 or not soft_mem.config.stochastic:
        return soft, jnp.zeros(soft.shape[:2])
    return soft, log_density(soft, gaussian, temperature, per_dimension=True)


class MemoryCompiler:
    """A decoder that compiles, its Soft-Mem head and its tokenizer.

    Args:
        decoder: the compiler model pi_C.
        soft_mem: projection into the executor's embedding space; None for text only.
        tokenizer: must know the end and the soft token.
        max_tokens: longest output text in tokens.
        temperature: of text and soft tokens; 0 is greedy and takes the soft means.
        top_k: sample among the k likeliest tokens; 0 for all.
        top_p: sample within this probability mass.
        length_buckets: prompt lengths that are compiled.
        batch_buckets: numbers of rows that are compiled.
        placement: where the parameters lie and rows go; on a mesh, rows fill up to a multiple of its split.
        reader: of pictures; None for a compiler that reads texts alone.
        marks: prompts are read with what is computed for them; False takes it out (`compiler.prompts.unmarked`).
        memory: what is read of a lifelong memory, as in training; None for all of it.
        server: of these weights, which writes the text; None to write it here.
    """

    def __init__(
        self,
        decoder: Decoder,
        soft_mem: SoftMem | None,
        tokenizer: Tokenizer,
        *,
        max_tokens: int = 96,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        length_buckets: Sequence[int] = PROMPT_LENGTHS,
        batch_buckets: Sequence[int] = (16, 64),
        placement: Placement = ONE_DEVICE,
        reader: PictureReader | None = None,
        marks: bool = True,
        memory: Reading | None = None,
        server: CompletionServer | None = None,
    ):
        self._marks, self._memory = marks, memory or Reading()
        self._views: weakref.WeakKeyDictionary[LifelongMemory, tuple[int, View]] = weakref.WeakKeyDictionary()
        self.decoder = decoder
        self.soft_mem = soft_mem
        self._reader = reader or PictureReader(None, tokenizer)
        self.tokenizer = tokenizer
        self.num_soft = soft_mem.config.num_tokens if soft_mem is not None else 0
        self.length_buckets = buckets_within(decoder.config.max_length - max_tokens - self.num_soft, length_buckets)
        self._placement = placement
        self._temperature, self._max_tokens = temperature, max_tokens
        self._watch = WeightsWatch(decoder, soft_mem)
        settings = SamplingSettings(temperature=temperature, top_k=top_k, top_p=top_p, **end_and_padding(tokenizer))
        self._sampler = (functools.partial(ServedSampler, server) if server else PromptCache)(
            decoder,
            settings,
            max_new_tokens=max_tokens,
            length_buckets=self.length_buckets,
            batch_buckets=batch_buckets,
            rows=placement.rows,
            place=placement.batch,
        )

    def guide(self, memory: LifelongMemory, observation: str = "") -> Guide:
        """Compile a memory for the newest step of the running task.

        The Brief State of the task goes on from one call to the next; call it once a step.

        Args:
            memory: with a running task, which has observed what was done.
            observation: the newest, where it says more than what the memory observed.

        Raises:
            InvalidInputError: no task is running.
        """
        if not memory.running:
            raise InvalidInputError("guide: expected a running task; call memory.begin_task first")
        (_, first), *turns = memory.turns
        number, view = self._views.get(memory, (-1, None))
        if view is None or number != memory.episode:
            view = start_view(memory.goal, first, (), memory.task_ids[-1])
            self._views[memory] = memory.episode, view
        view.turns = [*turns[:-1], (turns[-1][0], observation or turns[-1][1])] if turns else []
        task = memory.goal, first
        view.pool = memory.pool_of(*task, self._memory, view.state.current)
        view.experiences = view.pool.experiences
        key = jax.random.fold_in(jax.random.key(0), len(turns))
        [compiled] = self.compile([compile_prompt(view)], key[None])
        view.state, _ = apply_all(compiled.output.edits, view.state)
        records, output = view.pool.records, compiled.output
        withheld = withheld_from(view.pool, memory.pool_of(*task, ALL, view.state.current), self._memory)
        soft = compiled.soft if output.guidance else None
        return Guide(
            output.guidance, output.reason, sources_of(output, records), withheld, records, view.state, soft
        )  # fmt: skip

    def compile(
        self,
        prompts: Sequence[str],
        keys: jax.Array,
        *,
        soft: bool = True,
        pictures: Sequence[Sequence[bytes]] | None = None,
    ) -> list[Compiled]:
        """Answer each prompt with one output.

        Args:
            prompts: texts from `language.prompts.compiler_prompt`; one longer than the largest bucket loses tokens of
                its middle, where the experiences that were ranked last stand.
            keys: PRNG keys [B] or more, one per row, so that a row does not depend on its neighbours.
            soft: also read the soft positions.
            pictures: of each prompt, files of which its reader takes the last ones.
        """
        shown = pictures or [()] * len(prompts)
        prompts = prompts if self._marks else [unmarked(prompt) for prompt in prompts]
        encoded = self._reader.prompts(self.tokenizer.encode_batch, prompts, shown)
        encoded = fit(encoded, self.length_buckets[-1], "compiler")
        self._reader.check(encoded, shown)
        pixels = [self._reader.pixels(row) for row in shown]
        soft_mem = self.soft_mem if soft else None
        values: Any = [None] * len(encoded)
        densities: Any = values
        version = self._watch.version()
        with self._placement.scope():
            extra = 0 if soft_mem is None else self.num_soft
            result = self._sampler.generate(encoded, keys, extra_capacity=extra, pictures=pixels)
            if soft_mem is not None:
                rows = len(result.tokens)
                keys = self._placement.batch(keys[np.minimum(np.arange(rows), len(encoded) - 1)])
                placeholders = np.full((rows, self.num_soft), self.tokenizer.soft_id, np.int32)
                hidden, _ = append(self.decoder, result.cache, tokens=self._placement.batch(placeholders))
                sampled = _sample_soft(*nnx.split(soft_mem), hidden, keys, self._temperature)
                values, drawn = self._placement.fetch(sampled)
                if self._temperature > 0 and soft_mem.config.stochastic:
                    densities = drawn
        written, log_probs, lengths = self._placement.fetch((result.tokens, result.log_probs, result.lengths))
        count = len(encoded)
        # Published models have more output rows than their tokenizers have tokens; such a token has no text.
        said = [[i for i in written[row, : lengths[row]] if i < self.tokenizer.vocab_size] for row in range(count)]
        texts = [self.tokenizer.decode(ids, skip_special=True) for ids in said]
        return [
            Compiled(
                parse_output(texts[row]),
                encoded[row],
                written[row, : lengths[row]].copy(),
                log_probs[row, : lengths[row]].copy(),
                values[row],
                densities[row],
                weights_version=version,
                pictures=pixels[row],
            )
            for row in range(count)
        ]

    def attention(self, compiled: Sequence[Compiled]) -> list[list[tuple[str, float]]]:
        """Return how much each output attended to each line of its prompt.

        The entries are (line, share) in order. A share is the mean over heads, layers and the positions that decided on
        a token of the text; what they lack to 1 went to tokens written before. Everything is read again, by a program
        that nothing else uses: for traces. Nothing is told of outputs by pictures, which it does not read, and of those
        of a served compiler.
        """
        found: list[list[tuple[str, float]]] = []
        if any(one.pictures is not None or not one.prompt for one in compiled):
            return [[] for _ in compiled]
        buckets = [length + self._max_tokens for length in self.length_buckets]
        for first in range(0, len(compiled), TRACED_ROWS):
            part = compiled[first : first + TRACED_ROWS]
            filled = [*part, *[part[0]] * (self._placement.rows(TRACED_ROWS) - len(part))]
            told = pad_prompts([[*one.prompt, *one.tokens[:-1].tolist()] for one in filled], buckets=buckets)
            counts = np.asarray([len(one.tokens) for one in filled], np.int32)
            with self._placement.scope():
                given = self._placement.batch((*told, counts))
                shares = self._placement.fetch(mean_attention(*nnx.split(self.decoder), *given, self._max_tokens))
            for one, row in zip(part, shares):
                start = len(row) - len(one.prompt) - len(one.tokens) + 1
                found.append(self._by_line(one.prompt, row[start : start + len(one.prompt)]))
        return found

    def _by_line(self, prompt: Sequence[int], shares: np.ndarray) -> list[tuple[str, float]]:
        ends = {i for i in set(prompt) if "\n" in self.tokenizer.decode([i])}
        bounds = [0, *(at + 1 for at, i in enumerate(prompt) if i in ends), len(prompt)]
        return [
            (self.tokenizer.decode(prompt[a:b]).strip("\n"), float(shares[a:b].sum()))
            for a, b in itertools.pairwise(bounds) if a < b
        ]  # fmt: skip


def end_and_padding(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return a tokenizer's end and padding tokens as fields of `SamplingSettings`.

    Raises InvalidInputError for one without them.
    """
    if tokenizer.eos_id is None or tokenizer.pad_id is None:
        raise InvalidInputError(
            f"tokenizer: expected an end and a padding token, got {tokenizer.eos_id, tokenizer.pad_id}"
        )
    return {"eos_tokens": (tokenizer.eos_id,), "pad_token": tokenizer.pad_id}


def buckets_within(limit: int, buckets: Sequence[int]) -> tuple[int, ...]:
    """`buckets` cut to the prompt tokens that a model has room for.

    Raises:
        InvalidInputError: there is no room at all.
    """
    if limit < 1:
        raise InvalidInputError(f"expected room for a prompt within the model's max_length, got {limit} tokens")
    return tuple(sorted({min(size, limit) for size in buckets}))


def fit(prompts: list[list[int]], limit: int, who: str) -> list[list[int]]:
    """Return prompts, the middle of those longer than `limit` left out.

    Of those only the start and the newest three quarters of the limit stay. Warns once, in the name of who reads them:
    supervised training reads prompts whole, whatever their length.
    """
    if max(map(len, prompts), default=0) > limit:
        warnings.warn(
            f"{who}: prompts are longer than {limit} tokens, and their middle is left out; fewer experiences "
            "(memory.top_k) make them shorter, length_buckets up to the model's max_length make room",
            RuntimeWarning,
            stacklevel=3,
        )
    head = limit // 4
    return [ids if len(ids) <= limit else ids[:head] + ids[len(ids) - (limit - head) :] for ids in prompts]
