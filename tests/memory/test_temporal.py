"""The buffer against a naive model of the paper's words; replay, restoring and forgetting."""

from __future__ import annotations

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.memory import Scope, Selector
from embodied_mem.memory.temporal import TemporalMemory

ACTIONS = [
    "go to desk 1",
    "go to shelf 2",
    "take mug 1 from desk 1",
    "open fridge 1",
    "look",
    "heat mug 12 with stove 1",
]
ANSWERS = ["You arrive.", "Nothing happens.", "You see a mug 1 and a pen 3.", "On the desk 1, you see nothing."]


def fill(memory: TemporalMemory, script, start: int = 0) -> None:
    for step, (action, text) in enumerate(script, start):
        memory.observe(action, text, episode=7, step=step, time=step)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 5), st.integers(0, 30))
def test_the_buffer_is_cleared_when_full(capacity, count):
    """Which steps the entries cover, against a list that is folded as the paper says."""
    memory = TemporalMemory(capacity=capacity)
    model: list[list[int]] = []
    for step in range(count):
        memory.observe("look", "a room", episode=0, step=step, time=step)
        if len(model) == capacity:
            model = [list(itertools.chain(*model))]
        model.append([step])
    covered = [list(range(entry.first_step, entry.last_step + 1)) for entry in memory.entries]
    assert covered == model
    assert len(memory.entries) <= capacity
    assert memory.render().count("\n") == max(len(model) - 1, 0)


def test_summary_by_rules():
    memory = TemporalMemory()
    script = [
        ("", "You are in the middle of a room. Looking quickly around you, you see a desk 1."),
        ("go to desk 1", "You arrive at desk 1."),
        ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
        ("heat mug 1 with desk 1", "Nothing happens."),
        ("go to fridge 1", "You arrive at fridge 1."),
        ("go to desk 1", "You arrive at desk 1."),
    ]
    fill(memory, script)
    assert memory.render().splitlines() == [
        "steps 0-4: went to desk 1, fridge 1; take mug 1 from desk 1; without effect: heat mug 1 with desk 1",
        "step 5: go to desk 1 -> You arrive at desk 1.",
    ]
    items = memory.retrieve()
    assert [item.step for item in items] == [5, 4]
    assert items[0].score > items[1].score
    memory.begin(episode=8, time=9)
    assert memory.retrieve() == []


def test_summaries_stay_short():
    memory = TemporalMemory()
    fill(memory, [(f"go to shelf {i}", "x " * 500) for i in range(300)])
    assert 0 < max(len(entry.text) for entry in memory.entries) < 300


def test_a_summarizer_and_its_failure():
    answers = iter(["I looked around.", None])
    seen = []

    def summarizer(texts):
        seen.append(list(texts))
        return next(answers)

    events = []
    memory = TemporalMemory(
        summarizer=summarizer, record=lambda event: (events.append(json.dumps(event)), memory.apply(event))
    )
    fill(memory, [("look", "a room")] * 6)
    assert memory.entries[0].text == "steps 0-4: look"  # the second call gave None: rules, over the written one
    assert seen[1][0] == "I looked around."
    replayed = TemporalMemory(summarizer=summarizer)
    for event in events:
        replayed.apply(json.loads(event))
    assert replayed.state() == memory.state()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(ANSWERS)), max_size=12), st.integers(0, 12))
def test_replay_state_and_forgetting(script, cut):
    events = []
    memory = TemporalMemory(Scope(user="ann"), record=lambda event: (events.append(event), memory.apply(event)))
    fill(memory, script[:cut])
    resumed = TemporalMemory(Scope(user="ann"))
    resumed.restore(memory.state())
    del events[:]
    fill(memory, script[cut:], start=len(script[:cut]))
    for event in events:
        resumed.apply(json.loads(json.dumps(event)))
    assert resumed.state() == memory.state()
    said = b"mug 1 " in memory.state()
    before = len(memory.entries)
    removed = memory.remove(Selector(object="mug 1"))
    assert b"mug 1 " not in memory.state()
    assert len(memory.entries) == before - removed["entries"]
    if not said:
        assert removed == {"entries": 0, "shortened": 0}
    assert memory.remove(Selector(episode=6)) == {"entries": 0, "shortened": 0}
    memory.remove(Selector(episode=7))
    assert memory.entries == []


def test_a_step_is_summarised_where_no_rule_reads_it():
    asked, events = [], []

    def short(action, text):
        asked.append(text)
        return None if "dark" in text else "The gripper\nholds a cup."

    memory = TemporalMemory(
        capacity=4, step_summarizer=short, record=lambda event: (events.append(event), memory.apply(event))
    )
    raw = "<cam> cup 0.93 at 0.31 0.22 1.05 <grip> closed 0.8 N <base> 1.2 0.4 0.0 <arm> idle"
    texts = ["You arrive at desk 1. On the desk 1, you see a pen 1, a mug 1, a cup 2, a book 3, and a cellphone 1."]
    texts += [f"light {raw}", f"dark {raw}", "beep"]
    for step, text in enumerate(texts, 1):
        memory.observe("grasp cup", text, episode=0, step=step, time=step)
    assert asked == texts[1:3], "what a rule reads, or what is short, needs no model"
    assert memory.render().splitlines() == [
        f"step 1: grasp cup -> {texts[0]}",
        "step 2: grasp cup -> The gripper holds a cup.",
        f"step 3: grasp cup -> {texts[2]}",
        "step 4: grasp cup -> beep",
    ]
    replayed = TemporalMemory(capacity=4)
    for event in events:
        replayed.apply(json.loads(json.dumps(event)))
    assert replayed.state() == memory.state(), "a replay asks nobody"
