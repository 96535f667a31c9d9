"""The memory-grounded household agent in a two-room house: what memory decides, what it says when nothing does."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import pytest
from memento_play import play

from embodied_mem.worlds.memento.data import load_tasks
from embodied_mem.worlds.memento.env import MementoVectorEnv
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep
from experiments.solvers.memento.planner import MemoryPlanner

sys.path.insert(0, str(Path(__file__).parents[2] / "envs"))
import memento_house


def run(folder, instruction, goal, memories=(), profile=None, max_steps=40, **changes):
    """Play one task in the small house; the turns and whether the goal stood at the end."""
    constraints = memento_house.EPISODE["evaluation_constraints"][1:]
    constraints = [{**constraints[0], "args": {"proposition_indices": list(range(len(goal))), "n_propositions": None}}]
    entry = memento_house.episode(
        instruction=instruction,
        evaluation_propositions=goal,
        evaluation_proposition_dependencies=[],
        evaluation_constraints=constraints,
        **changes,
    )
    envs = MementoVectorEnv(load_tasks("acquisition", memento_house.write_data(folder, entry)), max_steps=max_steps)
    observations, _ = envs.reset()
    won = []

    def step(action):
        observations, _, terminations, truncations, info = envs.step([action])
        won.append(bool(info["won"][0]))
        return observations[0], bool(terminations[0] or truncations[0])

    turns = play(MemoryPlanner(), instruction, observations[0], step, memories, profile)
    return turns, won[-1]


def actions(turns) -> list[str]:
    return [turn.action for turn in turns]


def on(name: str, *pieces: str) -> dict:
    return memento_house.on_top(f"{name}_:0000", *pieces)


def test_a_piece_without_the_relation_is_used_the_other_way(tmp_path):
    turns, won = run(tmp_path, "Put the book on the cabinet.", [on("Book", "cabinet_5")])
    assert won
    assert "Place[book_1, within, cabinet_5, None, None]" in actions(turns)


def test_a_room_on_the_way_is_passed(tmp_path):
    turns, won = run(
        tmp_path,
        "First, bring the cup to the bedroom. Then, place it on the table in the kitchen.",
        [on("Cup", "table_4")],
    )
    done = actions(turns)
    assert won
    assert (
        done.index("Pick[cup_0]")
        < done.index("Navigate[bedroom_1]")
        < done.index("Place[cup_0, on, table_4, None, None]")
    )


TWO_CUPS = {
    "rigid_objs": [
        [name, [[1, 0, 0, x], [0, 1, 0, 0.5], [0, 0, 1, z], [0, 0, 0, 1]]]
        for name, x, z in (("Mug", 3.0, 4.2), ("Cup", 3.1, 4.0))
    ],
    "name_to_receptacle": {"Mug_:0000": "table_4_handle|on", "Cup_:0000": "table_4_handle|on"},
}


@pytest.fixture
def two_cups(monkeypatch):
    monkeypatch.setitem(memento_house.CAPTIONS, "Mug", {"category": "cup", "caption": "A blue cup with stars."})


def test_a_gift_is_known_by_the_look_that_memory_has(tmp_path, two_cups):
    text = "Put the cup on the bed. The cup is red. It was a gift from my aunt."
    turns, won = run(tmp_path, text, [on("Cup", "bed_6")], **TWO_CUPS)
    memory = Trace("1", "small", text, turns)
    asked = "Please put the gift cup from my aunt on the bed."
    again, won = run(tmp_path, asked, [on("Cup", "bed_6")], [memory], **TWO_CUPS)
    assert won
    assert "Pick[cup_0]" not in actions(again)
    unknown, _ = run(tmp_path, asked, [on("Cup", "bed_6")], **TWO_CUPS)
    assert any("I do not know which object 'the gift cup from my aunt' is" in turn.thought for turn in unknown)


def test_what_a_thing_goes_next_to_comes_along(tmp_path):
    turns, won = run(tmp_path, "Put the book next to the cup on the bed.", [on("Cup", "bed_6"), on("Book", "bed_6")])
    assert won
    assert "Place[book_1, on, bed_6, next_to, cup_0]" in actions(turns)


@pytest.mark.parametrize(
    "asked", ["Place my chosen decor on the bed where I like it.", "Put my collection on the bed."]
)
def test_a_name_that_only_memory_understands_means_all_of_its_things(tmp_path, asked):
    text = "Move the cup and the book to the bed. They are part of my collection. I like my treasures there."
    turns, won = run(tmp_path, text, [on("Cup", "bed_6"), on("Book", "bed_6")])
    assert won
    memory = Trace("1", "small", text, turns)
    _, won = run(tmp_path, asked, [on("Cup", "bed_6"), on("Book", "bed_6")], [memory])
    assert won


SUCCESS = "Result: Successful execution!\nObjects: "
TABLES = {"table_4": [3.0, 0.5, 4.0], "table_8": [-6.0, 0.5, 0.0], "table_9": [6.0, 0.5, -6.0]}


def furnish(monkeypatch: pytest.MonkeyPatch, chairs_at: str) -> None:
    """Three tables in the kitchen, far from each other, with two chairs at one of them."""
    scene = copy.deepcopy(memento_house.SCENES["small"])
    model = scene["furniture"][0]
    x, y, z = TABLES[chairs_at]
    added = {name: place for name, place in TABLES.items() if name != "table_4"}
    added |= {"chair_10": [x + 0.8, y, z], "chair_11": [x - 0.8, y, z]}
    for name, place in added.items():
        piece = copy.deepcopy(model) | {"name": name, "type": name.rpartition("_")[0], "sim_handle": f"{name}_handle"}
        piece["translation"] = place
        piece["receptacles"] = [{"name": f"rec_{name}_on", "relation": "on", "sim_handle": f"{name}_handle|on"}]
        scene["furniture"].append(piece)
    monkeypatch.setitem(memento_house.SCENES, "small", scene)


@pytest.mark.parametrize("together", ["", " Place them next to each other."])
def test_a_chair_from_which_two_tables_are_within_reach_is_outvoted(tmp_path, monkeypatch, together):
    furnish(monkeypatch, chairs_at="table_8")
    scene = memento_house.SCENES["small"]
    places = {"chair_10": [-5.2, 0.5, 0.0], "chair_12": [-5.2, 0.5, 0.5], "table_14": [-8.2, 0.5, 0.0]}
    model = next(piece for piece in scene["furniture"] if piece["name"] == "chair_10")
    for name in ("chair_12", "table_14"):
        text = json.dumps(model).replace("chair_10", name)
        scene["furniture"].append(json.loads(text) | {"type": name.rpartition("_")[0]})
    for piece in scene["furniture"]:
        piece["translation"] = places.get(piece["name"], piece["translation"])
    goal = memento_house.on_top("Vase_:0000", "table_8")
    misled = 0
    for wish in ("", "please ", "kindly ", "now ", "also "):
        text = f"{wish}bring the vase and the cup to the dining table.{together}"
        turns, won = run(tmp_path, text, [goal])
        assert won
        misled += "Place[vase_2, on, table_14, None, None]" in actions(turns)
    assert 0 < misled < 5, "by the words it is another chair that is asked first"


def told(number: int, thing: str, piece: str) -> Trace:
    """A memory in which a thing was put on what the agent took for the dining table."""
    steps = (
        TraceStep("", "Explore[bedroom_1]", f"{SUCCESS}{thing}_{number}: bed_6 in bedroom_1"),
        TraceStep("", f"Pick[{thing}_{number}]", f"{SUCCESS}{thing}_{number}: held by the agent"),
        TraceStep(
            "", f"Place[{thing}_{number}, on, {piece}, None, None]", f"{SUCCESS}{thing}_{number}: {piece} in kitchen_1"
        ),
    )
    return Trace(str(number), "small", f"Put the {thing} on the dining table. I like the {thing} there for tea.", steps)


def test_most_memories_say_which_piece_is_called_so(tmp_path, monkeypatch):
    furnish(monkeypatch, chairs_at="table_9")
    wrong, others = told(2, "vase", "table_4"), [told(3, "lamp", "table_8"), told(4, "clock", "table_8")]
    goal = memento_house.on_top("Vase_:0000", "table_8")
    turns, won = run(tmp_path, "Put the vase where I like it for tea.", [goal], [wrong, *others])
    assert won, "two memories against one"
    assert not any(action.startswith("Navigate[chair_") for action in actions(turns))
