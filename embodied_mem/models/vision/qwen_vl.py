"""Qwen2.5-VL and Qwen3-VL from a folder: a vision tower, and a decoder that reads images at placeholders of the text.

    decoder = load_qwen_vl("Qwen2.5-VL-7B-Instruct", shardings=placement.shardings)
    patches, grids = patches_of(decoder.config.vision, [image])          # `qwen_vl_vision`
    embeddings, positions = embed_images(decoder, tokens, mask, patches, grids)     # one placeholder per embedding
    hidden = decoder(embeddings=embeddings, mask=mask, positions=positions)

Text tokens have one rotary position; the embeddings of an image share one in time and have their row and column in the
other two; what follows goes on after the largest. Images only: videos are refused.

Source: Qwen2-VL (Wang et al. 2024), section 2.1, Qwen2.5-VL and Qwen3-VL (Bai et al. 2025); held against transformers
by a test.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.assembly import Index, Shardings, StoredTensor, assemble, fill
from embodied_mem.models.config import DecoderConfig, VisionConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import HFFolder, config_from_hf, described_by, read_described
from embodied_mem.models.vision.qwen_vl_vision import Array, Grid, VisionTower, arrange, vision_axes, widen

_TOP_NAMES = {
    "patch": "patch_embed.proj.weight", "merger_norm": "merger.ln_q.weight", "merger_in": "merger.mlp.0.weight",
    "merger_in_bias": "merger.mlp.0.bias", "merger_out": "merger.mlp.2.weight",
    "merger_out_bias": "merger.mlp.2.bias",
}  # fmt: skip
_BLOCK_NAMES = {
    "attention_norm": "norm1.weight", "qkv": "attn.qkv.weight", "qkv_bias": "attn.qkv.bias",
    "output": "attn.proj.weight", "output_bias": "attn.proj.bias", "mlp_norm": "norm2.weight",
    "gate": "mlp.gate_proj.weight", "gate_bias": "mlp.gate_proj.bias", "up": "mlp.up_proj.weight",
    "up_bias": "mlp.up_proj.bias", "down": "mlp.down_proj.weight", "down_bias": "mlp.down_proj.bias",
}  # fmt: skip
_THIRD_NAMES = {
    "patch_bias": "patch_embed.proj.bias", "positions": "pos_embed.weight", "merger_norm": "merger.norm.weight",
    "merger_norm_bias": "merger.norm.bias", "merger_in": "merger.linear_fc1.weight",
    "merger_in_bias": "merger.linear_fc1.bias", "merger_out": "merger.linear_fc2.weight",
    "merger_out_bias": "merger.linear_fc2.bias", "attention_norm_bias": "norm1.bias", "mlp_norm_bias": "norm2.bias",
    "up": "mlp.linear_fc1.weight", "up_bias": "mlp.linear_fc1.bias", "down": "mlp.linear_fc2.weight",
    "down_bias": "mlp.linear_fc2.bias",
}  # fmt: skip
"""Those that Qwen3-VL has beside the others, or instead."""
_VISION_FIELDS = {
    "num_layers": "depth", "width": "hidden_size", "num_heads": "num_heads", "mlp_width": "intermediate_size",
    "out_width": "out_hidden_size", "patch_size": "patch_size", "temporal_patch_size": "temporal_patch_size",
    "merge_size": "spatial_merge_size", "window_size": "window_size", "full_layers": "fullatt_block_indexes",
    "num_positions": "num_position_embeddings", "deep_layers": "deepstack_visual_indexes",
}  # fmt: skip
SEEING = {"qwen2_5_vl": "qwen2", "qwen3_vl": "qwen3"}
"""Model types that see -> that of their decoder."""
# Published Qwen2.5-VL has the first pair of prefixes (vision, text), Qwen3-VL and transformers 5 the second.
_PREFIXES = (("visual.", "model."), ("model.visual.", "model.language_model."))


def embed_images(
    decoder: Decoder, tokens: np.ndarray, mask: np.ndarray, patches: np.ndarray, grids: list[Grid]
) -> tuple[jax.Array, np.ndarray]:
    """Embed texts with images at their placeholders.

    Returns ([B, L, W], rotary positions int32[3, B, L]). W is D, or more with `deep_layers`, see `Decoder.__call__`.

    Args:
        decoder: with a vision tower.
        tokens: int32[B, L]; per image, in the order of the rows, as many placeholders as it has embeddings.
        mask: bool[B, L], real tokens.
        patches: packed patches of all images, see `patches_of`.
        grids: their rows and columns of patches.

    Raises:
        InvalidInputError: placeholders and images do not match.
    """
    vision = decoder.vision.config
    windows = arrange(vision, grids)
    if len(patches) != sum(rows * columns for rows, columns in grids):
        raise InvalidInputError(f"patches: expected the {windows.mask.sum()} of the grids, got {len(patches)}")
    merged = [(rows // vision.merge_size, columns // vision.merge_size) for rows, columns in grids]
    positions = image_positions(tokens, mask, vision.image_token, merged)
    return _embedded(decoder, jnp.asarray(tokens), patches[windows.order], *windows[1:]), positions


@nnx.jit
def _embedded(
    decoder: Decoder, tokens: jax.Array, patches: Array, positions: Array, mask: Array, blocks: Array
) -> jax.Array:
    seen = decoder.vision(patches, positions, mask)
    text = widen(decoder.embed(tokens), seen.shape[-1])
    seen = seen.reshape(-1, seen.shape[-1])[blocks].astype(text.dtype)
    here = tokens == decoder.vision.config.image_token
    number = (jnp.cumsum(here.reshape(-1)) - 1).reshape(here.shape)
    return jnp.where(here[..., None], seen.at[number].get(mode="clip"), text)


def image_positions(tokens: np.ndarray, mask: np.ndarray, image_token: int, grids: list[Grid]) -> np.ndarray:
    """Returns rotary positions int32[3, B, L] of texts with images.

    The three are time, row and column; they are 0 at padding.

    Args:
        tokens: int32[B, L].
        mask: bool[B, L].
        image_token: placeholder.
        grids: rows and columns of embeddings of each image, in the order of the rows of the batch.

    Raises:
        InvalidInputError: a run of placeholders is shorter than its image, or images are left over.
    """
    positions = np.zeros((3, *np.shape(tokens)), np.int32)
    left = list(grids)
    for row, (line, real) in enumerate(zip(np.asarray(tokens), np.asarray(mask, bool), strict=True)):
        columns = np.flatnonzero(real)
        at, following = 0, 0
        while at < len(columns):
            if line[columns[at]] != image_token:
                positions[:, row, columns[at]] = following
                at, following = at + 1, following + 1
                continue
            down, across = left.pop(0) if left else (0, 0)
            here = columns[at : at + down * across]
            if not down or len(here) != down * across or (line[here] != image_token).any():
                raise InvalidInputError(
                    f"tokens: row {row}, column {columns[at]}: expected {down} x {across} placeholders of an image, "
                    f"got {int((line[here] == image_token).sum())}, with {len(left)} images after it"
                )
            positions[0, row, here] = following
            positions[1, row, here] = following + np.repeat(np.arange(down), across)
            positions[2, row, here] = following + np.tile(np.arange(across), down)
            at, following = at + down * across, following + max(down, across)
    if left:
        raise InvalidInputError(f"tokens: expected placeholders for {len(grids)} images, {len(left)} have none")
    return positions


def config_from_qwen_vl(described: dict[str, Any], **overrides: Any) -> DecoderConfig:
    """Returns the config of decoder and tower that a config.json describes.

    The tower's is in the decoder's.

    Raises:
        InvalidInputError: another model type, or something in it that tower or decoder do not have.
    """
    kind = described.get("model_type")
    if kind not in SEEING:
        raise InvalidInputError(f"config.json: model_type: expected one of {', '.join(SEEING)}, got {kind!r}")
    text = {**described, **described.get("text_config", {}), "model_type": SEEING[kind]}
    for shared in ("tie_word_embeddings", "torch_dtype", "dtype"):
        text[shared] = described.get(shared, text.get(shared))
    rope = dict(text.pop("rope_scaling", None) or {}) | dict(text.pop("rope_parameters", None) or {})
    sections = rope.pop("mrope_section", None)
    if sections is None:
        raise InvalidInputError("config.json: expected rope_scaling.mrope_section, got none")
    if rope.get("rope_type", rope.get("type")) == "mrope":
        rope = {name: value for name, value in rope.items() if name not in ("type", "rope_type")}
    overrides |= {"mrope_sections": tuple(sections), "mrope_interleaved": bool(rope.pop("mrope_interleaved", False))}
    config = config_from_hf(text | {"rope_parameters": rope}, **overrides)
    seen, is_third = described.get("vision_config", {}), kind == "qwen3_vl"
    activation = "gelu_pytorch_tanh" if is_third else "silu"
    if seen.get("hidden_act", activation) != activation or seen.get("in_channels", seen.get("in_chans", 3)) != 3:
        raise InvalidInputError(f"config.json: vision_config: expected {activation} and 3 channels")
    shape = {ours: seen[theirs] for ours, theirs in _VISION_FIELDS.items() if theirs in seen}
    shape |= {name: tuple(shape[name]) for name in ("full_layers", "deep_layers") if name in shape}
    own: dict[str, Any] = {"out_width": config.width, "dtype": config.dtype, "param_dtype": config.param_dtype}
    own |= {"window_size": 0, "full_layers": ()} if is_third else {}
    if "image_token_id" in described:
        own["image_token"] = described["image_token_id"]
    return dataclasses.replace(config, vision=VisionConfig(**(own | shape)))


class _Flat:
    """The patch projection, stored as the weights of a convolution, as a matrix."""

    def __init__(self, stored: StoredTensor):
        self.where, self._stored, self._inner = stored.where, stored, tuple(stored.shape[1:])
        self.shape = (stored.shape[0], int(np.prod(self._inner)))

    def read(self, index: Index) -> np.ndarray:
        rows, columns = index
        whole = self._stored.read((rows, *(slice(0, size) for size in self._inner)))
        return whole.reshape(whole.shape[0], -1)[:, columns]


def load_qwen_vl(folder: str | os.PathLike[str], *, shardings: Shardings | None = None, **overrides: Any) -> Decoder:
    """Returns a decoder with its vision tower, from a Hugging Face folder.

    Arguments and errors are those of `load_hf`.
    """
    folder = pathlib.Path(folder)
    described = read_described(folder)
    with described_by(folder / "config.json"):
        config = config_from_qwen_vl(described, **overrides)
    vision = config.vision
    assert vision is not None  # which every such folder has
    tower = nnx.eval_shape(lambda: VisionTower(vision, rngs=nnx.Rngs(0)))
    files = HFFolder(folder)
    seeing, reading = next((pair for pair in _PREFIXES if f"{pair[0]}patch_embed.proj.weight" in files), _PREFIXES[0])

    names = _TOP_NAMES | _BLOCK_NAMES | (_THIRD_NAMES if vision.num_positions else {})

    def vision_tensor(name: str, layer: int | None) -> StoredTensor:
        if layer is not None and name.startswith("merger"):
            return files.tensor(f"{seeing}deepstack_merger_list.{layer}.{names[name].removeprefix('merger.')}")
        if layer is not None:
            return files.tensor(f"{seeing}blocks.{layer}.{names[name]}")
        stored = files.tensor(f"{seeing}{names[name]}")
        return _Flat(stored) if name == "patch" else stored

    fill(tower, vision_tensor, vision_axes(vision), shardings)
    blind = dataclasses.replace(config, vision=None)
    text = assemble(blind, functools.partial(files.tensor_of, prefix=reading), shardings)
    files.refuse_left(config.tie_embeddings)
    decoder = nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0)))
    nnx.update(decoder, {**nnx.state(text), "vision": nnx.state(tower)})
    return decoder
