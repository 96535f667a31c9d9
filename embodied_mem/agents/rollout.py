"""Playing episodes: agents by text, or a batch of worlds in lockstep with an executor and a delivery of memory.

    played = rollout(envs, [agent], [[0, 3, 5]])                # one agent per env, with its tasks in order
    trajectories = play(envs, executor, delivery, bank, tasks=range(64), seeds=[0] * 64, top_k=6)
    sum(t.won for t in trajectories)

With deliveries, the next task takes the place of an episode that is over. What is random in an episode depends on its
task and seed only, not on its row or neighbours. `Lockstep` is the batch, for whatever else decides on commands
(`training/teachers/episodes`).
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.deliveries import Delivered, Delivery
from embodied_mem.compiler.prompts import SHOWN, Shown
from embodied_mem.compiler.view import View, executor_text, start_view
from embodied_mem.envs.checks import checked_finite
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.images import observation
from embodied_mem.memory import Experience
from embodied_mem.memory.pool import Pool
from embodied_mem.types import Episode, Observation, Step

if TYPE_CHECKING:
    import jax

    from embodied_mem.compiler.executor import Acts
    from embodied_mem.compiler.think_action import ThinkAction


DRAWN = -1
"""A task that the envs draw, by their own seed."""


class Envs(Protocol):
    """A vector env of `embodied_mem.envs`, or several as one."""

    @property
    def num_envs(self) -> int:
        """Episodes side by side."""
        ...

    @property
    def max_steps(self) -> int | None:
        """Limit of an episode; None for no limit."""
        ...

    def reset(self, *, options: dict[str, Any]) -> tuple[Sequence[str], Mapping[str, Any]]:
        """(observations, info) of the tasks in `options["task_indices"]`."""
        ...

    def step(
        self, actions: Sequence[str], /
    ) -> tuple[Sequence[str], Any, Sequence[bool] | np.ndarray, Sequence[bool] | np.ndarray, Mapping[str, Any]]:
        """(observations, rewards, terminations, truncations, info)."""
        ...


class Bank(Protocol):
    """Where experiences come from."""

    def retrieve(self, goal: str, k: int, context: str, exclude_task_ids: tuple[str, ...]) -> Sequence[Experience]: ...


@runtime_checkable
class HasPools(Protocol):
    """A bank whose tasks begin with the pool of a lifelong memory."""

    def pool(self, task_id: str) -> Pool | None:
        """Return the pool of a task; None for experiences alone."""
        ...


@dataclasses.dataclass(frozen=True)
class Played:
    """An episode that an agent played.

    Attributes:
        task: index of the task in the environments.
        row: env that it was played in.
        position: as its how many-th, from 0.
        won: whether the goal was reached.
        progress: of the last step.
        actions: the commands.
        answers: to each of them.
        seconds: that the agent thought.
        cut: whether the limit of steps ended it.
        info: of all envs at its last step.
        record: what the agent says of it, its attribute of that name; None where it has none.
    """

    task: int
    row: int
    position: int
    won: bool
    progress: float
    actions: tuple[str, ...]
    answers: tuple[str, ...]
    seconds: float
    cut: bool
    info: Mapping[str, Any]
    record: Any = None


def rollout(
    envs: Envs,
    agents: Sequence[Agent],
    tasks: Sequence[Sequence[int]],
    *,
    on_episode: Callable[[Played], None] | None = None,
    lists_actions: bool = False,
    idle: str = "look",
    parallel: int = 1,
) -> list[Played]:
    """Return the episodes in order of the task index; envs step together.

    An agent plays its tasks in sequence and keeps what it remembers; commands that the world would accept, its state
    and its progress are not told.

    Args:
        envs: a vector env with one env per agent.
        agents: that play.
        tasks: of each agent, in order; some may have fewer. `DRAWN` as all first ones leaves these to the envs.
        on_episode: called when an episode ends.
        lists_actions: agents get the world's `admissible_commands` at the start of a task; for worlds where that is a
            list of all actions that is part of the original's prompt. An agent with a true `reads_actions` gets those
            that are possible now at every step.
        idle: command of an env that is done while others go on.
        parallel: so many agents decide side by side, in threads.

    Raises:
        InvalidInputError: the numbers of envs, agents and lists of tasks differ.
    """
    count = envs.num_envs
    if not (len(agents) == len(tasks) == count):
        raise InvalidInputError(
            f"rollout: expected one agent and one list of tasks per env ({count}), got {len(agents)}, {len(tasks)}"
        )
    rows = [_Playing(i, agent, list(own)) for i, (agent, own) in enumerate(zip(agents, tasks))]
    reads = [getattr(agent, "reads_actions", False) for agent in agents]
    episodes: list[Played] = []
    first = True
    while any(row.left for row in rows):
        if any(row.starts for row in rows):
            # Before the first step every env needs a game, also one without a task.
            mask = np.array([first or row.starts for row in rows])
            options: dict[str, Any] = {"reset_mask": mask}
            if all(row.task != DRAWN for row in rows):
                options["task_indices"] = np.array([row.task for row in rows])
            observations, info = envs.reset(options=options)
            first = False
            for i, row in enumerate(rows):
                if row.starts:
                    told = {"task_id": info["task_id"][i]}
                    if lists_actions or reads[i]:
                        told["admissible_commands"] = info["admissible_commands"][i]
                    row.start(info["goal"][i], observations[i], told | _images(info, i))
        given = {row.index: command for row, command in _decisions([row for row in rows if row.left], parallel)}
        for row in rows:
            if row.left and row.index not in given:  # it has nothing more to do
                episodes.append(row.finish(info, False, on_episode))
        if not given:
            continue
        observations, _, ended, cut, info = envs.step([given.get(i, idle) for i in range(count)])
        for i in given:
            possible = {"admissible_commands": info["admissible_commands"][i]} if reads[i] else {}
            rows[i].answer(observations[i], possible | _images(info, i))
            if ended[i] or cut[i]:
                episodes.append(rows[i].finish(info, bool(cut[i] and not ended[i]), on_episode))
    return sorted(episodes, key=lambda episode: episode.task)


def _decisions(rows: Sequence[_Playing], parallel: int) -> list[tuple[_Playing, str]]:
    """Return the rows with a command, and the command."""
    if parallel == 1:
        commands = [row.decide() for row in rows]
    else:
        with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
            commands = list(pool.map(_Playing.decide, rows))
    return [(row, command) for row, command in zip(rows, commands) if command is not None]


def _images(info: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the camera images for an agent, empty without any."""
    image = info["images"][index] if "images" in info else None
    return {} if image is None else {"images": (image,)}


