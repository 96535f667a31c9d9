"""The original package's classes, played by our engine: code that trains on ALFWorld changes one import.

    from embodied_mem.worlds.alfworld.compat import get_environment   # was: alfworld.agents.environment

    env = get_environment("AlfredTWEnv")(config, train_eval="train").init_env(batch_size=16)
    observations, infos = env.reset()
    observations, scores, dones, infos = env.step([commands[0] for commands in infos["admissible_commands"]])

`config` is the original's. docs/drop_in.md says what differs from it and how the two were compared.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import random
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from embodied_mem.envs.walked_folders import walk
from embodied_mem.errors import DataNotFoundError, GameFileError, InvalidInputError
from embodied_mem.worlds.alfworld.engine import Game
from embodied_mem.worlds.alfworld.env import GAME_FILE, AlfworldVectorEnv
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan
from embodied_mem.worlds.alfworld.wording.text import TASK_TYPES

_SPLITS = {
    "train": ("data_path", "num_train_games"),
    "eval_in_distribution": ("eval_id_data_path", "num_eval_games"),
    "eval_out_of_distribution": ("eval_ood_data_path", "num_eval_games"),
}
"""`train_eval` -> the fields of `dataset` that name its folder and how many of its games are played."""

_NUMBERED = (
    "pick_and_place_simple", "look_at_obj_in_light", "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep", "pick_cool_then_place_in_recep", "pick_two_obj_and_place",
)  # fmt: skip
"""The task types that `env.task_types` calls 1 to 6."""

assert set(_NUMBERED) == set(TASK_TYPES)

EXPERTS = ("handcoded", "planner")
_MAX_REFUSALS = 50

Texts = tuple[str, ...]
Infos = dict[str, list[Any]]

_SOLVABLE = re.compile(rb'"solvable"\s*:\s*true\b')
_ID = re.compile(r"(?<![\w.+-])[\w.+-]+_bar_[\w.+-]+")


def get_environment(env_type: str) -> type[AlfredTWEnv]:
    """Return the class of the original's name "AlfredTWEnv".

    Raises:
        InvalidInputError: another name; the original's other classes need a simulator of three dimensions.
    """
    if env_type != "AlfredTWEnv":
        raise InvalidInputError(
            f"env_type: expected 'AlfredTWEnv', got {env_type!r}; AlfredThorEnv and AlfredHybrid play in AI2-THOR and "
            "are in alfworld.agents.environment"
        )
    return AlfredTWEnv


class AlfredTWEnv:
    """The games that a config names, and the env that plays them.

    Args:
        config: the original's. Read are `dataset`: `data_path`, `eval_id_data_path`, `eval_ood_data_path`,
            `num_train_games`, `num_eval_games`; `env`: `task_types`, `domain_randomization`, `expert_type`;
            `general.training_method`, "dqn" or "dagger"; and its `training.max_nb_steps_per_episode`, below `rl` or
            `dagger`. Sentences of `goal_desc_human_anns_prob` are in the games or are not, as in the original.
        train_eval: "train", "eval_in_distribution" or "eval_out_of_distribution".

    Attributes:
        game_files: the files that are played, in the order in which the file system lists their folders; with
            `dataset.order: sorted`, a field of ours, in the order of their names, the same on every host.
        num_games: how many.

    Raises:
        InvalidInputError: a field is missing or out of range; its name is in the message.
        DataNotFoundError: the folder has no solvable game of these task types.
    """

    def __init__(self, config: dict[str, Any], train_eval: str = "train"):
        if not isinstance(train_eval, str) or train_eval not in _SPLITS:
            raise InvalidInputError(f"train_eval: expected one of {', '.join(_SPLITS)}, got {train_eval!r}")
        self.config, self.train_eval = config, train_eval
        self.collect_game_files()

    def collect_game_files(self, verbose: bool = False) -> None:
        """List the games anew, after the config was changed, say."""
        folder_field, count_field = _SPLITS[self.train_eval]
        folder_name = config_field(self.config, "dataset", folder_field)
        if not isinstance(folder_name, str | os.PathLike) or not os.fspath(folder_name):
            raise InvalidInputError(f"config: dataset.{folder_field}: expected a folder, got {folder_name!r}")
        folder = Path(os.path.expandvars(folder_name)).absolute()
        count = config_field(self.config, "dataset", count_field)
        if not isinstance(count, int):
            raise InvalidInputError(f"config: dataset.{count_field}: expected a whole number, got {count!r}")
        numbers = config_field(self.config, "env", "task_types")
        if isinstance(numbers, str) or not isinstance(numbers or (), Iterable):
            raise InvalidInputError(f"config: env.task_types: expected some of 1 to 6, got {numbers!r}")
        if not numbers:
            raise InvalidInputError("config: env.task_types: expected at least one of 1 to 6, got none")
        types = {_NUMBERED[number - 1] for number in numbers if number in range(1, 7)}
        games = solvable_games(folder, types)
        if not games:
            raise DataNotFoundError(
                f"config: dataset.{folder_field}: no solvable game of {', '.join(sorted(types)) or 'no known type'} "
                f"below {str(folder)!r}; `alfworld-download` fetches the games"
            )
        order = self.config["dataset"].get("order", "walk")
        if order not in ("walk", "sorted"):
            raise InvalidInputError(f"config: dataset.order: expected walk or sorted, got {order!r}")
        if order == "sorted":
            games.sort()
        self.game_files = games[:count] if count > 0 else games
        self.num_games = len(self.game_files)

    def init_env(self, batch_size: int, has_expert: bool = True) -> BatchEnv:
        """Return the env that plays `batch_size` games at a time.

        Args:
            batch_size: games at a time.
            has_expert: False for no expert under `dagger` either.

        Raises:
            InvalidInputError: the training method is unknown, the expert, or `batch_size` is out of range.
        """
        method = config_field(self.config, "general", "training_method")
        if method not in ("dqn", "dagger"):
            raise InvalidInputError(f"config: general.training_method: expected dqn or dagger, got {method!r}")
        above = "rl" if method == "dqn" else "dagger"
        is_training = self.train_eval == "train"
        shuffles = is_training and config_field(self.config, "env", "domain_randomization")
        has_expert = has_expert and is_training and method == "dagger"
        return BatchEnv(
            self.game_files,
            batch_size,
            config_field(self.config, above, "training", "max_nb_steps_per_episode"),
            expert_type=config_field(self.config, "env", "expert_type") if has_expert else None,
            numbering=PythonRandom() if shuffles else None,
        )


def config_field(config: dict[str, Any], *names: str) -> Any:
    """Return a field of a configuration; a missing one is refused."""
    value: Any = config
    for i, name in enumerate(names):
        try:
            value = value[name]
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"config: {'.'.join(names[: i + 1])} is missing") from error
    return value


class Shuffles(Protocol):
    """The interface of `random` and `random.Random`."""

    def shuffle(self, x: list[str], /) -> None: ...


class PythonRandom:
    """The generator of the module `random`, which cannot be pickled itself."""

    def shuffle(self, x: list[str], /) -> None:
        """Shuffle a list in place."""
        random.shuffle(x)


def solvable_games(folder: Path, task_types: Collection[str]) -> list[str]:
    """List a folder's playable files in the original's order.

    That is the order of `os.walk` from below, the file system's. The type of a task is that of `traj_data.json` beside
    the game; without that file, which the original asks for, that of the folder's name.
    """
    files = []
    for root, names in walk(folder):
        if GAME_FILE not in names or "movable" in root or "Sliced" in root:
            continue
        if "traj_data.json" in names:
            task_type = _read_again_if_changed(_task_type, os.path.join(root, "traj_data.json"))
        else:
            task_type = os.path.basename(os.path.dirname(root)).split("-")[0]
        path = os.path.join(root, GAME_FILE)
        if task_type in task_types and _read_again_if_changed(_is_solvable, path):
            files.append(path)
    return files


Read = TypeVar("Read")


def _read_again_if_changed(read: Callable[[bytes], Read], path: str) -> Read:
    status = os.stat(path)
    content: Read = _read(read, path, status.st_mtime_ns, status.st_size)
    return content


@functools.lru_cache(maxsize=1 << 16)
def _read(read: Callable[[bytes], Any], path: str, mtime_ns: int, size: int) -> Any:
    return read(Path(path).read_bytes())


def _task_type(content: bytes) -> str | None:
    task_type: str | None = json.loads(content).get("task_type")
    return task_type


def _is_solvable(content: bytes) -> bool:
    """Search a game file's raw text for "solvable", faster than parsing."""
    return any(content[found.start() - 1 : found.start()] != b"\\" for found in _SOLVABLE.finditer(content))


