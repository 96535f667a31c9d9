"""Batched sampling from a decoder, one compiled program per (batch, prompt length, new tokens, settings).

    tokens, mask = pad_prompts(prompts, buckets=(128, 256, 512), pad_token=0)
    keys = jax.random.split(jax.random.key(0), len(prompts))             # one per row
    out = generate(decoder, keys, SamplingSettings(eos_tokens=(3,)), tokens=tokens, mask=mask, max_new_tokens=32)
    out.tokens, out.log_probs, out.completion_mask                       # [B, T] each
    hidden, cache = append(decoder, out.cache, tokens=soft_placeholders) # needs extra_capacity=N above

Prompts are padded on the left, so that every row is continued at the same column and the cache is written by one
contiguous update. A row that has finished goes on as masked columns, which nothing attends to. The
loop ends when all rows have finished. Each row draws from its own key and from the step's number alone, so that what
it says does not depend on its neighbours, its padding, or the size of the batch.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models import decoder as model
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder, Network, State
from embodied_mem.models.kv_cache import KVCache


@dataclasses.dataclass(frozen=True)
class SamplingSettings:
    """Settings of drawing a token; compiled in, so a new value is a new program.

    Attributes:
        temperature: logits are divided by it; 0 takes the most likely token.
        top_k: only the k most likely tokens can be drawn; 0 means all.
        top_p: only the smallest set of most likely tokens whose probability reaches p (after temperature and top_k,
            renormalised) can be drawn; 1 means all.
        eos_tokens: any of these ends a row; it belongs to the completion.
        pad_token: what is written after the end.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    eos_tokens: tuple[int, ...] = ()
    pad_token: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise InvalidInputError(f"sampling.temperature: expected >= 0, got {self.temperature!r}")
        if not (isinstance(self.top_k, int) and self.top_k >= 0):
            raise InvalidInputError(f"sampling.top_k: expected an integer >= 0 (0: all tokens), got {self.top_k!r}")
        if not 0 < self.top_p <= 1:
            raise InvalidInputError(f"sampling.top_p: expected in (0, 1], got {self.top_p!r}")
        if not isinstance(self.eos_tokens, tuple):
            raise InvalidInputError(f"sampling.eos_tokens: expected a tuple of ints, got {self.eos_tokens!r}")

    @property
    def log_prob_temperature(self) -> float:
        """Temperature of the distribution whose log-probs are reported: 1 for greedy decoding."""
        return self.temperature or 1.0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Generation:
    """The result of `generate`; every array stays on the device.

    Attributes:
        tokens: int32[B, T], `pad_token` after the end.
        log_probs: float32[B, T] under softmax(logits / temperature) over the whole vocabulary: top-k and top-p
            restrict what is drawn and not this number, so that the trainer, which recomputes it by a forward
            pass, compares like with like. Temperature 0 reports temperature 1. Zero after the end.
        completion_mask: bool[B, T], True up to and including the end token.
        lengths: int32[B], True entries of `completion_mask`.
        finished: bool[B], whether an end token was drawn.
        num_steps: int32[], decoding steps taken.
        last_hidden: [B, D], final hidden state of each row's last token (of its prompt for T = 0).
        cache: holds prompt and completion, ready for `append`.
    """

    tokens: jax.Array
    log_probs: jax.Array
    completion_mask: jax.Array
    lengths: jax.Array
    finished: jax.Array
    num_steps: jax.Array
    last_hidden: jax.Array
    cache: KVCache


