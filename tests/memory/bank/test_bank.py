"""Experiences: retrieval against a plain sort, no leaks, files that are whole or refused."""

from __future__ import annotations

import gzip
import os
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experience, Experiences, LexicalEmbedder
from embodied_mem.memory.bank import rationale_for
from embodied_mem.memory.readers import HOUSEHOLD
from embodied_mem.types import Episode, Step

KITCHEN = "Looking quickly around you, you see a fridge 1, a drawer 2, a drawer 1, a sinkbasin 1, and a microwave 1."
BIG_KITCHEN = "Looking quickly around you, you see a fridge 1, a drawer 1, a cabinet 2, a sinkbasin 1, and a stove 1."
BEDROOM = "Looking quickly around you, you see a bed 1, a desk 1, a drawer 2, a drawer 1, and a safe 1."


def first_observation(room: str, goal: str) -> str:
    return f"-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. {room}\n\nYour task is to: {goal}"


def episode(task_id: str, goal: str, room: str = KITCHEN, won: bool = True, place: str = "drawer 1") -> Episode:
    thing = f"{HOUSEHOLD.goal_object(goal)} 1"
    steps = (
        Step(first_observation(room, goal), f"go to {place}"),
        Step(f"You arrive at {place}. On the {place}, you see a {thing}.", f"take {thing} from {place}"),
    )
    return Episode(task_id, goal, steps, won, f"You pick up the {thing} from the {place}.")


def task_key(task_id: str) -> str:
    return re.search(r"trial_T\w+", task_id)[0]


def random_bank(count: int, seed: int) -> tuple[Experiences, random.Random]:
    rng = random.Random(seed)
    bank = Experiences(task_key=task_key)
    verbs = ["put a clean", "heat some", "put two", "examine the", "put a"]
    things, places = ["apple", "mug", "book", "cd"], ["fridge", "shelf", "desk"]
    bank.add_many(
        [
            episode(
                f"task-{rng.randrange(5)}/trial_T{i % (count // 2)}_1",
                f"{rng.choice(verbs)} {rng.choice(things)} in {rng.choice(places)}.",
                rng.choice([KITCHEN, BIG_KITCHEN, BEDROOM]),
                place=rng.choice(["drawer 1", "drawer 2", "desk 1"]),
            )
            for i in range(count)
        ]
    )
    return bank, rng


def test_retrieve_equals_sorting_by_the_documented_score():
    bank, rng = random_bank(60, seed=1)
    embed = LexicalEmbedder().embed
    for _ in range(40):
        goal = rng.choice(bank.records)[0].goal if rng.random() < 0.8 else "heat a mug in nowhere"
        room = rng.choice([KITCHEN, BEDROOM, ""])
        context = first_observation(room, goal) if room else ""
        excluded = [f"x/y/trial_T{rng.randrange(30)}_1/game.tw-pddl" for _ in range(rng.randrange(20))]
        k = rng.randrange(1, 80)
        expected = []
        for index, (stored, _) in enumerate(bank.records):
            if any(task_key(name) == task_key(stored.task_id) for name in excluded):
                continue
            goals = embed([goal, stored.goal])
            rooms = embed([HOUSEHOLD.room(text) for text in (context, stored.first_observation)])
            same = HOUSEHOLD.goal_object(goal) == HOUSEHOLD.goal_object(stored.goal)
            score = float(goals[0] @ goals[1]) + 8.0 * same
            score += 4.0 * max(0.0, float(rooms[0] @ rooms[1])) ** 8
            expected.append((-round(score, 4), index))
        expected = [bank.records[index][0] for _, index in sorted(expected)]
        found = bank.retrieve(goal, k, context, excluded, distinct=False)
        assert [experience.episode for experience in found] == expected[:k]
        assert [e.score for e in found] == sorted((e.score for e in found), reverse=True)
        places: set[str] = set()
        new, repeated, others = [], [], []
        for stored in expected:
            place = stored.steps[0].action.removeprefix("go to ")
            if HOUSEHOLD.goal_object(stored.goal) != HOUSEHOLD.goal_object(goal):
                others.append(stored)
            elif place in places:
                repeated.append(stored)
            else:
                new.append(stored)
                places.add(place)
        found = bank.retrieve(goal, k, context, excluded)
        assert [experience.episode for experience in found] == [*new, *repeated, *others][:k]


def test_same_object_in_the_same_room_comes_first_then_elsewhere_then_others():
    bank = Experiences()
    goal = "put a clean apple in fridge."
    bank.add(episode("other-object/trial_T1", "put a clean mug in fridge."))
    bank.add(episode("elsewhere/trial_T2", goal, BIG_KITCHEN))
    bank.add(episode("here/trial_T3", "heat some apple and put it in diningtable."))
    found = bank.retrieve(goal, 3, context=first_observation(KITCHEN, goal))
    assert [e.episode.task_id.split("/")[0] for e in found] == ["here", "elsewhere", "other-object"]
    assert [e.same_room for e in found] == [True, False, True]
    assert [e.same_object for e in found] == [True, True, False]
    without = bank.retrieve(goal, 3)
    assert [e.episode.task_id.split("/")[0] for e in without] == ["elsewhere", "here", "other-object"]
    assert without[0].same_room is None


