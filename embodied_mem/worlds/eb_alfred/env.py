"""EB-ALFRED, EmbodiedBench's household tasks on ALFRED's trials, natively and without the 3-D engine.

    envs = embodied_mem.envs.make("eb_alfred", tasks="base", num_envs=16, seed=0)
    observations, info = envs.reset()
    observations, rewards, terminations, truncations, info = envs.step(["find a Fridge"] * 16)

What follows the original and what is decided here is in docs/worlds/eb_alfred.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embodied_mem.envs.checks import checked_count, checked_path, checked_tasks, checked_text
from embodied_mem.envs.data_files import installed, read_bytes, read_object, read_once
from embodied_mem.envs.simulators.env import EmbodiedBenchSimulator
from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.eb_alfred.engine import Catalog, Task, VectorEnv
from embodied_mem.worlds.eb_alfred.engine import Env as Env

SUBSETS = ("base", "common_sense", "long_horizon")
"""Evaluation subsets at hand; `train` is every annotation of the trials that no subset uses."""

MAX_STEPS = 30
"""Actions after which the original ends an episode."""

MAX_INVALID = 10
"""Invalid actions after which the original ends an episode."""

Tasks = str | Sequence[Task]


def data_root(data: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder with `floorplans.json`, `splits.json` and `json_2.1.0/`.

    Args:
        data: that folder; None takes `$EMBODIED_MEM_DATA/eb_alfred`.

    Raises:
        DataNotFoundError: there is no such folder, or it lacks one of them.
    """
    root = checked_path("data", data) if data is not None else installed("eb_alfred")
    if root is None or not os.path.isdir(root):
        raise DataNotFoundError(
            "EB-ALFRED is not installed: expected floorplans.json, splits.json and json_2.1.0/ in "
            f"{'$EMBODIED_MEM_DATA/eb_alfred' if root is None else root}; docs/worlds/eb_alfred.md says what they are"
        )
    missing = [root / name for name in ("floorplans.json", "splits.json", "json_2.1.0") if not (root / name).exists()]
    if missing:
        raise DataNotFoundError(
            f"EB-ALFRED is not complete: expected {missing[0]}; docs/worlds/eb_alfred.md says what it is"
        )
    return root


def load_catalog(root: str | os.PathLike[str]) -> Catalog:
    """Return the floor plans of a data folder.

    They are read once per change of the file.

    Raises:
        GameFileError: `floorplans.json` is malformed.
    """
    return _catalog(Path(root) / "floorplans.json")


def load_tasks(tasks: str, data: str | os.PathLike[str] | None = None) -> list[Task]:
    """Return the tasks of a subset in its order.

    Those of `train` are sorted by file.

    Args:
        tasks: one of `SUBSETS`, or `train`. Tasks with `satisfied_at_start` belong in no score.
        data: as for `data_root`.

    Raises:
        DataNotFoundError: the data, the subset or a trial is not installed.
        GameFileError: a file is malformed; the message names the file, the position and the reason.
    """
    root = data_root(data)
    catalog = load_catalog(root)
    splits = _read_splits(root / "splits.json")

    def read(trial: str, path: Path, name: str, instruction: str = "") -> Task:
        return Task.from_text(read_bytes(path), str(path), catalog, trial, name, instruction)

    if tasks == "train":
        used = {entry["task"] for entries in splits.values() for entry in entries}
        left = [trial for trial in catalog.trials if trial not in used]
        files = [(trial, sorted((root / "json_2.1.0" / trial / "pp").glob("ann_*.json"))) for trial in left]
        return [read(trial, path, f"{trial}/{path.stem}") for trial, paths in files for path in paths]
    if tasks not in splits:
        known = ", ".join((*SUBSETS, "train"))
        raise DataNotFoundError(f"tasks: expected one of {known} or a list of Task, got {str(tasks)!r}")
    return [
        read(e["task"], annotation_file(root, e["task"], e["repeat_idx"]), f"{tasks}/{i}", e["instruction"])
        for i, e in enumerate(splits[tasks])
    ]


def annotation_file(root: str | os.PathLike[str], trial: str, repeat_idx: int) -> Path:
    """Return the file of one annotation of a trial.

    It has its scene, goal, expert plan and sentence.
    """
    return Path(root) / "json_2.1.0" / trial / "pp" / f"ann_{repeat_idx}.json"


