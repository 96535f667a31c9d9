"""The PDDL text of a generated ALFWorld game, in the structure of the official files, and the game file around it.

    text = problem_text(scene, objects, start, "pick_and_place_simple", "Apple", "Fridge", "trial_train_000001")
    file = game_file(text, "put a apple in fridge.", walkthrough)      # needs the package alfworld, see its docstring

Source: structure of the `game.tw-pddl` files of ALFWorld 0.4.2; domain and grammar are read from that package.
"""

from __future__ import annotations

import functools
import importlib.util
import pathlib
from collections.abc import Sequence

from embodied_mem.envs.alfworld_household import Scene, household_statistics
from embodied_mem.errors import MissingDependencyError

_PLACE = """
        (:goal
            (and
                (exists (?r - receptacle)
                    (exists (?o - object)
                        (and
                            (inReceptacle ?o ?r)
                            (objectType ?o {object}Type)
                            (receptacleType ?r {target}Type)
                        )
                    )
                )
            )
        )
    )
"""

_CHANGE = """
        (:goal
            (and
                (exists (?r - receptacle)
                    (exists (?o - object)
                        (and
                            ({able} ?o)
                            (objectType ?o {object}Type)
                            (receptacleType ?r {target}Type)
                            ({state} ?o)
                            (inReceptacle ?o ?r)
                        )
                    )
                )
            )
        )
    )
"""

_CONDITIONS = {
    "pick_clean_then_place_in_recep": {"able": "cleanable", "state": "isClean"},
    "pick_heat_then_place_in_recep": {"able": "heatable", "state": "isHot"},
    "pick_cool_then_place_in_recep": {"able": "coolable", "state": "isCool"},
}

_TWO = """
        (:goal
            (and
                (exists (?r - receptacle)
                    (exists (?o1 - object)
                        (and
                            (objectType ?o1 {object}Type)
                            (receptacleType ?r {target}Type)
                            (inReceptacle ?o1 ?r)
                            (exists (?o2 - object)
                                (and
                                    (not (= ?o1 ?o2))
                                    (objectType ?o2 {object}Type)
                                    (receptacleType ?r {target}Type)
                                    (inReceptacle ?o2 ?r)
                                )
                            )
                        )
                    )
                )
            )
        )
    )
"""

_LOOK = """
        (:goal
             (and
                 (exists (?ot - object
                          ?r - receptacle
                          ?a - agent
                          ?l - location)
                     (and
                         (objectType ?ot {target}Type)
                         (toggleable ?ot)
                         (isToggled ?ot)
                         (receptacleAtLocation ?r ?l)
                         (atLocation ?a ?l)
                         (inReceptacle ?ot ?r)
                     )
                 )
                 (exists (?o - object
                          ?a - agent)
                     (and
                         (objectType ?o {object}Type)
                         (holds ?a ?o)
                     )
                 )
             )
        )
    )
"""


def mangle(text: str) -> str:
    """Return an id in the letters that PDDL allows: "Cabinet|+00.33" -> "Cabinet_bar__plus_00_dot_33"."""
    for sign, word in (("-", "_minus_"), ("|", "_bar_"), ("+", "_plus_"), (".", "_dot_")):
        text = text.replace(sign, word)
    return text


def coordinate(metres: float) -> str:
    """Return a coordinate in the data's style: +00.33, -02.02, 00.00."""
    return "00.00" if round(metres, 2) == 0 else f"{'+' if metres > 0 else '-'}{abs(metres):05.2f}"


def identifier_of(type_name: str, position: tuple[float, float, float]) -> str:
    """Return the id of a thing at a position in metres; a basin is named as a part of its sink or bathtub."""
    base = type_name.removesuffix("Basin")
    text = "|".join([base, *map(coordinate, position)])
    return mangle(text if base == type_name else f"{text}|{type_name}")


def location_of(x: int, z: int, turn: int, tilt_degrees: int) -> str:
    """Return the id of a place to stand: grid cell, quarter turns, tilt of the head."""
    return mangle(f"loc|{x}|{z}|{turn}|{tilt_degrees}")


def goal_text(task_type: str, object_type: str, target: str) -> str:
    """Return the goal of a problem; `target` is the receptacle type, or the lamp type for look_at_obj_in_light."""
    if task_type == "look_at_obj_in_light":
        return _LOOK.format(object=object_type, target=target)
    if task_type == "pick_two_obj_and_place":
        return _TWO.format(object=object_type, target=target)
    if task_type == "pick_and_place_simple":
        return _PLACE.format(object=object_type, target=target)
    return _CHANGE.format(object=object_type, target=target, **_CONDITIONS[task_type])


