"""Scoring deliveries: the same executor, bank, tasks and seeds for each, one row of numbers per delivery.

scores = score_deliveries(envs, executor, compiler, bank, deliveries=("none", "compiled"), tasks=tasks, seeds=(0, 1, 2))
scores["compiled"].success, scores["compiled"].interval
"""

from __future__ import annotations

import dataclasses
import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.rollout import Envs, Trajectory, play
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.controls import Setting, under
from embodied_mem.evaluation.intervals import paired_difference, success_row, wilson
from embodied_mem.evaluation.noaction import NO_OUTPUT, Withheld, withheld_in, withheld_of, withheld_row
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


class EpisodeNumbers(NamedTuple):
    """What a row is computed from, of one episode.

    Attributes:
        won: whether the goal was reached.
        progress: largest share of the goal's conditions that held.
        steps: played.
        executor_tokens: that the executor read and wrote.
        compiler_tokens: likewise.
        executor_s: wall time of the executor; rows of a batch share its time.
        compiler_s: likewise of the delivery.
        outputs: of the compiler.
        well_formed: of these.
        guided: steps at which the executor got guidance.
        cited: steps at which the guidance names an experience as its source.
        unsupported: of these, steps at which that experience does not say so.
        made_up: of these, steps at which no experience of the episode does.
        executor_out: of the executor's tokens, those it wrote.
        prefill_s: of its time, in which it read prompts; without compiling.
        decode_s: likewise, in which it wrote commands.
        withheld, judged, nothing_due, rightly, hint_tokens: see `noaction.Withheld`.
        refused: commands that had no effect, as the answers say.
        calls: of a memory method, to a model or to rules in its place.
        memory_tokens: of the executor's, in which memories stood in its prompts.
    """

    won: bool
    progress: float
    steps: int
    executor_tokens: int
    compiler_tokens: int
    executor_s: float
    compiler_s: float
    outputs: int
    well_formed: int
    guided: int
    cited: int = 0
    unsupported: int = 0
    made_up: int = 0
    executor_out: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    withheld: int = 0
    judged: int = 0
    nothing_due: int = 0
    rightly: int = 0
    hint_tokens: int = 0
    refused: int = 0
    calls: int = 0
    memory_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Read and written by both models."""
        return self.executor_tokens + self.compiler_tokens

    @property
    def milliseconds(self) -> float:
        """In both models."""
        return 1000 * (self.executor_s + self.compiler_s)

    @property
    def more(self) -> dict[str, float]:
        """What a report holds of it beside the fields that every episode has."""
        return {
            "executor_in": self.executor_tokens - self.executor_out, "executor_out": self.executor_out,
            "prefill_ms": round(1000 * self.prefill_s, 3), "decode_ms": round(1000 * self.decode_s, 3),
            "refused": self.refused, "calls": self.calls, "memory_tokens": self.memory_tokens,
            **withheld_of(self._asdict())._asdict(),
        }  # fmt: skip


def numbers_of(
    trajectory: Trajectory, make_teacher: Callable[[], Teacher] | None = None, tokenizer: Tokenizer | None = None
) -> EpisodeNumbers:
    """The numbers of a played episode; for teacher and tokenizer see `noaction.withheld_in`."""
    delivered = trajectory.delivered
    outputs = [d.record.output for d in delivered if d.record is not None]
    withheld = withheld_in(trajectory, make_teacher, tokenizer)
    return EpisodeNumbers(
        bool(trajectory.won),
        float(trajectory.progress),
        len(delivered),
        sum(a + b for a, b in trajectory.executor_tokens),
        sum(d.tokens for d in delivered),
        trajectory.execute_s,
        trajectory.compile_s,
        len(outputs),
        sum(bool(output.well_formed) for output in outputs),
        sum(bool(d.hint or d.memory) for d in delivered),
        sum(d.supported is not None for d in delivered),
        sum(d.supported is False for d in delivered),
        sum(d.made_up for d in delivered),
        sum(written for _, written in trajectory.executor_tokens),
        trajectory.prefill_s,
        trajectory.decode_s,
        *withheld[1:],
        refused=sum(DEFAULT.read(answer).refused for answer in trajectory.episode.answers),
        calls=sum(d.calls for d in delivered),
        memory_tokens=_memory_tokens(delivered, tokenizer),
    )


def _memory_tokens(delivered: Sequence[Delivered], tokenizer: Tokenizer | None) -> int:
    counts = Counter(d.memory for d in delivered if d.memory)
    return sum(steps * len(tokenizer.encode(text)) for text, steps in counts.items()) if tokenizer else 0


@dataclasses.dataclass(frozen=True)
class Score:
    """One delivery's row.

    Attributes:
        delivery: its name.
        won: bool[tasks, seeds].
        progress: float[tasks, seeds].
        steps: int[tasks, seeds].
        executor_tokens: mean tokens that the executor read and wrote per step.
        compiler_tokens: mean tokens that the compiler read and wrote per step.
        executor_ms: mean wall time of the executor per step and episode, milliseconds; rows of a batch share its time.
        compiler_ms: likewise of the delivery.
        parse_rate: share of compiler outputs that were well formed; 1 without a compiler.
        guided: share of steps at which the executor got guidance.
        cited: share of steps at which the guidance names an experience as its source.
        hallucinated: share of steps at which that experience does not say so.
        made_up: share of steps at which no experience of the episode does.
        executor_out: of `executor_tokens`, those that it wrote.
        prefill_ms: of `executor_ms`, in which prompts were read; without compiling, which `executor_ms` holds, too.
        decode_ms: likewise, in which commands were written.
        withheld: outputs of the compiler without guidance.
        refused: share of commands that had no effect.
        calls: mean calls of a memory method per step.
        memory_tokens: mean tokens of memories in the executor's prompt per step.
        observed: see `agents.deliveries.MethodDelivery`; empty for other deliveries.
    """

    delivery: str
    won: np.ndarray
    progress: np.ndarray
    steps: np.ndarray
    executor_tokens: float
    compiler_tokens: float
    executor_ms: float
    compiler_ms: float
    parse_rate: float
    guided: float
    cited: float = 0.0
    hallucinated: float = 0.0
    made_up: float = 0.0
    executor_out: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    withheld: Withheld = NO_OUTPUT
    refused: float = 0.0
    calls: float = 0.0
    memory_tokens: float = 0.0
    observed: Sequence[Mapping[str, int]] = ()

    @property
    def success(self) -> float:
        """Mean success."""
        return float(self.won.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the success, counted in tasks."""
        return wilson(self.success, len(self.won))

    def to_json(self, baseline: Score | None = None) -> dict[str, Any]:
        """The row as JSON data; with a baseline also the paired difference to it."""
        row = success_row(self.won) | {
            "progress": float(self.progress.mean()),
            "steps": float(self.steps.mean()),
            "tokens_per_step": self.executor_tokens + self.compiler_tokens,
            "executor_tokens_per_step": self.executor_tokens,
            "compiler_tokens_per_step": self.compiler_tokens,
            "latency_ms_per_step": self.executor_ms + self.compiler_ms,
            "executor_ms_per_step": self.executor_ms,
            "executor_tokens_in_per_step": self.executor_tokens - self.executor_out,
            "executor_tokens_out_per_step": self.executor_out,
            "executor_prefill_ms_per_step": self.prefill_ms,
            "executor_decode_ms_per_step": self.decode_ms,
            "compiler_ms_per_step": self.compiler_ms,
            "parse_rate": self.parse_rate,
            "guided": self.guided,
            "cited": self.cited,
            "hallucinations_per_100_steps": 100 * self.hallucinated,
            "made_up_per_100_steps": 100 * self.made_up,
            "refused": self.refused,
            "memory_tokens_per_step": self.memory_tokens,
            **withheld_row(self.withheld),
        }
        if self.observed:
            row |= {"calls_per_step": self.calls, "observed": [*self.observed]}
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
    finished: Mapping[tuple[str, str, str], EpisodeNumbers] = types.MappingProxyType({}),
    on_episode: Callable[[str, str, str, EpisodeNumbers], None] | None = None,
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
        finished: (delivery, seed, task) -> numbers of an earlier run; a batch of such episodes is not played.
        on_episode: called with name, seed, task and the numbers of each episode, finished ones included.
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
        rows: list[EpisodeNumbers] = []
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
                batch = [numbers_of(trajectory, teacher, tokenizer) for trajectory in played]
            for key, numbers in zip(keys, batch):
                if on_episode:
                    on_episode(*key, numbers)
            rows += batch
        scored = score_of(name, rows, len(tasks), len(seeds))
        scores[name] = dataclasses.replace(scored, observed=getattr(delivery, "observed", ()))
    return scores


