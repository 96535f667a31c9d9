"""Scoring with a progress bar: what the end of a training run and `evaluate.py` have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from embodied_mem.agents.player import Trajectory
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.score import EpisodeNumbers, Score, numbers_of, score_deliveries
from embodied_mem.memory import MemoryBank
from embodied_mem.models.decoder import Decoder
from embodied_mem.parallel.processes import is_first
from embodied_mem.training import stages
from embodied_mem.training.config import Config
from embodied_mem.training.progress import Progress
from embodied_mem.training.sft import CompilerModel
from experiments.configs import EVALUATIONS
from experiments.finished import Finished


def refuse_weights(weights: str, trained_on: str, expected: str) -> NoReturn:
    """Refuses models of another world, and says how they are scored.

    Raises:
        InvalidInputError: always.
    """
    how = f"--config={trained_on} --agents --deliveries none static compiled " if trained_on in EVALUATIONS else ""
    raise InvalidInputError(
        f"--weights: expected some trained on {expected}, got some trained on {trained_on}; score them with: "
        f"python experiments/evaluate.py {how}--weights {weights}"
    )


def cost_of(trajectory: Trajectory) -> list[float]:
    """[tokens of both models, milliseconds in them] of an episode; rows of a batch share its time."""
    numbers = numbers_of(trajectory)
    tokens = numbers.executor_tokens + numbers.compiler_tokens
    return [tokens, 1000 * (numbers.executor_s + numbers.compiler_s)]


def score(
    config: Config,
    envs,
    num_tasks: int,
    tokenizer,
    executor: Decoder,
    model: CompilerModel,
    bank: MemoryBank,
    *,
    deliveries: Sequence[str],
    seeds: Sequence[int],
    temperature: float,
    label: str = "evaluation",
    finished: Finished | None = None,
) -> dict[str, Score]:
    """The rows of the deliveries, each of which plays the first `num_tasks` tasks of `envs` once per seed.

    What is in `finished` is not played again, and what is played is kept there.
    """
    batch = config.evaluation.batch_size
    settings = {"temperature": temperature, "batch_buckets": (16, batch), "placement": stages.placement(config)}
    episodes = num_tasks * len(seeds) * len(deliveries)
    with Progress(label, episodes, unit="episode", silent=not is_first()) as progress:
        won: dict[str, list[bool]] = {}
        earlier = dict(finished.rows) if finished else {}

        def on_episode(name: str, seed: str, task: str, numbers: EpisodeNumbers) -> None:
            if finished and (name, seed, task) not in finished.rows:
                finished.add(name, seed, task, numbers)
            won.setdefault(name, []).append(numbers.won)
            progress.update(1, delivery=name, success=sum(won[name]) / len(won[name]))

        return score_deliveries(
            envs,
            stages.make_executor(config, executor, tokenizer, **settings),
            stages.make_compiler(config, model, tokenizer, **settings),
            bank,
            deliveries=deliveries, tasks=range(num_tasks), seeds=seeds,
            top_k=config.memory.top_k, full_turns=config.memory.full_turns, finished=earlier,
            on_episode=on_episode,
        )  # fmt: skip
