"""One decoder-only transformer in Flax NNX for Llama-, Qwen2- and Qwen3-style shapes, with a functional KV cache.

    decoder = Decoder(preset("tiny"), rngs=nnx.Rngs(0))
    hidden = decoder(tokens, mask=mask)                          # [B, L, D], training
    scores = score_tokens(decoder, hidden, targets)              # log-probs and entropies
    hidden, cache = prefill(decoder.network(), tokens, mask=mask, capacity=512)
    hidden, cache = append(decoder, cache, tokens=next_tokens)   # `sampling`; one token or many, or embeddings

Padding may stand left (prompts of a batch that continue at one column) or right (training), or anywhere: `mask` says
which positions are real, RoPE positions count real positions only, and nothing attends to padding. Parameters of
all layers are stacked on a leading axis, so that they shard, scan and load alike for any depth.

Deviations from the published code of these families: none in float32; below it, RMSNorm multiplies by its scale before
and not after the cast to the compute dtype. `smear` is an addition for models from scratch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models import layers as ops
from embodied_mem.models.config import DecoderConfig, LoraConfig, layer_shapes, parameter_shapes
from embodied_mem.models.kv_cache import KVCache, grow
from embodied_mem.models.vision.qwen_vl_vision import VisionTower

State = nnx.State[Any, Any]
Weights = dict[str, Any]
"""{"embedding": [V, D], "smear": [K, D], "layers": dict of stacked arrays | tuple of dicts, "final_norm": [D], ...};
`smear` is [D] for K = 1."""


@functools.partial(jax.tree_util.register_dataclass, data_fields=("weights",), meta_fields=("config", "lora"))
@dataclasses.dataclass(frozen=True)
class Network:
    """A decoder as the pure functions of this module take it.

    Attributes:
        config: its shape; with `scan_layers` the weights of the layers are stacked.
        lora: of its adapters, or None.
        weights: in the compute dtype.
    """

    config: DecoderConfig
    lora: LoraConfig | None
    weights: Weights


class Layers(nnx.Module):
    """Parameters of all layers, each stacked to [num_layers, ...]; names and axes in `config.layer_shapes`."""

    def __init__(self, config: DecoderConfig, *, rngs: nnx.Rngs):
        dtype = jnp.dtype(config.param_dtype)
        for name, (shape, _) in layer_shapes(config).items():
            full = (config.num_layers, *shape)
            if name.endswith("_norm"):
                value = jnp.ones(full, dtype)
            elif name.endswith("_bias"):
                value = jnp.zeros(full, dtype)
            else:
                # 0.02 as GPT-2; what writes to the residual stream is divided by sqrt(2 layers), so that depth
                # does not change the size of the stream at the start.
                std = 0.02 / (2 * config.num_layers) ** 0.5 if name in ("output", "down") else config.width**-0.5
                value = (jax.random.normal(rngs.params(), full, jnp.float32) * std).astype(dtype)
            setattr(self, name, nnx.Param(value))

    def arrays(self) -> dict[str, jax.Array]:
        """Returns every stacked array by its name, adapters included."""
        return {name: value[...] for name, value in vars(self).items() if isinstance(value, nnx.Variable)}


class Decoder(nnx.Module):
    """A decoder; its parameters are `embedding`, `layers.*`, `final_norm`, untied `head`, and `smear` and `vision.*` if
    configured."""

    def __init__(self, config: DecoderConfig, *, rngs: nnx.Rngs):
        dtype = jnp.dtype(config.param_dtype)
        self.config = config
        self.lora: LoraConfig | None = None
        shape = (config.vocab_size, config.width)
        self.embedding = nnx.Param((jax.random.normal(rngs.params(), shape, jnp.float32) * 0.02).astype(dtype))
        if config.smear:
            # Each position before starts with some dimensions of its own, so that attention can use it from the start.
            part = jnp.arange(config.width) // (config.width // (config.smear + 3))
            factors = (part == jnp.arange(config.smear)[:, None]).astype(dtype)
            self.smear = nnx.Param(factors.reshape(parameter_shapes(config)[("smear",)]))
        self.layers = Layers(config, rngs=rngs)
        self.final_norm = nnx.Param(jnp.ones((config.width,), dtype))
        if not config.tie_embeddings:
            head = jax.random.normal(rngs.params(), (config.width, config.vocab_size), jnp.float32) * 0.02
            self.head = nnx.Param(head.astype(dtype))
        if config.vision is not None:
            self.vision = VisionTower(config.vision, rngs=rngs)

    def network(self, scan_layers: bool | None = None) -> Network:
        """Returns the decoder for the pure functions of this module.

        None means its own `scan_layers`.
        """
        scan_layers = self.config.scan_layers if scan_layers is None else scan_layers
        config = dataclasses.replace(self.config, scan_layers=scan_layers)
        return Network(config, self.lora, self.weights(scan_layers))

    def weights(self, scan_layers: bool) -> Weights:
        """Returns the parameters in the compute dtype, layers stacked or apart."""
        dtype = jnp.dtype(self.config.dtype)
        stacked = {name: array.astype(dtype) for name, array in self.layers.arrays().items()}
        layers: dict[str, jax.Array] | tuple[dict[str, jax.Array], ...] = stacked
        if not scan_layers:
            # `split` and not indexing: its transpose is one concatenation, not a padded sum per layer.
            ones = [1] * self.config.num_layers
            pieces = {name: jax.lax.split(array, ones) for name, array in stacked.items()}
            layers = tuple(
                {name: piece[i].reshape(piece[i].shape[1:]) for name, piece in pieces.items()}
                for i in range(self.config.num_layers)
            )
        tops = ["embedding", "final_norm"]
        tops += ["smear"] if self.config.smear else []
        tops += [] if self.config.tie_embeddings else ["head"]
        return {"layers": layers} | {name: getattr(self, name)[...].astype(dtype) for name in tops}

    def embed(self, tokens: jax.Array) -> jax.Array:
        """Returns embeddings [B, L, D] of tokens int32[B, L].

        The caller writes soft tokens over these.
        """
        return embed(self.config, self.embedding[...].astype(self.config.dtype), tokens)

    def __call__(
        self,
        tokens: jax.Array | None = None,
        *,
        embeddings: jax.Array | None = None,
        mask: jax.Array | None = None,
        positions: jax.Array | None = None,
        dropout_key: jax.Array | None = None,
        remat: bool = False,
        top: int | None = None,
    ) -> jax.Array:
        """Returns final hidden states [B, L, D] of whole sequences.

        They are taken after the last norm.

        Args:
            tokens: int32[B, L]; exactly one of `tokens` and `embeddings` is given.
            embeddings: [B, L, D], or [B, L, (1 + N) D] with what the first N layers add (DeepStack of Qwen3-VL).
            mask: bool[B, L], True at real positions; None means all.
            positions: int32[B, L] for RoPE, or int32[3, B, L] with `mrope_sections`; None counts the real positions.
            dropout_key: turns on the dropout of adapters.
            remat: keep one array per layer and compute the rest again in the backward pass.
            top: only so many layers, the last ones, run; `embeddings` is what `below` gives. None means all.
        """
        network = self.network()
        first = 0 if top is None else self.config.num_layers - top
        if embeddings is None or top is None:
            x, mask, _ = _inputs(network, tokens, embeddings, mask)
        else:
            x, mask = embeddings, jnp.ones(embeddings.shape[:2], bool) if mask is None else mask
        return _run_full(network, x, mask, positions, dropout_key=dropout_key, remat=remat, first=first)[0]

    def below(
        self, embeddings: jax.Array, *, mask: jax.Array, positions: jax.Array | None = None, top: int
    ) -> jax.Array:
        """Return the `embeddings` for a `__call__` with this `top`."""
        network = self.network()
        x, mask, _ = _inputs(network, None, embeddings, mask)
        return _run_full(network, x, mask, positions, last=self.config.num_layers - top)[0]

    def logits(self, hidden: jax.Array) -> jax.Array:
        """Returns next-token logits float32[..., V] of final hidden states [..., D]."""
        return logits(self.config, self.weights_of_head(), hidden)

    def weights_of_head(self) -> Weights:
        """Returns only what `logits` reads, in the compute dtype."""
        name = "embedding" if self.config.tie_embeddings else "head"
        return {name: getattr(self, name)[...].astype(self.config.dtype)}


def embed(config: DecoderConfig, table: jax.Array, tokens: jax.Array) -> jax.Array:
    """Returns rows of the table [V, D] for tokens int32[...].

    Out-of-range tokens are the caller's error.
    """
    table = ops.constrain(table, "tensor")  # whole rows: a lookup in rows split over `fsdp` is one on every device
    return ops.constrain(table.at[tokens].get(mode="clip"), ops.BATCH_AXES)


def logits(config: DecoderConfig, weights: Weights, hidden: jax.Array) -> jax.Array:
    """Returns float32[..., V] logits of hidden [..., D]; accumulated in float32."""
    flat = hidden.reshape(-1, hidden.shape[-1])
    table, axis = (weights["embedding"], 1) if config.tie_embeddings else (weights["head"], 0)
    product: jax.Array = jax.lax.dot_general(
        flat, table, (((1,), (axis,)), ((), ())), preferred_element_type=jnp.float32
    )
    return product.reshape(*hidden.shape[:-1], -1)


def positions_of(mask: jax.Array) -> jax.Array:
    """Returns int32[B, L], the number of real positions before each one.

    Padding repeats its neighbour's number.
    """
    return jnp.maximum(jnp.cumsum(mask.astype(jnp.int32), axis=1) - 1, 0)


def _inputs(
    network: Network,
    tokens: jax.Array | None,
    embeddings: jax.Array | None,
    mask: jax.Array | None,
    last: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Return (embeddings, mask, last embeddings [B, K, D] as they were).

    The embeddings are smeared if that is configured.
    """
    config, weights = network.config, network.weights
    if tokens is not None and embeddings is None:
        if tokens.ndim != 2:
            raise InvalidInputError(f"decoder: expected tokens [B, L], got shape {tokens.shape}")
        x = embed(config, weights["embedding"], tokens)
    elif embeddings is not None and tokens is None:
        depth = 0 if config.vision is None else len(config.vision.deep_layers)
        if embeddings.ndim != 3 or embeddings.shape[-1] not in (config.width, config.width * (1 + depth)):
            raise InvalidInputError(f"decoder: expected embeddings [B, L, {config.width}], got {embeddings.shape}")
        x = embeddings.astype(config.dtype)
    else:
        raise InvalidInputError("decoder: expected exactly one of tokens and embeddings, got both or neither")
    mask = jnp.ones(x.shape[:2], bool) if mask is None else mask.astype(bool)
    if "smear" not in weights:
        return x, mask, None
    none = jnp.zeros((x.shape[0], config.smear, x.shape[2]), x.dtype)
    x, newest = ops.smear(x, weights["smear"], mask, none if last is None else last)
    return x, mask, newest


