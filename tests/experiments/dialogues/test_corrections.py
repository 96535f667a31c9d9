"""The blind corrections: the file is the sealed one and says what its scorer reads; a memory of two statements.

The natural ones: each line is an item of one half, and other statements leave right and wrong where they were.
"""

from __future__ import annotations

import random

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


def test_natural_items_are_in_one_half_each_and_keep_their_statements_in_company():
    halves = {half: corrections.natural_items(half) for half in corrections.HALVES}
    its = [item for half in halves.values() for item in half]
    assert len(set(map(str, its))) == len(its) == sum(" | " in line for line in _lines()) - len(corrections.chats())
    assert sum(item.is_correction for item in its) >= 250
    assert sum(not item.is_correction for item in its) >= 120
    for half, items in halves.items():
        assert min(len(items), len(its) - len(items)) > 300, half
        for item in items:
            assert item.question.endswith("?")
            assert (item.wrong < item.right) == item.is_correction
            one = item.among(items, random.Random(1))
            assert [one.turns[one.right], one.turns[one.wrong]] == [item.turns[item.right], item.turns[item.wrong]]
            assert len(item.turns) <= len(one.turns) <= len(item.turns) + 4
            if item.form in ("ell", "pro"):
                assert one.right - one.wrong == item.right - item.wrong


def test_written_items_are_in_one_part_each_and_stand_behind_their_old_statement():
    parts = {part: corrections.written_items(part) for part in corrections.WRITTEN_PARTS}
    topics = {part: {item.topic for item in items} for part, items in parts.items()}
    assert topics["train"].isdisjoint(topics["held"])
    assert len(topics["held"]) > sum(map(len, topics.values())) / 10
    its = [item for items in parts.values() for item in items]
    assert len(set(map(str, its))) == len(its)
    assert (sum(item.is_correction for item in its), sum(not item.is_correction for item in its)) == (1939, 1703)
    for item in its:
        assert item.question.endswith("?")
        assert (item.wrong < item.right) == item.is_correction
        assert not any(text.startswith(("+", "-", "=", "~")) for _, text in item.turns)


def _lines() -> list[str]:
    return corrections.NATURAL.read_text(encoding="utf-8").splitlines()


def test_knowledge_counts_as_the_statement_it_was_told_by():
    turns = [("", "The sauna is broken."), ("", "My sister is a nurse.")]
    item = corrections.Natural("person", "sup", turns, 1, 0, "What does my sister do?")
    assert corrections.score(item.as_blind())["first"] == 1.0
    assert corrections.score(item._replace(right=0, wrong=1).as_blind())["first"] == 0.0
