"""Scores the planner-critic agent, its ablations and deliveries of memory on the subsets of a world.

An agent first lives through the training tasks, then every scored task starts from that memory: tasks are independent
of each other and of their order, so that intervals over tasks mean what they say.

An agent that is told by the episode's end that the goal holds can try one reading of the instruction after the other.
`first_reading` carries out one and stops; `ends_itself` does so where nothing ends the episode before.

    --agents full no_memory --num_tasks 10
    --agents first_reading ends_itself                                   # agents that stop by themselves
    --agents --deliveries none static compiled --weights RUN/weights     # deliveries alone, by models
    --agents --deliveries none compiled compiled_chat --compiler_model NAME --server URL --record calls.jsonl
    --revisit 15                                                         # in homes that are lived in
    --repeat 3 --max_steps 15 --agents full reflexion voyager cradle     # tasks again, memory kept
    --agents chat_planner_critic --server http://localhost:8000/v1 --model NAME --record calls.jsonl
    --agents chat_planner_critic chat_no_spatial --memory_model NAME --parallel 8 --server ...
    --backend embodiedbench --python PYTHON --folder CHECKOUT --agents chat_planner_critic --perceiver_model NAME ...

`chat_planner_critic` asks a chat model, which is told the world's skills and all names in its list of actions. It
starts from the memory of the agent by rules, since a model would be asked thousands of times for one of its own; with
--memory_model, a model writes what it remembers from then on; with --perceiver_model, one looks at each answer, and all
that it remembers from then on is what was seen. `chat_no_critic` and so on lack a part.

With --backend, EmbodiedBench's own simulator plays the scored tasks, of any of its subsets; --parallel N runs N.
Its texts tell no view, so only chat agents play there, best with a perceiver. They begin without a memory, or with that
of --training_tasks in the native world.

Deliveries are played by models that read ALFWorld's texts (`delivery`), with three seeds at temperature 0.5,
since greedy play repeats refused commands. A task's outcome is its mean over the seeds, and intervals count tasks.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from embodied_mem import envs
from embodied_mem.agents.deliveries import delivery_names
from embodied_mem.agents.planner_critic.agent import ABLATIONS, PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.beliefs import in_home
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.agents.rollout import Played, rollout
from embodied_mem.agents.trace import open_trace, traced, write_delivered
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation import task_sequence
from embodied_mem.evaluation.benchmark import (
    EpisodeResult,
    Published,
    check_least,
    chosen_by,
    episodes_data,
    option,
    trace_option,
)
from embodied_mem.evaluation.chat_options import (
    SeatOptions,
    chat_agents,
    chat_model,
    check_parallel,
    other_model,
    served_compiler,
    usage_of,
)
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.controls import ControlOptions, Setting, is_bank_read, settings_of, under
from embodied_mem.evaluation.intervals import paired_difference, success_row
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import difference, markdown, rate
from embodied_mem.language.chat import ChatModel
from embodied_mem.language.seats import Seats, seat_tokens
from embodied_mem.memory import Experiences
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.parallel.resume import Finished, kept_beside
from embodied_mem.progress import Progress
from embodied_mem.registry import load, names

if TYPE_CHECKING:
    from embodied_mem.agents.rollout import Trajectory
    from embodied_mem.compiler.served_compiler import ServedCompiler
    from embodied_mem.training.teachers.lesson import TaskSource


DESCRIPTION = __doc__

FIRST, FIRST_BLANK = PlannerCriticConfig(retries=False), PlannerCriticConfig(retries=False, long_term=False)

AGENTS = {
    **ABLATIONS,
    "no_memory": PlannerCriticConfig(spatial=False, long_term=False),
    "first_reading": FIRST,
    "first_reading_no_long_term": FIRST_BLANK,
    "ends_itself": FIRST,
    "ends_itself_no_long_term": FIRST_BLANK,
}
"""The agent by rules, its ablations, and one that has the last three answers and no other memory, all of which try
other readings of the instruction until the episode ends; then those that carry out the first they can, and stop."""


UNTOLD = frozenset(("ends_itself", "ends_itself_no_long_term"))
"""Agents whose episodes go on when the goal holds, so that the end is theirs to see; the goal has to hold at it."""


LABELS = {
    "full": "retries until the episode ends",
    "no_critic": "retries, without critic",
    "no_spatial": "retries, without spatial memory",
    "no_long_term": "retries, without long-term memory",
    "no_memory": "retries, without memory",
    "first_reading": "first reading",
    "first_reading_no_long_term": "first reading, without long-term memory",
    "ends_itself": "first reading, ends the episode itself",
    "ends_itself_no_long_term": "first reading, ends it itself, without long-term memory",
}
"""The agents in tables."""


CHAT_AGENTS = chat_agents((*ABLATIONS, "no_memory"))
"""Agents that ask a chat model -> the agent by rules with the same parts."""


_CONFIGS = {**AGENTS, **{name: AGENTS[parts] for name, parts in CHAT_AGENTS.items()}}


NOTE = (
    "The native world is symbolic: no images, no physics, and a text names what is in view. The papers' agents see "
    "images in the real simulators, so their figures are beside these for orientation and are no comparison."
)


@dataclasses.dataclass(frozen=True)
class PlannerConfig(ControlOptions, SeatOptions):
    """Options of play; each field says so itself. Agents of other papers play with `repeat` alone."""

    world: str
    agents: tuple[str, ...] = option(
        tuple(AGENTS),
        "agents that are scored; none for deliveries alone",
        choices=lambda: (*_CONFIGS, *names("agents")),
    )
    subsets: tuple[str, ...] = option((), "of tasks; default: all at hand")
    deliveries: tuple[str, ...] = option((), "of memory, by the weights", choices=delivery_names)
    weights: str = option("experiments/weights/alfworld", "folder with models that read ALFWorld's texts")
    seeds: tuple[int, ...] = option((0, 1, 2), "of deliveries")
    temperature: float = option(0.5, "of deliveries, 0 is greedy")
    training_tasks: int = option(0, "that memory is made of, the first so many; 0 takes all")
    num_tasks: int = option(0, "of each subset, the first so many; 0 takes all")
    trace: pathlib.Path | None = trace_option("what is played now")
    revisit: int = option(0, "plays each task again in its home, in so many steps, and nothing else; 0 does not")
    repeat: int = option(0, "plays agents so often with memory kept, and nothing else; 0 does not")
    max_steps: int = option(15, "of an episode, with --repeat")
    backend: str = option("", "the simulator that plays the scored tasks: embodiedbench; default: the native world")
    python: str = option("", "of --backend: the simulator's interpreter; default: this one")
    folder: str = option("", "of --backend: the checkout of its program")
    resolution: int = option(0, "of --backend: side of the images in pixels; default: the world's own")

    def __post_init__(self) -> None:
        check_parallel(self)
        check_least(self, training_tasks=0, num_tasks=0, revisit=0, repeat=0, max_steps=1)
        if not self.agents and (self.repeat or not self.deliveries):
            raise InvalidInputError("--agents: expected at least one, or --deliveries without --repeat, got none")
        theirs = [name for name in self.agents if name not in _CONFIGS]
        if theirs and not self.repeat:
            raise InvalidInputError(f"--agents {theirs[0]}: expected --repeat >= 1, got {self.repeat}")
        if self.backend and (self.deliveries or self.revisit or self.repeat or {*self.agents} - {*CHAT_AGENTS}):
            raise InvalidInputError(f"--backend: expected chat agents alone, some of {', '.join(CHAT_AGENTS)}")
        if self.repeat and (self.deliveries or self.revisit):
            raise InvalidInputError("--repeat: expected no --deliveries or --revisit beside it")

    @property
    def settings(self) -> dict[str, Setting]:
        """The rows of the deliveries by name."""
        rows = settings_of(self.deliveries, self.bank, self.soft, self.hint_tokens or (None,))
        return {row.name: row for row in rows}


@dataclasses.dataclass(frozen=True)
class PlannerBenchmark:
    """Scores of agents on a world; a `Benchmark`.

    Attributes:
        world: id of the environment.
        subsets: names of the tasks that are scored.
        load: the tasks of a name.
        training: tasks that memory is made of: none that a subset has, too.
        lists_actions: as for `rollout`.
        published: rows of papers.
        hides: envs -> the same with things hidden, so that they have to be searched for; as they are where they have
            to be anyway.
    """

    world: str
    subsets: tuple[str, ...]
    load: Callable[[str], list[Any]]
    training: Callable[[], list[Any]]
    lists_actions: bool
    published: Sequence[Published] = ()
    hides: Callable[[Any], Any] = lambda world: world

    description = DESCRIPTION

    @property
    def config(self) -> PlannerConfig:
        """The defaults."""
        return PlannerConfig(self.world)

    def evaluate(
        self, config: PlannerConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        started = time.perf_counter()
        facts = manifest(config=chosen_by(config), planner="rules", note="" if config.backend else NOTE)
        other = evaluate_revisited if config.revisit else evaluate_repeated if config.repeat else evaluate_subsets
        report = facts | other(self, config, facts, models or Models(config.weights), result)
        report["seconds"] = round(time.perf_counter() - started, 1)
        if result:
            write_result(result, report)
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        """Write `Benchmark.table`; the cost of a step is that of deciding alone."""
        if "revisited_home" in report:
            return revisited_table(report["revisited_home"])
        if "repeated_trials" in report:
            return repeated_table(report["repeated_trials"])
        return table(report["subsets"], self.published)

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        rows = next(report[key] for key in ("subsets", "revisited_home", "repeated_trials") if key in report)
        return {"world": self.world, "subsets": rows}

    def agent(
        self, config: PlannerCriticConfig, memory: LifelongMemory | None, seats: Seats | None = None
    ) -> PlannerCriticAgent:
        """Make an agent with `memory` that asks models at `seats`."""
        parts: dict[str, Any] = {}
        if seats is not None:
            skills, examples = (load(self.world, part)(config) for part in ("skills", "examples"))
            parts = chat_parts(seats, skills, examples=examples)
        is_written = seats is not None and (seats.memory or seats.perceiver) is not None
        agent = PlannerCriticAgent.for_world(self.world, config, None if is_written else memory, **parts)
        if is_written and memory is not None:
            agent.memory.restore(memory.state())
        return agent


def evaluate_subsets(
    benchmark: PlannerBenchmark,
    config: PlannerConfig,
    facts: Mapping[str, Any],
    models: Models,
    result: pathlib.Path | None,
) -> dict[str, Any]:
    """Return the report's parts for independent tasks, resumable beside `result`."""
    shown = (
        "world", "training_tasks", "weights", "seeds", "temperature", "bank", "soft", "hint_tokens", "model",
        "memory_model", "perceiver_model", "compiler_model", "backend",
    )  # fmt: skip
    belongs_to = {"commit": facts["commit"], "config": {key: facts["config"][key] for key in shown}}
    with kept_beside(result, "tasks", belongs_to, EpisodeResult) as finished, open_trace(config.trace) as trace:
        chats = Chats.of(config)
        with Simulators(config) if config.backend else nullcontext() as simulators:
            played = play_all(benchmark, config, models, finished, chats, trace, simulators)
        report = {"subsets": rows_of(played), **chats.usage()} | episodes_data(
            benchmark.world, played, training_tasks=config.training_tasks,
            temperature=config.temperature if config.deliveries else None,
        )  # fmt: skip
        if result:
            write_result(result, dict(facts) | report)
    return report


