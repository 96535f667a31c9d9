"""Scoring deliveries: the same executor, bank, tasks and seeds for each, one row of numbers per delivery.

scores = score_deliveries(envs, executor, compiler, bank, deliveries=("none", "compiled"), tasks=tasks, seeds=(0, 1, 2))
scores["compiled"].success, scores["compiled"].interval
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.rollout import Bank, Envs, Trajectory, play
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult
from embodied_mem.evaluation.controls import Setting, under
from embodied_mem.evaluation.intervals import paired_difference, success_row, wilson
from embodied_mem.memory import Experiences
from embodied_mem.memory.readers import DEFAULT
from embodied_mem.parallel.resume import Finished
from embodied_mem.progress import Progress
from embodied_mem.registry import names

if TYPE_CHECKING:
    from embodied_mem.agents.deliveries import Delivery
    from embodied_mem.compiler.executor import Acts
    from embodied_mem.compiler.memory_compiler import MemoryCompiler
    from embodied_mem.compiler.served_compiler import ServedCompiler
    from embodied_mem.compiler.think_action import ThinkAction
    from embodied_mem.language.chat import ChatModel
    from embodied_mem.language.tokenizers import Tokenizer
    from embodied_mem.training.bundle import Bundle
    from embodied_mem.training.config import Config, MemoryConfig
    from embodied_mem.training.teachers.lesson import TaskSource, Teacher

Row = TypeVar("Row", bound=Iterable[Any])
CHECKED_GAMES = 8
"""Training tasks that an executor plays before it is trained for."""
MIN_ACCEPTED = 0.5
"""Share of commands that have an effect, below which an executor without a win is refused."""
COUNTS = ("outputs", "withheld", "judged", "nothing_due", "rightly", "hint_tokens")
"""Counts of a compiler: its outputs; those without guidance; those beside which there is the teacher's; of these,
steps at which the teacher gives no guidance, and at which neither does; tokens of guidance and soft tokens in the
prompts."""


def result_of(
    trajectory: Trajectory,
    name: str,
    seed: int,
    make_teacher: Callable[[], Teacher] | None = None,
    tokenizer: Tokenizer | None = None,
) -> EpisodeResult:
    """Make the result of an episode played with the delivery `name`.

    `more` counts per episode: `executor_in`, `executor_out` (tokens that the executor read and wrote), `prefill_ms`,
    `decode_ms` (of its time, without compiling), `compiler_tokens`, `compiler_ms`, `refused` (commands without effect),
    `calls` (of a memory method), `memory_tokens` (of memories in the executor's prompts), `outputs` (of the compiler),
    `well_formed` (of these), steps that are `guided`, `cited` (guidance names an experience as its source),
    `unsupported` (that experience does not say so), `made_up` (no experience of the episode does), and the counts
    of `withheld_in`, for which see there `make_teacher` and `tokenizer`.
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
        **withheld_in(trajectory, make_teacher, tokenizer),
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


def withheld_in(
    trajectory: Trajectory, make_teacher: Callable[[], Teacher] | None = None, tokenizer: Tokenizer | None = None
) -> dict[str, int]:
    """Count `COUNTS` in an episode.

    Without a teacher none is judged, without a tokenizer only soft tokens count. Right is what the teacher does that
    the compiler learned from: it reads the same experiences, the same Brief State and the same observation, and says
    nothing where memory has nothing to add.
    """
    from embodied_mem.training.teachers.dagger import relabel

    delivered = trajectory.delivered
    guided = [bool(d.record.output.guidance) for d in delivered if d.record is not None]
    if not guided:
        return dict.fromkeys(COUNTS, 0)
    hint_tokens = sum(0 if d.soft is None else len(d.soft) for d in delivered)
    if tokenizer is not None:
        hint_tokens += sum(len(tokenizer.encode(f"\nhint: {d.hint}")) for d in delivered if d.hint)
    labels = relabel(trajectory, make_teacher()) if make_teacher else []
    nothing_due = [not label.hint for label in labels]
    rightly = sum(due and not given for due, given in zip(nothing_due, guided))
    counts = len(guided), guided.count(False), len(labels), sum(nothing_due), rightly, hint_tokens
    return dict(zip(COUNTS, counts))


def withheld_row(counts: Mapping[str, float]) -> dict[str, Any]:
    """Return the columns of a delivery's row, from its sums of `COUNTS`.

    `noaction` is the share of outputs without guidance, `noaction_precision` the share of these at which the teacher
    gives none, `noaction_recall` the share of the teacher's at which the compiler gives none; None where that is no
    number. `noaction_tokens_saved` is how many tokens the executor was spared per step: what guidance and soft tokens
    take where there is guidance, on average, at the share of steps without. The compiler itself saves nothing.
    """
    outputs, withheld, judged, nothing_due, rightly, hint_tokens = (int(counts[name]) for name in COUNTS)
    guided = outputs - withheld
    return {
        "noaction": withheld / outputs if outputs else 0.0,
        "noaction_precision": rightly / withheld if judged and withheld else None,
        "noaction_recall": rightly / nothing_due if nothing_due else None,
        "noaction_tokens_saved": hint_tokens / guided * withheld / outputs if guided else 0.0,
    }


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
        """Make the row as JSON data.

        With a baseline it also has the paired difference to it. Rates are per step, and times of a batch are shared by
        its rows. `parse_rate` is the share of compiler outputs that are well formed, 1 without a compiler.
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
            **withheld_row({name: self.table(name).sum() for name in COUNTS}),
        }
        if self.observed:
            row |= {"calls_per_step": per_step("calls"), "observed": [*self.observed]}
        if baseline is not None and baseline is not self:
            difference, low, high = paired_difference(self.won, baseline.won)
            row["difference_to_" + baseline.delivery] = difference
            row["difference_interval"] = [low, high]
        return row


def play_batches(
    envs: Envs,
    executor: Acts,
    delivery: Delivery,
    bank: Bank,
    memory: MemoryConfig,
    episodes: Mapping[tuple[str, str, str], tuple[int, int]],
    finished: Finished[Row],
    row_of: Callable[[Trajectory, int], Row],
    *,
    on_played: Callable[[Trajectory], None] | None = None,
    progress: Progress | None = None,
    constrained: bool = False,
    scheme: ThinkAction | None = None,
) -> list[Row]:
    """Play what is not finished, and return a row per episode.

    Batches are cut in the same way whatever is finished, so that a row does not depend on where a run was stopped.

    Args:
        envs: as many as episodes are played side by side.
        executor, delivery, bank, constrained, scheme: see `agents.rollout.play`.
        memory: as the models were trained with.
        episodes: key in `finished` -> (task, seed).
        finished: gets the rows; a batch that is whole in it is not played.
        row_of: (trajectory, number of its env) -> row.
        on_played: called with what is played now.
        progress: is told the share of wins, where rows have `won`.
    """
    keys = [*episodes]
    num_shown = 0

    def show() -> None:
        nonlocal num_shown
        rows = [finished.rows[key] for key in keys if key in finished.rows]
        if progress and len(rows) > num_shown:
            success = float(np.mean([getattr(row, "won", 0) for row in rows]))
            progress.update(len(rows) - num_shown, delivery=keys[0][0], success=success)
        num_shown = len(rows)

    show()
    for batch in finished.unfinished([keys[i : i + envs.num_envs] for i in range(0, len(keys), envs.num_envs)], show):
        tasks, seeds = zip(*(episodes[key] for key in batch))
        played = play(
            envs, executor, delivery, bank,
            tasks=tasks, seeds=seeds, top_k=memory.top_k, shown=memory.shown, constrained=constrained, scheme=scheme,
        )  # fmt: skip
        for number, (key, trajectory) in enumerate(zip(batch, played)):
            if on_played:
                on_played(trajectory)
            if key not in finished.rows:
                finished.add(*key, row_of(trajectory, number))
    return [finished.rows[key] for key in keys]


def score_deliveries(
    envs: Envs,
    executor: Acts,
    compiler: MemoryCompiler | None,
    bank: Experiences,
    *,
    deliveries: Sequence[str | Setting],
    tasks: Sequence[int],
    seeds: Sequence[int],
    memory: MemoryConfig,
    label: str = "evaluation",
    finished: Finished[EpisodeResult] | None = None,
    source: TaskSource | None = None,
    on_played: Callable[[str, Trajectory, MemoryCompiler | None], None] | None = None,
    chat: ChatModel | None = None,
    registered: Callable[[str, Any], Delivery] | None = None,
    scheme: ThinkAction | None = None,
    served: ServedCompiler | None = None,
) -> dict[str, Score]:
    """Rows by name; every delivery plays every task once per seed.

    Args:
        memory: as the models were trained with.
        label: of the progress; empty for none.
        finished: what is in it is not played again, and what is played is kept there.
        source: of the tasks, for the deliveries `teacher` and `guidance_only`, and to judge by when guidance is due.
        on_played: called with name and trajectory of each episode that is played, finished ones not included, and the
            compiler.
        chat: answers the calls of memory methods; None for rules.
        registered: see `make_delivery`.
        scheme: see `agents.rollout.play`.
        served: compiles for `compiled_chat`.

    Raises:
        InvalidInputError: nothing there can carry out guidance, or gives the teacher's; a seed is given twice.
    """
    from embodied_mem.parallel.processes import is_first

    kept = finished if finished is not None else Finished[EpisodeResult](None, {})
    teacher, tokenizer = source.teacher if source else None, compiler.tokenizer if compiler else None
    scores = {}
    if len(set(seeds)) < len(seeds):
        raise InvalidInputError(f"seeds: expected each once, got {list(seeds)}")
    total = len(tasks) * len(seeds) * len(deliveries)
    with Progress(label, total, unit="episode", silent=not (label and is_first())) as progress:
        for setting in (Setting(one) if isinstance(one, str) else one for one in deliveries):
            name = setting.name
            delivery, view, acting = under(
                setting, executor, compiler, bank, source=source, numbered=memory.numbered,
                newest_first=memory.newest_first, chat=chat, registered=registered, reading=memory.reading,
                served=served,
            )  # fmt: skip

            def row_of(one: Trajectory, number: int, name: str = name) -> EpisodeResult:
                return result_of(one, name, one.seed, teacher, tokenizer)

            rows = play_batches(
                envs, acting, delivery, view, memory,
                {(name, str(seed), str(task)): (task, seed) for seed in seeds for task in tasks}, kept, row_of,
                on_played=functools.partial(_tell, on_played, name, compiler) if on_played else None,
                progress=progress, constrained=setting.decoding == "admissible" and setting.delivery != "guidance_only",
                scheme=scheme,
            )  # fmt: skip
            scores[name] = Score(name, rows, len(seeds), getattr(delivery, "observed", ()))
    return scores


def _tell(
    on_played: Callable[[str, Trajectory, MemoryCompiler | None], None],
    name: str,
    compiler: MemoryCompiler | None,
    one: Trajectory,
) -> None:
    on_played(name, one, compiler)


def check_executor(config: Config, executor: Acts, envs: Envs, num_tasks: int, bank: Experiences) -> Score:
    """Return the row `none` of the first training tasks, `CHECKED_GAMES` at most.

    A published model that does not know the world's commands wins nothing with any guidance, and GRPO gets no signal.

    Raises:
        InvalidInputError: it wins none of them and fewer than `MIN_ACCEPTED` of its commands have an effect.
    """
    row = score_deliveries(
        envs, executor, None, bank, deliveries=("none",), tasks=range(min(CHECKED_GAMES, num_tasks)), seeds=(0,),
        memory=config.memory, label="",
    )["none"]  # fmt: skip
    accepted = 1 - row.per_step("refused")
    steps = row.table("steps").mean()
    if not row.won.any() and accepted < MIN_ACCEPTED:
        raise InvalidInputError(
            f"model.executor: expected one that knows the commands of {config.world.name}, got {config.model.executor} "
            f"from {config.model.weights}: without memory it won 0 of {row.won.size} training games in "
            f"{steps:.0f} steps each, and {100 * accepted:.0f} % of its commands had an effect. Train it on "
            "the teacher's commands first (--executor-sft.steps 1000) or take another model; --unchecked goes on"
        )
    return row


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
    bank: Experiences,
    *,
    deliveries: Sequence[str | Setting],
    seeds: Sequence[int],
    temperature: float,
    batch_size: int = 0,
    executor: Acts | None = None,
    **more: Any,
) -> dict[str, Score]:
    """Score deliveries and return their rows.

    Each plays the first `num_tasks` tasks of `envs` once per seed. `executor` acts in place of the bundle's own. Models
    are compiled for batches of 16 and of the configuration's size, or of `batch_size` where one is given. For `more`
    see `score_deliveries`.
    """
    from embodied_mem.training.tasks import sources_of

    config = bundle.config
    buckets = (batch_size,) if batch_size else (16, config.evaluation.batch_size)
    own, compiler = bundle.acting(temperature=temperature, batch_buckets=buckets)
    return score_deliveries(
        envs, executor or own, compiler, bank, deliveries=deliveries, tasks=range(num_tasks), seeds=seeds,
        memory=config.memory, source=sources_of(config.world, config.seed)[0], **more,
    )  # fmt: skip