def pad_prompts(
    prompts: Sequence[Sequence[int]], *, buckets: Sequence[int], pad_token: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns left-padded prompts as (tokens int32[B, L], mask bool[B, L]).

    L is the smallest bucket that holds the longest prompt.

    Args:
        prompts: token ids per row; none may be empty.
        buckets: the allowed lengths; few of them means few compiled programs.
        pad_token: fills the left.

    Raises:
        InvalidInputError: for an empty prompt, or one longer than the largest bucket (its row and length are named;
            nothing is cut off silently).
    """
    if not prompts:
        raise InvalidInputError("prompts: expected at least one, got none")
    lengths = [len(prompt) for prompt in prompts]
    if min(lengths) == 0:
        raise InvalidInputError(f"prompts[{lengths.index(0)}]: expected at least one token, got none")
    longest = max(lengths)
    fitting = [bucket for bucket in sorted(buckets) if bucket >= longest]
    if not fitting:
        raise InvalidInputError(
            f"prompts[{lengths.index(longest)}]: expected at most {max(buckets)} tokens (the largest bucket), "
            f"got {longest}; shorten the prompt or add a bucket"
        )
    tokens = np.full((len(prompts), fitting[0]), pad_token, np.int32)
    mask = np.zeros(tokens.shape, bool)
    for row, prompt in enumerate(prompts):
        tokens[row, fitting[0] - len(prompt) :] = prompt
        mask[row, fitting[0] - len(prompt) :] = True
    return tokens, mask


def sample_token(
    logits: jax.Array, keys: jax.Array, step: jax.Array, settings: SamplingSettings
) -> tuple[jax.Array, jax.Array]:
    """Returns (tokens int32[B], log_probs float32[B]) drawn from logits float32[B, V].

    Each row's key and the step decide the draw.

    Log-probs as in `Generation`. The draw is the largest of (scaled logit + Gumbel noise) over the allowed tokens.
    """
    scaled = logits / settings.log_prob_temperature
    vocab = logits.shape[-1]
    log_total = jax.nn.logsumexp(scaled, axis=-1)
    if settings.temperature == 0:
        tokens = jnp.argmax(scaled, axis=-1).astype(jnp.int32)
    else:
        width = min(settings.top_k, vocab) if settings.top_k else vocab
        truncated = settings.top_k > 0 or settings.top_p < 1
        candidates, ids = jax.lax.top_k(scaled, width) if truncated else (scaled, None)
        if settings.top_p < 1:
            probabilities = jax.nn.softmax(candidates, axis=-1)
            before = jnp.cumsum(probabilities, axis=-1) - probabilities
            candidates = jnp.where(before < settings.top_p, candidates, -jnp.inf)
        step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, step)
        noise = jax.vmap(lambda key: jax.random.gumbel(key, (width,)))(step_keys)
        choice = jnp.argmax(candidates + noise, axis=-1)
        tokens = choice if ids is None else jnp.take_along_axis(ids, choice[:, None], axis=-1)[:, 0]
        tokens = tokens.astype(jnp.int32)
    log_probs = jnp.take_along_axis(scaled, tokens[:, None], axis=-1)[:, 0] - log_total
    return tokens, log_probs


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Choices:
    """Completions that are one of given token sequences: a trie per row with N nodes; node 0 is the root.

    At a node only its children can be drawn. With C the most children of a node, a step compares C logits of each row,
    not V.

    Attributes:
        tokens: int32[B, N, C], token of each child; -1 where there is none.
        nodes: int32[B, N, C], its node; 0 behind the last token of a choice.
    """

    tokens: jax.Array | np.ndarray
    nodes: jax.Array | np.ndarray


def tries(choices: Sequence[Sequence[Sequence[int]]], rows: int) -> Choices:
    """Return tries of each row's choices; rows beyond them repeat the first.

    N and C are powers of two, from 128 and 16 on, so that few programs are compiled.

    Args:
        choices: per row token sequences, the token that ends a completion last.
        rows: B, at least as many as `choices`.

    Raises:
        InvalidInputError: a row has no choice, or one is empty or goes on behind the end of another.
    """
    found = [_trie(row, own) for row, own in enumerate(choices)]
    size = _power(128, max(len(trie) for trie in found))
    width = _power(16, max(len(children) for trie in found for children in trie))
    tokens = np.full((rows, size, width), -1, np.int32)
    nodes = np.zeros_like(tokens)
    for row, trie in enumerate(found):
        for node, children in enumerate(trie):
            tokens[row, node, : len(children)] = [*children]
            nodes[row, node, : len(children)] = [*children.values()]
    tokens[len(found) :], nodes[len(found) :] = tokens[0], nodes[0]
    return Choices(tokens, nodes)


def _trie(row: int, choices: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """Nodes, each child token -> node."""
    if not choices:
        raise InvalidInputError(f"choices[{row}]: expected at least one, got none")
    trie: list[dict[int, int]] = [{}]
    for choice in choices:
        if not choice:
            raise InvalidInputError(f"choices[{row}]: expected tokens in each, got an empty one")
        node = 0
        for token in choice[:-1]:
            if token not in trie[node]:
                trie[node][token] = len(trie)
                trie.append({})
            node = trie[node][token]
            if node == 0:
                raise InvalidInputError(
                    f"choices[{row}]: expected none that goes on behind another's end, got {[*choice]}"
                )
        if trie[node].setdefault(choice[-1], 0):
            raise InvalidInputError(f"choices[{row}]: expected none that ends within another, got {choice}")
    return trie


def _power(least: int, count: int) -> int:
    return max(least, 1 << (count - 1).bit_length())


def children(choices: Choices, node: jax.Array) -> jax.Array:
    """int32[B, C], the tokens that may follow at int32[B] nodes."""
    return jnp.take_along_axis(jnp.asarray(choices.tokens), node[:, None, None], axis=1)[:, 0]


def descend(choices: Choices, node: jax.Array, child: jax.Array) -> jax.Array:
    """int32[B], the nodes of the children int32[B] that were drawn."""
    own = jnp.take_along_axis(jnp.asarray(choices.nodes), node[:, None, None], axis=1)[:, 0]
    return jnp.take_along_axis(own, child[:, None], axis=1)[:, 0]


def sample_choice(
    logits: jax.Array, keys: jax.Array, step: jax.Array, settings: SamplingSettings, tokens: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draws from the allowed tokens int32[B, C], -1 for none.

    Returns (columns int32[B], tokens int32[B], log_probs float32[B]).

    As `sample_token`, but nothing else can be drawn; top-k and top-p do not apply. Log-probs are over the vocabulary.
    """
    scaled = logits / settings.log_prob_temperature
    log_total = jax.nn.logsumexp(scaled, axis=-1)
    allowed = jnp.take_along_axis(scaled, jnp.maximum(tokens, 0), axis=-1)
    candidates = jnp.where(tokens >= 0, allowed, -jnp.inf)
    if settings.temperature > 0:
        step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, step)
        candidates += jax.vmap(lambda key: jax.random.gumbel(key, tokens.shape[1:]))(step_keys)
    column = jnp.argmax(candidates, axis=-1).astype(jnp.int32)
    token, log_prob = (jnp.take_along_axis(array, column[:, None], axis=-1)[:, 0] for array in (tokens, allowed))
    return column, token, log_prob - log_total


