"""Lives side by side are the lives in lockstep."""

from __future__ import annotations

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import ABLATIONS, PlannerCriticAgent
from embodied_mem.evaluation import task_sequence
from embodied_mem.worlds.alfworld.generator import generate


def test_lives_in_threads_play_as_in_lockstep():
    games = [game.load() for game in generate(5, seed=3, split="valid")]

    def played(parallel):
        runs = task_sequence.play(
            ["full"],
            lambda lives: envs.make("alfworld", tasks=games, num_envs=lives, max_steps=12),
            lambda name: PlannerCriticAgent.for_world("alfworld", ABLATIONS[name]),
            num_tasks=5, runs=2, lives=3, parallel=parallel,
        )  # fmt: skip
        return [[(one.task, one.position, one.actions, one.answers, one.won) for one in run] for run in runs["full"]]

    assert played(2) == played(1)
    assert [task for task, *_ in played(2)[0]] == [0, 1, 2, 3, 4]
