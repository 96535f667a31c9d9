"""Spatial memory against the simulator's true state after every step, against replay, and against its own bytes."""

from __future__ import annotations

import functools
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.memory import Scope, Selector, spatial_index
from embodied_mem.memory.readers.household import names_in
from embodied_mem.memory.spatial import SpatialMemory
from embodied_mem.worlds.alfworld.env import Env
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.generator import generate


@functools.cache
def games():
    return generate(num_games=12, seed=3, num_scenes=3, split="train")


class Seen:
    """What a player knows for certain, from the hidden state: by looking over its shoulder, without any text."""

    def __init__(self, env: Env):
        self.env = env
        self.looked: set[str] = set()

    def step(self, command: str) -> str:
        text = self.env.step(command)
        words = command.split()
        if text != "Nothing happens." and words[0] in ("go", "open", "examine"):
            name = " ".join(words[-2:])
            entry = self.env.state()["receptacles"].get(name)
            if entry and (not entry["openable"] or entry["open"]):
                self.looked.add(name)
        return text

    def check(self, memory: SpatialMemory) -> int:
        """Number of facts compared."""
        state = self.env.state()
        truth = {name: set() for name in state["receptacles"]}
        for name, entry in state["objects"].items():
            for receptacle in entry["receptacles"]:
                truth[receptacle].add(name)
        compared = 0
        for receptacle, names in truth.items():
            known = memory.inside(receptacle)
            assert len(known) == len(set(known))
            if receptacle in self.looked:
                assert set(known) == names, receptacle
            else:
                assert set(known) <= names, receptacle
            compared += len(known)
            states = memory.states(receptacle)
            assert states <= ({"open"} if state["receptacles"][receptacle]["open"] else {"closed"}), receptacle
        assert memory.held() == state["holding"]
        assert memory.position() in ("", *state["at"])
        assert set(memory.unsearched()) == set(truth) - self.looked
        for name, entry in state["objects"].items():
            true_states = {mark for mark in ("clean", "hot", "cool") if entry[mark]}
            true_states |= {"on" if entry["toggled"] else "off"} if entry["toggleable"] else set()
            assert memory.states(name) <= true_states, name
            sighting = memory.last_seen(name)
            if sighting is not None and sighting.current and sighting.relation != "held by":
                assert sighting.receptacle in entry["receptacles"]
        return compared


def play(memory: SpatialMemory, game, episode: int, grammar: str, rng: random.Random, num_steps: int = 40):
    """An expert with random commands in between; the memory is compared with the truth after every step."""
    env = Env(game.load(), grammar)
    seen = Seen(env)
    time = memory.time + 1
    memory.begin(episode=episode, time=time, place="home")
    text = env.reset()
    expert = ObservingExpert(grammar)
    expert.reset(game.load().task, text)
    memory.observe(text, episode=episode, step=0, time=time)
    compared = 0
    for step in range(1, num_steps):
        if rng.random() < 0.3:
            command = rng.choice(env.admissible_commands)
            text = seen.step(command)
            expert.observe(command, text)
        else:
            command = expert.act(text)
            text = seen.step(command)
        memory.observe(text, episode=episode, step=step, time=time + step, action=command)
        compared += seen.check(memory)
    return seen, compared


@pytest.mark.parametrize("grammar", ["0.4", "0.3"])
@pytest.mark.parametrize("number", range(6))
def test_memory_is_the_truth_about_what_was_seen(grammar, number):
    memory = SpatialMemory()
    seen, compared = play(memory, games()[number], 0, grammar, random.Random(number))
    assert compared > 100
    assert len(seen.looked) > 2


