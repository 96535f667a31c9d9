"""Search in texts that change: by similarity of vectors and by words.

    texts = TextIndex(LexicalEmbedder())
    texts.add(7, "mugs are found on countertops")
    texts.search("where is a mug", k=3)       # [(7, 0.4)]

    words = WordIndex()
    words.add(7, ["mug", "blue", "sister"])
    words.search(["mug"])                     # {7: 0.62}: the share of the query's weight that the text has, in [0, 1)

    asked = Asked("where is the blue mug?", weight)
    asked.share("mug 1 is on desk 1")         # 0.4: of the weight of the query's words, what the text has
    relevance(asked.share(text), cosine)      # in [0, 1]

Embedding a query costs more than comparing it with some hundred texts, so vectors of the last queries are kept, for all
memories that get the same `QueryEmbedder`. Vectors of a lexical embedder are mostly zeros: only the dimensions that the
query has are read, which is exact and, for a short query, some ten times less work. One thread compares: BLAS uses
several for this, which wait for each other for milliseconds where cores are shared.

Source of `WordIndex`: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
equations 3.15 to 3.17; divided by what a text of endless repetitions would get, so that scores of different queries can
be compared.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import itertools
import json
import math
import os
import pathlib
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, BinaryIO

import numpy as np

from .. import _native
from ..atomic_file import replacing
from ..errors import InvalidInputError
from ..forks import forking_lock
from .arguments import shown
from .embedders import Embedder, Judge, default_embedder
from .folder_events import VECTORS_NAME
from .words import content_words

_BUILT_IN = ("lexical-", "wordllama-")
"""Beginnings of names of this package's embedders."""
_OF_WORDS, _OF_WORDS_BESIDE_AN_ENCODER = 0.7, 0.6
"""Weight of shared words beside the cosine; an encoder reads more than words. Chosen on LoCoMo and BEAM."""
_MAX_QUERIES = 64
_LANES = 16
"""Columns that lie together in memory, dimension by dimension: a search reads them from the first to the last byte."""