def _lines(predicate: str, arguments: Sequence[str]) -> str:
    """Return one indented fact a line, or a blank line if there is none, as the official files have it."""
    return "\n".join([f"        ({predicate} {argument})" for argument in arguments]) or "        "


@functools.lru_cache(maxsize=4096)
def _scene_texts(scene: Scene) -> tuple[str, str]:
    """Return the declarations and the facts of a scene that are the same in all its trials."""
    statistics = household_statistics()
    types = statistics["object_types"]
    present = {receptacle.type for receptacle in scene.receptacles}
    objects = {*scene.habits, *(name for _, name, _, _ in scene.furnishings)}
    declared = "\n".join(
        [f"        {name} - object" for name in types]
        + [f"        {name}Type - otype" for name in types]
        + [f"        {name}Type - rtype" for name in statistics["receptacle_types"]]
        + [f"        {receptacle.identifier} - receptacle" for receptacle in scene.receptacles]
    )
    contained = [f"{place}Type {name}Type" for place in sorted(present)
                 for name in statistics["can_contain"].get(place, ()) if name in objects]  # fmt: skip
    facts = "\n".join(
        [
            _lines("receptacleType", [f"{r.identifier} {r.type}Type" for r in scene.receptacles]),
            _lines("canContain", contained),
            _lines("openable", [r.identifier for r in scene.receptacles if r.openable]),
            _lines("receptacleAtLocation", [f"{r.identifier} {r.location}" for r in scene.receptacles]),
        ]
    )
    return declared, facts


def problem_text(
    scene: Scene,
    objects: Sequence[tuple[str, str, str, str]],
    start: str,
    task_type: str,
    object_type: str,
    target: str,
    trial: str,
) -> str:
    """Return the PDDL problem of one trial.

    Args:
        scene: the room.
        objects: (id, type, receptacle id or "", location) of everything that can be picked up.
        start: location of the agent.
        task_type: one of the six task types.
        object_type: type of the goal's object, as in the data ("SoapBar").
        target: type of the goal's receptacle, or of the lamp.
        trial: name of the trial.
    """
    declared, facts = _scene_texts(scene)
    things = sorted([*objects, *scene.furnishings])
    locations = sorted({start, *(r.location for r in scene.receptacles), *(place for _, _, _, place in things)})
    properties = household_statistics()["properties"]
    holder_type = {receptacle.identifier: receptacle.type for receptacle in scene.receptacles}
    parts = [
        f"\n(define (problem plan_{trial})\n(:domain alfred)\n(:objects\nagent1 - agent",
        declared,
        "\n".join([f"        {identifier} - object" for identifier, _, _, _ in things]),
        "\n".join([f"        {location} - location" for location in locations]),
        "        )\n\n\n(:init\n",
        facts,
        _lines("objectType", [f"{identifier} {name}Type" for identifier, name, _, _ in things]),
    ]
    for name, types in properties.items():
        parts.append(_lines(name, [identifier for identifier, kind, _, _ in things if kind in types]))
    is_cool = [i for i, name, holder, _ in objects if name == object_type and holder_type.get(holder) == "Fridge"]
    parts += [
        _lines("isCool", sorted(is_cool)),
        f"        (atLocation agent1 {start})",
        _lines("inReceptacle", [f"{identifier} {holder}" for identifier, _, holder, _ in things if holder]),
        _lines("objectAtLocation", [f"{identifier} {location}" for identifier, _, _, location in things]),
        "        )\n",
    ]
    return "\n".join(parts) + goal_text(task_type, object_type, target)


@functools.lru_cache(maxsize=1)
def official_logic() -> tuple[str, str]:
    """Return the texts of ALFWorld's domain (alfred.pddl) and grammar (alfred.twl2), read from its package.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            "writing official game files needs the domain and grammar texts of the package alfworld, which is not "
            "installed: run `pip install --no-deps alfworld`. Games in memory and the native engine do without"
        )
    folder = pathlib.Path(spec.submodule_search_locations[0]) / "data"
    return (folder / "alfred.pddl").read_text(), (folder / "alfred.twl2").read_text()


def game_file(problem: str, goal: str, walkthrough: Sequence[str]) -> dict[str, object]:
    """Return the content of a `game.tw-pddl` file: JSON with the keys and types of the official ones.

    Raises:
        MissingDependencyError: the package alfworld is not installed.
    """
    domain, grammar = official_logic()
    return {
        "pddl_domain": domain,
        "grammar": grammar.replace("UNKNOWN GOAL.", goal).replace("UNKNOWN GOAL", goal),
        "pddl_problem": problem,
        "solvable": True,
        "walkthrough": list(walkthrough),
    }
