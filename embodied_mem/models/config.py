"""Shapes of decoders: one frozen, self-validating config, presets with published shapes, parameter counts.

config = preset("tiny", vocab_size=2048)
num_parameters(config)                # exact, from the shapes alone
logical_axes(config)                  # {("layers", "query"): ("layers", "embed", "heads", "head_dim"), ...}
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from embodied_mem.errors import InvalidInputError

DTYPES = ("float32", "bfloat16", "float16")
Axes = tuple[str | None, ...]  # the logical name of each axis
Shapes = dict[str, tuple[tuple[int, ...], Axes]]
ParameterAxes = dict[tuple[str, ...], Axes]  # by the path of a parameter


def _require(condition: bool, field: str, expected: str, got: object, why: str = "") -> None:
    if not condition:
        raise InvalidInputError(f"decoder.{field}: expected {expected}, got {got!r}" + (f"; {why}" if why else ""))


@dataclasses.dataclass(frozen=True)
class RopeScaling:
    """The frequency change of Llama 3.1 and later, which stretches a model beyond its original length.

    Attributes:
        factor: wavelengths longer than `original_length / low_frequency_factor` are stretched by this much.
        low_frequency_factor: see above.
        high_frequency_factor: wavelengths shorter than `original_length / high_frequency_factor` stay; in between
            the two are blended linearly.
        original_length: tokens, the length that the model was first trained with.
    """

    factor: float
    low_frequency_factor: float
    high_frequency_factor: float
    original_length: int

    def __post_init__(self) -> None:
        _require(self.factor >= 1, "rope_scaling.factor", ">= 1", self.factor)
        _require(
            0 < self.low_frequency_factor < self.high_frequency_factor,
            "rope_scaling.low_frequency_factor",
            f"in (0, high_frequency_factor={self.high_frequency_factor})",
            self.low_frequency_factor,
        )
        _require(self.original_length >= 1, "rope_scaling.original_length", ">= 1", self.original_length)


@dataclasses.dataclass(frozen=True)
class VisionConfig:
    """The shape of a vision tower, Qwen2.5-VL's or Qwen3-VL's; the defaults are those of Qwen2.5-VL-7B.

    Attributes:
        num_layers: transformer blocks.
        width: D of the tower.
        num_heads: attention heads.
        mlp_width: hidden size of SwiGLU; of Qwen3-VL's MLP, which has no gate.
        out_width: D of the decoder.
        patch_size: side of a patch, pixels.
        temporal_patch_size: frames of a patch; an image is repeated this often.
        merge_size: side of the block of patches that becomes one embedding.
        window_size: side of an attention window, pixels; a multiple of patch_size * merge_size; 0 for none.
        full_layers: layers that attend within the whole image.
        num_positions: learned positions, a square, stretched over every image; 0 for none. Only Qwen3-VL has them, so
            a tower with them is one of that family: LayerNorm, no gate, colours scaled to [-1, 1].
        deep_layers: layers whose output the first layers of the decoder add to their own (DeepStack).
        image_token: placeholder of one embedding of an image in a text.
        dtype: of activations and matrix products.
        param_dtype: of stored parameters.
    """

    num_layers: int = 32
    width: int = 1280
    num_heads: int = 16
    mlp_width: int = 3420
    out_width: int = 3584
    patch_size: int = 14
    temporal_patch_size: int = 2
    merge_size: int = 2
    window_size: int = 112
    full_layers: tuple[int, ...] = (7, 15, 23, 31)
    num_positions: int = 0
    deep_layers: tuple[int, ...] = ()
    image_token: int = 151_655
    dtype: str = "bfloat16"
    param_dtype: str = "bfloat16"

    def __post_init__(self) -> None:
        if self.width % self.num_heads or (self.width // self.num_heads) % 4:
            raise InvalidInputError(
                f"vision.width: expected heads of a multiple of 4 (rows and columns rotate pairs), got width "
                f"{self.width} in {self.num_heads} heads"
            )
        if self.window_size % (self.patch_size * self.merge_size):
            raise InvalidInputError(
                f"vision.window_size: expected a multiple of patch_size x merge_size = "
                f"{self.patch_size * self.merge_size}, got {self.window_size}"
            )
        if math.isqrt(self.num_positions) ** 2 != self.num_positions:
            raise InvalidInputError(f"vision.num_positions: expected a square, got {self.num_positions}")
        if any(not 0 <= layer < self.num_layers for layer in self.deep_layers):
            raise InvalidInputError(
                f"vision.deep_layers: expected layers from 0 to {self.num_layers - 1}, got {self.deep_layers}"
            )

    @property
    def head_dim(self) -> int:
        """Size of one head."""
        return self.width // self.num_heads

    @property
    def patch_values(self) -> int:
        """Numbers of one patch: 3 colours x frames x side x side."""
        return 3 * self.temporal_patch_size * self.patch_size**2

    @property
    def window_blocks(self) -> int:
        """Side of a window in blocks."""
        return self.window_size // (self.patch_size * self.merge_size)

    @property
    def pixel_limits(self) -> tuple[int, int]:
        """Fewest and most pixels of a picture: 4 (Qwen3-VL: 64) to 1,280 embeddings."""
        block = (self.patch_size * self.merge_size) ** 2
        return (64 if self.num_positions else 4) * block, 1280 * block


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """The shape of one decoder-only transformer of the Llama, Qwen2 or Qwen3 family.

    Attributes:
        vocab_size: tokens in the vocabulary.
        width: D, size of the residual stream.
        num_layers: transformer blocks.
        num_heads: H, query heads.
        num_kv_heads: key and value heads; divides `num_heads`.
        head_dim: size of one head, even (RoPE rotates pairs).
        mlp_width: hidden size of SwiGLU.
        rope_theta: base of the rotary wavelengths.
        norm_eps: added to the mean square in every RMSNorm.
        qkv_bias: biases on the query, key and value projections (Qwen2).
        qk_norm: RMSNorm over each query and key head before RoPE (Qwen3).
        tie_embeddings: the output head is the embedding table.
        smear: K, add the embeddings of the K positions before to each one's, by a learned factor per dimension. Then
            one layer finds what followed these tokens before, which otherwise takes two; for models from scratch.
        max_length: longest sequence in tokens, prompt and completion together.
        dtype: of activations and matrix products; norms, softmax and log-probs are float32 whatever it is.
        param_dtype: of stored parameters.
        rope_scaling: Llama 3.1 frequency change, or None.
        mrope_sections: how many of the head_dim / 2 rotary frequencies turn with time, row and column of an image
            (Qwen2.5-VL, Qwen3-VL); empty for text models.
        mrope_interleaved: they take turns from the first frequency on (Qwen3-VL) rather than follow one another.
        vision: of the tower through which it sees, whose embeddings have its width; None for a model that reads alone.
        scan_layers: run the layers in one `lax.scan` (compile time does not grow with depth; right for deep models)
            rather than unrolled (faster on a CPU, right for `tiny`). Parameters are stored alike in both cases.
        attention_block: queries per attention block; a block attends to keys up to its own end only, which halves
            work and memory of long causal attention. 0 means one block.
    """

    vocab_size: int = 1024
    width: int = 128
    num_layers: int = 4
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 32
    mlp_width: int = 384
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-6
    qkv_bias: bool = False
    qk_norm: bool = False
    tie_embeddings: bool = True
    smear: int = 0
    max_length: int = 1024
    dtype: str = "float32"
    param_dtype: str = "float32"
    rope_scaling: RopeScaling | None = None
    mrope_sections: tuple[int, ...] = ()
    mrope_interleaved: bool = False
    vision: VisionConfig | None = None
    scan_layers: bool = False
    attention_block: int = 128

    def __post_init__(self) -> None:
        for field in ("vocab_size", "width", "num_layers", "num_heads", "num_kv_heads", "head_dim", "mlp_width"):
            value = getattr(self, field)
            _require(isinstance(value, int) and value >= 1, field, "an integer >= 1", value)
        _require(isinstance(self.max_length, int) and self.max_length >= 1, "max_length", ">= 1", self.max_length)
        _require(
            self.num_heads % self.num_kv_heads == 0,
            "num_kv_heads",
            f"a divisor of num_heads={self.num_heads}",
            self.num_kv_heads,
            "each key head serves the same number of query heads",
        )
        _require(self.head_dim % 2 == 0, "head_dim", "an even number", self.head_dim, "RoPE rotates pairs")
        _require(self.rope_theta > 1, "rope_theta", "> 1", self.rope_theta)
        _require(self.norm_eps > 0, "norm_eps", "> 0", self.norm_eps)
        _require(0 <= self.smear <= self.width - 3, "smear", f"from 0 to width - 3 = {self.width - 3}", self.smear)
        _require(self.attention_block >= 0, "attention_block", ">= 0 (0: one block)", self.attention_block)
        sections = self.mrope_sections
        _require(
            not sections or (len(sections) == 3 and sum(sections) == self.head_dim // 2),
            "mrope_sections",
            f"three sizes with the sum head_dim / 2 = {self.head_dim // 2}, or none",
            sections,
        )
        _require(
            self.vision is None or (bool(sections) and self.vision.out_width == self.width),
            "vision",
            f"a tower whose out_width is width = {self.width}, beside mrope_sections",
            self.vision,
        )
        for field in ("dtype", "param_dtype"):
            _require(getattr(self, field) in DTYPES, field, f"one of {', '.join(DTYPES)}", getattr(self, field))


@dataclasses.dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters: rank, scale, dropout, and the projections that carry them.

    Source: MemCompiler C.3.1 (rank 16, alpha 32, dropout 0.1, on q_proj and v_proj).

    Attributes:
        rank: r, the inner size.
        alpha: the adapter's product is scaled by alpha / rank.
        dropout: share of the adapter's inputs set to zero in training.
        targets: among "query", "key", "value".
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.1
    targets: tuple[str, ...] = ("query", "value")

    def __post_init__(self) -> None:
        if not (isinstance(self.rank, int) and self.rank >= 1):
            raise InvalidInputError(f"lora.rank: expected an integer >= 1, got {self.rank!r}")
        if not self.alpha > 0:
            raise InvalidInputError(f"lora.alpha: expected > 0, got {self.alpha!r}")
        if not 0 <= self.dropout < 1:
            raise InvalidInputError(f"lora.dropout: expected in [0, 1), got {self.dropout!r}")
        unknown = set(self.targets) - {"query", "key", "value"}
        if unknown or not self.targets:
            raise InvalidInputError(f"lora.targets: expected some of query, key, value; got {self.targets!r}")

    @property
    def scale(self) -> float:
        """alpha / rank."""
        return self.alpha / self.rank


def _qwen(width: int, layers: int, heads: int, mlp: int, **others: Any) -> DecoderConfig:
    """Return a preset of Qwen2 (`qkv_bias`) or Qwen3 (`qk_norm`)."""
    shape = {"width": width, "num_layers": layers, "num_heads": heads, "mlp_width": mlp, "num_kv_heads": 8}
    common: dict[str, Any] = {
        "vocab_size": 151_936, "head_dim": 128, "rope_theta": 1e6, "norm_eps": 1e-6, "max_length": 40_960,
        "dtype": "bfloat16", "param_dtype": "bfloat16", "scan_layers": True, "attention_block": 512,
    }  # fmt: skip
    return DecoderConfig(**(common | shape | others))


_QWEN2: dict[str, Any] = {"qkv_bias": True, "max_length": 32_768}
_LARGE_QWEN2: dict[str, Any] = _QWEN2 | {"vocab_size": 152_064, "tie_embeddings": False}
PRESETS: dict[str, DecoderConfig] = {
    "micro": DecoderConfig(width=96, num_layers=3, num_heads=3, num_kv_heads=1, mlp_width=256, smear=1),
    "mini": DecoderConfig(width=96, num_layers=3, num_heads=3, num_kv_heads=1, mlp_width=256, smear=4),
    "tiny": DecoderConfig(smear=1),
    "small": DecoderConfig(width=192, num_layers=6, num_heads=6, num_kv_heads=2, mlp_width=576, smear=1),
    "smollm2-135m": DecoderConfig(
        vocab_size=49_152, width=576, num_layers=30, num_heads=9, num_kv_heads=3, head_dim=64, mlp_width=1536,
        rope_theta=100_000.0, norm_eps=1e-5, max_length=8192, scan_layers=True,
    ),
    "llama-3.2-1b": DecoderConfig(
        vocab_size=128_256, width=2048, num_layers=16, num_heads=32, num_kv_heads=8, head_dim=64, mlp_width=8192,
        rope_theta=500_000.0, norm_eps=1e-5, max_length=131_072, dtype="bfloat16", param_dtype="bfloat16",
        rope_scaling=RopeScaling(32.0, 1.0, 4.0, 8192), scan_layers=True, attention_block=512,
    ),
    "qwen2.5-0.5b": _qwen(896, 24, 14, 4864, num_kv_heads=2, head_dim=64, **_QWEN2),
    "qwen2.5-1.5b": _qwen(1536, 28, 12, 8960, num_kv_heads=2, **_QWEN2),
    "qwen2.5-3b": _qwen(2048, 36, 16, 11_008, num_kv_heads=2, **_QWEN2),
    "qwen2.5-7b": _qwen(3584, 28, 28, 18_944, num_kv_heads=4, **_LARGE_QWEN2),
    # The decoder of Qwen2.5-VL-7B; `VisionConfig` has its tower.
    "qwen2.5-vl-7b": _qwen(
        3584, 28, 28, 18_944, num_kv_heads=4, **(_LARGE_QWEN2 | {"mrope_sections": (16, 24, 24), "max_length": 128_000})
    ),
    "qwen2.5-14b": _qwen(5120, 48, 40, 13_824, **_LARGE_QWEN2),
    "qwen2.5-32b": _qwen(5120, 64, 40, 27_648, **_LARGE_QWEN2),
    "qwen2.5-vl-32b": _qwen(
        5120, 64, 40, 27_648, **(_LARGE_QWEN2 | {"mrope_sections": (16, 24, 24), "max_length": 128_000})
    ),
    "qwen3-0.6b": _qwen(1024, 28, 16, 3072, qk_norm=True),
    "qwen3-1.7b": _qwen(2048, 28, 16, 6144, qk_norm=True),
    "qwen3-4b": _qwen(2560, 36, 32, 9728, qk_norm=True),
    "qwen3-8b": _qwen(4096, 36, 32, 12_288, qk_norm=True, tie_embeddings=False),
    "qwen3-14b": _qwen(5120, 40, 40, 17_408, qk_norm=True, tie_embeddings=False),
    "qwen3-32b": _qwen(5120, 64, 64, 25_600, qk_norm=True, tie_embeddings=False),
    # The language model of Qwen3-VL-32B.
    "qwen3-vl-32b": _qwen(
        5120, 64, 64, 25_600, qk_norm=True, tie_embeddings=False, rope_theta=5e6, max_length=262_144
    ),
}  # fmt: skip


def preset(name: str, **overrides: Any) -> DecoderConfig:
    """Returns the named config, with fields replaced by `overrides`.

    Raises:
        InvalidInputError: for an unknown name (the known ones are listed) or field.
    """
    if name not in PRESETS:
        raise InvalidInputError(f"decoder preset: unknown name {name!r}; known: {', '.join(PRESETS)}")
    known = {field.name for field in dataclasses.fields(DecoderConfig)}
    unknown = sorted(set(overrides) - known)
    if unknown:
        raise InvalidInputError(f"decoder.{unknown[0]}: no such field; fields: {', '.join(sorted(known))}")
    return dataclasses.replace(PRESETS[name], **overrides)


def layer_shapes(config: DecoderConfig) -> Shapes:
    """Returns shape and logical axis names of each parameter of one layer.

    The layers axis is left out.
    """
    d, h, k, e, m = config.width, config.num_heads, config.num_kv_heads, config.head_dim, config.mlp_width
    shapes: Shapes = {
        "attention_norm": ((d,), ("embed",)),
        "query": ((d, h, e), ("embed", "heads", "head_dim")),
        "key": ((d, k, e), ("embed", "kv_heads", "head_dim")),
        "value": ((d, k, e), ("embed", "kv_heads", "head_dim")),
        "output": ((h, e, d), ("heads", "head_dim", "embed")),
        "mlp_norm": ((d,), ("embed",)),
        "gate": ((d, m), ("embed", "mlp")),
        "up": ((d, m), ("embed", "mlp")),
        "down": ((m, d), ("mlp", "embed")),
    }
    if config.qkv_bias:
        shapes["query_bias"] = ((h, e), ("heads", "head_dim"))
        shapes["key_bias"] = ((k, e), ("kv_heads", "head_dim"))
        shapes["value_bias"] = ((k, e), ("kv_heads", "head_dim"))
    if config.qk_norm:
        shapes["query_norm"] = ((e,), ("head_dim",))
        shapes["key_norm"] = ((e,), ("head_dim",))
    return shapes


def lora_shapes(config: DecoderConfig, target: str, rank: int) -> Shapes:
    """Returns shapes and logical axes of the two adapter matrices of `target`.

    `target` is "query", "key" or "value".
    """
    base, axes = layer_shapes(config)[target]
    return {
        f"{target}_lora_a": ((base[0], rank), (axes[0], "lora")),
        f"{target}_lora_b": ((rank, *base[1:]), ("lora", *axes[1:])),
    }


def parameter_shapes(config: DecoderConfig) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Returns the stored shape of every parameter by its path in `Decoder`.

    Layers are stacked on axis 0.
    """
    shapes: dict[tuple[str, ...], tuple[int, ...]] = {("embedding",): (config.vocab_size, config.width)}
    if config.smear:
        shapes[("smear",)] = (config.width,) if config.smear == 1 else (config.smear, config.width)
    for name, (shape, _) in layer_shapes(config).items():
        shapes["layers", name] = (config.num_layers, *shape)
    shapes[("final_norm",)] = (config.width,)
    if not config.tie_embeddings:
        shapes[("head",)] = (config.width, config.vocab_size)
    return shapes


