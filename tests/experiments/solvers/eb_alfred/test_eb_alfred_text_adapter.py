"""EB-ALFRED in ALFWorld's wording: texts that ALFWorld's readers read; a rule teacher wins in our own kitchen."""

from __future__ import annotations

import pytest

from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher
from embodied_mem.worlds.alfworld.wording.text import parse_goal, parse_observation, parse_room
from experiments.solvers.alfworld_adapter import NOTHING
from experiments.solvers.eb_alfred.instruction import understand
from experiments.solvers.eb_alfred.text_adapter import EbAlfredTextAdapter, goal_sentence, spoken
from tests.worlds.eb_alfred.eb_alfred_scene import kitchen_task, told


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Put two mugs in the sink.", "put two mug in sinkbasin."),
        ("Rinse a cloth and put it in the tub.", "put a clean cloth in bathtubbasin."),
        ("Look at the watch under the light.", "look at watch under the floorlamp."),
        ("Put the book on a table.", "put a book in sidetable."),
    ],
)
def test_goals_are_sentences_of_alfworld(text, sentence):
    assert goal_sentence(understand(text), ("SinkBasin", "BathtubBasin", "FloorLamp", "SideTable")) == sentence
    parse_goal(sentence)


def test_what_is_not_understood_is_a_sentence_too():
    parse_goal(goal_sentence(understand("Get ready for the day."), ()))


def test_texts_and_refusals():
    envs = EbAlfredTextAdapter([kitchen_task("hidden")])
    [text], info = envs.reset(options={"task_indices": [0]})
    assert {"cabinet 1", "cabinet 2", "countertop 1", "fridge 1", "sinkbasin 1"} <= set(parse_room(text))
    assert info["goal"] == ["put a plate in garbagecan."]

    def say(command: str) -> str:
        return envs.step([command])[0][0]

    assert say("take plate 1 from cabinet 1") == NOTHING
    assert say("go to cabinet 1") == "You arrive at cabinet 1. The cabinet 1 is closed."
    assert say("open cabinet 1") == "You open the cabinet 1. The cabinet 1 is open. In it, you see a plate 1."
    assert say("take plate 1 from cabinet 1") == "You pick up the plate 1 from the cabinet 1."
    assert parse_observation(say("go to garbagecan 1")).arrived_at == "garbagecan 1"
    assert say("move plate 1 to garbagecan 1") == "You move the plate 1 to the garbagecan 1."
    assert envs.outcomes() == [(True, 1.0, 5)]
    assert say("go to fridge 1") == NOTHING


def test_ten_senseless_commands_end_an_episode_without_a_step():
    envs = EbAlfredTextAdapter([kitchen_task("hidden")])
    envs.reset(options={"task_indices": [0]})
    for _ in range(10):
        _, _, terminations, _, _ = envs.step(["dance"])
    assert terminations[0]
    assert envs.outcomes() == [(False, 0.0, 0)]


@pytest.mark.parametrize("name", ["place", "two", "clean", "heat", "light", "cool", "carrier"])
def test_the_rule_teacher_wins(name):
    envs = EbAlfredTextAdapter([kitchen_task(name)])
    [text], info = envs.reset(options={"task_indices": [0]})
    teacher = RuleTeacher()
    lesson = teacher.begin(info["goal"][0], text, ())
    for _ in range(30):
        [text], _, ended, _, info = envs.step([lesson.action])
        if ended[0]:
            break
        lesson = teacher.next(lesson.action, text, lesson.state)
    assert info["won"][0]


def test_cold_things_are_cooled():
    task = told("Put a cold apple in the trash.", "pick_cool_then_place_in_recep")
    envs = EbAlfredTextAdapter([task])
    envs.reset(options={"task_indices": [0]})
    for command in ("go to countertop 1", "take apple 1 from countertop 1", "go to fridge 1"):
        envs.step([command])
    [text], *_ = envs.step(["cool apple 1 with fridge 1"])
    assert text == "You cool the apple 1 using the fridge 1."
    assert spoken("Apple") == "apple 1"


def begun(task):
    """(what a command is answered, the envs) in a task that has just begun."""
    envs = EbAlfredTextAdapter([task])
    envs.reset(options={"task_indices": [0]})
    return lambda command: envs.step([command])[0][0], envs


def test_a_slice_is_cut_when_it_is_taken_and_called_as_the_whole():
    say, envs = begun(kitchen_task("cool"))
    say("go to countertop 1")
    assert say("take apple 1 from countertop 1").startswith("You pick up the apple ")
    assert envs.outcomes()[0][2] == 3  # find, slice, pick up
    assert "a apple" in say("examine countertop 1")  # the other slices
    whole, envs = begun(told("Put an apple in the trash.", "pick_and_place_simple"))
    whole("go to countertop 1")
    whole("take apple 1 from countertop 1")
    assert envs.outcomes()[0][2] == 2


def test_what_is_to_be_carried_in_something_is_put_into_it_on_the_way():
    say, envs = begun(kitchen_task("carrier"))
    say("go to garbagecan 1")
    assert say("take spoon 1 from garbagecan 1") == "You pick up the spoon 1 from the garbagecan 1."
    say("go to fridge 1")
    say("open fridge 1")
    assert say("move spoon 1 to fridge 1") == "You move the spoon 1 to the fridge 1."
    assert envs.outcomes()[0][0]
    elsewhere, envs = begun(kitchen_task("carrier"))
    for command in ("go to garbagecan 1", "take spoon 1 from garbagecan 1", "go to countertop 1"):
        elsewhere(command)
    before = envs.outcomes()[0][2]
    elsewhere("move spoon 1 to countertop 1")
    assert envs.outcomes()[0][2] - before == 1  # no place that the instruction means


def test_what_lies_beside_a_place_can_be_taken_there():
    say, _ = begun(told("Put the spoon in the fridge.", "pick_and_place_simple"))
    assert "a spoon 1" in say("go to garbagecan 1")
    assert "spoon" not in say("go to countertop 1")
