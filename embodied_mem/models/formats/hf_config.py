"""A decoder's shape as the config.json of a Hugging Face checkpoint (Llama, Qwen2, Qwen3), in both directions.

config = config_from_hf(json.loads(path.read_text()), dtype="float32")
path.write_text(json.dumps(config_to_hf(config)))
"""

from __future__ import annotations

from typing import Any

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import DecoderConfig, RopeScaling, num_parameters

_FIELDS = {
    "vocab_size": "vocab_size", "width": "hidden_size", "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads", "head_dim": "head_dim",
    "mlp_width": "intermediate_size", "norm_eps": "rms_norm_eps",
}  # fmt: skip
_MODEL_TYPES = ("llama", "qwen2", "qwen3")
MAX_PARAMETERS = 10**13
"""A file that announces more is damaged."""


def config_from_hf(described: dict[str, Any], **overrides: Any) -> DecoderConfig:
    """Returns the decoder config that a Hugging Face config.json describes, with `overrides` put over it.

    Raises:
        InvalidInputError: for a model type, activation, sliding window or rotary scaling that the decoder does not
            have; nothing that changes the result is ignored.
    """
    kind = described.get("model_type")
    if kind not in _MODEL_TYPES:
        raise InvalidInputError(f"config.json: model_type: expected one of {', '.join(_MODEL_TYPES)}, got {kind!r}")
    if described.get("hidden_act", "silu") != "silu":
        raise InvalidInputError(f"config.json: hidden_act: expected silu, got {described['hidden_act']!r}")
    if described.get("use_sliding_window") or "sliding_attention" in (described.get("layer_types") or ()):
        raise InvalidInputError("config.json: use_sliding_window: expected false, got true")
    if described.get("mlp_bias"):
        raise InvalidInputError("config.json: mlp_bias: expected false, got true")
    if described.get("attention_bias"):
        raise InvalidInputError("config.json: attention_bias: expected false, got true (it would bias o_proj as well)")
    # transformers 5 moved rope_theta and the scaling into one dict.
    rope = described.get("rope_parameters") or described.get("rope_scaling") or {}
    rope_type = rope.get("rope_type", rope.get("type", "default"))
    scaling = None
    if rope_type == "llama3":
        scaling = RopeScaling(
            rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
        )
    elif rope_type != "default":
        raise InvalidInputError(f"config.json: rope type: expected default or llama3, got {rope_type!r}")
    heads = described.get("num_attention_heads")
    named = {"num_key_value_heads": heads} | described
    named["head_dim"] = described.get("head_dim") or described.get("hidden_size", 0) // (heads or 1)
    try:
        fields: dict[str, Any] = {ours: named[theirs] for ours, theirs in _FIELDS.items()}
    except KeyError as error:
        raise InvalidInputError(f"config.json: expected a field {error}, got none") from error
    dtype = described.get("torch_dtype") or described.get("dtype") or "float32"
    fields |= {
        "rope_theta": float(described.get("rope_theta") or rope.get("rope_theta") or 10_000.0),
        "rope_scaling": scaling,
        "qkv_bias": kind == "qwen2",
        "qk_norm": kind == "qwen3",
        "tie_embeddings": bool(described.get("tie_word_embeddings", False)),
        "max_length": described.get("max_position_embeddings", 2048),
        "dtype": dtype,
        "param_dtype": dtype,
        "scan_layers": fields["num_layers"] > 8,
        "attention_block": 512,
    }
    return sized(DecoderConfig(**(fields | overrides)))


def sized(config: DecoderConfig) -> DecoderConfig:
    """Returns the config; ValueError for an impossible size, before memory is allocated."""
    if num_parameters(config) >= MAX_PARAMETERS:
        raise ValueError(f"{num_parameters(config):.2g} parameters, at most {MAX_PARAMETERS:.0e} are believed")
    return config


def config_to_hf(config: DecoderConfig) -> dict[str, Any]:
    """Returns the config.json of a decoder; the model type follows from its biases and norms.

    Raises:
        InvalidInputError: when no published family has this shape: both QKV biases and QK norms, or smear.
    """
    if config.qkv_bias and config.qk_norm:
        raise InvalidInputError("save_hf: expected qkv_bias (qwen2) or qk_norm (qwen3) or neither (llama), got both")
    if config.smear:
        raise InvalidInputError("save_hf: expected smear=0, no published family has it; use training.weights")
    kind = "qwen2" if config.qkv_bias else "qwen3" if config.qk_norm else "llama"
    described = {
        "architectures": [{"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind] + "ForCausalLM"],
        "model_type": kind,
        **{theirs: getattr(config, ours) for ours, theirs in _FIELDS.items()},
        "rope_theta": config.rope_theta,
        "hidden_act": "silu",
        "tie_word_embeddings": config.tie_embeddings,
        "max_position_embeddings": config.max_length,
        "torch_dtype": config.param_dtype,
    }
    scaling = config.rope_scaling
    if scaling is not None:
        described["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_frequency_factor,
            "high_freq_factor": scaling.high_frequency_factor,
            "original_max_position_embeddings": scaling.original_length,
        }
    return described
