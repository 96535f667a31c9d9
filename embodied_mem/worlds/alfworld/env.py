"""ALFWorld, played by our own engine with the original's words: games, data folders, the vector env.

    envs = embodied_mem.envs.make("alfworld", tasks="valid_seen", num_envs=16, seed=0, max_steps=50)
    observations, info = envs.reset()
    snapshot = envs.snapshot(0)
    observations, rewards, terminations, truncations, info = envs.step([c[0] for c in info["admissible_commands"]])
    envs.restore(0, snapshot)

What is exact, and how that was checked, is in docs/worlds/alfworld.md.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path

from embodied_mem.envs.checks import checked_path, checked_text, listed_tasks
from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.envs.walked_folders import Rows, walk
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.worlds.alfworld.engine import Env as Env
from embodied_mem.worlds.alfworld.engine import Game, VectorEnv
from embodied_mem.worlds.alfworld.wording.text import TASK_TYPES as TASK_TYPES

SPLITS = ("train", "valid_seen", "valid_unseen", "valid_train")
GAME_FILE = "game.tw-pddl"
_MAX_CACHED_GAMES = 4096
_ROOTS = (("EMBODIED_MEM_DATA", "alfworld"), ("ALFWORLD_DATA", ""))
_TRIAL = re.compile(r"trial_T\w+")
_GAME_FILE = re.compile(r"(?<![^/])[^/]*\.(?:tw-pddl|z8|ulx|json|pddl)\Z")

Tasks = str | os.PathLike[str] | Sequence[str | os.PathLike[str] | Game]


def data_root() -> Path | None:
    """Return the installed folder of ALFWorld's splits, or None.

    Looked for: `$EMBODIED_MEM_DATA/alfworld`, `$ALFWORLD_DATA`, `~/.cache/alfworld` where that is not set, each also
    with `json_2.1.1` below it.
    """
    roots = [Path(os.environ[name]).absolute() / below for name, below in _ROOTS if os.environ.get(name)]
    if not os.environ.get("ALFWORLD_DATA"):  # where ALFWorld's own download puts them then
        roots.append(Path("~/.cache/alfworld").expanduser())
    candidates = [candidate for root in roots for candidate in (root / "json_2.1.1", root)]
    return next((c for c in candidates if any(os.path.isdir(c / split) for split in SPLITS)), None)


def find_games(tasks: str | os.PathLike[str]) -> list[Path]:
    """Return the sorted game files of a split or folder.

    Args:
        tasks: the name of an installed split (`train`, `valid_seen`, ...), a folder, or one game file.

    Raises:
        DataNotFoundError: no such split is installed, or the folder holds no game.
    """
    path = checked_path("tasks", tasks)
    if str(tasks) in SPLITS and not os.path.isdir(path):
        root = data_root()
        if root is None or not os.path.isdir(root / str(tasks)):
            raise DataNotFoundError(
                f"ALFWorld's split {str(tasks)!r} is not installed: expected the folder "
                f"json_2.1.1/{tasks} in $EMBODIED_MEM_DATA/alfworld, $ALFWORLD_DATA or ~/.cache/alfworld; "
                "ALFWorld's own `alfworld-download` fetches it, and generated games need no data at all"
            )
        path = root / str(tasks)
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        raise DataNotFoundError(
            f"tasks: expected one of {', '.join(SPLITS)}, a folder or a game file, got {str(tasks)!r}"
        )
    files = [*_sorted_games(path, walk(path))]
    if not files:
        raise DataNotFoundError(f"tasks: no game file (*.tw-pddl) in or below {str(path)!r}")
    return files


@functools.lru_cache(maxsize=16)
def _sorted_games(folder: Path, rows: Rows) -> tuple[Path, ...]:
    below = len(os.path.abspath(folder))
    return tuple(
        sorted(Path(f"{folder}{root[below:]}", name) for root, names in rows for name in names if _is_game(name))
    )


def _is_game(name: str) -> bool:
    return name.endswith(".tw-pddl")


def is_dev(file: Path) -> bool:
    """Decide whether a train game is in a held-out room, every tenth."""
    return file.parts[-3].rpartition("-")[2].endswith("7")


def split_files(split: str, valid: str) -> list[Path]:
    """List the games of a split, or of a folder.

    `dev` is the part of the train split in rooms held out to choose by; where it is `valid`, `train` is the rest.
    """
    files = find_games("train" if split == "dev" else split)
    if split == "dev" or (split == "train" and valid == "dev"):
        files = [file for file in files if is_dev(file) is (split == "dev")]
    return files


def task_id_of(path: str | os.PathLike[str]) -> str:
    """Return a game file's id: task and trial folders, else its stem."""
    path = Path(path)
    return "/".join(path.parts[-3:-1]) if path.name == GAME_FILE and len(path.parts) >= 3 else path.stem


