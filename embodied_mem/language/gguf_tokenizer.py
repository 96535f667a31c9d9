"""The byte-level BPE tokenizer that a GGUF file carries in its metadata, as one of the package `tokenizers`.

backend = backend_from_gguf(file.metadata)       # `models.gguf.GGUFFile`
Tokenizer(backend, **roles_from_gguf(file.metadata))

The file has the vocabulary and the merges; how text is cut before merging is only named there (`tokenizer.ggml.pre`),
so the names that are known are in the table below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from .tokenizers import _package

_CONTROL, _USER_DEFINED = 3, 4
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# How the families cut text: one digit at a time and the pattern of GPT-2; or a pattern of their own.
_PATTERNS = {
    "qwen2": _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST,
    "llama-bpe": _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST,
}
_KNOWN = ("gpt-2", "smollm", *_PATTERNS)


def backend_from_gguf(metadata: Mapping[str, Any]) -> Any:
    """The `tokenizers.Tokenizer` that the metadata describes.

    Raises:
        InvalidInputError: it is not byte-level BPE, its cutting is not known, or the vocabulary is damaged.
        MissingDependencyError: without the package `tokenizers`.
    """
    kind, cutting = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if not isinstance(kind, str) or kind != "gpt2":
        raise InvalidInputError(f"tokenizer.ggml.model: expected gpt2 (byte-level BPE), got {kind!r:.80}")
    if not isinstance(cutting, str) or cutting not in _KNOWN:
        raise InvalidInputError(
            f"tokenizer.ggml.pre: expected one of {', '.join(_KNOWN)}, got {cutting!r:.80}; where a file has none, and "
            "it is known how its model cuts text, hand over its metadata with this entry"
        )
    try:
        tokens, merges = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"]
        kinds = metadata["tokenizer.ggml.token_type"]
    except KeyError as error:
        raise InvalidInputError(f"GGUF metadata: expected {error}, got none") from error
    for name, texts in (("tokens", tokens), ("merges", merges)):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError(f"tokenizer.ggml.{name}: expected texts, got {texts!r:.80}")
    if np.ndim(kinds) != 1:
        raise InvalidInputError(f"tokenizer.ggml.token_type: expected a number per token, got {kinds!r:.80}")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if len(vocabulary) != len(tokens) or len(kinds) != len(tokens) or any(len(pair) != 2 for pair in pairs):
        raise InvalidInputError(
            f"GGUF metadata: expected distinct tokens with a type each and merges of two, got {len(tokens)} tokens "
            f"({len(vocabulary)} distinct), {len(kinds)} types"
        )
    package = _package()
    byte_level = package.pre_tokenizers.ByteLevel
    try:
        model = package.models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=cutting == "llama-bpe")
    except Exception as error:  # the package raises Exception itself
        raise InvalidInputError(f"GGUF metadata: expected merges of the vocabulary's tokens: {error}") from error
    backend = package.Tokenizer(model)
    steps = [byte_level(add_prefix_space=False)]
    if cutting == "smollm":
        steps.insert(0, package.pre_tokenizers.Digits(individual_digits=True))
    elif cutting in _PATTERNS:
        split = package.pre_tokenizers.Split(package.Regex(_PATTERNS[cutting]), "isolated")
        steps = [split, byte_level(add_prefix_space=False, use_regex=False)]
    if cutting == "qwen2":
        backend.normalizer = package.normalizers.NFC()
    backend.pre_tokenizer = package.pre_tokenizers.Sequence(steps)
    backend.decoder = package.decoders.ByteLevel()
    added = {
        special: [
            package.AddedToken(token, special=special, normalized=False)
            for token, number in zip(tokens, kinds, strict=True)
            if number == wanted
        ]
        for special, wanted in ((True, _CONTROL), (False, _USER_DEFINED))
    }
    backend.add_special_tokens(added[True])
    backend.add_tokens(added[False])
    return backend


def roles_from_gguf(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Names of the tokens for `Tokenizer`'s roles, as far as the metadata has them.

    Raises:
        InvalidInputError: one is no token of the vocabulary.
    """
    tokens = metadata["tokenizer.ggml.tokens"]
    keys = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    roles = {}
    for role, key in keys.items():
        index = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if index is None:
            continue
        if type(index) is not int or not 0 <= index < len(tokens):
            raise InvalidInputError(
                f"tokenizer.ggml.{key}_token_id: expected a number below {len(tokens)}, got {index!r:.80}"
            )
        roles[role] = tokens[index]
    return roles
