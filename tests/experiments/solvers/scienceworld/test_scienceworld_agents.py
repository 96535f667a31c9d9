"""Agents of ScienceWorld without the simulator: what of a memory becomes what, and a house that answers as it does."""

from __future__ import annotations

import dataclasses
import re

import pytest

from experiments.solvers.scienceworld.agents import AGENTS, Evidence
from experiments.solvers.scienceworld.gold_paths import GoldPath, Memories

MELT = (
    "Your task is to measure the melting point of {}, which is located around the {}. First, focus on the {}. "
    "If the melting point of {} is above {} degrees celsius, focus on the {} box. "
    "If the melting point of {} is below {} degrees celsius, focus on the {} box."
)


def melt(thing: str, room: str, limit: float, above: str, below: str) -> str:
    return MELT.format(thing, room, thing, thing, limit, above, thing, limit, below)


class House:
    """Two rooms with a door; in the kitchen a drawer that has to be opened for what is in it."""

    def __init__(self, hidden: str, start: str = "hallway"):
        self.hidden, self.room, self.open, self.door, self.log = hidden, start, False, False, []
        self.focused = ""

    def look(self) -> str:
        other = {"hallway": "kitchen", "kitchen": "hallway"}[self.room]
        inside = (
            f"The drawer door is open. In the drawer is: a {self.hidden}."
            if self.open
            else "The drawer door is closed."
        )
        things = f"\ta drawer. {inside}\n" if self.room == "kitchen" else "\ta picture\n"
        state = "open" if self.door else "closed"
        doors = f"\tA door to the {other} (that is {state})"
        return f"This room is called the {self.room}. In it, you see: \n{things}You also see:\n{doors}"

    def answer(self, command: str) -> str:
        self.log.append(command)
        if command == "look around":
            return self.look()
        if found := re.fullmatch(r"open door to (kitchen|hallway)", command):
            self.door = True
            return "The door is now open." if found[1] != self.room else "No known action matches that input."
        if found := re.fullmatch(r"go to (kitchen|hallway)", command):
            if not self.door:
                return "The door is not open."
            self.room = found[1]
            return f"You move to the {self.room}."
        if command == "open drawer" and self.room == "kitchen":
            self.open = True
            return "The drawer is now open."
        if command == f"focus on {self.hidden}" and self.room == "kitchen" and self.open:
            self.focused = self.hidden
            return f"You focus on the {self.hidden}."
        return "No known action matches that input."


def played(name: str, memories: list[GoldPath], goal: str, house: House) -> House:
    """The house after an agent played in it, for 60 steps at most."""
    player = AGENTS[name](Memories(memories)).play(goal, house.look())
    command = next(player)
    for _ in range(60):
        answer = house.answer(command)
        if house.focused:
            break
        try:
            command = player.send(answer)
        except StopIteration:
            break
    return house


GOAL = "Your task is to find the {}. First, focus on the {}."


def remembered(thing: str = "spoon") -> GoldPath:
    """A path in which the drawer was open already and the way was from the kitchen."""
    commands = ("look around", f"focus on {thing}")
    first = House(thing, "kitchen")
    first.open = True
    return GoldPath(
        "find", 0, GOAL.format(thing, thing), first.look(), commands, (first.look(), f"You focus on the {thing}.")
    )


def test_the_critic_walks_there_and_opens_what_is_closed_and_the_repeater_does_not():
    goal = GOAL.format("fork", "fork")
    critic = played("planner_critic", [remembered()], goal, House("fork"))
    assert critic.focused == "fork"
    assert critic.log.index("go to kitchen") < critic.log.index("open drawer")
    static = played("static", [remembered()], goal, House("fork"))
    assert static.log == ["look around", "focus on fork"]
    assert not static.focused


