"""MemGen's weaver and trigger: adapters on an executor that write latent memory for it, and that say when.

    model = Weaving(executor, rngs=nnx.Rngs(0))
    soft, logits = woven(*nnx.split(model), tokens, mask, places, later)      # [B, 8, D] and [B], logits of INVOKE
    save_weaving(path, model)
    model = load_weaving(path, executor)

Both begin as the executor itself, whose own parameters stay as they are. The weaver reads what the executor has read,
then learned queries, one set for the first prompt and one for later steps; the hidden states at the queries become soft
tokens by a linear map. The trigger reads the same and gives the probability of INVOKE at the last token.

Source: MemGen (Zhang et al. 2026), sections 4.2 and 4.3; what differs is in docs/baselines.md.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from embodied_mem.atomic_file import write_bytes
from embodied_mem.errors import CheckpointError
from embodied_mem.models.config import LoraConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import LoraParam, add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig, embedding_std, rows_of, write_soft_tokens
from embodied_mem.parallel.sharding import leaf_path

NUM_QUERIES = 8
"""Soft tokens after the prompt, and after every later step."""


class Weaving(nnx.Module):
    """Weaver and trigger of an executor.

    Attributes:
        weaver: the executor with adapters.
        trigger: the executor with other adapters.
        queries: [2, 8, D], of the prompt and of later steps, at the start like embeddings in size.
        projection: from the weaver's hidden states to soft tokens.
        head: [D], of the trigger; at the start every probability is 0.5.
        bias: [].
    """

    def __init__(self, executor: Decoder, *, rngs: nnx.Rngs, lora: LoraConfig | None = None):
        width, std = executor.config.width, embedding_std(executor.embedding[...])
        self.weaver, self.trigger = (
            add_lora(nnx.merge(*nnx.split(executor)), lora or LoraConfig(), rngs=rngs) for _ in range(2)
        )
        self.queries = nnx.Param(std * jax.random.normal(rngs.params(), (2, NUM_QUERIES, width)))
        settings = SoftMemConfig(NUM_QUERIES, "linear", embedding_std=std)
        self.projection = SoftMem(settings, compiler_width=width, executor_width=width, rngs=rngs)
        self.head = nnx.Param(jnp.zeros((width,)))
        self.bias = nnx.Param(jnp.zeros(()))

    def weave(
        self,
        tokens: jax.Array,
        mask: jax.Array,
        places: jax.Array,
        later: jax.Array,
        dropout_key: jax.Array | None = None,
    ) -> jax.Array:
        """Returns soft tokens float32[B, 8, D].

        Args:
            tokens: int32[B, L].
            mask: bool[B, L], real positions.
            places: bool[B, L], the 8 positions of each row at which the queries stand; nothing behind them is read.
            later: bool[B], whether it is a later step, and not the first.
            dropout_key: turns on the dropout of the adapters.
        """
        queries = self.queries[...][later.astype(jnp.int32)]
        embeddings = write_soft_tokens(self.weaver.embed(tokens), places, queries)
        hidden = self.weaver(embeddings=embeddings, mask=mask, dropout_key=dropout_key)
        return self.projection(rows_of(hidden, places, NUM_QUERIES)).mu

    def decide(self, tokens: jax.Array, mask: jax.Array, last: int | jax.Array) -> jax.Array:
        """Return logits of INVOKE float32[B] behind the tokens at `last`.

        `last` is int32[B] or one position for all.
        """
        hidden = self.trigger(tokens, mask=mask)
        at = jnp.broadcast_to(jnp.asarray(last), tokens.shape[:1])
        hidden = jnp.take_along_axis(hidden, at[:, None, None], axis=1)[:, 0].astype(jnp.float32)
        return hidden @ self.head[...] + self.bias[...]


@functools.partial(jax.jit, static_argnames=("graphdef",))
def woven(
    graphdef: nnx.GraphDef[Weaving], state: Any, tokens: jax.Array, mask: jax.Array, places: jax.Array, later: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return (soft tokens [B, 8, D], logits of INVOKE [B]).

    They are of left-padded rows int32[B, L] that end with 8 places.
    """
    model = nnx.merge(graphdef, state)
    return model.weave(tokens, mask, places, later), model.decide(tokens, mask, tokens.shape[1] - NUM_QUERIES - 1)


def weaver_only(path: tuple[Any, ...], value: Any) -> bool:
    """Return the filter of what is trained of the weaver."""
    return path[0] in ("queries", "projection") or (path[0] == "weaver" and isinstance(value, LoraParam))


def trigger_only(path: tuple[Any, ...], value: Any) -> bool:
    """Return the filter of what is trained of the trigger."""
    return path[0] in ("head", "bias") or (path[0] == "trigger" and isinstance(value, LoraParam))


def _trained(model: Weaving) -> tuple[dict[str, jax.Array], Any]:
    """(arrays by name, structure) of what is not the executor's."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(nnx.state(model, nnx.Any(weaver_only, trigger_only)))
    return {".".join(leaf_path(path)): leaf for path, leaf in leaves}, structure


def save_weaving(path: str | os.PathLike[str], model: Weaving) -> None:
    """Write adapters, queries, projection and head.

    The executor's parameters are not among them.
    """
    from safetensors.flax import save

    write_bytes(path, save(_trained(model)[0]))


def load_weaving(path: str | os.PathLike[str], executor: Decoder) -> Weaving:
    """Return the model that `save_weaving` wrote, on its executor.

    `executor` is the one that it was trained with.

    Raises:
        CheckpointError: the file is damaged, or of an executor of another shape.
    """
    from safetensors import SafetensorError
    from safetensors.flax import load_file

    model = Weaving(executor, rngs=nnx.Rngs(0))
    own, structure = _trained(model)
    try:
        stored = load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path}: expected a safetensors file of a weaver: {error}") from error
    shapes = [{name: array.shape for name, array in arrays.items()} for arrays in (own, stored)]
    if shapes[0] != shapes[1]:
        differs = min(name for name in {**own, **stored} if shapes[0].get(name) != shapes[1].get(name))
        raise CheckpointError(
            f"{path}: {differs}: expected {shapes[0].get(differs)}, got {shapes[1].get(differs)}; was it trained with "
            "this executor?"
        )
    nnx.update(model, jax.tree.unflatten(structure, [stored[name] for name in own]))
    return model