def test_a_second_day_in_the_same_home():
    """What lies elsewhere today is corrected as soon as it is seen; what was not looked at stays as it was."""
    games = generate(num_games=3, seed=3, num_scenes=1, prove=False)
    memory = SpatialMemory()
    for episode, game in enumerate(games):
        before = {r: memory.inside(r) for r in memory.unsearched()} if episode else {}
        env = Env(game.load())
        seen = Seen(env)
        start = memory.time + 1
        memory.begin(episode=episode, time=start, place="home")
        memory.observe(env.reset(), episode=episode, step=0, time=start)
        assert (memory.position(), memory.held()) == ("", [])
        for step, receptacle in enumerate(sorted(env.state()["receptacles"])[:8], 1):
            text = seen.step(f"go to {receptacle}")
            memory.observe(text, episode=episode, step=step, time=start + step)
        truth = env.state()["objects"]
        for receptacle in seen.looked:
            assert set(memory.inside(receptacle)) == {n for n, e in truth.items() if receptacle in e["receptacles"]}
        placed = [name for r in seen.looked for name in memory.inside(r)]
        for receptacle, names in before.items():
            if receptacle not in seen.looked:
                assert memory.inside(receptacle) == [name for name in names if name not in placed]


def test_what_is_kept_at_hand_is_bounded_and_changes_no_answer(monkeypatch):
    def played() -> tuple[list, bytes, int]:
        memory = SpatialMemory()
        play(memory, games()[0], 0, "0.4", random.Random(0), num_steps=20)
        found = [memory.retrieve(games()[0].goal), memory.retrieve("drawer 1 and a shelf"), memory.seen_after(0)]
        return found, memory.state(), len(memory._index._known)

    found, state, count = played()
    monkeypatch.setattr(spatial_index, "_MAX_KNOWN", 20)
    monkeypatch.setattr(spatial_index, "_DROPPED", 4)
    assert count > 40
    *same, fewer = played()
    assert same == [found, state]
    assert fewer <= 21


def test_places_do_not_mix():
    memory = SpatialMemory()
    memory.begin(episode=0, time=0, place="kitchen")
    memory.observe("On the desk 1, you see a mug 1.", episode=0, step=0, time=0)
    memory.begin(episode=1, time=1, place="bedroom")
    memory.observe("On the desk 1, you see nothing.", episode=1, step=0, time=1)
    assert memory.last_seen("mug 1") is None
    assert memory.last_seen("mug 1", place="kitchen").current
    assert memory.of_class("mug") == []
    assert [s.place for s in memory.of_class("mug", place="kitchen")] == ["kitchen"]


def test_queries():
    memory = SpatialMemory()
    memory.begin(episode=4, time=10)
    texts = [
        "You are in the middle of a room. Looking quickly around you, you see a desk 1, a fridge 1, and a shelf 1.",
        "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 1.",
        "You arrive at fridge 1. The fridge 1 is closed.",
        "You open the fridge 1. The fridge 1 is open. In it, you see a mug 2.",
        "You arrive at desk 1. On the desk 1, you see a pen 1.",
    ]
    for step, text in enumerate(texts):
        memory.observe(text, episode=4, step=step, time=10 + step)
    mugs = memory.of_class("mug")
    assert [(s.name, s.receptacle, s.current, s.seen, s.step) for s in mugs] == [
        ("mug 2", "fridge 1", True, 13, 3),
        ("mug 1", "desk 1", False, 11, 1),
    ]
    assert [s.name for s in memory.of_class("mug", after=11)] == ["mug 2"]
    assert [s.name for s in memory.seen_after(11)] == ["pen 1", "mug 2"]
    assert memory.unsearched() == ["shelf 1"]
    items = memory.retrieve("put two mugs in fridge.")
    texts = [item.text for item in items]
    assert "mug 2 is in fridge 1" in texts
    assert "mug 1 was last seen on desk 1, not there now" in texts
    assert "agent is at desk 1" in texts
    assert all(item.episode == 4 and item.why for item in items)
    assert "pen 1 is on desk 1" in texts  # where the agent is
    assert not any("pen" in item.text for item in memory.retrieve("mugs", hops=0))
    assert memory.entities("the mug 2") != memory.entities("the mug 1")


def test_an_extractor_reads_what_rules_do_not():
    calls = []

    def extractor(action, text):
        calls.append(text)
        return [("cup", "on", "stove")]

    events = []
    memory = SpatialMemory(extractor=extractor, record=events.append)
    memory.observe("Nothing happens.", episode=0, step=0, time=0)
    memory.observe("There is a cup on the stove.", episode=0, step=1, time=1)
    assert calls == ["There is a cup on the stove."]
    replayed = SpatialMemory(extractor=extractor)
    for event in events:
        replayed.apply(json.loads(json.dumps(event)))
    assert replayed.inside("stove") == ["cup"]
    assert len(calls) == 1  # replay asks nobody


