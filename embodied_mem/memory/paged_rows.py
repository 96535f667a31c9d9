"""Copy-on-write rows of numbers: forks share pages until one of them writes.

rows = PagedRows(3)
rows.lengthen(1, (0, 0, 0))
rows.set(0, 2, 5); rows[0]             # [0, 0, 5]
other = rows.fork()                    # the list of pages is copied, no page
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..errors import InvalidInputError
from ..native import part

_native = part("memory")
PAGE = 2048
_TYPE = np.dtype("<i8")
_FEW = 4  # rows that are written one number at a time, which is faster


class PagedRows:
    """int64[n, width], stored by column within a page. A page that this object may not own alone is copied first."""

    def __init__(self, width: int):
        self.width = width
        self._count = 0
        self._pages: list[np.ndarray] = []  # int64[width, PAGE] each
        self._views: list[memoryview] = []  # of the pages: single numbers are read and written faster through them
        self._own: set[int] = set()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> list[int]:
        view, position = self._views[row // PAGE], row % PAGE
        return [view[column, position] for column in range(self.width)]

    def get(self, row: int, column: int) -> int:
        return self._views[row // PAGE][column, row % PAGE]

    def lengthen(self, count: int, row: Sequence[int]) -> None:
        """Add rows like this one at the end, until there are `count`."""
        if count <= self._count:
            return
        if count - self._count <= _FEW and (count - 1) // PAGE == (len(self._pages) - 1):
            view = self._writable(len(self._pages) - 1)
            for position in range(self._count % PAGE, (count - 1) % PAGE + 1):
                for number, value in enumerate(row):
                    view[number, position] = value
            self._count = count
            return
        column = np.array(row, _TYPE)[:, None]
        while self._count < count:
            page = self._count // PAGE
            if page == len(self._pages):
                self._add_page(np.zeros((self.width, PAGE), _TYPE))
            self._writable(page)
            end = min(count, (page + 1) * PAGE)
            self._pages[page][:, self._count - page * PAGE : end - page * PAGE] = column
            self._count = end

    def put(self, row: int, values: Sequence[int]) -> None:
        """Replace a row, or its first numbers."""
        view, position = self._writable(row // PAGE), row % PAGE
        for column, value in enumerate(values):
            view[column, position] = value

    def put_all(self, rows: Sequence[int], values: Sequence[int]) -> None:
        """Put the same numbers into several rows, as `put`."""
        columns, own = [*enumerate(values)], self._own
        for row in rows:
            number, position = row // PAGE, row % PAGE
            view = self._views[number] if number in own else self._writable(number)
            for column, value in columns:
                view[column, position] = value

    def set_many(self, numbers: Sequence[int], columns: Mapping[int, Sequence[int]]) -> None:
        """Replace columns of several rows; of a repeated row the last counts."""
        pages = {number // PAGE for number in numbers}
        for page in pages:
            self._writable(page)
        if len(numbers) > _FEW and len(pages) == 1 and [*range(numbers[0], numbers[0] + len(numbers))] == numbers:
            (page,), first = pages, numbers[0] % PAGE
            for column, values in columns.items():  # rows one after the other, as new ones are
                self._pages[page][column, first : first + len(numbers)] = values
            return
        views = self._views
        for column, values in columns.items():
            for number, value in zip(numbers, values):
                views[number // PAGE][column, number % PAGE] = value

    def set(self, row: int, column: int, value: int) -> None:
        """Replace one number."""
        self._writable(row // PAGE)[column, row % PAGE] = value

    def _add_page(self, page: np.ndarray) -> None:
        self._own.add(len(self._pages))
        self._pages.append(page)
        self._views.append(page.data)

    def _writable(self, number: int) -> memoryview:
        if number not in self._own:
            self._pages[number] = self._pages[number].copy()
            self._views[number] = self._pages[number].data
            self._own.add(number)
        return self._views[number]

    def page(self, number: int) -> tuple[int, np.ndarray]:
        """(number of its first row, int64[width, n]) of a page, to read."""
        first = number * PAGE
        return first, self._pages[number][:, : self._count - first]

    def where(self, page: int, column: int, value: int, other: int) -> tuple[list[int], list[int]]:
        """Return a page's rows with a column's value, and another column's values."""
        first = page * PAGE
        found, values = _native.where(self._pages[page], min(self._count - first, PAGE), column, value, other)
        return [row + first for row in found], values

    def pages(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each page, as `page` returns it."""
        return map(self.page, range(len(self._pages)))

    def column(self, column: int) -> np.ndarray:
        """int64[n], a copy."""
        return np.concatenate([np.zeros(0, _TYPE), *(page[column] for _, page in self.pages())])

    def set_column(self, column: int, values: np.ndarray) -> None:
        """Replace a column where it differs."""
        for first, page in self.pages():
            new = values[first : first + page.shape[1]]
            if not np.array_equal(page[column], new):
                self._writable(first // PAGE)
                self._pages[first // PAGE][column, : len(new)] = new

    def check(self, column: int, least: int, most: int) -> None:
        """Raise InvalidInputError unless all numbers of a column are in this range."""
        values = self.column(column)
        if len(values) and not (values.min() >= least and values.max() <= most):
            raise InvalidInputError(f"state: expected numbers from {least} to {most} in the rows; it is damaged")

    def fork(self) -> PagedRows:
        """Return an independent copy, made page by page at first writes."""
        other = PagedRows(self.width)
        other._count, other._pages, other._views = self._count, list(self._pages), list(self._views)
        self._own = set()
        return other

    def to_bytes(self) -> bytes:
        """Write all numbers, row by row, little-endian."""
        return b"".join(np.ascontiguousarray(page.T).tobytes() for _, page in self.pages())

    @classmethod
    def from_bytes(cls, data: bytes, width: int) -> PagedRows:
        """Read the rows of `to_bytes`. Raises InvalidInputError for other lengths."""
        if len(data) % (width * _TYPE.itemsize):
            raise InvalidInputError(f"rows: expected a multiple of {width * _TYPE.itemsize} bytes, got {len(data)}")
        values = np.frombuffer(data, _TYPE).reshape(-1, width)
        rows = cls(width)
        rows._count = len(values)
        for first in range(0, len(values), PAGE):
            page = np.zeros((width, PAGE), _TYPE)
            part = values[first : first + PAGE]
            page[:, : len(part)] = part.T
            rows._add_page(page)
        return rows


class Words:
    """Numbers for words; a word that is not used any more leaves its number empty."""

    def __init__(self, words: Iterable[str | None] = ()):
        self.words = list(words)
        self._codes = {word: code for code, word in enumerate(self.words) if word is not None}

    def find(self, word: str) -> int | None:
        return self._codes.get(word)

    def code(self, word: str) -> int:
        code = self._codes.get(word)
        if code is None:
            code = self._codes[word] = len(self.words)
            self.words.append(word)
        return code

    def only(self, used: np.ndarray) -> Words:
        """Return the same with only the words of these numbers."""
        kept = set(used.tolist())
        return Words(word if code in kept else None for code, word in enumerate(self.words))
