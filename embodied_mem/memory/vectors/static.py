"""Embeds texts by a table of word vectors that comes with the package: numpy alone, no download, no model to run.

    embedder = StaticEmbedder()
    vectors = embedder.embed(["my dog is ill", "the puppy needs a vet"])
    vectors @ vectors.T            # cosine similarities

The vector of a text is the sum of those of its words, of length 1; the vector of a word is the mean of those of its
pieces. Words are cut into pieces by byte pair encoding, where a piece that stands earlier in the list is joined first.
The table is read when the first text is embedded, and mapped into memory.

Source: the token embeddings of WordLlama (`wordllama/NOTICE.md`), made by experiments/package_data/word_vectors.py.
"""

from __future__ import annotations

import functools
import itertools
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from ... import _native
from ...errors import DataNotFoundError, InvalidInputError
from ..words import words_of
from .lexical import Embedder, LexicalEmbedder, texts_to_embed

TABLE = pathlib.Path(__file__).parent / "wordllama"
"""`pieces.txt`, one a line; `rows.npy`, int8[pieces, dimension], times `scales.npy`, float16[pieces]."""
FILES = ("pieces.txt", "rows.npy", "scales.npy")
DIMENSION = 256
START = "▁"
"""Stands before the first letter of a word."""
_MAX_WORDS = 1 << 12
_MAX_LETTERS = 64
"""Of a word that is cut up: what is longer is no word, and the work grows with the square."""


class StaticEmbedder:
    """Sums of word vectors. The same text gives the same vector in every process.

    Args:
        table: folder with the table; None for the one of the package.

    Raises:
        DataNotFoundError: the table is not there.
    """

    def __init__(self, table: str | os.PathLike[str] | None = None):
        self._folder = TABLE if table is None else pathlib.Path(table).absolute()
        if missing := [name for name in FILES if not (self._folder / name).is_file()]:
            raise DataNotFoundError(
                f"{self._folder}: expected {', '.join(FILES)}, {missing[0]} is not there; install the package again"
            )
        self.dimension = DIMENSION
        self.name = f"wordllama-{DIMENSION}-1"

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32[n, dimension], one row per text; a row of zeros for a text without words."""
        texts = texts_to_embed(texts)
        rows = np.zeros((len(texts), DIMENSION), np.float32)
        word = _table(self._folder).word
        for row, text in zip(rows, texts):
            _native.vectors.add_and_scale(row, [word(one) for one in words_of(text)])
        return rows


def default_embedder() -> Embedder:
    """Word vectors where their table is installed, else the lexical embedder."""
    return StaticEmbedder() if all((TABLE / name).is_file() for name in FILES) else LexicalEmbedder()


@functools.cache
def _table(folder: pathlib.Path) -> _Table:
    return _Table(folder)


class _Table:
    """The pieces and their rows."""

    def __init__(self, folder: pathlib.Path):
        pieces = (folder / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
        self.rank = {piece: rank for rank, piece in enumerate(pieces)}
        self._rows = np.load(folder / "rows.npy", mmap_mode="r")
        self._scales = np.load(folder / "scales.npy").astype(np.float32)
        if self._rows.shape != (len(pieces), DIMENSION) or self._scales.shape != (len(pieces),):
            raise InvalidInputError(
                f"{folder}: expected int8[{len(pieces)}, {DIMENSION}] and a scale for each row, got "
                f"{list(self._rows.shape)} and {list(self._scales.shape)}; install the package again"
            )
        self.word = functools.lru_cache(_MAX_WORDS)(self._word)

    def _word(self, word: str) -> np.ndarray:
        numbers = [self.rank[piece] for piece in self.pieces(word) if piece in self.rank]
        if not numbers:
            return np.zeros(DIMENSION, np.float32)
        rows = self._rows[numbers] * self._scales[numbers, None]
        return np.asarray(rows.sum(axis=0) / np.float32(len(numbers)))

    def pieces(self, word: str) -> list[str]:
        """A normal word cut up: the two neighbours whose join is the earliest piece are joined, until none is one."""
        parts, rank = [START, *word[:_MAX_LETTERS]], self.rank
        while len(parts) > 1:
            joins = [rank.get(one + two, len(rank)) for one, two in itertools.pairwise(parts)]
            best = min(joins)
            if best == len(rank):
                break
            at = joins.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts
