"""A model's own episodes, labelled by the teacher: what to write or do in the states that its own slips lead to.

    own = own_commands(config, executor, bank, envs, num_tasks, make_teacher, number=0, folder=...)
    own = own_episodes(config, compiler, executor, bank, envs, num_tasks, make_teacher, number=0, folder=...)

A compiler that has only read the teacher's episodes hardly saw a Brief State with a mistake in it, makes mistakes now
and then, and does not recover. An executor repeats a refused command for ever. What the teacher says is a function of
Brief State, observation and experiences, so every step of their own episodes can be labelled, lost ones included.

Source: the aggregation step of DAgger (Ross, Gordon, Bagnell 2011). The MemCompiler paper goes from SFT to GRPO.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.executor import Executor
from embodied_mem.agents.player import Trajectory, play, row_keys
from embodied_mem.agents.views import View, start_state
from embodied_mem.compiler.brief_state import apply_all
from embodied_mem.language.prompts import compact_room
from embodied_mem.memory import Experience, MemoryBank
from embodied_mem.parallel.processes import is_first
from embodied_mem.training.config import Config
from embodied_mem.training.progress import Progress
from embodied_mem.training.teacher import Teacher
from embodied_mem.training.teacher_data import EXECUTOR_FORMATS, Sample, play_teacher, sample_of


def relabel(trajectory: Trajectory, experiences: Sequence[Experience], teacher: Teacher) -> list[Sample]:
    """A sample per step of an episode that the compiler played: its Brief States, the teacher's outputs and commands.

    Args:
        trajectory: of the delivery `compiled`; its records hold the edits that made the Brief States.
        experiences: what was retrieved for it.
        teacher: a fresh one.
    """
    episode = trajectory.episode
    first = episode.first_observation
    room = compact_room(first.partition("Your task is to:")[0])
    view = View(episode.goal, room, experiences, [], start_state(episode.goal, room))
    lesson = teacher.begin(episode.goal, first, experiences)
    samples = []
    for step, delivered, answered in zip(episode.steps, trajectory.delivered, [*episode.steps[1:], None]):
        samples.append(sample_of(view, lesson))
        if answered is None:
            break
        view.state, _ = apply_all(delivered.record.output.edits, view.state)
        view.turns.append((step.action, answered.observation))
        lesson = teacher.next(step.action, answered.observation, view.state)
    return samples


def own_episodes(
    config: Config,
    compiler,
    executor,
    bank: MemoryBank,
    envs,
    num_tasks: int,
    make_teacher: Callable[[], Teacher],
    number: int,
    folder: pathlib.Path,
) -> list[Sample]:
    """Samples of `config.correction.num_games` episodes that the compiler plays on training games, others each round.

    A state that an episode came back to gives one sample: lost episodes go round in circles, and would be most of what
    is learned. They are stored in `folder`, a round whole or not at all, and read from there the next time.

    Args:
        config: the run.
        compiler: the acting `MemoryCompiler`.
        executor: the acting `Executor`.
        bank: experiences.
        envs: training games.
        num_tasks: their number.
        make_teacher: a fresh teacher per episode.
        number: of the round.
        folder: of the stage.
    """
    path = _path(folder, number)
    if path.exists():
        return _read(path)
    drawn = _drawn((config.seed, 5), number, config.correction.num_games, num_tasks)
    samples: list[Sample] = []
    won: list[bool] = []
    with Progress("own episodes", len(drawn), unit="game", silent=not is_first()) as progress:
        for start in range(0, len(drawn), envs.num_envs):
            chunk = drawn[start : start + envs.num_envs]
            played = play(
                envs, executor, make_delivery("compiled", compiler), bank,
                tasks=chunk, seeds=[config.seed] * len(chunk), top_k=config.memory.top_k,
                full_turns=config.memory.full_turns, max_steps=config.correction.max_steps,
            )  # fmt: skip
            for trajectory in played:
                episode = trajectory.episode
                found = bank.retrieve(
                    episode.goal,
                    top_k=config.memory.top_k,
                    context=episode.first_observation,
                    exclude_task_ids=(episode.task_id,),
                )
                relabelled = relabel(trajectory, found, make_teacher())
                samples += {sample.compiler_prompt: sample for sample in relabelled}.values()
            won += [trajectory.won for trajectory in played]
            progress.update(len(chunk), won=float(np.mean(won)))
    _write(path, samples)
    return samples


def own_commands(
    config: Config,
    executor: Executor,
    bank: MemoryBank,
    envs,
    num_tasks: int,
    make_teacher: Callable[[], Teacher],
    number: int,
    folder: pathlib.Path,
) -> list[Sample]:
    """Samples of `config.executor_correction.num_games` episodes in which the executor acts, a format for each of them
    in the shares of its training; guidance is the teacher's, without soft tokens, which no compiler writes yet.

    Args: see `own_episodes`.
    """
    path = _path(folder, number)
    if path.exists():
        return _read(path)
    correction = config.executor_correction
    drawn = _drawn((config.seed, 8), number, correction.num_games, num_tasks)
    names, shares = zip(*EXECUTOR_FORMATS)
    formats = np.random.default_rng((config.seed, 9, number)).choice(names, len(drawn), p=shares)
    kinds = dict(zip(drawn.tolist(), formats))

    def act(tasks: Sequence[int], samples: Sequence[Sample]) -> list[str]:
        prompts = [
            sample.executor_text(
                memory=kinds[task] == "static",
                hint=kinds[task].startswith("compiled"),
                full_turns=config.memory.full_turns,
            )
            for task, sample in zip(tasks, samples)
        ]
        return executor.act(prompts, row_keys([config.seed] * len(tasks), tasks)).actions

    with Progress("own commands", len(drawn), unit="game", silent=not is_first()) as progress:
        played = play_teacher(
            envs, drawn.tolist(), bank, make_teacher, top_k=config.memory.top_k, detour=0, seed=config.seed, act=act,
            max_steps=correction.max_steps, on_done=progress.update,
        )  # fmt: skip
    # In a loop nothing changes but the list of earlier commands.
    samples = list({(s.view[0], s.view[1], s.view[2][-2:], s.compiler_prompt): s for s in played.samples}.values())
    _write(path, samples)
    return samples


def _drawn(key: tuple[int, ...], number: int, count: int, num_tasks: int) -> np.ndarray:
    """The `count` tasks of a round, all if there are fewer: the next ones of a permutation, again and again."""
    count = min(count, num_tasks)
    order = np.random.default_rng(key).permutation(num_tasks)
    return order.take(range(number * count, (number + 1) * count), mode="wrap")


def _path(folder: pathlib.Path, number: int) -> pathlib.Path:
    return folder / f"episodes_{number}.jsonl.gz"


def _write(path: pathlib.Path, samples: Sequence[Sample]) -> None:
    if not is_first():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    with gzip.open(temporary, "wt") as file:
        for sample in samples:
            file.write(json.dumps(dataclasses.astuple(sample)) + "\n")
    os.replace(temporary, path)


def _read(path: pathlib.Path) -> list[Sample]:
    samples = []
    with gzip.open(path, "rt") as file:
        for line in file:
            values = json.loads(line)
            goal, room, turns = values[3]
            values[3] = (goal, room, tuple((action, answer) for action, answer in turns))
            samples.append(Sample(*values))
    return samples
