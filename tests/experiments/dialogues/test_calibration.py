"""Weights of probabilities: learned ones are those that made the data, scores are right for three records."""

from __future__ import annotations

import random

import numpy as np
import pytest

from experiments.dialogues import calibration
from experiments.dialogues.calibration import Hit
from experiments.dialogues.week import Question, make_week, without_answers


def test_learned_weights_are_those_that_drew_the_answers():
    rng, weights = np.random.default_rng(0), np.array([-0.5, 2.0, -1.0])
    x = rng.normal(size=(20_000, 2))
    y = rng.random(len(x)) < 1 / (1 + np.exp(-weights[0] - x @ weights[1:]))
    rows = [Hit("a", 0, bool(right), 0.5, tuple(row)) for row, right in zip(x.tolist(), y)]
    assert calibration.fit([(1.0, rows[:5000]), (2.0, rows[5000:])]) == pytest.approx(weights, abs=0.1)


def test_scores_compare_with_the_share_of_right_ones():
    rows = [
        Hit("a", 0, True, 0.9, ()), Hit("b", 0, False, 0.2, ()), Hit("b", 1, False, 0.1, ()),
        Hit("a", 7, True, 0.0, ()),
    ]  # fmt: skip
    first, five = (calibration.score(rows)[f"first_{depth}"] for depth in (1, 5))
    assert (first["num_records"], five["num_records"]) == (2, 3)
    assert first["brier"] == pytest.approx((0.01 + 0.04) / 2)
    assert (first["constant"], five["constant"]) == pytest.approx((0.25, 2 / 9))
    assert first["tenths"] == [[1, pytest.approx(0.2), 0.0], [1, pytest.approx(0.9), 1.0]]
    assert first["difference"][0] == pytest.approx(0.025 - 0.25)


def test_a_week_may_lack_answers():
    whole, lacking = make_week(0), list(without_answers(make_week(0), random.Random(0)))
    questions = [[event for event in week if isinstance(event, Question)] for week in (whole, lacking)]
    assert questions[0] == questions[1]
    texts = [[text for event in week if not isinstance(event, Question) for text in event.texts]
             for week in (whole, lacking)]  # fmt: skip
    assert set(texts[1]) < set(texts[0])
    answered = [
        sum(any(map(one.is_answered, its)) for one in questions[0] if one.kind in ("time", "person")) for its in texts
    ]
    assert 0.5 * answered[0] < answered[1] < 0.8 * answered[0]


def test_a_dialogue_has_questions_with_and_without_an_answer():
    rows = [row for seed in range(4) for row in calibration.dialogue(seed)]
    firsts = [row for row in rows if row.rank == 0]
    assert {row.weight for row in firsts} == {1.0, calibration._WEIGHT_OF_NONE}
    assert not any(row.is_right for row in rows if row.weight < 1)
    assert np.mean([row.is_right for row in firsts if row.weight == 1]) > 0.5
    assert all(0 < row.probability < 1 for row in rows)
