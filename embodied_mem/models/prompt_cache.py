"""Sampling with a prompt cache: a new prompt starts from the stored one with the longest shared prefix.

    sampler = PromptCache(decoder, settings, max_new_tokens=32, length_buckets=(256, 512), batch_buckets=(16, 64))
    out = sampler.generate(prompts, keys)         # 64 trajectories of 8 tasks: 8 prompts are read, 64 continued
    out = sampler.generate(next_prompts, keys)    # a step later: of each prompt, only what differs is read

Every prompt starts from that stored prompt, of whatever row, with which it shares the longest beginning: its own of the
step before, as a rule, or that of another trajectory of its group. No caller has to say which row is which; rows may
leave, join and change places. What was sampled is not stored: prompts of the next step hardly ever go on from it
(`PromptCache.kept_tokens` tells how much is kept).

Shapes come from buckets. With C the smallest length bucket that holds the longest prompt, either all C columns are
read, or C / 2 or C / 4 of them behind what is kept: three programs for reading per pair of length and batch bucket, one
for writing (and one more for reading where a call's buckets are not those of the call before). What is kept belongs to
the very arrays that read it: after an update of the decoder all is read again.
"""

from __future__ import annotations

import bisect
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models import decoder as model
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder, Network, State
from embodied_mem.models.kv_cache import KVCache, grow, repeat_rows, take
from embodied_mem.models.sampling import (
    Choices,
    Generation,
    SamplingSettings,
    decode,
    pad_prompts,
    sampling_config,
    tries,
)
from embodied_mem.models.soft_mem import write_soft_tokens
from embodied_mem.models.vision.pictures import place_seen, stacked
from embodied_mem.models.vision.qwen_vl_vision import VisionTower, see
from embodied_mem.models.weights_version import WeightsWatch

PARTS = (4, 2)
"""Divisors of a length bucket: columns after the cached ones fill the smallest part that holds them, or all of it."""


@functools.partial(jax.jit, static_argnames=("graphdef", "config"))
def _lay_out(graphdef: nnx.GraphDef[Decoder], state: State, config: DecoderConfig) -> Network:
    return nnx.merge(graphdef, state).network(config.scan_layers)


def sampling_network(decoder: Decoder) -> Network:
    """Returns the decoder with weights laid out for the fastest sampling.

    The layout is that for the present backend.
    """
    network: Network = _lay_out(*nnx.split(decoder), sampling_config(decoder))
    return network


class _Kept(NamedTuple):
    """State from which prompts continue: arguments of `kv_cache.take`, and int32[B, K], the tokens before what is
    read, -1 where there are fewer."""

    cache: KVCache
    rows: jax.Array
    columns: jax.Array
    counts: jax.Array
    before: jax.Array


@jax.jit
def _read(
    network: Network,
    kept: _Kept | None,
    tokens: jax.Array,
    mask: jax.Array,
    soft: tuple[jax.Array, jax.Array] | None,
    seen: jax.Array | None,
) -> tuple[jax.Array, KVCache]:
    """Returns (hidden [B, D] at each prompt's last token, cache).

    The cache has C columns.
    """
    table, positions = network.weights["embedding"], None
    x = model.embed(network.config, table, tokens)
    if soft is not None:
        x = write_soft_tokens(x, *soft)
    if seen is not None:
        assert network.config.vision is not None  # which has seen it
        x, positions = place_seen(x, (tokens == network.config.vision.image_token) & mask, mask, seen)
    if kept is None:
        hidden, cache = model.prefill(network, embeddings=x, mask=mask, positions=positions, capacity=tokens.shape[1])
    else:
        last = None
        if network.config.smear:
            last = jnp.where(kept.before[..., None] >= 0, model.embed(network.config, table, kept.before), 0)
        cache = take(kept.cache, kept.rows, kept.columns, kept.counts, last)
        cache = grow(cache, kept.columns.shape[1] + tokens.shape[1])
        hidden, cache = model.extend(network, cache, embeddings=x, mask=mask, positions=positions)
    return hidden[:, -1], cache


@functools.partial(jax.jit, static_argnames=("settings", "max_new_tokens", "capacity"))
def _write(
    network: Network,
    keys: jax.Array,
    cache: KVCache,
    hidden: jax.Array,
    rows: jax.Array | None,
    choices: Choices | None,
    *,
    settings: SamplingSettings,
    max_new_tokens: int,
    capacity: int,
) -> Generation:
    if rows is not None:
        cache, hidden = repeat_rows(cache, rows), hidden[rows]
    return decode(network, grow(cache, capacity), hidden, keys, settings, max_new_tokens, choices)


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _see(graphdef: nnx.GraphDef[VisionTower], state: State, pictures: jax.Array) -> jax.Array:
    return see(nnx.merge(graphdef, state), pictures)


