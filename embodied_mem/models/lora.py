"""Low-rank adapters on a decoder's projections: added as parameters of their own type, and merged.

    add_lora(decoder, LoraConfig(), rngs=nnx.Rngs(1))          # in place; the output does not change
    optimizer = nnx.Optimizer(decoder, tx, wrt=LoraParam)      # the base stays frozen
    save_peft(decoder, "adapter")                              # `formats.peft`
    merge_lora(decoder)                                        # base + alpha/r A B, adapters removed

`LoraParam` is no subclass of `nnx.Param`: filtering for `nnx.Param` gives the base and for `LoraParam` the adapters.
Both are in `nnx.state(decoder)`, under ("layers", "query_lora_a") and so on.

Source: LoRA (Hu et al. 2021), with the sizes of MemCompiler C.3.1. As there, A is random and B zero at the start.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import LoraConfig, lora_shapes
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.vision.qwen_vl_vision import VisionTower, adapter_shapes


class LoraParam(nnx.Variable[jax.Array]):
    """A parameter of an adapter."""


def add_lora(decoder: Decoder, lora: LoraConfig, *, rngs: nnx.Rngs) -> Decoder:
    """Adds adapters to the decoder and returns it.

    It computes what it computed before until they are trained.

    Args:
        decoder: changed in place.
        lora: rank, scale, dropout and targets.
        rngs: its `params` stream draws A, normal with standard deviation 1/sqrt(width); B is zero.

    Raises:
        InvalidInputError: when there are adapters already.
    """
    if decoder.lora is not None:
        raise InvalidInputError(
            "add_lora: expected a decoder without adapters, got one that has them; merge_lora first"
        )
    config = decoder.config
    for target in lora.targets:
        for name, (shape, _) in lora_shapes(config, target, lora.rank).items():
            full = (config.num_layers, *shape)  # float32 whatever the base has: they are trained
            if name.endswith("_a"):
                value = jax.random.normal(rngs.params(), full, jnp.float32) * config.width**-0.5
            else:
                value = jnp.zeros(full, jnp.float32)
            setattr(decoder.layers, name, LoraParam(value))
    decoder.lora = lora
    return decoder


def add_tower_lora(tower: VisionTower, lora: LoraConfig, *, rngs: nnx.Rngs) -> VisionTower:
    """Adds adapters to the tower's queries, keys and values and returns it.

    The tower is changed in place; `lora.targets` is the decoder's. Otherwise as `add_lora`, without dropout.
    """
    if tower.lora is not None:
        raise InvalidInputError("add_tower_lora: expected a vision tower without adapters, got one that has them")
    for name, (shape, _) in adapter_shapes(tower.config, lora.rank).items():
        full = (tower.config.num_layers, *shape)
        drawn = jax.random.normal(rngs.params(), full, jnp.float32) * tower.config.width**-0.5
        setattr(tower.blocks, name, LoraParam(drawn if name.endswith("_a") else jnp.zeros(full, jnp.float32)))
    tower.lora = lora
    return tower


def _adapted(decoder: Decoder) -> list[tuple[nnx.Module, str, LoraConfig]]:
    """Return (what holds the arrays, projection, its adapters), the vision tower's last."""
    found: list[tuple[nnx.Module, str, LoraConfig]] = []
    if decoder.lora is not None:
        found += [(decoder.layers, target, decoder.lora) for target in decoder.lora.targets]
    if decoder.config.vision is not None and decoder.vision.lora is not None:
        found.append((decoder.vision.blocks, "qkv", decoder.vision.lora))
    return found


def merge_lora(decoder: Decoder) -> Decoder:
    """Adds the adapters into the decoder's projections, removes them and returns it.

    Those of its vision tower are merged too.

    The sum is made in float32 and rounded to the parameters' dtype. In bfloat16 this loses the small part of a small
    update, so log-probs of a merged decoder are not those of the one that is trained; sample from the unmerged one.
    """
    for layers, target, lora in _adapted(decoder):
        weight = getattr(layers, target)
        a = getattr(layers, f"{target}_lora_a")[...].astype(jnp.float32)
        b = getattr(layers, f"{target}_lora_b")[...].astype(jnp.float32)
        update = jnp.einsum("ldr,lr...->ld...", a, b) * lora.scale
        weight[...] = (weight[...].astype(jnp.float32) + update).astype(weight[...].dtype)
    remove_lora(decoder)
    return decoder


def remove_lora(decoder: Decoder) -> Decoder:
    """Returns the decoder as it was before `add_lora` and `add_tower_lora`."""
    for layers, target, _ in _adapted(decoder):
        delattr(layers, f"{target}_lora_a")
        delattr(layers, f"{target}_lora_b")
    decoder.lora = None
    if decoder.config.vision is not None:
        decoder.vision.lora = None
    return decoder
