"""What the household agent does where something is left open: names of pieces, lost things, few actions."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from memento_play import play

from embodied_mem.worlds.memento.data import load_tasks
from embodied_mem.worlds.memento.env import MementoVectorEnv
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep
from experiments.solvers.memento.memory import Move, Thing, _assign
from experiments.solvers.memento.planner import MemoryPlanner, Reach, Search, Stand
from experiments.solvers.memento.reading import HouseView, PlaceWords, says_more

sys.path.insert(0, str(Path(__file__).parents[2] / "envs"))
import memento_house

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


def run(
    folder: Path, instruction: str, goal: dict, memories: Sequence[Trace] = (), max_actions: int = 40, **changes: object
) -> tuple[list[str], bool]:
    """The actions of one task in the small house, and whether its goal stood at the end."""
    final = {"proposition_indices": [0], "n_propositions": None}
    entry = memento_house.episode(
        instruction=instruction,
        evaluation_propositions=[goal],
        evaluation_proposition_dependencies=[],
        evaluation_constraints=[{"type": "TerminalSatisfactionConstraint", "args": final}],
        **changes,
    )
    envs = MementoVectorEnv(load_tasks("acquisition", memento_house.write_data(folder, entry)), max_steps=40)
    observations, _ = envs.reset()
    won = []

    def step(action: str) -> tuple[str, bool]:
        observations, _, terminations, truncations, info = envs.step([action])
        won.append(bool(info["won"][0]))
        return observations[0], bool(terminations[0] or truncations[0])

    turns = play(MemoryPlanner(max_actions=max_actions), instruction, observations[0], step, memories)
    return [turn.action for turn in turns], won[-1]


@pytest.mark.parametrize("piece", TABLES)
def test_the_dining_table_is_the_one_with_chairs(tmp_path, monkeypatch, piece):
    furnish(monkeypatch, chairs_at=piece)
    goal = memento_house.on_top("Vase_:0000", piece)
    actions, won = run(tmp_path, "Bring the vase from the bedroom to the dining table.", goal)
    assert won
    assert any(action.startswith("Navigate[chair_") for action in actions)


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
        actions, won = run(tmp_path, text, goal)
        assert won
        misled += "Place[vase_2, on, table_14, None, None]" in actions
    assert 0 < misled < 5, "by the words it is another chair that is asked first"


def test_a_table_without_a_name_is_any_table(tmp_path, monkeypatch):
    furnish(monkeypatch, chairs_at="table_8")
    goal = memento_house.on_top("Vase_:0000", *TABLES)
    actions, won = run(tmp_path, "Bring the vase from the bedroom to the kitchen table.", goal)
    assert won
    assert not any(action.startswith("Navigate[chair_") for action in actions), "no action is spent on it"


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
    actions, won = run(tmp_path, "Put the vase where I like it for tea.", goal, [wrong, *others])
    assert won, "two memories against one"
    assert not any(action.startswith("Navigate[chair_") for action in actions)


def test_where_memories_differ_it_finds_out_again(tmp_path, monkeypatch):
    furnish(monkeypatch, chairs_at="table_9")
    goal = memento_house.on_top("Vase_:0000", "table_9")
    memories = [told(2, "vase", "table_4"), told(3, "lamp", "table_8")]
    _, won = run(tmp_path, "Put the vase where I like it for tea.", goal, memories)
    assert won


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Place them next to each other.", True),
        ("Then put it on the shelves and leave it there.", True),
        ("Put the cup next to them.", False),
        ("Move it and the cup to the table; then take the book.", False),
        ("It is my lucky pen.", False),
    ],
)
def test_a_sentence_about_what_was_named_before(sentence, expected):
    assert says_more(sentence) == expected


def test_nothing_is_moved_before_all_of_a_memory_was_looked_for(tmp_path):
    seen = "cup_0: table_4 in kitchen_1\nlamp_9: bed_6 in bedroom_1"
    steps = (
        TraceStep("", "Explore[bedroom_1]", SUCCESS + seen),
        TraceStep("", "Pick[cup_0]", SUCCESS + "cup_0: held by the agent"),
        TraceStep("", "Place[cup_0, within, cabinet_5, None, None]", SUCCESS + "cup_0: cabinet_5 in kitchen_1"),
        TraceStep("", "Pick[lamp_9]", SUCCESS + "lamp_9: held by the agent"),
        TraceStep("", "Place[lamp_9, within, cabinet_5, None, None]", SUCCESS + "lamp_9: cabinet_5 in kitchen_1"),
    )
    lost = Trace("3", "small", "Put the cup and the lamp into the cabinet. I like that for a calm day.", steps)
    vase = Trace("4", "small", "Put the vase on the bed. I like the vase on the bed for a calm night.")
    goal = memento_house.on_top("Vase_:0000", "bed_6")
    actions, won = run(tmp_path, "Set up my calm day.", goal, [lost, vase])
    assert won
    assert "Pick[cup_0]" not in actions


@pytest.mark.parametrize(
    ("told", "asked", "looks"),
    [
        ("I like the cup on the bed for tea.", "Put the cup where I like it for tea.", False),
        ("It was a gift from my aunt.", "Put the gift cup from my aunt on the bed.", True),
    ],
)
def test_what_is_called_by_its_category_alone_is_taken_where_memory_found_it(tmp_path, monkeypatch, told, asked, looks):
    monkeypatch.setitem(memento_house.CAPTIONS, "Mug", {"category": "cup", "caption": "A blue cup with stars."})
    changes = {
        "rigid_objs": [
            [name, [[1, 0, 0, x], [0, 1, 0, 0.5], [0, 0, 1, z], [0, 0, 0, 1]]]
            for name, x, z in (("Cup", 3.0, 4.2), ("Mug", 0.0, 5.0))
        ],
        "name_to_receptacle": {"Cup_:0000": "table_4_handle|on", "Mug_:0000": "cabinet_5_handle|within"},
    }
    seen = "cup_0: table_4 in kitchen_1\ncup_1: cabinet_5 in kitchen_1"
    steps = (
        TraceStep("", "Explore[kitchen_1]", SUCCESS + seen),
        TraceStep(
            "",
            "DescribeObjectTool[cup_0]",
            f"Result: The description of the object 'cup_0' is:\nA red cup.\nObjects: {seen}",
        ),
        TraceStep("", "Pick[cup_0]", SUCCESS + "cup_0: held by the agent"),
        TraceStep("", "Place[cup_0, on, bed_6, None, None]", SUCCESS + "cup_0: bed_6 in bedroom_1"),
    )
    memory = Trace("1", "small", f"Put the cup on the bed. {told}", steps)
    actions, won = run(tmp_path, asked, memento_house.on_top("Cup_:0000", "bed_6"), [memory], **changes)
    assert won
    assert any(action.startswith("DescribeObjectTool") for action in actions) == looks


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("After that, put the vase on the bed.", [0, 1]),
        ("Put the vase on the bed.", [0, 0]),
        ("Place them next to each other.", [0, 0]),
    ],
)
def test_a_request_announced_as_another_one_is_rather_about_another_memory(second, expected):
    assert _assign([[1.0, 0.5], [0.6, 0.4]], ["Put the cup on the bed.", second]) == expected


def test_another_request_of_the_same_memory_may_be_announced():
    assert _assign([[1.0, 0.5], [0.9, 0.4]], ["Put the cup on the bed.", "Then, put the vase on the bed."]) == [0, 0]
    assert _assign([[1.0, 0.0], [0.0, 1.0], [0.5, 0.4]], ["Put it.", "Then, put a cup.", "Then, put a can."]) == [
        0,
        1,
        0,
    ]


def in_bedroom() -> tuple[HouseView, Search]:
    """The small house with its bedroom explored, where one vase was found on the bed."""
    view = HouseView("Furniture:\nkitchen_1: floor_kitchen_1, table_4\nbedroom_1: floor_bedroom_1, bed_6\n\n")
    view.observe("Explore[bedroom_1]", f"{SUCCESS}vase_2: bed_6 in bedroom_1")
    return view, Search(view, PlaceWords(view))


def test_what_another_request_has_taken_is_not_what_memory_says_should_be_there():
    _, search = in_bedroom()
    thing = Thing("the vase", kind="vase", start="bed_6", start_room="bedroom_1")
    assert not search.missing(thing)
    assert search.missing(thing, {"vase_2"})


def test_actions_that_moves_need_are_counted_one_by_one():
    agent = MemoryPlanner()
    agent.view, _ = in_bedroom()
    agent._reach = Reach(agent.view)
    vase, cup = Thing("the vase", name="vase_2"), Thing("the cup", start="table_4", start_room="kitchen_1")
    there, back = Move(vase, None, piece="table_4"), Move(cup, None, piece="bed_6")
    assert agent._reach.needed([there], agent._goal) == 4
    assert agent._reach.needed([there, back], agent._goal) == 7  # the cup stands where the vase is put
    agent._reach.take("Navigate[bed_6]", f"{SUCCESS}vase_2: bed_6 in bedroom_1")
    assert agent._reach.needed([there, back], agent._goal) == 6
    agent.view.observe("Pick[vase_2]", f"{SUCCESS}vase_2: held by the agent")
    assert agent._reach.needed([there, back], agent._goal) == 5


FAR = "Result: Unexpected failure! - Failed to pick! Not close enough to the object.\nObjects: "


def test_answers_tell_what_is_within_reach():
    view = HouseView("Furniture:\nkitchen_1: table_4, table_8, chair_10\nbedroom_1: bed_6\n\n")
    reach, cup = Reach(view), "cup_0: table_4 in kitchen_1"
    reach.take("Explore[kitchen_1]", SUCCESS + cup)
    tour = Stand("kitchen_1")
    assert reach.within("Pick", "table_4", tour) is None
    reach.take("Pick[cup_0]", FAR + cup)
    assert reach.within("Pick", "table_4", tour) is False
    assert reach.within("Place", "table_4", tour) is None  # an arm reaches further to put than to pick
    assert reach.within("Pick", "bed_6", tour) is False
    reach.take("Navigate[table_4]", SUCCESS + cup)
    assert reach.stand == Stand("table_4", "kitchen_1")
    reach.take("Pick[cup_0]", f"{SUCCESS}cup_0: held by the agent")
    reach.take("Place[cup_0, on, table_8, None, None]", f"{SUCCESS}cup_0: table_8 in kitchen_1")
    assert reach.within("Place", "table_8", Stand("table_4", "bed_6"))
    assert reach.within("Place", "table_8", Stand("table_4", "table_8")), "that side of the table is nearer still"
    reach.take("Navigate[table_8]", f"{SUCCESS}cup_0: table_8 in kitchen_1")
    reach.take("Navigate[chair_10]", f"{SUCCESS}cup_0: table_8 in kitchen_1")
    reach.take("Pick[cup_0]", f"{SUCCESS}cup_0: held by the agent")
    assert reach.within("Pick", "table_8", Stand("chair_10", "table_4")) is None, "it was on the table's side then"


@pytest.mark.parametrize("chairs_at", ["table_4", "table_9"])
def test_a_walk_that_a_memory_shows_to_be_needless_is_left_out(tmp_path, monkeypatch, chairs_at):
    furnish(monkeypatch, chairs_at)  # a tour of the kitchen ends there; the cup stands on table_4
    goal = memento_house.on_top("Cup_:0000", "chair_10", "chair_11")
    told = "Put the cup on the chair. I like to have the cup on the chair for my tea time."
    envs = MementoVectorEnv(
        load_tasks("acquisition", memento_house.write_data(tmp_path, memento_house.episode(instruction=told)))
    )
    observations, _ = envs.reset()
    turns = play(
        MemoryPlanner(),
        told,
        observations[0],
        lambda action: ((r := envs.step([action]))[0][0], bool(r[2][0] or r[3][0])),
    )
    tried, memory = [turn.action for turn in turns], Trace("1", "small", told, turns)
    near = chairs_at == "table_4"
    assert tried[:2] == ["Explore[kitchen_1]", "Pick[cup_0]"], "what is not known is tried while actions are left"
    assert tried.count("Pick[cup_0]") == 1 + (not near)
    plain, won = run(tmp_path, "Put the cup on the chair.", goal)
    assert won
    assert "Navigate[table_4]" in plain
    known, won = run(tmp_path, "Could you set up my tea time?", goal, [memory])
    assert won
    assert known.count("Pick[cup_0]") == 1
    assert ("Navigate[table_4]" in known) is not near


def one_looked_at(kind: str, description: str) -> HouseView:
    """The small house with its bedroom explored, two of a kind on the bed, and the first of them looked at."""
    view = HouseView("Furniture:\nkitchen_1: floor_kitchen_1, table_4\nbedroom_1: floor_bedroom_1, bed_6\n\n")
    seen = f"{kind}_2: bed_6 in bedroom_1\n{kind}_3: bed_6 in bedroom_1"
    view.observe("Explore[bedroom_1]", SUCCESS + seen)
    looked = f"Result: The description of the object '{kind}_2' is:\n{description}\nObjects: "
    view.observe(f"DescribeObjectTool[{kind}_2]", looked + seen)
    return view


@pytest.mark.parametrize("start", ["bed_6", "table_4"])
def test_of_two_where_memory_found_it_the_other_one_needs_no_look(start):
    view = one_looked_at("vase", "A black plastic box.")
    thing = Thing("the vase", captions=("A white vase with dots.",), kind="vase", start=start, start_room="bedroom_1")
    reply = Search(view, PlaceWords(view)).look_for(Move(thing, None), set(), spare=10)
    if start == "bed_6":
        assert thing.name == "vase_3"
    else:  # nothing stands where it was, so that both may be others
        assert reply.action == "DescribeObjectTool[vase_3]"


@pytest.mark.parametrize("description", ["A black plastic box.", ""])
def test_the_other_of_two_is_a_guess_where_the_first_has_no_description(description):
    view = one_looked_at("vase", description)
    thing = Thing("the vase", captions=("A white vase with dots.",), kind="vase", start="bed_6", start_room="bedroom_1")
    assert Search(view, PlaceWords(view)).look_for(Move(thing, None), set(), spare=10) is None
    assert (thing.name, thing.known) == ("vase_3", bool(description))


@pytest.mark.parametrize("spare", [10, 0])
def test_one_that_is_only_like_it_does_not_spare_the_look_at_the_other(spare):
    view = one_looked_at("laptop", "A black laptop with a touchpad.")
    thing = Thing("the laptop", captions=("A gray laptop with a black touchpad.",), kind="laptop", start="bed_6")
    search = Search(view, PlaceWords(view))
    assert 0.6 < search.likeness(thing, "laptop_2") < 0.9
    reply = search.look_for(Move(thing, None), set(), spare)
    assert reply.action == "DescribeObjectTool[laptop_3]"
