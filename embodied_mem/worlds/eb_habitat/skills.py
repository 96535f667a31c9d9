"""EB-Habitat's actions as skills, for planners that are told what can be done.

Source: RoboMemory, table 3; the wording of the actions is EmbodiedBench's.
"""

from __future__ import annotations

from embodied_mem.agents.planner_critic.agent import PlannerCriticConfig
from embodied_mem.agents.robot.skills import Skill
from embodied_mem.language.prompt_files import prompt

_NEAR = "being at {place}"


def skills_of(config: PlannerCriticConfig) -> tuple[Skill, ...]:
    """Return the skills, the same for every configuration."""
    return (
        Skill("navigate", ("place",), "Goes to a place.", (), "navigate to the {place}"),
        Skill(
            "pick",
            ("thing",),
            "Takes a thing of this kind.",
            ("it is in reach", "an empty hand"),
            "pick up the {thing}",
        ),
        Skill("place", ("place",), "Puts what is held there.", (_NEAR, "holding something"), "place at the {place}"),
        Skill("open", ("place",), "Opens a door.", (_NEAR,), "open the {place}"),
        Skill("close", ("place",), "Closes a door.", (_NEAR,), "close the {place}"),
    )


def examples_of(config: PlannerCriticConfig) -> str:
    """Return what planners are told of this world, with worked examples."""
    return prompt("embodied_mem.worlds.eb_habitat", "plan_examples")
