"""Deliveries of memory on EmbodiedBench's worlds, in ALFWorld's wording, by models in a folder of weights.

    play_deliveries("eb_habitat", Models("runs/.../weights"), left, tasks, seeds=(0, 1, 2), ...)

The memory bank holds what the rule teacher wins on the world's own training side, so experiences are those that models
trained there had. Other models, ALFWorld's for instance, can play, too: they have never seen the world then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embodied_mem.evaluation.benchmark import AgentNumbers
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.controls import Setting, under
from embodied_mem.memory import MemoryBank

if TYPE_CHECKING:
    from embodied_mem.agents.rollout import Trajectory
    from embodied_mem.compiler.memory_compiler import MemoryCompiler
    from embodied_mem.training.teachers.lesson import TaskSource

BATCH = 25
"""Tasks in lockstep, with all seeds of each."""


def source_of(world: str) -> TaskSource:
    """A world's tasks to be trained on and their teacher."""
    from embodied_mem.training.config import WorldConfig
    from embodied_mem.training.tasks import sources_of

    [source] = sources_of(WorldConfig(name=world, train="train", valid="held_out"), seed=0)
    return source


def bank_of(world: str, num_tasks: int = 0) -> MemoryBank:
    """The memory bank of the rule teacher's successes on the first `num_tasks` training tasks of a world; 0: all."""
    from embodied_mem.training import tasks
    from embodied_mem.training.tasks import TEACHER_STEPS

    source = source_of(world)
    training = [task for side in source.sides() for task in side][: num_tasks or None]
    envs = source.envs(training, num_envs=min(16, len(training)), max_steps=TEACHER_STEPS)
    return tasks.bank_of(envs, len(training), lambda task: source.teacher(), seed=0, task_key=source.task_key)


def play_deliveries(
    world: str,
    models: Models,
    left: Mapping[tuple[str, str], Sequence[int]],
    subsets: Mapping[str, Sequence[Any]],
    *,
    settings: Mapping[str, Setting],
    training_tasks: int,
    seeds: Sequence[int],
    temperature: float,
    on_episode: Callable[[str, str, Any, int, AgentNumbers], None],
    on_played: Callable[[str, Trajectory, MemoryCompiler | None], None] | None = None,
) -> None:
    """Plays tasks with each delivery, once per seed.

    What is random in an episode depends on seed and number of the task in its subset, so it does not matter which tasks
    are left.

    Args:
        world: one with a text adapter.
        models: that act and compile.
        left: (name of a row, subset) -> numbers of the tasks that it is to play.
        subsets: name -> tasks.
        settings: name of a row -> delivery and controls.
        training_tasks: that the memory bank is made of; 0 takes all.
        seeds: of the episodes.
        temperature: of compiler and executor; 0 is greedy, where seeds make no difference.
        on_episode: gets row, subset, task, seed, and the episode's numbers.
        on_played: gets row, trajectory and the compiler.

    Raises:
        InvalidInputError: models of ScienceWorld, which do not read this wording.
    """
    from embodied_mem.models.host import keep_freed_memory

    keep_freed_memory()
    from embodied_mem.agents.rollout import play
    from embodied_mem.evaluation.score import numbers_of, refuse_weights
    from embodied_mem.progress import Progress

    bundle = models.load()
    if bundle.config.world.name == "scienceworld":
        refuse_weights(models.folder, "scienceworld", f"{world} or ALFWorld")
    memory, bank, num_envs = bundle.config.memory, bank_of(world, training_tasks), BATCH * len(seeds)
    executor, compiler = bundle.acting(temperature=temperature, batch_buckets=(num_envs,))
    worlds = {subset: source_of(world).envs(tasks, num_envs=num_envs) for subset, tasks in subsets.items()}
    teacher, tokenizer = source_of(world).teacher, compiler.tokenizer if compiler else None
    for (name, subset), numbers in left.items():
        delivery, view, acting = under(
            settings[name], executor, compiler, bank, source=source_of(world),
            numbered=memory.numbered, newest_first=memory.newest_first,
        )  # fmt: skip
        with Progress(f"{name}: {subset}", len(numbers), unit="task") as progress:
            for first in range(0, len(numbers), BATCH):
                part = numbers[first : first + BATCH]
                pairs = [(number, seed) for number in part for seed in seeds]
                envs, wins = worlds[subset], 0
                played = play(
                    envs, acting, delivery, view,
                    tasks=[number for number, _ in pairs], seeds=[seed for _, seed in pairs],
                    top_k=memory.top_k, shown=memory.shown,
                )  # fmt: skip
                for (number, seed), (won, share, steps), trajectory in zip(pairs, envs.outcomes(), played):
                    one = numbers_of(trajectory, teacher, tokenizer)
                    row = AgentNumbers(int(won), share, steps, 0, 0, one.tokens, one.milliseconds, one.more)
                    on_episode(name, subset, subsets[subset][number], seed, row)
                    if on_played:
                        on_played(name, trajectory, compiler)
                    wins += won
                progress.update(len(part), won=wins / len(pairs))
