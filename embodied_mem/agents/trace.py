"""Writes down what an agent saw, asked, was given and did: one JSON line per episode, for `embodied-mem view`.

    with open("trace.jsonl", "w") as file:
        rollout(envs, [Traced(PlannerCriticAgent.for_world("alfworld"), file, "with memory")], [[0, 1, 2]])

The agent decides as without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.memory.recollection import Item, Recollection


class Traced(Agent):
    """An agent whose episodes are written down.

    Args:
        agent: that plays.
        file: gets a line when an episode ends: agent, goal, observation, won, and `steps`, each with its observation,
            action, answer, plan, objection, query, and the items of memory that were `given` and `left_out`.
        name: of the agent in the trace.
    """

    def __init__(self, agent: PlannerCriticAgent, file: TextIO, name: str = ""):
        self._agent, self._file, self._name = agent, file, name

    @property
    def record(self) -> Any:
        """That of the agent."""
        return self._agent.record

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        """As `Agent.reset`."""
        self._goal, self._first, self._steps = goal, observation, list[dict[str, Any]]()
        self._agent.reset(goal, observation, info)

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        """As `Agent.act`."""
        self._answered(observation)
        command = self._agent.act(observation, info)
        if command is not None:
            objections, found = self._agent.record.objections, self._agent.found
            objected = objections and objections[-1][0] == len(self._steps)
            self._steps.append(
                {
                    "observation": observation,
                    "action": command,
                    "answer": "",
                    "plan": [step.command for step in self._agent.plan.steps] if self._agent.plan else [],
                    "objection": objections[-1][1] if objected else "",
                    **_found(found),
                }
            )
        return command

    def end(self, won: bool, observation: str) -> None:
        """As `Agent.end`."""
        self._answered(observation)
        self._agent.end(won, observation)
        line = {"agent": self._name, "goal": self._goal, "observation": self._first, "won": won, "steps": self._steps}
        self._file.write(json.dumps(line) + "\n")

    def _answered(self, observation: str) -> None:
        if self._steps and observation:
            self._steps[-1]["answer"] = observation


def _found(found: Recollection | None) -> dict[str, Any]:
    if found is None:
        return {"query": None, "given": [], "left_out": []}
    left = [_row(one.item) | {"reason": one.reason} for one in found.left_out]
    return {"query": found.query, "given": [_row(item) for item in found.items], "left_out": left}


def _row(item: Item) -> dict[str, Any]:
    names = ("text", "module", "score", "why", "episode", "step", "id", "trust")
    return {name: getattr(item, name) for name in names}