def logical_axes(
    config: DecoderConfig, lora_rank: int = 0, lora_targets: tuple[str, ...] = ("query", "value")
) -> ParameterAxes:
    """Returns the logical axis names of all parameters by path in `Decoder`.

    The names are vocab, embed, heads, kv_heads, head_dim, mlp, layers and lora. Paths are those of
    `nnx.to_flat_state(nnx.state(decoder))`. With `lora_rank` > 0 the adapters are included.
    """
    axes: ParameterAxes = {("embedding",): ("vocab", "embed")}
    if config.smear:
        axes[("smear",)] = ("embed",) if config.smear == 1 else (None, "embed")
    for name, (_, names) in layer_shapes(config).items():
        axes["layers", name] = ("layers", *names)
    if lora_rank:
        for target in lora_targets:
            for name, (_, names) in lora_shapes(config, target, lora_rank).items():
                axes["layers", name] = ("layers", *names)
    axes[("final_norm",)] = ("embed",)
    if not config.tie_embeddings:
        axes[("head",)] = ("embed", "vocab")
    return axes


def num_parameters(config: DecoderConfig, embedding: bool = True) -> int:
    """Returns the exact number of parameters.

    `embedding=False` leaves out the embedding table and the head.
    """
    left_out = () if embedding else (("embedding",), ("head",))
    return sum(math.prod(shape) for path, shape in parameter_shapes(config).items() if path not in left_out)
