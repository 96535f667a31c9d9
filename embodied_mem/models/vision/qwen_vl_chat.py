"""Qwen2.5-VL and Qwen3-VL as a `ChatModel`: messages with pictures in, text out.

    model = QwenVLChatModel.from_folder("Qwen2.5-VL-7B-Instruct")
    model.complete([{"role": "user", "content": images.content("What is on the desk?", [pixels])}], max_tokens=64).text

It plans, criticises and summarises wherever a chat model does (`agents.planner_critic.chat`), and its answers are
recorded with pictures as hashes (`RecordedChatModel`). Pictures are parts of messages as data URLs, see
`language.images`; nothing is fetched. Needs the extra `train` and the package `pillow`.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

import numpy as np

from embodied_mem.language.images import pixels
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.models.assembly import Shardings
from embodied_mem.models.chat import FlaxChatModel
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.vision.pictures import picture_signs
from embodied_mem.models.vision.qwen_vl import embed_images, load_qwen_vl
from embodied_mem.models.vision.qwen_vl_vision import Grid, patches_of

_SYSTEM = re.compile(r"<\|im_start\|>system\n(.*?)<\|im_end\|>\n", re.DOTALL)


class _Seen(NamedTuple):
    patches: np.ndarray
    grid: Grid


class QwenVLChatModel(FlaxChatModel):
    """A Qwen2.5-VL or Qwen3-VL that answers messages; otherwise as `FlaxChatModel`.

    Args:
        decoder: with a vision tower.
        tokenizer: its tokenizer. The sentence that its chat template puts first, if it does, is the default of
            `default_system`.
        min_pixels, max_pixels: a picture outside of these limits is scaled; 784 pixels (Qwen3-VL: 1,024) are one token;
            0 for `VisionConfig.pixel_limits`.
        **options: of `FlaxChatModel`.

    Raises:
        InvalidInputError: the vocabulary has no signs for pictures, or others than the model.
    """

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: PretrainedTokenizer,
        *,
        min_pixels: int = 0,
        max_pixels: int = 0,
        **options: Any,
    ):
        options.setdefault("default_system", _default_system(tokenizer))
        self._vision = decoder.vision.config
        options.setdefault("name", "qwen3-vl" if self._vision.num_positions else "qwen2.5-vl")
        super().__init__(decoder, tokenizer.tokenizer, **options)
        self._signs = picture_signs(self._vision, self._tokenizer)
        self._limits = {"min_pixels": min_pixels, "max_pixels": max_pixels}

    @classmethod
    def from_folder(
        cls, folder: str | os.PathLike[str], *, shardings: Shardings | None = None, dtype: str = "", **options: Any
    ) -> QwenVLChatModel:
        """Return the model in a Hugging Face folder.

        Args:
            folder: with config.json, safetensors and tokenizer.json.
            shardings: as `load_hf`.
            dtype: of weights and arithmetic; empty for that of config.json.
            **options: of `QwenVLChatModel`.

        Raises:
            CheckpointError: weights are missing or damaged.
            DataNotFoundError: there is no tokenizer.
            InvalidInputError: another model.
        """
        overrides = {"dtype": dtype, "param_dtype": dtype} if dtype else {}
        decoder = load_qwen_vl(folder, shardings=shardings, **overrides)
        return cls(decoder, PretrainedTokenizer.from_folder(folder), **options)

    def _picture(self, data: bytes) -> tuple[list[int], _Seen]:
        patches, [grid] = patches_of(self._vision, [pixels(data)], **self._limits)
        begin, one, end = self._signs
        return [begin, *[one] * (len(patches) // self._vision.merge_size**2), end], _Seen(patches, grid)

    def _inputs(self, tokens: np.ndarray, mask: np.ndarray, pictures: list[_Seen]) -> dict[str, Any]:
        if not pictures:
            return super()._inputs(tokens, mask, pictures)
        patches = np.concatenate([picture.patches for picture in pictures])
        grids = [picture.grid for picture in pictures]
        embeddings, positions = embed_images(self._decoder, tokens, mask, patches, grids)
        return {"embeddings": embeddings, "mask": mask, "positions": positions}


def _default_system(tokenizer: PretrainedTokenizer) -> str | None:
    """Return the family's default system message, None if its template has none."""
    if tokenizer.chat_template is None:
        return None
    found = _SYSTEM.match(tokenizer.render([{"role": "user", "content": "?"}]))
    return found[1] if found else None
