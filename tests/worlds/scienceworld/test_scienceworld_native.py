"""The native world plays a house that the test makes; what it says was seen of the original in other houses."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest

from embodied_mem.errors import GameFileError
from embodied_mem.worlds.scienceworld.engine import Env, Task, VectorEnv, read_task

WOOD = ["wood", "brown", "solid", 10.0, 0.5, 10000.0, 10001.0, 0.5]
BEGINNING: dict[str, Any] = {
    "id": "lifespan-longest-lived/0",
    "goal": "Find it.",
    "teleports": False,
    "focus": [8],
    "place": 2,
    "things": [
        {"k": "universe", "n": "universe", "f": "bo"},
        {"k": "room", "n": "kitchen", "f": "bo", "p": 0, "c": ["room"]},
        {"k": "room", "n": "outside", "f": "bo", "p": 0},
        {"k": "agent", "n": "agent", "f": "", "p": 1},
        {"k": "inventory", "n": "inventory", "f": "bo", "p": 3},
        {"k": "furniture", "n": "table", "f": "bom", "p": 1, "m": WOOD, "c": ["wood table"]},
        {"k": "box", "n": "wood cup", "f": "bom", "p": 1, "c": ["cup"], "h": ["cup"]},
        {"k": "box", "n": "wood cup", "f": "bom", "p": 5, "c": ["cup"], "h": ["cup"]},
        {"k": "animal", "n": "parrot", "f": "m", "p": 2, "life": "egg"},
        {"k": "animal", "n": "mouse", "f": "m", "p": 2, "life": "baby"},
        {"k": "pot", "n": "pot", "f": "bom", "p": 2},
        {"k": "plant", "n": "pea plant", "f": "bom", "p": 10, "stage": 3, "w": "tall height"},
        {"k": "soil", "n": "soil", "f": "m", "p": 10},
        {"k": "food", "n": "orange", "f": "em", "p": 4},
        {"k": "door", "n": "door", "f": "c", "p": 1, "to": 2},
        {"k": "door", "n": "door", "f": "c", "p": 2, "to": 1},
    ],
}


def made(**changes: object) -> Task:
    return read_task(json.dumps(BEGINNING | changes).encode(), "test")


@pytest.fixture
def env() -> Env:
    return Env(made())


def test_first_text_names_the_room_and_the_goal(env: Env) -> None:
    assert env.observation == (
        "This room is called the kitchen. In it, you see: \n\tthe agent\n\ta table. On the table is: a wood cup "
        "(containing nothing).\n\ta wood cup (containing nothing)\nYou also see:\n"
        "\tA door to the outside (that is closed)\n\nFind it."
    )
    assert env.step("inventory") == "In your inventory, you see:\n\tan orange"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("go to outside", "The door is not open."),
        ("open door", "The door is now open."),
        ("close door to outside", "The door is already closed."),
        ("open table", "The table is not openable."),
        ("activate orange", "The orange is not something that can be activated."),
        ("eat table", "The table is not edible."),
        ("EAT ORANGE", "The orange was delicious."),
        ("move orange to table", "You move the orange to the table."),
        ("move table to table", "You can't move something into itself."),
        ("pick up kitchen", "The kitchen is not moveable."),
        ("connect table to orange", "terminal 1 on table is now connected to terminal 1 on orange"),
        ("connect table to table", "Something can't be connected to itself."),
        ("mix orange", "That container is empty, so there are no items to mix."),
        ("look in table", "Inside the table is: \n\ta wood cup (containing nothing)"),
        ("look in orange", "It's not clear how to look inside of that."),
        ("use orange on table", "I'm not sure how to use the orange."),
        ("go to table", "Its not clear how to go to/through a table."),
        ("read orange", "It's not clear how to read that."),
        ("teleport to outside", "No known action matches that input."),
        ("", "No known action matches that input."),
        (" take  the ORANGE ", "You move the orange to the inventory."),
        ("put orange on table", "You move the orange to the table."),
        ("move table to orange", "That can't be moved there."),
        ("pour table into orange", "That can't be moved there, because it's not a container."),
        ("pour orange into table", "The inventory the orange is in is not movable."),
        ("dunk orange in orange", "You can't dunk something into itself."),
        ("dunk orange in table", "The orange is not a container."),
        ("go to kitchen", "It's not clear how to get there from here."),
    ],
)
def test_answers_are_the_originals(env: Env, command: str, said: str) -> None:
    assert env.step(command) == said
    assert not env.ended


def test_an_ambiguous_command_is_asked_about_once(env: Env) -> None:
    question = env.step("pick up wood cup")
    assert question.startswith("Ambiguous request: Please enter the number for the action you intended")
    assert "\n0:\tpick up wood cup (in table, in kitchen)\n1:\tpick up wood cup (in kitchen)\n" in question
    assert env.admissible_commands == ["0", "1"]
    other = env.copy()
    assert env.step(" TASK ") == "Task description:\nFind it."
    assert env.step("Help").startswith("Possible actions: \n\tactivate OBJ\n\tclose OBJ\n\tconnect OBJ to OBJ\n")
    assert env.step("+1") == "You move the wood cup to the inventory."
    assert env.step("the task") == "Task Description:\nFind it."
    assert other.step("7").startswith("Unknown action.")
    assert other.step("1") == "No known action matches that input."
    assert env.step("pick up cup on table") == "You move the wood cup to the inventory."


def test_animals_and_plants_live_through_their_stages(env: Env) -> None:
    env.step("open door")
    env.step("go to outside")  # 2 ticks
    seen = []
    for _ in range(55):
        seen.append(env.look())
        env.step("wait1")  # 2 ticks each
    stages = [
        ("a parrot egg", 0), ("a hatchling parrot", 9), ("a juvenile parrot", 19), ("a adult parrot", 29),
        ("a baby mouse", 0), ("a juvenile mouse", 9), ("a adult mouse", 19), ("a dead mouse", 44),
        ("a pea plant in the adult stage with a tall height, soil)", 0),
        ("a pea plant in the reproducing stage with a tall height, soil)", 2),
        ("On the pea plant you see: a flower", 4), ("(that looks unwell)", 14), ("a dead pea plant", 27),
    ]  # fmt: skip
    assert [(text, next(k for k, look in enumerate(seen) if text in look)) for text, _ in stages] == stages
    assert "a dead parrot" in env.look()
    assert env.step("mix mouse").startswith("Unknown action.")


def test_what_is_put_into_the_ground_misses_a_tick(env: Env) -> None:
    env = with_things({"k": "ground", "n": "ground", "f": "bo", "p": 2})
    env.step("open door")
    env.step("go to outside")
    env.step("move mouse to ground")
    assert env.look().index("a baby mouse") > env.look().index("the ground")
    for _ in range(8):
        env.step("wait1")
    env.step("mix mouse")
    assert "a baby mouse" in env.look()
    env.step("mix mouse")
    assert "a juvenile mouse" in env.look()


def test_a_thirsty_plant_in_the_hand_dies_no_later() -> None:
    dies = []
    for three in (["mix pot"] * 3, ["pick up pea plant", "mix pot", "move pea plant to pot"]):
        env = Env(made())
        for command in ("open door", "go to outside", "wait", "wait", "wait", *three):
            env.step(command)
        dies.append(next(k for k in range(30) if env.step("mix pot") and "in the dead stage" in env.look()))
    assert dies == [16, 16]


def test_a_plant_has_its_name_after_a_tick(env: Env) -> None:
    env = with_things({"k": "plant", "n": "apple tree", "f": "bom", "p": 1, "stage": 3})
    assert "a apple tree in the adult stage" in env.look()
    assert env.step("disconnect apple tree") == "plant has been disconnected"
    assert env.step("disconnect apple tree") == "apple tree has been disconnected"


def test_the_dead_count_as_what_they_were() -> None:
    env = Env(made(focus=["animal"], place=1))
    for command in ("open door", "go to outside", *["wait"] * 12, "focus on mouse"):
        env.step(command)
    assert (env.won, env.score) == (True, 100)


def with_things(*things: dict[str, Any]) -> Env:
    return Env(made(things=[*BEGINNING["things"], *things]))


def food(name: str) -> dict[str, Any]:
    return {"k": "food", "n": name, "f": "em", "p": 7}


def water(place: int) -> dict[str, Any]:
    return {"k": "substance", "n": "water", "f": "m", "p": place, "m": ["water", "", "liquid", 10, 0.2, 0, 100, 0]}


def test_three_fruits_mix_and_a_fourth_thing_prevents_it() -> None:
    fruits = [food("apple"), food("banana"), food("orange")]
    env = with_things(*fruits)
    assert env.step("mix cup on table") == "Apples, oranges, and bananas mix to produce fruit salad."
    assert "a wood cup (containing fruit salad)" in env.look()
    env = with_things(*fruits, food("potato"))
    assert env.step("mix cup on table").endswith("does not appear to produce anything new.")


def test_water_puts_a_fire_out_and_plants_drink_it() -> None:
    lighter = {"k": "lighter", "n": "lighter", "f": "m", "p": 1}
    env = with_things(lighter, water(1))
    env.step("use lighter on table")
    assert "a burned table. On the burned table is: a wood cup" in env.look()
    assert "a substance called steam" in env.look()
    assert env.step("focus on burned table") == "You focus on the burned table."
    env = with_things(lighter, water(5))
    env.step("use lighter on table")
    assert env.step("pour steam into kitchen") == "You can't pour a gas directly."
    env = with_things(water(10))
    assert "substance called water" in env.step("look in outside")
    assert "substance called water" not in env.step("look in outside")


def test_a_bee_in_a_sink_flies_down_its_drain() -> None:
    count = len(BEGINNING["things"])
    env = with_things(
        {"k": "box", "n": "sewer", "f": "bo", "p": 0},
        {"k": "sink", "n": "sink", "f": "bo", "p": 1},
        {"k": "drain", "n": "drain", "f": "o", "p": count + 1},
        {"k": "animal", "n": "bee 1", "f": "m", "p": count + 1, "life": "bee", "w": "bee"},
    )
    for _ in range(40):
        assert "\n\ta adult bee" not in env.look()
        env.step("mix table")
    assert "adult bee" not in env.look()


def test_ash_comes_before_what_was_on_the_burnt_thing() -> None:
    env = with_things({"k": "lighter", "n": "lighter", "f": "m", "p": 1}, food("ash") | {"p": 5})
    env.step("use lighter on table")
    for _ in range(10):
        env.step("wait")
    assert "\ta substance called burned ash\n\tan ash\n" in env.look()


def test_a_cup_is_called_by_each_name_in_it_once() -> None:
    env = with_things(food("plum"), food("plum"), food("fig"))
    assert env.step("look at cup containing fig and plum") == "a wood cup (containing a fig, a plum, a plum)"
    assert env.step("look at cup containing fig and plum and plum") == "No known action matches that input."


def test_a_stove_only_heats_and_a_cup_that_melts_keeps_its_name() -> None:
    place = len(BEGINNING["things"])
    stove = {"k": "stove", "n": "stove", "f": "boaxd", "p": 1, "heat": 260}
    hot = {"k": "plain", "n": "brick", "f": "m", "p": place, "m": ["brick", "red", "solid", 300, 0, 1e4, 1e5, 0.5]}
    tin = ["tin", "gray", "solid", 10, 0, 232, 2602, 0.3]
    cup = {"k": "box", "n": "tin cup", "f": "bom", "p": place, "m": tin, "c": ["cup"], "h": ["cup", "tin cup"]}
    env = with_things(stove, hot, cup, {"k": "thermometer", "n": "thermometer", "f": "dm", "p": 1})
    env.step("wait"), env.step("wait")
    assert env.step("use thermometer on brick").endswith("300 degrees celsius")
    assert env.step("look at tin cup") == "a liquid tin (containing nothing)"


def test_commands_are_listed_by_the_first_name_that_nothing_else_has(env: Env) -> None:
    commands = env.admissible_commands
    assert [c for c in commands if c.startswith("look at ")][:4] == [
        "look at kitchen", "look at door", "look at outside", "look at agent",
    ]  # fmt: skip
    assert "look at cup in table" in commands or "look at cup containing nothing in table" in commands
    assert "open door" in commands
    assert "go to outside" not in commands
    env.step("open door")
    assert {"close door", "go to door", "go to outside"} <= set(env.admissible_commands)


def test_verbs_are_listed_in_the_originals_order() -> None:
    toilet = {"k": "toilet", "n": "toilet", "f": "boad", "p": 1}
    book = {"k": "book", "n": "book", "f": "m", "p": 4, "r": "Call me."}
    env = Env(made(things=[*BEGINNING["things"], toilet, book, {"k": "tool", "n": "axe", "f": "m", "p": 4}]))
    verbs = list(dict.fromkeys(command.split()[0] for command in env.admissible_commands))
    assert verbs == [
        "open", "look", "activate", "eat", "move", "pour", "focus", "reset", "use", "read", "flush", "connect",
        "disconnect", "wait1", "wait", "inventory", "pick", "put", "mix", "task",
    ]  # fmt: skip


def test_a_hole_can_be_picked_up() -> None:
    env = with_things(
        {"k": "ground", "n": "ground", "f": "bo", "p": 1}, {"k": "tool", "n": "shovel", "f": "md", "p": 4}
    )
    assert env.step("use shovel on ground") == "You dig a hole in the ground, and place the soil nearby."
    assert "pick up hole" in env.admissible_commands
    assert env.step("pick up hole") == "You move the hole to the inventory."


def test_objects_are_those_in_view_that_are_not_carried(env: Env) -> None:
    said = env.step(" OBJECTS ").split("\n\t")
    assert said[0] == "Possible object references: "
    assert said[1:] == sorted(said[1:])
    assert {"agent", "kitchen", "table"} <= set(said[1:])
    assert "orange" not in said
    assert "inventory" not in said
    assert env.step("the objects") == "No known action matches that input."


def test_a_command_with_two_splits_asks_in_the_order_of_names() -> None:
    thing = {"k": "picture", "n": "picture", "f": "m", "p": 1}
    asked = [
        with_things(thing | {"c": [name]}).step(f"pour terminal 1 in {name} on kitchen").split("\n")
        for name in ("air", "bed")
    ]
    seconds = [
        [line.split(") in ")[1] for line in lines if ":\tpour terminal 1 (in picture, in kitchen)" in line]
        for lines in asked
    ]
    assert seconds == [
        ["picture (in kitchen)", "kitchen (in universe)"],
        ["kitchen (in universe)", "picture (in kitchen)"],
    ]


def test_terminals_stay_where_the_ground_lost_them() -> None:
    env = with_things({"k": "ground", "n": "ground", "f": "bom", "p": 2})
    for command in ("open door", "go to outside", "mix mouse", "pick up ground"):
        env.step(command)
    question = env.step("look at terminal 1 in outside")
    assert question.count("look at terminal 1 (in outside") == 2
    env.step("0")
    assert "terminal" not in env.look()


def test_what_is_no_container_takes_no_bulb_and_a_book_burns(env: Env) -> None:
    paper = ["paper", "white", "solid", 10, 0.5, 1e4, 1e5, 0]
    bulb = {"k": "bulb", "n": "light bulb", "f": "ma", "p": 5}
    book = {"k": "book", "n": "book", "f": "m", "p": 1, "m": paper, "w": " titled Emma by Jane Austen"}
    env = with_things(bulb, book, {"k": "lighter", "n": "lighter", "f": "m", "p": 1})
    assert env.step("pour bulb in orange") == "No known action matches that input."
    assert env.step("pour light bulb in orange") == "That can't be moved there, because it's not a container."
    assert env.step("use lighter on book") == "The book catches fire."
    assert "\tA book (on fire) titled Emma by Jane Austen" in env.look()


def test_twenty_things_exchange_heat_in_the_order_of_their_pairs() -> None:
    place = len(BEGINNING["things"])
    celsius, shares = [10.0 + 40 * (k % 3) + k for k in range(20)], [0.02 + 0.015 * (k % 5) for k in range(20)]
    blocks = [
        {"k": "plain", "n": f"block {k}", "f": "m", "p": place}
        | {"m": ["stone", "", "solid", celsius[k], 10 * shares[k], 1e4, 1e5, 0]}
        for k in range(20)
    ]
    env = with_things(
        {"k": "box", "n": "crate", "f": "bo", "p": 1},
        *blocks,
        {"k": "thermometer", "n": "thermometer", "f": "m", "p": 1},
    )
    for k in range(20):
        measured = env.step(f"use thermometer on block {k}")
        assert measured == f"the thermometer measures a temperature of {math.floor(celsius[k] + 0.5)} degrees celsius"
        for i in range(20):
            for j in range(i + 1, 20):
                share = min(shares[i], shares[j])
                celsius[j] += (celsius[i] - celsius[j]) * share
                celsius[i] += (celsius[j] - celsius[i]) * share


def test_the_score_counts_the_way_and_a_wrong_focus_ends(env: Env) -> None:
    env.step("open door")
    assert env.score == 0
    env.step("go to outside")
    assert env.score == 50
    other = env.copy()
    assert env.step("focus on parrot") == "You focus on the parrot egg."
    assert (env.won, env.ended, env.score, env.subgoals) == (True, True, 100, (1, 1))
    assert other.step("focus on mouse") == "You focus on the baby mouse."
    assert (other.won, other.ended, other.score, other.progress) == (False, True, -100, 0.0)


def test_results_do_not_depend_on_threads_and_snapshots_restore() -> None:
    task, commands = made(), ["open door", "go to outside", "pick up mouse", "wait", "look at mouse", "put down mouse"]
    played = []
    for threads in (1, 3):
        envs = VectorEnv(8, 0, threads)
        envs.reset(list(range(8)), [task] * 8, list(range(8)))
        texts = []
        for step, command in enumerate(commands):
            texts.append(envs.step([command] * 8)[0])
            if step == 1:
                snapshot = envs.snapshot(3)
        envs.restore(0, snapshot)
        texts.append(envs.step(["look around"] * 8)[0])
        assert "baby mouse" in texts[-1][0]
        played.append(texts)
    assert played[0] == played[1]


@pytest.mark.parametrize("change", [{"things": []}, {"focus": [99]}, {"focus": []}, {"place": -1}, {"goal": None}])
def test_a_malformed_beginning_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(GameFileError, match="test: "):
        made(**change)
    things = copy.deepcopy(BEGINNING["things"])
    things[5]["k"] = "spaceship"
    with pytest.raises(GameFileError, match="a kind of thing"):
        made(things=things)