def _with_rows(cache: KVCache, change: Callable[[jax.Array], jax.Array]) -> KVCache:
    keys, values = jax.tree.map(change, (cache.keys, cache.values))
    return dataclasses.replace(cache, keys=keys, values=values)


def decode(
    network: Network,
    cache: KVCache,
    hidden: jax.Array,
    keys: jax.Array,
    settings: SamplingSettings,
    max_new_tokens: int,
    choices: Choices | None = None,
) -> Generation:
    """Returns a `Generation` that continues a prefilled cache.

    It is pure and traceable, for use inside a larger program.

    Args:
        network: the decoder, see `Decoder.network`.
        cache: from `prefill`, with room for `max_new_tokens` columns.
        hidden: [B, D], final hidden state at each row's last token.
        keys: PRNG keys [B].
        settings: how tokens are drawn.
        max_new_tokens: T.
        choices: of each row; a completion is one of them, or the beginning of one that is longer than T.
    """
    batch = hidden.shape[0]
    # XLA drops an axis of one row and then keeps two versions of each array of the cache, so four copies a step.
    single = batch == 1 and not network.config.scan_layers
    if single:
        cache = _with_rows(cache, lambda array: array[0])
    eos = jnp.asarray(settings.eos_tokens, jnp.int32)

    def unfinished(state: tuple[Any, ...]) -> jax.Array:
        step, _, _, finished, *_ = state
        return jnp.asarray((step < max_new_tokens) & ~finished.all())

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        step, cache, hidden, finished, tokens, log_probs, mask, node = state
        logits = model.logits(network.config, network.weights, hidden)
        if choices is None:
            token, log_prob = sample_token(logits, keys, step, settings)
        else:
            column, token, log_prob = sample_choice(logits, keys, step, settings, children(choices, node))
            node = descend(choices, node, column)
        alive = ~finished
        token = jnp.where(alive, token, settings.pad_token)
        tokens = jax.lax.dynamic_update_slice(tokens, token[:, None], (0, step))
        log_probs = jax.lax.dynamic_update_slice(log_probs, jnp.where(alive, log_prob, 0.0)[:, None], (0, step))
        mask = jax.lax.dynamic_update_slice(mask, alive[:, None], (0, step))
        # The end token is read too, so that the cache holds the whole completion and can be appended to.
        new_hidden, cache = model.extend(network, cache, token[:, None], mask=alive[:, None])
        hidden = jnp.where(alive[:, None], new_hidden[:, 0], hidden)
        if settings.eos_tokens:
            finished = finished | (token[:, None] == eos).any(-1)
        return step + 1, cache, hidden, finished, tokens, log_probs, mask, node

    state = (
        jnp.asarray(0, jnp.int32),
        cache,
        hidden,
        jnp.zeros((batch,), bool),
        jnp.full((batch, max_new_tokens), settings.pad_token, jnp.int32),
        jnp.zeros((batch, max_new_tokens), jnp.float32),
        jnp.zeros((batch, max_new_tokens), bool),
        None if choices is None else jnp.zeros((batch,), jnp.int32),
    )
    step, cache, hidden, finished, tokens, log_probs, mask, _ = jax.lax.while_loop(unfinished, body, state)
    if single:
        cache = _with_rows(cache, lambda array: array[None])
    return Generation(tokens, log_probs, mask, mask.sum(1, dtype=jnp.int32), finished, step, hidden, cache)


