"""Makes EB-ALFRED's files from what their publishers give: `floorplans.json`, `splits.json`, `json_2.1.0/`.

    convert(Originals([Path("alfred"), Path("alfworld"), Path("EmbodiedBench")]), Path("data/eb_alfred"))

Read are, wherever they lie in the folders:

- EmbodiedBench's `splits.json`, and `utils.py` of `envs/eb_alfred` with its lists of names: parsed, never run;
- ALFRED's trials: EmbodiedBench's data set (`<task>/<trial>/pp/ann_<r>.json`) or ALFRED's own (`traj_data.json`);
- ALFWorld's games of the same trials (`game.tw-pddl`): their planning problems name every receptacle with its position;
- ALFRED's `FloorPlan<n>-layout.npy`: the reachable points; the package alfworld brings them, too;
- optional: AI2-THOR's metadata of floor plans (JSON with `sceneName` and `objects`), for faucets and other fixtures.

Where an object starts is in the problem of the very trial, else in the expert's plan, else voted by the nearest objects
in the problems of the same floor plan (`Neighbours`).
"""

from __future__ import annotations

import ast
import collections
import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embodied_mem.envs.data_files import Originals, read_object, write_json
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.progress import counted
from embodied_mem.worlds.eb_alfred.conversion.floor_plans import Facts, FloorPlan, Neighbours, trial_entry, type_of

MAX_TRIALS = 3000
"""Trials of one file, those of the subsets first: its reader takes no larger file."""

NAMES = {
    "find": "alfred_objs",
    "pick_up": "alfred_pick_obj",
    "open_close": "alfred_open_obj",
    "turn_on_off": "alfred_toggle_obj",
    "slice": "alfred_slice_obj",
    "receptacle_types": "alfred_recep",
}
"""Names of actions in `floorplans.json` -> the list of EmbodiedBench's `utils.py`."""

_NOT_HELD = frozenset({"Footstool"})
"""Said to be pickupable by the planner, fixed in EmbodiedBench."""

_FACT = re.compile(r"\((\w+)((?: [^()\s?]+)+)\)")
_WORDS = (("_bar_", "|"), ("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."))
_TRIAL_KEYS = ("task_id", "task_type", "pddl_params", "scene")


def convert(originals: Originals, target: Path) -> list[str]:
    """Write the derived files.

    Returns what was made and what these originals do not tell.

    Raises:
        DataNotFoundError: a needed original is not in the folders.
        GameFileError: one is malformed.
    """
    splits = read_object(originals.one("splits.json", "the subsets, in EmbodiedBench's repository", "eb_alfred"))
    names = action_names(originals.one("utils.py", "lists of names, in EmbodiedBench's repository", "eb_alfred"))
    trials = _trials(originals)
    wanted = list(dict.fromkeys(entry["task"] for entries in splits.values() for entry in entries))
    chosen = [*(key for key in wanted if key in trials), *(key for key in sorted(trials) if key not in set(wanted))]
    games = {path.parent.parent.name + "/" + path.parent.name: path for path in originals.files("game.tw-pddl")}
    if not trials or not games:
        what = "ann_<r>.json or traj_data.json of ALFRED's trials" if not trials else "game.tw-pddl of ALFWorld's games"
        raise DataNotFoundError(f"no {what} in {', '.join(map(str, originals.folders))}; see docs/worlds/eb_alfred.md")
    plan_numbers = {_floor_plan(key) for key in chosen}
    problems: dict[str, dict[str, Facts]] = collections.defaultdict(dict)
    for key, path in counted(sorted(games.items()), "ALFWorld's games", "game"):
        if _floor_plan(key) in plan_numbers:
            problems[_floor_plan(key)][key] = problem_facts(str(read_object(path).get("pddl_problem", "")), path)
    unknown = [key for key in chosen if _floor_plan(key) not in problems]
    chosen = [key for key in chosen if _floor_plan(key) in problems]
    left_out = chosen[MAX_TRIALS:]
    chosen = chosen[:MAX_TRIALS]
    metadata = _metadata(originals)
    annotations = {key: trials[key]() for key in counted(chosen, "ALFRED's trials", "trial")}

    file: dict[str, Any] = {"types": _types(problems, names, metadata), "action_names": names}
    file["can_contain"] = _can_contain(problems)
    file["floorplans"], file["trials"] = {}, {}
    assumed = without_layout = 0
    sources: collections.Counter[str] = collections.Counter()
    by_plan: dict[str, list[str]] = collections.defaultdict(list)
    for key in chosen:
        by_plan[_floor_plan(key)].append(key)
    plans = sorted(by_plan.items(), key=lambda item: (len(item[0]), item[0]))
    for plan, keys in counted(plans, "floor plans", "floor plan"):
        experts = [files[0][1] for files in (annotations[key] for key in keys)]
        layout = _layout(originals, plan)
        without_layout += layout is None
        builder = FloorPlan(problems[plan], experts, metadata.get(plan, ()), file["types"])
        assumed += builder.num_assumed
        file["floorplans"][plan] = builder.file(layout)
        neighbours = Neighbours(problems[plan])
        for key in keys:
            file["trials"][key] = trial_entry(annotations[key][0][1], problems[plan].get(key), builder, neighbours)
            sources.update(entry["src"] for entry in file["trials"][key]["objects"])
    file["trials"] = {key: file["trials"][key] for key in chosen}

    write_json(target / "floorplans.json", file)
    write_json(target / "splits.json", splits)
    for key in counted(chosen, "writing", "trial"):
        for name, value in annotations[key]:
            write_json(target / "json_2.1.0" / key / "pp" / name, value)
    total = max(1, sum(sources.values()))
    share = ", ".join(f"{100 * sources[name] / total:.0f} % {name}" for name in ("pddl", "plan", "inferred"))
    said = [
        f"{len(file['floorplans'])} floor plans and {len(chosen)} trials; where their objects start: {share} "
        "(the problem of the very trial, the expert's plan, the nearest objects of other trials)"
    ]
    absent = sorted(key for key in wanted if key not in set(chosen))
    if absent:
        said.append(
            f"{len(absent)} trials of the subsets are not in these folders, so a subset with them cannot be loaded: "
            f"{absent[0]}" + (" and others" if len(absent) > 1 else "")
        )
    if unknown:
        said.append(f"{len(unknown)} trials lie in floor plans of which no game of ALFWorld is here; left out")
    if left_out:
        said.append(f"{len(left_out)} trials beyond the first {MAX_TRIALS} are left out")
    if assumed:
        said.append(
            f"{assumed} basins have no faucet in these files, since problems name none and experts use few: one is "
            "assumed at each; AI2-THOR's metadata gives their places"
        )
    if without_layout:
        said.append(
            f"{without_layout} floor plans have no FloorPlan<n>-layout.npy here (ALFRED's gen/layouts, or the package "
            "alfworld): only points where the planner stands are reachable in them"
        )
    if not metadata:
        said.append("Not in these files: lamps without a switch, shower heads and curtains (AI2-THOR's metadata)")
    return said


