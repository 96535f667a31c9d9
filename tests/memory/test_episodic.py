"""What is kept of past tasks: one entry for each goal, place and outcome, and nothing of what was forgotten."""

from __future__ import annotations

import functools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played import played

from embodied_mem.memory import Scope, Selector
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.episodic import EpisodicMemory, how_far
from embodied_mem.memory.readers import HOUSEHOLD
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.generator import generate


@functools.cache
def games():
    return generate(num_games=8, seed=5, num_scenes=4, prove=False)


@functools.cache
def episodes():
    return [played(game, seed) for seed, game in enumerate(games())]


def simple(goal: str, won: bool, num_steps: int, name: str = "mug 1") -> Episode:
    script = [("", f"go to desk {i}") for i in range(num_steps - 1)]
    steps = [Step(f"You arrive at x. On the desk 1, you see a {name}.", action) for _, action in script]
    steps.append(Step("x", f"take {name} from desk 1"))
    return Episode(goal, goal, tuple(steps), won, f"You pick up the {name} from the desk 1.")


def test_every_episode_is_found_by_its_goal():
    memory = EpisodicMemory()
    for number, episode in enumerate(episodes()):
        memory.learn(episode, number=number, time=number, place=episode.task_id)
    for number, episode in enumerate(episodes()):
        best = memory.retrieve(episode.goal, place=episode.task_id)[0]
        assert best.place == episode.task_id
        assert [source.episode for source in best.sources] == [number]
        assert best.episode == number
        assert ("won" in best.text) == episode.won
        assert best.score == pytest.approx(1.0, abs=1e-6)


def test_the_updater():
    """Against what the rules say: repetition, improvement, first success, failure after success."""
    memory = EpisodicMemory()
    goal = "put a mug in fridge."
    script = [(False, 9), (False, 8), (True, 7), (True, 9), (True, 5), (False, 4)]
    for number, (won, steps) in enumerate(script):
        memory.learn(simple(goal, won, steps), number=number, time=number, place="k")
        if number == 1:
            assert [(e.data["won"], e.data["steps"], len(e.support)) for e in memory.entries.values()] == [
                (False, 8, 2)
            ]
        if number == 2:
            assert len(memory) == 1  # the failures are gone
    won, failed = sorted(memory.entries.values(), key=lambda entry: not entry.data["won"])
    assert (won.data["steps"], won.data["failures"], len(won.support)) == (5, 2, 3)
    assert won.text.startswith("put a mug in fridge: won in 5 steps; mug 1 was in desk 1")
    assert "after 2 failed tries" in won.text
    assert (failed.data["steps"], len(failed.support)) == (4, 1)
    memory.learn(simple(goal, True, 5), number=4, time=9, place="k")  # the same episode again
    assert len(memory.get(won.key).support) == 3
    memory.learn(simple(goal, True, 5), number=7, time=9, place="elsewhere")
    assert len(memory) == 2


def test_how_far_a_failure_came():
    def episode(*turns):
        texts = ["You see nothing special.", *(answer for _, answer in turns)]
        steps = [Step(text, action) for text, (action, _) in zip(texts, turns)]
        return Episode("t", "put a mug in fridge.", tuple(steps), False, texts[-1])

    look = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a pen 1.")
    see = ("go to desk 2", "You arrive at desk 2. On the desk 2, you see a mug 3.")
    take = ("take mug 3 from desk 2", "You pick up the mug 3 from the desk 2.")
    refused = ("open desk 2", "Nothing happens.")
    assert how_far(episode(look), HOUSEHOLD) == "no mug was seen at 1 places"
    assert how_far(episode(look, see), HOUSEHOLD) == "mug 3 was seen at desk 2 and not taken"
    assert how_far(episode(see, take, refused), HOUSEHOLD) == "mug 3 was taken from desk 2; 1 commands had no effect"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=8), st.integers(0, 8), st.data())
def test_replay_state_and_forgetting(script, cut, data):
    events = []
    memory = EpisodicMemory(
        Scope(user="ann"), record=lambda event: (events.append(json.dumps(event)), memory.apply(event))
    )
    resumed = EpisodicMemory(Scope(user="ann"))
    for number, (which, same_place) in enumerate(script):
        if number == cut:
            resumed.restore(memory.state())
            events.clear()
        memory.learn(episodes()[which], number=number, time=number, place="here" if same_place else str(number))
    for event in events:
        resumed.apply(json.loads(event))
    if cut < len(script) or events:
        assert resumed.state() == memory.state()
        for query in ("put a clean mug in fridge", episodes()[0].goal):
            assert resumed.retrieve(query, place="here") == memory.retrieve(query, place="here")
    episode = data.draw(st.integers(0, 8))
    memory.remove(Selector(episode=episode))
    for entry in memory.entries.values():
        assert entry.data["origin"] != episode
        assert all(row[0] != episode for row in entry.support)
    kind = data.draw(st.sampled_from(["mug", "fridge", "desk", "pen"]))
    memory.remove(Selector(object=kind))
    assert f" {kind} ".encode() not in memory.state()
    assert not any(kind in item.text.split() for item in memory.retrieve(f"a {kind}"))
    memory.remove(Selector(everything=True))
    assert len(memory) == 0
    assert memory.retrieve("put a clean mug in fridge") == []


def test_a_writer_says_what_happened_and_which_task_it_was():
    """Another wording of a known task is one more source of it; by rules it would be another entry."""
    answers = [
        '{"summary": "The pen was on the desk."}',
        '{"summary": "It was on the desk again."}',
        '{"same": 0, "delete": []}',
        '{"summary": "On the desk."}',
        '{"same": null, "delete": [0]}',
        '{"summary": "Twice."}',
        '{"same": 9, "delete": []}',
    ]
    writer, events = ChatWriter(lambda messages: answers.pop(0)), []
    memory = EpisodicMemory(writer=writer, record=lambda event: (events.append(event), memory.apply(event)))
    seen = []
    for number, goal in enumerate(("put a pen in bin", "put the pen in bin", "put a pen in the bin", "put pen in bin")):
        steps = (Step("You are in a room.", "go to desk 1"),)
        memory.learn(Episode("t", goal, steps, True, "You arrive at desk 1."), number=number, time=number)
        seen.append([(entry.text, [row.episode for row in entry.support]) for entry in memory.entries.values()])
    assert seen[0] == [("put a pen in bin: won in 1 steps; The pen was on the desk.", [0])]
    assert seen[1] == [("put a pen in bin: won in 1 steps; It was on the desk again.; 2 times", [0, 1])]
    assert seen[2] == [("put a pen in the bin: won in 1 steps; On the desk.", [2])]
    assert len(seen[3]) == 2, "an id that was not shown is no answer"
    assert (writer.calls, writer.malformed) == (7, 1)
    replayed = EpisodicMemory()
    for event in events:
        replayed.apply(json.loads(json.dumps(event)))
    assert replayed.state() == memory.state()
    memory.remove(Selector(episode=2))
    assert "On the desk" not in memory.state().decode()


def test_without_a_usable_answer_rules_write():
    writer = ChatWriter(lambda messages: "well")
    episode = Episode("t", "put a pen in bin", (Step("You are in a room.", "go to desk 1"),), True, "You arrive.")
    memory, by_rules = EpisodicMemory(writer=writer), EpisodicMemory()
    for one in (memory, by_rules):
        one.learn(episode, number=0, time=0)
    assert memory.state() == by_rules.state()
    assert (writer.calls, writer.malformed) == (1, 1)