def renumbered(path: str, numbering: Shuffles) -> Game:
    """Return a game with new numbers for things of one name.

    What was "cup 1" may be "cup 3". The original shuffles these numbers alone; here things of one name are also
    listed in the order of their new numbers.

    Raises:
        GameFileError: the file is no game.
    """
    text = Path(path).read_bytes()
    Game.from_text(text, path)  # refuses what is no game, and says where
    data = json.loads(text)
    problem = data["pddl_problem"].lower()
    ids: dict[str, list[str]] = {}
    for name in sorted(set(_ID.findall(problem))):
        ids.setdefault(name.split("_bar_")[0] + "basin" * ("basin" in name), []).append(name)
    renamed: dict[str, str] = {}
    for before in ids.values():
        after = list(before)
        numbering.shuffle(after)
        renamed.update(zip(before, after))
    data["pddl_problem"] = _ID.sub(lambda found: renamed[found[0]], problem)
    try:
        return Game.from_text(json.dumps(data).encode(), path)
    except GameFileError as error:
        raise GameFileError(f"{error} (after its things were numbered anew)") from error


class BatchEnv:
    """Games played side by side, `batch_size` at a time; each `reset` starts the next ones of the pool.

    `infos` has, one entry per game: `won` (bool), `admissible_commands` (list[str]), `extra.gamefile` (the file; after
    a step None, as in the original), and with an expert `extra.expert_plan` (list[str]).

    Args:
        gamefiles: the pool, at least one.
        batch_size: games at a time, B, up to 65536.
        max_episode_steps: steps after which a game is done; 0 for no limit.
        expert_type: "handcoded", one command of an expert that knows what the texts told; "planner", a shortest plan
            from the hidden state; None for no expert.
        numbering: deals the numbers of things anew at each start (`renumbered`); None leaves them.

    Raises:
        InvalidInputError: an argument is out of range.
    """

    def __init__(
        self,
        gamefiles: Sequence[str],
        batch_size: int,
        max_episode_steps: int,
        *,
        expert_type: str | None = None,
        numbering: Shuffles | None = None,
    ):
        if expert_type is not None and expert_type not in EXPERTS:
            raise InvalidInputError(f"expert_type: expected one of {', '.join(EXPERTS)}, got {expert_type!r}")
        self.gamefiles, self.batch_size = gamefiles, batch_size
        self._envs = _Envs(gamefiles, batch_size, max_episode_steps or None, numbering)
        self._expert_type = expert_type
        self._experts = [ObservingExpert() for _ in range(batch_size)] if expert_type == "handcoded" else []
        self._last: list[tuple[str, int, bool, dict[str, Any]]] = []
        self.seed(1234)

    def seed(self, seed: int | Sequence[int] | None = None) -> list[int | None]:
        """Shuffle the pool in the original's order for this seed.

        With a seed per game, int[B], each has an order of its own, as in an env of one game.
        """
        if isinstance(seed, Sequence):
            orders = {own: Order(len(self.gamefiles), own) for own in set(seed)}
            self._turns = [_Turns(orders[own]) for own in seed]
            return list(seed)
        self._turns = [_Turns(Order(len(self.gamefiles), seed))] * self.batch_size
        return [seed]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": []}  # pickled, games under way end: the next ones start at `reset`

    def skip(self, nb_games: int = 1) -> None:
        """Leave out the next games of the pool."""
        for _ in range(nb_games):
            next(self._turns[0])

    def reset(self) -> tuple[Texts, Infos]:
        """Start the next games and return `(observations, infos)`."""
        games = [next(turns) for turns in self._turns]
        texts, info = self._envs.reset(options={"task_indices": games})
        self._last = []
        for i, (game, text) in enumerate(zip(games, texts)):
            if self._experts:
                self._experts[i].reset(info["goal"][i], text)
            self._last.append((text, 0, False, self._row(i, self.gamefiles[game], text, info)))
        return tuple(texts), _per_key([row for *_, row in self._last])

    def step(self, commands: Sequence[str]) -> tuple[Texts, tuple[int, ...], tuple[bool, ...], Infos]:
        """Play one command in each game and return `(observations, scores, dones, infos)`.

        Scores are 1 where the game is won, else 0. A game that is done stays as it is, whatever its command.

        Raises:
            InvalidInputError: not one `str` per game in a list or tuple, or `reset` was never called.
        """
        if not isinstance(commands, list | tuple):
            raise InvalidInputError(f"commands: expected a list, got {type(commands).__name__}")
        texts, _, terminated, truncated, info = self._envs.step(commands)
        for i, (_, _, was_done, _) in enumerate(self._last):
            if was_done:
                continue
            if self._experts:
                self._experts[i].observe(commands[i].strip(), texts[i])
            row = self._row(i, None, texts[i], info)
            self._last[i] = (texts[i], int(row["won"]), bool(terminated[i] or truncated[i]), row)
        observations, scores, dones, infos = zip(*self._last)
        return observations, scores, dones, _per_key(infos)

    def close(self) -> None:
        """Does nothing: no process runs."""

    def _row(self, index: int, gamefile: str | None, text: str, info: dict[str, Any]) -> dict[str, Any]:
        row = {
            "won": bool(info["won"][index]),
            "admissible_commands": info["admissible_commands"][index],
            "extra.gamefile": gamefile,
        }
        return {**row, "extra.expert_plan": self._advice(index, text, info)} if self._expert_type else row

    def _advice(self, index: int, text: str, info: dict[str, Any]) -> list[str]:
        """Return the expert's next admissible command or the planner's whole plan."""
        if not self._experts:
            return shortest_plan(WorldState.from_env(self._envs.env(index)))
        admissible = info["admissible_commands"][index]
        for _ in range(_MAX_REFUSALS):
            command = self._experts[index].act(text)
            if command in admissible:
                return [command]
            text = "Nothing happens."  # so the game would answer; the expert learns from it without a step
        return ["look"]


