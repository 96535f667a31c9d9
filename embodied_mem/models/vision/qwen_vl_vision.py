"""The vision tower of Qwen2.5-VL and Qwen3-VL: patches of images to embeddings of the decoder, one per 2 x 2 patches.

    windows = arrange(config, grids)                        # numpy: which patch stands where
    features = tower(patches[windows.order] ..., ...)       # see `VisionTower.__call__`

An image of h x w patches is cut into windows of 8 x 8. Most layers attend within a window, a few within the image.
Patches are laid out as [images, windows, 64 places] from the start, padded at the borders of the image, so that the
first kind is a batch over windows and the second a batch over images; published code packs them into one sequence with
offsets instead. Each 4 places that follow each other are one 2 x 2 block and become one embedding at the end.

Qwen3-VL's tower (`VisionConfig.num_positions`) has one window per image, LayerNorm for RMSNorm, no gate, and learned
positions beside the rotary ones. What some of its layers give is merged, too, and stands behind the embedding, for the
first layers of the decoder.

Source: Qwen2.5-VL (Bai et al. 2025), section 2.1, Qwen3-VL (Bai et al. 2025), section 2, and DeepStack (Meng et al.
2024); held against transformers by a test.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import LoraConfig, ParameterAxes, Shapes, VisionConfig
from embodied_mem.models.layers import MASKED, rms_norm

_NORM_EPS = 1e-6
_ROPE_THETA = 10_000.0
Array = jax.Array | np.ndarray
Grid = tuple[int, int]  # patches of an image: rows, columns


def block_shapes(config: VisionConfig) -> Shapes:
    """Returns shape and logical axis names of each parameter of one block."""
    d, h, e, m = config.width, config.num_heads, config.head_dim, config.mlp_width
    gate: Shapes = {"gate": ((d, m), ("embed", "mlp")), "gate_bias": ((m,), ("mlp",))}
    return {
        **_norm_shapes(config, "attention_norm", d),
        "qkv": ((d, 3, h, e), ("embed", None, "heads", "head_dim")),
        "qkv_bias": ((3, h, e), (None, "heads", "head_dim")),
        "output": ((h, e, d), ("heads", "head_dim", "embed")),
        "output_bias": ((d,), ("embed",)),
        **_norm_shapes(config, "mlp_norm", d),
        **({} if config.num_positions else gate),
        "up": ((d, m), ("embed", "mlp")),
        "up_bias": ((m,), ("mlp",)),
        "down": ((m, d), ("mlp", "embed")),
        "down_bias": ((d,), ("embed",)),
    }


def _norm_shapes(config: VisionConfig, name: str, width: int) -> Shapes:
    names = (name, f"{name}_bias") if config.num_positions else (name,)
    return {one: ((width,), ("embed",)) for one in names}


def top_shapes(config: VisionConfig) -> Shapes:
    """Returns the same for the parameters outside the blocks."""
    d, count = config.width, config.num_positions
    third: Shapes = {"patch_bias": ((d,), ("embed",)), "positions": ((count, d), (None, "embed"))}
    patch: Shapes = {"patch": ((config.patch_values, d), (None, "embed"))}
    return patch | (third if count else {}) | merger_shapes(config, d)


def merger_shapes(config: VisionConfig, norm_width: int) -> Shapes:
    """Return the same for a merger of blocks."""
    merged = config.width * config.merge_size**2
    return {
        **_norm_shapes(config, "merger_norm", norm_width),
        "merger_in": ((merged, merged), ("embed", "mlp")),
        "merger_in_bias": ((merged,), ("mlp",)),
        "merger_out": ((merged, config.out_width), ("mlp", "embed")),
        "merger_out_bias": ((config.out_width,), ("embed",)),
    }


def adapter_shapes(config: VisionConfig, rank: int) -> Shapes:
    """Returns shape and logical axis names of one block's adapters.

    They are on queries, keys and values, which are one matrix here.
    """
    d, h, e = config.width, config.num_heads, config.head_dim
    return {
        "qkv_lora_a": ((d, rank), ("embed", "lora")),
        "qkv_lora_b": ((rank, 3, h, e), ("lora", None, "heads", "head_dim")),
    }


def vision_axes(config: VisionConfig, lora_rank: int = 0) -> ParameterAxes:
    """Returns the logical axes of all parameters by path in `VisionTower`.

    With `lora_rank` > 0 the adapters of that rank are included.
    """
    axes: ParameterAxes = {(n,): names for n, (_, names) in top_shapes(config).items()}
    blocks = block_shapes(config) | (adapter_shapes(config, lora_rank) if lora_rank else {})
    axes |= {("blocks", n): ("layers", *names) for n, (_, names) in blocks.items()}
    if config.deep_layers:
        axes |= {("deep", n): ("layers", *names) for n, (_, names) in _deep_shapes(config).items()}
    return axes


def _deep_shapes(config: VisionConfig) -> Shapes:
    return merger_shapes(config, config.width * config.merge_size**2)


class Windows(NamedTuple):
    """Where the patches of some images stand; numpy arrays.

    Attributes:
        order: int32[I, W, P], index of the patch in the packed patches of all images; 0 at padding.
        positions: int32[I, W, P, 2], its row and column in its image.
        mask: bool[I, W, P], places that hold a patch.
        blocks: int32[T], for each embedding in the order of the text (images one after the other, row by row), its
            index among the [I, W, P / 4] blocks, flattened.
    """

    order: np.ndarray
    positions: np.ndarray
    mask: np.ndarray
    blocks: np.ndarray


def arrange(config: VisionConfig, grids: list[Grid]) -> Windows:
    """Returns the places of image patches packed block by block.

    The blocks are packed row by row.

    Args:
        config: of the tower.
        grids: rows and columns of patches of each image, multiples of `merge_size`.

    Raises:
        InvalidInputError: no images, or a grid that is no multiple.
    """
    merge = config.merge_size
    per_block = merge * merge
    if not grids or any(rows < 1 or columns < 1 or rows % merge or columns % merge for rows, columns in grids):
        raise InvalidInputError(f"grids: expected patches in multiples of {merge} per side, got {grids}")
    side = config.window_blocks or max(map(max, grids))
    counts = [-(-rows // (merge * side)) * -(-columns // (merge * side)) for rows, columns in grids]
    places = side * side if config.window_blocks else max(rows * columns for rows, columns in grids) // per_block
    shape = (len(grids), max(counts), places, per_block)
    order, mask = np.zeros(shape, np.int32), np.zeros(shape, bool)
    positions = np.zeros((*shape, 2), np.int32)
    within = np.stack(np.divmod(np.arange(per_block), merge), axis=-1)  # row and column inside a block
    blocks, first = [], 0
    for image, (rows, columns) in enumerate(grids):
        down, across = rows // merge, columns // merge
        row, column = np.divmod(np.arange(down * across), across)
        window = row // side * -(-across // side) + column // side
        # Places fill up without gaps in each window, row by row.
        by_window = np.argsort(window, kind="stable")
        starts = np.searchsorted(window[by_window], np.arange(max(counts)))
        place = np.empty_like(window)
        place[by_window] = np.arange(len(window)) - starts[window[by_window]]
        order[image, window, place] = first + np.arange(down * across)[:, None] * per_block + np.arange(per_block)
        positions[image, window, place] = np.stack([row, column], -1)[:, None] * merge + within
        mask[image, window, place] = True
        blocks.append((image * shape[1] + window) * shape[2] + place)
        first += down * across * per_block
    flat = (*shape[:2], shape[2] * per_block)
    return Windows(
        order.reshape(flat), positions.reshape(*flat, 2), mask.reshape(flat), np.concatenate(blocks).astype(np.int32)
    )


class Stacked(nnx.Module):
    """Parameters of `count` equal parts, each stacked to [count, ...]."""

    def __init__(self, config: VisionConfig, shapes: Shapes, count: int, *, rngs: nnx.Rngs):
        for name, (shape, _) in shapes.items():
            setattr(self, name, nnx.Param(_initial(name, (count, *shape), config, rngs)))


class VisionTower(nnx.Module):
    """The tower; its parameters are those of `top_shapes`, `blocks.*`, and `deep.*` with `deep_layers`."""

    def __init__(self, config: VisionConfig, *, rngs: nnx.Rngs):
        self.config = config
        self.lora: LoraConfig | None = None
        for name, (shape, _) in top_shapes(config).items():
            setattr(self, name, nnx.Param(_initial(name, shape, config, rngs)))
        self.blocks = Stacked(config, block_shapes(config), config.num_layers, rngs=rngs)
        if config.deep_layers:
            self.deep = Stacked(config, _deep_shapes(config), len(config.deep_layers), rngs=rngs)

    def __call__(self, patches: Array, positions: Array, mask: Array) -> jax.Array:
        """Embed every block: [I, W, P / 4, (1 + N) out_width].

        The N further parts are of `deep_layers`. Embeddings at padding mean nothing.

        Args:
            patches: [I, W, P, patch_values], normalised pixels; colour, frame, row, column from the outside in.
            positions: int32[I, W, P, 2], see `Windows`.
            mask: bool[I, W, P].
        """
        config, dtype = self.config, jnp.dtype(self.config.dtype)
        top = {name: getattr(self, name)[...].astype(dtype) for name in top_shapes(config)}
        names = [*block_shapes(config), *(adapter_shapes(config, self.lora.rank) if self.lora else ())]
        stacked = {name: getattr(self.blocks, name)[...].astype(dtype) for name in names}
        if self.lora:
            stacked["qkv_lora_b"] = stacked["qkv_lora_b"] * self.lora.scale
        x = patches.astype(dtype) @ top["patch"]
        if config.num_positions:
            x += top["patch_bias"] + _stretch(top["positions"], positions).astype(dtype)
        cos, sin = _rotary(config, positions)
        images, windows, places, width = x.shape
        bias = jnp.where(mask, 0.0, MASKED).astype(jnp.float32)
        deep = []
        for layer in range(config.num_layers):
            weights = {name: array[layer] for name, array in stacked.items()}
            split = (images, 1, windows * places) if layer in config.full_layers else (images, windows, places)
            x = _block(config, weights, x.reshape(*split, width), cos, sin, bias).reshape(images, windows, places, -1)
            if layer in config.deep_layers:
                number = config.deep_layers.index(layer)
                own = {name: getattr(self.deep, name)[number].astype(dtype) for name in _deep_shapes(config)}
                deep.append(_merge(config, own, x))
        return jnp.concatenate([_merge(config, top, x), *deep], axis=-1)


def _norm(weights: dict[str, jax.Array], name: str, x: jax.Array) -> jax.Array:
    """Apply LayerNorm where there is a bias, else RMSNorm."""
    if f"{name}_bias" not in weights:
        return rms_norm(x, weights[name], _NORM_EPS)
    x32 = x.astype(jnp.float32)
    normal = rms_norm(x32 - x32.mean(-1, keepdims=True), weights[name], _NORM_EPS)
    return normal.astype(x.dtype) + weights[f"{name}_bias"]


def _merge(config: VisionConfig, weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Merge blocks of x [I, W, P, D] into embeddings.

    The norm comes before where it is as wide as a patch, behind where it is as wide as a block.
    """
    norm_width = weights["merger_norm"].shape[0]
    x = _norm(weights, "merger_norm", x.reshape(*x.shape[:2], -1, norm_width))
    x = x.reshape(*x.shape[:2], -1, config.width * config.merge_size**2)
    x = jax.nn.gelu(x @ weights["merger_in"] + weights["merger_in_bias"], approximate=False)
    seen: jax.Array = x @ weights["merger_out"] + weights["merger_out_bias"]
    return seen


