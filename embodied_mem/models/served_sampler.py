"""Sampling by a server that holds the same weights, in the place of `prompt_cache.PromptCache`.

    sampler = ServedSampler(server, decoder, settings, max_new_tokens=32, length_buckets=(512,), batch_buckets=(16,))
    out = sampler.generate(prompts, keys)                      # out.tokens, out.log_probs, out.lengths

What a server cannot give is computed here, by one pass over what it wrote: the cache that soft tokens are read from.
Prompts with soft tokens go to it as embeddings, all others as tokens.
"""

from __future__ import annotations

import concurrent.futures
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.language.completions import Completion, CompletionServer
from embodied_mem.models import decoder as model
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder, State
from embodied_mem.models.formats.torch_file import tensor_file
from embodied_mem.models.kv_cache import KVCache
from embodied_mem.models.prompt_cache import batch_bucket
from embodied_mem.models.sampling import SamplingSettings, pad_prompts, sampling_config
from embodied_mem.models.soft_mem import write_soft_tokens
from embodied_mem.models.vision.pictures import stacked

MAX_PARALLEL = 64
"""Requests at a time."""


class Answers(NamedTuple):
    """A server's completions; fields as in `sampling.Generation`, the cache only where columns are left free in it."""

    tokens: np.ndarray
    log_probs: np.ndarray
    lengths: np.ndarray
    cache: Any


@functools.partial(jax.jit, static_argnames=("graphdef", "config", "capacity"))
def _read(
    graphdef: nnx.GraphDef[Decoder],
    state: State,
    tokens: jax.Array,
    mask: jax.Array,
    *,
    config: DecoderConfig,
    capacity: int,
) -> KVCache:
    network = nnx.merge(graphdef, state).network(config.scan_layers)
    return model.prefill(network, tokens, mask=mask, capacity=capacity)[1]


@functools.partial(jax.jit, static_argnames=("graphdef", "soft_token"))
def _embed(
    graphdef: nnx.GraphDef[Decoder], state: State, tokens: jax.Array, soft: jax.Array, *, soft_token: int
) -> jax.Array:
    return write_soft_tokens(nnx.merge(graphdef, state).embed(tokens), tokens == soft_token, soft)


class ServedSampler:
    """A server in the place of a decoder that samples.

    Args:
        server: of a model with the decoder's weights.
        decoder: the model, here.
        settings, max_new_tokens, length_buckets, batch_buckets, soft_token, rows, place: as in `PromptCache`.

    Attributes:
        prefill_s, decode_s: as in `PromptCache`; the server reads and writes in one.
    """

    def __init__(
        self,
        server: CompletionServer,
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
        self._server, self._decoder, self._settings, self._max_new = server, decoder, settings, max_new_tokens
        self._length_buckets, self._batch_buckets = tuple(length_buckets), tuple(batch_buckets)
        self._soft_token, self._rows, self._place = soft_token, rows, place
        self.prefill_s = self.decode_s = 0.0

    def generate(
        self,
        prompts: Sequence[list[int]],
        keys: jax.Array,
        *,
        soft: Sequence[np.ndarray | None] | None = None,
        extra_capacity: int = 0,
        choices: Sequence[Sequence[Sequence[int]]] | None = None,
        pictures: Sequence[np.ndarray | None] = (),
    ) -> Answers:
        """Return the server's completions, by a seed of each row's key.

        Arguments as in `PromptCache.generate`; choices and pictures are not sent.

        Raises:
            InvalidInputError: there are choices or pictures.
            ChatError: the server failed.
        """
        if choices is not None or any(pixels is not None for pixels in pictures):
            raise InvalidInputError("served sampler: expected neither choices nor pictures, got some; sample here")
        seeds = np.asarray(jax.vmap(jax.random.bits)(keys[: len(prompts)]))
        inputs = self._inputs(prompts, soft)
        settings, start = self._settings, time.perf_counter()

        def ask(row: int) -> Completion:
            return self._server.complete(
                inputs[row], max_tokens=self._max_new, temperature=settings.temperature, top_k=settings.top_k,
                top_p=settings.top_p, ends=settings.eos_tokens, seed=int(seeds[row]),
            )  # fmt: skip

        with concurrent.futures.ThreadPoolExecutor(min(len(inputs), MAX_PARALLEL)) as pool:
            completions = list(pool.map(ask, range(len(inputs))))
        self.decode_s = time.perf_counter() - start
        rows = self._rows(batch_bucket(len(prompts), self._batch_buckets))
        tokens = np.full((rows, self._max_new), settings.pad_token, np.int32)
        log_probs, lengths = np.zeros(tokens.shape, np.float32), np.zeros(rows, np.int32)
        for row, one in enumerate(completions):
            lengths[row] = length = len(one.tokens)
            tokens[row, :length], log_probs[row, :length] = one.tokens, one.log_probs
        cache = self._cache(prompts, completions, rows, extra_capacity) if extra_capacity else None
        return Answers(tokens, log_probs, lengths, cache)

    def _inputs(
        self, prompts: Sequence[list[int]], soft: Sequence[np.ndarray | None] | None
    ) -> list[list[int] | bytes]:
        values = stacked(soft or [])
        if soft is None or values is None:
            return list(prompts)
        tokens, mask = self._padded(prompts, batch_bucket(len(prompts), self._batch_buckets), self._length_buckets)
        arrays = self._place((tokens, np.resize(values, (len(tokens), *values.shape[1:]))))
        embeddings = np.asarray(_embed(*nnx.split(self._decoder), *arrays, soft_token=self._soft_token))
        return [
            prompt if own is None else tensor_file(embeddings[row, mask[row]])
            for row, (prompt, own) in enumerate(zip(prompts, soft))
        ]

    def _cache(
        self, prompts: Sequence[Sequence[int]], completions: Sequence[Completion], rows: int, extra_capacity: int
    ) -> KVCache:
        """Read prompts with their completions, and leave room behind them."""
        buckets = [length + self._max_new for length in self._length_buckets]
        tokens, mask = self._padded([[*a, *b.tokens] for a, b in zip(prompts, completions)], rows, buckets)
        cache: KVCache = _read(
            *nnx.split(self._decoder), *self._place((tokens, mask)),
            config=sampling_config(self._decoder), capacity=tokens.shape[1] + extra_capacity,
        )  # fmt: skip
        return cache

    def _padded(
        self, texts: Sequence[Sequence[int]], rows: int, buckets: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        rest = [texts[0]] * (self._rows(rows) - len(texts))
        return pad_prompts([*texts, *rest], buckets=buckets, pad_token=self._settings.pad_token)
