"""Embedders: texts to vectors, without a model unless the caller brings one.

    embedder = default_embedder()
    vectors = embedder.embed(["my dog is ill", "the puppy needs a vet"])
    vectors @ vectors.T            # cosine similarities

`StaticEmbedder` adds up word vectors of a table that comes with the package. `LexicalEmbedder` hashes words. Neither
needs a download or random numbers; the same text gives the same bits in every process.

Source: the token embeddings of WordLlama (`wordllama/NOTICE.md`), made by experiments/package_data/word_vectors.py.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import pathlib
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from .. import _native
from ..errors import DataNotFoundError, InvalidInputError
from .arguments import checked_number, checked_texts
from .words import words_of

_FEW = 32  # fewer new texts are embedded one by one: a compiled model is compiled anew for each size of batch
_WORD = re.compile(r"[^\W_]+")
_FREQUENT_WORDS = """
    a an the some it them and or of to in on at with under from into then is are be you your i this that there in
    see find put place move look examine take task middle room looking quickly around one two
"""
_FREQUENT = frozenset(_FREQUENT_WORDS.split())
_FREQUENT_WEIGHT = 0.2
_MAX_DIMENSION = 1 << 20


@runtime_checkable
class Embedder(Protocol):
    """Whatever turns texts into vectors.

    Attributes:
        name: identifies the embedder and its settings in files and reports.
    """

    name: str

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[n, d]; zeros for a text without content."""
        ...


class Judge(Protocol):
    """Whatever decides which earlier statement a new one replaces; an embedder may have one as `judge`."""

    def chances(self, new: str, olds: Sequence[str], distances: Sequence[int]) -> Sequence[float]:
        """Give the chance that each older statement is replaced.

        Distances count the statements since, 1 for the last.
        """
        ...


class LexicalEmbedder:
    """Hashed bag of words and neighbouring word pairs.

    Row of a text: for each lower-cased word and each pair of neighbours f with count c, `weight(f) * (1 + ln c)` is
    added, with a sign, at the position that a CRC-32 of f names; the row is then scaled to length 1. Instead of
    document frequencies, which would change with every text that is added, a fixed list of frequent words weighs 0.2
    and other words 1; a pair weighs half the product of its words. Two features share a position with probability
    1/dimension.

    Args:
        dimension: length of a row.
    """

    def __init__(self, dimension: int = 512):
        dimension = checked_number("dimension", dimension, least=1, most=_MAX_DIMENSION)
        self.dimension = dimension
        self.name = f"lexical-{dimension}-1"

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[n, dimension]; zeros for a text without words."""
        texts = texts_to_embed(texts)
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts):
            cells: dict[int, float] = {}
            for feature, weight in _features(text):
                code = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
                cell = (code >> 1) % self.dimension
                cells[cell] = cells.get(cell, 0.0) + (weight if code & 1 else -weight)
            if length := math.hypot(*cells.values()):
                row[list(cells)] = [value / length for value in cells.values()]
        return rows


def texts_to_embed(texts: Sequence[str]) -> Sequence[str]:
    """Check texts. Raises InvalidInputError for one text alone."""
    if isinstance(texts, str):
        raise InvalidInputError("texts: expected a sequence of texts, got one text; pass [text]")
    if isinstance(texts, (list, tuple)) and all(type(text) is str for text in texts):
        return texts  # whatever is in them, also what UTF-8 cannot hold
    return checked_texts("texts", texts)


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Yield (feature, weight) of words, then of pairs, each once."""
    words = _WORD.findall(text.lower())
    weights = {word: _FREQUENT_WEIGHT if word in _FREQUENT else 1.0 for word in words}
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    for first, second in itertools.pairwise(words):
        pair = f"{first} {second}"
        weights[pair] = weights[first] * (weights[second] / 2)
        counts[pair] = counts.get(pair, 0) + 1
    for feature, count in counts.items():
        yield feature, weights[feature] * (1 + math.log(count)) if count > 1 else weights[feature]


