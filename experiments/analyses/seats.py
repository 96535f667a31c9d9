r"""Has a small model sit in each seat of the papers' agents, and counts what came of it.

    mkdir seats && tar -xf experiments/results/seats_qwen05.calls.tar.xz -C seats
    python experiments/analyses/seats.py --model qwen2.5-coder-0.5b --record seats \
        --result experiments/results/seats_qwen05.json

With --server a model behind OpenAI's protocol is asked; without, the recording answers. The numbers show that a seat
works, not how good the model is. MEMENTO has to be installed.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.chat import ChatCritic
from embodied_mem.agents.planner_critic.rules import NoReader
from embodied_mem.agents.robot.perceiver import Perceiver
from embodied_mem.agents.rollout import rollout
from embodied_mem.evaluation.chat_options import OTHER_MODELS, ChatOptions, chat_model
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.evaluate import main as evaluate
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.language.chat import ChatModel
from embodied_mem.memory import Experiences
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.registry import load
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import bank_of, sources_of
from embodied_mem.training.teachers.chat_teacher import ChatTeacher, TeacherStatistics
from embodied_mem.training.teachers.episodes import play_teacher

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from experiments.registered import register_all

TASKS, STEPS = 10, 15
"""Tasks of most seats, and their steps at most. `react` has eight of three steps."""
PERCEIVER_TASKS = 4
"""Tasks of the perceiver, whose recording ends there."""
_WHOLE = f"--tasks generated --num_tasks {TASKS} --max_steps {STEPS}"
COMMANDS = {
    "planner": f"--agents chat_planner_critic --repeat 1 --memory_model MODEL {_WHOLE}",
    "compiler": f"--deliveries compiled_chat --compiler_model MODEL {_WHOLE} --seeds 0 --bank_file BANK",
    "react": "--config=memento --agents react --profile --strategy reranker --num_tasks 1 --max_steps 3 "
    "--embedder lexical --triples_per_scene 1",
}
"""Options of `evaluate.py` by the seat that they fill; `memory_model` is the memory's writer, `react` asks three."""
_COUNTS = ("calls", "prompt_tokens", "completion_tokens", "malformed", "failed")


def criticise(model: ChatModel) -> dict[str, Any]:
    """Count the critic's objections to the plans of rules."""
    config = PlannerCriticConfig()
    critic = ChatCritic(model, load("alfworld", "skills")(config))
    agent = PlannerCriticAgent.for_world("alfworld", config, critic=critic)
    source, games = _games(TASKS)
    rollout(source.envs(games, 1, STEPS), [agent], [range(TASKS)], lists_actions=False)
    return {"criticised": agent.record.criticised, "objections": [words for _, words in agent.record.objections]}


def perceive(model: ChatModel) -> dict[str, Any]:
    """Count what rules win by what a perceiver reads."""
    wins: dict[str, int] = {}
    source, games = _games(PERCEIVER_TASKS)
    for name, eyes in {"by_model": Perceiver(model), "by_rules": Perceiver()}.items():
        config = PlannerCriticConfig()
        memory = LifelongMemory(modules=config.modules, perceiver=eyes, reader=NoReader())
        agent = PlannerCriticAgent.for_world("alfworld", config, memory)
        episodes = rollout(source.envs(games, 1, STEPS), [agent], [range(PERCEIVER_TASKS)], lists_actions=False)
        wins[name] = sum(one.won for one in episodes)
        if eyes.writer is not None:
            wins |= {"dropped": eyes.num_dropped, "unusable": eyes.writer.malformed}
    return wins


def teach(model: ChatModel) -> dict[str, Any]:
    """Count the teacher's answers and the games that its commands win."""
    source, games = _games(TASKS)
    statistics = TeacherStatistics()
    envs = source.envs(games, 1, STEPS)
    data = play_teacher(
        envs, range(TASKS), Experiences(), lambda _: ChatTeacher(model, source.commands(), statistics),
        top_k=1, detour=0.0, seed=0,
    )  # fmt: skip
    return dataclasses.asdict(statistics) | {"won": TASKS - data.num_lost}


APART: dict[str, Callable[[ChatModel], dict[str, Any]]] = {
    "critic": criticise, "perceiver": perceive, "teacher": teach,
}  # fmt: skip
"""Seats that the model fills beside rules."""


def _games(count: int) -> tuple[Any, Sequence[Any]]:
    [source] = sources_of(WorldConfig(num_train=32, num_valid=1), 0)
    return source, source.sides()[0][:count]


def _bank() -> Experiences:
    source, games = _games(32)
    return bank_of(source.envs(games, 32), 32, lambda _: source.teacher(), seed=0)


def score(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the rows of a command and the calls of its models."""
    report = evaluate(arguments)
    rows = next(report[name] for name in ("agents", "deliveries", "stages") if name in report)
    parts = {"model": report, **{name: report[name] for name in OTHER_MODELS if name in report}}
    calls = {name: calls_of(part["usage"]) for name, part in parts.items() if "usage" in part}
    return {"rows": without_times(rows), "calls": calls}


def without_times(value: Any) -> Any:
    """Return rows without what a machine's speed decides."""
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if "ms" not in name.split("_")}
    return [without_times(one) for one in value] if isinstance(value, list | tuple) else value


def calls_of(usage: dict[str, Any]) -> dict[str, int]:
    return {name: usage[name] for name in _COUNTS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill the seats, count, write."""
    register_all()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="", help="an OpenAI-compatible server; default: the recording alone")
    parser.add_argument("--model", required=True, help="as the server and the recording name it")
    parser.add_argument("--record", type=pathlib.Path, required=True, help="folder of the answers")
    parser.add_argument("--seats", nargs="*", choices=[*COMMANDS, *APART], default=[*COMMANDS, *APART])
    parser.add_argument("--result", type=output_file, help="JSON to write")
    options = parser.parse_args(arguments)
    report: dict[str, Any] = {}
    for seat in options.seats:
        record = str(options.record / f"{seat}.jsonl")
        if seat in APART:
            model = chat_model(
                ChatOptions(server=options.server, model=options.model, record=record), f"--seats {seat}"
            )
            report[seat] = APART[seat](model) | {"calls": {"model": calls_of(model.meter.to_json())}}
            continue
        with tempfile.TemporaryDirectory() as folder:
            bank = f"{folder}/bank.jsonl.gz"
            if "BANK" in COMMANDS[seat]:
                _bank().save(bank)
            command = COMMANDS[seat].replace("MODEL", options.model).replace("BANK", bank).split()
            report[seat] = score([*command, "--server", options.server, "--model", options.model, "--record", record])
    if options.result:
        write_result(options.result, {"seats": report, **manifest(asked=options.model)})
    for seat, row in report.items():
        print(seat, row["calls"])


if __name__ == "__main__":
    run(main)
