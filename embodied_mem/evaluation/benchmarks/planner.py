"""Scores the planner-critic agent, its ablations and deliveries of memory on the subsets of a world.

An agent first lives through the training tasks, then every scored task starts from that memory: tasks are independent
of each other and of their order, so that intervals over tasks mean what they say.

An agent that is told by the episode's end that the goal holds can try one reading of the instruction after the other.
`first_reading` carries out one and stops; `ends_itself` does so where nothing ends the episode before.

    --agents full no_memory --num_tasks 10
    --agents first_reading ends_itself                                   # agents that stop by themselves
    --agents --deliveries none static compiled --weights RUN/weights     # deliveries alone, by models
    --twice 15                                                           # in homes that are lived in (`twice`)
    --runs 3 --max_steps 15 --agents full reflexion voyager cradle       # tasks again, memory kept (`again`)
    --agents chat_planner_critic --server http://localhost:8000/v1 --model NAME --record calls.jsonl

`chat_planner_critic` asks a chat model, which is told the world's skills and all names in its list of actions. It
starts from the memory of the agent by rules, since a model would be asked thousands of times for one of its own.

Deliveries are played by models that read ALFWorld's texts (`delivery`), with three seeds at temperature 0.5,
since greedy play repeats refused commands. A task's outcome is its mean over the seeds, and intervals count tasks.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from embodied_mem import envs
from embodied_mem.agents.deliveries import delivery_names
from embodied_mem.agents.planner_critic.agent import ABLATIONS, PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.agents.rollout import Played, rollout
from embodied_mem.agents.trace import open_trace, traced, write_delivered
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import (
    AgentNumbers,
    EpisodeResult,
    Published,
    chosen_by,
    episodes_data,
    option,
    trace_option,
)
from embodied_mem.evaluation.chat_options import CHAT_AGENT, ChatOptions, chat_model, usage_of
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.controls import Setting, bank_option, hint_tokens_option, settings_of, soft_option
from embodied_mem.evaluation.intervals import paired_difference, success_row
from embodied_mem.evaluation.noaction import withheld_of, withheld_row
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.resume import Finished, kept_beside
from embodied_mem.evaluation.tables import markdown, rate
from embodied_mem.language.chat import ChatModel
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.progress import Progress
from embodied_mem.registry import load, names

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
_CONFIGS = {**AGENTS, CHAT_AGENT: ABLATIONS["full"]}
NOTE = (
    "The native world is symbolic: no images, no physics, and a text names what is in view. The papers' agents see "
    "images in the real simulators, so their figures are beside these for orientation and are no comparison."
)


@dataclasses.dataclass(frozen=True)
class PlannerConfig(ChatOptions):
    """What is played.

    Attributes:
        world: id of the environment.
        agents: of `AGENTS`, or `chat_planner_critic`; with `runs` those of other papers, too.
        subsets: that are scored; empty takes all at hand.
        deliveries: of memory, by the models in `weights`.
        weights: folder with models that read ALFWorld's texts.
        seeds: of the deliveries; each task is played once per seed.
        temperature: of the deliveries; 0 is greedy.
        bank, soft, hint_tokens: controls of the deliveries, see `evaluation.controls`.
        training_tasks: that memory is made of; 0 takes all.
        num_tasks: of each subset; 0 takes all.
        trace: JSON lines of every step, for `embodied-mem view`.
        twice: steps of an episode in homes that are lived in (`twice`); 0 plays the rest and not that.
        runs: how often agents play a subset without clearing memory (`again`); 0 plays the rest and not that.
        max_steps: of an episode then.
    """

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
    bank: tuple[str, ...] = bank_option()
    soft: tuple[str, ...] = soft_option()
    hint_tokens: tuple[int, ...] = hint_tokens_option()
    training_tasks: int = option(0, "that memory is made of, the first so many; 0 takes all")
    num_tasks: int = option(0, "of each subset, the first so many; 0 takes all")
    trace: pathlib.Path | None = trace_option("what is played now")
    twice: int = option(
        0, "plays tasks twice in homes that are lived in, in so many steps, and nothing else; 0 does not"
    )
    runs: int = option(0, "plays agents so often without clearing memory, and nothing else; 0 does not")
    max_steps: int = option(15, "of an episode, with --runs")

    def __post_init__(self) -> None:
        theirs = [name for name in self.agents if name not in _CONFIGS]
        if theirs and not self.runs:
            raise InvalidInputError(f"--agents {theirs[0]}: expected --runs >= 1, got {self.runs}")
        if self.runs and (self.deliveries or self.twice or CHAT_AGENT in self.agents):
            raise InvalidInputError(f"--runs: expected no --deliveries, --twice or {CHAT_AGENT} beside it")

    @property
    def settings(self) -> dict[str, Setting]:
        """The rows of the deliveries by name."""
        rows = settings_of(self.deliveries, self.bank, self.soft, self.hint_tokens or (None,))
        return {row.name: row for row in rows}


@dataclasses.dataclass(frozen=True)
class PlannerBenchmark:
    """How agents are scored on a world; a `Benchmark`.

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
        """As `Benchmark.evaluate`."""
        started = time.perf_counter()
        facts = manifest(config=chosen_by(config), planner="rules", note=NOTE)
        if config.twice:
            from .twice import evaluate_twice  # which plays by this module

            return evaluate_twice(self, config, facts, result)
        if config.runs:
            from .again import evaluate_again

            return evaluate_again(self, config, facts, result)
        shown = ("world", "training_tasks", "weights", "seeds", "temperature", "bank", "soft", "hint_tokens", "model")
        belongs_to = {"commit": facts["commit"], "config": {key: facts["config"][key] for key in shown}}
        with kept_beside(result, "tasks", belongs_to, AgentNumbers) as finished:
            model = chat_model(config, f"--agents {CHAT_AGENT}") if CHAT_AGENT in config.agents else None
            with open_trace(config.trace) as trace:
                played = play_all(self, config, models or Models(config.weights), finished, model, trace)
            report = {
                "subsets": rows_of(played),
                **facts,
                **usage_of(model),
                "seconds": round(time.perf_counter() - started, 1),
            }
            report |= episodes_data(
                self.world, played, training_tasks=config.training_tasks,
                temperature=config.temperature if config.deliveries else None,
            )  # fmt: skip
            if result:
                write_result(result, report)
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        """As `Benchmark.table`; the cost of a step is that of deciding alone."""
        if "twice" in report:
            from .twice import table as table_twice

            return table_twice(report["twice"])
        if "again" in report:
            from .again import table as table_again

            return table_again(report["again"])
        return table(report["subsets"], self.published)

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """As `Benchmark.line`."""
        rows = next(report[key] for key in ("subsets", "twice", "again") if key in report)
        return {"world": self.world, "subsets": rows}

    def agent(
        self, config: PlannerCriticConfig, memory: LifelongMemory | None, model: ChatModel | None = None
    ) -> PlannerCriticAgent:
        """A new agent; with `memory`, one that goes on with it; with `model`, one that asks it."""
        parts = chat_parts(model, load(self.world, "skills")(config)) if model is not None else {}
        return PlannerCriticAgent.for_world(self.world, config, memory, **parts)


