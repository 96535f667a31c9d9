"""All memories together on whole episodes: replay, budgets, explanations, forgetting, scopes, threads."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import threading
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played import played

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Scope
from embodied_mem.memory.lifelong import MODULES, LifelongMemory, replay
from embodied_mem.memory.readers import HOUSEHOLD
from embodied_mem.memory.recollection import count_tokens, pack
from embodied_mem.memory.record import Record
from embodied_mem.worlds.alfworld.generator import generate


@functools.cache
def games():
    return generate(num_games=6, seed=8, num_scenes=3, prove=False)


@functools.cache
def episodes():
    return [played(game, seed, max_steps=25) for seed, game in enumerate(games())]


SAID = "I usually keep the mug and the pen on the desk for my morning work."


def lived(memory: LifelongMemory, numbers=range(6), running: int | None = None) -> LifelongMemory:
    """Some episodes, and if asked for the first half of another one."""
    memory.tell(SAID)
    for number in numbers:
        replay(memory, episodes()[number])
    if running is not None:
        episode = episodes()[running]
        memory.begin_task(episode.task_id, episode.goal, episode.first_observation)
        half = len(episode.steps) // 2
        for step, after in zip(episode.steps[:half], episode.steps[1:]):
            memory.observe(step.action, after.observation)
    return memory


def test_every_module_remembers():
    memory = lived(LifelongMemory(), range(4), running=0)
    recollection = memory.retrieve()
    assert {item.module for item in recollection.items} == {"spatial", "temporal", "episodic", "semantic"}
    best = next(item for item in recollection.items if item.module == "episodic")
    assert "same place" in best.why  # the first run of the same task, in the same room
    assert best.data["goal"] == episodes()[0].goal.rstrip(".")
    assert memory.task_ids[best.episode] == episodes()[0].task_id
    for item in recollection.items:
        assert item.sources[-1][:2] == (item.episode, item.step)
        assert item.episode <= memory.episode
        assert item.why
    assert any(item.module == "profile" for item in memory.retrieve("prepare my morning work").items)


def test_frequencies():
    """Which modules an event touches: spatial and temporal per action, episodic per task, semantic per both."""
    events = []
    memory = LifelongMemory(record=lambda event: (events.append(event), memory.module.apply(event)))
    replay(memory, episodes()[0])
    touched = {op: set().union(*(event["events"] for event in events if event["op"] == op)) for op in ("step", "end")}
    assert touched == {"step": {"spatial", "temporal", "semantic"}, "end": {"episodic", "semantic"}}
    assert len(events) == len(episodes()[0].steps) + 2


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=4), st.integers(0, 60), st.integers(0, 5))
def test_replay_equals_direct(numbers, cut, running):
    """From any moment, within a task too, restoring and applying the rest of the events gives the same memory."""
    events, states = [], {}

    def record(event):
        if len(events) == cut:
            states[cut] = memory.state()
        events.append(json.dumps(event))
        memory.module.apply(event)

    scope = Scope(user="ann", environment="home")
    memory = LifelongMemory(scope, record=record)
    lived(memory, numbers, running)
    resumed = LifelongMemory(scope)
    if cut in states:
        resumed.restore(states[cut])
    for event in events[cut if cut in states else 0 :]:
        resumed.module.apply(json.loads(event))
    assert resumed.state() == memory.state()
    assert resumed.retrieve(budget_tokens=200) == memory.retrieve(budget_tokens=200)
    resumed.end_task(True)
    memory.end_task(True)
    assert resumed.state() == memory.state()


@pytest.mark.parametrize("budget", [0, 1, 10, 40, 100, 300, 10_000])
def test_budget_and_explanation(budget):
    memory = lived(LifelongMemory(), running=2)
    everything = memory.retrieve().items
    recollection = memory.retrieve(budget_tokens=budget)
    assert sum(count_tokens(item.text) for item in recollection.items) == recollection.tokens <= budget
    left = [entry for entry in recollection.left_out if entry.reason.startswith("needs")]
    found = [*recollection.items, *(entry.item for entry in left)]
    assert sorted(item.text for item in found) == sorted(item.text for item in everything)
    for entry in left:  # nothing that fits was left out
        assert count_tokens(entry.item.text) + recollection.tokens > budget
    lines = memory.explain().splitlines()
    assert len(lines) == 3 + len(recollection.items) + len(recollection.left_out)
    for item in found:
        assert any(f"[{item.module}" in line and item.text in line and item.why in line for line in lines)
    assert recollection.render().splitlines() == [item.text for item in recollection.items]


def test_each_module_gets_its_best_item_first():
    items = [Record(f"spatial:{i}", "spatial", "fact", f"spatial fact {i}", score=0.9) for i in range(20)]
    items += [
        Record(f"semantic:{i}", "semantic", "lesson", text, score=score)
        for i, (text, score) in enumerate([("a lesson of some length", 0.3), ("another one", 0.2)])
    ]
    recollection = pack(items, 30)
    assert [item.module for item in recollection.items].count("semantic") == 1
    assert recollection.items[-1].text == "a lesson of some length"
    same = pack(
        [
            Record("spatial:0", "spatial", "fact", "a", score=0.5),
            Record("semantic:0", "semantic", "works", "a", score=0.9),
        ]
    )
    assert [item.module for item in same.items] == ["semantic"]
    assert [entry.reason for entry in same.left_out] == ["another item says the same"]


@functools.cache
def words():
    found = (re.findall(r"\ba ([a-z]+ \d+)\b", episode.first_observation) for episode in episodes())
    return sorted({word for line in found for word in line})


@pytest.mark.parametrize("what", ["mug", "countertop 1", "drawer", "desk", "pen 1", "fridge 1"])
def test_forgetting_an_object_leaves_no_byte(what):
    memory = lived(LifelongMemory(Scope(user="ann")), running=3)
    pattern = re.compile(rf"(?<![a-z]){what}(?!\d)(?! \d\d)(?=[^a-z]|s\b)", re.IGNORECASE)
    before = pattern.findall(memory.state().decode(errors="replace"))
    receipt = memory.forget(object=what)
    assert pattern.findall(memory.state().decode(errors="replace").replace("_", " ")) == []
    assert (sum(receipt.values()) > 0) == bool(before)
    assert not any(pattern.search(item.text) for item in memory.retrieve("put a mug in the fridge").items)
    memory.observe("look", "You are facing the shelf 1. Next to it, you see nothing.")  # and it goes on
    memory.end_task(True)


def test_forgetting_was_needed():
    """The objects of the test above are in the bytes before; otherwise it would prove nothing."""
    state = lived(LifelongMemory(), running=3).state().decode(errors="replace")
    assert sum(what in state for what in ["mug", "countertop 1", "drawer", "desk", "pen 1", "fridge 1"]) >= 4


def test_forgetting_episodes_and_users():
    memory = lived(LifelongMemory(Scope(user="ann")), range(4), running=4)
    for gone in (1, 4):
        receipt = memory.forget(episode=gone)
        assert sum(receipt.values()) > 0
        for query in (*(episode.goal for episode in episodes()), "morning work"):
            assert all(gone != episode for item in memory.retrieve(query).items for episode, *_ in item.sources)
        assert episodes()[gone].task_id.encode() not in memory.state()
    assert any(source.episode == 2 for item in memory.retrieve(episodes()[2].goal).items for source in item.sources)
    with pytest.raises(InvalidInputError, match="user: expected one of ann, got 'bob'"):
        memory.forget(user="bob")
    with pytest.raises(InvalidInputError, match="episode: expected 0 to 4, got 5"):
        memory.forget(episode=5)
    seen = [entry.id for entry in memory.get_all() if entry.trust == "sensor"]
    assert "morning" in memory.state().decode(errors="replace")
    memory.forget(user="ann")
    assert "morning" not in memory.state().decode(errors="replace")
    assert [entry.id for entry in memory.get_all()] == seen
    assert seen
    memory.forget(everything=True)
    assert memory.retrieve("put a mug in the fridge").items == ()
    state = memory.state().decode(errors="replace")
    assert not any(word in state for word in words())
    assert memory.forget(everything=True)["task_ids"] == 0


@pytest.mark.parametrize("modules", [("spatial", "temporal"), ("episodic", "semantic"), ("profile",), ()])
def test_modules_can_be_switched_off(modules):
    memory = lived(LifelongMemory(modules=modules), range(2), running=2)
    recollection = memory.retrieve()
    assert {item.module for item in recollection.items} <= set(modules)
    assert bool(recollection.items) == bool(set(modules) - {"profile"})
    assert all((getattr(memory, name) is not None) == (name in modules) for name in MODULES)
    other = LifelongMemory(modules=modules)
    other.restore(memory.state())
    assert other.state() == memory.state()


def test_modules_run_in_parallel_with_a_model():
    """Both task-level proposals and a step's wait for each other in the model: only threads get through."""
    barrier = threading.Barrier(2, timeout=20)

    def chat(messages):
        if "list what it tells about the user" not in messages[0]["content"]:
            barrier.wait()
        return "none"

    memory = LifelongMemory(chat=chat)
    memory.begin_task("t", "put a mug in fridge.", "Looking quickly around you, you see a desk 1.")
    for number in range(4):  # the fourth step finds the buffer full: extractor and summarizer are asked together
        if number < 3:
            memory.observe("look", "You are facing the desk 1. Next to it, you see nothing.")
        else:
            memory.observe("sing", "A text that no rule knows.")
    memory.close()
    assert memory.writer.malformed == memory.writer.calls == 3
    by_rules = LifelongMemory()
    assert by_rules.writer is None


