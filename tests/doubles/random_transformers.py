"""Small random models of transformers, as originals of ours. Importing them takes seconds and is done when used."""

from __future__ import annotations

from typing import Any

SIZES = {
    "vocab_size": 96, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.2,
}  # fmt: skip
_VISION = {
    "depth": 3, "hidden_size": 32, "num_heads": 2, "intermediate_size": 40, "out_hidden_size": 48, "patch_size": 4,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "initializer_range": 0.2,
}  # fmt: skip
_TOWERS = {
    "Qwen2_5_VL": {"window_size": 16, "fullatt_block_indexes": [1]},
    "Qwen3VL": {"deepstack_visual_indexes": [0, 2], "num_position_embeddings": 25},
}
_SECTIONS = {
    "Qwen2_5_VL": {"mrope_section": [2, 2, 2]},
    "Qwen3VL": {"mrope_section": [4, 3, 3], "mrope_interleaved": True},
}
SEEING = tuple(_TOWERS)


def randomise(model: Any) -> None:
    """Gives norms and biases values too, so that leaving one out shows."""
    import torch

    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))


def random_qwen_vl(family: str, vocab_size: int, image_token: int, signs: tuple[int, int], **sizes: int) -> Any:
    """One of `SEEING` in float32; `signs` stand before and after a picture. Patches have 4 x 4 pixels."""
    import torch
    import transformers

    torch.manual_seed(0)
    rope = {"rope_type": "default", "rope_theta": 10_000.0} | _SECTIONS[family]
    text = SIZES | ({"head_dim": 20} if family == "Qwen3VL" else {})
    config = getattr(transformers, f"{family}Config")(
        text_config={**text, "vocab_size": vocab_size, "rope_parameters": rope, **sizes},
        vision_config=_VISION | _TOWERS[family],
        image_token_id=image_token, video_token_id=vocab_size - 1, vision_start_token_id=signs[0],
        vision_end_token_id=signs[1], tie_word_embeddings=False, attn_implementation="eager",
    )  # fmt: skip
    model = getattr(transformers, f"{family}ForConditionalGeneration")(config).float().eval()
    randomise(model)
    return model
