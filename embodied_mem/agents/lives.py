"""Lives: agents that play tasks one after the other and keep their memories, several lives in lockstep.

    lives = [PlannerCriticAgent(config) for _ in range(envs.num_envs)]
    outcomes = play_lives(envs, lives, [[0, 3, 5], [1, 2, 4]])        # each life's tasks, in order
    outcomes[3].won, outcomes[3].record.steps

Agents get goal and observation, and a list of actions where a world's rules give them one; commands that the world
would accept now, its state and its progress stay here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from embodied_mem.agents.planner_critic import PlannerCriticAgent, TaskRecord
from embodied_mem.errors import InvalidInputError

IDLE = "look"
"""What is played in the env of a life that is over while others go on."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One task of one life.

    Attributes:
        task: its index.
        life, position: which life played it, and as its how many-th.
        won: whether the goal was reached.
        progress: of the last step.
        record: what the agent did.
    """

    task: int
    life: int
    position: int
    won: bool
    progress: float
    record: TaskRecord


def play_lives(
    envs,
    agents: Sequence[PlannerCriticAgent],
    tasks: Sequence[Sequence[int]],
    on_task: Callable[[Outcome], None] | None = None,
    lists_actions: bool = False,
) -> list[Outcome]:
    """Outcomes in order of the task index; envs step together, agents think one after the other.

    Args:
        envs: a vector env with one env per life.
        agents: one per life; what they remember already stays.
        tasks: of each life, in order; some lives may have fewer.
        on_task: called when a task ends.
        lists_actions: agents get the world's `admissible_commands` at the start of a task; for worlds where that is a
            list of all actions that is part of the original's prompt.

    Raises:
        InvalidInputError: the numbers of envs, agents and lists of tasks differ.
    """
    count = envs.num_envs
    if not (len(agents) == len(tasks) == count):
        raise InvalidInputError(
            f"play_lives: expected one agent and one list of tasks per env ({count}), got {len(agents)}, {len(tasks)}"
        )
    outcomes: list[Outcome] = []
    played = [0] * count
    actions = [IDLE] * count
    running = np.array([bool(own) for own in tasks])
    starting = running.copy()
    first = True
    while running.any():
        if starting.any():
            indices = np.array([own[min(n, len(own) - 1)] if own else 0 for own, n in zip(tasks, played)])
            # Before the first step every env needs a game, also one without a life.
            mask = np.ones(count, bool) if first else starting
            observations, info = envs.reset(options={"reset_mask": mask, "task_indices": indices})
            for i in np.flatnonzero(starting):
                listed = [info["admissible_commands"][i]] if lists_actions else []
                actions[i] = agents[i].begin(info["task_id"][i], info["goal"][i], observations[i], *listed)
            first = False
        starting = np.zeros(count, bool)
        observations, _, terminations, truncations, info = envs.step(actions)
        over = np.asarray(terminations) | np.asarray(truncations)
        for i in np.flatnonzero(running):
            if not over[i]:
                actions[i] = agents[i].act(observations[i])
                continue
            won = bool(info["won"][i])
            agents[i].end(won, observations[i])
            progress = float(info["progress"][i])
            outcomes.append(Outcome(tasks[i][played[i]], int(i), played[i], won, progress, agents[i].record))
            if on_task is not None:
                on_task(outcomes[-1])
            played[i] += 1
            actions[i] = IDLE
            starting[i] = running[i] = played[i] < len(tasks[i])
    return sorted(outcomes, key=lambda outcome: outcome.task)
