"""ALFRED's expert plans as actions of EB-ALFRED, for teacher data and for checks of the world.

actions = expert_actions(task, json.loads(annotation_file(root, task.trial, 0).read_bytes()))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embodied_mem.envs.data_files import read_object
from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.eb_alfred.engine import Env, Task
from embodied_mem.worlds.eb_alfred.env import MAX_STEPS, annotation_file, data_root

_WORDS = {
    "PickupObject": "pick up the",
    "OpenObject": "open the",
    "CloseObject": "close the",
    "ToggleObjectOn": "turn on the",
    "ToggleObjectOff": "turn off the",
    "SliceObject": "slice the",
}
_BY_TYPE = ("PickupObject", "ToggleObjectOn", "ToggleObjectOff", "SliceObject")


def expert_actions(task: Task, annotation: Mapping[str, Any]) -> list[str]:
    """Return the expert's plan as a list of actions of `task`.

    Walking becomes `find` of the thing the next action is about, left out where it was the last one found; putting
    down always needs a find of its own, since picking something up clears the current receptacle.

    Args:
        task: the task; its names say how the things of the plan are called.
        annotation: content of an annotation file of its trial, with `plan.low_actions`.

    Raises:
        InvalidInputError: the plan names a thing that the scene does not hold.
    """
    actions: list[str] = []
    at = name = ""
    for step in annotation["plan"]["low_actions"]:
        action = step["api_action"]
        kind = action["action"]
        if "objectId" not in action:
            continue
        is_put = kind == "PutObject"
        thing = action["receptacleObjectId" if is_put else "objectId"]
        if at != thing or (is_put and actions[-1] != f"open the {name}"):
            name, at = _findable(task, thing), thing
            actions.append(f"find a {name}")
        if is_put:
            actions.append("put down the object in hand")
            continue
        actions.append(f"{_WORDS[kind]} {name.partition('_')[0] if kind in _BY_TYPE else name}")
        if kind == "SliceObject":
            at = ""  # its slices are what is found next
    return actions


def _findable(task: Task, thing: str) -> str:
    """Return the name to find a thing of a plan by."""
    names, whole = task.names, "|".join(thing.split("|")[:4])
    name = names.get(thing) or names.get(whole)
    if name is None:
        raise InvalidInputError(f"{task.name}: the plan names {thing!r}, which the scene does not hold")
    if thing not in names or "Sliced" in name:  # a slice is found under the name of its whole
        name = names[whole]
    if f"find a {name}" not in task.actions:
        name = name.partition("_")[0].removesuffix("Basin")
    if f"find a {name}" not in task.actions:
        raise InvalidInputError(f"{task.name}: the plan needs {thing!r}, which no find action names")
    return name


MISTAKES = 0.5
"""Share of finds before which an action is played that is refused; elsewhere one changes where a thing is put."""


class EbAlfredParity:
    """The plan of ALFRED's expert with refused actions between."""

    options: dict[str, object] = {"max_steps": MAX_STEPS, "shows_view": False}  # noqa: RUF012

    def actions(self, env: Env, rng: np.random.Generator) -> list[str]:
        """Return actions to the goal of an env's copy, or its end.

        They reach the goal, or end the copy's episode.
        """
        path = min(annotation_file(data_root(), env.task.trial, 0).parent.glob("ann_*.json"))
        played: list[str] = []
        for action in expert_actions(env.task, read_object(path)):
            refused = sorted(set(env.admissible_commands) - set(env.valid_commands))
            mistaken = action.startswith("find ") and rng.random() < MISTAKES
            given = [refused[rng.integers(len(refused))], action] if mistaken else [action]
            for each in given:
                env.step(each)
                played.append(each)
            if env.ended or len(played) >= MAX_STEPS:
                break
        return played[:MAX_STEPS]

    def feedback(self, observation: str) -> str:
        """Return all of it: there is no view."""
        return observation


PARITY = EbAlfredParity()
