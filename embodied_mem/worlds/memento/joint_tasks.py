"""Joint tasks of MEMENTO: several single utilisation episodes of one house, asked for one after the other.

    record = joint_record([first, second], "10000")           # the official joint entries are made this way
    records = triples(load_records("single"), categories, per_scene=5)    # the 3-joint tasks of E.4.1

The parts' objects stand together in one house, their instructions and evaluation functions follow each other, and every
proposition of a part must be true before the first one of the next part.

Source: MEMENTO E.4.1 ("sequentially concatenated three personalised instructions"). The paper's 41 tasks are not
published; these are drawn anew, by seed.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.memento.data import related_ids

CONNECTORS = ("Then", "After that")
"""Words that join instructions. The official file has "Then" for pairs of object semantics, "After that" for mixed
pairs and "Additionally" for pairs of user patterns."""

FIRST_TRIPLE_ID = 20000
_TRIES = 400


def joint_record(
    parts: Sequence[Mapping[str, Any]], episode_id: str, connectors: Sequence[str] = CONNECTORS
) -> dict[str, Any]:
    """Return one entry that asks for all parts in order.

    Args:
        parts: entries of the single utilisation stage, of one scene and without common objects.
        episode_id: of the new entry.
        connectors: words between the parts, used in turn.

    Raises:
        InvalidInputError: fewer than two parts, several scenes, or an object in two parts.
    """
    scenes = {part["scene_id"] for part in parts}
    if len(parts) < 2 or len(scenes) != 1:
        raise InvalidInputError(f"parts: expected two or more of one scene, got {len(parts)} of {len(scenes)} scenes")
    handles = [handle for part in parts for handle in part["name_to_receptacle"]]
    if len(set(handles)) != len(handles):
        twice = next(handle for handle in handles if handles.count(handle) > 1)
        raise InvalidInputError(f"parts: expected different objects, got {twice!r} in two of them")
    record = copy.deepcopy(dict(parts[0]))
    record |= {"episode_id": str(episode_id), "instruction": _joined([p["instruction"] for p in parts], connectors)}
    record["rigid_objs"] = [copy.deepcopy(entry) for part in parts for entry in part["rigid_objs"]]
    record["name_to_receptacle"] = {h: place for part in parts for h, place in part["name_to_receptacle"].items()}
    record |= _evaluation(parts)
    record["original_data_info"] = {
        "episode_id": [str(part["episode_id"]) for part in parts],
        "instruction": [part["instruction"] for part in parts],
    }
    record["metadata"] = {
        "stage": "2",
        "episode_type": "combined",
        "subtype": [part["metadata"]["subtype"] for part in parts],
        "related_episode_id": [number for part in parts for number in related_ids(part)],
        "memory": [part["metadata"].get("memory", "") for part in parts],
    }
    return record


def _joined(instructions: Sequence[str], connectors: Sequence[str]) -> str:
    text = instructions[0].strip()
    for number, instruction in enumerate(instructions[1:]):
        instruction = instruction.strip()
        text += f" {connectors[number % len(connectors)]}, {instruction[0].lower()}{instruction[1:]}"
    return text


def _evaluation(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join all parts' propositions, dependencies and constraints, renumbered, with edges."""
    propositions: list[Any] = []
    dependencies: list[Any] = []
    edges: list[list[int]] = []
    between: list[list[int]] = []
    terminal: list[int] = []
    others: list[dict[str, Any]] = []
    before = range(0)
    for part in parts:
        start = len(propositions)
        propositions += copy.deepcopy(part["evaluation_propositions"])
        for dependency in part["evaluation_proposition_dependencies"]:
            dependencies.append(_renumbered(dependency, start, "proposition_indices", "depends_on"))
        named: set[int] = set()
        for constraint in part["evaluation_constraints"]:
            args = constraint["args"]
            if constraint["type"] == "TemporalConstraint":
                edges += [[start + a, start + b] for a, b in args["dag_edges"]]
            elif constraint["type"] == "TerminalSatisfactionConstraint":
                named |= {start + i for i in args["proposition_indices"]}
            elif "proposition_indices" in args:
                others.append({**constraint, "args": _renumbered(args, start, "proposition_indices")})
            else:
                raise InvalidInputError(
                    f"parts: episode {part['episode_id']}: expected constraints that name their propositions, got "
                    f"{constraint['type']} with {', '.join(args) or 'no arguments'}"
                )
        terminal += sorted(named)
        between += [[earlier, start] for earlier in before]
        before = range(start, len(propositions))
    temporal = {"dag_edges": edges + between, "n_propositions": len(propositions)}
    final = {"proposition_indices": terminal, "n_propositions": None}
    return {
        "evaluation_propositions": propositions,
        "evaluation_proposition_dependencies": dependencies,
        "evaluation_constraints": [
            {"type": "TemporalConstraint", "args": temporal},
            {"type": "TerminalSatisfactionConstraint", "args": final},
            *others,
        ],
    }


