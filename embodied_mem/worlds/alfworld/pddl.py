"""The PDDL text of a generated ALFWorld game, in the structure of the official files, and the game file around it.

    text = problem_text(scene, objects, start, task_type="pick_and_place_simple", object_type="Apple", target="Fridge",
                        trial="trial_train_000001")
    file = game_file(text, "put a apple in fridge.", walkthrough)      # needs the package alfworld, see its docstring

Source: structure of the `game.tw-pddl` files of ALFWorld 0.4.2; domain and grammar are read from that package.
"""

from __future__ import annotations

import functools
import importlib.util
import pathlib
from collections.abc import Sequence

from embodied_mem.errors import MissingDependencyError
from embodied_mem.worlds.alfworld.statistics import Scene, Thing, household_statistics

_GOALS = pathlib.Path(__file__).with_name("goals.pddl")
_CHANGES = {
    "pick_clean_then_place_in_recep": {"able": "cleanable", "state": "isClean"},
    "pick_heat_then_place_in_recep": {"able": "heatable", "state": "isHot"},
    "pick_cool_then_place_in_recep": {"able": "coolable", "state": "isCool"},
}
_FORMS = {"pick_and_place_simple": "place", "look_at_obj_in_light": "look", "pick_two_obj_and_place": "two"}


@functools.lru_cache(maxsize=1)
def _goal_templates() -> dict[str, str]:
    """Return the sections of `goals.pddl` by name, without name lines."""
    sections = _GOALS.read_text().split(";; ")[2:]
    return {name: f"\n{text}" for name, _, text in (section.partition("\n") for section in sections)}


def mangle(text: str) -> str:
    """Return an id in the letters that PDDL allows: "Cabinet|+00.33" -> "Cabinet_bar__plus_00_dot_33"."""
    for sign, word in (("-", "_minus_"), ("|", "_bar_"), ("+", "_plus_"), (".", "_dot_")):
        text = text.replace(sign, word)
    return text


def coordinate(metres: float) -> str:
    """Return a coordinate in the data's style: +00.33, -02.02, 00.00."""
    return "00.00" if round(metres, 2) == 0 else f"{'+' if metres > 0 else '-'}{abs(metres):05.2f}"


def identifier_of(type_name: str, position: tuple[float, float, float]) -> str:
    """Return a thing's id at a position in metres, a basin's too."""
    base = type_name.removesuffix("Basin")
    text = "|".join([base, *map(coordinate, position)])
    return mangle(text if base == type_name else f"{text}|{type_name}")


def location_of(x: int, z: int, turn: int, tilt_degrees: int) -> str:
    """Return a standing place's id: grid cell, quarter turns, head tilt."""
    return mangle(f"loc|{x}|{z}|{turn}|{tilt_degrees}")


def goal_text(task_type: str, object_type: str, target: str) -> str:
    """Return a problem's goal; `target` is a receptacle or lamp type."""
    template = _goal_templates()[_FORMS.get(task_type, "change")]
    return template.format(object=object_type, target=target, **_CHANGES.get(task_type, {}))


def _lines(predicate: str, arguments: Sequence[str]) -> str:
    """Write an indented fact a line, like the official files."""
    return "\n".join([f"        ({predicate} {argument})" for argument in arguments]) or "        "


@functools.lru_cache(maxsize=4096)
def _scene_texts(scene: Scene) -> tuple[str, str]:
    """Return a scene's declarations and facts common to all its trials."""
    statistics = household_statistics()
    types = statistics["object_types"]
    present = {receptacle.type for receptacle in scene.receptacles}
    objects = {*scene.habits, *(thing.type for thing in scene.furnishings)}
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
    objects: Sequence[Thing],
    start: str,
    *,
    task_type: str,
    object_type: str,
    target: str,
    trial: str,
) -> str:
    """Return the PDDL problem of one trial.

    Args:
        scene: the room.
        objects: everything that can be picked up.
        start: location of the agent.
        task_type: one of the six task types.
        object_type: type of the goal's object, as in the data ("SoapBar").
        target: type of the goal's receptacle, or of the lamp.
        trial: name of the trial.
    """
    declared, facts = _scene_texts(scene)
    things = sorted([*objects, *scene.furnishings])
    locations = sorted({start, *(r.location for r in scene.receptacles), *(thing.location for thing in things)})
    holder_type = {receptacle.identifier: receptacle.type for receptacle in scene.receptacles}
    cool = [t.identifier for t in objects if t.type == object_type and holder_type.get(t.holder) == "Fridge"]
    properties = household_statistics()["properties"].items()
    parts = [
        f"\n(define (problem plan_{trial})\n(:domain alfred)\n(:objects\nagent1 - agent",
        declared,
        "\n".join([f"        {thing.identifier} - object" for thing in things]),
        "\n".join([f"        {location} - location" for location in locations]),
        "        )\n\n\n(:init\n",
        facts,
        _lines("objectType", [f"{thing.identifier} {thing.type}Type" for thing in things]),
        *(_lines(name, [thing.identifier for thing in things if thing.type in types]) for name, types in properties),
        _lines("isCool", sorted(cool)),
        f"        (atLocation agent1 {start})",
        _lines("inReceptacle", [f"{thing.identifier} {thing.holder}" for thing in things if thing.holder]),
        _lines("objectAtLocation", [f"{thing.identifier} {thing.location}" for thing in things]),
        "        )\n",
    ]
    return "\n".join(parts) + goal_text(task_type, object_type, target)


@functools.lru_cache(maxsize=1)
def official_logic() -> tuple[str, str]:
    """Read ALFWorld's domain (alfred.pddl) and grammar (alfred.twl2) from its package.

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
    """Return the JSON of a `game.tw-pddl` file, like the official ones.

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
