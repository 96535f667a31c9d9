"""The blind corrections: the file is the sealed one and says what its scorer reads; a memory of two statements."""

from __future__ import annotations

import pytest

from embodied_mem.errors import InvalidInputError
from experiments.dialogues import corrections


def test_the_sealed_items_are_whole():
    items = corrections.items()
    assert [item["id"] for item in items] == list(range(1, 351))
    for item in items:
        texts = [row["text"].lower() for row in item["said"]]
        assert sum(all(word in text for word in item["first_must_contain"]) for text in texts) == 1
        assert {item["first_must_not_be"], *item["still_true"]} <= set(range(len(texts)))


def test_another_file_is_refused(monkeypatch, tmp_path):
    other = tmp_path / "corrections_blind.jsonl"
    other.write_bytes(corrections.ITEMS.read_bytes() + b"\n")
    monkeypatch.setattr(corrections, "ITEMS", other)
    with pytest.raises(InvalidInputError, match="sealed"):
        corrections.items()


def test_an_item_is_told_asked_and_scored():
    item = {
        "asker": "Ann",
        "said": [
            {"speaker": "Ann", "text": "The spare key hangs in the hall."},
            {"speaker": "Ben", "text": "We are out of butter."},
        ],
        "question": "Where is the spare key?",
        "first_must_contain": ["hall"],
        "first_must_not_be": 1,
        "still_true": [0, 1],
    }
    assert corrections.score(item) == {
        "first": 1.0,
        "first_three": 1.0,
        "old_first": 0.0,
        "old_ended": 0.0,
        "wrongly_ended": 0.0,
    }


def test_an_ended_statement_is_seen():
    item = {
        "asker": "Ann",
        "said": [{"speaker": "Ann", "text": "I like tea."}, {"speaker": "Ann", "text": "I don't like tea anymore."}],
        "question": "What about tea?",
        "first_must_contain": ["anymore"],
        "first_must_not_be": 0,
        "still_true": [0, 1],
    }
    scores = corrections.score(item)
    assert (scores["old_ended"], scores["wrongly_ended"]) == (1.0, 0.5)