@dataclasses.dataclass(frozen=True)
class Chats:
    """The models that chat agents and `compiled_chat` ask; None where none does."""

    model: ChatModel | None = None
    memory: ChatModel | None = None
    perceiver: ChatModel | None = None
    compiler: ServedCompiler | None = None

    @classmethod
    def of(cls, config: PlannerConfig) -> Chats:
        """Return those that the options name."""
        asks = next((name for name in config.agents if name in CHAT_AGENTS), None)
        compiler = served_compiler(config, config.temperature, MAX_REQUESTS)
        if not asks:
            return cls(compiler=compiler)
        others = (other_model(config, name) for name in ("memory_model", "perceiver_model"))
        return cls(chat_model(config, f"--agents {asks}"), *others, compiler)

    def seats(self, name: str) -> Seats | None:
        """Make seats for a chat agent of this name; None for others."""
        if self.model is None or name not in CHAT_AGENTS:
            return None
        return Seats(self.model, name, self.memory, self.perceiver)

    def usage(self) -> dict[str, Any]:
        """Return what a report says of them."""
        others = {"memory_model": self.memory, "perceiver_model": self.perceiver}
        others |= {"compiler_model": self.compiler and self.compiler.chat}
        return usage_of(self.model) | {name: usage_of(model) for name, model in others.items() if model is not None}


