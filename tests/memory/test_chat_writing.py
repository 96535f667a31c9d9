"""Answers of a chat model: what is believed, and that everything else is counted and never reaches a memory."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.readers.household import Reading, read_observation


def answering(answer: str) -> ChatWriter:
    return ChatWriter(lambda messages: answer)


@pytest.mark.parametrize("form", ["{}", " {}\n", "```json\n{}\n```", "```\n{}```"])
def test_facts(form):
    facts = [["mug 1", "on", "desk 1"], ["desk 1", "is", "clean"]]
    writer = answering(form.format(json.dumps(facts)))
    assert list(writer.facts("look", "A mug is on the clean desk.")) == [tuple(fact) for fact in facts]
    assert (writer.calls, writer.fallbacks) == (1, 0)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[",
        "null",
        "3",
        '{"facts": []}',
        '[["a", "b"]]',
        '[["a", "b", 3]]',
        '[["a", "b", ""]]',
        '["abc"]',
        json.dumps([["a", "in", "b"]] * 65),
        json.dumps([["a" * 500, "in", "b"]]),
        "NaN",
    ],
)
def test_malformed_facts(answer):
    writer = answering(answer)
    assert list(writer.facts("", "x")) == []
    assert (writer.malformed, writer.failed) == (1, 0)


def test_facts_among_words_are_read():
    writer = answering('Here: [["a", "in", "b"]]')
    assert len(writer.facts("", "x")) == 1
    assert writer.malformed == 0


@given(st.text(max_size=60) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_answer_is_survived(answer):
    writer = answering(answer)
    facts = list(writer.facts("", "x"))
    assert all(len(fact) == 3 and all(isinstance(word, str) and word for word in fact) for fact in facts)
    summary = writer.summary(["a"])
    assert summary is None or summary
    assert writer.calls == 2


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), EmbodiedMemError("budget used up"), OSError("gone")])
def test_errors_of_the_callers_model_are_counted_and_named(error):
    def broken(messages):
        raise error

    writer = ChatWriter(broken)
    assert writer.summary(["a"]) is None
    assert (writer.failed, writer.last_error) == (1, repr(error))


def test_an_interrupt_is_no_failure_of_a_model():
    def interrupted(messages):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ChatWriter(interrupted).summary(["a"])


@given(st.text())
def test_any_text_can_be_read(text):
    for prefix in ("", "You ", "On the ", "The ", "This is a ", "You arrive at ", "You are carrying: "):
        assert isinstance(read_observation(prefix + text), Reading)
