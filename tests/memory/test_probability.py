"""How likely a record answers: high for what was told, low for what was not, none where nobody asked."""

from __future__ import annotations

import math

import pytest

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.answers import _BIAS, _WEIGHTS, features

TOLD = (
    "The spare key is in the drawer.", "I am vegetarian.", "My bike is blue.", "Ben is my husband.",
    "Physiotherapy is on Monday at 9.", "I love jazz.", "The plumber comes at noon.", "My boss is called Petra.",
    "We never lock the garden door.",
)  # fmt: skip


@pytest.fixture
def memory() -> LifelongMemory:
    memory = LifelongMemory()
    for text in TOLD:
        memory.tell(text)
    memory.tell("I can't stand olives.", speaker="Ben")
    return memory


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where is the spare key?", "drawer"),
        ("Am I vegetarian?", "vegetarian"),
        ("When is physiotherapy?", "Monday"),
        ("Does Ben like olives?", "olives"),
    ],
)
def test_what_was_told_is_likely(memory, question, text):
    first = memory.retrieve(question, k=3).items[0]
    assert text in first.text
    assert first.probability > 0.5


@pytest.mark.parametrize("question", ["Does Ben like jazz?", "Who tuned my piano?"])
def test_what_was_not_told_is_unlikely(memory, question):
    assert all(item.probability < 0.5 for item in memory.retrieve(question, k=3).items)


def test_the_number_asked_for_changes_no_probability(memory):
    one, many = (memory.retrieve("Does Ben like olives?", k=k).items for k in (1, 8))
    assert one[0].probability == many[0].probability
    assert [item.probability for item in many] == sorted((item.probability for item in many), reverse=True)


def test_a_probability_is_the_regression_of_the_features(memory):
    question = "Does Ben like jazz on Monday?"
    items = memory.retrieve(question, k=8).items
    its = features(items, question, memory.notes)
    assert {row[0] for row in its.values()} == {0.0, 1.0}
    assert {row[4] for row in its.values()} == {0.0, 1.0}  # Ben is named
    for item in items:
        odds = _BIAS + sum(weight * value for weight, value in zip(_WEIGHTS, its[item.id], strict=True))
        assert item.probability == pytest.approx(1 / (1 + math.exp(-odds)))


def test_records_that_answer_no_question_have_none(memory):
    memory.begin_task("tidy", "put the key in the drawer", "", place="kitchen")
    assert all(item.probability is None for item in memory.retrieve().items)
    assert memory.get("notes:1").probability is None
    assert all(item.probability is None for item in memory.get_all())
    assert all(item.probability is None for item in memory.retrieve("what did you just do?").items)