def scored_tasks(benchmark: PlannerBenchmark, subset: str) -> list[Any]:
    """The tasks of a subset without those whose goal holds before anything is done."""
    return [task for task in benchmark.load(subset) if not getattr(task, "satisfied_at_start", False)]


def remember(
    benchmark: PlannerBenchmark,
    config: PlannerCriticConfig,
    tasks: Sequence[Any],
    on_task: Callable[[Played], None] | None = None,
) -> LifelongMemory | None:
    """The memory of an agent that lived through these tasks; None for one that keeps nothing between tasks."""
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
    model: ChatModel | None = None,
    *,
    trace: TextIO | None = None,
    name: str = "",
    **options: Any,
) -> list[Played]:
    """Outcomes of the tasks, each played by an agent that starts with its own fork of `memory`, and may ask `model`.

    It is written to `trace` under its `name`. `options` are the env's.
    """
    world = envs.make(benchmark.world, tasks=list(tasks), num_envs=1, **options)
    outcomes = []
    for index in range(len(tasks)):
        agent = benchmark.agent(config, memory.fork() if memory is not None else None, model)
        lists_actions = benchmark.lists_actions or model is not None
        outcomes += rollout(world, [traced(agent, trace, name)], [[index]], lists_actions=lists_actions)
    return outcomes


def play_all(
    benchmark: PlannerBenchmark,
    config: PlannerConfig,
    models: Models,
    finished: Finished[AgentNumbers],
    model: ChatModel | None = None,
    trace: TextIO | None = None,
) -> list[EpisodeResult]:
    """Every episode, in order of subsets, deliveries and agents, tasks, seeds; `model` is asked by the chat agent.

    Episodes are written to `trace`.
    """
    subsets = {
        subset: scored_tasks(benchmark, subset)[: config.num_tasks or None]
        for subset in config.subsets or benchmark.subsets
    }
    seeds = {**dict.fromkeys(config.settings, config.seeds), **dict.fromkeys(config.agents, (0,))}

    def is_left(name: str, subset: str, task: Any) -> bool:
        return any((name, f"{subset}/{seed}", task.name) not in finished.rows for seed in seeds[name])

    open_parts = {
        (name, subset): numbers
        for name in config.settings
        for subset, tasks in subsets.items()
        if (numbers := [number for number, task in enumerate(tasks) if is_left(name, subset, task)])
    }
    if open_parts:
        from embodied_mem.evaluation.benchmarks.delivery import play_deliveries

        play_deliveries(
            config.world, models, open_parts, subsets, settings=config.settings, training_tasks=config.training_tasks,
            seeds=config.seeds, temperature=config.temperature,
            on_episode=lambda name, subset, task, seed, row: finished.add(name, f"{subset}/{seed}", task.name, row),
            on_played=functools.partial(write_delivered, trace) if trace else None,
        )  # fmt: skip
    training = benchmark.training()[: config.training_tasks or None]
    memories: dict[tuple[tuple[str, ...], bool], LifelongMemory | None] = {}
    for name in config.agents:
        left = [(subset, task) for subset, tasks in subsets.items() for task in tasks if is_left(name, subset, task)]
        if not left:
            continue
        agent, asked = _CONFIGS[name], [model] if name == CHAT_AGENT and model is not None else []
        options: dict[str, Any] = {"ends_when_won": False} if name in UNTOLD else {}
        key = agent.modules, agent.retries
        if key not in memories:  # what is remembered does not depend on who criticises later
            with Progress(f"{name}: training tasks", len(training) if agent.long_term else 0, unit="task") as progress:
                memories[key] = remember(
                    benchmark, dataclasses.replace(agent, critic=True), training, progress_of(progress)
                )
        with Progress(name, len(left), unit="task") as progress:
            for subset, task in left:
                before = _tokens(model)
                [outcome] = play(benchmark, agent, memories[key], [task], *asked, trace=trace, name=name, **options)
                row = numbers_of(outcome)._replace(tokens=_tokens(model) - before)
                finished.add(name, f"{subset}/0", task.name, row)
                progress.update(won=outcome.won)
    return [
        episode_of(name, subset, task.name, seed, finished.rows[name, f"{subset}/{seed}", task.name])
        for subset, tasks in subsets.items()
        for name in seeds
        for task in tasks
        for seed in seeds[name]
    ]