UNROLLED_BACKENDS = ("cpu", "gpu")
"""Backends on which sampling runs the layers one by one even if training scans them.

XLA's loop over layers copies each layer's weights out of the stack before it uses them, in every step, and writing one
token costs hardly more than reading the weights once: on a CPU the copy is most of the time. A TPU's loop reads them
within the products."""
LAYOUT_SHARE = 6
"""The second layout, in which the layers are apart, takes at most one part in so many of a device's memory."""


def sampling_config(decoder: Decoder) -> DecoderConfig:
    """Returns the decoder's config for sampling on the present backend.

    It is the same in all processes.
    """
    leaves = jax.tree.leaves(nnx.state(decoder))
    size = sum(math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves)
    memory = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")  # none on a CPU
    unrolled = jax.default_backend() in UNROLLED_BACKENDS and (memory is None or LAYOUT_SHARE * size <= memory)
    return dataclasses.replace(decoder.config, scan_layers=decoder.config.scan_layers and not unrolled)


@functools.partial(jax.jit, static_argnames=("graphdef", "config", "settings", "max_new_tokens", "capacity"))
def _generate(
    graphdef: nnx.GraphDef[Decoder],
    state: State,
    keys: jax.Array,
    inputs: dict[str, Any],
    *,
    config: DecoderConfig,
    settings: SamplingSettings,
    max_new_tokens: int,
    capacity: int,
) -> Generation:
    network = nnx.merge(graphdef, state).network(config.scan_layers)
    hidden, cache = model.prefill(network, **inputs, capacity=capacity)
    return decode(network, cache, hidden[:, -1], keys, settings, max_new_tokens)


