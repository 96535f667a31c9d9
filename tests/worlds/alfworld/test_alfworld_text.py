"""The parsers of ALFWorld's sentences, against the folder names of the official games and both wordings by hand."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.alfworld.wording import text as text


def test_goals_of_all_official_games_match_their_folders(alfworld_data):
    """The folder <task>-<Object>-None-<Target>-<scene> is the oracle for what the sentence asks for."""
    files = sorted(alfworld_data.glob("*/*/*/game.tw-pddl"))
    assert len(files) == 3693
    for file in files:
        raw = file.read_bytes()
        goal = re.search(rb"Your task is to: ([^\"\\]*)", raw).group(1).decode()
        task_type, object_type, _, target, _ = file.parts[-3].split("-")
        task = text.parse_goal(goal)
        assert (task.task_type, task.object_type) == (task_type, object_type.lower()), file
        assert (task.lamp_type or task.receptacle_type) == target.lower(), file
        assert task.count == (2 if task_type == "pick_two_obj_and_place" else 1)
        assert goal in (text.render_goal(task, 0), text.render_goal(task, 1))


def test_every_word_of_the_walkthroughs_is_a_command(alfworld_data):
    for file in sorted(alfworld_data.glob("valid_seen/*/*/game.tw-pddl")):
        for line in json.loads(file.read_bytes())["walkthrough"]:
            command = text.parse_command(line)
            assert command.verb
            rebuilt = {
                "go": f"go to {command.receptacle}",
                "open": f"open {command.receptacle}",
                "take": f"take {command.object} from {command.receptacle}",
                "put": text.put_command(command.object, command.receptacle),
                "use": f"use {command.object}",
            }.get(command.verb, f"{command.verb} {command.object} with {command.receptacle}")
            assert rebuilt == line


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (
            "You arrive at desk 1. On the desk 1, you see a pen 2, and a mug 1.",
            text.Percept("arrive", "desk 1", contents=("pen 2", "mug 1")),
        ),
        (
            "You arrive at loc 12. On the desk 1, you see a egg 1.",
            text.Percept("arrive", "desk 1", contents=("egg 1",)),
        ),
        ("You arrive at loc 3. The fridge 1 is closed.", text.Percept("arrive", "fridge 1", is_open=False)),
        ("You arrive at fridge 1. The fridge 1 is closed.", text.Percept("arrive", "fridge 1", is_open=False)),
        (
            "You arrive at safe 1. The safe 1 is open. In it, you see nothing.",
            text.Percept("arrive", "safe 1", is_open=True, contents=()),
        ),
        (
            "You open the safe 1. The safe 1 is open. In it, you see a cd 1, a pen 1, and a watch 2.",
            text.Percept("open", "safe 1", is_open=True, contents=("cd 1", "pen 1", "watch 2")),
        ),
        ("You close the safe 1.", text.Percept("close", "safe 1", is_open=False)),
        ("The drawer 10 is closed.", text.Percept("receptacle", "drawer 10", is_open=False)),
        ("On the shelf 3, you see nothing.", text.Percept("receptacle", "shelf 3", contents=())),
        ("You pick up the pen 2 from the desk 1.", text.Percept("take", "desk 1", "pen 2")),
        ("You move the pen 2 to the desk 1.", text.Percept("put", "desk 1", "pen 2")),
        ("You put the pen 2 in/on the desk 1.", text.Percept("put", "desk 1", "pen 2")),
        ("You heat the egg 1 using the microwave 1.", text.Percept("heat", "microwave 1", "egg 1")),
        ("You cool the egg 1 using the fridge 1.", text.Percept("cool", "fridge 1", "egg 1")),
        ("You clean the egg 1 using the sinkbasin 2.", text.Percept("clean", "sinkbasin 2", "egg 1")),
        ("You turn on the desklamp 1.", text.Percept("turn_on", object="desklamp 1")),
        ("You turn off the desklamp 1.", text.Percept("turn_off", object="desklamp 1")),
        ("You are carrying: a apple 1.", text.Percept("inventory", object="apple 1")),
        ("You are not carrying anything.", text.Percept("inventory")),
        (
            "You are facing the desk 2, and drawer 1. Next to it, you see nothing.",
            text.Percept("facing", receptacles=("desk 2", "drawer 1")),
        ),
        ("This is a hot and clean egg 1.", text.Percept("object", object="egg 1")),
        ("This is a normal box 2. In it, you see a cd 1.", text.Percept("object", object="box 2")),
        ("This desklamp 1 is on.", text.Percept("object", object="desklamp 1")),
        ("There's nothing special about pen 1.", text.Percept("object", object="pen 1")),
        ("Nothing happens.", text.Percept("nothing")),
        ("", text.Percept("unknown")),
    ],
)
def test_feedback_sentences(observation, expected):
    assert text.parse_observation(observation) == expected


def test_the_first_observation_lists_the_room():
    first = (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see "
        "a bed 1, a desk 2, and a desk 1.\n\nYour task is to: examine the cd with the desklamp."
    )
    goal = first.partition("Your task is to: ")[2]
    assert text.parse_goal(goal) == text.Task("look_at_obj_in_light", "cd", lamp_type="desklamp")
    assert text.parse_room(first) == ["bed 1", "desk 2", "desk 1"]
    assert text.parse_observation(first).receptacles == ("bed 1", "desk 2", "desk 1")


def test_unknown_goal_lists_the_known_sentences():
    with pytest.raises(InvalidInputError, match=r"put two \{object\} in \{receptacle\}"):
        text.parse_goal("dance with the fridge.")
    with pytest.raises(InvalidInputError, match=r"grammar: expected one of 0\.4, 0\.3"):
        text.put_command("pen 1", "desk 1", "0.5")


@given(st.text(max_size=200))
def test_any_text_is_a_percept_and_a_command(noise):
    for prefix in ("", "You ", "You arrive at ", "The ", "On the ", "This is a ", "You are carrying: "):
        assert isinstance(text.parse_observation(prefix + noise), text.Percept)
    assert isinstance(text.parse_command(noise), text.Command)