def _tokens(model: ChatModel | None) -> int:
    return 0 if model is None else model.meter.prompt_tokens + model.meter.completion_tokens


def numbers_of(outcome: Played) -> AgentNumbers:
    """What is kept of an agent's episode."""
    record = outcome.record
    milliseconds = 1000 * (record.memory_s + record.think_s)
    return AgentNumbers(int(outcome.won), outcome.progress, record.steps, record.plans, record.vetoes, 0, milliseconds)


def episode_of(agent: str, subset: str, task: str, seed: int, row: AgentNumbers) -> EpisodeResult:
    """The result of an episode from its numbers."""
    return EpisodeResult(
        agent, task, bool(row.won), row.progress, row.steps, subset=subset, seed=seed, tokens=row.tokens,
        milliseconds=row.milliseconds, more={"plans": row.plans, "vetoes": row.vetoes, **row.more},
    )  # fmt: skip


def progress_of(progress: Progress) -> Callable[[Played], None]:
    """What `rollout` calls when a task ends."""
    return lambda outcome: progress.update(won=outcome.won)


def rows_of(episodes: Sequence[EpisodeResult]) -> dict[str, dict[str, dict[str, Any]]]:
    """Numbers of each subset and agent: 95 % intervals, paired differences to the full agent or else to `none`.

    A task counts as the mean of its seeds.
    """
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for subset in dict.fromkeys(episode.subset for episode in episodes):
        columns = {
            name: _columns([episode for episode in episodes if (episode.subset, episode.agent) == (subset, name)])
            for name in dict.fromkeys(episode.agent for episode in episodes)
        }
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
            rows[subset][name] = row | _delivered(episodes, subset, name)
    return rows


def _columns(episodes: Sequence[EpisodeResult]) -> dict[str, np.ndarray]:
    """float[tasks] by field of `AgentNumbers`, of the episodes of one agent, tasks by seeds."""
    tasks = len({episode.task for episode in episodes})
    return {
        column: np.array([episode.more.get(column, getattr(episode, column, 0)) for episode in episodes], float)
        .reshape(tasks, -1)
        .mean(1)
        for column in AgentNumbers._fields[:-1]
    }


def _delivered(episodes: Sequence[EpisodeResult], subset: str, name: str) -> dict[str, Any]:
    """Columns that only deliveries have: what the executor reads and writes, and how often nothing is said."""
    own = [episode for episode in episodes if (episode.subset, episode.agent) == (subset, name)]
    if not all("withheld" in episode.more for episode in own):
        return {}
    steps = max(sum(episode.steps for episode in own), 1)
    total = {key: sum(episode.more[key] for episode in own) for key in own[0].more}
    costs = {
        "executor_tokens_in": "executor_in", "executor_tokens_out": "executor_out",
        "executor_prefill_ms": "prefill_ms", "executor_decode_ms": "decode_ms",
    }  # fmt: skip
    return {f"{key}_per_step": total[column] / steps for key, column in costs.items()} | withheld_row(
        withheld_of(total)
    )


def cost_cells(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Cells with the tokens and milliseconds of a step, over all the rows."""
    steps = max(sum(row["steps"] for row in rows), 1e-9)
    tokens, ms = (sum(row[key] * row["steps"] for row in rows) / steps for key in ("tokens_per_step", "ms_per_step"))
    return [f"{tokens:.0f}", f"{ms:.1f}"]


def table(rows: Mapping[str, Mapping[str, Mapping[str, Any]]], published: Sequence[Published]) -> str:
    """Return the comparison as a Markdown table; agents that end the episode themselves first, published figures last.

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
