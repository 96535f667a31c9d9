"""ALFWorld, played by our own engine with the original's words: games, data folders, the vector env.

    envs = embodied_mem.envs.make("alfworld", tasks="valid_seen", num_envs=16, seed=0, max_steps=50)
    observations, info = envs.reset()
    snapshot = envs.snapshot(0)
    observations, rewards, terminations, truncations, info = envs.step([c[0] for c in info["admissible_commands"]])
    envs.restore(0, snapshot)

What is exact, and how that was checked, is in docs/envs.md.
"""

from __future__ import annotations

import collections
import os
from collections.abc import Sequence
from pathlib import Path

from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.native import part

_native = part("alfworld")
Game = _native.Game
Env = _native.Env

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""ALFWorld's six task types, in the order of its own numbers 1 to 6."""

SPLITS = ("train", "valid_seen", "valid_unseen", "valid_train")
GAME_FILE = "game.tw-pddl"
_MAX_CACHED_GAMES = 1024

Tasks = str | os.PathLike | Sequence[str | os.PathLike | Game]


def data_root() -> Path | None:
    """Return the installed folder that holds ALFWorld's splits, None when there is none.

    Looked for: `$EMBODIED_MEM_DATA/alfworld`, `$ALFWORLD_DATA`, each also with `json_2.1.1` below it.
    """
    roots = [Path(os.environ["EMBODIED_MEM_DATA"]) / "alfworld"] if os.environ.get("EMBODIED_MEM_DATA") else []
    roots += [Path(os.environ["ALFWORLD_DATA"])] if os.environ.get("ALFWORLD_DATA") else []
    for root in roots:
        for candidate in (root / "json_2.1.1", root):
            if any((candidate / split).is_dir() for split in SPLITS):
                return candidate
    return None


def find_games(tasks: str | os.PathLike) -> list[Path]:
    """Return the game files of a split or below a folder, sorted by path.

    Args:
        tasks: the name of an installed split (`train`, `valid_seen`, ...), a folder, or one game file.

    Raises:
        DataNotFoundError: no such split is installed, or the folder holds no game.
    """
    path = Path(tasks)
    if str(tasks) in SPLITS and not path.is_dir():
        root = data_root()
        if root is None or not (root / str(tasks)).is_dir():
            raise DataNotFoundError(
                f"ALFWorld's split {str(tasks)!r} is not installed: expected the folder "
                f"$EMBODIED_MEM_DATA/alfworld/json_2.1.1/{tasks} or $ALFWORLD_DATA/json_2.1.1/{tasks}; "
                "ALFWorld's own `alfworld-download` fetches it, and generated games need no data at all"
            )
        path = root / str(tasks)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataNotFoundError(
            f"tasks: expected one of {', '.join(SPLITS)}, a folder or a game file, got {str(tasks)!r}"
        )
    files = sorted(path.rglob("*.tw-pddl"))
    if not files:
        raise DataNotFoundError(f"tasks: no game file (*.tw-pddl) in or below {str(path)!r}")
    return files


def task_id_of(path: str | os.PathLike) -> str:
    """Return the id of a game file: its task and trial folders for official files, the file's stem for others."""
    path = Path(path)
    return "/".join(path.parts[-3:-1]) if path.name == GAME_FILE and len(path.parts) >= 3 else path.stem


class AlfworldVectorEnv(NativeVectorEnv):
    """ALFWorld games stepped together; autoreset is disabled, results do not depend on the number of threads.

    A finished env goes on answering as the original does until it is reset. `info` holds, each with one entry per env:
    `goal` (the task's sentence), `task_id`, `admissible_commands` (list[str] in the original's order), `won` (bool[B])
    and `progress` (float64[B], see below). Observations are the original's own text, the first one with its banner.

    Rewards are the original's scores: 1.0 after every step at which the goal holds, else 0.0. `terminations` is `won`;
    `truncations` is true where `max_steps` steps were taken and the goal does not hold.

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
        grammar: str = "0.4",
        num_threads: int | None = None,
    ):
        """Make the envs; no game is loaded before `reset`.

        Args:
            tasks: a split, a folder of game files, one game file, or a sequence of game files and `Game` objects.
            num_envs: number of games played side by side, B.
            seed: decides, with env and episode number, which task is drawn.
            max_steps: steps after which an episode is truncated; None for no limit.
            grammar: ALFWorld's wording, "0.4" (`move X to Y`) or "0.3" (`put X in/on Y`).
            num_threads: threads that step the games; None picks 1 per 64 envs, at most one per core.

        Raises:
            DataNotFoundError: the split is not installed.
            InvalidInputError: any other argument is out of range.
        """
        super().__init__(_native.VectorEnv, _task_list(tasks), num_envs, seed, max_steps, num_threads, grammar)
        self.grammar = grammar
        self._cache: collections.OrderedDict[int, Game] = collections.OrderedDict()

    def task_id(self, task_index: int) -> str:
        """Return the id of one task."""
        task = self._tasks[task_index]
        return task.name if isinstance(task, Game) else task_id_of(task)

    def load(self, task_index: int) -> Game:
        """Return the game of one task, loaded once and kept while it is among the last ones used.

        Raises:
            InvalidInputError: no task has this index.
            GameFileError: its file cannot be played.
        """
        task = super().load(task_index)
        if isinstance(task, Game):
            return task
        game = self._cache.get(task_index)
        if game is None:
            game = self._cache[task_index] = Game.load(str(task))
            if len(self._cache) > _MAX_CACHED_GAMES:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(task_index)
        return game


def _task_list(tasks: Tasks) -> list[Path | Game]:
    if isinstance(tasks, str | os.PathLike):
        return list(find_games(tasks))
    result = []
    for i, task in enumerate(tasks):
        if isinstance(task, Game):
            result.append(task)
        elif isinstance(task, str | os.PathLike):
            result.append(Path(task))
        else:
            raise InvalidInputError(f"tasks[{i}]: expected a path or a Game, got {type(task).__name__}")
    return result
