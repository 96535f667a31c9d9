"""Scoring deliveries: the same executor, bank, tasks and seeds for each, one row of numbers per delivery.

scores = score_deliveries(envs, executor, compiler, bank, deliveries=("none", "compiled"), tasks=tasks, seeds=(0, 1, 2))
scores["compiled"].success, scores["compiled"].interval
"""

from __future__ import annotations

import dataclasses
import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.rollout import Envs, Trajectory, play
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult
from embodied_mem.evaluation.controls import Setting, under
from embodied_mem.evaluation.intervals import paired_difference, success_row, wilson
from embodied_mem.evaluation.noaction import Withheld, withheld_in, withheld_of, withheld_row
from embodied_mem.evaluation.resume import Finished
from embodied_mem.memory import MemoryBank
from embodied_mem.memory.readers import DEFAULT
from embodied_mem.progress import Progress
from embodied_mem.registry import names

if TYPE_CHECKING:
    from embodied_mem.agents.deliveries import Delivery
    from embodied_mem.compiler.executor import Acts
    from embodied_mem.compiler.memory_compiler import MemoryCompiler
    from embodied_mem.compiler.prompts import Shown
    from embodied_mem.language.chat import ChatModel
    from embodied_mem.language.tokenizers import Tokenizer
    from embodied_mem.training.bundle import Bundle
    from embodied_mem.training.teachers.lesson import TaskSource, Teacher


def result_of(
    trajectory: Trajectory,
    name: str,
    seed: int,
    make_teacher: Callable[[], Teacher] | None = None,
    tokenizer: Tokenizer | None = None,
) -> EpisodeResult:
    """Make the result of an episode that was played with the delivery `name`.

    `more` counts per episode: `executor_in`, `executor_out` (tokens that the executor read and wrote), `prefill_ms`,
    `decode_ms` (of its time, without compiling), `compiler_tokens`, `compiler_ms`, `refused` (commands without effect),
    `calls` (of a memory method), `memory_tokens` (of memories in the executor's prompts), `outputs` (of the compiler),
    `well_formed` (of these), steps that are `guided`, `cited` (guidance names an experience as its source),
    `unsupported` (that experience does not say so), `made_up` (no experience of the episode does), and the counts of
    `noaction.Withheld`, for which see there `make_teacher` and `tokenizer`.
    """
    delivered, tokens = trajectory.delivered, trajectory.executor_tokens
    outputs = [d.record.output for d in delivered if d.record is not None]
    compiler_tokens = sum(d.tokens for d in delivered)
    more = {
        "executor_in": sum(read for read, _ in tokens),
        "executor_out": sum(written for _, written in tokens),
        "prefill_ms": round(1000 * trajectory.prefill_s, 3),
        "decode_ms": round(1000 * trajectory.decode_s, 3),
        "compiler_tokens": compiler_tokens,
        "compiler_ms": round(1000 * trajectory.compile_s, 3),
        "refused": sum(DEFAULT.read(answer).refused for answer in trajectory.episode.answers),
        "calls": sum(d.calls for d in delivered),
        "memory_tokens": _memory_tokens(delivered, tokenizer),
        "well_formed": sum(bool(output.well_formed) for output in outputs),
        "guided": sum(bool(d.hint or d.memory) for d in delivered),
        "cited": sum(d.supported is not None for d in delivered),
        "unsupported": sum(d.supported is False for d in delivered),
        "made_up": sum(d.made_up for d in delivered),
        **withheld_in(trajectory, make_teacher, tokenizer)._asdict(),
        "outputs": len(outputs),
    }
    return EpisodeResult(
        name, trajectory.episode.task_id, bool(trajectory.won), float(trajectory.progress), len(delivered), seed=seed,
        tokens=more["executor_in"] + more["executor_out"] + compiler_tokens,
        milliseconds=round(1000 * (trajectory.execute_s + trajectory.compile_s), 3), more=more,
    )  # fmt: skip


def _memory_tokens(delivered: Sequence[Delivered], tokenizer: Tokenizer | None) -> int:
    counts = Counter(d.memory for d in delivered if d.memory)
    return sum(steps * len(tokenizer.encode(text)) for text, steps in counts.items()) if tokenizer else 0


