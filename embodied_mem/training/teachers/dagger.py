"""DAgger: a model's own episodes, labelled by the teacher in the states that the model's errors lead to.

    own = own_commands(games, executor, number=0, folder=...)
    own = own_episodes(games, compiler, executor, number=0, folder=...)

A compiler trained on the teacher's episodes alone hardly ever saw a Brief State with an error in it, so it does not
recover from its own errors. An executor repeats a refused command. The teacher's label is a function of Brief State,
observation and experiences, so every step of the models' own episodes can be labelled, lost ones included.

Source: the aggregation step of DAgger (Ross, Gordon, Bagnell 2011). The MemCompiler paper goes from SFT to GRPO.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem.agents.deliveries import Delivery, make_delivery
from embodied_mem.agents.rollout import Trajectory, play, row_keys
from embodied_mem.compiler.brief_state import apply_all
from embodied_mem.compiler.executor import Acts, Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.compiler.view import start_view
from embodied_mem.parallel.processes import is_first
from embodied_mem.progress import Progress
from embodied_mem.training.config import Config
from embodied_mem.training.teachers.episodes import (
    Act,
    Sample,
    input_formats,
    play_teacher,
    read_samples,
    sample_of,
    write_samples,
)
from embodied_mem.training.teachers.games import Games
from embodied_mem.training.teachers.lesson import Teacher


def relabel(trajectory: Trajectory, teacher: Teacher) -> list[Sample]:
    """Make a sample per step of an episode played by the compiler.

    It has the compiler's Brief State, the teacher's output and the teacher's command.

    Args:
        trajectory: of the delivery `compiled`; its records hold the edits that made the Brief States.
        teacher: a fresh one.
    """
    episode = trajectory.episode
    first = episode.steps[0].images if episode.steps else ()
    view = start_view(episode.goal, episode.first_observation, trajectory.experiences, images=first)
    view.pool = trajectory.pool
    lesson = teacher.begin(episode.goal, episode.first_observation, view.memories)
    samples = []
    for step, delivered, answered in zip(episode.steps, trajectory.delivered, [*episode.steps[1:], None]):
        samples.append(sample_of(view, lesson))
        if answered is None:
            break
        assert delivered.record is not None  # of the delivery `compiled`
        view.state, _ = apply_all(delivered.record.output.edits, view.state)
        view.turns.append((step.action, answered.observation))
        view.images = answered.images
        lesson = teacher.next(step.action, answered.observation, view.state)
    return samples


def own_episodes(
    games: Games, compiler: MemoryCompiler, executor: Acts, number: int, folder: pathlib.Path
) -> list[Sample]:
    """Play `config.correction.num_games` episodes by the compiler; return samples.

    A state that an episode came back to gives one sample: lost episodes go round in circles, and would be most of what
    is learned. They are stored in `folder`, a round whole or not at all, and read from there the next time.

    Args:
        games: of the run.
        compiler: the acting compiler.
        executor: the acting executor.
        number: of the round.
        folder: of the stage.
    """
    path = _path(folder, number)
    if path.exists():
        return read_samples(path)
    config, envs, bank = games.config, games.tasks.train, games.seen(number)
    drawn = _drawn((config.seed, 5), number, config.correction.num_games, games.tasks.num_train)
    over = 0
    with Progress("own episodes", len(drawn), unit="game", silent=not is_first()) as progress:

        def on_step(left: int, won: int) -> None:
            nonlocal over
            progress.update(len(drawn) - left - over, won=won / max(len(drawn) - left, 1))
            over = len(drawn) - left

        played = play(
            envs, executor, delivery_in_training(config, compiler), bank,
            tasks=drawn, seeds=[config.seed] * len(drawn), top_k=config.memory.top_k,
            shown=config.memory.shown, max_steps=config.correction.max_steps, on_step=on_step,
        )  # fmt: skip

    def labels(trajectory: Trajectory) -> list[Sample]:
        relabelled = relabel(trajectory, games.tasks.make_teacher(trajectory.task))
        return list({sample.compiler_prompt: sample for sample in relabelled}.values())

    samples = list(itertools.chain(*games.tasks.each(labels, played)))
    if is_first():
        write_samples(path, samples)
    return samples


def delivery_in_training(config: Config, compiler: MemoryCompiler) -> Delivery:
    """Return the delivery of a compiler's own episodes, as it was trained."""
    return make_delivery("compiled_no_brief" if config.data.no_brief == 1 else "compiled", compiler)


def own_commands(games: Games, executor: Executor, number: int, folder: pathlib.Path) -> list[Sample]:
    """Play `config.executor_correction.num_games` episodes by the executor; return samples.

    An episode has one format, drawn as in its training; guidance is the teacher's, without soft tokens.

    Args: see `own_episodes`.
    """
    path = _path(folder, number)
    if path.exists():
        return read_samples(path)
    config, correction = games.config, games.config.executor_correction
    drawn = _drawn((config.seed, 8), number, correction.num_games, games.tasks.num_train)
    names, shares = input_formats(config.data.without_memory)
    formats: list[str] = np.random.default_rng((config.seed, 9, number)).choice(names, len(drawn), p=shares).tolist()
    player = _Player(executor, dict(zip(drawn, formats)), config)
    with Progress("own commands", len(drawn), unit="game", silent=not is_first()) as progress:
        played = play_teacher(
            games.tasks.train, drawn, games.seen(number), games.tasks.make_teacher, top_k=config.memory.top_k,
            detour=0, seed=config.seed, act=player.commands, max_steps=correction.max_steps,
            on_done=progress.update, plain=bool(config.data.banks), each=games.tasks.each,
            recall=games.recall(number), new_names=config.data.new_names,
        )  # fmt: skip
    # In a loop nothing changes but the list of earlier commands.
    samples = list({(s.view[0], s.view[1], s.view[2][-2:], s.compiler_prompt): s for s in played.samples}.values())
    if is_first():
        write_samples(path, samples)
    return samples


def acts_on_guidance(executor: Acts, config: Config) -> Act:
    """Let an executor act on a teacher's guidance, given as text."""
    return _Player(executor, collections.defaultdict(lambda: "compiled_text"), config).commands


@dataclasses.dataclass(frozen=True)
class _Player:
    """An executor that acts in the teacher's place; `formats` are by task, of `input_formats`."""

    executor: Acts
    formats: Mapping[int, str]
    config: Config

    def commands(self, tasks: Sequence[int], samples: Sequence[Sample]) -> Sequence[str]:
        """Return the commands as `play_teacher` asks for them."""
        prompts = [
            sample.executor_text(
                memory=self.formats[task] == "static",
                hint=sample.hint if self.formats[task].startswith("compiled") else "",
                shown=self.config.memory.shown,
            )
            for task, sample in zip(tasks, samples)
        ]
        keys = row_keys([self.config.seed] * len(tasks), tasks)
        shown = [sample.images for sample in samples]
        more: dict[str, Any] = {"pictures": shown} if any(shown) else {}
        return self.executor.act(prompts, keys, **more).actions


def _drawn(key: tuple[int, ...], number: int, count: int, num_tasks: int) -> list[int]:
    """Return a round's `count` tasks, the next of a cycled permutation."""
    count = min(count, num_tasks)
    order = np.random.default_rng(key).permutation(num_tasks)
    taken: list[int] = order.take(range(number * count, (number + 1) * count), mode="wrap").tolist()
    return taken


def _path(folder: pathlib.Path, number: int) -> pathlib.Path:
    return folder / f"episodes_{number}.jsonl.gz"
