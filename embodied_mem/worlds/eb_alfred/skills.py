"""EB-ALFRED's actions as skills, for planners that are told what can be done.

Source: RoboMemory, table 3; the wording of the actions is EmbodiedBench's.
"""

from __future__ import annotations

from embodied_mem.agents.planner_critic.agent import PlannerCriticConfig
from embodied_mem.agents.robot.skills import Skill
from embodied_mem.language.prompt_files import prompt

_FOUND = "{thing} is what was found last"
_HOLDING = "holding something"


def skills_of(config: PlannerCriticConfig) -> tuple[Skill, ...]:
    """Return the skills; they are the same whatever the agent's configuration."""
    return (
        Skill("find", ("thing",), "Goes to a thing or a place, wherever it is.", (), "find a {thing}"),
        Skill("pick_up", ("thing",), "Takes a thing.", (_FOUND, "an empty hand"), "pick up the {thing}"),
        Skill(
            "put_down",
            (),
            "Puts what is held in or on what was found last.",
            (_HOLDING,),
            "put down the object in hand",
        ),
        Skill("drop", (), "Drops what is held.", (_HOLDING,), "drop the object in hand"),
        Skill("open", ("thing",), "Opens it.", (_FOUND,), "open the {thing}"),
        Skill("close", ("thing",), "Closes it.", (_FOUND,), "close the {thing}"),
        Skill("turn_on", ("thing",), "Turns on a lamp, a faucet, a microwave.", (_FOUND,), "turn on the {thing}"),
        Skill("turn_off", ("thing",), "Turns it off.", (_FOUND,), "turn off the {thing}"),
        Skill("slice", ("thing",), "Cuts food.", (_FOUND, "holding a knife"), "slice the {thing}"),
    )


def examples_of(config: PlannerCriticConfig) -> str:
    """Return what planners are told of this world, with worked examples."""
    return prompt("embodied_mem.worlds.eb_alfred", "plan_examples")
