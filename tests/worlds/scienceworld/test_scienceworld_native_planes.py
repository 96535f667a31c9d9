"""Planes, terminals and mixing in a house that the test makes; the original said the same in other houses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from embodied_mem.worlds.scienceworld.engine import Env, read_task

BEGINNING: dict[str, Any] = {
    "id": "inclined-plane-determine-angle/0",
    "goal": "Focus on the steeper plane.",
    "teleports": False,
    "focus": [6],
    "place": 2,
    "trials": [5, 6, 7],
    "things": [
        {"k": "universe", "n": "universe", "f": "bo"},
        {"k": "room", "n": "hallway", "f": "bo", "p": 0},
        {"k": "room", "n": "workshop", "f": "bo", "p": 0},
        {"k": "agent", "n": "agent", "f": "", "p": 1},
        {"k": "inventory", "n": "inventory", "f": "bo", "p": 3},
        {"k": "plane", "n": "inclined plane", "f": "bom", "p": 2, "w": " E", "c": ["plane E"], "slope": 0.868240888335},
        {"k": "plane", "n": "inclined plane", "f": "bom", "p": 2, "w": " H", "c": ["plane H"], "slope": 2.5},
        {"k": "plain", "n": "wood block", "f": "m", "p": 2, "c": ["block"]},
        {"k": "stopwatch", "n": "stopwatch", "f": "am", "p": 2},
        {"k": "wire", "n": "red wire", "f": "m", "p": 2},
        {"k": "battery", "n": "battery", "f": "m", "p": 2},
        {"k": "box", "n": "bowl", "f": "bom", "p": 2},
        {"k": "door", "n": "door", "f": "co", "p": 1, "to": 2},
        {"k": "door", "n": "door", "f": "co", "p": 2, "to": 1},
    ],
}


def made(**changes: Any) -> Env:
    env = Env(read_task(json.dumps(BEGINNING | changes).encode(), "test"))
    env.step("go to workshop")
    return env


def test_things_slide_by_the_ticks_since_they_came() -> None:
    env = made()
    assert env.step("move block to plane H") == "You move the wood block to the inclined plane."
    seen = []
    for _ in range(42):
        seen.append(env.look().partition("inclined plane H, with:  a wood block ")[2].partition("\n")[0])
        env.step("look at agent")
    assert seen[:3] == [f"approximately {share}% down the plane" for share in (3, 5, 8)]
    assert seen.index("at the bottom of the plane") == 39
    assert seen[38] == "approximately 98% down the plane"
    env.step("move stopwatch to plane H")
    env.step("move block to plane E")
    assert env.step("look at plane E") == "an inclined plane E, with: a wood block at the top of the plane"
    assert env.step("look at plane E") == "an inclined plane E, with: a wood block approximately 2% down the plane"
    env.step("pick up plane E")
    assert "a wood block approximately 3% down the plane" in env.inventory()
    assert env.step("move block to plane H") == "You move the wood block to the inclined plane."
    assert env.step("look at plane H").endswith(
        "H, with: a stopwatch approximately 15% down the plane, a wood block approximately 3% down the plane"
    )


def test_trials_count_and_a_reset_remembers_what_was_made() -> None:
    env = made()
    scores = [env.score]
    for command in ("deactivate stopwatch", "activate stopwatch", "look at stopwatch", "move block to plane E",
                    "move block to plane H", "look at stopwatch", "deactivate stopwatch", "look at stopwatch",
                    "reset task", "look at stopwatch", "activate stopwatch"):  # fmt: skip
        env.step(command)
        scores.append(env.score)
    assert scores == [10, 10, 10, 10, 20, 30, 30, 40, 50, 35, 35, 45]
    away = env.copy()
    away.step("go to hallway")
    away.step("reset task")
    assert away.score == 10  # what was read counts again at once; the rest is out of view
    other = env.copy()
    assert env.step("focus on plane H") == "You focus on the inclined plane H."
    assert (env.won, env.score) == (True, 100)
    other.step("focus on plane E")
    assert (other.won, other.score) == (False, -100)


def test_everything_has_terminals() -> None:
    env = made()
    question = env.step("look at terminal 1")
    assert question.split("\n")[1] == "0:\tlook at terminal 1 (in workshop)"
    assert "\tlook at terminal 1 (in inventory, in agent, in workshop)" in question
    assert env.step("").startswith("Unknown action.")
    assert env.step("look at terminal 1 on wood block") == "<ERROR: Could not retrieve object description>"
    connected = "is already connected, and must be disconnected before it can be connected to something else"
    kind = "Connections must specify specific points of contact on unpolarized electrical components"
    for first, second, said in (
        ("terminal 1 on block", "stopwatch", "terminal 1 on wood block is now connected to terminal 1 on stopwatch"),
        ("block", "door", "terminal 2 on wood block is now connected to terminal 1 on door"),
        ("stopwatch", "block", f"wood block {connected}"),
        ("terminal 1 on wood block", "bowl", f"terminal 1 on wood block {connected}"),
        ("red wire", "red wire", f"{kind} (e.g. terminal 1, terminal 2)"),
        ("red wire", "battery", f"{kind} (e.g. terminal 1, terminal 2)"),
        ("battery anode", "battery anode", "Something can't be connected to itself."),
    ):
        assert env.step(f"connect {first} to {second}") == said
    env.step("go to hallway")
    assert env.step("connect door to hallway") == "terminal 2 on door is now connected to terminal 1 on hallway"
    assert env.step("disconnect door") == "door has been disconnected"
    env.step("go to workshop")
    assert env.step("mix battery anode").startswith("Unknown action.")
    assert env.step("pick up block").startswith("(disconnecting wood block)You move")


def test_connecting_can_be_switched_off() -> None:
    env = made(wires=False)
    assert env.step("connect block to stopwatch") == "No known action matches that input."
    assert not [command for command in env.admissible_commands if "connect" in command]
    assert [command for command in made().admissible_commands if command.startswith("connect")]


@pytest.mark.parametrize(("start", "score"), [(1, 0), (2, 10)])
def test_who_starts_where_the_task_is_has_come_there(start: int, score: int) -> None:
    things = [{**thing, "p": start} if thing["k"] == "agent" else thing for thing in BEGINNING["things"]]
    env = Env(read_task(json.dumps(BEGINNING | {"things": things}).encode(), "test"))
    env.step("look at agent")
    assert env.score == score
    env.step("go to hallway")
    env.step("reset task")
    assert env.score == 0
    env.step("go to workshop")
    assert env.score == 10


def test_bees_draw_from_the_second_number_of_the_variation() -> None:
    # Java's Random(0) gives 0.73, 0.83, 0.24: a bee leaves its hive below a half, so in the second tick.
    hive = {"k": "hive", "n": "bee hive", "f": "bo", "p": 2}
    bee = {"k": "animal", "n": "bee", "f": "m", "p": 14, "life": "bee", "w": "bee"}
    env = made(things=[*BEGINNING["things"], hive, bee])
    assert "In the bee hive is: a adult bee." in env.look()
    env.step("look at agent")
    assert "In the bee hive is: nothing." in env.look()


@pytest.mark.parametrize(
    ("parts", "said", "look"),
    [
        (["apple", "orange", "banana"], "Apples, oranges, and bananas mix to produce fruit salad.", "fruit salad"),
        (["soap", "water"], "Soap and water mix to produce soapy water.", "a substance called soapy water"),
        (["blue paint", "red paint"], "Red and blue paint mix to produce violet paint.", "violet paint"),
        (["violet paint", "yellow paint"], "The paints mix to produce brown paint.", "brown paint"),
        (["apple", "orange"], "Mixing the contents of the bowl does not appear to produce anything new.", None),
        (["water"], "There is only one thing (water)", None),
        ([], "That container is empty, so there are no items to mix.", None),
    ],
)
def test_what_is_mixed_becomes_another_thing(parts: list[str], said: str, look: str | None) -> None:
    things = BEGINNING["things"] + [{"k": "liquid", "n": name, "f": "m", "p": 11} for name in parts]
    env = made(things=things)
    assert env.step("mix bowl") == said
    if look is not None:
        assert env.step("look in bowl") == f"Inside the bowl is: \n\t{look}"
