"""Rows in pages against plain lists, through any sequence of writes and forks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import paged_rows
from embodied_mem.memory.paged_rows import PagedRows

numbers = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    monkeypatch.setattr(paged_rows, "PAGE", 7)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["lengthen", "lengthen", "put", "set", "many", "all", "column", "fork", "bytes"]),
            st.integers(0, 99),
            numbers,
            numbers,
        ),
        max_size=40,
    )
)
def test_rows_equal_lists(script):
    kept: list[tuple[PagedRows, list[list[int]]]] = [(PagedRows(2), [])]
    for what, which, a, b in script:
        rows, model = kept[which % len(kept)]
        row = which % max(len(model), 1)
        if what == "lengthen":
            count = len(model) + which % 8 - 1  # over several pages, and to less than there is
            rows.lengthen(count, (a, b))
            model.extend([a, b] for _ in range(count - len(model)))
        elif what == "fork":
            kept.append((rows.fork(), [list(values) for values in model]))
        elif what == "bytes":
            kept.append((PagedRows.from_bytes(rows.to_bytes(), 2), [list(values) for values in model]))
        elif model and what == "put":
            rows.put(row, (a, b))
            model[row] = [a, b]
        elif model and what == "set":
            rows.set(row, which % 2, a)
            model[row][which % 2] = a
        elif model and what == "many":
            chosen = [(which * i) % len(model) for i in range(1, 6)]
            if which % 3 == 0 and len(model) >= 5:
                chosen = [*range(len(model) - 5, len(model))]
            rows.set_many(chosen, {0: [a, b, a, b, 7], 1: [b, a, 3, b, a]})
            for number, first, second in zip(chosen, [a, b, a, b, 7], [b, a, 3, b, a]):
                model[number] = [first, second]
        elif model and what == "all":
            chosen = [(which * i) % len(model) for i in range(1, 6)]
            rows.put_all(chosen, (a,) if which % 2 else (a, b))
            for number in chosen:
                model[number] = [a, model[number][1] if which % 2 else b]
        elif model and what == "column":
            values = rows.column(1)
            values[row] = b
            rows.set_column(1, values)
            model[row][1] = b
    for rows, model in kept:
        assert [rows[i] for i in range(len(rows))] == model
        assert rows.column(0).tolist() == [values[0] for values in model]
        assert rows.to_bytes() == np.array(model, "<i8").tobytes()
        for value in {values[0] for values in model}:
            found = [rows.where(page, 0, value, 1) for page in range(-(-len(model) // 7))]
            expected = [(number, other) for number, (first, other) in enumerate(model) if first == value]
            assert [pair for one in found for pair in zip(*one)] == expected
        assert [first for first, _ in rows.pages()] == list(range(0, len(model), 7))


def test_bytes_that_are_cut():
    rows = PagedRows(2)
    rows.lengthen(1, (2, 2))
    with pytest.raises(InvalidInputError, match="multiple of 16 bytes, got 15"):
        PagedRows.from_bytes(rows.to_bytes()[:-1], 2)


def test_a_fork_copies_only_pages_with_rows_that_it_sets():
    rows = PagedRows(1)
    rows.lengthen(28, (0,))
    other = rows.fork()
    other.set_many([1, 22], {0: [5, 6]})
    shared = [one is another for one, another in zip(rows._pages, other._pages)]
    assert shared == [False, True, True, False]
