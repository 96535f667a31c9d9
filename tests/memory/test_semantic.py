"""Regularities against the hidden state of the games they were learned in; lessons against how they come about."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played import played

from embodied_mem.memory import LifelongMemory, Scope, Selector
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.semantic import SemanticMemory, plain
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.env import Env
from embodied_mem.worlds.alfworld.generator import generate


@functools.cache
def games():
    return generate(num_games=18, seed=6, num_scenes=8, prove=False)


@functools.cache
def episodes():
    return [played(game, seed) for seed, game in enumerate(games())]


def episode(*turns: tuple[str, str], goal: str = "put a mug in fridge.") -> Episode:
    texts = ["You are in a room.", *(answer for _, answer in turns)]
    steps = [Step(text, action) for text, (action, _) in zip(texts, turns)]
    return Episode("t", goal, tuple(steps), False, texts[-1])


def test_places_are_those_of_the_hidden_state():
    """Every row names where the thing was at the start; nothing that was seen is missing."""
    memory = SemanticMemory()
    truth: list[dict[str, list[str]]] = []
    for number, (game, played_episode) in enumerate(zip(games(), episodes())):
        memory.learn(played_episode, number=number, time=number)
        env = Env(game.load())
        env.reset()
        truth.append({name: entry["receptacles"] for name, entry in env.state()["objects"].items()})
    counts: Counter[str] = Counter()
    for entry in memory.entries.values():
        if entry.data["kind"] != "found":
            continue
        for number, _, detail in entry.support:
            name, _, receptacle = re.fullmatch(r"(.+ \d+) (in|on) (.+ \d+)", detail).groups()
            assert truth[number][name] == [receptacle]
            counts[number] += 1
        kind = entry.data["terms"][0]
        assert sum(count for _, count in memory.places_of(kind)) == len(entry.support)
    for number, played_episode in enumerate(episodes()):
        texts = " ".join([step.observation for step in played_episode.steps] + [played_episode.final_observation])
        named = {name for name in truth[number] if re.search(rf"\ba {name}\b", texts)}
        assert counts[number] == len(named)
    assert memory.tools_for("heat")[0][0] == "microwave"
    assert {tool for tool, _ in memory.tools_for("cool")} == {"fridge"}
    assert {tool for tool, _ in memory.tools_for("clean")} == {"sinkbasin"}


def test_lessons():
    memory = SemanticMemory()
    failed = ("take mug 1 from cabinet 1", "Nothing happens.")
    memory.learn(episode(failed), number=0, time=0)
    memory.learn(episode(("take mug 4 from cabinet 2", "Nothing happens.")), number=1, time=1)
    key = "lesson|take mug from cabinet|"
    assert memory.get(key).text == "'take mug from cabinet' had no effect (2 times)"
    opened = ("open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see a mug 1.")
    took = ("take mug 1 from cabinet 1", "You pick up the mug 1 from the cabinet 1.")
    memory.learn(episode(failed, opened, ("look", "You are facing the cabinet 1."), took), number=2, time=2)
    assert memory.get(key) is None
    lesson = memory.get(key + "open cabinet")
    assert lesson.text == "'open cabinet' comes before 'take mug from cabinet', which had no effect otherwise (once)"
    memory.learn(episode(failed), number=3, time=3)  # known why
    assert memory.get(key) is None
    texts = [item.text for item in memory.retrieve("take a mug")]
    assert lesson.text in texts
    assert "mug: found in cabinet (1 of 1)" in texts


def test_retrieval_prefers_what_the_query_names():
    memory = SemanticMemory()
    for number, played_episode in enumerate(episodes()):
        memory.learn(played_episode, number=number, time=number)
    items = memory.retrieve("put a hot mug in cabinet.", k=6)
    assert any(item.text.startswith("mug: found") for item in items)
    assert any(item.text.startswith("heat works with microwave") for item in items)
    assert all(item.why and item.episode == item.sources[-1].episode for item in items)
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)
    everything = memory.retrieve("put a hot mug in cabinet.", k=10**6)
    assert everything[:6] == items


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 17), max_size=8), st.integers(0, 8), st.data())
def test_replay_state_and_forgetting(script, cut, data):
    events = []
    memory = SemanticMemory(
        Scope(user="ann"), record=lambda event: (events.append(json.dumps(event)), memory.apply(event))
    )
    resumed = SemanticMemory(Scope(user="ann"))
    for number, which in enumerate(script):
        if number == cut:
            resumed.restore(memory.state())
            events.clear()
        memory.learn(episodes()[which], number=number, time=number)
    for event in events:
        resumed.apply(json.loads(event))
    assert resumed.state() == memory.state()
    assert resumed.retrieve("put a hot mug in fridge") == memory.retrieve("put a hot mug in fridge")

    # Forgetting an episode leaves what would be known without it, up to numbering and disproved lessons.
    if script:
        gone = data.draw(st.integers(0, len(script) - 1))
        memory.remove(Selector(episode=gone))
        other = SemanticMemory(Scope(user="ann"))
        for number, which in enumerate(script):
            if number != gone:
                other.learn(episodes()[which], number=number, time=number)
        found = {e.key: (e.text, e.support) for e in memory.entries.values() if e.data["kind"] != "lesson"}
        assert found == {e.key: (e.text, e.support) for e in other.entries.values() if e.data["kind"] != "lesson"}
        assert memory._by_term.keys() == {t for e in memory.entries.values() for t in e.data["terms"]}
    word = data.draw(st.sampled_from(["mug", "fridge", "desk", "drawer", "apple"]))
    memory.remove(Selector(object=word))
    assert not re.search(rf"\b{word}\b", memory.state().decode())
    assert memory.places_of(word) == []
    memory.remove(Selector(everything=True))
    assert memory.retrieve("put a hot mug in fridge") == []


def scripted(*answers: str):
    left = list(answers)
    return ChatWriter(lambda messages: left.pop(0))


def test_a_writer_adds_updates_and_deletes():
    turns = episode(("open desk 1", "Nothing happens."))
    changes = [
        '["Desks cannot be opened."]',
        '[{"do": "add", "text": "Desks cannot be opened."}]',
        '["Desks cannot be opened at all."]',
        '[{"do": "update", "id": 1, "text": "Desks have no doors."}]',
        '```json\n["Some desks have doors."]\n```',
        '[{"do": "delete", "id": 1}]',
    ]
    events = []
    writer = scripted(*changes)
    memory = SemanticMemory(writer=writer, record=lambda event: (events.append(event), memory.apply(event)))
    seen = []
    for number in range(3):
        memory.learn(turns, number=number, time=number)
        seen.append([e.text for e in memory.entries.values() if e.data["kind"] == "written"])
    assert seen == [["Desks cannot be opened."], ["Desks have no doors."], []]
    assert (writer.calls, writer.fallbacks) == (6, 0)
    replayed = SemanticMemory()
    for event in events:
        replayed.apply(json.loads(json.dumps(event)))
    assert replayed.state() == memory.state()


def test_a_lesson_said_again_is_evidence_and_no_copy():
    turns = episode(("open desk 1", "Nothing happens."))
    script = [
        '{"lessons": ["Desks cannot be opened.", "A desk cannot be opened"]}',
        '{"changes": [{"do": "add", "text": "Desks cannot be opened."}, {"do": "add", "text": "desk cannot be opened"}'
        "]}",
        '{"lessons": ["The desk cannot be opened."]}',
        '{"lessons": ["Desks can be opened.", "desks cannot be opened"]}',
        '{"changes": [{"do": "add", "text": "Desks can be opened."}]}',
    ]
    writer = scripted(*script)
    memory = SemanticMemory(writer=writer)
    for number in range(3):
        memory.learn(turns, number=number, time=number)
    written = {
        e.text: [row.episode for row in e.support] for e in memory.entries.values() if e.data["kind"] == "written"
    }
    assert written == {"Desks cannot be opened.": [0, 1, 2], "Desks can be opened.": [2]}
    assert (writer.calls, writer.fallbacks) == (5, 0)
    memory.remove(Selector(episode=0))
    assert "cannot" not in memory.state().decode(), "its text came from the forgotten episode"


COMMANDS = ("open desk 1", "open desk 2", "go to desk 1", "use lamp 1")


@given(st.lists(st.lists(st.tuples(st.sampled_from(COMMANDS), st.booleans()), min_size=1, max_size=9), max_size=3))
def test_actions_teach_what_their_task_teaches(tasks):
    """After the end of each task, lessons learned action by action are those of whole tasks, with the same sources."""
    by_action, by_task = SemanticMemory(), SemanticMemory()
    for number, task in enumerate(tasks):
        turns = [(action, "You did." if works else "Nothing happens.") for action, works in task]
        for count, (_, works) in enumerate(task, 1):
            event = by_action.propose_action(turns[:count], not works, number=number, time=count, outcomes={})
            if event["changes"]:
                by_action.apply(json.loads(json.dumps(event)))
        for memory in (by_action, by_task):
            memory.learn(episode(*turns), number=number, time=10 * number + 10)
        lessons = [
            {e.key: (e.text, sorted(e.support)) for e in memory.entries.values() if e.data["kind"] == "lesson"}
            for memory in (by_action, by_task)
        ]
        assert lessons[0] == lessons[1]


def test_a_lesson_is_there_before_the_task_ends():
    memory = LifelongMemory()
    memory.begin_task("t", "put a pen in desk.", "You are in a room. You see a desk 1.")
    memory.observe("open desk 1", "Nothing happens.")
    assert "'open desk' had no effect (once)" in memory.retrieve("open desk").render()
    memory.observe("go to desk 1", "You arrive at desk 1. The desk 1 is closed.")
    memory.observe("open desk 1", "You open the desk 1. The desk 1 is open. In it, you see nothing.")
    assert "'go to desk' comes before 'open desk'" in memory.retrieve("open desk").render()


@pytest.mark.parametrize(
    "answers",
    [
        ("",),
        ("Sure! Here are the lessons.",),
        ('{"a": 1}',),
        ('["a", 3]',),
        (json.dumps(["x" * 10**5]),),
        ("[" * 100_000,),
        ('["a"]', "no"),
        ('["a"]', '[{"do": "update", "id": 99, "text": "b"}]'),
        ('["a"]', '[{"do": "drop", "id": 0}]'),
        ('["a"]', '[{"do": "add"}]'),
        ('["a"]', "[1]"),
    ],
)
def test_an_unusable_answer_is_counted_and_rules_do(answers):
    turns = episode(("open desk 1", "Nothing happens."))
    writer = scripted(*answers)
    memory = SemanticMemory(writer=writer)
    memory.learn(turns, number=0, time=0)
    by_rules = SemanticMemory()
    by_rules.learn(turns, number=0, time=0)
    assert memory.state() == by_rules.state()
    assert (writer.calls, writer.malformed) == (len(answers), 1)


def test_plain():
    assert plain(" take Mug 2  from desk 10") == "take mug from desk"