def _stretch(table: jax.Array, positions: Array) -> jax.Array:
    """Stretch a square of position embeddings over each image, corner to corner."""
    side = math.isqrt(len(table))
    last = jnp.maximum(positions.max((1, 2), keepdims=True), 1)
    at = positions * ((side - 1) / last)
    square = table.astype(jnp.float32).reshape(side, side, -1)
    interpolate = functools.partial(jax.scipy.ndimage.map_coordinates, order=1, mode="nearest")
    values: jax.Array = jax.vmap(
        lambda channel: interpolate(channel, [at[..., 0], at[..., 1]]), in_axes=-1, out_axes=-1
    )(square)
    return values


def _initial(name: str, shape: tuple[int, ...], config: VisionConfig, rngs: nnx.Rngs) -> jax.Array:
    if name.endswith("_norm"):
        return jnp.ones(shape, config.param_dtype)
    if name.endswith("_bias"):
        return jnp.zeros(shape, config.param_dtype)
    return (jax.random.normal(rngs.params(), shape, jnp.float32) * 0.02).astype(config.param_dtype)


def _rotary(config: VisionConfig, positions: Array) -> tuple[jax.Array, jax.Array]:
    """Returns cos and sin, float32[I, W, P, head_dim / 2].

    Angles go by row, then by column.
    """
    quarter = config.head_dim // 4
    frequencies = _ROPE_THETA ** -(jnp.arange(quarter, dtype=jnp.float32) / quarter)
    angles = (positions.astype(jnp.float32)[..., None] * frequencies).reshape(*positions.shape[:-1], 2 * quarter)
    return jnp.cos(angles), jnp.sin(angles)


