"""The inverted index against BM25 computed text by text, while texts come, grow, shrink and go."""

from __future__ import annotations

import math
import random

import pytest

from embodied_mem.memory import search
from embodied_mem.memory.search import K1, B, WordIndex

WORDS = ["mug", "cup", "desk", "red", "blue", "old", "key", "door"]


def by_formula(texts: dict[int, list[str]], query: list[str]) -> dict[int, float]:
    def weight(word):
        having = sum(word in text for text in texts.values())
        return math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))

    mean = sum(map(len, texts.values())) / len(texts)
    whole = sum(map(weight, query))
    scores = {}
    for number, text in texts.items():
        parts = [
            weight(word) / whole * count / (count + K1 * (1 - B + B * len(text) / mean))
            for word in query
            if (count := text.count(word))
        ]
        if parts:
            scores[number] = sum(parts)
    return scores


@pytest.mark.parametrize("seed", range(5))
def test_it_scores_as_the_formula_does(seed):
    rng = random.Random(seed)
    index, texts = WordIndex(), {}
    for number in range(60):
        index.add(number, texts.setdefault(number, rng.choices(WORDS, k=rng.randint(1, 9))))
    fork, before = index.fork(), {number: list(text) for number, text in texts.items()}
    for number in range(0, 60, 3):
        more = rng.choices(WORDS, k=3)
        index.extend(number, more)
        texts[number] += more
    for number in range(0, 60, 5):
        index.reduce(number, gone := texts[number][:2])
        texts[number] = texts[number][len(gone) :]
    for number in [number for number, text in texts.items() if not text or number % 7 == 0]:
        if texts.pop(number):
            index.remove(number)
    for query in (["mug"], ["red", "door", "lamp"], WORDS):
        assert index.search(query) == pytest.approx(by_formula(texts, query))
        assert fork.search(query) == pytest.approx(by_formula(before, query))
    assert index.with_all(["mug", "red"]) == {n for n, text in texts.items() if {"mug", "red"} <= set(text)}
    assert (len(index), index.search([]), index.search(["lamp"]), index.with_all([])) == (len(texts), {}, {}, set())


def test_a_common_word_adds_to_what_rarer_ones_find(monkeypatch):
    monkeypatch.setattr(search, "COMMON", 3)
    index, texts = WordIndex(), {number: ["mug", "key"] if number == 4 else ["mug"] for number in range(9)}
    for number, words in texts.items():
        index.add(number, words)
    assert index.search(["mug", "key"]) == pytest.approx({4: by_formula(texts, ["mug", "key"])[4]})
    assert len(index.search(["mug"])) == 9