class QueryEmbedder:
    """An embedder that survives failures and caches the last queries.

        embedder = QueryEmbedder.of(ServerEmbedder(...))
        embedder.embed(["a text"])            # zeros if the server is down: similar to nothing, found by its words

    Memories make vectors anew when they are opened, so texts that have none get one then. Any thread may ask.

    Attributes:
        name: the embedder's.
        failed: calls that raised something, or did not answer finite numbers, one row per text, as wide as before.
        last_error: the last reason; empty if there was none.
        share_of_words: weight of shared words beside the cosine, for `relevances`.
    """

    def __init__(self, embedder: Embedder):
        self.name = embedder.name
        self.failed, self.last_error = 0, ""
        self._is_built_in = self.name.startswith(_BUILT_IN)
        self.share_of_words = _OF_WORDS if self._is_built_in else _OF_WORDS_BESIDE_AN_ENCODER
        self._embedder = embedder
        self._lock = forking_lock()
        self._queries: dict[str, np.ndarray] = {}
        self._dimension: int | None = None
        self._file: VectorFile | None = None

    @classmethod
    def of(cls, embedder: Embedder | None) -> QueryEmbedder:
        """Return the default embedder for None. Raises InvalidInputError for no embedder."""
        if embedder is None:
            return cls(default_embedder())
        if not isinstance(getattr(embedder, "name", None), str) or not callable(getattr(embedder, "embed", None)):
            raise InvalidInputError(f"embedder: expected one with a name and embed(texts), got {shown(embedder)}")
        return embedder if isinstance(embedder, QueryEmbedder) else cls(embedder)

    @contextlib.contextmanager
    def vector_file(self, folder: Any, *, read_only: bool) -> Iterator[None]:
        """Keep vectors in a folder's file meanwhile, and take them from there.

        The embedders of this package need none: they are faster than the disk.
        """
        if self._is_built_in:
            yield
            return
        with VectorFile(folder, self.name, read_only) as self._file:
            try:
                yield
            finally:
                self._file = None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[n, d]; zeros where the embedder failed.

        d is 0 as long as it never answered.
        """
        return self._answer(texts) if self._file is None else self._file.embed(self._answer, texts)

    def _answer(self, texts: Sequence[str]) -> np.ndarray:
        rows = [row for text in texts if (row := self._queries.get(text)) is not None]
        if texts and len(rows) == len(texts):
            return np.stack(rows)
        try:
            vectors = np.asarray(self._embedder.embed(texts), np.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts) or not _native.vectors.are_finite(vectors):
                expected = f"finite float32[{len(texts)}, d]"
                raise InvalidInputError(f"embedder: expected {expected}, got shape {vectors.shape}")
            if self._dimension != vectors.shape[1]:
                with self._lock:
                    if self._dimension not in (None, vectors.shape[1]):
                        raise InvalidInputError(f"embedder: expected {self._dimension} columns, got {vectors.shape[1]}")
                    self._dimension = vectors.shape[1]
        except Exception as error:  # of the caller's client: no list of types would have them all
            with self._lock:
                self.failed, self.last_error = self.failed + 1, shown(error)
            return np.zeros((len(texts), self._dimension or 0), np.float32)
        return vectors

    def query(self, text: str) -> np.ndarray:
        """Return the vector of a query; the last ones are cached."""
        found = self._queries.get(text)
        if found is None:
            found = np.asarray(self._answer([text])[0])
            if not np.count_nonzero(found):
                return found  # of an embedder that failed, perhaps: it is asked again
            with self._lock:
                if len(self._queries) >= _MAX_QUERIES:
                    self._queries.pop(next(iter(self._queries)))
                self._queries[text] = found
        return found

    @property
    def has_judge(self) -> bool:
        """Return whether the embedder has a `Judge`."""
        return getattr(self._embedder, "judge", None) is not None

    def replacement_chances(self, new: str, olds: Sequence[str], distances: Sequence[int]) -> list[float] | None:
        """Ask the embedder's `judge`; None where it failed."""
        try:
            judge: Judge = self._embedder.judge  # type: ignore[attr-defined]
            chances = [float(chance) for chance in judge.chances(new, olds, distances)]
            if len(chances) != len(olds):
                raise InvalidInputError(f"judge: expected {len(olds)} chances, got {len(chances)}")
            return chances
        except Exception as error:  # as for `_answer`
            with self._lock:
                self.failed, self.last_error = self.failed + 1, shown(error)
            return None

    def clear(self) -> None:
        """Drop the vectors of past queries; their texts are the keys."""
        with self._lock:
            self._queries.clear()


