"""Loads or makes the tokenizer of a run: learned from the teacher's texts, or that of the published models.

tokenizer = make_tokenizer(config, run_dir / "tokenizer.json", samples)
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.language.tokenizers import Tokenizer, train_bpe
from embodied_mem.models.formats.gguf import GGUFFile
from embodied_mem.training.config import Config
from embodied_mem.training.sources.weights import ROLES, weights_of
from embodied_mem.training.teachers.episodes import Sample

SOFT_PLACEHOLDERS = ("<soft>", "<|fim_pad|>", "<|reserved_special_token_0|>", "<empty_output>", "<unk>")
"""Tokens that can stand for a soft token; published vocabularies have one of the others, never in a text (Qwen's,
Llama 3's, SmolLM2's, Llama 2's)."""

MAX_TEXTS = 4000


def make_tokenizer(config: Config, path: pathlib.Path, samples: Sequence[Sample]) -> Tokenizer:
    """The tokenizer of the run, stored at `path` the first time.

    Raises:
        DataNotFoundError: there are no weights, or no tokenizer.json in their folder.
    """
    if path.exists():
        return load_tokenizer(path)
    source = next(filter(None, (weights_of(config, role) for role in ROLES)), None)
    if source is not None:
        published_tokenizer(source).save(path)
    else:
        chosen = samples[:: max(1, len(samples) // MAX_TEXTS)]
        texts = [t for s in chosen for t in (s.compiler_prompt, s.output, s.executor_text(), f" {s.action}")]
        train_bpe(texts, config.model.vocab_size).save(path)
    return load_tokenizer(path)


class SpecialIds(NamedTuple):
    """Tokens that training cannot do without."""

    pad: int
    eos: int
    soft: int


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Their ids.

    Raises:
        InvalidInputError: the tokenizer has none for one of them.
    """
    pad, eos, soft = tokenizer.pad_id, tokenizer.eos_id, tokenizer.soft_id
    if pad is None or eos is None or soft is None:
        raise InvalidInputError(f"tokenizer: expected tokens to pad, end and be soft, got {pad}, {eos}, {soft}")
    return SpecialIds(pad, eos, soft)


def published_tokenizer(source: pathlib.Path) -> Tokenizer:
    """The tokenizer of a Hugging Face folder or a GGUF file; both models of a run read with the compiler's, if it is
    published, else with the executor's."""
    if source.suffix == ".gguf":
        return PretrainedTokenizer.from_gguf(GGUFFile(source).metadata).tokenizer
    return PretrainedTokenizer.from_folder(source).tokenizer


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
