"""Plays ALFWorld with the planner-critic agent and its ablations, every task twice without clearing memory in between.

    python experiments/planner_critic.py                       # valid_seen, or generated games without data
    python experiments/planner_critic.py --agents full no_critic --num_tasks 50 --max_steps 30
    python experiments/planner_critic.py --server http://localhost:8000/v1 --model NAME --record calls.jsonl

By default planner and critic are rules that read nothing but the memories; with `--server` a chat model plans,
criticises, summarises and asks, and a recording makes the same command give the same result again. A life is one robot
with one memory; each plays its share of the tasks in order, and then all of them once more. `no_long_term` forgets
everything after each task, so that its two runs are the same. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


def arguments_of(arguments: list[str] | None) -> argparse.Namespace:
    """The parsed command line."""
    from embodied_mem.agents.planner_critic import ABLATIONS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tasks", default="", help="a split, a folder of game files, or `generated`; default: valid_seen if installed")
    add("--num_tasks", type=int, default=0, help="so many games, drawn by --seed; 0 takes all (100 if generated)")
    add("--agents", nargs="+", default=list(ABLATIONS), choices=list(ABLATIONS), help="default: all")
    add("--runs", type=int, default=2, help="how often the tasks are played")
    add("--lives", type=int, default=1, help="robots that share the tasks, each with its own memory, in lockstep")
    add("--max_steps", type=int, default=50, help="episode limit")
    add("--seed", type=int, default=0, help="order of the tasks, and generated games")
    add("--grammar", default="0.4", choices=["0.4", "0.3"], help="wording of commands")
    add("--server", default="", help="base URL of an OpenAI-compatible server; default: rules")
    add("--model", default="", help="the chat model's name")
    add("--record", default="", help="file that answers of the chat model are written to and read from")
    add("--max_total_tokens", type=int, default=None, help="budget of the chat model")
    add("--result", default="", help="write the JSON report to this file")
    return parser.parse_args(arguments)


def games_for(options: argparse.Namespace) -> tuple[str, list]:
    """(source, games): shuffled by the seed, so that rooms come back after a while."""
    import numpy as np

    from embodied_mem.envs.alfworld import data_root, find_games
    from embodied_mem.envs.alfworld_generator import generate

    root = data_root()
    source = options.tasks or ("valid_seen" if root is not None and (root / "valid_seen").is_dir() else "generated")
    if source == "generated":
        games = [game.load() for game in generate(options.num_tasks or 100, seed=options.seed, split="valid")]
    else:
        games = find_games(source)
    order = np.random.default_rng(options.seed).permutation(len(games))
    return source, [games[i] for i in (order[: options.num_tasks] if options.num_tasks else order)]


def chat_parts(options: argparse.Namespace):
    """() -> keyword arguments of an agent, and the model; rules if there is no server and no recording."""
    if not options.server and not options.record:
        return dict, None
    from embodied_mem.agents.chat_planner import ChatCritic, ChatPlanner, ChatPreprocessor
    from embodied_mem.language import OpenAIChatModel, RecordedChatModel

    limit = options.max_total_tokens
    model = OpenAIChatModel(options.server, options.model, max_total_tokens=limit) if options.server else None
    if options.record:
        model = RecordedChatModel(model, options.record, name=options.model)

    def parts() -> dict:
        planner = ChatPlanner(model, grammar=options.grammar)
        return {"planner": planner, "critic": ChatCritic(model), "preprocessor": ChatPreprocessor(model)}

    return parts, model


def play(options: argparse.Namespace, games: list, parts) -> dict[str, list[list]]:
    """Outcomes by agent and run."""
    import dataclasses

    from embodied_mem import envs
    from embodied_mem.agents.lives import play_lives
    from embodied_mem.agents.planner_critic import ABLATIONS, PlannerCriticAgent
    from embodied_mem.training.progress import Progress

    lives = min(options.lives, len(games))
    shares = [list(range(life, len(games), lives)) for life in range(lives)]
    played: dict[str, list[list]] = {}
    for name in options.agents:
        config = dataclasses.replace(ABLATIONS[name], grammar=options.grammar)
        agents = [PlannerCriticAgent(config, **parts()) for _ in shares]
        world = envs.make("alfworld", tasks=games, num_envs=lives, max_steps=options.max_steps, grammar=options.grammar)
        with Progress(name, len(games) * options.runs, unit="task") as progress:
            played[name] = [
                play_lives(world, agents, shares, on_task=lambda outcome: progress.update(steps=outcome.record.steps))
                for _ in range(options.runs)
            ]
    return played


def row_of(outcomes: list, first: list | None, full: list | None) -> dict:
    """The numbers of one agent in one run; paired differences to its first run and to the full agent in this run."""
    import numpy as np

    from embodied_mem.evaluation.intervals import paired_difference, wilson

    def column(of: list, get) -> np.ndarray:
        return np.array([get(outcome) for outcome in of], float)

    def won(of: list) -> np.ndarray:
        return column(of, lambda o: o.won)

    def steps(of: list) -> np.ndarray:
        return column(of, lambda o: o.record.steps)

    num_steps = steps(outcomes).sum()
    row = {
        "success": float(won(outcomes).mean()),
        "interval": list(wilson(float(won(outcomes).mean()), len(outcomes))),
        "steps": float(steps(outcomes).mean()),
        "replans": float(column(outcomes, lambda o: o.record.replans).mean()),
        "vetoes": float(column(outcomes, lambda o: o.record.vetoes).mean()),
        "memory_ms_per_step": 1e3 * float(column(outcomes, lambda o: o.record.memory_s).sum()) / num_steps,
        "planning_ms_per_step": 1e3 * float(column(outcomes, lambda o: o.record.think_s).sum()) / num_steps,
    }
    for name, other in (("first_run", first), ("full", full)):
        if other is not None and other is not outcomes:
            row[f"success_difference_to_{name}"] = list(paired_difference(won(outcomes), won(other)))
            row[f"steps_difference_to_{name}"] = list(paired_difference(steps(outcomes), steps(other)))
    return row


def table(rows: dict[str, list[dict]]) -> str:
    """The comparison as a Markdown table."""
    lines = [
        "| agent | run | success | 95 % interval | vs full, paired | steps | steps vs full | steps vs first run | "
        "replans | vetoes | memory ms/step |",
        "|" + "---|" * 11,
    ]

    def difference(row: dict, key: str, scale: float, digits: int) -> str:
        if key not in row:
            return "-"
        mean, low, high = (scale * value for value in row[key])
        return f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"

    for name, runs in rows.items():
        for run, row in enumerate(runs, 1):
            low, high = row["interval"]
            cells = [
                name, str(run), f"{100 * row['success']:.1f} %", f"{100 * low:.1f} to {100 * high:.1f}",
                difference(row, "success_difference_to_full", 100, 1), f"{row['steps']:.2f}",
                difference(row, "steps_difference_to_full", 1, 2),
                difference(row, "steps_difference_to_first_run", 1, 2),
                f"{row['replans']:.2f}", f"{row['vetoes']:.2f}", f"{row['memory_ms_per_step']:.2f}",
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> dict:
    options = arguments_of(arguments)
    from embodied_mem.errors import InvalidInputError
    from embodied_mem.evaluation.report import manifest

    for name in ("runs", "lives", "max_steps"):
        if getattr(options, name) < 1:
            raise InvalidInputError(f"--{name}: expected >= 1, got {getattr(options, name)}")
    started = time.perf_counter()
    source, games = games_for(options)
    parts, model = chat_parts(options)
    played = play(options, games, parts)
    full = played.get("full")
    rows = {
        name: [row_of(outcomes, runs[0], full[run] if full else None) for run, outcomes in enumerate(runs)]
        for name, runs in played.items()
    }
    report = {
        "agents": rows,
        "num_tasks": len(games),
        "outcomes": {
            name: [[[int(o.won), o.record.steps, o.record.replans, o.record.vetoes] for o in run] for run in runs]
            for name, runs in played.items()
        },
        **manifest(
            tasks=source, seed=options.seed, lives=options.lives, runs=options.runs, max_steps=options.max_steps,
            grammar=options.grammar, planner=model.name if model else "rules",
            usage=model.meter.to_json() if model else None, seconds=round(time.perf_counter() - started, 1),
        ),
    }  # fmt: skip
    if options.result:
        pathlib.Path(options.result).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(options.result).write_text(json.dumps(report) + "\n")
    print(f"\n{table(rows)}\n\n{len(games)} tasks ({source}), at most {options.max_steps} steps.\n")
    print(json.dumps({"agents": rows, "num_tasks": len(games), "seed": options.seed}))
    return report


if __name__ == "__main__":
    from experiments.command import run

    run(main)