def action_names(path: Path) -> dict[str, list[str]]:
    """Read the names behind the fixed actions off EmbodiedBench's `utils.py`.

    Nothing is run.

    Raises:
        GameFileError: a list is missing.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise GameFileError(f"{path}: cannot be read: {error}") from error
    lists: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List) and isinstance(node.targets[0], ast.Name):
            words = [part.value for part in node.value.elts if isinstance(part, ast.Constant)]
            lists[node.targets[0].id] = [word for word in words if isinstance(word, str)]
    missing = [name for name in NAMES.values() if name not in lists]
    if missing:
        raise GameFileError(f"{path}: expected the lists of EmbodiedBench's envs/eb_alfred/utils.py, no {missing[0]}")
    return {name: lists[theirs] for name, theirs in NAMES.items()}


def problem_facts(problem: str, path: Path) -> Facts:
    """{predicate: [arguments]} of a planning problem's start, ids in ALFRED's form (`Mug|+00.08|+00.73|-02.53`)."""
    for word, sign in _WORDS:
        problem = problem.replace(word, sign)
    start, end = problem.find("(:init"), problem.find("(:goal")
    if start < 0 or end < start:
        raise GameFileError(f"{path}: 'pddl_problem': expected (:init ...) and (:goal ...)")
    facts: dict[str, list[tuple[str, ...]]] = collections.defaultdict(list)
    for match in _FACT.finditer(problem, start, end):
        facts[match[1]].append(tuple(match[2].split()))
    return facts


def _floor_plan(key: str) -> str:
    return "FloorPlan" + key.partition("/")[0].rpartition("-")[2]


def _trials(originals: Originals) -> dict[str, Any]:
    """<task>/<trial> -> () -> [(file name, annotation)], read when asked."""
    found: dict[str, Any] = {}
    whole = {path.parent.parent.name + "/" + path.parent.name: path for path in originals.files("traj_data.json")}
    for key, path in whole.items():
        found[key] = lambda path=path: _split_annotations(read_object(path))
    parts: dict[str, list[Path]] = collections.defaultdict(list)
    for path in originals.files("ann_*.json"):
        parts[path.parents[2].name + "/" + path.parents[1].name].append(path)
    for key, paths in parts.items():
        found[key] = lambda paths=paths: [(path.name, read_object(path)) for path in paths]
    return found


def _split_annotations(trial: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return one file per annotation of ALFRED's own trial.

    They are as its preprocessing writes them, without pictures.
    """
    steps = [
        {"api_action": _api_action(step.get("api_action", {})), "high_idx": step.get("high_idx"),
         "discrete_action": {"action": step.get("discrete_action", {}).get("action", ""), "args": {}}}
        for step in trial["plan"]["low_actions"]
    ]  # fmt: skip
    kept = {key: trial[key] for key in _TRIAL_KEYS} | {
        "plan": {"high_pddl": trial["plan"]["high_pddl"], "low_actions": steps}
    }
    annotations = trial["turk_annotations"]["anns"]
    texts = [{key: note[key] for key in ("task_desc", "high_descs")} for note in annotations]
    empty = {"task_desc": "", "high_descs": []}
    return [
        (f"ann_{i}.json", kept | {"repeat_idx": i, "turk_annotations": {"anns": [
            text if k == i else empty for k, text in enumerate(texts)]}})
        for i in range(len(texts))
    ]  # fmt: skip