class SimulatorTask(NamedTuple):
    """A task of a simulator by its name and its index in the subset."""

    name: str
    index: int


class Simulators:
    """The open simulators of a command, one for each thread that plays; an idle one goes on with its subset."""

    def __init__(self, config: PlannerConfig):
        places = {name: getattr(config, name) for name in ("python", "folder", "resolution")}
        self._options = {"backend": config.backend} | {name: value for name, value in places.items() if value}
        self._world, self._idle, self._lock = config.world, list[tuple[str, Any]](), threading.Lock()

    def __enter__(self) -> Simulators:
        return self

    def __exit__(self, *error: object) -> None:
        for _, world in self._idle:
            world.close()

    @contextmanager
    def lend(self, subset: str) -> Iterator[Any]:
        """Lend a simulator of a subset, an idle or a new one."""
        with self._lock:
            idle = sorted(self._idle, key=lambda one: one[0] == subset)
            own, world = idle.pop() if idle else ("", None)
            self._idle = idle
        if world is not None and own != subset:
            world.close()
            world = None
        world = world or envs.make(self._world, tasks=subset, num_envs=1, **self._options)
        try:
            yield world
        finally:
            with self._lock:
                self._idle.append((subset, world))

    def tasks(self, subset: str) -> list[SimulatorTask]:
        """Return all tasks of a subset."""
        with self.lend(subset) as world:
            return [SimulatorTask(world.task_id(index), index) for index in range(world.num_tasks)]


