"""How EB-Habitat's places stand to each other: what the first text tells, what memory keeps, what instructions mean."""

from __future__ import annotations

import json

import pytest

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.rollout import rollout
from embodied_mem.envs.data_files import read_bytes
from embodied_mem.worlds.eb_habitat.data import Scenes, load_records, load_tasks, read_tasks
from embodied_mem.worlds.eb_habitat.engine import TARGETS
from embodied_mem.worlds.eb_habitat.env import Env
from experiments.solvers.eb_habitat.instruction import understand
from experiments.solvers.eb_habitat.places import Layout
from experiments.solvers.eb_habitat.text_adapter import EbHabitatTextAdapter
from tests.experiments.solvers.eb_habitat.eb_habitat_layout import (
    BASIN,
    BLACK,
    BROWN,
    COUCH,
    FRIDGE,
    LAYOUT,
    LEFT,
    LEFT_DRAWER,
    RIGHT,
    RIGHT_DRAWER,
    TV,
)
from tests.worlds.eb_habitat.eb_habitat_home import EMPTY_HAND, SINK, SOFA, TABLE, episode, placed, quantified


@pytest.mark.parametrize(
    ("text", "place", "source"),
    [
        ("Move the ball to the table to the left of the sofa.", BLACK, ""),
        ("Put the cup on the table that stands on the sofa's left side.", BLACK, ""),
        ("Place the spoon on the counter right next to the fridge.", RIGHT, ""),
        ("Place an apple on the counter on the right hand side of the sink.", RIGHT, ""),
        ("Set the hammer on the counter on the right.", RIGHT, ""),
        ("Put the ball on whatever is between the sink and the fridge.", RIGHT, ""),
        ("Take the cup from the table beside the sofa to the counter closest to the refrigerator.", RIGHT, BLACK),
        ("Take the cup from the sofa to the left of the sink.", LEFT, COUCH),
        ("Carry the book from the left counter to the receptacle to the right of the sink.", RIGHT, LEFT),
        ("Put the lemon in the drawer under the right counter.", RIGHT_DRAWER, ""),
        ("Put the lemon on the closest table to the couch.", BLACK, ""),
        ("Put the lemon on the couch's nearest table.", BLACK, ""),
        ("Put the bowl on the table with the sofa on its right.", BLACK, ""),
        ("Put the bowl on the table that has the TV stand to its left.", BROWN, ""),
        ("Go to the sofa and put the bowl on the table to its left.", BLACK, ""),
        ("The sofa has a table on its left. Put the peach there.", BLACK, ""),
        ("Put the bowl on the table that is not next to the sofa.", BROWN, ""),
        ("Put the bowl on the table farthest from the sofa.", BROWN, ""),
        ("Put the cup in the sink next to the left counter.", BASIN, ""),
        ("Bring the cup on the table next to the sofa to the sink.", BASIN, BLACK),
        ("Take the box on the right counter and put it on the table beside the TV stand.", BROWN, RIGHT),
        ("Put the pear on the counter that the fridge stands next to.", RIGHT, ""),
        ("Place the plate on the surface opposite the sofa.", TV, ""),
        ("Put a knife on the counter adjacent to the sink and next to the fridge.", RIGHT, ""),
        ("Put the sponge on the counter on the other side of the sink from the fridge.", LEFT, ""),
        ("Move the ball from the sink's left neighbour to the sofa.", COUCH, LEFT),
        ("Bring something to pound nails with to the table by the couch.", BLACK, ""),
        ("Place a can on the second table, the one beside the TV stand.", BROWN, ""),
        ("Move the peach from the left counter to the right counter.", RIGHT, LEFT),
    ],
)
def test_a_described_place_is_understood(text, place, source):
    [move] = understand(text, LAYOUT).moves
    assert (move.places[0], move.source) == (place, source)


def test_doors_and_ways_are_described_too():
    assert understand("Open the drawer under the left counter.", LAYOUT).open == LEFT_DRAWER
    assert understand("Close the drawer next to the fridge.", LAYOUT).close == RIGHT_DRAWER
    assert understand("Go to what is left of the sink.", LAYOUT).go == LEFT
    assert understand("Stand next to the sofa.", LAYOUT).go == COUCH


