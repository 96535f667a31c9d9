"""Small random decoders with a vision tower, a vocabulary with the family's signs, and pictures for them."""

from __future__ import annotations

import functools
import pathlib

import jax
import numpy as np
from flax import nnx

from embodied_mem.language.images import png
from embodied_mem.language.tokenizers import SPECIAL_TOKENS, Tokenizer, train_bpe
from embodied_mem.models.assembly import as_stored
from embodied_mem.models.config import DecoderConfig, VisionConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import SavedArray, config_to_hf, decoder_arrays, write_arrays
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.models.vision.qwen_vl import _BLOCK_NAMES, _THIRD_NAMES, _TOP_NAMES, _VISION_FIELDS

SIGNS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
SIDE, COUNT = 24, 2  # 3 x 3 tokens a picture, in windows that the border cuts
VOCABULARY = 330


@functools.cache
def tokenizer() -> Tokenizer:
    """A byte-level BPE with the signs."""
    return train_bpe(["memory goal room find the mug on desk 1 go to"] * 4, 310, (*SPECIAL_TOKENS, *SIGNS))


def seeing(seed: int, width: int = 48, heads: int = 4, layers: int = 2, third: bool = False) -> Decoder:
    """A Qwen2.5-VL or Qwen3-VL; its tower's parameters are larger than at a usual start, so that pictures matter."""
    image = tokenizer().id_of("<|image_pad|>")
    own = {"num_positions": 9, "deep_layers": (0,), "window_size": 0} if third else {"window_size": 16}
    vision = VisionConfig(
        num_layers=2, width=32, num_heads=2, mlp_width=40, out_width=width, patch_size=4,
        full_layers=() if third else (1,), image_token=image, dtype="float32", param_dtype="float32", **own,
    )  # fmt: skip
    half = width // heads // 2
    config = DecoderConfig(
        vocab_size=VOCABULARY, width=width, num_layers=layers, num_heads=heads, num_kv_heads=2, head_dim=2 * half,
        mlp_width=64, max_length=4096, mrope_sections=(half - 2 * (half // 3), half // 3, half // 3), vision=vision,
        qkv_bias=not third, qk_norm=third, mrope_interleaved=third, tie_embeddings=False,
    )  # fmt: skip
    decoder = Decoder(config, rngs=nnx.Rngs(seed))
    state = nnx.state(decoder)
    nnx.update(decoder, {**state, "vision": jax.tree.map(lambda array: array * 8, state["vision"])})
    return decoder


def reader(decoder: Decoder) -> PictureReader:
    """Of pictures for it."""
    return PictureReader(decoder.config.vision, tokenizer(), COUNT, SIDE)


def picture(seed: int, rows: int = SIDE, columns: int = SIDE) -> bytes:
    """A picture of noise."""
    return png(np.random.default_rng(seed).integers(0, 256, (rows, columns, 3), np.uint8))


BLACK = png(np.zeros((SIDE, SIDE, 3), np.uint8))


def save_seeing(decoder: Decoder, folder: pathlib.Path) -> None:
    """Writes config.json and safetensors in the layout of a published one."""
    vision, third = decoder.config.vision, decoder.config.mrope_interleaved
    prefix, text = ("model.visual.", "model.language_model.") if third else ("visual.", "model.")
    published = _TOP_NAMES | _BLOCK_NAMES | (_THIRD_NAMES if third else {})
    saved, names = decoder_arrays(decoder, text), {}
    for path, leaf in nnx.to_flat_state(nnx.state(decoder.vision)):
        name, array = published[path[-1]], leaf[...]
        if path[0] == "deep":
            name = name.replace("merger", "deepstack_merger_list.{}", 1)
        elif path[0] == "blocks":
            name = f"blocks.{{}}.{name}"
        for layer, part in enumerate(array if len(path) == 2 else [array]):
            names[prefix + name.format(layer)] = (path[-1], part)
    kernel = (-1, 3, vision.temporal_patch_size, vision.patch_size, vision.patch_size)
    for published, (name, array) in names.items():
        stored = as_stored(name, np.asarray(array))
        stored = stored.reshape(kernel) if name == "patch" else stored  # published as a convolution's
        saved[published] = SavedArray(array.nbytes, lambda stored=stored: stored)
    described = config_to_hf(decoder.config) | {
        "model_type": "qwen3_vl" if third else "qwen2_5_vl", "image_token_id": vision.image_token,
        "rope_scaling": {"type": "mrope", "mrope_section": decoder.config.mrope_sections, "mrope_interleaved": third},
        "vision_config": {theirs: getattr(vision, ours) for ours, theirs in _VISION_FIELDS.items()},
    }  # fmt: skip
    write_arrays(saved, described, folder, 1 << 30)
