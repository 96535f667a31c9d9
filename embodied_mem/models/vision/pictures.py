"""Pictures in the prompts of a decoder with a vision tower: all of one size, the same number to every row.

    reader = PictureReader(decoder.config.vision, tokenizer, count=4, side=224)
    reader.prompts(["seen: a desk\\n>"], [(png,)])      # placeholders before the last line
    pixels = reader.pixels((png,))                       # uint8[4, 224, 224, 3], those that are missing black
    embeddings, positions = embed_seen(decoder, tokens, mask, mask, pixels[None])
    decoder(embeddings=embeddings, mask=mask, positions=positions)

One size and number make one compiled program per length. `qwen_vl.embed_images` is for pictures of any sizes; on those
of one size both give the same numbers (a test says so).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.language import images
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.config import VisionConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.soft_mem import write_soft_tokens
from embodied_mem.models.vision.qwen_vl_vision import resized, see, widen

Encode = Callable[[list[str]], list[list[int]]]


def place_seen(
    embeddings: jax.Array, placeholders: jax.Array, mask: jax.Array, seen: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Write embeddings of pictures over their placeholders.

    Returns ([B, L, W], rotary positions int32[3, B, L]).

    A text token has one position; the T embeddings of a picture share one in time and have their row and column in
    the other two; what follows goes on after the largest. Padding counts as nothing.

    Args:
        embeddings: [B, L, D] of the text.
        placeholders: bool[B, L]; T for each picture of a row, pictures beyond these are read by nobody.
        mask: bool[B, L], real positions.
        seen: [B, K, T, W], see `qwen_vl_vision.see`; T is a square, W is D or more (`Decoder.__call__`).

    Source: Qwen2-VL (Wang et al. 2024), section 2.1.
    """
    batch, count, size, width = seen.shape
    side = math.isqrt(size)
    within = (jnp.cumsum(placeholders, axis=1, dtype=jnp.int32) - 1) % size
    advance = jnp.where(placeholders, jnp.where(within == size - 1, side, 0), mask).astype(jnp.int32)
    time = jnp.cumsum(advance, axis=1) - advance
    row, column = (time + jnp.where(placeholders, part, 0) for part in (within // side, within % side))
    written = write_soft_tokens(widen(embeddings, width), placeholders, seen.reshape(batch, count * size, width))
    return written, jnp.stack([time, row, column])


def embed_seen(
    decoder: Decoder,
    tokens: jax.Array,
    mask: jax.Array,
    told: jax.Array,
    pictures: jax.Array | None,
    soft: tuple[jax.Array, jax.Array] | None = None,
) -> tuple[jax.Array, jax.Array | None]:
    """Embed texts, with pictures or without.

    Args:
        decoder: with a vision tower, if there are pictures.
        tokens: int32[B, L].
        mask: bool[B, L], real positions.
        told: bool[B, L], those of the prompt: a placeholder that a model wrote itself is a token as any other.
        pictures: uint8[B, K, side, side, 3], or None.
        soft: placeholders bool[B, L] and soft tokens [B, N, D] for `write_soft_tokens`, or None.

    Returns:
        Embeddings [B, L, W], rotary positions or None to count real ones.
    """
    embeddings = decoder.embed(tokens) if soft is None else write_soft_tokens(decoder.embed(tokens), *soft)
    if pictures is None:
        return embeddings, None
    placeholders = (tokens == decoder.vision.config.image_token) & mask & told
    return place_seen(embeddings, placeholders, mask, see(decoder.vision, pictures))


def picture_signs(vision: VisionConfig, tokenizer: Tokenizer) -> tuple[int, int, int]:
    """Returns the tokens for a picture's begin, an embedding and its end.

    The second holds the place of an embedding.

    Raises:
        InvalidInputError: the vocabulary has none, or others than the model.
    """
    begin, one, end = (tokenizer.id_of(f"<|{sign}|>") for sign in ("vision_start", "image_pad", "vision_end"))
    if one != vision.image_token:
        raise InvalidInputError(
            f"tokenizer: expected <|image_pad|> to be the model's image_token {vision.image_token}, got {one}"
        )
    return begin, one, end


class PictureReader:
    """Turns pictures into tokens and pixels; for a model that does not see, into nothing.

    Args:
        vision: of the tower; None for a model without.
        tokenizer: with the signs of the family.
        count: pictures that are read of a row, the last ones; 0 for none.
        side: that every picture is scaled to, in pixels; a multiple of patch_size * merge_size.

    Raises:
        InvalidInputError: another side, or the signs are not in the vocabulary or not those of the model.

    Attributes:
        count: pictures per row; 0 for a model that does not see.
    """

    def __init__(self, vision: VisionConfig | None, tokenizer: Tokenizer, count: int = 0, side: int = 0):
        self._side, self.count = side, 0 if vision is None else count
        self._tokens: list[int] = []
        if vision is None or not self.count:
            return
        unit = vision.patch_size * vision.merge_size
        if side < unit or side % unit:
            raise InvalidInputError(f"model.image_side: expected a multiple of {unit} (one embedding), got {side}")
        begin, self._placeholder, end = picture_signs(vision, tokenizer)
        self._tokens = [begin, *[self._placeholder] * (side // unit) ** 2, end]

    def tokens(self, pictures: Sequence[bytes]) -> list[int]:
        """Token ids of a row's pictures."""
        return self._tokens * min(len(pictures), self.count)

    def pixels(self, pictures: Sequence[bytes]) -> np.ndarray | None:
        """uint8[count, side, side, 3] of a row's pictures; None for none."""
        if not pictures or not self.count:
            return None
        rows = np.zeros((self.count, self._side, self._side, 3), np.uint8)
        for number, data in enumerate(pictures[-self.count :]):
            rows[number] = _scaled(data, self._side)
        return rows

    def prompts(self, encode: Encode, texts: Sequence[str], pictures: Sequence[Sequence[bytes]]) -> list[list[int]]:
        """Return token ids of prompts with their pictures.

        The pictures stand behind all that is told, before the last line, which asks.
        """
        signs = [self.tokens(row) for row in pictures]
        if not any(signs):
            return encode(list(texts))
        split = [text.rfind("\n") for text in texts]
        heads = encode([text[:at] if own else text for text, at, own in zip(texts, split, signs)])
        tails = encode([text[at:] for text, at in zip(texts, split)])
        return [[*head, *own, *tail] if own else head for head, own, tail in zip(heads, signs, tails)]

    def check(self, prompts: Sequence[Sequence[int]], pictures: Sequence[Sequence[bytes]]) -> None:
        """Raises InvalidInputError if cutting a prompt removed a part of a picture."""
        for row, (ids, own) in enumerate(zip(prompts, pictures)):
            expected = self.tokens(own).count(self._placeholder) if self.count else 0
            if expected and (got := list(ids).count(self._placeholder)) != expected:
                raise InvalidInputError(
                    f"prompts[{row}]: expected room for {expected} tokens of pictures, got {got}; make pictures fewer "
                    "or smaller (model.images, model.image_side), or give longer length_buckets"
                )


def stacked(values: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Stacks arrays of one shape, with zeros for a row without.

    None where no row has any.
    """
    some = next((value for value in values if value is not None), None)
    return None if some is None else np.stack([np.zeros_like(some) if one is None else one for one in values])


@functools.lru_cache(maxsize=512)
def _scaled(data: bytes, side: int) -> np.ndarray:
    return resized(images.pixels(data), side, side)