def test_what_a_layout_tells_decides_and_without_one_the_anchor_is_still_no_target():
    mirrored = Layout.of(
        "Around the sofa: the brown table 0.4 m to the left, next to it; the black table 2.0 m behind."
    )
    text = "Move a cup to the table left of the sofa."
    for layout, place in ((LAYOUT, BLACK), (mirrored, BROWN)):
        assert understand(text, layout).moves[0].places[0] == place
    assert set(understand(text).moves[0].places) == {BLACK, BROWN}


BOXES = {  # x and z, metres; the kitchen's row runs along z, and its front is where x is larger
    "receptacle_aabb_counter_left_kitchen_counter": (0.0, 4.0, 0.6, 5.0),
    "receptacle_aabb_sink_kitchen_counter": (0.0, 3.4, 0.6, 3.8),
    "receptacle_aabb_counter_right_kitchen_counter": (0.0, 2.0, 0.6, 3.2),
    SOFA: (4.0, 0.0, 6.0, 0.5),
    TABLE: (6.5, 0.0, 8.0, 0.5),
}


def scene_file(name: str) -> bytes:
    boxes = {r: {"min": [x, 0, z], "max": [to_x, 1, to_z]} for r, (x, z, to_x, to_z) in BOXES.items()}
    return json.dumps({"scenes": {name: {"receptacle_boxes_from_objects": boxes}}}).encode()


def tasks_in(name: str, *episodes):
    content = {"episodes": [{**one, "scene": name} for one in episodes or [episode()]]}
    return read_tasks(json.dumps(content).encode(), "home", Scenes.from_text(scene_file(name), "scenes"))


def test_the_first_text_tells_where_places_stand():
    """The fridge is at x 0 to 0.6 and z 1.0 to 1.8, seen along -x: the sofa is hypot(3.4, 0.5) away."""
    [task] = tasks_in("v3_sc0_test")
    lines = task.layout.split("\n")
    assert lines[-3:] == [
        "Around the fridge: the right counter 0.2 m to the left, next to it; the sink 1.6 m to the left; "
        "the left counter 2.2 m to the left; the sofa 3.4 m in front; the black table 5.9 m in front.",
        "Under the left counter: the left drawer.",
        "Under the right counter: the right drawer.",
    ]
    told = Layout.of(task.layout)
    assert ("sofa", "left of", BLACK) in told.facts
    assert (BLACK, "right of", COUCH) in told.facts
    assert (LEFT, "left of", BASIN) in told.facts
    assert (RIGHT, "right of", BASIN) in told.facts
    assert (FRIDGE, "right of", RIGHT) in told.facts
    assert (LEFT, "next to", BASIN) in told.facts
    assert (LEFT, "next to", RIGHT) not in told.facts  # the sink is between them
    assert told.gaps_m[BLACK, COUCH] == 0.5
    assert Env(task).observation.count(task.layout) == 1
    assert task.layout not in Env(task, relations=False).observation


def test_the_fridge_stands_where_the_traces_reach_it():
    assert (FRIDGE, "left of", LEFT) in Layout.of(tasks_in("v3_sc3_test")[0].layout).facts
    assert FRIDGE not in {name for fact in Layout.of(tasks_in("flat_test")[0].layout).facts for name in fact}


def play(text: str, *, relations: bool):
    goal = quantified("EXISTS", {"X": "cup"}, placed("X", SOFA), EMPTY_HAND)
    one = episode(goal, objects={"apple_0": SINK, "cup_0": SINK}, instruction=text)
    world = envs.make("eb_habitat", tasks=list(tasks_in("v3_sc0_test", one)), num_envs=1, relations=relations)
    agent = PlannerCriticAgent.for_world("eb_habitat", PlannerCriticConfig(retries=False))
    return rollout(world, [agent], [[0]])[0], agent


def test_a_first_reading_wins_by_relations_and_not_without_them():
    text = "Move a cup to the place on the left of the black table."
    assert play(text, relations=True)[0].won
    assert not play(text, relations=False)[0].won


