"""The first state of a game, read from the text of its PDDL problem: holds the native reader to account."""

from __future__ import annotations

import re

from embodied_mem.worlds.alfworld.shortest_plan import WorldState
from embodied_mem.worlds.alfworld.wording.text import parse_goal


def number_names(identifiers: list[str]) -> dict[str, str]:
    """Return PDDL id (lower case) -> name in the text: within a type, the first id in order has the highest number.

    Source: ALFWorld's AlfredDemangler with shuffle off.
    """
    groups: dict[str, list[str]] = {}
    for identifier in sorted(identifiers):
        base = identifier.partition("_bar_")[0]
        groups.setdefault(base + "basin" if "basin" in identifier else base, []).append(identifier)
    return {
        identifier: f"{base} {len(group) - rank}"
        for base, group in groups.items()
        for rank, identifier in enumerate(group)
    }


def state_of(problem: str, goal: str) -> WorldState:
    """Return the first state of a game: `problem` is its PDDL problem, `goal` its task sentence."""
    head, _, rest = problem.lower().partition("(:init")
    init = rest.partition("(:goal")[0]
    facts: dict[str, list[list[str]]] = {}
    for fact in re.findall(r"\(([^()]+)\)", init):
        predicate, *arguments = fact.split()
        facts.setdefault(predicate, []).append(arguments)
    names = number_names(re.findall(r"(\S+_bar_\S+) - (?:object|receptacle)\b", head))
    inside: dict[str, list[str]] = {names[o]: [] for o, _ in facts.get("objecttype", [])}
    for o, r in facts.get("inreceptacle", []):
        inside.setdefault(names[o], []).append(names[r])
    fits = {(place.removesuffix("type"), kind.removesuffix("type")) for place, kind in facts.get("cancontain", [])}
    types = {names[i]: kind.removesuffix("type") for key in ("objecttype", "receptacletype")
             for i, kind in facts.get(key, [])}  # fmt: skip

    def these(predicate: str) -> set[str]:
        return {names[arguments[0]] for arguments in facts.get(predicate, [])}

    return WorldState(
        task=parse_goal(goal),
        at=facts["atlocation"][0][1],
        held="",
        location={names[r]: place for r, place in facts["receptacleatlocation"]},
        closed=these("openable") - these("opened"),
        inside={o: tuple(sorted(places)) for o, places in inside.items()},
        marks={
            "clean": these("isclean"),
            "hot": these("ishot"),
            "cool": these("iscool"),
            "toggled": these("istoggled"),
        },
        able={key: these(key) for key in ("pickupable", "cleanable", "heatable", "coolable", "toggleable")},
        accepts=lambda receptacle, name: (types.get(receptacle), types.get(name)) in fits,
        types=types,
    )
