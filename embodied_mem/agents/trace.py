"""Writes down what was seen, given by memory and done: one JSON line per episode, for `embodied-mem view`.

    with open_trace(path) as file:
        rollout(envs, [traced(PlannerCriticAgent.for_world("alfworld"), file, "with memory")], [[0, 1, 2]])
        for trajectory in play(envs, executor, delivery, bank, ...):
            write_delivered(file, "compiled", trajectory)

Every line has agent, goal, observation, won and steps. What is played does not depend on whether it is written down.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any, TextIO

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.rollout import Trajectory
from embodied_mem.agents.view import start_view
from embodied_mem.compiler.brief_state import apply_all
from embodied_mem.compiler.output_grammar import render_output
from embodied_mem.memory.recollection import Item, Recollection


def open_trace(path: pathlib.Path | None) -> contextlib.AbstractContextManager[TextIO | None]:
    """The file, written line by line; None without a path."""
    if path is None:
        return contextlib.nullcontext()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w", buffering=1, encoding="utf-8")


def traced(agent: Agent, file: TextIO | None, name: str) -> Agent:
    """The agent, written down where there is a file and it says what it plans and remembers."""
    return Traced(agent, file, name) if file is not None and isinstance(agent, PlannerCriticAgent) else agent


class Traced(Agent):
    """An agent whose episodes are written down.

    Args:
        agent: that plays.
        file: gets a line when an episode ends. Its steps have observation, action, answer, plan, objection, query, and
            the items of memory that were `given` and `left_out`.
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
            objections, plan = self._agent.record.objections, self._agent.plan
            # `record.steps` counts this command, an objection those before it.
            objected = bool(objections) and objections[-1][0] == len(self._steps)
            self._steps.append(
                {
                    "observation": observation,
                    "action": command,
                    "answer": "",
                    "plan": [step.command for step in plan.steps] if plan else [],
                    "objection": objections[-1][1] if objected else "",
                    **_found(self._agent.found),
                }
            )
        return command

    def end(self, won: bool, observation: str) -> None:
        """As `Agent.end`."""
        self._answered(observation)
        self._agent.end(won, observation)
        _write(self._file, self._name, self._goal, self._first, won, self._steps)

    def _answered(self, observation: str) -> None:
        if self._steps and observation:
            self._steps[-1]["answer"] = observation


def write_delivered(file: TextIO, name: str, played: Trajectory) -> None:
    """Writes an episode that was played with a delivery of memory.

    Its steps have observation, action, answer; `memory` and `hint` as the executor read them, how many `soft` tokens;
    and with a compiler its `output`, the Brief `state` before it, and what the `source` that it names says.
    """
    episode = played.episode
    state = start_view(episode.goal, episode.first_observation, ()).state
    steps = []
    for step, answer, given in zip(episode.steps, episode.answers, played.delivered, strict=True):
        row = {
            "observation": step.observation, "action": step.action, "answer": answer, "memory": given.memory,
            "hint": given.hint, "soft": 0 if given.soft is None else len(given.soft), "source": _source(given),
        }  # fmt: skip
        if given.record is not None:
            row |= {"state": state.render(), "output": render_output(given.record.output)}
            state, _ = apply_all(given.record.output.edits, state)
        steps.append(row)
    experiences = [line for experience in played.experiences if (line := experience.brief())]
    _write(file, name, episode.goal, episode.first_observation, played.won, steps, experiences=experiences)


def _write(
    file: TextIO, name: str, goal: str, observation: str, won: bool, steps: list[dict[str, Any]], **more: Any
) -> None:
    line = {"agent": name, "goal": goal, "observation": observation, "won": bool(won), "steps": steps, **more}
    file.write(json.dumps(line) + "\n")


def _source(given: Delivered) -> str:
    if given.supported is None:
        return ""
    if given.supported:
        return "the experience that it names says so"
    return (
        "no experience says so" if given.made_up else "the experience that it names does not say so, another one does"
    )


def _found(found: Recollection | None) -> dict[str, Any]:
    if found is None:
        return {"query": None, "given": [], "left_out": []}
    left = [_row(one.item) | {"reason": one.reason} for one in found.left_out]
    return {"query": found.query, "given": [_row(item) for item in found.items], "left_out": left}


def _row(item: Item) -> dict[str, Any]:
    names = ("text", "module", "score", "why", "episode", "step", "id", "trust")
    return {name: getattr(item, name) for name in names}