class _Playing:
    """One env of a rollout with its agent.

    Attributes:
        left: whether a task is being played or still to come.
        starts: whether the next one has to be started.
    """

    def __init__(self, index: int, agent: Agent, tasks: Sequence[int]):
        self.index, self._agent, self._tasks = index, agent, tasks
        self._position = 0
        self.left = self.starts = bool(tasks)

    @property
    def task(self) -> int:
        """Index of the task that is played; of any where there is none."""
        return int(self._tasks[min(self._position, len(self._tasks) - 1)]) if self._tasks else 0

    def start(self, goal: str, observation: str, told: Mapping[str, Any]) -> None:
        self._told, self._current = told, observation
        self._actions: list[str] = []
        self._answers: list[str] = []
        self._seconds = 0.0
        self.starts = False
        self._agent.reset(goal, observation, told)

    def decide(self) -> str | None:
        started = time.perf_counter()
        command = self._agent.act(self._current, self._told)
        self._seconds += time.perf_counter() - started
        if command is not None:
            self._actions.append(command)
        return command

    def answer(self, observation: str, told: Mapping[str, Any]) -> None:
        self._current, self._told = observation, told
        self._answers.append(observation)

    def finish(self, info: Mapping[str, Any], cut: bool, on_episode: Callable[[Played], None] | None) -> Played:
        """Return the episode that ended."""
        won, progress = _outcome(info, self.index)
        self._agent.end(won, self._current)
        played = Played(
            self.task, self.index, self._position, won, progress, tuple(self._actions), tuple(self._answers),
            self._seconds, cut, info, getattr(self._agent, "record", None),
        )  # fmt: skip
        self._position += 1
        self.left = self.starts = self._position < len(self._tasks)
        if on_episode is not None:
            on_episode(played)
        return played


@dataclasses.dataclass
class Row:
    """One episode of a `Lockstep`.

    Attributes:
        number: of the episode, from 0.
        index: of its env.
        task: index of the task in the environments.
        task_id: its name.
        view: what memory and models may look at.
        seen: the newest observation.
        progress: largest share of the goal's conditions that held.
        won: whether the goal was reached.
        steps: what was seen and done.
    """

    number: int
    index: int
    task: int
    task_id: str
    view: View
    seen: Observation
    progress: float
    won: bool = False
    steps: list[Step] = dataclasses.field(default_factory=list)

    @property
    def observation(self) -> str:
        """The newest, in words."""
        return self.seen.text

    @property
    def episode(self) -> Episode:
        """The observations and actions so far."""
        return Episode(self.task_id, self.view.goal, tuple(self.steps), self.won, *self.seen)


