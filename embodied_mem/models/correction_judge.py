"""Judges whether a statement replaces an earlier one: MiniLM as a cross-encoder with low-rank updates.

    judge = SentenceEncoder.load().judge
    judge.chances("I'm vegan now.", ["I love a good steak.", "The bins go out on Monday."], [5, 1])    # 0.98, 0.01

A pair is read as one text, [CLS] how long ago: older [SEP] newer [SEP], by the encoder's layers with the matrices
W + B A and own biases and norms, and the chance is

    p = sigmoid(w . [x_CLS, mean of x] + b).

`correction_judge.safetensors` holds all that is new, for the weights of one encoder. It is made by
`experiments/package_data/correction_judge.py`.

Sources: Devlin et al., BERT, for pairs of sentences; Hu et al., LoRA.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem.models.bert import Params, hidden_states, masked_mean

WEIGHTS = pathlib.Path(__file__).with_suffix(".safetensors")
_HEAD = ("head.weight", "head.bias")
_LENGTHS, _SIZES = (32, 64, 128), (1, 2, 4, 8, 16)
_AGO = {1: "now", 2: "near", 3: "near"}
"""Words for how many statements ago the older one was said; "then" for more."""


def pair_text(old: str, distance: int) -> str:
    """Write an older statement with the word for its distance."""
    return f"{_AGO.get(distance, 'then')}: {old}"


def with_adapter(params: Params, adapter: Params) -> dict[str, jax.Array]:
    """Return arrays with W + B A and the adapter's vectors."""
    names = [name.removesuffix(".a") for name in adapter if name.endswith(".a")]
    matrices = {name: params[name] + adapter[f"{name}.b"] @ adapter[f"{name}.a"] for name in names}
    return {**params, **{name: adapter[name] for name in adapter if name in params}, **matrices}


def logits(
    params: Params, head: Params, ids: jax.Array, types: jax.Array, mask: jax.Array, **settings: Any
) -> jax.Array:
    """Return float32[B] of pairs; arguments as `bert.hidden_states`."""
    x = hidden_states(params, ids, types, mask, **settings)
    weight, bias = (head[name] for name in _HEAD)
    return jnp.concatenate([x[:, 0], masked_mean(x, mask)], -1) @ weight + bias


_logits = functools.partial(jax.jit, static_argnames=("num_layers", "num_heads", "epsilon"))(logits)


def pair_arrays(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make ids and types int32[size, L], mask bool[size, L].

    Rows beyond the pairs are padding.
    """
    rows = [tokenizer.encode(*pair) for pair in pairs]
    most = max(len(row.ids) for row in rows)
    length = next((length for length in _LENGTHS if most <= length), _LENGTHS[-1])
    ids, types = np.zeros((2, size, length), np.int32)
    mask = np.zeros((size, length), bool)
    for at, row in enumerate(rows):
        count = min(len(row.ids), length)
        ids[at, :count], types[at, :count], mask[at, :count] = row.ids[:count], row.type_ids[:count], True
    return ids, types, mask


class CorrectionJudge:
    """An encoder's arrays with the updates, and its tokenizer.

    Args:
        params: the encoder's arrays.
        adapter: `<matrix>.a` float32[rank, in] and `.b` float32[out, rank], biases and norms by the encoder's names,
            `head.weight` float32[2 D], `head.bias`.
        tokenizer: the encoder's.
        settings: `num_layers`, `num_heads`, `epsilon`.
    """

    def __init__(self, params: Params, adapter: Params, tokenizer: Any, settings: Mapping[str, Any]):
        self._params, self._head = with_adapter(params, adapter), {name: adapter[name] for name in _HEAD}
        self._tokenizer, self._settings = tokenizer, settings

    @classmethod
    def of(
        cls, name: str, params: Params, tokenizer: Any, settings: Mapping[str, Any], path: pathlib.Path = WEIGHTS
    ) -> Self | None:
        """Return the judge for an encoder's weights.

        None if the file is not for them.
        """
        from safetensors import safe_open

        if not path.is_file():
            return None
        with safe_open(path, "numpy") as file:
            if file.metadata()["encoder"] != name:
                return None
            adapter = {key: jnp.asarray(file.get_tensor(key), jnp.float32) for key in file.keys()}  # noqa: SIM118 (it is no dict)
        return cls(params, adapter, tokenizer, settings)

    def chances(self, new: str, olds: Sequence[str], distances: Sequence[int]) -> list[float]:
        """Give the chance that a statement replaces each older one.

        Args:
            new: the statement.
            olds: earlier ones of the same speaker.
            distances: how many statements of anybody before the new one each was said; 1 for the last.
        """
        pairs = [(pair_text(old, distance), new) for old, distance in zip(olds, distances)]
        its_chances: list[float] = []
        for start in range(0, len(pairs), _SIZES[-1]):
            batch = pairs[start : start + _SIZES[-1]]
            size = next(size for size in _SIZES if len(batch) <= size)
            arrays = pair_arrays(self._tokenizer, batch, size)
            with jax.default_matmul_precision("float32"):
                rows = np.asarray(_logits(self._params, self._head, *arrays, **self._settings))[: len(batch)]
            its_chances += (1 / (1 + np.exp(-rows.astype(np.float64)))).tolist()
        return its_chances