def score_of(name: str, rows: Sequence[EpisodeNumbers], num_tasks: int, num_seeds: int) -> Score:
    """The row of one delivery; episodes stand seed by seed, tasks in one order."""
    columns = {field: np.array(values) for field, values in zip(EpisodeNumbers._fields, zip(*rows))}
    tables: dict[str, Any] = {key: columns[key].reshape(num_seeds, num_tasks).T for key in ("won", "progress", "steps")}
    total = {key: column.sum() for key, column in columns.items()}
    steps = total["steps"]
    return Score(
        name,
        **tables,
        executor_tokens=float(total["executor_tokens"] / steps),
        compiler_tokens=float(total["compiler_tokens"] / steps),
        executor_ms=float(1000 * total["executor_s"] / steps),
        compiler_ms=float(1000 * total["compiler_s"] / steps),
        parse_rate=float(total["well_formed"] / total["outputs"]) if total["outputs"] else 1.0,
        guided=float(total["guided"] / steps),
        cited=float(total["cited"] / steps),
        hallucinated=float(total["unsupported"] / steps),
        made_up=float(total["made_up"] / steps),
        executor_out=float(total["executor_out"] / steps),
        prefill_ms=float(1000 * total["prefill_s"] / steps),
        decode_ms=float(1000 * total["decode_s"] / steps),
        withheld=withheld_of(total),
        refused=float(total["refused"] / steps),
        calls=float(total["calls"] / steps),
        memory_tokens=float(total["memory_tokens"] / steps),
    )


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
    finished: Finished[EpisodeNumbers] | None = None,
    batch_size: int = 0,
    executor: Acts | None = None,
    on_played: Callable[[str, Trajectory, MemoryCompiler | None], None] | None = None,
    chat: ChatModel | None = None,
    registered: Callable[[str, Any], Delivery] | None = None,
) -> dict[str, Score]:
    """The rows of the deliveries, each of which plays the first `num_tasks` tasks of `envs` once per seed.

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

        def on_episode(name: str, seed: str, task: str, numbers: EpisodeNumbers) -> None:
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
