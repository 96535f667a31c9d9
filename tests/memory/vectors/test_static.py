"""Word vectors: pieces as WordLlama's own tokenizer cuts them, sums by hand, what happens without the table."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.memory import LexicalEmbedder, LifelongMemory, StaticEmbedder, embedders
from embodied_mem.memory.search import QueryEmbedder

# Recorded with wordllama 0.4.0.post1: tokenizer.encode(word, add_special_tokens=False).tokens
PIECES = {
    "beagle": ["▁be", "agle"],
    "chewed": ["▁che", "wed"],
    "counselling": ["▁coun", "s", "elling"],
    "lighthouse": ["▁l", "ighth", "ouse"],
    "unbelievably": ["▁un", "bel", "iev", "ably"],
    "the": ["▁the"],
}
LENGTHS = {"dog": 15.45, "the": 1.58, "what": 6.93}
"""Of the token's float16 row there; 8 bits are off by less than 1 %."""


def table() -> embedders._Table:
    return embedders._table(embedders.TABLE)


def test_words_are_cut_as_the_original_cuts_them():
    assert {word: table().pieces(word) for word in PIECES} == PIECES


def test_a_word_that_is_a_piece_is_cut_nowhere():
    """So that its row is taken without a look at its letters."""
    words = [piece[1:] for piece in table().rank if piece.startswith(embedders.START) and len(piece) > 1]
    assert len(words) > 10_000
    assert [word for word in words if table().pieces(word) != [embedders.START + word]] == []


def test_rows_are_the_originals_in_8_bits():
    assert {word: np.linalg.norm(table().word(word)) for word in LENGTHS} == pytest.approx(LENGTHS, rel=0.01)


def test_a_text_is_the_sum_of_its_words_of_length_1():
    embedder = StaticEmbedder()
    vectors = embedder.embed(["The dog, the DOG!", "", "?!", "\ud800"])
    expected = 2 * table().word("the") + 2 * table().word("dog")
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), rtol=1e-5)
    assert not vectors[1:].any()
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, embedder.dimension)
    assert embedder.embed([]).shape == (0, embedder.dimension)


def test_a_paraphrase_is_nearer_than_another_matter():
    ill, vet, sink = StaticEmbedder().embed(["my dog is ill", "the puppy needs a vet", "put the mug in the sink"])
    assert ill @ vet > 0.3 > ill @ sink
    lexical = LexicalEmbedder().embed(["my dog is ill", "the puppy needs a vet"])
    assert abs(lexical[0] @ lexical[1]) < 0.1


def test_a_word_without_end_costs_no_more_than_a_long_one():
    one, other = (StaticEmbedder().embed(["x" * length])[0] for length in (embedders._MAX_LETTERS, 100_000))
    np.testing.assert_array_equal(one, other)


def test_one_text_is_refused():
    with pytest.raises(InvalidInputError, match=r"pass \[text\]"):
        StaticEmbedder().embed("text")


def test_the_table_is_read_with_the_first_text_only():
    program = (
        "from embodied_mem.memory import LifelongMemory; from embodied_mem.memory import embedders;"
        "memory = LifelongMemory(); made = embedders._table.cache_info().currsize;"
        "memory.tell('A dog.'); print(made, embedders._table.cache_info().currsize)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["0", "1"]


def test_without_the_table_the_lexical_embedder_is_the_default(tmp_path, monkeypatch):
    assert QueryEmbedder.of(None).name == "wordllama-256-1"
    monkeypatch.setattr(embedders, "TABLE", tmp_path)
    assert QueryEmbedder.of(None).name == LexicalEmbedder().name
    with pytest.raises(DataNotFoundError, match=r"pieces\.txt is not there"):
        StaticEmbedder()


class Model(LexicalEmbedder):
    def __init__(self):
        super().__init__()
        self.name = "model-1"


TOLD = ["My dog is ill.", "I take my pill after breakfast.", "The mug is a gift of my sister."]


def test_a_folder_of_another_embedder_opens_and_answers_as_a_new_one(tmp_path):
    fresh = LifelongMemory()
    for text in TOLD:
        fresh.tell(text)
    for embedder in (LexicalEmbedder(), Model()):
        folder = tmp_path / embedder.name
        with LifelongMemory.open(folder, embedder=embedder) as memory:
            for text in TOLD[:2]:
                memory.tell(text)
            memory.store.snapshot()
            memory.tell(TOLD[2])  # in the log, after the snapshot
        chosen = StaticEmbedder() if embedder.name == "model-1" else None
        for _ in range(2):  # the second time from a snapshot of the new embedder
            with LifelongMemory.open(folder, embedder=chosen) as memory:
                for asked in ("Which puppy needs a vet?", "present of a sibling"):
                    assert memory.retrieve(asked).items == fresh.retrieve(asked).items
                memory.store.snapshot()
    assert "dog" in fresh.retrieve("Which puppy needs a vet?").items[0].text