def test_memory_keeps_relations_as_facts():
    _, agent = play("Move a cup to the sofa.", relations=True)
    told = {item.fact for item in agent.memory.spatial.retrieve("What is left of the black table?")}
    assert ("sofa", "left of", "black table") in told
    assert ("sofa", "next to", "black table") in told


def test_the_text_adapter_says_the_place_itself():
    goal = quantified("EXISTS", {"X": "cup"}, placed("X", TABLE), EMPTY_HAND)
    one = episode(goal, instruction="Move a cup to the table next to the sofa.")
    adapter = EbHabitatTextAdapter(list(tasks_in("v3_sc0_test", one)))
    _, info = adapter.reset(options={"task_indices": [0]})
    assert "blacktable" in info["goal"][0]


def test_relations_of_all_scenes_against_geometry(eb_habitat_data):
    """Every told side and distance, by angles between corners instead of by gaps along axes."""
    scenes = json.loads(read_bytes(eb_habitat_data / "scenes.json.xz"))["scenes"]
    names = {name: phrase for name, phrase, _ in TARGETS}
    layouts = {
        t.scene: Layout.of(t.layout) for s in ("train_validation", "base") for t in load_tasks(s, eb_habitat_data)
    }
    pairs = 0
    for scene, layout in layouts.items():
        boxes = {names[r]: box for r, box in scenes[scene]["receptacle_boxes_from_objects"].items()}
        for anchor in (LEFT, BASIN, RIGHT):
            toward = [boxes[RIGHT]["centre"][i] - boxes[LEFT]["centre"][i] for i in (0, 2)]
            for place, box in boxes.items():
                if place == anchor:
                    continue
                corners = [[box[end][0], box[other][2]] for end in ("min", "max") for other in ("min", "max")]
                own = boxes[anchor]
                along = [corner[0] * toward[0] + corner[1] * toward[1] for corner in corners]
                edges = [
                    x * toward[0] + z * toward[1]
                    for x in (own["min"][0], own["max"][0])
                    for z in (own["min"][2], own["max"][2])
                ]
                if (place, "left of", anchor) in layout.facts:
                    assert max(along) <= min(edges), (scene, place, anchor)
                    pairs += 1
                if (place, "right of", anchor) in layout.facts:
                    assert min(along) >= max(edges), (scene, place, anchor)
                    pairs += 1
        assert (LEFT, "left of", BASIN) in layout.facts
        assert (RIGHT, "right of", BASIN) in layout.facts
    assert pairs > 100


def test_the_fridge_agrees_with_the_recorded_traces(eb_habitat_data):
    scenes = json.loads(read_bytes(eb_habitat_data / "scenes.json.xz"))["scenes"]
    fridge = "receptacle_aabb_middle_topfrl_apartment_refrigerator"
    sides = {
        LEFT: "receptacle_aabb_counter_left_kitchen_counter",
        RIGHT: "receptacle_aabb_counter_right_kitchen_counter",
    }
    checked = 0
    for task in {t.scene: t for t in load_tasks("train_validation", eb_habitat_data)}.values():
        told = Layout.of(task.layout).facts
        for counter, target in sides.items():
            seen = scenes[task.scene]["nav"].get(target, {"seen_in_reach": (), "seen_out_of_reach": ()})
            if fridge in (*seen["seen_in_reach"], *seen["seen_out_of_reach"]):
                assert ((FRIDGE, "next to", counter) in told) == (fridge in seen["seen_in_reach"]), task.scene
                checked += 1
    assert checked > 10


def test_boxes_of_an_unknown_scene_come_from_its_objects(eb_habitat_data):
    """A task whose scene no file tells has nearly the same layout as one whose scene is known."""
    records = load_records("train_validation", eb_habitat_data)[:20]
    content = json.dumps({"episodes": records}).encode()
    bare = read_tasks(content, "bare", Scenes())
    agree = told = 0
    for one, other in zip(bare, load_tasks("train_validation", eb_habitat_data), strict=False):
        facts, known = (set(Layout.of(task.layout).facts) for task in (one, other))
        agree, told = agree + len(facts & known), told + len(known)
    assert agree > 0.8 * told
