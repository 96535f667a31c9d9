"""Similarity search against a plain matrix of all texts, through any sequence of additions and removals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.memory.lexical import LexicalEmbedder
from embodied_mem.memory.similarity import Similarity

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
    similarity, model = Similarity(embedder), {}
    for number, text in script:
        if text is not None:
            similarity.add(number, text)
            model[number] = text
        elif number in model:
            similarity.remove(number)
            del model[number]
    found = similarity.search(query, k)
    assert len(similarity) == len(model)
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
    same = Similarity(embedder)
    same.add_many(model.items())
    assert [score for _, score in same.search(query, k)] == pytest.approx([score for _, score in found], abs=1e-5)


@pytest.mark.parametrize("embedder", [LexicalEmbedder(), Dense()], ids=["lexical", "dense"])
def test_the_best_of_many_are_those_of_a_full_sort(embedder):
    rng = np.random.default_rng(0)
    similarity = Similarity(embedder)
    similarity.add_many((int(n), " ".join(rng.choice(WORDS, rng.integers(1, 8)))) for n in rng.permutation(1500))
    for query in ("mug", "hot apple shelf", "no such words"):
        ranked = sorted(similarity.search(query, 1500), key=lambda found: (-found[1], found[0]))
        for k in (1, 12, 64, 65):
            assert similarity.search(query, k) == ranked[:k]


def test_ties_go_to_the_lower_id():
    similarity = Similarity(LexicalEmbedder())
    similarity.add_many([(9, "mug"), (3, "mug"), (5, "mug"), (4, "pen")])
    assert [number for number, _ in similarity.search("mug", 2)] == [3, 5]
    similarity.remove(3)
    assert [number for number, _ in similarity.search("mug", 2)] == [5, 9]
    assert not similarity._vectors[:, len(similarity) :].any()