def test_without_memory_rooms_are_walked_through_and_what_is_seen_is_focused_on():
    house = House("fork")
    house.open = True
    assert played("none", [], GOAL.format("fork", "fork"), house).log == [
        "open door to kitchen", "go to kitchen", "look around", "focus on fork",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "box"),
    [
        ([("solid tin", 60)], "red"),
        ([("solid tin", 20), ("liquid tin", 40)], "blue"),
        ([("solid tin", 20), ("liquid tin", 70)], "red"),
    ],
)
def test_a_melting_point_decides_between_boxes(seen, box):
    evidence = Evidence(melt("tin", "kitchen", 50.0, "red", "blue"), [])
    for name, temperature in seen:
        evidence.see(f"examine {name}", f"a substance called {name}")
        evidence.see(
            f"use thermometer in inventory on {name}",
            f"the thermometer measures a temperature of {temperature} degrees",
        )
    if seen == [("solid tin", 20), ("liquid tin", 70)]:  # it melted between 20 and 70: not known
        assert evidence.undecided("focus on blue box")
        evidence.see(
            "use thermometer in inventory on solid tin", "the thermometer measures a temperature of 55 degrees"
        )
        assert not evidence.undecided("focus on blue box")
    assert evidence.decide("focus on blue box", "") == f"focus on {box} box"


def test_own_episodes_that_failed_are_no_plans_and_tell_of_the_house():
    lost = dataclasses.replace(remembered(), won=False)
    goal = GOAL.format("fork", "fork")
    assert Memories([lost]).retrieve(goal) == []
    assert Memories([lost]).doors["kitchen"] == {"hallway"}
    house = played("planner_critic_own", [lost], goal, House("fork"))  # by the words of the goal
    assert house.focused == "fork"
    assert played("planner_critic_own", [remembered()], goal, House("fork")).focused == "fork"


class Garden:
    """A pot in which a bean ripens after a number of iterations; a row of rooms leads to it."""

    def __init__(self, ripe_after: int, rooms: tuple[str, ...] = ("garden",)):
        self.ripe_after, self.rooms, self.room = ripe_after, rooms, rooms[0]
        self.waits, self.focused = 0, ""

    def look(self) -> str:
        thing = "ripe bean" if self.waits >= self.ripe_after else "seed"
        things = f"\ta pot (containing a {thing})\n" if self.room == "garden" else "\ta picture\n"
        i = self.rooms.index(self.room)
        doors = [
            f"\tA door to the {room} (that is open)" for room in (*self.rooms[:i][-1:], *self.rooms[i + 1 : i + 2])
        ]
        return f"This room is called the {self.room}. In it, you see: \n{things}You also see:\n" + "\n".join(doors)

    def answer(self, command: str) -> str:
        if command == "look around":
            return self.look()
        if command == "wait1":
            self.waits += 1
            return "You decide to wait for 1 iterations."
        i = self.rooms.index(self.room)
        if (found := re.fullmatch(r"go to (.+)", command)) and found[1] in self.rooms[max(0, i - 1) : i + 2]:
            self.room = found[1]
            return f"You move to the {self.room}."
        if command == "focus on ripe bean" and self.room == "garden" and self.waits >= self.ripe_after:
            self.focused = "ripe bean"
            return "You focus on the ripe bean."
        return "No known action matches that input."


def ripened(waits: int) -> GoldPath:
    """A path that begins in the garden and waited there."""
    garden = Garden(waits)
    first, commands = garden.look(), ("look around", *["wait1"] * waits, "look around", "focus on ripe bean")
    return GoldPath("grow", 0, "Your task is to grow a bean.", first, commands, tuple(map(garden.answer, commands)))


def test_a_thing_that_never_comes_is_not_waited_for_without_end():
    garden = Garden(10**6)
    player = AGENTS["planner_critic"](Memories([ripened(5)])).play("Your task is to grow a bean.", garden.look())
    command, steps = next(player), 0
    try:
        while steps < 400:
            command, steps = player.send(garden.answer(command)), steps + 1
    except StopIteration:
        return
    raise AssertionError(f"it still waits after {steps} steps")


@pytest.mark.parametrize("ahead", [0, 1, 2, 4])
def test_a_path_that_begins_in_the_room_of_the_goal_is_walked_to(ahead):
    garden = Garden(3, (*[f"room {'abcd'[i]}" for i in range(ahead)], "garden"))
    played("planner_critic", [ripened(3)], "Your task is to grow a bean.", garden)
    assert garden.focused