@dataclasses.dataclass(frozen=True)
class Score:
    """One delivery's row.

    Attributes:
        delivery: its name.
        episodes: seed by seed, the tasks of each seed in one order.
        num_seeds: that each task was played with.
        observed: see `agents.deliveries.MethodDelivery`; empty for other deliveries.
    """

    delivery: str
    episodes: Sequence[EpisodeResult]
    num_seeds: int
    observed: Sequence[Mapping[str, int]] = ()

    def table(self, name: str) -> np.ndarray:
        """Return float[tasks, seeds] of what is counted under a name."""
        return np.array([episode.count(name) for episode in self.episodes]).reshape(self.num_seeds, -1).T

    def per_step(self, name: str) -> float:
        """Return the mean per step of what is counted under a name."""
        return float(self.table(name).sum() / self.table("steps").sum())

    @property
    def won(self) -> np.ndarray:
        """Outcomes, bool[tasks, seeds]."""
        return self.table("won").astype(bool)

    @property
    def success(self) -> float:
        """Mean success."""
        return float(self.won.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the success, counted in tasks."""
        return wilson(self.success, len(self.won))

    def to_json(self, baseline: Score | None = None) -> dict[str, Any]:
        """Make the row as JSON data; with a baseline also the paired difference to it.

        Rates are per step, and times of a batch are shared by its rows. `parse_rate` is the share of compiler outputs
        that are well formed, 1 without a compiler.
        """
        per_step, outputs = self.per_step, self.table("outputs").sum()
        executor_in, executor_out = per_step("executor_in"), per_step("executor_out")
        compiler_ms = per_step("compiler_ms")
        row = success_row(self.won) | {
            "progress": float(self.table("progress").mean()),
            "steps": float(self.table("steps").mean()),
            "tokens_per_step": per_step("tokens"),
            "executor_tokens_per_step": executor_in + executor_out,
            "compiler_tokens_per_step": per_step("compiler_tokens"),
            "latency_ms_per_step": per_step("milliseconds"),
            "executor_ms_per_step": per_step("milliseconds") - compiler_ms,
            "executor_tokens_in_per_step": executor_in,
            "executor_tokens_out_per_step": executor_out,
            "executor_prefill_ms_per_step": per_step("prefill_ms"),
            "executor_decode_ms_per_step": per_step("decode_ms"),
            "compiler_ms_per_step": compiler_ms,
            "parse_rate": float(self.table("well_formed").sum() / outputs) if outputs else 1.0,
            "guided": per_step("guided"),
            "cited": per_step("cited"),
            "hallucinations_per_100_steps": 100 * per_step("unsupported"),
            "made_up_per_100_steps": 100 * per_step("made_up"),
            "refused": per_step("refused"),
            "memory_tokens_per_step": per_step("memory_tokens"),
            **withheld_row(withheld_of({name: self.table(name).sum() for name in Withheld._fields})),
        }
        if self.observed:
            row |= {"calls_per_step": per_step("calls"), "observed": [*self.observed]}
        if baseline is not None and baseline is not self:
            difference, low, high = paired_difference(self.won, baseline.won)
            row["difference_to_" + baseline.delivery] = difference
            row["difference_interval"] = [low, high]
        return row


def score_deliveries(
    envs: Envs,
    executor: Acts,
    compiler: MemoryCompiler | None,
    bank: MemoryBank,
    *,
    deliveries: Sequence[str | Setting],
    tasks: Sequence[int],
    seeds: Sequence[int],
    top_k: int,
    shown: Shown,
    finished: Mapping[tuple[str, str, str], EpisodeResult] = types.MappingProxyType({}),
    on_episode: Callable[[str, str, str, EpisodeResult], None] | None = None,
    numbered: bool = False,
    newest_first: bool = False,
    source: TaskSource | None = None,
    on_played: Callable[[str, Trajectory, MemoryCompiler | None], None] | None = None,
    chat: ChatModel | None = None,
    registered: Callable[[str, Any], Delivery] | None = None,
) -> dict[str, Score]:
    """Rows by name; every delivery plays every task once per seed.

    Batches are cut in the same way whatever is finished, so that a row does not depend on where a run was stopped.

    Args:
        finished: (delivery, seed, task) -> result of an earlier run; a batch of such episodes is not played.
        on_episode: called with name, seed, task and the result of each episode, finished ones included.
        numbered, newest_first: as the experiences were that the models were trained on.
        source: of the tasks, for the deliveries `teacher` and `guidance_only`, and to judge by when guidance is due.
        on_played: called with name and trajectory of each episode that is played, finished ones not included, and the
            compiler.
        chat: answers the calls of memory methods; None for rules.
        registered: see `make_delivery`.

    Raises:
        InvalidInputError: nothing there can carry out guidance, or gives the teacher's.
    """
    pairs = [(task, seed) for seed in seeds for task in tasks]
    teacher, tokenizer = source.teacher if source else None, compiler.tokenizer if compiler else None
    scores = {}
    for setting in (Setting(one) if isinstance(one, str) else one for one in deliveries):
        name = setting.name
        delivery, view, acting = under(
            setting, executor, compiler, bank, source=source, numbered=numbered, newest_first=newest_first,
            chat=chat, registered=registered,
        )  # fmt: skip
        rows: list[EpisodeResult] = []
        for first in range(0, len(pairs), envs.num_envs):
            part = pairs[first : first + envs.num_envs]
            keys = [(name, str(seed), str(task)) for task, seed in part]
            if all(key in finished for key in keys):
                batch = [finished[key] for key in keys]
            else:
                played = play(
                    envs, acting, delivery, view,
                    tasks=[t for t, _ in part], seeds=[s for _, s in part], top_k=top_k, shown=shown,
                    constrained=setting.decoding == "admissible" and setting.delivery != "guidance_only",
                )  # fmt: skip
                if on_played:
                    for trajectory in played:
                        on_played(name, trajectory, compiler)
                batch = [result_of(one, name, one.seed, teacher, tokenizer) for one in played]
            for key, numbers in zip(keys, batch):
                if on_episode:
                    on_episode(*key, numbers)
            rows += batch
        scores[name] = Score(name, rows, len(seeds), getattr(delivery, "observed", ()))
    return scores


def refuse_weights(weights: str, trained_on: str, expected: str) -> NoReturn:
    """Refuses models of another world, and says how they are scored.

    Raises:
        InvalidInputError: always.
    """
    how = (
        f"--config={trained_on} --agents --deliveries none static compiled " if trained_on in names("benchmark") else ""
    )
    raise InvalidInputError(
        f"--weights: expected some trained on {expected}, got some trained on {trained_on}; score them with: "
        f"python experiments/evaluate.py {how}--weights {weights}"
    )


def score(
    bundle: Bundle,
    envs: Envs,
    num_tasks: int,
    bank: MemoryBank,
    *,
    deliveries: Sequence[str | Setting],
    seeds: Sequence[int],
    temperature: float,
    label: str = "evaluation",
    finished: Finished[EpisodeResult] | None = None,
    batch_size: int = 0,
    executor: Acts | None = None,
    on_played: Callable[[str, Trajectory, MemoryCompiler | None], None] | None = None,
    chat: ChatModel | None = None,
    registered: Callable[[str, Any], Delivery] | None = None,
) -> dict[str, Score]:
    """Return the rows of the deliveries, each of which plays the first `num_tasks` tasks of `envs` once per seed.

    `executor` acts in place of the bundle's own. Models are compiled for batches of 16 and of the configuration's size,
    or of `batch_size` where one is given.

    What is in `finished` is not played again, and what is played is kept there. For `on_played`, `chat` and
    `registered` see `score_deliveries`.
    """
    from embodied_mem.parallel.processes import is_first
    from embodied_mem.training.tasks import sources_of

    config = bundle.config
    buckets = (batch_size,) if batch_size else (16, config.evaluation.batch_size)
    own, compiler = bundle.acting(temperature=temperature, batch_buckets=buckets)
    episodes = num_tasks * len(seeds) * len(deliveries)
    with Progress(label, episodes, unit="episode", silent=not is_first()) as progress:
        won: dict[str, list[bool]] = {}
        earlier = dict(finished.rows) if finished else {}

        def on_episode(name: str, seed: str, task: str, numbers: EpisodeResult) -> None:
            if finished and (name, seed, task) not in finished.rows:
                finished.add(name, seed, task, numbers)
            won.setdefault(name, []).append(numbers.won)
            progress.update(1, delivery=name, success=sum(won[name]) / len(won[name]))

        return score_deliveries(
            envs, executor or own, compiler, bank, deliveries=deliveries, tasks=range(num_tasks), seeds=seeds,
            top_k=config.memory.top_k, shown=config.memory.shown, finished=earlier, on_episode=on_episode,
            numbered=config.memory.numbered, newest_first=config.memory.newest_first,
            source=sources_of(config.world, config.seed)[0], on_played=on_played, chat=chat,
            registered=registered,
        )  # fmt: skip
