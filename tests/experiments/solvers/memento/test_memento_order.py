"""The agent's choices do not depend on the order in which things are listed, nor on the numbers in objects' names.

MEMENTO's files list what is asked for first, and an object's number is its place in that list: an agent that reads
either is told the answer.
"""

from __future__ import annotations

import random
import re

import pytest
from memento_play import play

from embodied_mem.worlds.memento.data import DEVELOPMENT_SCENES, load_records, related_ids, tasks_of
from embodied_mem.worlds.memento.env import MementoVectorEnv
from embodied_mem.worlds.memento.traces.trace import Trace, drawn
from experiments.solvers.memento import reading as household_view
from experiments.solvers.memento.planner import MemoryPlanner

NUMBER = re.compile(r"_(\d+)\Z")


def renumbered(name: str) -> str:
    """The name with the last number first; done twice, the name itself."""
    return NUMBER.sub(lambda m: f"_{999 - int(m[1])}", name)


def undone(name: str) -> str:
    """The name as it was; those of pieces and rooms were never changed."""
    match = NUMBER.search(name)
    return renumbered(name) if match and int(match[1]) >= 500 else name


class Plain:
    """What stands between world and agent; here nothing."""

    def shown(self, observation: str) -> str:
        return observation

    def said(self, action: str) -> str:
        return action


class Shuffled(Plain):
    """Lists of rooms, pieces and objects in another order each time."""

    def __init__(self):
        self.rng = random.Random(1)

    def shown(self, observation: str) -> str:
        if "Furniture:\n" in observation:
            before, _, rest = observation.partition("Furniture:\n")
            rooms, gap, rest = rest.partition("\n\n")
            lines = [line.partition(": ") for line in rooms.splitlines()]
            lines = [(room, self.mixed(names.split(", "))) for room, _, names in lines]
            rooms = "\n".join(f"{room}: {', '.join(names)}" for room, names in self.mixed(lines))
            return f"{before}Furniture:\n{rooms}{gap}{rest}"
        head, mark, objects = observation.rpartition("Objects: ")
        return head + mark + "\n".join(self.mixed(objects.splitlines()))

    def mixed(self, items: list) -> list:
        return self.rng.sample(items, len(items))


class Renumbered(Plain):
    """Every object has another number."""

    def __init__(self):
        self.names: dict[str, str] = {}

    def shown(self, observation: str) -> str:
        self.names |= {name: renumbered(name) for name in household_view.parse_objects(observation)}
        return self._replaced(observation, self.names)

    def said(self, action: str) -> str:
        return self._replaced(action, {new: old for old, new in self.names.items()})

    @staticmethod
    def _replaced(text: str, names: dict[str, str]) -> str:
        if not names:
            return text
        pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        return re.sub(rf"\b(?:{pattern})\b", lambda m: names[m[0]], text)


def actions_of(root, record, between: Plain, memories=()) -> tuple[list[str], Trace]:
    """What the world gets to hear, and the memory of it as the agent has it."""
    envs = MementoVectorEnv(tasks_of([record], root))
    observations, _ = envs.reset()
    heard = []

    def step(action):
        heard.append(between.said(action))
        observations, _, terminations, truncations, _ = envs.step([heard[-1]])
        return between.shown(observations[0]), bool(terminations[0] or truncations[0])

    turns = play(MemoryPlanner(), record["instruction"], between.shown(observations[0]), step, memories)
    return heard, Trace(str(record["episode_id"]), record["scene_id"], record["instruction"], turns)


@pytest.fixture(scope="module")
def episodes(memento_data):
    """The first three acquisition entries of each development house with their single ones."""
    singles = {related_ids(record)[0]: record for record in load_records("single", memento_data)}
    chosen = []
    for scene in DEVELOPMENT_SCENES:
        of_scene = [r for r in load_records("acquisition", memento_data) if r["scene_id"] == scene]
        chosen += [(record, singles[str(record["episode_id"])]) for record in of_scene[:3]]
    return chosen


def test_the_order_of_lists_changes_nothing(memento_data, episodes):
    for acquisition, single in episodes:
        heard, memory = actions_of(memento_data, acquisition, Plain())
        assert actions_of(memento_data, acquisition, Shuffled())[0] == heard
        assert (
            actions_of(memento_data, single, Shuffled(), [memory])[0]
            == actions_of(memento_data, single, Plain(), [memory])[0]
        )


def test_the_numbers_of_objects_say_nothing_but_by_their_hash(memento_data, episodes, monkeypatch):
    for acquisition, single in episodes:
        heard, memory = actions_of(memento_data, acquisition, Plain())
        again, _ = actions_of(memento_data, single, Plain(), [memory])
        with monkeypatch.context() as patch:
            patch.setattr(household_view, "drawn", lambda asked, name: drawn(asked, undone(name)))
            assert actions_of(memento_data, acquisition, Renumbered())[0] == heard
            assert actions_of(memento_data, single, Renumbered(), [memory])[0] == again


def test_what_is_drawn_is_any_and_the_same_in_every_process():
    assert drawn("bring the cup", "cup_0") == 186545967329558
    names = [f"cup_{i}" for i in range(4)]
    first = [min(names, key=lambda name: drawn(f"task {i}", name)) for i in range(400)]
    assert all(70 <= first.count(name) <= 130 for name in names)  # 100 each, standard deviation 9
