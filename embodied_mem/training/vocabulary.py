"""The tokenizer of a run: learned from the teacher's texts, or that of the pretrained models.

tokenizer = make_tokenizer(config, run_dir / "tokenizer.json", samples)
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.language.tokenizers import Tokenizer, train_bpe
from embodied_mem.training.config import Config
from embodied_mem.training.teacher_data import Sample

SOFT_PLACEHOLDERS = ("<soft>", "<|fim_pad|>", "<|reserved_special_token_0|>", "<unk>")
"""Tokens that can stand for a soft token; pretrained vocabularies have one of the others, never in a text."""

MAX_TEXTS = 4000


def make_tokenizer(config: Config, path: pathlib.Path, samples: Sequence[Sample]) -> Tokenizer:
    """The tokenizer of the run, stored at `path` the first time.

    Raises:
        DataNotFoundError: `config.model.weights` names a folder without `compiler/tokenizer.json`.
    """
    if config.model.weights and not path.exists():
        source = pathlib.Path(config.model.weights) / "compiler" / "tokenizer.json"
        if not source.exists():
            raise DataNotFoundError(
                f"model.weights: expected {source} (Hugging Face folders compiler/ and executor/), found none"
            )
        Tokenizer.load(source).save(path)
    if not path.exists():
        chosen = samples[:: max(1, len(samples) // MAX_TEXTS)]
        texts = [t for s in chosen for t in (s.compiler_prompt, s.output, s.executor_text(), f" {s.action}")]
        train_bpe(texts, config.model.vocab_size).save(path)
    return load_tokenizer(path)


def load_tokenizer(path: pathlib.Path) -> Tokenizer:
    """The tokenizer at `path` with a token that stands for soft tokens."""
    tokenizer = Tokenizer.load(path)
    if tokenizer.soft_id is not None:
        return tokenizer
    for name in SOFT_PLACEHOLDERS:
        try:
            return Tokenizer.load(path, soft=name)
        except InvalidInputError:
            continue
    raise DataNotFoundError(f"{path}: expected one of the tokens {', '.join(SOFT_PLACEHOLDERS)}, found none")
