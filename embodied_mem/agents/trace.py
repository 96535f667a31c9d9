"""Writes down what was seen, given by memory and done: one JSON line per episode, for `embodied-mem view`.

    with open_trace(path) as file:
        rollout(envs, [traced(PlannerCriticAgent.for_world("alfworld"), file, "with memory")], [[0, 1, 2]])
        for trajectory in play(envs, executor, delivery, bank, ...):
            write_delivered(file, "compiled", trajectory)
        write_guided(file, "mine", memory, guides, is_won)  # of `compiler.guide(memory)`, one before each action

Every line has agent, goal, observation, won and steps. What is played does not depend on whether it is written down.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.rollout import Trajectory
from embodied_mem.compiler.brief_state import apply_all
from embodied_mem.compiler.output_grammar import render_output
from embodied_mem.compiler.view import start_view
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.recollection import record_json

if TYPE_CHECKING:
    from embodied_mem.compiler.guide import Guide
    from embodied_mem.compiler.memory_compiler import MemoryCompiler


def open_trace(path: pathlib.Path | None) -> contextlib.AbstractContextManager[TextIO | None]:
    """Return the file, written line by line; None without a path."""
    if path is None:
        return contextlib.nullcontext()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w", buffering=1, encoding="utf-8")


def traced(agent: Agent, file: TextIO | None, name: str, experiences: Sequence[str] = ()) -> Agent:
    """Return the agent, written down where there is a file, see `Traced`."""
    return agent if file is None else Traced(agent, file, name, experiences)


class Traced(Agent):
    """An agent whose episodes are written down.

    Args:
        agent: that plays.
        file: gets a line when an episode ends. Its steps have observation, action, answer, and what the agent says
            (`Agent.explained`): `thought`; `plan`, commands; `objection` of the critic; `query`, and the items of
            memory that were `given` and `left_out` (`Recollection.as_json`); `following`, a remembered episode.
        name: of the agent in the trace.
        experiences: that the agent is given for its episodes, as texts.
    """

    def __init__(self, agent: Agent, file: TextIO, name: str = "", experiences: Sequence[str] = ()):
        self._agent, self._file, self._name, self._experiences = agent, file, name, experiences

    @property
    def record(self) -> Any:
        """That of the agent, None where it has none."""
        return getattr(self._agent, "record", None)

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        self._goal, self._first, self._steps = goal, observation, list[dict[str, Any]]()
        self._agent.reset(goal, observation, info)

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        self._answered(observation)
        command = self._agent.act(observation, info)
        if command is not None:
            step = {"observation": observation, "action": command, "answer": ""}
            self._steps.append(step | dict(self._agent.explained()))
        return command

    def explained(self) -> Mapping[str, Any]:
        """Return the agent's."""
        return self._agent.explained()

    def end(self, won: bool, observation: str) -> None:
        self._answered(observation)
        self._agent.end(won, observation)
        _write(self._file, self._name, self._goal, self._first, won, self._steps, self._experiences)

    def _answered(self, observation: str) -> None:
        if self._steps and observation:
            self._steps[-1]["answer"] = observation


def write_delivered(file: TextIO, name: str, played: Trajectory, compiler: MemoryCompiler | None = None) -> None:
    """Writes an episode that was played with a delivery of memory.

    Its steps have observation, action, answer; `memory` and `hint` as the executor read them, how many `soft` tokens;
    and with a compiler its `output`, the Brief `state` before it, what the `source` that it names says, and its
    `attention` to the lines of its prompt (`MemoryCompiler.attention`).
    """
    episode = played.episode
    state = start_view(episode.goal, episode.first_observation, ()).state
    records = [given.record for given in played.delivered if given.record is not None]
    attention = iter(compiler.attention(records) if compiler is not None else ())
    steps = []
    for step, answer, given in zip(episode.steps, episode.answers, played.delivered, strict=True):
        row = {
            "observation": step.observation, "action": step.action, "answer": answer, "memory": given.memory,
            "hint": given.hint, "soft": 0 if given.soft is None else len(given.soft), "source": _source(given),
        }  # fmt: skip
        if given.record is not None:
            row |= {"state": state.render(), "output": render_output(given.record.output)}
            row |= {"attention": next(attention, [])}
            state, _ = apply_all(given.record.output.edits, state)
        steps.append(row)
    experiences = [line for experience in played.experiences if (line := experience.brief())]
    _write(file, name, episode.goal, episode.first_observation, played.won, steps, experiences)


def write_guided(file: TextIO, name: str, memory: LifelongMemory, guides: Sequence[Guide], is_won: bool) -> None:
    """Write a memory's newest task with the guides before each action.

    Its steps have observation, action, answer, the Brief `state` before them, `hint`, `why`, `sources`, `withheld`.

    Raises:
        InvalidInputError: there is not one guide for each action; one more may be there.
    """
    (_, first), *turns = memory.turns
    if not len(turns) <= len(guides) <= len(turns) + 1:
        raise InvalidInputError(f"guides: expected one before each of {len(turns)} actions, got {len(guides)}")
    steps, observation, state = [], first, start_view(memory.goal, first, ()).state
    for guide, (action, answer) in zip(guides, turns):
        row = {
            "observation": observation, "action": action, "answer": answer, "state": state.render(),
            "hint": guide.text, "why": guide.why, "soft": 0 if guide.soft is None else len(guide.soft),
            "sources": [record_json(one) for one in guide.sources],
            "withheld": [record_json(one.record) | {"reason": one.reason} for one in guide.withheld],
        }  # fmt: skip
        steps.append(row)
        observation, state = answer, guide.state
    _write(file, name, memory.goal, first, is_won, steps, ())


def _write(
    file: TextIO, name: str, goal: str, observation: str, won: bool, steps: list[Any], experiences: Sequence[str]
) -> None:
    line = {"agent": name, "goal": goal, "observation": observation, "won": bool(won), "steps": steps}
    file.write(json.dumps(line | ({"experiences": [*experiences]} if experiences else {})) + "\n")


def _source(given: Delivered) -> str:
    if given.supported is None:
        return ""
    if given.supported:
        return "the experience that it names says so"
    return (
        "no experience says so" if given.made_up else "the experience that it names does not say so, another one does"
    )
