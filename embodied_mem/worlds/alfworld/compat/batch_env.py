"""The env that `AlfredTWEnv.init_env` returns: TextWorld's batch env in names, types and the order of games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.alfworld.compat.games import Shuffles, renumbered
from embodied_mem.worlds.alfworld.engine import Game
from embodied_mem.worlds.alfworld.env import AlfworldVectorEnv
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan

EXPERTS = ("handcoded", "planner")
_MAX_REFUSALS = 50

Texts = tuple[str, ...]
Infos = dict[str, list[Any]]


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
        numbering: deals the numbers of things anew at each start (`games.renumbered`); None leaves them.

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
        """Shuffle the pool anew and start with its first game; the same seed, the original's order.

        With a seed per game, int[B], each has an order of its own, as in an env of one game.
        """
        if isinstance(seed, Sequence):
            self._orders = [_passes(len(self.gamefiles), np.random.RandomState(own)) for own in seed]
            return list(seed)
        self._orders = [_passes(len(self.gamefiles), np.random.RandomState(seed))] * self.batch_size
        return [seed]

    def skip(self, nb_games: int = 1) -> None:
        """Leave out the next games of the pool."""
        for _ in range(nb_games):
            next(self._orders[0])

    def reset(self) -> tuple[Texts, Infos]:
        """Start the next games and return `(observations, infos)`."""
        games = [next(order) for order in self._orders]
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
        """Return what the expert does next: one admissible command, or the planner's whole plan."""
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

    def load(self, task_index: int) -> Game:
        """Return the game of one file."""
        if self._numbering is None:
            return super().load(task_index)
        return renumbered(str(self._tasks[task_index]), self._numbering)


def _passes(count: int, rng: np.random.RandomState) -> Iterator[int]:
    """Yield all of 0 to `count`, shuffled, then without end the same list shuffled further: TextWorld's order."""
    order = list(range(count))
    while True:
        rng.shuffle(order)
        yield from order


def _per_key(rows: Sequence[dict[str, Any]]) -> Infos:
    return {key: [row[key] for row in rows] for key in rows[0]}