def _api_action(action: Mapping[str, Any]) -> dict[str, Any]:
    return {key: action[key] for key in ("action", "objectId", "receptacleObjectId") if key in action}


def _metadata(originals: Originals) -> dict[str, list[dict[str, Any]]]:
    """Read AI2-THOR's objects by floor plan.

    The JSON files are named after a floor plan.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for path in originals.files("FloorPlan*.json"):
        if re.fullmatch(r"FloorPlan\d+(_physics)?\.json", path.name):
            event = read_object(path)
            event = event.get("metadata", event)
            if not isinstance(event.get("objects"), list):
                raise GameFileError(f"{path}: 'objects': expected a list, as in AI2-THOR's event.metadata")
            found[path.stem.removesuffix("_physics")] = event["objects"]
    return found


def _types(
    problems: Mapping[str, Mapping[str, Facts]],
    names: Mapping[str, Sequence[str]],
    metadata: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, dict[str, bool]]:
    said: dict[str, set[str]] = collections.defaultdict(set)
    for facts in (facts for of_plan in problems.values() for facts in of_plan.values()):
        for predicate in ("pickupable", "heatable", "coolable", "cleanable", "isReceptacleObject"):
            said[predicate].update(type_of(thing) for (thing,) in facts.get(predicate, ()))
        said["object"].update(kind.removesuffix("Type") for _, kind in facts.get("objectType", ()))
        said["receptacle"].update(kind.removesuffix("Type") for _, kind in facts.get("receptacleType", ()))
    slices = {f"{kind}Sliced": kind for kind in names["slice"]}
    seen = {str(entry["objectType"]) for objects in metadata.values() for entry in objects}
    known = set().union(*said.values(), *(names[part] for part in NAMES), slices, seen) - _NOT_HELD
    for predicate in ("pickupable", "heatable", "coolable", "cleanable"):
        said[predicate] |= {piece for piece, kind in slices.items() if kind in said[predicate]}
    movable = said["isReceptacleObject"]
    return {
        kind: {
            "pickupable": kind in said["pickupable"] | set(names["pick_up"]),
            "receptacle": kind in said["receptacle"] | movable,
            "openable": kind in names["open_close"],
            "toggleable": kind in names["turn_on_off"],
            "sliceable": kind in names["slice"],
            "heatable": kind in said["heatable"],
            "coolable": kind in said["coolable"],
            "cleanable": kind in said["cleanable"],
            "movable_receptacle": kind in movable,
        }
        for kind in sorted(known)
    }


def _can_contain(problems: Mapping[str, Mapping[str, Facts]]) -> dict[str, list[str]]:
    table: dict[str, set[str]] = collections.defaultdict(set)
    for facts in (facts for of_plan in problems.values() for facts in of_plan.values()):
        for holder, kind in facts.get("canContain", ()):
            table[holder.removesuffix("Type")].add(kind.removesuffix("Type"))
    return {holder: sorted(table[holder]) for holder in sorted(table)}


def _layout(originals: Originals, plan: str) -> list[list[float]] | None:
    """Read the reachable points [x, z] of a floor plan.

    None where no layout is found.
    """
    paths = originals.files(f"{plan}-layout.npy")
    package = importlib.util.find_spec("alfworld")
    if not paths and package is not None and package.origin:
        paths = [
            path for path in [Path(package.origin).parent / "gen" / "layouts" / f"{plan}-layout.npy"] if path.is_file()
        ]
    if not paths:
        return None
    try:
        points = np.load(paths[0], allow_pickle=False)
    except (OSError, ValueError) as error:
        raise GameFileError(f"{paths[0]}: cannot be read: {error}") from error
    if points.ndim != 2 or points.shape[1] != 2:
        raise GameFileError(f"{paths[0]}: expected float[N, 2], got shape {points.shape}")
    return [[float(x), float(z)] for x, z in points]