def scored_tasks(benchmark: PlannerBenchmark, subset: str) -> list[Any]:
    """Return a subset's tasks that are unsolved at the start."""
    return [task for task in benchmark.load(subset) if not getattr(task, "satisfied_at_start", False)]


def remember(
    benchmark: PlannerBenchmark,
    config: PlannerCriticConfig,
    tasks: Sequence[Any],
    on_task: Callable[[Played], None] | None = None,
) -> LifelongMemory | None:
    """Return an agent's memory after these tasks; None without one."""
    if not config.long_term or not tasks:
        return None
    agent = benchmark.agent(config, None)
    world = envs.make(benchmark.world, tasks=list(tasks), num_envs=1)
    tasks_in_order = [range(len(tasks))]
    rollout(world, [agent], tasks_in_order, on_episode=on_task, lists_actions=benchmark.lists_actions)
    return agent.memory


def play(
    benchmark: PlannerBenchmark,
    config: PlannerCriticConfig,
    memory: LifelongMemory | None,
    tasks: Sequence[Any],
    chats: Chats = Chats(),
    *,
    trace: TextIO | None = None,
    name: str = "",
    simulators: Simulators | None = None,
    **options: Any,
) -> list[Played]:
    """Play each task by an agent with its own fork of `memory`.

    It asks `chats` if it is a chat agent, and is written to `trace` under its `name`. `options` are the native env's;
    `simulators` play in its place.
    """
    if simulators is None:
        lent: Any = nullcontext(envs.make(benchmark.world, tasks=list(tasks), num_envs=1, **options))
        indices = list(range(len(tasks)))
    else:
        lent, indices = simulators.lend(tasks[0].name.partition("/")[0]), [task.index for task in tasks]
    outcomes = []
    with lent as world:
        for index in indices:
            agent = benchmark.agent(config, memory.fork() if memory is not None else None, chats.seats(name))
            lists_actions = benchmark.lists_actions or name in CHAT_AGENTS
            outcomes += rollout(world, [traced(agent, trace, name)], [[index]], lists_actions=lists_actions)
    return outcomes


def play_all(
    benchmark: PlannerBenchmark,
    config: PlannerConfig,
    models: Models,
    finished: Finished[EpisodeResult],
    chats: Chats = Chats(),
    trace: TextIO | None = None,
    simulators: Simulators | None = None,
) -> list[EpisodeResult]:
    """Play every episode, in order of subsets, deliveries and agents, tasks, seeds.

    Episodes are written to `trace`. Where there are simulators, they play the scored tasks.
    """
    tasks_of = simulators.tasks if simulators else functools.partial(scored_tasks, benchmark)
    subsets = {subset: tasks_of(subset)[: config.num_tasks or None] for subset in config.subsets or benchmark.subsets}
    seeds = {**dict.fromkeys(config.settings, config.seeds), **dict.fromkeys(config.agents, (0,))}

    def is_left(name: str, subset: str, task: Any) -> bool:
        return any((name, f"{subset}/{seed}", task.name) not in finished.rows for seed in seeds[name])

    if any(is_left(name, subset, task) for name in config.settings for subset in subsets for task in subsets[subset]):
        play_deliveries(config, models, subsets, finished, trace, chats.compiler)
    has_training = config.training_tasks or not simulators
    training = benchmark.training()[: config.training_tasks or None] if has_training else []
    memories: dict[tuple[tuple[str, ...], bool], LifelongMemory | None] = {}
    for name in config.agents:
        left = [(subset, task) for subset, tasks in subsets.items() for task in tasks if is_left(name, subset, task)]
        if not left:
            continue
        agent, parallel = _CONFIGS[name], config.parallel if name in CHAT_AGENTS else 1
        options: dict[str, Any] = {"ends_when_won": False} if name in UNTOLD else {}
        key = agent.modules, agent.retries
        if key not in memories:  # what is remembered does not depend on who criticises later
            with Progress(f"{name}: training tasks", len(training) if agent.long_term else 0, unit="task") as progress:
                memories[key] = remember(
                    benchmark, dataclasses.replace(agent, critic=True), training, progress_of(progress)
                )
        play_one = functools.partial(
            play, benchmark, agent, memories[key], chats=chats, trace=trace, name=name, simulators=simulators, **options
        )
        with Progress(name, len(left), unit="task") as progress, ThreadPoolExecutor(parallel) as pool:
            for (subset, task), [outcome] in zip(left, pool.map(play_one, ([task] for _, task in left))):
                finished.add(name, f"{subset}/0", task.name, result_of(name, subset, task.name, outcome))
                progress.update(won=outcome.won)
    return [
        finished.rows[name, f"{subset}/{seed}", task.name]
        for subset, tasks in subsets.items()
        for name in seeds
        for task in tasks
        for seed in seeds[name]
    ]