def test_ties_go_to_the_first_added():
    bank = Experiences()
    goal = "put a mug in shelf."
    bank.add_many([episode(f"t/trial_T{i}", goal) for i in range(20)])
    assert [e.episode.task_id for e in bank.retrieve(goal, 7)] == [f"t/trial_T{i}" for i in range(7)]


def test_without_a_key_a_task_is_its_id():
    bank = Experiences()
    bank.add(episode("room-3/task-7", "put a mug in shelf."))
    assert len(bank.retrieve("put a mug in shelf.", 1, exclude_task_ids=["games/room-3/task-7"])) == 1
    assert bank.retrieve("put a mug in shelf.", 1, exclude_task_ids=["room-3/task-7"]) == []


def test_the_same_episode_is_stored_once_and_failures_never():
    bank = Experiences()
    first = episode("t/trial_T1", "put a mug in shelf.")
    assert bank.add_many([first, first]) == [0, 0]
    assert bank.add(episode("t/trial_T1", "put a mug in shelf.")) == 0
    with pytest.raises(InvalidInputError, match="won=False"):
        bank.add_many([episode("t/trial_T2", "g"), episode("t/trial_T3", "g", won=False)])
    assert len(bank) == 1


def test_empty_cases_and_wrong_arguments():
    bank = Experiences()
    assert bank.retrieve("put a mug in shelf.") == []
    bank.add(episode("t/trial_T1", "put a mug in shelf."))
    assert bank.retrieve("x", 0) == []
    assert bank.retrieve("x", 3, exclude_task_ids=("t/trial_T1",)) == []
    assert bank.retrieve("", 1)[0].score == 0
    with pytest.raises(InvalidInputError, match="k: expected >= 0"):
        bank.retrieve("x", -1)
    with pytest.raises(InvalidInputError, match="one text"):
        bank.retrieve("x", 1, exclude_task_ids="trial_T1")


class CountingEmbedder(LexicalEmbedder):
    """The lexical embedder, remembering what it was asked."""

    def __init__(self):
        super().__init__()
        self.asked: list[str] = []

    def embed(self, texts):
        self.asked.extend(texts)
        return super().embed(texts)


def test_every_text_is_embedded_once():
    embedder = CountingEmbedder()
    bank = Experiences(embedder)
    for i in range(30):
        bank.add(
            episode(f"t/trial_T{i}", f"put a {'mug' if i % 2 else 'cup'} in shelf.", KITCHEN if i % 3 else BEDROOM)
        )
    assert sorted(embedder.asked) == sorted(
        ["put a mug in shelf.", "put a cup in shelf.", HOUSEHOLD.room(KITCHEN), HOUSEHOLD.room(BEDROOM)]
    )


def test_embedder_is_stable_across_processes(tmp_path):
    import subprocess
    import sys

    code = (
        "from embodied_mem.memory import LexicalEmbedder; import sys;"
        "sys.stdout.buffer.write(LexicalEmbedder(64).embed(['Put a clean apple, 2!', '', 'é \\ud800']).tobytes())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    here = LexicalEmbedder(64).embed(["Put a clean apple, 2!", "", "é \ud800"])
    assert outputs == {here.tobytes()}
    assert here.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(here, axis=1), [1, 0, 1], atol=1e-6)
    with pytest.raises(InvalidInputError, match="sequence"):
        LexicalEmbedder().embed("text")


texts = st.text(max_size=30)
episodes = st.builds(
    Episode, texts, texts, st.lists(st.builds(Step, texts, texts), max_size=4).map(tuple), st.just(True), texts
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(episodes, max_size=5), st.booleans())
def test_saving_loses_nothing(tmp_path_factory, stored, compress):
    path = tmp_path_factory.mktemp("bank") / ("bank.jsonl.gz" if compress else "bank.jsonl")
    bank = Experiences(context_weight=0.5, object_weight=3)
    bank.add_many(stored)
    bank.save(path)
    again = Experiences.load(path)
    assert again.records == bank.records
    assert (again.context_weight, again.object_weight) == (0.5, 3)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first
    assert os.listdir(path.parent) == [path.name]


def test_given_rationales_are_kept(tmp_path):
    bank = Experiences()
    bank.add(episode("t/trial_T1", "put a mug in shelf."), "because \n it was there")
    bank.save(tmp_path / "bank.jsonl")
    assert Experiences.load(tmp_path / "bank.jsonl").records[0][1] == "because it was there"
    with pytest.raises(InvalidInputError, match="one per episode"):
        bank.add_many([], ["x"])