def _renumbered(entry: Mapping[str, Any], start: int, *keys: str) -> dict[str, Any]:
    return {**entry, **{key: [start + i for i in entry[key]] for key in keys}}


def unclear(parts: Sequence[Mapping[str, Any]], categories: Mapping[str, str]) -> bool:
    """Return whether another part makes a pattern's bare category ambiguous.

    Source: MEMENTO C.3.2 keeps only tasks whose targets are uniquely specified; 3 of the 24 official joint entries at
    hand are unclear in this sense.
    """
    found = [{_category(handle, categories) for handle in part["name_to_receptacle"]} for part in parts]
    for i, part in enumerate(parts):
        if part["metadata"]["episode_type"] == "user_pattern":
            wanted = {_category(handle, categories) for handle in _targets(part)}
            if any(wanted & kinds for k, kinds in enumerate(found) if k != i):
                return True
    return False


def _category(handle: str, categories: Mapping[str, str]) -> str:
    template = handle.rpartition("_:")[0]
    return categories.get(template, template)


def _targets(part: Mapping[str, Any]) -> set[str]:
    named = {
        handle
        for proposition in part["evaluation_propositions"]
        for key in ("object_handles", "entity_handles_a", "entity_handles_b")
        for handle in proposition["args"].get(key, [])
    }
    return named & set(part["name_to_receptacle"])


def triples(
    singles: Sequence[Mapping[str, Any]],
    categories: Mapping[str, str],
    per_scene: int = 5,
    seed: int = 0,
    num_parts: int = 3,
) -> list[dict[str, Any]]:
    """Make entries of three requests, `per_scene` of scenes with disjoint episodes.

    Args:
        singles: entries of the single utilisation stage.
        categories: category by object template; what would be `unclear` is not drawn.
        per_scene: at most so many per scene; no two have the same parts.
        seed: decides which.
        num_parts: of each entry.
    """
    by_scene: dict[str, list[Mapping[str, Any]]] = {}
    for record in singles:
        by_scene.setdefault(record["scene_id"], []).append(record)
    made: list[dict[str, Any]] = []
    for scene in sorted(by_scene):
        rng = random.Random(f"{seed}/{scene}")
        chosen: dict[frozenset[str], list[Mapping[str, Any]]] = {}
        for _ in range(_TRIES):
            if len(chosen) == per_scene or len(by_scene[scene]) < num_parts:
                break
            parts = rng.sample(by_scene[scene], num_parts)
            handles = [handle for part in parts for handle in part["name_to_receptacle"]]
            if len(set(handles)) == len(handles) and not unclear(parts, categories):
                chosen.setdefault(frozenset(str(part["episode_id"]) for part in parts), parts)
        made += [joint_record(parts, str(FIRST_TRIPLE_ID + len(made) + i)) for i, parts in enumerate(chosen.values())]
    return made