def _apart(config: DecoderConfig, x: jax.Array) -> tuple[jax.Array, jax.Array | None]:
    """Split the input from what the first layers add.

    The latter is [N, B, L, D] or None.
    """
    if x.shape[-1] == config.width:
        return x, None
    first, *deep = jnp.split(x, x.shape[-1] // config.width, axis=-1)
    return first, jnp.stack(deep)


def _run_full(
    network: Network,
    x: jax.Array,
    mask: jax.Array,
    positions: jax.Array | None,
    *,
    dropout_key: jax.Array | None = None,
    remat: bool = False,
    keep: Callable[[jax.Array, jax.Array, jax.Array], Any] | None = None,
    first: int = 0,
    last: int | None = None,
) -> tuple[jax.Array, Any]:
    """Returns (hidden, results of `keep` on query, keys and values per layer).

    The results are stacked if the layers are, else a list.

    Layers `first` to `last` (excluded) run; with a `last` hidden is their output as it is, without the last norm, but
    with what later layers add.
    """
    config, weights = network.config, network.weights
    chosen = slice(first, last)
    layers = weights["layers"]
    if first or last is not None:
        layers = layers[chosen] if isinstance(layers, tuple) else {name: a[chosen] for name, a in layers.items()}
    rope = ops.rope_tables(config, positions_of(mask) if positions is None else positions)
    x, deep = _apart(config, x)

    def layer(x: jax.Array, layer_weights: Weights, key: jax.Array | None, number: Any) -> tuple[jax.Array, Any]:
        def attend(query: jax.Array, keys: jax.Array, values: jax.Array) -> tuple[jax.Array, object]:
            context = ops.causal_attention(query, keys, values, mask=mask, block=config.attention_block)
            return context, keep(query, keys, values) if keep else None

        x, own = ops.apply_layer(config, layer_weights, x, rope, attend, lora=network.lora, dropout_key=key)
        return ops.add_deep(x, deep, number), own

    if remat:
        layer = jax.checkpoint(layer)
    keys = None if dropout_key is None else jax.random.split(dropout_key, config.num_layers)
    kept: Any
    if config.scan_layers:
        numbers = None if deep is None else jnp.arange(config.num_layers)[chosen]
        per_layer = layers, None if keys is None else keys[chosen], numbers
        x, kept = jax.lax.scan(lambda x, per: layer(x, *per), x, per_layer)
    else:
        kept = []
        for i, layer_weights in enumerate(layers, first):
            x, one = layer(x, layer_weights, None if keys is None else keys[i], i)
            kept.append(one)
    if last is None:
        return ops.rms_norm(x, weights["final_norm"], config.norm_eps), kept
    return (x if deep is None or last >= len(deep) else jnp.concatenate([x, *deep], -1)), kept


@functools.partial(jax.jit, static_argnames=("graphdef", "rows"))
def mean_attention(
    graphdef: Any, state: State, tokens: jax.Array, mask: jax.Array, counts: jax.Array, rows: int
) -> jax.Array:
    """Returns the last positions' mean attention to each position, float32[B, L].

    The mean is over these positions, heads and layers; it sums to 1.

    Args:
        graphdef, state: `nnx.split` of a decoder.
        tokens: int32[B, L], padded on the left.
        mask: bool[B, L].
        counts: int32[B], of last positions, 1 to `rows`.
        rows: the most of them.
    """
    decoder: Decoder = nnx.merge(graphdef, state)
    x, mask, _ = _inputs(decoder.network(), tokens, None, mask)
    kept = _run_full(
        decoder.network(), x, mask, None,
        keep=lambda query, keys, values: ops.attention_weights(query, keys, mask=mask, rows=rows),
    )[1]  # fmt: skip
    weights = (kept if decoder.config.scan_layers else jnp.stack(kept)).mean(0)
    last = jnp.arange(rows) >= rows - counts[:, None]
    mean: jax.Array = (weights * last[..., None]).sum(1) / counts[:, None]
    return mean


def prefill(
    network: Network,
    tokens: jax.Array | None = None,
    *,
    embeddings: jax.Array | None = None,
    mask: jax.Array | None = None,
    positions: jax.Array | None = None,
    capacity: int,
) -> tuple[jax.Array, KVCache]:
    """Returns hidden states [B, L, D] of the prompt and its cache.

    The cache has `capacity` columns, the first ones with the prompt.

    Arguments as in `Decoder.__call__`. With `positions`, what follows goes on after the largest of each row.

    Raises:
        InvalidInputError: when the prompt is longer than the capacity.
    """
    x, mask, last = _inputs(network, tokens, embeddings, mask)
    length = x.shape[1]
    if capacity < length:
        raise InvalidInputError(f"prefill: expected capacity >= prompt length {length}, got {capacity}")
    hidden, kept = _run_full(network, x, mask, positions, keep=lambda query, keys, values: (keys, values))
    keys, values = kept if network.config.scan_layers else zip(*kept, strict=True)
    cache = KVCache(keys, values, mask, _following(mask, positions), last, jnp.asarray(length, jnp.int32))
    return hidden, grow(cache, capacity)


def _following(mask: jax.Array, positions: jax.Array | None) -> jax.Array:
    """Returns int32[B], the position after the largest of each row.

    Without `positions` it is the number of real ones.
    """
    if positions is None:
        return mask.sum(1, dtype=jnp.int32)
    return jnp.where(mask, positions.reshape(-1, *mask.shape).max(0), -1).max(1).astype(jnp.int32) + 1


def extend(
    network: Network,
    cache: KVCache,
    tokens: jax.Array | None = None,
    *,
    embeddings: jax.Array | None = None,
    mask: jax.Array | None = None,
    positions: jax.Array | None = None,
) -> tuple[jax.Array, KVCache]:
    """Returns hidden states and cache after S further positions.

    The hidden states are [B, S, D]; the cache holds the further positions too.

    `mask` bool[B, S] False writes a column that nobody attends to and that does not count as a position. `positions`
    int32[B, S] or int32[3, B, S] count from the first of these columns; what follows goes on after the largest.
    """
    config, weights = network.config, network.weights
    x, mask, last = _inputs(network, tokens, embeddings, mask, cache.last)
    x, deep = _apart(config, x)
    batch, length = x.shape[:2]
    if length > cache.capacity:
        raise InvalidInputError(f"extend: expected at most {cache.capacity} positions (the capacity), got {length}")
    counted = jnp.cumsum(mask.astype(jnp.int32), axis=1) - 1 if positions is None else positions
    rope = ops.rope_tables(config, jnp.maximum(cache.next_position[:, None] + counted, 0))
    valid = jax.lax.dynamic_update_slice(cache.valid, mask, (0, cache.index))
    columns = jnp.arange(cache.capacity)[None, :]
    causal = columns <= cache.index + jnp.arange(length)[:, None]
    allowed = valid[:, None, :] & causal[None]
    new_keys: Any
    new_values: Any

    if config.scan_layers:
        # The loop over layers only reads the cache and collects the new columns, which are written once behind it.
        # A cache that is carried and updated layer by layer is copied whole by XLA, in every layer of every step.
        here = (0, 0, cache.index, 0)
        stacked: tuple[Any, Any] = cache.keys, cache.values

        def step(x: jax.Array, per: tuple[Any, Any, Any, Any]) -> tuple[jax.Array, Any]:
            layer_weights, layer_keys, layer_values, number = per

            def attend(query: jax.Array, keys: jax.Array, values: jax.Array) -> tuple[jax.Array, object]:
                grown_keys = jax.lax.dynamic_update_slice(layer_keys, keys, here)
                grown_values = jax.lax.dynamic_update_slice(layer_values, values, here)
                return ops.cached_attention(query, grown_keys, grown_values, allowed=allowed), (keys, values)

            x, new = ops.apply_layer(config, layer_weights, x, rope, attend, lora=network.lora)
            return ops.add_deep(x, deep, number), new

        numbers = None if deep is None else jnp.arange(config.num_layers)
        x, new = jax.lax.scan(step, x, (weights["layers"], *stacked, numbers))
        new_keys, new_values = (
            jax.lax.dynamic_update_slice(before, columns, (0, *here))
            for before, columns in zip(stacked, new, strict=True)
        )
    else:

        def rows(array: jax.Array) -> jax.Array:
            return array.reshape(batch, *array.shape[-3:])  # `sampling.decode` leaves away the axis of a single row

        def write(array: jax.Array, new: jax.Array) -> jax.Array:
            new = new.reshape(*array.shape[:-2], *new.shape[-2:])
            return jax.lax.dynamic_update_slice(array, new, (*[0] * (array.ndim - 2), cache.index, 0))

        pairs = []
        per_layer = zip(weights["layers"], cache.keys, cache.values, strict=True)
        for number, (layer_weights, old_keys, old_values) in enumerate(per_layer):

            def attend(
                query: jax.Array,
                keys: jax.Array,
                values: jax.Array,
                old: tuple[jax.Array, ...] = (old_keys, old_values),
            ) -> tuple[jax.Array, object]:
                grown = write(old[0], keys), write(old[1], values)
                return ops.cached_attention(query, *map(rows, grown), allowed=allowed), grown

            x, pair = ops.apply_layer(config, layer_weights, x, rope, attend, lora=network.lora)
            x = ops.add_deep(x, deep, number)
            pairs.append(pair)
        new_keys, new_values = zip(*pairs, strict=True)
    hidden = ops.rms_norm(x, weights["final_norm"], config.norm_eps)
    following = cache.next_position + _following(mask, positions)
    return hidden, KVCache(new_keys, new_values, valid, following, last, cache.index + length)


class TokenScores(NamedTuple):
    """Scores of each position's next token for the losses, each float32[B, L]; unused ones cost nothing.

    Attributes:
        log_probs: of the target.
        mean_log_probs: mean over the vocabulary (label smoothing).
        entropy: nats.
        top_log_probs: of the likeliest token; the target is it where `log_probs` reaches this.
    """

    log_probs: jax.Array
    mean_log_probs: jax.Array
    entropy: jax.Array
    top_log_probs: jax.Array


def score_tokens(
    decoder: Decoder,
    hidden: jax.Array,
    targets: jax.Array,
    *,
    temperature: float | jax.Array = 1.0,
    chunk_size: int = 0,
) -> TokenScores:
    """Returns `TokenScores` of targets int32[B, L] at hidden [B, L, D].

    The distribution is scaled by the temperature.

    `targets[b, l]` is the token that follows position l. With `chunk_size` > 0 the logits of that many columns at a
    time exist, and are computed again in the backward pass: memory B x chunk x V instead of B x L x V.
    """
    if targets.shape != hidden.shape[:2]:
        raise InvalidInputError(f"score_tokens: expected targets {hidden.shape[:2]}, got {targets.shape}")
    weights = decoder.weights_of_head()

    def score(hidden: jax.Array, targets: jax.Array) -> TokenScores:
        scaled = logits(decoder.config, weights, hidden) / temperature
        log_total = jax.nn.logsumexp(scaled, axis=-1)
        chosen = jnp.take_along_axis(scaled, targets[..., None], axis=-1)[..., 0] - log_total
        probabilities = jnp.exp(scaled - log_total[..., None])
        entropy = log_total - (probabilities * scaled).sum(-1)
        return TokenScores(chosen, scaled.mean(-1) - log_total, entropy, scaled.max(-1) - log_total)

    batch, length = targets.shape
    if not chunk_size or chunk_size >= length:
        return score(hidden, targets)
    pad = -length % chunk_size
    hidden = jnp.pad(hidden, ((0, 0), (0, pad), (0, 0))).reshape(batch, -1, chunk_size, hidden.shape[-1])
    targets = jnp.pad(targets, ((0, 0), (0, pad))).reshape(batch, -1, chunk_size)
    chunks = (hidden.swapaxes(0, 1), targets.swapaxes(0, 1))
    scores = jax.lax.map(lambda pair: jax.checkpoint(score)(*pair), chunks)
    return TokenScores(*(s.swapaxes(0, 1).reshape(batch, -1)[:, :length] for s in scores))