def trial_key(task_id: str) -> str:
    """Return the key of a task id in any of its spellings.

    The trial's own name (`trial_T...`) if there is one, else the last two parts of the path without a game file's name.
    So `a/b/trial_T1/game.tw-pddl`, `b/trial_T1` and `trial_T1` are one task.
    """
    found = _TRIAL.search(task_id)
    if found:
        return found[0]
    path = _GAME_FILE.sub("", task_id.replace("\\", "/")).strip("/")
    return "/".join(path.split("/")[-2:])


class AlfworldVectorEnv(NativeVectorEnv):
    """ALFWorld games stepped together; autoreset is disabled, results do not depend on the number of threads.

    A finished env goes on answering as the original does until it is reset. Observations are the original's own text,
    the first one with its banner; `info` has `admissible_commands` (list[str] in the original's order), too. Rewards
    are the original's scores, `terminations` is `won`.

    `progress` is the share of the goal's conditions that hold, 1 exactly when won. Conditions per task type:
    place: an object of the type is in a receptacle of the type (0 or 1). Clean, heat, cool: of one object, the best
    one, it was treated, and it is in such a receptacle (0, 1/2, 1). Place two: objects in one such receptacle, the
    best one, at most two (0, 1/2, 1). Look: the object is held, and of one lamp, the best one, it is on, and the agent
    stands where it is (0, 1/3, 2/3, 1).
    """

    default_tasks = "valid_seen"
    extra_info = ("admissible_commands",)

    def __init__(
        self,
        tasks: Tasks,
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = 50,
        *,
        grammar: str = "0.4",
        num_threads: int | None = None,
    ):
        """Make the envs without loading games; arguments as for `NativeVectorEnv`.

        Args:
            tasks: a split, a folder of game files, one game file, or a sequence of game files and `Game` objects.
            grammar: ALFWorld's wording, "0.4" (`move X to Y`) or "0.3" (`put X in/on Y`).

        Raises:
            DataNotFoundError: the split is not installed.
            InvalidInputError: any other argument is out of range.
        """
        self.grammar = checked_text("grammar", grammar)
        super().__init__(VectorEnv, _task_list(tasks), num_envs, seed, max_steps, num_threads, grammar)

    def task_id(self, task_index: int) -> str:
        """Return the id of one task."""
        task = super().load(task_index)
        return task.name if isinstance(task, Game) else task_id_of(task)

    def load(self, task_index: int) -> Game:
        """Return a task's game from the process's cache of recent ones.

        Raises:
            InvalidInputError: no task has this index.
            GameFileError: its file cannot be played.
        """
        task = super().load(task_index)
        return task if isinstance(task, Game) else load_game(str(task))


def load_game(path: str) -> Game:
    """Return a file's game, loaded once per process and file change.

    Raises:
        GameFileError: the file cannot be played.
    """
    try:
        status = os.stat(path)
    except OSError:
        return Game.load(path)  # says what is wrong
    return _game_of(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=_MAX_CACHED_GAMES)
def _game_of(path: str, mtime_ns: int, size: int) -> Game:
    return Game.load(path)


def _task_list(tasks: Tasks) -> list[Path | Game]:
    if isinstance(tasks, str | os.PathLike):
        return [*find_games(tasks)]
    result: list[Path | Game] = []
    for i, task in enumerate(listed_tasks(tasks)):
        if isinstance(task, Game):
            result.append(task)
        elif isinstance(task, str | os.PathLike):
            result.append(checked_path(f"tasks[{i}]", task))
        else:
            raise InvalidInputError(f"tasks[{i}]: expected a path or a Game, got {type(task).__name__}")
    return result