class Lockstep:
    """Episodes that step together, one per env; `refill` gives the envs of those that are over the next tasks.

    Args:
        envs: rows beyond `len(tasks)` stay idle.
        tasks: task indices; equal indices start from the same state.
        bank: experiences; those of the task being played are left out. A list holds a bank for each of `tasks`.
        top_k: experiences retrieved per episode.
        max_steps: end an episode earlier than the envs do.

    Attributes:
        rows: the episodes so far, in the order of `tasks`.
        running: those that go on.
        info: of all envs, the newest.
    """

    def __init__(
        self, envs: Envs, tasks: Sequence[int], bank: Bank | Sequence[Bank], top_k: int, max_steps: int | None = None
    ):
        self._envs, self._top_k, self._limit = envs, top_k, max_steps
        banks = bank if isinstance(bank, Sequence) else [bank] * len(tasks)
        self._waiting = collections.deque(zip(tasks, banks, strict=True))
        self.rows: list[Row] = []
        self.running: list[Row] = []
        self.refill()

    @property
    def num_left(self) -> int:
        """Episodes that are not over, those to come included."""
        return len(self.running) + len(self._waiting)

    def refill(self) -> list[Row]:
        """Begin the next tasks in the free envs, and return their episodes."""
        busy, count = {row.index for row in self.running}, self._envs.num_envs
        free = [i for i in range(count) if i not in busy][: len(self._waiting)]
        if not free:
            return []
        pairs = [self._waiting.popleft() for _ in free]
        indices = np.full(count, pairs[0][0])  # before the first step every env needs a task
        indices[free] = [task for task, _ in pairs]
        options = {"task_indices": indices} | ({"reset_mask": np.isin(range(count), free)} if self.rows else {})
        observations, self.info = self._envs.reset(options=options)
        new_rows = [self._begin(i, int(task), bank, observations[i]) for i, (task, bank) in zip(free, pairs)]
        self.running = [*self.running, *new_rows]
        return new_rows

    def _begin(self, i: int, task: int, bank: Bank, text: str) -> Row:
        goal, task_id = self.info["goal"][i], self.info["task_id"][i]
        experiences = bank.retrieve(goal, k=self._top_k, context=text, exclude_task_ids=(task_id,))
        seen = observation(text, self.info, i)
        view = start_view(goal, text, experiences, task_id, seen.images)
        view.pool = bank.pool(task_id) if isinstance(bank, HasPools) else None
        self.rows.append(Row(len(self.rows), i, task, task_id, view, seen, float(self.info["progress"][i])))
        return self.rows[-1]

    def step(self, actions: Sequence[str]) -> None:
        """Gives the running rows their commands."""
        given = ["look"] * self._envs.num_envs
        for row, action in zip(self.running, actions, strict=True):
            given[row.index] = action
        observations, _, terminations, truncations, self.info = self._envs.step(given)
        for row, action in zip(self.running, actions):
            i = row.index
            row.steps.append(Step(row.observation, action, row.seen.images))
            row.seen = observation(observations[i], self.info, i)
            row.view.turns.append((action, row.observation))
            row.view.images = row.seen.images
            row.won, progress = _outcome(self.info, i)
            row.progress = max(row.progress, progress)
        over = np.asarray(terminations) | np.asarray(truncations)
        self.running = [row for row in self.running if not (over[row.index] or len(row.steps) == self._limit)]


def _outcome(info: Mapping[str, Any], index: int) -> tuple[bool, float]:
    """Return whether an env was won, and its progress.

    Raises InvalidInputError for NaN and infinity.
    """
    won, progress = (checked_finite(f"info[{name!r}][{index}]", info[name][index]) for name in ("won", "progress"))
    return bool(won), progress


@dataclasses.dataclass
class Trajectory:
    """One played episode with what it cost.

    Attributes:
        task: index of the task in the environments.
        seed: of the episode.
        episode: what was seen and done.
        progress: largest share of the goal's conditions that held.
        delivered: what memory gave at each step.
        executor_tokens: (in, out) per step.
        compile_s: wall time of the delivery per step, its batch's time shared evenly.
        execute_s: likewise of the executor.
        prefill_s: of `execute_s`, in which prompts were read; without compiling, which `execute_s` holds, too.
        decode_s: likewise, in which commands were written.
        experiences: what was retrieved.
        pool: of a lifelong memory, as in `View`.
    """

    task: int
    seed: int
    episode: Episode
    progress: float
    delivered: list[Delivered]
    executor_tokens: list[tuple[int, int]]
    compile_s: float
    execute_s: float
    prefill_s: float = 0.0
    decode_s: float = 0.0
    experiences: Sequence[Experience] = ()
    pool: Pool | None = None

    @property
    def won(self) -> bool:
        """True if the goal was reached."""
        return self.episode.won


