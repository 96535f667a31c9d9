"""A small sentence encoder with random weights, as a folder of sentence-transformers."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import tokenizers
from safetensors.numpy import save_file

CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 40,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "put", "apple", "in", "fridge", "##s"]


def random_params(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), width),
        "embeddings.position_embeddings.weight": (40, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    modules = {"embeddings.LayerNorm": (width,)}
    for i in range(CONFIG["num_hidden_layers"]):
        prefix = f"encoder.layer.{i}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            modules[f"{prefix}.attention.{name}"] = (width, width)
        modules[f"{prefix}.intermediate.dense"] = (inner, width)
        modules[f"{prefix}.output.dense"] = (width, inner)
        modules[f"{prefix}.attention.output.LayerNorm"] = modules[f"{prefix}.output.LayerNorm"] = (width,)
    for name, shape in modules.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return {name: rng.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def write_encoder(path: pathlib.Path) -> pathlib.Path:
    """Writes the folder."""
    vocab = {word: i for i, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=128)
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 36}))
    save_file({**random_params(), "embeddings.position_ids": np.arange(40)}, path / "model.safetensors")
    return path