TABLE = pathlib.Path(__file__).parent / "wordllama"
"""`pieces.txt`, one a line; `rows.npy`, int8[pieces, dimension], times `scales.npy`, float16[pieces]."""
FILES = ("pieces.txt", "rows.npy", "scales.npy")
DIMENSION = 256
START = "▁"
"""Stands before the first letter of a word."""
_MAX_WORDS = 1 << 12
_MAX_LETTERS = 64
"""Longest word that is cut up; longer ones are no words, and the work grows with the square."""


class StaticEmbedder:
    """Sums of word vectors; the same in every process.

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
        """Return unit vectors float32[n, dimension]; zeros for a text without words."""
        texts = texts_to_embed(texts)
        rows = np.zeros((len(texts), DIMENSION), np.float32)
        word = _table(self._folder).word
        for row, text in zip(rows, texts):
            _native.vectors.add_and_scale(row, [word(one) for one in words_of(text)])
        return rows


def default_embedder() -> Embedder:
    """Return word vectors where their table is installed, else the lexical embedder."""
    return StaticEmbedder() if all((TABLE / name).is_file() for name in FILES) else LexicalEmbedder()


@functools.cache
def latin_words() -> tuple[str, ...]:
    """Return words of three to ten letters that have vectors."""
    return tuple(piece[1:] for piece in _table(TABLE).rank if re.fullmatch(f"{START}[a-z]{{3,10}}", piece))


@functools.cache
def _table(folder: pathlib.Path) -> _Table:
    return _Table(folder)


class _Table:
    """The pieces and their rows."""

    def __init__(self, folder: pathlib.Path):
        pieces = (folder / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
        self.rank = {piece: rank for rank, piece in enumerate(pieces)}
        self._rows = np.asarray(np.load(folder / "rows.npy", mmap_mode="r"))  # whose rows are taken faster
        self._scales = np.load(folder / "scales.npy").astype(np.float32)
        if self._rows.shape != (len(pieces), DIMENSION) or self._scales.shape != (len(pieces),):
            raise InvalidInputError(
                f"{folder}: expected int8[{len(pieces)}, {DIMENSION}] and a scale for each row, got "
                f"{list(self._rows.shape)} and {list(self._scales.shape)}; install the package again"
            )
        self.word = functools.lru_cache(_MAX_WORDS)(self._word)

    def _word(self, word: str) -> np.ndarray:
        if (number := self.rank.get(START + word)) is not None and len(word) <= _MAX_LETTERS:
            return np.asarray(self._rows[number] * self._scales[number])  # most words: no cut has another end
        numbers = [self.rank[piece] for piece in self.pieces(word) if piece in self.rank]
        if not numbers:
            return np.zeros(DIMENSION, np.float32)
        rows = self._rows[numbers] * self._scales[numbers, None]
        return np.asarray(rows.sum(axis=0) / np.float32(len(numbers)))

    def pieces(self, word: str) -> list[str]:
        """Cut a normal word up into pieces.

        The two neighbours whose join is the earliest piece are joined, until none is one.
        """
        parts, rank = [START, *word[:_MAX_LETTERS]], self.rank
        while len(parts) > 1:
            joins = [rank.get(one + two, len(rank)) for one, two in itertools.pairwise(parts)]
            best = min(joins)
            if best == len(rank):
                break
            at = joins.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts


class CachedEmbedder:
    """An embedder that embeds each text once and keeps all vectors.

    Not for texts that users may want forgotten.

    Attributes:
        name: the embedder's.
        is_model: whether it is a trained model rather than the lexical embedder.
    """

    def __init__(self, embedder: Embedder):
        self.name = embedder.name
        self.is_model = not isinstance(embedder, LexicalEmbedder)
        self._embedder = embedder
        self._kept: dict[str, np.ndarray] = {}

    @property
    def judge(self) -> Judge | None:
        """The embedder's; None without one."""
        return getattr(self._embedder, "judge", None)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[n, d], one row per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new or not texts:
            groups = [[text] for text in new] if self.is_model and 1 < len(new) < _FEW else [new]
            vectors = np.concatenate([self._embedder.embed(group) for group in groups])
            self._kept.update(zip(new, vectors))
        return np.stack([self._kept[text] for text in texts]) if texts else vectors
