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
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from embodied_mem.envs.checks import checked_indices, checked_mask, checked_seed
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


class AlfworldVectorEnv(gymnasium.vector.VectorEnv):
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

    metadata = {"autoreset_mode": AutoresetMode.DISABLED, "render_modes": []}  # noqa: RUF012 (gymnasium's own name)

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
        if num_envs < 1:
            raise InvalidInputError(f"num_envs: expected >= 1, got {num_envs}")
        if max_steps is not None and max_steps < 1:
            raise InvalidInputError(f"max_steps: expected >= 1 or None, got {max_steps}")
        if num_threads is None:
            num_threads = max(1, min(os.cpu_count() or 1, num_envs // 64))
        if num_threads < 1:
            raise InvalidInputError(f"num_threads: expected >= 1 or None, got {num_threads}")
        self._tasks = _task_list(tasks)
        self._native = _native.VectorEnv(num_envs, max_steps or 0, num_threads, grammar)
        self.num_envs = num_envs
        self.max_steps = max_steps
        self.grammar = grammar
        text = gymnasium.spaces.Text(max_length=1 << 16)
        self.single_observation_space = self.single_action_space = text
        self.observation_space = self.action_space = gymnasium.spaces.Tuple([text] * num_envs)
        self._seed = checked_seed(seed)
        self._episodes = np.zeros(num_envs, dtype=np.int64)
        self._order: tuple[tuple[int, int], np.ndarray] | None = None
        self._cache: collections.OrderedDict[int, Game] = collections.OrderedDict()
        self._goals = [""] * num_envs
        self._task_ids = [""] * num_envs
        self._started = np.zeros(num_envs, dtype=bool)

    @property
    def num_tasks(self) -> int:
        """Number of tasks to draw from."""
        return len(self._tasks)

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
        if not 0 <= task_index < len(self._tasks):
            raise InvalidInputError(f"task index: expected 0 to {len(self._tasks) - 1}, got {task_index}")
        task = self._tasks[task_index]
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

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start episodes and return `(observations, info)` of all envs.

        Args:
            seed: a new seed; every env's episode count starts again at 0. None goes on with the present one.
            options: `reset_mask` bool[num_envs]: only these envs start anew, default all. `task_indices` int[num_envs]:
                the tasks they get (entries of other envs are not read), default the seeded order: env i's episode e
                plays task number `e * num_envs + i` of an endless row of shuffles of all tasks.

        Raises:
            InvalidInputError: an option is unknown or has another shape or range.
            GameFileError: a game file cannot be played; no env has changed then.
        """
        options = dict(options or {})
        mask = checked_mask(options.pop("reset_mask", None), self.num_envs)
        indices = options.pop("task_indices", None)
        if options:
            raise InvalidInputError(
                f"options: expected reset_mask and task_indices, got also {', '.join(map(str, options))}"
            )
        if not mask.all() and not (self._started | mask).all():
            missing = int(np.flatnonzero(~(self._started | mask))[0])
            raise InvalidInputError(f"reset_mask: env {missing} was never reset and is left out; reset all envs first")
        if indices is not None:
            indices = checked_indices(indices, mask, self.num_envs, len(self._tasks))
        new_seed = self._seed if seed is None else checked_seed(seed)
        episodes = self._episodes if seed is None else np.zeros_like(self._episodes)
        chosen = np.flatnonzero(mask)
        if indices is None:
            drawn = [self._draw(new_seed, int(i), int(episodes[i])) for i in chosen]
        else:
            drawn = [int(indices[i]) for i in chosen]
        games = [self.load(index) for index in drawn]
        self._native.reset(chosen.tolist(), games)
        self._seed = new_seed
        self._episodes = episodes + mask
        self._started |= mask
        for i, index, game in zip(chosen.tolist(), drawn, games):
            self._goals[i] = game.task
            self._task_ids[i] = self.task_id(index)
        return self.answers()

    def step(self, actions: Sequence[str]):
        """Play one command in every env and return `(observations, rewards, terminations, truncations, info)`.

        Args:
            actions: one command per env; any string at all.

        Raises:
            InvalidInputError: not one `str` per env, or `reset` was never called. No env has moved then.
        """
        observations, rewards, terminations, truncations, *rest = self._native.step(actions)
        return observations, rewards, terminations, truncations, self._info(*rest)

    def answers(self):
        """Return `(observations, info)` as they stand, e.g. after `restore`."""
        observations, _, _, _, *rest = self._native.answers()
        return observations, self._info(*rest)

    def snapshot(self, index: int) -> tuple:
        """Return env `index` as it stands; the handle stays valid whatever the env does afterwards."""
        index = self._checked_env(index)
        return self._native.snapshot(index), self._goals[index], self._task_ids[index]

    def restore(self, index: int, snapshot: tuple) -> None:
        """Put env `index` where `snapshot` (of any env with the same grammar) is, its game and step count included."""
        index = self._checked_env(index, started=False)
        state, goal, task_id = snapshot
        self._native.restore(index, state)
        self._goals[index], self._task_ids[index] = goal, task_id
        self._started[index] = True

    def env(self, index: int) -> Env:
        """Return a copy of one env, with its hidden state (`.state()`), to look ahead or to label data."""
        return self._native.snapshot(self._checked_env(index))

    def _info(self, won: np.ndarray, progress: np.ndarray, admissible: list[list[str]]) -> dict[str, Any]:
        return {
            "goal": self._goals.copy(),
            "task_id": self._task_ids.copy(),
            "admissible_commands": admissible,
            "won": won,
            "progress": progress,
        }

    def _checked_env(self, index: int, started: bool = True) -> int:
        index = operator.index(index)
        if not 0 <= index < self.num_envs:
            raise InvalidInputError(f"env index: expected 0 to {self.num_envs - 1}, got {index}")
        if started and not self._started[index]:
            raise InvalidInputError(f"env {index} was never reset; call reset() first")
        return index

    def _draw(self, seed: int, env: int, episode: int) -> int:
        """Return the task of one episode: its place in an endless row of shuffles, one shuffle per pass."""
        number, place = divmod(episode * self.num_envs + env, len(self._tasks))
        if self._order is None or self._order[0] != (seed, number):
            self._order = ((seed, number), np.random.default_rng([seed, number]).permutation(len(self._tasks)))
        return int(self._order[1][place])


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
    if not result:
        raise InvalidInputError("tasks: expected at least one game, got none")
    return result