class EbAlfredVectorEnv(NativeVectorEnv):
    """EB-ALFRED's tasks stepped together; autoreset is disabled, results do not depend on the number of threads.

    Observations: first `Your task is to: <instruction>`, then the original's feedback line; after it, unless
    `shows_view` is off, `In view: ...` and `In hand: ...`, which stand for the image.

    An action is a line of the list of actions or its number. What is neither counts as an invalid action and costs no
    step. An episode ends (`terminations`) when the goal holds or after `max_invalid` invalid actions; it is cut
    (`truncations`) after `max_steps` steps. After its end an env changes nothing and repeats its last observation.

    `info` holds beside `goal`, `task_id`, `won`, `progress` (goal conditions met by their number, as of now):
    `admissible_commands` (a tuple, the whole list of actions, of which many are invalid at a given moment: so the
    original gives it to agents), `action_valid` (bool[B], of the last action), `num_invalid` (int64[B]).
    """

    default_tasks = "base"
    extra_info = ("admissible_commands", "action_valid", "num_invalid")

    def __init__(
        self,
        tasks: Tasks,
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = MAX_STEPS,
        *,
        data: str | os.PathLike[str] | None = None,
        reach: str = "group",
        instance: str = "found",
        needs_knife: bool = False,
        shows_view: bool = True,
        max_invalid: int = MAX_INVALID,
        ends_when_won: bool = True,
        num_threads: int | None = None,
    ):
        """Read the tasks and make the envs. Other arguments as for `NativeVectorEnv`.

        Args:
            tasks: `base`, `common_sense`, `long_horizon` or `train`, of which tasks that are satisfied at the start are
                left out; or `Task` objects, which are all played.
            data: folder as for `data_root`; None takes `$EMBODIED_MEM_DATA/eb_alfred`.
            reach: what is in view after a find. "group": what shares the standing pose; "geometry": what is within
                1.5 m and 45 degrees.
            instance: which one `pick up` and `slice` mean. "found": the one just found if it fits, else the nearest in
                view; "nearest": the original's rule by distance alone.
            needs_knife: whether `slice` needs a knife in the hand; the original asks for none.
            shows_view: whether the observation says what is in view and in the hand.
            max_invalid: invalid actions that end an episode, at most 60,000.
            ends_when_won: whether an episode ends when the goal holds, as in the original; if not, the agent has to
                stop by itself, and `won` is whether the goal holds now.

        Raises:
            DataNotFoundError: the data is not installed.
            GameFileError: a data file is malformed.
            InvalidInputError: any other argument is out of range.
        """
        loaded = checked_tasks(tasks, lambda name: load_tasks(name, data), Task)
        words = checked_text("reach", reach), checked_text("instance", instance)
        max_invalid = checked_count("max_invalid", max_invalid, 60_000)
        options = (*words, bool(needs_knife), bool(shows_view), max_invalid, bool(ends_when_won))
        super().__init__(VectorEnv, loaded, num_envs, seed, max_steps, num_threads, *options)


@read_once
def _catalog(path: Path) -> Catalog:
    return Catalog.from_text(read_bytes(path), str(path))


def _read_splits(path: Path) -> dict[str, list[dict[str, Any]]]:
    splits = read_object(path)
    kinds = {"task": str, "repeat_idx": int, "instruction": str}
    for subset, entries in splits.items():
        if not isinstance(entries, list):
            raise GameFileError(f"{path}: {subset}: expected a list, got {type(entries).__name__}")
        for i, entry in enumerate(entries):
            for key, kind in kinds.items():
                if not isinstance(entry, dict) or not isinstance(entry.get(key), kind):
                    raise GameFileError(f"{path}: {subset}[{i}]: expected '{key}' to be a {kind.__name__}")
            if not entry["instruction"] or ".." in entry["task"].split("/"):
                raise GameFileError(f"{path}: {subset}[{i}]: expected an instruction and a trial below json_2.1.0")
    return splits


class EbAlfredSimulator(EmbodiedBenchSimulator):
    """EmbodiedBench's EBAlfEnv: AI2-THOR."""

    program = Path(__file__).with_name("simulator_program.py")
    own_subset, default_resolution = "spatial", 500
    least_resolution = 300  # AI2-THOR's own

    def native_goals(self, name: str) -> Sequence[str]:
        """Return the instructions of `splits.json`."""
        try:
            splits = _read_splits(data_root() / "splits.json")
        except DataNotFoundError:
            return ()
        return [entry["instruction"] for entry in splits.get(name, ())]