class _Envs(AlfworldVectorEnv):
    """ALFWorld's vector env, whose games may be numbered anew each time."""

    def __init__(self, files: Sequence[str], num_envs: int, max_steps: int | None, numbering: Shuffles | None):
        super().__init__(list(files), num_envs, max_steps=max_steps)
        self._numbering = numbering
        self.made_by = functools.partial(_Envs, files, num_envs, max_steps, numbering)

    def load(self, task_index: int) -> Game:
        """Return the game of one file."""
        if self._numbering is None:
            return super().load(task_index)
        return renumbered(str(self._tasks[task_index]), self._numbering)


class Order:
    """The endless row of games of a seed, TextWorld's: all of 0 to `count` shuffled, then the same list shuffled on."""

    def __init__(self, count: int, seed: int | None):
        if seed is not None and not 0 <= seed < 1 << 32:
            raise InvalidInputError(f"seed: expected 0 to {(1 << 32) - 1}, got {seed}")
        self._rng, self._newest = np.random.RandomState(seed), list(range(count))
        self._passes: list[np.ndarray] = []

    def __getitem__(self, place: int) -> int:
        number, place = divmod(place, len(self._newest))
        while len(self._passes) <= number:
            self._rng.shuffle(self._newest)
            self._passes.append(np.array(self._newest))
        return int(self._passes[number][place])


@dataclasses.dataclass
class _Turns:
    """A player's way along an order that others may share."""

    order: Order
    place: int = 0

    def __next__(self) -> int:
        self.place += 1
        return self.order[self.place - 1]


def _per_key(rows: Sequence[dict[str, Any]]) -> Infos:
    return {key: [row[key] for row in rows] for key in rows[0]}