@pytest.mark.parametrize("name", ["bank.jsonl", "bank.jsonl.gz"])
def test_any_truncation_and_any_changed_byte_is_an_error(tmp_path, name):
    path = tmp_path / name
    bank = Experiences()
    bank.add_many([episode(f"t/trial_T{i}", "put a mug in shelf.") for i in range(3)])
    bank.save(path)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(InvalidInputError, match=name):
            Experiences.load(path)
    for position in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            loaded = Experiences.load(path)
        except InvalidInputError:
            continue
        # Left: bytes that carry no record (the gzip header's flags, a weight, the spacing of the JSON header).
        assert loaded.records == bank.records
        assert position < len(data.partition(b"\n")[0]) or name.endswith(".gz")
    path.write_bytes(data + b"x" if name == "bank.jsonl" else gzip.compress(gzip.decompress(data) + b"x"))
    with pytest.raises(InvalidInputError, match="bytes after the header"):
        Experiences.load(path)


def test_another_embedder_is_refused(tmp_path):
    Experiences(LexicalEmbedder(64)).save(tmp_path / "bank.jsonl")
    with pytest.raises(InvalidInputError, match="lexical-64"):
        Experiences.load(tmp_path / "bank.jsonl")
    assert len(Experiences.load(tmp_path / "bank.jsonl", LexicalEmbedder(64))) == 0


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "bank.jsonl"
    bank = Experiences()
    bank.add(episode("t/trial_T1", "put a mug in shelf."))
    bank.save(path)
    before = path.read_bytes()
    bank.add(episode("t/trial_T2", "put a mug in shelf."))
    landed = []

    def fail(*args, **kwargs):
        landed.append(failing)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(OSError, match="No space"):
            bank.save(path)
    assert landed == [failing]
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["bank.jsonl"]
    bank.save(path)
    assert len(Experiences.load(path)) == 2


def test_render_is_short_and_regular():
    bank = Experiences()
    goal = "put a mug in shelf."
    steps = (
        Step(first_observation(KITCHEN, goal), "go to drawer 2"),
        Step("You arrive at drawer 2. The drawer 2 is closed.", "open drawer 2"),
        Step("You open the drawer 2. The drawer 2 is open. In it, you see nothing.", "go to drawer 1"),
        Step("You arrive at drawer 1. The drawer 1 is closed.", "open drawer 1"),
        Step("You open the drawer 1. The drawer 1 is open. In it, you see a mug 1.", "take mug 1 from drawer 1"),
        Step("You pick up the mug 1 from the drawer 1.", "go to shelf 1"),
        Step("You arrive at shelf 1. On the shelf 1, you see nothing.", "move mug 1 to shelf 1"),
    )
    bank.add(Episode("t/trial_T1", goal, steps, True, "You move the mug 1 to the shelf 1."))
    assert bank.records[0][1] == rationale_for(bank.records[0][0])
    here = bank.retrieve(goal, 1, first_observation(KITCHEN, "other"))[0]
    assert here.render() == (
        "here: put a mug in shelf; mug 1 was in drawer 1; placed in shelf 1; 7 steps\n"
        "acts: go to drawer 1; open drawer 1; take mug 1 from drawer 1; go to shelf 1; move mug 1 to shelf 1"
    )
    assert here.render(max_actions=2).endswith("acts: go to drawer 1; open drawer 1")
    away = bank.retrieve(goal, 1, first_observation(BEDROOM, "other"))[0]
    assert away.render(0) == "elsewhere: put a mug in shelf; mug 1 was in drawer 1; placed in shelf 1; 7 steps"
    assert bank.retrieve(goal, 1)[0].render(0).startswith("past: ")


def test_brief_has_no_numbers_of_objects_and_says_nothing_twice():
    def brief(rationale: str, goal: str = "put two pen in desk", same_object: bool = True) -> str:
        episode = Episode("t/trial_T1", goal, (Step("", "look"),), True, "")
        return Experience(episode, rationale, same_object=same_object, same_room=True).brief()

    assert (
        brief("pen 1 was in desk 2; placed in safe 1; pen 12 was in desk 2; placed in safe 1; 9 steps")
        == "here: pen was in desk 2; placed in safe 1"
    )
    assert brief("mug 1 cleaned at sinkbasin 1; cooled in fridge 1; 1 step") == (
        "here: mug cleaned at sinkbasin 1; cooled in fridge 1"
    )
    assert (
        brief("cd 2 was in bed 1; used desklamp 3 in desk 1; 4 steps")
        == "here: cd was in bed 1; used desklamp in desk 1"
    )
    assert brief("used desklamp 1; 2 steps", same_object=False) == "here: put two pen in desk; used desklamp"