def _block(
    config: VisionConfig, weights: dict[str, jax.Array], x: jax.Array, cos: jax.Array, sin: jax.Array, bias: jax.Array
) -> jax.Array:
    """Returns one block's output for x [I, G, S, D].

    Attention stays within each group of S places.
    """
    groups = x.shape[:3]
    heads, dim = config.num_heads, config.head_dim
    cos, sin = (table.reshape(*groups, 1, dim // 2) for table in (cos, sin))

    def rotate(part: jax.Array) -> jax.Array:
        first, second = jnp.split(part.astype(jnp.float32), 2, axis=-1)
        return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(part.dtype)

    normed = _norm(weights, "attention_norm", x)
    qkv = (normed @ weights["qkv"].reshape(config.width, -1)).reshape(*groups, 3, heads, dim) + weights["qkv_bias"]
    if "qkv_lora_a" in weights:
        qkv += jnp.einsum("...r,rche->...che", normed @ weights["qkv_lora_a"], weights["qkv_lora_b"])
    query, key, value = rotate(qkv[..., 0, :, :]), rotate(qkv[..., 1, :, :]), qkv[..., 2, :, :]
    scores = jnp.einsum("igshe,igthe->ighst", query, key, preferred_element_type=jnp.float32) / math.sqrt(dim)
    shares = jax.nn.softmax(scores + bias.reshape(*groups[:2], 1, 1, groups[2]), axis=-1).astype(x.dtype)
    context = jnp.einsum("ighst,igthe->igshe", shares, value).reshape(*groups, heads * dim)
    x = x + context @ weights["output"].reshape(heads * dim, -1) + weights["output_bias"]
    normed = _norm(weights, "mlp_norm", x)
    hidden = normed @ weights["up"] + weights["up_bias"]
    if config.num_positions:
        hidden = jax.nn.gelu(hidden, approximate=True)
    else:
        hidden *= jax.nn.silu(normed @ weights["gate"] + weights["gate_bias"])
    return x + hidden @ weights["down"] + weights["down_bias"]


def _mean_and_deviation(config: VisionConfig) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of colours, CLIP's or Qwen3-VL's."""
    mean, deviation = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    if config.num_positions:
        mean = deviation = (0.5, 0.5, 0.5)
    return np.array(mean, np.float32), np.array(deviation, np.float32)


def fitting_size(config: VisionConfig, rows: int, columns: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Returns the size in pixels for a scaled image.

    It is whole blocks, with the number of pixels within the limits.

    Raises:
        InvalidInputError: one side is more than 200 times the other.
    """
    if min(rows, columns) < 1 or max(rows, columns) > 200 * min(rows, columns):
        raise InvalidInputError(f"image: expected sides within a factor of 200, got {rows} x {columns}")
    unit = config.patch_size * config.merge_size
    scaled = [round(rows / unit) * unit, round(columns / unit) * unit]
    area = rows * columns
    if scaled[0] * scaled[1] > max_pixels:
        factor = math.sqrt(area / max_pixels)
        scaled = [max(unit, math.floor(side / factor / unit) * unit) for side in (rows, columns)]
    elif scaled[0] * scaled[1] < min_pixels:
        factor = math.sqrt(min_pixels / area)
        scaled = [math.ceil(side * factor / unit) * unit for side in (rows, columns)]
    return scaled[0], scaled[1]


def patches_of(
    config: VisionConfig, images: list[np.ndarray], *, min_pixels: int = 0, max_pixels: int = 0
) -> tuple[np.ndarray, list[Grid]]:
    """Returns packed patches float32[N, patch_values] of images, and their grids.

    Images are uint8[rows, columns, 3].

    Images whose size is not whole blocks within the limits (0: `VisionConfig.pixel_limits`) are scaled with the package
    `pillow` (bicubic).

    Raises:
        InvalidInputError: an image of another kind.
    """
    mean, deviation = _mean_and_deviation(config)
    limits = min_pixels or config.pixel_limits[0], max_pixels or config.pixel_limits[1]
    packed, grids = [], []
    for index, image in enumerate(images):
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise InvalidInputError(
                f"images[{index}]: expected uint8[rows, columns, 3], got {image.dtype} {image.shape}"
            )
        rows, columns, _ = image.shape
        size = fitting_size(config, rows, columns, *limits)
        image = resized(image, *size)
        packed.append(_cut(config, (image[None].astype(np.float32) / 255 - mean) / deviation)[0])
        grids.append((size[0] // config.patch_size, size[1] // config.patch_size))
    return np.concatenate(packed), grids


def resized(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Returns an image uint8[., ., 3] in this size.

    Another size is scaled with the package `pillow` (bicubic).
    """
    if image.shape[:2] == (rows, columns):
        return image
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((columns, rows), Image.Resampling.BICUBIC))


def _cut(config: VisionConfig, pixels: Any) -> Any:
    """Returns the patches [I, N, patch_values] of normalised images, block by block.

    Images are [I, rows, columns, 3].
    """
    images, rows, columns, _ = pixels.shape
    side, merge, frames = config.patch_size, config.merge_size, config.temporal_patch_size
    down, across = rows // (side * merge), columns // (side * merge)
    blocks = pixels.reshape(images, down, merge, side, across, merge, side, 3).transpose(0, 1, 4, 2, 5, 7, 3, 6)
    shape = (*blocks.shape[:6], frames, side, side)
    repeated = (jnp if isinstance(pixels, jax.Array) else np).broadcast_to(blocks[:, :, :, :, :, :, None], shape)
    return repeated.reshape(images, -1, config.patch_values)


def see(tower: VisionTower, pictures: jax.Array) -> jax.Array:
    """Embed pictures uint8[B, K, side, side, 3].

    Returns float[B, K, T, (1 + N) out_width].
    The T = (side / (patch_size * merge_size))^2 blocks stand row by row. All pictures have one size, whole blocks, so
    one program reads them all; a picture of zeros costs as much as any other.
    """
    config = tower.config
    batch, count, side = pictures.shape[:3]
    grid = side // config.patch_size
    windows = arrange(config, [(grid, grid)])  # of the shape alone: constants of the program
    mean, deviation = _mean_and_deviation(config)
    pixels = (pictures.reshape(-1, side, side, 3).astype(jnp.float32) / 255 - mean) / deviation
    placed = _cut(config, pixels)[:, windows.order[0]]
    positions, mask = (jnp.broadcast_to(array, (batch * count, *array.shape[1:])) for array in windows[1:3])
    seen = tower(placed, positions, mask)
    width = seen.shape[-1]
    return seen.reshape(batch * count, -1, width)[:, windows.blocks].reshape(batch, count, -1, width)


def widen(text: jax.Array, width: int) -> jax.Array:
    """Pad embeddings of texts to `width`, for layers to add nothing."""
    return jnp.pad(text, ((0, 0), (0, 0), (0, width - text.shape[-1])))