def test_threads_do_not_change_what_is_remembered():
    alone, threaded = (lived(LifelongMemory(parallel=parallel), running=5) for parallel in (False, True))
    assert alone.state() == threaded.state()
    assert alone.retrieve(budget_tokens=150) == threaded.retrieve(budget_tokens=150)
    threaded.close()


def test_the_examples_of_the_docs(capsys, tmp_path, monkeypatch):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "memory.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    marks = ("night drink", "oat milk", "Outcome(", "class Detections", "LifelongMemory.open(")
    first, told, observed, read, second = (next(block for block in blocks if mark in block) for mark in marks)
    names = {}
    exec(first, names)
    assert capsys.readouterr().out.startswith("mug 1 is on desk 1\n")
    exec(told, names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "ended notes:0: I like oat milk. (no longer, since time 2)"
    assert "soy" in lines[-3]
    assert lines[-1] == "2 2"
    exec(observed, names)
    assert "failure\non table 0.94 (2.0, 1.0, 0.0) " in capsys.readouterr().out
    exec(read, names)
    assert capsys.readouterr().out == "['mug'] ['cup']\n"
    exec(second, names)
    assert "mug 1 is on desk 1\n" in capsys.readouterr().out
    assert b"mug" in bytes_in(tmp_path / "memory" / "ann")  # the goal's class is another name
    assert b"mug 1" not in bytes_in(tmp_path / "memory" / "ann")


def test_place():
    first = episodes()[0].first_observation
    assert HOUSEHOLD.place(first).startswith("room-")
    assert HOUSEHOLD.place(first) == HOUSEHOLD.place(first.replace("Your task is to: ", "Your task is to: not "))
    assert HOUSEHOLD.place("nothing to see") == ""
    both = list(zip(games(), episodes()))
    places = {game.folder.rpartition("-")[2]: HOUSEHOLD.place(e.first_observation) for game, e in both}
    assert len(set(places.values())) == len(places) > 1
    for game, episode in zip(games(), episodes()):
        assert HOUSEHOLD.place(episode.first_observation) == places[game.folder.rpartition("-")[2]]


def test_wrong_calls():
    memory = LifelongMemory()
    with pytest.raises(InvalidInputError, match="observe: expected a running task"):
        memory.observe("look", "x")
    memory.begin_task("t", "g", "x")
    with pytest.raises(InvalidInputError, match="task 't' has not ended"):
        memory.begin_task("t", "g", "x")
    with pytest.raises(InvalidInputError, match="expected op begin, step, tell, edit, end or import"):
        memory.module.apply({"op": "dance"})
    with pytest.raises(InvalidInputError, match="expected some of spatial"):
        LifelongMemory(modules=("spatial", "moods"))
    with pytest.raises(InvalidInputError, match="expected modules"):
        LifelongMemory(modules=()).module.apply({"op": "tell", "events": {"spatial": {}}})
    with pytest.raises(InvalidInputError, match="episode: expected a whole number, got None"):
        memory.module.apply({"op": "step", "events": {}})
    state = memory.state()
    for wrong in (state[:-1], state + b"x", b"", state.partition(b"\n")[0], state.replace(b"lifelong", b"longlife")):
        with pytest.raises(InvalidInputError, match="state: expected"):
            memory.restore(wrong)
    assert memory.state() == state
    for selector in ({}, {"user": "ann", "object": "mug"}, {"object": " "}, {"episode": "3"}, {"episode": True}):
        with pytest.raises(InvalidInputError, match=r"selector: .*expected"):
            memory.forget(**selector)


SECRETS = {"object": "pen", "episode": 1, "user": "ann", "everything": True}


def bytes_in(folder) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("kind", SECRETS)
def test_a_memory_in_a_folder(tmp_path, kind):
    """Reopened it is the same, in the middle of a task too; what is forgotten is in no file, and was there before."""
    scope = Scope(user="ann", environment="home")
    with LifelongMemory.open(tmp_path, scope, fsync="never") as memory:
        lived(memory, range(3))
        memory.store.snapshot()
        lived(memory, range(3, 5), running=5)
        state, answer = memory.state(), memory.retrieve(budget_tokens=200)
    alone = LifelongMemory(scope)
    lived(lived(alone, range(3)), range(3, 5), running=5)
    assert state == alone.state()
    memory = LifelongMemory.open(tmp_path, scope, fsync="never")
    assert memory.store.report.num_events > 0
    assert memory.state() == state
    assert memory.retrieve(budget_tokens=200) == answer
    goals = [episode.goal for episode in episodes()]
    texts = {
        "object": [rf"(?<![a-z]){SECRETS['object']}(?![a-z])"],
        "episode": [re.escape(episodes()[SECRETS["episode"]].task_id)],
        "user": ["morning"],
        "everything": ["morning", *map(re.escape, goals), *(rf"(?<![a-z]){word}(?!\d)" for word in words())],
    }[kind]
    found = [text for text in texts if re.search(text.encode(), bytes_in(tmp_path), re.IGNORECASE)]
    assert texts[0] in found
    assert sum(memory.forget(**{kind: SECRETS[kind]}).values()) > 0
    for text in texts:
        assert re.search(text.encode(), bytes_in(tmp_path), re.IGNORECASE) is None, text
    state = memory.state()
    memory.close()
    with LifelongMemory.open(tmp_path, scope, read_only=True) as again:
        assert again.state() == state
    with pytest.raises(InvalidInputError, match="scope"):
        LifelongMemory.open(tmp_path, Scope(user="bob"))


def test_an_event_that_is_refused_does_not_hurt_the_folder(tmp_path):
    with LifelongMemory.open(tmp_path, fsync="never") as memory:
        with pytest.raises(InvalidInputError, match="episode: expected a whole number, got None"):
            memory.store.record("lifelong", {"op": "begin", "goal": "x"})
        assert memory.store.last_event == 0
        lived(memory, range(1))
        state, events = memory.state(), memory.store.last_event
    with LifelongMemory.open(tmp_path) as again:
        assert (again.store.report.num_events, again.store.report.num_rejected) == (events, 0)  # it was not recorded
        assert again.state() == state


def test_forks_are_independent():
    """64 forks go on with different episodes: each is what a memory is that lived through its own alone."""
    memory = lived(LifelongMemory(Scope(user="ann")), range(3), running=3)
    before, answer = memory.state(), memory.retrieve()
    forks = [memory.fork() for _ in range(64)]
    assert forks[0].retrieve() == answer
    for number, fork in enumerate(forks):
        fork.observe("look", f"On the desk {number}, you see a vase {number}.")
        if number % 2:
            fork.end_task(True)
            fork.tell(f"My favourite thing is the vase {number}.")
        if number % 4 == 1:
            replay(fork, episodes()[number % 6])
        if number % 8 == 0:
            fork.forget(object="mug")
    assert (memory.state(), memory.retrieve()) == (before, answer)
    for number in (0, 1, 2, 3, 8, 61, 63):
        alone = LifelongMemory(memory.scope)
        alone.restore(before)
        alone.observe("look", f"On the desk {number}, you see a vase {number}.")
        if number % 2:
            alone.end_task(True)
            alone.tell(f"My favourite thing is the vase {number}.")
        if number % 4 == 1:
            replay(alone, episodes()[number % 6])
        if number % 8 == 0:
            alone.forget(object="mug")
        assert forks[number].state() == alone.state(), number
        assert forks[number].retrieve("a vase and a mug") == alone.retrieve("a vase and a mug")
    memory.end_task(False)  # the one that was forked goes on, too
    alone = LifelongMemory(memory.scope)
    alone.restore(before)
    alone.end_task(False)
    assert memory.state() == alone.state()
    grandchild = forks[1].fork()
    state = forks[1].state()
    grandchild.forget(user="ann")
    assert forks[1].state() == state


def test_a_fork_shares_what_does_not_change():
    """Memory that a fork takes does not go with the size: bytes, since time depends on the machine.

    The least of five: other threads of the process allocate too.
    """

    def size_of_a_fork(num_things: int) -> int:
        memory = LifelongMemory()
        memory.begin_task("t", "put a mug in fridge.", "", place="hall")
        for shelf in range(num_things // 50):
            names = ", ".join(f"a mug {50 * shelf + i}" for i in range(50))
            memory.observe("look", f"On the shelf {shelf}, you see {names}.")
        memory.retrieve()
        sizes = []
        for _ in range(5):
            tracemalloc.start()
            fork = memory.fork()
            sizes.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()
            assert fork.state() == memory.state()
        return min(sizes)

    small, large = size_of_a_fork(500), size_of_a_fork(10_000)
    assert large < small + 10_000 < 50_000
