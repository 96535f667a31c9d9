"""How each native world is played at random in tests: an action, and options under which play does not end early."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from typing import Any

from embodied_mem.envs.vector_env import NativeVectorEnv


def admissible_action(rng: random.Random, envs: NativeVectorEnv, info: Mapping[str, Any], index: int) -> str:
    """Return one of the commands that `info` lists for env `index`."""
    return rng.choice(info["admissible_commands"][index])


def memento_action(rng: random.Random, envs: NativeVectorEnv, info: Mapping[str, Any], index: int) -> str:
    """Return a walk, tour, pick, placement or question with names of the episode's house and objects."""
    env = envs.env(index)
    house = env.task.house
    room = rng.choice([room["name"] for room in house["rooms"] if room["has_floor"]])
    piece, thing = rng.choice(house["furniture"])["name"], rng.choice(list(env.state()["objects"]))
    placement, question = f"Place[{thing}, on, {piece}, None, None]", f"FindReceptacleTool[a table in the {room}]"
    walks = (f"Explore[{room}]", f"Navigate[{piece}]", f"Navigate[{thing}]")
    return rng.choice((*walks, f"Pick[{thing}]", placement, f"DescribeObjectTool[{thing}]", question))


@dataclasses.dataclass(frozen=True)
class Drive:
    """A world's action, drawn from (rng, envs, info, number of the env), and options of `make`."""

    action: Callable[[random.Random, NativeVectorEnv, Mapping[str, Any], int], str] = admissible_action
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


DRIVES = {
    "alfworld": Drive(),
    "eb_alfred": Drive(options={"max_invalid": 60_000}),
    "eb_habitat": Drive(options={"max_invalid": 60_000}),
    "memento": Drive(memento_action),
}
