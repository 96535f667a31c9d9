"""Scores agents by rules and deliveries by small models on a sample of ScienceWorld; `evaluate.py` calls it.

    python experiments/evaluate.py --config=scienceworld --result experiments/results/scienceworld.json
    python experiments/evaluate.py --config=scienceworld --agents planner_critic --games boil melt
    python experiments/evaluate.py --config=scienceworld --deliveries none static compiled --weights RUN/weights

Needs Java (`pip install "embodied_mem[scienceworld]"` brings one). First the memory: gold paths of training variations,
which the simulator works out. Then every agent plays every sampled variation; agents learn nothing from what is scored.
Paths and finished episodes are kept beside the result: a command that is stopped goes on where it was when it is given
again. Ends with the table, published figures below, and one JSON line.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence

NOTE = (
    "Agents by rules and, as `model`, two models of 0.4 million parameters, on the simulator's own descriptions; the "
    "memory is the simulator's own solution of a training variation. The paper's rows are language models on other "
    "tasks (90 descriptions of 16 kinds, written anew), for orientation and no comparison."
)
COLUMNS = ("won", "score", "subgoals", "steps", "failed", "plans", "repairs", "tokens", "ms")


def arguments_of(arguments: list[str]) -> tuple[argparse.Namespace, object]:
    """(options, configuration with what the command line changes)."""
    from embodied_mem.agents.scienceworld_agents import AGENTS
    from experiments.configs.scienceworld import config as default

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--config", required=True, choices=["scienceworld"])
    add("--agents", nargs="*", choices=list(AGENTS), help="default: all")
    add("--deliveries", nargs="*", choices=["none", "static", "compiled"], help="by the weights; default: none")
    add("--weights", help="folder with models trained by --config=scienceworld_train")
    add("--games", nargs="+", help="names of tasks; default: all 30")
    add("--split", choices=["test", "dev"], help="default: test")
    add("--variations", type=int, help="scored of each task")
    add("--memories", type=int, help="gold paths of training variations of each task")
    add("--result", default="", help="write the JSON report to this file; what is finished is kept beside it")
    options = parser.parse_args(arguments)
    config = default()
    changes = {field.name: getattr(options, field.name, None) for field in dataclasses.fields(config)}
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in changes.items() if v is not None}
    return options, dataclasses.replace(config, **given)


def spread(variations: Sequence[int], count: int) -> list[int]:
    """`count` of them, evenly spaced from the first on; all where there are fewer."""
    count = min(count, len(variations))
    return [variations[len(variations) * i // count] for i in range(count)]


def remember(config, variations: dict[str, dict[str, list[int]]], path: pathlib.Path, belongs_to: dict) -> list:
    """Gold paths of training variations with the answers to their commands, from the file or played now."""
    from embodied_mem.agents.scienceworld_memory import GoldPath
    from embodied_mem.envs.scienceworld_jvm import Simulator
    from embodied_mem.training.progress import Progress
    from experiments.finished import Finished

    wanted = [
        (game, variation)
        for game, found in variations.items()
        for variation in spread(found["train"], 4)[: 1 if game in config.slow_games else config.memories]
    ]
    finished = Finished(path, belongs_to)
    left = [(game, variation) for game, variation in wanted if ("gold", game, variation) not in finished.rows]
    if left:
        with Simulator() as simulator, Progress("gold paths of training", len(left), unit="path") as progress:
            for game, variation in left:
                commands = simulator.gold_path(game, variation)
                simulator.load(game, variation)
                first, answers = simulator.first_text, []
                for command in commands:
                    text, _, completed = simulator.step(command)
                    answers.append(text)
                    if completed:
                        break
                row = [simulator.goal, first, commands[: len(answers)], answers]
                finished.add("gold", game, variation, row)
                progress.update()
    paths = []
    for game, variation in wanted:
        goal, first, commands, answers = finished.rows["gold", game, variation]
        paths.append(GoldPath(game, variation, goal, first, tuple(commands), tuple(answers)))
    return paths


def play(envs, index: int, agent) -> list:
    """The outcome of one task, in the order of `COLUMNS`; an episode whose process died is played again, once.

    Raises:
        SimulatorError: the process died twice.
    """
    from embodied_mem.agents.scienceworld_words import outcome_of
    from embodied_mem.errors import SimulatorError

    counted = ("plans", "repairs")
    for _ in range(2):
        observations, info = envs.reset(options={"task_indices": [index]})
        goal = info["goal"][0]
        player = agent.play(goal, observations[0].removesuffix(f"\n\n{goal}"))
        steps, over, answer, thought_s = 0, False, None, 0.0
        while not over:
            started = time.perf_counter()
            try:
                command = player.send(answer)
            except StopIteration:  # it has nothing more to do
                break
            thought_s += time.perf_counter() - started
            observations, _, ended, cut, info = envs.step([command])
            answer, steps, over = observations[0], steps + 1, bool(ended[0] or cut[0])
        if not info["crashed"][0]:
            return [*outcome_of(envs, info, 0, steps), *(getattr(agent, n, 0) for n in counted), 0, 1000 * thought_s]
    raise SimulatorError(f"ScienceWorld's process died twice in {info['task_id'][0]}; give the same command again")


def play_all(config, variations: dict[str, dict[str, list[int]]], paths: list, finished) -> dict[str, dict[str, list]]:
    """Outcomes by agent and task id."""
    from embodied_mem import envs
    from embodied_mem.agents.scienceworld_agents import AGENTS
    from embodied_mem.agents.scienceworld_memory import Memories
    from embodied_mem.training.progress import Progress

    memories = Memories(paths)
    tasks = [
        f"{game}/{variation}"
        for game, found in variations.items()
        for variation in spread(found[config.split], config.variations)
    ]
    left = [(i, name) for i in range(len(tasks)) for name in config.agents]
    left = [(i, name) for i, name in left if (name, config.split, tasks[i]) not in finished.rows]
    rows = {f"model {name}": name for name in config.deliveries}
    for row, delivery in rows.items():
        missing = [task for task in tasks if (row, config.split, task) not in finished.rows]
        play_delivery(config, delivery, missing, paths, lambda *given, row=row: finished.add(row, config.split, *given))
    if left:
        world = envs.make("scienceworld", tasks=tasks, max_steps=config.max_steps, lists_commands=False)
        try:
            with Progress("episodes", len(left), unit="episode") as progress:
                for i, name in left:
                    row = play(world, i, AGENTS[name](memories))
                    finished.add(name, config.split, tasks[i], row)
                    progress.update(won=bool(row[0]))
        finally:
            world.close()
    return {name: {task: finished.rows[name, config.split, task] for task in tasks} for name in (*config.agents, *rows)}


def play_delivery(config, name: str, tasks: list[str], paths: list, on_task: Callable[[str, list], None]) -> None:
    """Plays tasks by the models of `config.weights` with one delivery of memory, some of them side by side.

    Args:
        config: of the evaluation.
        name: of the delivery.
        tasks: ids.
        paths: the memory.
        on_task: gets the id and the outcome, in the order of `COLUMNS`.

    Raises:
        SimulatorError: a process died.
    """
    if not tasks:
        return
    from embodied_mem import envs
    from embodied_mem.agents.deliveries import make_delivery
    from embodied_mem.agents.player import play
    from embodied_mem.agents.scienceworld_words import BriefScienceWorld, PathBank
    from embodied_mem.errors import SimulatorError
    from embodied_mem.models.host import keep_freed_memory
    from embodied_mem.training import stages
    from embodied_mem.training.progress import Progress
    from experiments.scoring import cost_of

    keep_freed_memory()
    bundle = models_in(config.weights)
    trained, bank = bundle.config, PathBank(paths)
    ev = trained.evaluation
    settings = {
        "temperature": ev.temperature,
        "batch_buckets": (ev.batch_size,),
        "placement": stages.placement(trained),
    }
    executor = stages.make_executor(trained, bundle.executor, bundle.tokenizer, **settings)
    compiler = stages.make_compiler(trained, bundle.model, bundle.tokenizer, **settings)
    size = min(ev.batch_size, len(tasks))
    world = envs.make("scienceworld", tasks=tasks, num_envs=size, max_steps=config.max_steps, lists_commands=False)
    try:
        with Progress(f"model {name}", len(tasks), unit="episode") as progress:
            for first in range(0, len(tasks), size):
                numbers = range(first, min(first + size, len(tasks)))
                brief = BriefScienceWorld(world)
                played = play(
                    brief, executor, make_delivery(name, compiler), bank, tasks=numbers, seeds=[0] * len(numbers),
                    top_k=trained.memory.top_k, full_turns=trained.memory.full_turns,
                )  # fmt: skip
                for number, outcome, trajectory in zip(numbers, brief.outcomes, played):
                    if outcome is None:
                        raise SimulatorError(f"a process died in {tasks[number]}; give the same command again")
                    on_task(tasks[number], [*outcome, 0, 0, *cost_of(trajectory)])
                progress.update(len(numbers))
    finally:
        world.close()


@functools.cache
def models_in(weights: str):
    """The models in a folder, read once. Raises InvalidInputError for those of another world."""
    from embodied_mem.training.weights import load_bundle
    from experiments.scoring import refuse_weights

    bundle = load_bundle(pathlib.Path(weights))
    if bundle.config.world.name != "scienceworld":
        refuse_weights(weights, bundle.config.world.name, "scienceworld")
    return bundle


def rows_of(played: dict[str, dict[str, list]]) -> dict[str, dict]:
    """The numbers of each agent with 95 % intervals; variations of one task are no independent tasks."""
    import numpy as np

    from embodied_mem.evaluation.intervals import paired_difference, wilson

    # [columns, tasks, variations]: ids of one task stand together, and each task has equally many
    games = list(dict.fromkeys(task.partition("/")[0] for task in next(iter(played.values()))))
    columns = {
        name: np.moveaxis(np.array(list(outcomes.values()), float).reshape(len(games), -1, len(COLUMNS)), 2, 0)
        for name, outcomes in played.items()
    }
    rows: dict[str, dict] = {}
    for name, values in columns.items():
        column = dict(zip(COLUMNS, values))
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


def table(rows: dict[str, dict]) -> str:
    """The comparison as a Markdown table, published figures below."""
    from experiments.evaluate_planner import cost_cells
    from experiments.published import PUBLISHED

    lines = [
        "| agent | success | score (0 to 100) | subgoals | steps | failed | tokens/step | ms/step |",
        "|" + "---|" * 8,
    ]
    for name, row in rows.items():
        low, high = (100 * value for value in row["interval"])
        score, subgoals = row["score"], [100 * value for value in row["subgoals"]]
        lines.append(
            f"| {name} | {100 * row['success']:.1f} % [{low:.1f}, {high:.1f}] "
            f"| {score[0]:.1f} [{score[1]:.1f}, {score[2]:.1f}] "
            f"| {subgoals[0]:.1f} % [{subgoals[1]:.1f}, {subgoals[2]:.1f}] "
            f"| {row['steps']:.1f} | {100 * row['failed']:.1f} % | {' | '.join(cost_cells([row]))} |"
        )
    for published in PUBLISHED["scienceworld"]:
        success, partial = published.rows["test"]
        lines.append(
            f"| *{published.name}* | {success:g} % | - | {'-' if partial is None else f'{partial:g} %'} |" + " - |" * 4
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> dict:
    """Plays, prints the table, returns the report.

    Raises:
        InvalidInputError: a task that does not exist, more variations than one of the tasks has, or weights of another
            world.
        MissingDependencyError: Java or the package `scienceworld` is not installed.
    """
    options, config = arguments_of(arguments)
    from embodied_mem.envs.scienceworld_jvm import game_names, official_variations
    from embodied_mem.errors import InvalidInputError
    from embodied_mem.evaluation.report import manifest
    from experiments.finished import Finished, write_whole

    started = time.perf_counter()
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
    if config.deliveries:
        models_in(config.weights)  # now, and not after the minutes that the simulator works on the memory
    facts = manifest(config=dataclasses.asdict(config), seeds=[0], planner="rules", note=NOTE)
    kept = {"memories": config.memories, "slow_games": list(config.slow_games)}
    with tempfile.TemporaryDirectory() as scratch:
        at = options.result or f"{scratch}/report"
        files = [pathlib.Path(f"{at}.{name}.jsonl") for name in ("memory", "tasks")]
        paths = remember(config, variations, files[0], kept)
        belongs_to = {"commit": facts["commit"], "max_steps": config.max_steps, "games": list(variations), **kept}
        belongs_to |= {"weights": config.weights} if config.deliveries else {}
        played = play_all(config, variations, paths, Finished(files[1], belongs_to))
        rows = rows_of(played)
        report = {
            "agents": rows,
            "outcomes": played,
            "columns": COLUMNS,
            "memory": [f"{path.game}/{path.variation}" for path in paths],
            **facts,
            "seconds": round(time.perf_counter() - started, 1),
        }
        if options.result:
            write_whole(options.result, json.dumps(report) + "\n")
        for file in files:
            file.unlink()
    print(f"\n{table(rows)}\n\n{NOTE}\n")
    shown = {name: {key: value for key, value in row.items() if key != "score_by_task"} for name, row in rows.items()}
    print(json.dumps({"world": "scienceworld", "agents": shown}))
    return report
