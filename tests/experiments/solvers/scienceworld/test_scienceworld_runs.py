"""The critic's commands in recorded episodes of 28 tasks, to the letter: what it was answered is said to it again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from experiments.solvers.scienceworld.agents import PlannerCritic
from experiments.solvers.scienceworld.gold_paths import GoldPath, Memories

RUNS = json.loads(gzip.decompress(Path(__file__).with_name("critic_runs.json.gz").read_bytes()))


@pytest.fixture(scope="module")
def memories() -> Memories:
    rows = RUNS["memory"]
    return Memories([GoldPath(**row | {key: tuple(row[key]) for key in ("commands", "answers")}) for row in rows])


@pytest.mark.parametrize("run", RUNS["episodes"], ids=lambda run: run["task"])
def test_it_commands_what_it_commanded_when_it_was_recorded(run, memories):
    agent = PlannerCritic(memories)
    commands = agent.play(run["goal"], run["first"])
    command = next(commands, None)
    for number, (recorded, answer) in enumerate(run["turns"]):
        assert (number, command) == (number, recorded)
        try:
            command = commands.send(answer)
        except StopIteration:
            command = None
    if run["ended"]:  # by the agent, and not by the world
        assert (command, agent.plans, agent.repairs) == (None, run["plans"], run["repairs"])
