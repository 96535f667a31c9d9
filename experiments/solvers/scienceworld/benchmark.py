"""Scores agents by rules and deliveries by small models on a sample of ScienceWorld's variations.

    --agents planner_critic --games boil melt
    --agents --deliveries none static compiled --weights RUN/weights

Needs Java (`pip install "embodied_mem[scienceworld]"` brings one). First the memory: gold paths of training variations,
which the simulator works out. Then every agent plays every sampled variation; agents learn nothing from what is scored.
Paths and finished episodes are kept beside the result.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from embodied_mem import envs
from embodied_mem.agents.agent import CommandGenerator
from embodied_mem.agents.rollout import rollout
from embodied_mem.agents.trace import open_trace, traced, write_delivered
from embodied_mem.envs.vector_env import NativeVectorEnv
from embodied_mem.errors import InvalidInputError, SimulatorError
from embodied_mem.evaluation.benchmark import EpisodeResult, Published, chosen_by, episodes_data, option, trace_option
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.intervals import paired_difference, wilson
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import markdown, percent, rate
from embodied_mem.parallel.resume import Finished, kept_beside
from embodied_mem.progress import Progress
from embodied_mem.worlds.scienceworld.beginnings import is_native
from embodied_mem.worlds.scienceworld.jvm import SOLVES_S, Simulator, game_names, official_variations
from experiments.solvers.embodiedbench import cost_cells

from .agents import AGENTS, NO_MEMORY, OWN
from .gold_paths import GoldPath, Memories
from .narration import BriefScienceWorld, Outcome, PathBank, outcome_of
from .recordings import spread

if TYPE_CHECKING:
    from embodied_mem.agents.rollout import Trajectory
    from embodied_mem.training.bundle import Bundle

DESCRIPTION = __doc__
NOTE = (
    "Agents by rules and, as `model`, two models of 0.4 million parameters, on the simulator's own descriptions; the "
    "memory is the simulator's own solution of a training variation. The paper's rows are language models on other "
    "tasks (90 descriptions of 16 kinds, written anew), for orientation and no comparison."
)

OWN_TRIES, OWN_ROUNDS = 4, 2
"""Training variations of each kind that the agent with its own memory plays at most, and how often."""

Played = dict[str, dict[str, Outcome]]
"""Outcomes by agent and task id."""

Variations = dict[str, dict[str, list[int]]]
"""Variations by task and split."""

PUBLISHED = (
    Published("MemCompiler: Qwen-2.5-14B, no memory", {"test": (31.11, 45.26)}),
    Published("MemCompiler: Qwen-2.5-14B, static injection", {"test": (27.93, 52.68)}),
    Published("MemCompiler: Qwen-2.5-14B, A-Mem", {"test": (34.44, None)}),
    Published("MemCompiler: Qwen-2.5-14B, compiled", {"test": (46.67, 69.33)}),
    Published("MemCompiler: Qwen-3.5-27B, no memory", {"test": (21.11, None)}),
    Published("MemCompiler: Qwen-3.5-27B, compiled", {"test": (48.44, None)}),
    Published("MemCompiler: GPT-5.2, no memory", {"test": (25.55, None)}),
    Published("MemCompiler: GPT-5.2, A-Mem", {"test": (50, None)}),
    Published("MemCompiler: Gemini-3-flash, no memory", {"test": (45.55, None)}),
    Published("MemCompiler: Gemini-3-flash, LangMem", {"test": (50.82, None)}),
)
"""MemCompiler's 90 tasks of 16 kinds, with descriptions written anew (AgentSquare's); RoboMemory has none."""


@dataclasses.dataclass(frozen=True)
class ScienceWorldConfig:
    """Options of play, and:

    Attributes:
        slow_games: tasks whose gold paths take the simulator a minute each, one memory of which is enough.
        max_steps: of an episode, the original's limit.
    """

    agents: tuple[str, ...] = option(tuple(AGENTS), "agents that are scored; none for deliveries alone", choices=AGENTS)
    deliveries: tuple[str, ...] = option((), "of memory, by the weights", choices=("none", "static", "compiled"))
    weights: str = option("", "folder with models trained by --config=scienceworld")
    games: tuple[str, ...] = option((), "names of tasks; default: all 30")
    split: str = option("test", "that is scored", choices=("test", "dev"))
    variations: int = option(2, "scored of each task, evenly spaced over the split's")
    memories: int = option(2, "gold paths of each task: of four evenly spaced training variations the first 1 to 4")
    trace: pathlib.Path | None = trace_option("what is played now, training episodes not included")
    slow_games: tuple[str, ...] = ("mendelian-genetics-known-plant", "mendelian-genetics-unknown-plant")
    max_steps: int = 100


class ScienceWorldBenchmark:
    """Scores of agents and deliveries on a sample of ScienceWorld's variations."""

    description = DESCRIPTION
    config = ScienceWorldConfig()
    published = PUBLISHED

    def evaluate(
        self, config: ScienceWorldConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        """Evaluate as `Benchmark.evaluate`.

        Raises:
            InvalidInputError: a task that does not exist, more variations than one of the tasks has, or weights of
                another world.
            MissingDependencyError: Java or the package `scienceworld` is not installed.
        """
        started = time.perf_counter()
        variations = variations_of(config)
        models = models or Models(config.weights)
        if config.deliveries:
            models_in(models)  # now, and not after the minutes that the simulator works on the memory
        facts = manifest(config=chosen_by(config), seeds=[0], planner="rules", note=NOTE)
        kept = {"memories": config.memories, "slow_games": list(config.slow_games)}
        belongs_to = {"commit": facts["commit"], "max_steps": config.max_steps, "games": list(variations), **kept}
        belongs_to |= {"weights": config.weights} if config.deliveries else {}
        with (
            kept_beside(result, "memory", kept, GoldRow) as memory,
            kept_beside(result, "tasks", belongs_to, Outcome) as finished,
        ):
            paths = remember(config, variations, memory)
            own = remember_own(config, variations, memory) if OWN in config.agents else []
            with open_trace(config.trace) as trace:
                played = play_all(config, models, variations, paths, own, finished, trace)
            report = {
                "agents": rows_of(played),
                "memory": [f"{path.game}/{path.variation}" for path in paths],
                "own_won": [f"{path.game}/{path.variation}" for path in own if path.won],
                "native": [game for game in variations if is_native(game)],
                **facts,
                "seconds": round(time.perf_counter() - started, 1),
                **episodes_data("scienceworld", episodes_of(played), **kept, max_steps=config.max_steps),
            }
            if result:
                write_result(result, report)
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        text, native = table(report["agents"]), report.get("native")
        return f"{text}\n\nPlayed natively: {', '.join(native)}." if native else text

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        shown = {
            name: {key: value for key, value in row.items() if key != "score_by_task"}
            for name, row in report["agents"].items()
        }
        return {"world": "scienceworld", "agents": shown}


BENCHMARK = ScienceWorldBenchmark()


def variations_of(config: ScienceWorldConfig) -> Variations:
    """Return variations by task and split.

    The splits are training and the one that is scored. It raises as `evaluate`.
    """
    if unknown := [game for game in config.games if game not in game_names()]:
        raise InvalidInputError(f"--games: expected some of {', '.join(game_names())}, got {unknown[0]!r}")
    splits = {split: official_variations(split) for split in ("train", config.split)}
    variations = {
        game: {split: [number for name, number in found if name == game] for split, found in splits.items()}
        for game in config.games or game_names()
    }
    fewest = min(len(found[config.split]) for found in variations.values())
    if not 1 <= config.variations <= fewest:
        raise InvalidInputError(f"--variations: expected 1 to {fewest}, got {config.variations}")
    if not 1 <= config.memories <= 4:
        raise InvalidInputError(f"--memories: expected 1 to 4, got {config.memories}")
    if config.deliveries and not config.weights:
        raise InvalidInputError("--deliveries: expected --weights, a folder of models, got none")
    return variations


def episodes_of(played: Played) -> list[EpisodeResult]:
    """Return results of episodes; variations of one task are no independent tasks."""
    return [
        EpisodeResult(
            name, task, bool(row.won), row.subgoals, row.steps, group=task.partition("/")[0],
            tokens=row.tokens, milliseconds=row.ms,
            more={"score": row.score, "failed": row.failed, "plans": row.plans, "repairs": row.repairs},
        )
        for name, outcomes in played.items() for task, row in outcomes.items()
    ]  # fmt: skip


class GoldRow(NamedTuple):
    """The stored part of a gold path."""

    goal: str
    first: str
    commands: Sequence[str]
    answers: Sequence[str]
    won: int = 1


def remember(config: ScienceWorldConfig, variations: Variations, finished: Finished[GoldRow]) -> list[GoldPath]:
    """Return gold paths of training variations with answers to their commands.

    They are from the file or played now.
    """
    wanted = [
        (game, variation)
        for game, found in variations.items()
        for variation in spread(found["train"], 4)[: 1 if game in config.slow_games else config.memories]
    ]
    left = [(game, variation) for game, variation in wanted if ("gold", game, str(variation)) not in finished.rows]
    if left:
        with (
            Simulator(answers_within_s=SOLVES_S) as simulator,
            Progress("gold paths of training", len(left), unit="path") as progress,
        ):
            for game, variation in left:
                commands = simulator.gold_path(game, variation)
                simulator.load(game, variation)
                first, answers = simulator.first_text, list[str]()
                for command in commands:
                    text, _, completed = simulator.step(command)
                    answers.append(text)
                    if completed:
                        break
                row = GoldRow(simulator.goal, first, commands[: len(answers)], answers)
                finished.add("gold", game, str(variation), row)
                progress.update()
    paths = []
    for game, variation in wanted:
        row = finished.rows["gold", game, str(variation)]
        paths.append(GoldPath(game, variation, row.goal, row.first, tuple(row.commands), tuple(row.answers)))
    return paths


def remember_own(config: ScienceWorldConfig, variations: Variations, finished: Finished[GoldRow]) -> list[GoldPath]:
    """Return the agent's own episodes on training variations, won and lost.

    Of each kind `OWN_TRIES` variations are played, in order, until one is won; kinds that were not won are played once
    more when all kinds have been. What was played before is what the agent remembers.
    """
    tries = [(game, v) for game, found in variations.items() for v in spread(found["train"], OWN_TRIES)]
    world = envs.make(
        "scienceworld", tasks=[f"{game}/{v}" for game, v in tries], max_steps=config.max_steps, lists_commands=False
    )
    paths: list[GoldPath] = []
    won = set[str]()
    try:
        with Progress("own training episodes", OWN_ROUNDS * len(tries), unit="episode") as progress:
            for turn, (i, (game, v)) in itertools.product(range(OWN_ROUNDS), enumerate(tries)):
                progress.update(won=game in won)
                if game in won:
                    continue
                key = ("own", game, f"{turn}/{v}")
                if key not in finished.rows:
                    firsts, info = world.reset(options={"task_indices": [i]})
                    [played] = rollout(world, [AGENTS[OWN](Memories(paths))], [[i]])
                    first = firsts[0].partition("\n\n")[0]
                    finished.add(*key, GoldRow(info["goal"][0], first, played.actions, played.answers, played.won))
                row = finished.rows[key]
                paths.append(
                    GoldPath(game, v, row.goal, row.first, tuple(row.commands), tuple(row.answers), bool(row.won))
                )
                won.update([game] if row.won else [])
    finally:
        world.close()
    return paths


def play(
    envs: NativeVectorEnv, index: int, agent: CommandGenerator, trace: TextIO | None = None, name: str = ""
) -> Outcome:
    """Play one task; after its process died, play it once more.

    `trace` gets both episodes, under `name`.

    Raises:
        SimulatorError: the process died twice.
    """
    for _ in range(2):
        [played] = rollout(envs, [traced(agent, trace, name)], [[index]])
        if not played.info["crashed"][0]:
            counted = {name: getattr(agent, name, 0) for name in ("plans", "repairs")}
            return outcome_of(envs, played.info, 0, len(played.actions))._replace(ms=1000 * played.seconds, **counted)
    raise SimulatorError(f"ScienceWorld's process died twice in {envs.task_id(index)}; give the same command again")


def play_all(
    config: ScienceWorldConfig,
    models: Models,
    variations: Variations,
    paths: Sequence[GoldPath],
    own: Sequence[GoldPath],
    finished: Finished[Outcome],
    trace: TextIO | None = None,
) -> Played:
    """Plays what is not finished; steps are written to `trace`."""
    remembered: dict[str, Sequence[GoldPath]] = {OWN: own, NO_MEMORY: ()}
    memories = {name: Memories(remembered.get(name, paths)) for name in config.agents}
    tasks = [
        f"{game}/{variation}"
        for game, found in variations.items()
        for variation in spread(found[config.split], config.variations)
    ]
    left = [(i, name) for i in range(len(tasks)) for name in config.agents]
    left = [(i, name) for i, name in left if (name, config.split, tasks[i]) not in finished.rows]
    rows = {f"model {name}": name for name in config.deliveries}
    for row, delivery in rows.items():
        if any((row, config.split, task) not in finished.rows for task in tasks):
            play_delivery(config, models, row, delivery, tasks, paths, finished, trace)
    if left:
        world = envs.make("scienceworld", tasks=tasks, max_steps=config.max_steps, lists_commands=False)
        try:
            with Progress("episodes", len(left), unit="episode") as progress:
                for i, name in left:
                    outcome = play(world, i, AGENTS[name](memories[name]), trace, name)
                    finished.add(name, config.split, tasks[i], outcome)
                    progress.update(won=bool(outcome.won))
        finally:
            world.close()
    return {name: {task: finished.rows[name, config.split, task] for task in tasks} for name in (*config.agents, *rows)}


def play_delivery(
    config: ScienceWorldConfig,
    models: Models,
    name: str,
    delivery: str,
    tasks: Sequence[str],
    paths: Sequence[GoldPath],
    finished: Finished[Outcome],
    trace: TextIO | None = None,
) -> None:
    """Play tasks by models with a delivery of the memory `paths`.

    The tasks are given by ids; the row is `name`.

    Raises:
        SimulatorError: a process died.
    """
    from embodied_mem.agents.deliveries import make_delivery
    from embodied_mem.evaluation.score import play_batches, result_of
    from embodied_mem.models.host import keep_freed_memory, set_gpu_flags

    set_gpu_flags()
    keep_freed_memory()
    bundle = models_in(models)
    ev = bundle.config.evaluation
    executor, compiler = bundle.acting(temperature=ev.temperature, batch_buckets=(ev.batch_size,))
    size = min(ev.batch_size, len(tasks))
    world = envs.make("scienceworld", tasks=tasks, num_envs=size, max_steps=config.max_steps, lists_commands=False)
    brief = BriefScienceWorld(world)

    def row_of(trajectory: Trajectory, number: int) -> Outcome:
        if (outcome := brief.outcomes[number]) is None:
            raise SimulatorError(f"a process died in {tasks[trajectory.task]}; give the same command again")
        cost = result_of(trajectory, name, 0)
        return outcome._replace(tokens=cost.tokens, ms=cost.milliseconds)

    try:
        with Progress(name, len(tasks), unit="episode") as progress:
            play_batches(
                brief, executor, make_delivery(delivery, compiler), PathBank(paths), bundle.config.memory,
                {(name, config.split, task): (number, 0) for number, task in enumerate(tasks)}, finished, row_of,
                on_played=(lambda one: write_delivered(trace, name, one, compiler)) if trace else None,
                progress=progress,
            )  # fmt: skip
    finally:
        world.close()


@functools.cache
def models_in(models: Models) -> Bundle:
    """Return the models, read once. Raises InvalidInputError for those of another world."""
    from embodied_mem.evaluation.score import refuse_weights

    bundle = models.load()
    if bundle.config.world.name != "scienceworld":
        refuse_weights(models.folder, bundle.config.world.name, "scienceworld")
    return bundle


def rows_of(played: Played) -> dict[str, dict[str, Any]]:
    """Return the numbers of each agent with 95 % intervals.

    Variations of one task are no independent tasks.
    """
    # [columns, tasks, variations]: ids of one task stand together, and each task has equally many
    games = list(dict.fromkeys(task.partition("/")[0] for task in next(iter(played.values()))))
    columns = {
        name: np.moveaxis(np.array(list(outcomes.values()), float).reshape(len(games), -1, len(Outcome._fields)), 2, 0)
        for name, outcomes in played.items()
    }
    rows: dict[str, dict[str, Any]] = {}
    for name, values in columns.items():
        column = dict(zip(Outcome._fields, values))
        won, nothing = column["won"], np.zeros_like(column["won"])
        row = {
            "success": float(won.mean()),
            "interval": list(wilson(float(won.mean()), len(games))),
            "score": list(paired_difference(column["score"], nothing)),
            "subgoals": list(paired_difference(column["subgoals"], nothing)),
            **{key: float(column[key].mean()) for key in ("steps", "failed", "plans", "repairs")},
            "tokens_per_step": float(column["tokens"].sum() / max(column["steps"].sum(), 1)),
            "ms_per_step": float(column["ms"].sum() / max(column["steps"].sum(), 1)),
            "episodes": int(won.size),
            "score_by_task": dict(zip(games, column["score"].mean(1).tolist())),
        }
        base = "model none" if name.startswith("model ") else "none"
        if name != base and base in columns:
            row["score_difference_to_none"] = list(paired_difference(column["score"], columns[base][1]))
        rows[name] = row
    return rows


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the comparison as a Markdown table, published figures below."""
    head = ["agent", "success", "score (0 to 100)", "subgoals", "steps", "failed", "tokens/step", "ms/step"]
    lines = []
    for name, row in rows.items():
        score, subgoals = row["score"], row["subgoals"]
        cells = [name, rate(row["success"], row["interval"]), f"{score[0]:.1f} [{score[1]:.1f}, {score[2]:.1f}]"]
        cells += [rate(subgoals[0], subgoals[1:]), f"{row['steps']:.1f}", percent(row["failed"]), *cost_cells([row])]
        lines.append(cells)
    for published in PUBLISHED:
        success, partial = ("-" if share is None else f"{share:g} %" for share in published.rows["test"])
        lines.append([f"*{published.name}*", success, "-", partial, *["-"] * 4])
    return markdown(head, lines)
