"""TextIndex search against a plain matrix of all texts, through any sequence of additions and removals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.memory.embedders import LexicalEmbedder
from embodied_mem.memory.search import TextIndex

WORDS = ["mug", "apple", "fridge", "clean", "hot", "shelf", "desk"]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


class Dense:
    """An embedder whose vectors have no zeros."""

    name = "dense"

    def embed(self, texts):
        rows = np.stack([np.random.default_rng(len(text)).normal(size=24) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("embedder", [LexicalEmbedder(256), Dense()], ids=["lexical", "dense"])
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.none() | texts), max_size=60), texts, st.integers(0, 12))
def test_search_is_exact(embedder, script, query, k):
    index, model = TextIndex(embedder), {}
    for number, text in script:
        if text is not None:
            index.add(number, text)
            model[number] = text
        elif number in model:
            index.remove(number)
            del model[number]
    found = index.search(query, k)
    assert len(index) == len(model)
    assert len(found) == min(k, len(model))
    if not found:
        return
    vector = embedder.embed([query])[0]
    cosines = {number: float(embedder.embed([text])[0] @ vector) for number, text in model.items()}
    for number, score in found:
        assert score == pytest.approx(cosines[number], abs=1e-5)
    rest = set(cosines) - {number for number, _ in found}
    worst = min(score for _, score in found)
    assert all(cosines[number] <= worst + 1e-5 for number in rest)
    same = TextIndex(embedder)
    same.add_many(model.items())
    assert [score for _, score in same.search(query, k)] == pytest.approx([score for _, score in found], abs=1e-5)


def test_only_what_is_above_a_limit_is_found():
    index = TextIndex(LexicalEmbedder())
    index.add_many([(1, "mug"), (2, "pen"), (3, "mug pen"), (4, "mug")])
    assert [number for number, _ in index.search("mug", 4, above=0.0)] == [1, 4, 3]
    assert [number for number, _ in index.search("mug", 1, above=0.0)] == [1]
    assert [number for number, _ in index.search("mug", 4, above=0.9)] == [1, 4]
    assert index.search("mug", 4, above=1.5) == []


def test_ties_go_to_the_lower_id():
    index = TextIndex(LexicalEmbedder())
    index.add_many([(9, "mug"), (3, "mug"), (5, "mug"), (4, "pen")])
    assert [number for number, _ in index.search("mug", 2)] == [3, 5]
    index.remove(3)
    assert [number for number, _ in index.search("mug", 2)] == [5, 9]
    index.remove(4)
    assert not index._blocks[:, :, 1:].any()


def test_equal_texts_are_compared_once():
    index = TextIndex(LexicalEmbedder())
    index.add_many((number, WORDS[number % 3]) for number in range(99))
    index.add_many([(0, "pen"), (1, "mug")])  # of "mug" and "apple"
    fork = index.fork()
    fork.add(2, "pen")
    assert index._blocks.shape[0] == 1  # of 16 texts
    assert [number for number, _ in index.search("mug apple pen", 99)[:3]] == [0, 1, 3]
    assert [number for number, _ in fork.search("pen", 99)] == [0, 2, *(n for n in range(99) if n not in (0, 2))]
    assert len(index.search("pen", 98)) == 98