def result_of(name: str, subset: str, task: str, outcome: Played) -> EpisodeResult:
    """Make the result of an agent's episode."""
    record = outcome.record
    return EpisodeResult(
        name, task, outcome.won, outcome.progress, record.steps, subset=subset, tokens=seat_tokens(record.seats),
        milliseconds=1000 * (record.memory_s + record.think_s),
        more={"plans": record.plans, "vetoes": record.vetoes, **record.seats},
    )  # fmt: skip


def progress_of(progress: Progress) -> Callable[[Played], None]:
    """Return what `rollout` calls when a task ends."""
    return lambda outcome: progress.update(won=outcome.won)


def rows_of(episodes: Sequence[EpisodeResult]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return numbers by subset and agent, with intervals and paired differences.

    A task counts as the mean of its seeds.
    """
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for subset in dict.fromkeys(episode.subset for episode in episodes):
        own = {
            name: [episode for episode in episodes if (episode.subset, episode.agent) == (subset, name)]
            for name in dict.fromkeys(episode.agent for episode in episodes)
        }
        columns = {name: _columns(theirs) for name, theirs in own.items()}
        baseline = "full" if "full" in columns else "none"
        rows[subset] = {}
        for name, column in columns.items():
            mean, low, high = paired_difference(column["progress"], np.zeros_like(column["progress"]))
            steps = max(column["steps"].sum(), 1)
            row = success_row(column["won"]) | {
                "progress": mean,
                "progress_interval": [low, high],
                **{key: float(column[key].mean()) for key in ("steps", "plans", "vetoes")},
                "tokens_per_step": float(column["tokens"].sum() / steps),
                "ms_per_step": float(column["milliseconds"].sum() / steps),
                "tasks": len(column["won"]),
            }
            if name != baseline and baseline in columns:
                for what, key in (("success", "won"), ("steps", "steps")):
                    difference = paired_difference(column[key], columns[baseline][key])
                    row[f"{what}_difference_to_{baseline}"] = list(difference)
            rows[subset][name] = row | _delivered(own[name])
    return rows


COUNTED = ("won", "progress", "steps", "plans", "vetoes", "tokens", "milliseconds")
"""Columns of a row for each task."""


def _columns(episodes: Sequence[EpisodeResult]) -> dict[str, np.ndarray]:
    """Return an agent's float[tasks] by name of `COUNTED`."""
    tasks = len({episode.task for episode in episodes})
    return {
        column: np.array([episode.count(column) for episode in episodes]).reshape(tasks, -1).mean(1)
        for column in COUNTED
    }


def _delivered(episodes: Sequence[EpisodeResult]) -> dict[str, Any]:
    """Return deliveries' own numbers: executor tokens, rate of silence."""
    if not all("withheld" in episode.more for episode in episodes):
        return {}
    from embodied_mem.evaluation.score import withheld_row

    steps = max(sum(episode.steps for episode in episodes), 1)
    total = {key: sum(episode.more[key] for episode in episodes) for key in episodes[0].more}
    costs = {
        "executor_tokens_in": "executor_in", "executor_tokens_out": "executor_out",
        "executor_prefill_ms": "prefill_ms", "executor_decode_ms": "decode_ms",
    }  # fmt: skip
    return {f"{key}_per_step": total[column] / steps for key, column in costs.items()} | withheld_row(total)


def cost_cells(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return cells of a step's tokens and milliseconds over all rows."""
    steps = max(sum(row["steps"] for row in rows), 1e-9)
    tokens, ms = (sum(row[key] * row["steps"] for row in rows) / steps for key in ("tokens_per_step", "ms_per_step"))
    return [f"{tokens:.0f}", f"{ms:.1f}"]


def table(rows: Mapping[str, Mapping[str, Mapping[str, Any]]], published: Sequence[Published]) -> str:
    """Return a Markdown table: self-ending agents first, published figures last.

    The cost of a step is that of deciding alone.
    """
    columns = [column for subset in rows for column in (f"{subset}: success", "progress", "steps")]
    head = ["agent", *columns, "tokens/step", "ms/step"]
    lines = []
    for name in sorted(next(iter(rows.values())), key=lambda name: name not in UNTOLD):
        cells = [LABELS.get(name, name)]
        for row in (agents[name] for agents in rows.values()):
            cells += [rate(row["success"], row["interval"]), rate(row["progress"], row["progress_interval"])]
            cells.append(f"{row['steps']:.1f}")
        lines.append([*cells, *cost_cells([agents[name] for agents in rows.values()])])
    for paper in published:
        cells = [f"*{paper.name}*"]
        for subset in rows:
            values = paper.rows.get(subset, (None, None))
            cells += ["-" if value is None else f"{value:g} %" for value in values] + ["-"]
        lines.append([*cells, "-", "-"])
    return markdown(head, lines)


# Deliveries of memory.


BATCH = 25
"""Tasks in lockstep, with all seeds of each."""
MAX_REQUESTS = 8
"""Requests at a time to a server that compiles."""


def source_of(world: str) -> TaskSource:
    """Return a world's tasks to be trained on and their teacher."""
    from embodied_mem.training.config import WorldConfig
    from embodied_mem.training.tasks import sources_of

    [source] = sources_of(WorldConfig(name=world, train="train", valid="held_out"), seed=0)
    return source


def bank_of(world: str, num_tasks: int = 0) -> Experiences:
    """Build the rule teacher's bank of `num_tasks` training tasks; 0: all."""
    from embodied_mem.training import tasks
    from embodied_mem.training.tasks import TEACHER_STEPS

    source = source_of(world)
    training = [task for side in source.sides() for task in side][: num_tasks or None]
    envs = source.envs(training, num_envs=min(16, len(training)), max_steps=TEACHER_STEPS)
    return tasks.bank_of(envs, len(training), lambda task: source.teacher(), seed=0, task_key=source.task_key)


def play_deliveries(
    config: PlannerConfig,
    models: Models,
    subsets: Mapping[str, Sequence[Any]],
    finished: Finished[EpisodeResult],
    trace: TextIO | None = None,
    served: ServedCompiler | None = None,
) -> None:
    """Play each delivery's unfinished tasks, once per seed.

    What is random in an episode depends on its seed and on the number of the task in its subset.

    Raises:
        InvalidInputError: models of ScienceWorld, which do not read this wording.
    """
    from embodied_mem.models.host import keep_freed_memory, set_gpu_flags

    set_gpu_flags()
    keep_freed_memory()
    from embodied_mem.evaluation import score

    world, seeds = config.world, config.seeds
    bundle, source = models.load(), source_of(world)
    if bundle.config.world.name == "scienceworld":
        score.refuse_weights(models.folder, "scienceworld", f"{world} or ALFWorld")
    bank = bank_of(world, config.training_tasks) if is_bank_read(config.settings.values()) else Experiences()
    memory, num_envs = bundle.config.memory, BATCH * len(seeds)
    executor, compiler = bundle.acting(temperature=config.temperature, batch_buckets=(num_envs,))
    worlds = {subset: source.envs(tasks, num_envs=num_envs) for subset, tasks in subsets.items()}
    tokenizer = compiler.tokenizer if compiler else None
    for (name, setting), (subset, tasks) in itertools.product(config.settings.items(), subsets.items()):
        delivery, view, acting = under(
            setting, executor, compiler, bank, source=source,
            numbered=memory.numbered, newest_first=memory.newest_first, reading=memory.reading,
            served=served,
        )  # fmt: skip

        pairs = itertools.product(enumerate(tasks), seeds)
        with Progress(f"{name}: {subset}", len(tasks) * len(seeds), unit="episode") as progress:
            score.play_batches(
                worlds[subset], acting, delivery, view, memory,
                {(name, f"{subset}/{seed}", task.name): (number, seed) for (number, task), seed in pairs},
                finished, functools.partial(world_row, worlds[subset], tasks, subset, name, source.teacher, tokenizer),
                progress=progress,
                on_played=(lambda one, name=name: write_delivered(trace, name, one, compiler)) if trace else None,
            )  # fmt: skip


def world_row(
    envs: Any, tasks: Sequence[Any], subset: str, name: str, teacher: Any, tokenizer: Any, one: Trajectory, number: int
) -> EpisodeResult:
    """Make a delivery's row with the world's report of env `number`."""
    from embodied_mem.evaluation.score import result_of

    won, share, steps = envs.outcomes()[number]
    row = result_of(one, name, one.seed, teacher, tokenizer)
    own = {"task": tasks[one.task].name, "subset": subset, "won": bool(won), "progress": share, "steps": steps}
    return dataclasses.replace(row, **own)


# Revisited homes.


REVISITED_ROWS = ("first", "kept", "wiped", "other home")
"""The first time, and three second times."""


REVISITED_LABELS = {
    "first": "first time",
    "kept": "second time, memory kept",
    "wiped": "second time, memory wiped",
    "other home": "second time, memory of another home",
}


class NamedHomes:
    """Envs whose first texts name the home: `home`, or that of the task, which is called as the task is."""

    def __init__(self, world: Any, home: str = ""):
        self._world, self._home = world, home
        self.num_envs, self.max_steps = world.num_envs, world.max_steps

    def reset(self, *, options: dict[str, Any]) -> tuple[list[str], Any]:
        observations, info = self._world.reset(options=options)
        homes = [self._home or name for name in info["task_id"]]
        return [in_home(home, text) for home, text in zip(homes, observations)], info

    def step(self, actions: Sequence[str], /) -> Any:
        return self._world.step(actions)


def play_in_home(
    benchmark: PlannerBenchmark,
    task: Any,
    home: str,
    memory: LifelongMemory | None,
    max_steps: int,
    trace: TextIO | None = None,
    name: str = "",
) -> tuple[Played, LifelongMemory]:
    """Play a task in a named home; return result and memory.

    The agent has this memory, or a new one. The result is written to `trace` under the `name`.
    """
    world = envs.make(benchmark.world, tasks=[task], num_envs=1, max_steps=max_steps)
    named = NamedHomes(benchmark.hides(world), home)
    agent = benchmark.agent(ABLATIONS["full"], memory)
    [played] = rollout(named, [traced(agent, trace, name)], [[0]], lists_actions=benchmark.lists_actions)
    return played, agent.memory


def play_revisited(
    benchmark: PlannerBenchmark,
    tasks: Sequence[Any],
    max_steps: int,
    progress: Progress,
    trace: TextIO | None = None,
) -> dict[str, list[EpisodeResult]]:
    """Numbers of each of `REVISITED_ROWS`, tasks in order."""
    rows: dict[str, list[EpisodeResult]] = {name: [] for name in REVISITED_ROWS}
    for i, task in enumerate(tasks):
        home = task.name
        played, memory = play_in_home(benchmark, task, home, None, max_steps, trace, "first")
        _, other = play_in_home(benchmark, tasks[(i + 1) % len(tasks)], home, None, max_steps)
        seconds = {"kept": memory.fork(), "wiped": None, "other home": other.fork()}
        outcomes = {"first": played} | {
            name: play_in_home(benchmark, task, home, kept, max_steps, trace, name)[0] for name, kept in seconds.items()
        }
        for name, outcome in outcomes.items():
            rows[name].append(result_of(name, "", task.name, outcome))
        progress.update(won=outcomes["kept"].won)
    return rows


def evaluate_revisited(benchmark: PlannerBenchmark, config: PlannerConfig, *_: Any) -> dict[str, Any]:
    """Return the report's parts for `config.revisit`."""
    played = {}
    with open_trace(config.trace) as trace:
        for subset in config.subsets or benchmark.subsets:
            tasks = scored_tasks(benchmark, subset)[: config.num_tasks or None]
            with Progress(f"{subset}, revisited", len(tasks), unit="task") as progress:
                played[subset] = play_revisited(benchmark, tasks, config.revisit, progress, trace)
    episodes = [
        dataclasses.replace(row, subset=subset, run=1 if name == "first" else 2)
        for subset, rows in played.items()
        for name, column in rows.items()
        for row in column
    ]
    rows = {subset: revisited_rows(column) for subset, column in played.items()}
    return {"revisited_home": rows} | episodes_data(benchmark.world, episodes, max_steps=config.revisit)


def revisited_rows(rows: dict[str, list[EpisodeResult]]) -> dict[str, dict[str, Any]]:
    """Return rows' success and steps, with differences to repeats without memory."""
    won = {name: np.array([row.won for row in column], float) for name, column in rows.items()}
    steps = {name: np.array([row.steps for row in column], float) for name, column in rows.items()}
    return {
        name: success_row(won[name])
        | {
            "steps": float(steps[name].mean()),
            "success_difference_to_wiped": list(paired_difference(won[name], won["wiped"])),
            "steps_difference_to_wiped": list(paired_difference(steps[name], steps["wiped"])),
            "tasks": len(column),
        }
        for name, column in rows.items()
    }


def revisited_table(subsets: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the rows as a Markdown table."""
    columns = [column for subset in subsets for column in (f"{subset}: success", "vs wiped", "steps", "vs wiped")]
    lines = []
    for name in REVISITED_ROWS:
        cells = [REVISITED_LABELS[name]]
        for row in (rows[name] for rows in subsets.values()):
            second = name in ("kept", "other home")
            cells.append(rate(row["success"], row["interval"]))
            cells.append(difference(row["success_difference_to_wiped"]) if second else "-")
            cells.append(f"{row['steps']:.1f}")
            cells.append(difference(row["steps_difference_to_wiped"], 1, 1) if second else "-")
        lines.append(cells)
    return markdown(["robot", *columns], lines)


# Repeated trials.


def play_repeated(
    benchmark: PlannerBenchmark,
    memories: Mapping[str, LifelongMemory | None],
    tasks: Sequence[Any],
    max_steps: int,
    runs: int,
    chats: Chats = Chats(),
) -> task_sequence.Runs:
    """Return outcomes by row and run; names tell agents by rules.

    Args:
        benchmark: of the world.
        memories: name of each agent -> what it begins with.
        tasks: that are played.
        max_steps: of an episode.
        runs: how often.
        chats: models of chat agents.
    """

    def ours(name: str) -> Any:
        memory = memories[name]
        return benchmark.agent(_CONFIGS[name], memory.fork() if memory else None, chats.seats(name))

    def native(count: int) -> Any:
        world = envs.make(benchmark.world, tasks=list(tasks), num_envs=count, max_steps=max_steps)
        return NamedHomes(benchmark.hides(world))

    def adapted(count: int) -> Any:
        return NamedHomes(source_of(benchmark.world).envs(tasks, count, max_steps))

    settings: dict[str, Any] = {"num_tasks": len(tasks), "runs": runs, "lives": 1}
    played: task_sequence.Runs = {}
    for name in memories:
        if name in _CONFIGS:
            lists_actions = benchmark.lists_actions or name in CHAT_AGENTS
            played |= task_sequence.play([name], native, ours, lists_actions=lists_actions, **settings)
            continue

        def by_rules(row: str, name: str = name) -> Any:
            return load("agents", name)(player=source_of(benchmark.world).player())

        [outcomes] = task_sequence.play([f"{name} (rules)"], adapted, by_rules, **settings).values()
        played[f"{name} (rules)"] = [[_world_steps(one) for one in run] for run in outcomes]
    return played


def _world_steps(outcome: Played) -> Played:
    """Return an outcome that counts the world's steps, not commands."""
    record = dataclasses.replace(outcome.record, steps=max(int(outcome.info["steps"][outcome.row]), 1))
    return dataclasses.replace(outcome, record=record)


def evaluate_repeated(benchmark: PlannerBenchmark, config: PlannerConfig, *_: Any) -> dict[str, Any]:
    """Return the report's parts for `config.repeat`."""
    trials, episodes = {}, []
    training = benchmark.training()[: config.training_tasks or None]
    memories = {
        name: remember(benchmark, _CONFIGS[name], training) if name in _CONFIGS else None for name in config.agents
    }
    chats = Chats.of(config)
    for subset in config.subsets or benchmark.subsets:
        tasks = scored_tasks(benchmark, subset)[: config.num_tasks or None]
        played = play_repeated(benchmark, memories, tasks, config.max_steps, config.repeat, chats)
        trials[subset] = task_sequence.rows_of(played)
        names = [task.name for task in tasks]
        episodes += [dataclasses.replace(one, subset=subset) for one in task_sequence.episodes_of(played, names)]
    return {"repeated_trials": trials, **chats.usage()} | episodes_data(
        benchmark.world, episodes, max_steps=config.max_steps, repeat=config.repeat, training_tasks=len(training)
    )


def repeated_table(subsets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the rows of each subset as Markdown tables."""
    return "\n\n".join(f"{subset}\n\n{task_sequence.table(rows)}" for subset, rows in subsets.items())