def generate(
    decoder: Decoder,
    keys: jax.Array,
    settings: SamplingSettings,
    *,
    tokens: jax.Array | np.ndarray | None = None,
    embeddings: jax.Array | None = None,
    mask: jax.Array | np.ndarray | None = None,
    positions: jax.Array | np.ndarray | None = None,
    max_new_tokens: int,
    extra_capacity: int = 0,
) -> Generation:
    """Returns completions of left-padded prompts.

    It is compiled once per shape and settings, shared by equal configs.

    Nothing is kept for the next call; `prompt_cache.PromptCache` does that.

    Args:
        decoder: the model, with or without adapters (they are used without dropout).
        keys: PRNG keys [B], one per row.
        settings: how tokens are drawn.
        tokens: int32[B, L]; or `embeddings` [B, L, D], e.g. with soft tokens written in. The last column is real.
        embeddings: see `tokens`.
        mask: bool[B, L], True at real positions; None means all.
        positions: int32[B, L], or int32[3, B, L] for a decoder with `mrope_sections` (`qwen_vl.multimodal_positions`);
            None counts the real positions. Completions go on after the largest of each row.
        max_new_tokens: T, at least 1.
        extra_capacity: columns left free in the cache, for `append`.

    Raises:
        InvalidInputError: when shapes do not fit, or prompt, completion and extra columns exceed `max_length`.
    """
    given = tokens if tokens is not None else embeddings
    if given is None or (tokens is not None and embeddings is not None):
        raise InvalidInputError("generate: expected exactly one of tokens and embeddings, got both or neither")
    batch, length = given.shape[:2]
    total = length + max_new_tokens + extra_capacity
    if max_new_tokens < 1:
        raise InvalidInputError(f"generate: max_new_tokens: expected >= 1, got {max_new_tokens}")
    if total > decoder.config.max_length:
        raise InvalidInputError(
            f"generate: expected prompt + max_new_tokens + extra_capacity <= max_length={decoder.config.max_length}, "
            f"got {length} + {max_new_tokens} + {extra_capacity} = {total}"
        )
    if keys.shape[:1] != (batch,):
        raise InvalidInputError(f"generate: keys: expected one per row ({batch}), got shape {keys.shape}")
    mask = np.ones((batch, length), bool) if mask is None else mask
    if mask.shape != (batch, length):
        raise InvalidInputError(f"generate: mask: expected shape {(batch, length)}, got {mask.shape}")
    if positions is not None and positions.shape[-2:] != (batch, length):
        raise InvalidInputError(f"generate: positions: expected [..., {batch}, {length}], got {positions.shape}")
    graphdef, state = nnx.split(decoder)
    inputs = {"tokens": tokens, "embeddings": embeddings, "mask": mask, "positions": positions}
    generation: Generation = _generate(
        graphdef, state, keys, inputs, config=sampling_config(decoder), settings=settings,
        max_new_tokens=max_new_tokens, capacity=total,
    )  # fmt: skip
    return generation


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _append(
    graphdef: nnx.GraphDef[Decoder], state: State, cache: KVCache, inputs: dict[str, Any]
) -> tuple[jax.Array, KVCache]:
    scan_layers = not isinstance(cache.keys, tuple)  # the layout in which the cache was written, perhaps by `generate`
    return model.extend(nnx.merge(graphdef, state).network(scan_layers), cache, **inputs)


def append(
    decoder: Decoder,
    cache: KVCache,
    *,
    tokens: jax.Array | np.ndarray | None = None,
    embeddings: jax.Array | None = None,
    mask: jax.Array | np.ndarray | None = None,
) -> tuple[jax.Array, KVCache]:
    """Returns (hidden [B, S, D], cache) after S further positions.

    They follow each row's own last token.

    Soft-Mem reads its N placeholder positions this way: `tokens` is int32[B, N] of the placeholder token. The cache
    must have S free columns (`extra_capacity` of `generate`). Where `mask` bool[B, S] is False, a column is written
    that nobody attends to and that does not count as a position.
    """
    graphdef, state = nnx.split(decoder)
    inputs = {"tokens": tokens, "embeddings": embeddings, "mask": mask}
    extended: tuple[jax.Array, KVCache] = _append(graphdef, state, cache, inputs)
    return extended
