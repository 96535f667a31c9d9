"""What ScienceWorld's agent does where its plan does not hold: other devices, other parts, the words of the goal."""

from __future__ import annotations

import dataclasses

from experiments.solvers.scienceworld.agents import GoalPlayer, PlannerCritic
from experiments.solvers.scienceworld.gold_paths import GoldPath, Memories

KITCHEN = "This room is called the kitchen. In it, you see: \n{}You also see:\n"
MELT = "Your task is to melt {}. First, focus on the substance."


def path(goal: str, *turns: tuple[str, str], won: bool = True, game: str = "melt") -> GoldPath:
    """A path in the kitchen."""
    commands, answers = zip(*turns)
    return GoldPath(game, 0, goal, KITCHEN.format(""), commands, answers, won)


def warmed(device: str, degrees: int) -> GoldPath:
    """Ice that melts in a device."""
    return path(
        MELT.format("ice"),
        ("look around", KITCHEN.format("\ta thermometer, currently reading a temperature of 10 degrees celsius\n")),
        ("pick up thermometer", "You move the thermometer to the inventory."),
        ("focus on ice", "You focus on the ice."),
        ("move ice to pot", "You move the ice to the pot."),
        (f"move pot to {device}", f"You move the pot to the {device}."),
        (f"activate {device}", f"The {device} is now activated."),
        ("use thermometer in inventory on ice", f"the thermometer measures a temperature of {degrees} degrees celsius"),
    )


class Kitchen:
    """A pot, something solid, a stove that is broken or too cool, and an oven that melts."""

    def __init__(self, thing: str, stove: str):
        self.thing, self.stove, self.place, self.on, self.melted, self.log = thing, stove, "", set[str](), False, []

    def answer(self, command: str) -> str:
        """What the simulator would say."""
        self.log.append(command)
        verb, _, rest = command.partition(" ")
        if verb == "move" and rest.startswith("pot to "):
            self.place = rest.removeprefix("pot to ")
            return f"You move the pot to the {self.place}."
        if verb == "activate":
            if rest == "stove" and self.stove == "broken":
                return "The stove appears broken, and can't be activated or deactivated."
            self.on.add(rest)
            return f"The {rest} is now activated."
        if command == "wait" and self.place == "oven" and "oven" in self.on:
            self.melted = True
        if verb == "examine":
            return f"a substance called {'liquid ' * self.melted}{self.thing}"
        if command.startswith("use thermometer"):
            return "the thermometer measures a temperature of 20 degrees celsius"
        if verb == "focus":
            return f"You focus on the {self.thing}."
        return f"You move the {rest} to the inventory." if verb == "pick" else "You wait."


def melted(stove: str) -> Kitchen:
    """The kitchen after the agent played in it, with memory of a stove and an oven."""
    house = Kitchen("wax", stove)
    memories = Memories([warmed("stove", 50), dataclasses.replace(warmed("oven", 90), game="boil")])
    player = PlannerCritic(memories).play(MELT.format("wax"), KITCHEN.format(""))
    command = next(player)
    for _ in range(60):
        answer = house.answer(command)
        if house.melted:
            break
        command = player.send(answer)
    return house


def test_a_device_that_is_broken_or_does_nothing_is_followed_by_the_next():
    broken, cool = melted("broken"), melted("cool")
    assert broken.melted
    assert broken.log.index("activate stove") < broken.log.index("move pot to oven")
    assert not [command for command in broken.log if command == "wait"][1:]  # no wait on what is broken
    assert cool.melted
    assert cool.log[: cool.log.index("move pot to oven")].count("wait") == 4


def test_what_was_chosen_in_vain_is_not_chosen_again():
    goal = "Your task is to find a(n) animal. First, focus on the thing."
    look = KITCHEN.format("\ta chair\n\ta dove egg\n")
    lost = path(goal, ("focus on chair", "You focus on the chair."), won=False, game="find")
    chosen = []
    for memories in ([], [lost]):
        player = GoalPlayer(Memories(memories)).play(goal, look)
        command = next(player)
        while not command.startswith("focus"):
            command = player.send(look)
        chosen.append(command)
    assert chosen == ["focus on chair", "focus on dove egg"]
