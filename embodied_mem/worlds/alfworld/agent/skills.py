"""ALFWorld's commands as skills, for planners that are told what can be done.

    skills_of(PlannerCriticConfig(grammar="0.3"))

Source: the grammar of ALFWorld game files (alfred.twl2), versions 0.3 and 0.4.
"""

from __future__ import annotations

from embodied_mem.agents.planner_critic.agent import PlannerCriticConfig
from embodied_mem.agents.robot.skills import Skill
from embodied_mem.language.prompt_files import prompt
from embodied_mem.worlds.alfworld.wording.text import put_command

_AT, _OPEN, _EMPTY, _HOLDING = (
    "being at {place}",
    "{place} is open, if it has a door",
    "an empty hand",
    "holding {thing}",
)


def skills_of(config: PlannerCriticConfig) -> tuple[Skill, ...]:
    """Return the skills in the wording of `config.grammar`."""
    put = put_command("{thing}", "{place}", config.grammar)
    changed = (
        Skill(verb, ("thing", "place"), f"{what} with {tool}.", (_AT, _HOLDING), f"{verb} {{thing}} with {{place}}")
        for verb, what, tool in (
            ("clean", "Cleans what is held", "a sink basin"),
            ("heat", "Heats what is held", "a microwave"),
            ("cool", "Cools what is held", "a fridge"),
        )
    )
    return (
        Skill("go_to", ("place",), "Goes to a place and tells what is in or on it.", (), "go to {place}"),
        Skill("open", ("place",), "Opens a door and tells what is inside.", (_AT,), "open {place}"),
        Skill("close", ("place",), "Closes a door.", (_AT,), "close {place}"),
        Skill("take", ("thing", "place"), "Takes one thing.", (_AT, _OPEN, _EMPTY), "take {thing} from {place}"),
        Skill("put", ("thing", "place"), "Puts what is held in or on a place.", (_AT, _OPEN, _HOLDING), put),
        *changed,
        Skill("use", ("lamp",), "Turns a lamp on, to look at what is held.", ("being where {lamp} is",), "use {lamp}"),
        Skill("examine", ("place",), "Tells once more what is there.", (_AT,), "examine {place}"),
        Skill("inventory", (), "Tells what is held.", (), "inventory"),
        Skill("look", (), "Tells where you are.", (), "look"),
    )


def examples_of(config: PlannerCriticConfig) -> str:
    """Return what planners are told of this world, with worked examples."""
    return prompt("embodied_mem.worlds.alfworld.agent", "plan_examples")