class TextIndex:
    """Cosine similarity of a query to texts under ids; lower ids win ties."""

    def __init__(self, embedder: Embedder):
        self.embedder = QueryEmbedder.of(embedder)
        self._shared = False  # whether a fork has the same array
        self._texts: dict[int, str] = {}
        self._columns: dict[str, int] = {}
        self._in_columns: list[str] = []
        self._ids: list[list[int]] = []  # by column: who has the text, ascending
        self._blocks = np.zeros((0, 0, _LANES), np.float32)  # [column // _LANES, dimension, column % _LANES]

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, number: int, text: str) -> None:
        """Put a text under an id, in place of its old one."""
        self.add_many([(number, text)])

    def add_many(self, texts: Iterable[tuple[int, str]]) -> None:
        """Put texts under ids; new ones are embedded in one call."""
        pairs = dict(texts)
        if new := [text for text in dict.fromkeys(pairs.values()) if text not in self._columns]:
            self._append(new)
        changed = [number for number, text in pairs.items() if self._texts.get(number) != text]
        for number in changed:  # before the old ones are removed: what one loses another may get
            bisect.insort(self._ids[self._columns[pairs[number]]], number)
        for number in changed:
            if number in self._texts:
                self.remove(number)
            self._texts[number] = pairs[number]

    def _append(self, texts: Sequence[str]) -> None:
        """Make columns for texts that have none."""
        vectors = self.embedder.embed(texts)
        first, needed = len(self._ids), len(self._ids) + len(texts)
        num_blocks, dimension, _ = self._blocks.shape
        if not vectors.shape[1] and dimension:
            vectors = np.zeros((len(texts), dimension), np.float32)
        if needed > num_blocks * _LANES or vectors.shape[1] != dimension:
            grown = np.zeros((max(-(-needed // _LANES), 2 * num_blocks), vectors.shape[1], _LANES), np.float32)
            if dimension:  # else the embedder had not answered yet
                grown[:num_blocks] = self._blocks
            self._blocks, self._shared = grown, False
        self._unshare()
        for column, vector in enumerate(vectors, first):
            self._column(column)[:] = vector
        self._columns.update(zip(texts, range(first, needed)))
        self._in_columns += texts
        self._ids.extend([] for _ in texts)

    def remove(self, number: int) -> None:
        """Remove a text from an id; without other ids, from memory."""
        text = self._texts.pop(number)
        column, last = self._columns[text], len(self._ids) - 1
        self._ids[column].remove(number)
        if self._ids[column]:
            return
        self._unshare()
        del self._columns[text]
        moved, ids = self._in_columns.pop(), self._ids.pop()
        if column != last:  # the last one moves into its place
            self._columns[moved], self._in_columns[column], self._ids[column] = column, moved, ids
            self._column(column)[:] = self._column(last)
        self._column(last)[:] = 0

    def _column(self, number: int) -> np.ndarray:
        return self._blocks[number // _LANES, :, number % _LANES]

    def fork(self) -> TextIndex:
        """Return an independent copy; vectors are shared until one side writes."""
        other = TextIndex(self.embedder)
        other._texts, other._columns, other._blocks = dict(self._texts), dict(self._columns), self._blocks
        other._in_columns = list(self._in_columns)
        other._ids = [list(ids) for ids in self._ids]
        self._shared = other._shared = True
        return other

    def _unshare(self) -> None:
        if self._shared:
            self._blocks, self._shared = self._blocks.copy(), False

    def search(self, query: str, k: int, above: float = -math.inf) -> list[tuple[int, float]]:
        """Return the `k` best (id, cosine) above a limit, best first."""
        count = len(self._ids)
        if not count or k < 1:
            return []
        vector = self.embedder.query(query)
        if len(vector) != self._blocks.shape[1]:  # the embedder has not answered for one side
            return []
        columns, scores, worst, ties = _native.vectors.nearest_columns(self._blocks, count, vector, k, above)
        found = [(-score, number) for column, score in zip(columns, scores) for number in self._ids[column][:k]]
        found = sorted(found)[:k]
        if ties and (missing := k - len(found)):
            tied = [self._ids[column][:missing] for column in ties]
            found += [(-worst, number) for number in sorted(itertools.chain(*tied))[:missing]]
        return [(number, -score) for score, number in found]


K1, B = 1.2, 0.75
COMMON = 1024
"""Texts that have a word, from which on it is common."""


class WordIndex:
    """Texts as words under ids."""

    def __init__(self) -> None:
        self._words: dict[int, dict[str, int]] = {}
        self._lengths = np.zeros(0, np.int64)  # by id
        self._having: dict[str, dict[int, int]] = {}  # word -> id -> how often
        self._columns: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # of common words, until something changes
        self._total = 0

    def __len__(self) -> int:
        return len(self._words)

    def add(self, number: int, words: Iterable[str]) -> None:
        """Put words under an id, in place of those that it had."""
        if number in self._words:
            self.remove(number)
        self.extend(number, words)

    def recent(self, words: Iterable[str], most: int) -> Iterator[int]:
        """Yield the last ids with each word, those of rare words first."""
        rows = sorted((self._having[word] for word in words if word in self._having), key=len)
        return itertools.chain.from_iterable(itertools.islice(reversed(row), most) for row in rows)

    def extend(self, number: int, words: Iterable[str]) -> None:
        """Add words to those that an id has, if it has any."""
        counts = self._words.setdefault(number, {})
        self._columns.clear()
        length = 0
        for word in words:
            counts[word] = counts.get(word, 0) + 1
            if (having := self._having.get(word)) is None:
                having = self._having[word] = {}
            having[number] = having.get(number, 0) + 1
            length += 1
        if number >= len(self._lengths):
            self._lengths = np.concatenate([self._lengths, np.zeros(number + 1, np.int64)])
        self._lengths[number] += length
        self._total += length

    def reduce(self, number: int, words: Iterable[str]) -> None:
        """Take words away that an id got; without any it is gone."""
        counts = Counter(self._words[number]) - Counter(words)
        self.remove(number)
        if counts:
            self.extend(number, counts.elements())

    def remove(self, number: int) -> None:
        """Take an id and its words away."""
        self._columns.clear()
        for word in self._words.pop(number):
            having = self._having[word]
            del having[number]
            if not having:
                del self._having[word]
        self._total -= int(self._lengths[number])
        self._lengths[number] = 0

    def with_all(self, words: Sequence[str], among: Set[int] | None = None) -> set[int]:
        """Return ids of texts, some or all, that have all words."""
        rows: list[Collection[int]] = [self._having.get(word, {}) for word in words]
        if rows and among is not None:
            rows.append(among)
        rows.sort(key=len)
        numbers = set(rows[0] if rows else ())
        for row in rows[1:]:  # Python would go through the longer one
            numbers = set(filter(row.__contains__, numbers))
        return numbers

    def words_of(self, number: int) -> Set[str]:
        """Return the words of a text."""
        return self._words[number].keys()

    def have(self, numbers: Sequence[int], word: str) -> np.ndarray:
        """Return bool[n]: has the text of each id this word?"""
        return np.fromiter(map(self._having.get(word, {}).__contains__, numbers), np.bool_, len(numbers))

    def weight(self, word: str) -> float:
        """Return the BM25 weight of a word.

        It is ln(1 + (N - n + 0.5) / (n + 0.5)) if n texts among N have the word.
        """
        having = len(self._having.get(word, ()))
        return math.log(1 + (len(self._words) - having + 0.5) / (having + 0.5))

    def search(self, query: Mapping[str, float] | Iterable[str]) -> dict[int, float]:
        """Return id -> score of the texts in a `ranking`."""
        numbers, scores = self.ranking(query)
        return dict(zip(numbers.tolist(), scores.tolist()))

    def ranking(self, query: Mapping[str, float] | Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return int64[n], ids of texts with these words, and float64[n], their scores.

        A word that more than `COMMON` texts have finds none that the query's rarer words have not found, if they found
        any: so what a question costs does not grow with all that was ever said.
        """
        asked = dict(query) if isinstance(query, Mapping) else dict.fromkeys(query, 1.0)
        weights = {word: given * self.weight(word) for word, given in asked.items()}
        whole = sum(weights.values())
        if not whole or not self._words:
            return np.zeros(0, np.int64), np.zeros(0)
        mean = max(self._total / len(self._words), 1.0)
        scores, ids = np.zeros(len(self._lengths)), np.zeros(0, np.int64)
        rows = [(word, self._having[word], weight / whole) for word, weight in weights.items() if word in self._having]
        for word, having, share in sorted(rows, key=lambda row: len(row[1])):
            if len(ids) and len(having) > COMMON:
                counts = np.fromiter(map(having.get, ids.tolist(), itertools.repeat(0)), np.int64, len(ids))
                numbers, counts = ids[counts > 0], counts[counts > 0]
            else:
                if (columns := self._columns.get(word)) is None:
                    numbers, counts = (np.fromiter(its, np.int64, len(having)) for its in (having, having.values()))
                    columns = numbers, counts
                    if len(having) > COMMON:
                        self._columns[word] = columns
                numbers, counts = columns
                ids = np.concatenate([ids, numbers[scores[numbers] == 0]])
            scores[numbers] += share * counts / (counts + K1 * (1 - B + B * self._lengths[numbers] / mean))
        return ids, scores[ids]

    def fork(self) -> WordIndex:
        """Return an independent copy."""
        other = WordIndex()
        other._words = {number: dict(counts) for number, counts in self._words.items()}
        other._lengths, other._total = self._lengths.copy(), self._total
        other._having = {word: dict(having) for word, having in self._having.items()}
        return other


PART = 64
"""Texts that are embedded and written at once."""
_DIGEST_BYTES = 16


class VectorFile:
    """Vectors of a folder's texts, so that opening it goes on after a kill.

        with VectorFile("memory/ann", "my model") as file:
            file.embed(model.embed, texts)       # only new texts are embedded, and written in parts

    Only texts that are remembered are in it, by a digest, while the folder is opened; `MemoryStore.forget` removes it.
    It can be lost at any moment: then the texts are embedded anew. So a disk that fails is no error. One writer opens
    it, at the first use, and begins it anew for another embedder. Format: docs/formats.md.
    """

    def __init__(self, folder: str | os.PathLike[str], embedder: str, read_only: bool = False):
        self._folder, self._read_only = folder, read_only
        self._header = (
            json.dumps({"format": "embodied_mem.vectors", "version": 1, "embedder": embedder}).encode() + b"\n"
        )
        self._rows: dict[bytes, np.ndarray] | None = None
        self._used: set[bytes] = set()
        self._file: BinaryIO | None = None

    def embed(self, embed: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> np.ndarray:
        """Return float32[n, d] of texts, from the file or from `embed`."""
        keys = [hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest() for t in texts]
        rows = self._read()
        self._used.update(keys)
        new = [(key, text) for key, text in dict(zip(keys, texts)).items() if key not in rows]
        failed: dict[bytes, np.ndarray] = {}
        for first in range(0, len(new), PART):
            part = new[first : first + PART]
            vectors = np.ascontiguousarray(embed([text for _, text in part]), np.float32)
            if vectors.shape[1] and any(len(row) != vectors.shape[1] for row in rows.values()):
                rows.clear()  # another model by the same name
                self._begin()
                return self.embed(embed, texts)
            found = {key: vector for (key, _), vector in zip(part, vectors)}
            answered = {key: vector for key, vector in found.items() if vector.any()}
            failed |= {key: vector for key, vector in found.items() if key not in answered}
            rows |= answered
            if self._file is not None:
                try:
                    self._file.write(_packed(answered))
                except OSError:
                    self._file.close()
                    self._file = None
        width = max((len(rows[key]) for key in keys if key in rows), default=max(map(len, failed.values()), default=0))
        nothing = np.zeros(width, np.float32)
        return np.stack([rows.get(key, nothing) for key in keys]) if keys else embed(texts)

    def _read(self) -> dict[bytes, np.ndarray]:
        """Return the rows of this embedder; a torn end is cut off."""
        if self._rows is None:
            self._path = pathlib.Path(self._folder) / VECTORS_NAME  # that it is one, the store has found out by now
            try:
                data = self._path.read_bytes()
            except OSError:
                data = b""
            if data.startswith(self._header):
                self._rows, end = _rows_of(data, len(self._header))
                self._begin(end)
            else:
                self._rows = {}
                self._begin()
        return self._rows

    def _begin(self, end: int = 0) -> None:
        """Open the file behind its first rows; anew for none."""
        if self._read_only:
            return
        if self._file is not None:
            self._file.close()
        try:
            self._file = self._path.open("r+b" if end else "wb", buffering=0)
            if end:
                self._file.truncate(end)
                self._file.seek(end)
            else:
                self._file.write(self._header)
        except OSError:
            self._file = None

    def __enter__(self) -> VectorFile:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file; write it anew if most of it is unused."""
        if self._file is None or self._rows is None:
            return
        self._file.close()
        self._file = None
        used = {key: row for key, row in self._rows.items() if key in self._used}
        if len(self._rows) > 2 * len(used) + PART and self._path.exists():
            with replacing(self._path) as temporary:
                temporary.write_bytes(self._header + _packed(used))


def _packed(rows: Mapping[bytes, np.ndarray]) -> bytes:
    parts = (key + len(row).to_bytes(4, "little") + row.astype("<f4").tobytes() for key, row in rows.items())
    return b"".join(part + zlib.crc32(part).to_bytes(4, "little") for part in parts)


def _rows_of(data: bytes, start: int) -> tuple[dict[bytes, np.ndarray], int]:
    """Return the whole rows from a position on, and their end."""
    rows: dict[bytes, np.ndarray] = {}
    while True:
        width_at = start + _DIGEST_BYTES
        end = width_at + 4 + 4 * int.from_bytes(data[width_at : width_at + 4], "little")
        if end + 4 > len(data) or zlib.crc32(data[start:end]) != int.from_bytes(data[end : end + 4], "little"):
            return rows, start
        rows[data[start:width_at]] = np.frombuffer(data[width_at + 4 : end], "<f4").astype(np.float32)
        start = end + 4


SIMILAR = 0.1
"""Cosine from which on two texts may have something to do with each other.

Of unrelated pairs among twenty sentences nine of ten are below 0.112 with static vectors and 0.174 with lexical ones.
"""


def relevance(share: float, cosine: float) -> float:
    """0.7 * share + 0.3 * cosine, in [0, 1].

    Args:
        share: of the weight of the query's words, what the text has, in [0, 1].
        cosine: of query and text; below 0 counts as 0.
    """
    return _OF_WORDS * share + (1 - _OF_WORDS) * (0.0 if cosine < 0 else 1.0 if cosine > 1 else cosine)


def relevances(shares: np.ndarray, cosines: np.ndarray, share_of_words: float = _OF_WORDS) -> np.ndarray:
    """Score many texts as `relevance` does one."""
    return np.asarray(share_of_words * shares + (1 - share_of_words) * np.clip(cosines, 0.0, 1.0))


def squashed(scores: np.ndarray) -> np.ndarray:
    """Bring sums of scores to [0, 1).

    They stay the same up to a half; beyond it they are 1 - 1 / (4 score), so that none become equal.
    """
    return np.asarray(np.where(scores <= 0.5, scores, 1 - 0.25 / np.maximum(scores, 0.5)))


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return positions of the largest values, best first, ties by position."""
    at = np.arange(len(values))
    if len(values) > count:
        at = (values >= np.partition(values, -count)[-count]).nonzero()[0]
    return at[np.argsort(-values[at], kind="stable")][:count]


def sorted_union(some: np.ndarray, others: np.ndarray, size: int) -> np.ndarray:
    """Unite two arrays of numbers below `size`, faster than `np.union1d`."""
    is_there = np.zeros(size, np.bool_)
    is_there[some] = is_there[others] = True
    return is_there.nonzero()[0]


class Asked:
    """The words of a query, each with its weight."""

    def __init__(self, query: str, weight: Callable[[str], float]):
        """Take a query; `weight` says how much a stem tells."""
        self.weights = {word: weight(word) for word in dict.fromkeys(content_words(query))}
        self._whole = sum(self.weights.values())

    def share(self, text: str) -> float:
        """Return the share of the query's word weight in a text."""
        return self.share_of(set(content_words(text))) if self._whole else 0.0

    def share_of(self, words: Container[str]) -> float:
        """Return the share of the weight that is of these words."""
        return sum(weight for word, weight in self.weights.items() if word in words) / (self._whole or 1.0)