def _timed(program: Any, *arguments: Any, **settings: Any) -> tuple[Any, float]:
    """Returns (result of a jitted function, seconds).

    If it had to be compiled, it runs again and the second run alone is timed.
    """
    while True:
        compiled = program._cache_size()
        started = time.perf_counter()
        result = jax.block_until_ready(program(*arguments, **settings))
        seconds = time.perf_counter() - started
        if program._cache_size() == compiled:
            return result, seconds
        del result  # two caches need twice the memory


def batch_bucket(count: int, buckets: Sequence[int]) -> int:
    """Returns the smallest bucket for `count`, or a multiple of the largest.

    It is the next multiple.
    """
    fitting = [size for size in sorted(buckets) if size >= count]
    return fitting[0] if fitting else -(-count // max(buckets)) * max(buckets)


class StoredPrompts:
    """Which token stands where in a cache.

    Args:
        prompts: the tokens of each row that may be used again.
        columns: int[L] of each row, the columns of the cache that hold them.
    """

    def __init__(self, prompts: Sequence[tuple[int, ...]], columns: Sequence[np.ndarray]):
        self._sorted = sorted((prompt, row) for row, prompt in enumerate(prompts))
        self.columns = columns

    def longest(self, prompt: tuple[int, ...]) -> tuple[int, int]:
        """Returns (row, number of tokens) of the longest prefix shared with `prompt`.

        The row is a stored prompt's.

        In lexicographic order it is shared with a neighbour of the place where the prompt would stand.
        """
        at = bisect.bisect(self._sorted, (prompt, -1))
        found = [(_shared(prompt, other), row) for other, row in self._sorted[max(at - 1, 0) : at + 1]]
        count, row = max(found, default=(0, 0))
        return row, count


def _shared(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    length = min(len(a), len(b))
    different = np.flatnonzero(np.asarray(a[:length]) != np.asarray(b[:length]))
    return int(different[0]) if len(different) else length


class PromptCache:
    """A decoder that continues prompts and keeps what it has read of them.

    Besides the cache that is written to while sampling, that of the distinct prompts stays in memory between calls, and
    so do the weights in the layout for sampling where that is not the decoder's own (`sampling.UNROLLED_BACKENDS`).

    Args:
        decoder: the model.
        settings: how tokens are drawn.
        max_new_tokens: T, longest completion.
        length_buckets: prompt lengths that are compiled; multiples of 4.
        batch_buckets: numbers of rows that are compiled.
        soft_token: its positions are written over by soft tokens; from the first of them on nothing is kept.
        rows: rounds a number of rows up to one that the devices can split; and
        place: puts arrays [B, ...] on them (`Placement.rows`, `Placement.batch`).

    Attributes:
        prompt_tokens: of all prompts so far.
        kept_tokens: of these, the ones that were not read because an earlier call had read them.
        shared_tokens: likewise, because another row of the same call read them.
        prefill_s: wall time of the last call in which prompts were read, without compiling.
        decode_s: likewise, in which completions were written.
    """

    def __init__(
        self,
        decoder: Decoder,
        settings: SamplingSettings,
        *,
        max_new_tokens: int,
        length_buckets: Sequence[int],
        batch_buckets: Sequence[int],
        soft_token: int = -1,
        rows: Callable[[int], int] = int,
        place: Callable[[Any], Any] = lambda tree: tree,
    ):
        self.decoder = decoder
        self.length_buckets = tuple(sorted(length_buckets))
        self.prompt_tokens = self.kept_tokens = self.shared_tokens = 0
        self.prefill_s = self.decode_s = 0.0
        self._settings, self._max_new, self._batch_buckets = settings, max_new_tokens, tuple(batch_buckets)
        self._soft_token, self._rows, self._place = soft_token, rows, place
        vision = decoder.config.vision
        self._written_over = (soft_token, soft_token if vision is None else vision.image_token)
        self._watch = WeightsWatch(decoder)
        self.forget()

    def forget(self) -> None:
        """Frees what is kept."""
        self._stored = StoredPrompts([], [])
        self._cache: KVCache | None = None

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        keys: jax.Array,
        *,
        soft: Sequence[np.ndarray | None] | None = None,
        extra_capacity: int = 0,
        choices: Sequence[Sequence[Sequence[int]]] | None = None,
        pictures: Sequence[np.ndarray | None] | None = None,
    ) -> Generation:
        """Returns completions of prompts.

        Rows beyond the prompts fill the batch bucket and mean nothing.

        Args:
            prompts: token ids.
            keys: PRNG keys, at least one per prompt.
            soft: per prompt float32[N, D], one N for all, or None for a prompt without; as many as it has placeholders.
            extra_capacity: columns left free in the cache of the result, for `append`.
            choices: per prompt token sequences of which its completion is one, each with its end (`sampling.Choices`).
            pictures: per prompt uint8[K, side, side, 3], one shape for all, or None for a prompt without
                (`vision.pictures`); only the text before them is kept for the next call.

        Raises:
            InvalidInputError: a prompt is empty or longer than the largest bucket, or there is no room for it.
        """
        self._follow_weights()
        texts = [tuple(prompt) for prompt in prompts]
        rows = self._rows(batch_bucket(len(texts), self._batch_buckets))
        pictures = pictures or [None] * len(texts)
        chosen, origin = self._distinct(texts, rows, pictures)
        hidden, cache = self._read_prompts(texts, chosen, soft, pictures)
        keys = self._place(keys[np.minimum(np.arange(rows), len(texts) - 1)])
        capacity = cache.capacity + self._max_new + extra_capacity
        if capacity > self.decoder.config.max_length:
            raise InvalidInputError(
                f"generate: expected at most max_length={self.decoder.config.max_length} columns, got a length bucket "
                f"of {cache.capacity} + {self._max_new} new tokens + {extra_capacity}"
            )
        generation: Generation
        generation, self.decode_s = _timed(
            _write, self._network, keys, cache, hidden, origin,
            None if choices is None else self._place(tries(choices, rows)),
            settings=self._settings, max_new_tokens=self._max_new, capacity=capacity,
        )  # fmt: skip
        return generation

    def _follow_weights(self) -> None:
        """Lays out new weights for sampling and forgets what others have read.

        Nothing happens if they are the same arrays.
        """
        if self._watch.changed():
            self.forget()
            self._network: Network | None = None  # before there is another one
            self._network = sampling_network(self.decoder)

    def _distinct(
        self, texts: list[tuple[int, ...]], rows: int, pictures: Sequence[np.ndarray | None]
    ) -> tuple[list[int], jax.Array | None]:
        """Returns (distinct prompts, their row for each row of the batch).

        The prompts are to be read; the second is the row among them that each row of the batch continues; None for
        its own.
        """
        shown = [b"" if pixels is None else pixels.tobytes() for pixels in pictures]
        names = [(text, i if self._soft_token in text else -1, shown[i]) for i, text in enumerate(texts)]
        first = {name: i for i, name in reversed(list(enumerate(names)))}
        fewer = self._rows(batch_bucket(len(first), self._batch_buckets))
        if fewer == rows:
            return [*range(len(texts)), *[0] * (rows - len(texts))], None
        chosen = sorted(first.values())
        self.shared_tokens += sum(map(len, texts)) - sum(len(texts[i]) for i in chosen)
        origin = [chosen.index(first[name]) for name in names] + [0] * (rows - len(texts))
        return chosen + [0] * (fewer - len(chosen)), self._place(np.asarray(origin, np.int32))

    def _read_prompts(
        self,
        texts: list[tuple[int, ...]],
        chosen: list[int],
        soft: Sequence[np.ndarray | None] | None,
        pictures: Sequence[np.ndarray | None],
    ) -> tuple[jax.Array, KVCache]:
        """Reads the rest of the chosen prompts and stores them.

        Reading starts where the stored ones end. Returns (hidden [B, D], cache).
        """
        read = [texts[i] for i in chosen]
        length = pad_prompts(read, buckets=self.length_buckets)[0].shape[1]
        limits = [min(text.index(one) if one in text else len(text) for one in self._written_over) for text in read]
        matches = [self._stored.longest(text) for text in read]
        # The last token is always read: its hidden state is what sampling starts from.
        shared = [min(count, limit, len(text) - 1) for (_, count), limit, text in zip(matches, limits, read)]
        needed = max(len(text) - count for text, count in zip(read, shared))
        new = next((length // part for part in PARTS if length // part >= needed), length)
        new = new if any(shared) else length
        kept = np.minimum(shared, length - new)
        tokens, mask = pad_prompts([text[count:] for text, count in zip(read, kept)], buckets=(new,))
        going_on = None
        if new < length:
            columns = np.zeros((len(read), length - new), np.int32)
            for row, ((source, _), count) in enumerate(zip(matches, kept)):
                columns[row, :count] = self._stored.columns[source][:count]
            last = np.arange(-max(self.decoder.config.smear, 1), 0)
            before = np.asarray([[text[i] if i >= 0 else -1 for i in count + last] for text, count in zip(read, kept)])
            sources = np.asarray([row for row, _ in matches], np.int32)
            assert self._cache is not None  # something is stored
            going_on = _Kept(self._cache, *self._place((sources, columns, np.int32(kept), np.int32(before))))
        written = seen = None
        if soft is not None and (values := stacked([soft[i] for i in chosen])) is not None:
            written = self._place(((tokens == self._soft_token) & mask, values))
        if (pixels := stacked([pictures[i] for i in chosen])) is not None:
            seen = _see(*nnx.split(self.decoder.vision), self._place(pixels))
        (hidden, self._cache), self.prefill_s = _timed(
            _read, self._network, going_on, *self._place((tokens, mask)), written, seen
        )
        self._stored = StoredPrompts(
            [text[:limit] for text, limit in zip(read, limits)],
            [
                np.concatenate([np.arange(count), np.arange(length - (len(text) - count), length)])
                for text, count in zip(read, kept)
            ],
        )
        self.prompt_tokens += sum(map(len, texts))
        self.kept_tokens += int(kept[: len(set(chosen))].sum())  # the others fill the batch
        return hidden, self._cache