NAMES = ["mug 1", "mug 2", "pen 1"]
PLACES = ["desk 1", "fridge 1", "shelf 3"]


@st.composite
def texts(draw):
    name, place = draw(st.sampled_from(NAMES)), draw(st.sampled_from(PLACES))
    some = ", ".join(f"a {n}" for n in draw(st.lists(st.sampled_from(NAMES), unique=True))) or "nothing"
    return draw(
        st.sampled_from(
            [
                f"You arrive at {place}. On the {place}, you see {some}.",
                f"The {place} is open. In it, you see {some}.",
                f"The {place} is closed.",
                f"You pick up the {name} from the {place}.",
                f"You move the {name} to the {place}.",
                f"You heat the {name} using the {place}.",
                f"You cool the {name} using the {place}.",
                "You are not carrying anything.",
                "begin",
            ]
        )
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(texts(), max_size=25), st.integers(0, 25), st.data())
def test_replay_state_and_forgetting(script, cut, data):
    events = []

    def record(event):
        events.append(json.dumps(event))
        memory.apply(event)

    memory = SpatialMemory(Scope(user="ann"), record=record)
    resumed = SpatialMemory(Scope(user="ann"))
    for time, text in enumerate(script):
        if time == cut:
            resumed.restore(memory.state())
            events.clear()
        if text == "begin":
            memory.begin(episode=time, time=time, place=str(time % 2 or ""))
        else:
            memory.observe(text, episode=time // 3, step=time, time=time)
    if cut >= len(script):
        events.clear()
        resumed.restore(memory.state())
    for event in events:
        resumed.apply(json.loads(event))
    assert resumed.state() == memory.state()
    query = "mug 1 in the fridge or on a shelf"
    assert resumed.retrieve(query) == memory.retrieve(query)
    assert resumed.seen_after(0) == memory.seen_after(0)

    what = data.draw(st.sampled_from([*NAMES, "mug", *PLACES]))
    before = memory.state()
    removed = memory.remove(Selector(object=what))
    assert (removed["facts"] > 0) == (what.encode() in before)
    assert what.encode() not in memory.state()
    episode = data.draw(st.integers(0, 9))
    memory.remove(Selector(episode=episode))
    with memory.graph.snapshot() as now:
        assert not any(episode in now.fact(fact).sources for fact in range(now.num_facts) if now.has_fact(fact))
    assert all(sighting.episode != episode for sighting in memory.seen_after(-1))
    assert all(item.sources != (episode,) for item in memory.retrieve(query))
    again = SpatialMemory(Scope(user="ann"))
    again.restore(memory.state())
    assert again.state() == memory.state()
    assert [s.name for s in again.seen_after(-1)] == [s.name for s in memory.seen_after(-1)]
    for kind in ("mug", "pen", "desk", "fridge", "shelf"):
        for place in ("", "1"):
            assert again.of_class(kind, place) == memory.of_class(kind, place)
    for user in ("ann", "bob"):
        assert memory.remove(Selector(user=user)) == {"facts": 0, "nodes": 0}
    memory.remove(Selector(everything=True))
    assert memory.state() == SpatialMemory(Scope(user="ann")).state()


parts = st.lists(
    st.sampled_from(["a ", "an ", "some ", "and ", ", ", ",", "a", "mug 1", " ", "thing", "\n", "."]), max_size=12
)


@settings(max_examples=300, deadline=None)
@given(parts)
def test_names_are_what_stands_between_commas(parts):
    text = "".join(parts)
    whole = text.strip().removesuffix(".")
    names = [part for part in whole.split(", ") if part and "," not in part]
    for before in (("and ",), ("a ", "an ", "some ")):
        cut = [next((name[len(one) :] for one in before if name.startswith(one)), name) for name in names]
        names = [short or name for short, name in zip(cut, names)]
    assert names_in(text) == (() if whole == "nothing" else tuple(names))