def row_keys(seeds: Sequence[int] | np.ndarray, tasks: Sequence[int]) -> jax.Array:
    """PRNG keys [B], each from its row's seed, modulo 2^32, and task."""
    import jax

    pairs = np.stack([np.asarray(seeds, np.uint32), np.asarray(tasks, np.uint32)], 1)
    return jax.vmap(lambda pair: jax.random.fold_in(jax.random.key(pair[0]), pair[1]))(pairs)


@functools.cache
def _fold_in() -> Callable[[jax.Array, Sequence[int] | np.ndarray], jax.Array]:
    """(keys [B], numbers [B]) -> keys [B]; compiled once."""
    import jax

    return jax.jit(jax.vmap(jax.random.fold_in))


def _admissible(info: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    if "admissible_commands" not in info:
        raise InvalidInputError("executor: expected a world that lists its admissible commands, got one that does not")
    commands: Sequence[Sequence[str]] = info["admissible_commands"]
    return commands


def play(
    envs: Envs,
    executor: Acts,
    delivery: Delivery,
    bank: Bank | Sequence[Bank],
    *,
    tasks: Sequence[int],
    seeds: Sequence[int] | np.ndarray,
    top_k: int,
    shown: Shown = SHOWN,
    max_steps: int | None = None,
    on_step: Callable[[int, int], None] | None = None,
    constrained: bool = False,
    scheme: ThinkAction | None = None,
) -> list[Trajectory]:
    """Play an episode per task and return them in order.

    `envs.num_envs` are played at a time.

    Args:
        envs, bank, tasks, top_k, max_steps: see `Lockstep`.
        executor: acts.
        delivery: gives memory; `begin` is called whenever episodes begin, with these.
        seeds: per row, for sampling.
        shown: as the executor was trained with.
        on_step: called after each step with (episodes that are not over, episodes won).
        constrained: the executor gives one of the world's `admissible_commands` and nothing else.
        scheme: writes the executor's prompts in place of `executor_text`; lists the world's commands.

    Raises:
        InvalidInputError: `constrained` or `scheme`, and the world does not list them.
    """
    game, width = Lockstep(envs, tasks, bank, top_k, max_steps), min(len(tasks), envs.num_envs)
    delivery.begin([row.view for row in game.rows])
    given: list[list[Delivered]] = [[] for _ in tasks]
    used: list[list[tuple[int, int]]] = [[] for _ in tasks]
    compile_s, execute_s, prefill_s, decode_s = np.zeros((4, len(tasks)))
    keys, fold_in = row_keys(seeds, tasks), _fold_in()
    while game.running:
        rows, numbers = [row.index for row in game.running], [row.number for row in game.running]
        views = [row.view for row in game.running]
        # Always `width` keys, those of the running rows first: arrays of one shape are compiled once.
        episodes = np.asarray([*numbers, *numbers[:1] * (width - len(rows))])
        step_keys = fold_in(keys[episodes], np.asarray([len(game.rows[number].steps) for number in episodes]))
        started = time.perf_counter()
        delivered = delivery.deliver(views, step_keys)
        compiled = time.perf_counter()
        prompts = [
            executor_text(
                view.goal, view.room, view.turns, shown,
                memory=d.memory, hint=d.hint, num_soft=0 if d.soft is None else len(d.soft),
            )
            if scheme is None
            else scheme.prompt(
                view.first, view.turns, _admissible(game.info)[row], "\n".join(filter(None, (d.memory, d.hint)))
            )
            for row, view, d in zip(rows, views, delivered)
        ]  # fmt: skip
        soft, more = [d.soft for d in delivered], dict[str, Any]()
        if constrained:
            more["choices"] = [_admissible(game.info)[row] for row in rows]
        if any(view.images for view in views):
            more["pictures"] = [view.images for view in views]
        turn = executor.act(prompts, fold_in(step_keys, np.ones(width, int)), soft, **more)
        done = time.perf_counter()
        game.step(turn.actions)
        for position, number in enumerate(numbers):
            given[number].append(delivered[position])
            used[number].append((turn.tokens_in[position], turn.tokens_out[position]))
        compile_s[numbers] += (compiled - started) / len(rows)
        execute_s[numbers] += (done - compiled) / len(rows)
        prefill_s[numbers] += turn.prefill_s / len(rows)
        decode_s[numbers] += turn.decode_s / len(rows)
        if on_step:
            on_step(game.num_left, sum(row.won for row in game.rows))
        if new_rows := game.refill():
            delivery.begin([row.view for row in new_rows])
    return [
        Trajectory(
            row.task, int(seeds[i]), row.episode, row.progress,
            given[i], used[i], float(compile_s[i]), float(execute_s[i]), float(prefill_s[i]), float(decode_s[i]),
            row.view.experiences, row.view.pool,
        )
        for i, row in enumerate(game.rows)
    ]  # fmt: skip
