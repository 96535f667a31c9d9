"""Runs tasks on a robot: an agent decides, the robot acts, and the runner waits, tries again and stops.

    runner = Runner(robot, Limits(max_steps=15, timeout_s=60))
    run = runner.run(agent, "Put the banana into the oven.")
    run.ended, run.won, [(done.command, done.outcome.status) for done in run.steps]
    runner.cancel()                      # from another thread: the robot stops, and so does the task

Any `agents.agent.Agent` plays whose commands are worded as the robot's skills are.

- A skill that takes too long is cancelled, and the agent gets what is perceived then, with the status "unknown".
- A call that ended in a `RobotError` is made again. A skill that was done with nothing perceived is not done again: the
  robot is asked what it perceives.
- A skill that failed is the agent's to think about. The runner does not repeat it.

Source: RoboMemory 3.3, B.2: limits of steps, and a task that ends by itself or by `task_complete`.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.robot.robot import Outcome, Robot, RobotError
from embodied_mem.agents.robot.skills import TASK_COMPLETE, checked_skills, read_command
from embodied_mem.errors import InvalidInputError

NOTHING_SEEN = "Nothing is perceived."
Ended = Literal["agent", "done", "steps", "cancelled"]


@dataclasses.dataclass(frozen=True)
class Limits:
    """When to wait no longer.

    Attributes:
        max_steps: commands of a task.
        timeout_s: a skill may take.
        grace_s: it may take to stop when it is cancelled.
        max_retries: calls that are made again after an error, or when nothing is perceived.
    """

    max_steps: int = 30
    timeout_s: float = 60.0
    grace_s: float = 10.0
    max_retries: int = 2

    def __post_init__(self) -> None:
        for name, least in (("max_steps", 1), ("timeout_s", 0), ("grace_s", 0), ("max_retries", 0)):
            if not getattr(self, name) >= least:
                raise InvalidInputError(f"limits.{name}: expected >= {least}, got {getattr(self, name)}")


@dataclasses.dataclass(frozen=True)
class Executed:
    """One command.

    Attributes:
        command: as the agent gave it.
        outcome: what the agent was told.
        tries: calls of the robot that were needed.
        stopped: whether it was cancelled, for its time or by `Runner.cancel`.
    """

    command: str
    outcome: Outcome
    tries: int = 1
    stopped: bool = False


@dataclasses.dataclass(frozen=True)
class Run:
    """A task that was run.

    Attributes:
        ended: by the agent, by `is_done`, by the limit of steps, or cancelled.
        won: what `is_done` said at the end; without it, whether the agent said that the task is complete.
        steps: the commands.
    """

    ended: Ended
    won: bool
    steps: tuple[Executed, ...]


class Clock(Protocol):
    """A clock."""

    def wait(self, calls: Sequence[concurrent.futures.Future[Any]], seconds: float) -> None:
        """Waits until one of the calls has ended, at most so long."""
        ...


class _Real:
    def wait(self, calls: Sequence[concurrent.futures.Future[Any]], seconds: float) -> None:
        concurrent.futures.wait(calls, timeout=seconds, return_when=concurrent.futures.FIRST_COMPLETED)


class Runner:
    """Runs one task after the other on one robot.

    Args:
        robot: the body.
        limits: see `Limits`.
        clock: None for that of the wall; a simulated robot brings its own.
    """

    def __init__(self, robot: Robot, limits: Limits | None = None, *, clock: Clock | None = None):
        self.robot, self.limits = robot, limits or Limits()
        self._skills = tuple(skill for skill in checked_skills(robot.skills) if skill.name != TASK_COMPLETE.name)
        self._clock: Clock = clock or _Real()
        self._stop: concurrent.futures.Future[None] = concurrent.futures.Future()

    def cancel(self) -> None:
        """Stops the robot and ends the running task, from any thread."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # it was called before
            self._stop.set_result(None)

    def run(self, agent: Agent, goal: str, task_id: str = "", is_done: Callable[[], bool] | None = None) -> Run:
        """Runs a task.

        Args:
            agent: decides.
            goal: what is to be done.
            task_id: for the agent's records.
            is_done: says after each step whether the goal is reached, where somebody can; a person, or a simulator.

        Raises:
            RobotError: the robot does not answer, not even when it is cancelled, or every retry failed.
        """
        self._stop = concurrent.futures.Future()
        view = self._call(self.robot.observe, "observe").outcome
        info: dict[str, Any] = {"images": view.images}
        agent.reset(goal, view.message, {"task_id": task_id, **info})
        steps: list[Executed] = []
        ended: Ended = "steps"
        untold = ""
        while len(steps) < self.limits.max_steps:
            command, untold = agent.act(view.message, info), ""
            if command is None or self._stop.done():
                ended = "agent" if command is None else "cancelled"
                break
            steps.append(self._do(command))
            view = steps[-1].outcome
            info, untold = {"status": view.status, "images": view.images}, view.message
            if is_done is not None and is_done():
                ended = "done"
                break
        won = is_done() if is_done is not None else ended == "agent"
        agent.end(won, untold)
        return Run(ended, won, tuple(steps))

    def _do(self, command: str) -> Executed:
        call = read_command(self._skills, command)
        if call is None:
            names = ", ".join(skill.name for skill in self._skills)
            return Executed(command, Outcome("failure", f"'{command}' is an unknown skill; there are {names}."), 0)
        done = self._call(lambda: self.robot.execute(call.skill, call.arguments), command)
        tries, outcome = done.tries, done.outcome
        if done.stopped or not (outcome.message or outcome.images):  # it may have been done: it is not done again
            view, looks = self._look()
            tries += looks
            text = view.message or NOTHING_SEEN
            if done.stopped:
                text = f"'{command}' did not end in time and was stopped.\n{text}"
            outcome = Outcome("unknown" if done.stopped else outcome.status, text, view.images)
        return Executed(command, outcome, tries, done.stopped)

    def _look(self) -> tuple[Outcome, int]:
        """Perceive, asking again while nothing is; return (what is perceived, calls)."""
        for count in range(1, self.limits.max_retries + 1):
            view = self._call(self.robot.observe, "observe").outcome
            if view.message or view.images:
                return view, count
        return Outcome("unknown", ""), self.limits.max_retries

    def _call(self, call: Callable[[], Outcome], what: str) -> Executed:
        """Call the robot in a thread, again after a `RobotError`."""
        for tries in range(1, self.limits.max_retries + 2):
            result: concurrent.futures.Future[Outcome] = concurrent.futures.Future()
            threading.Thread(target=_into, args=(result, call), daemon=True).start()
            self._clock.wait((result, self._stop), self.limits.timeout_s)
            if stopped := not result.done():
                self.robot.cancel()
                self._clock.wait((result,), self.limits.grace_s)
            if not result.done():
                raise RobotError(
                    f"{what}: expected an answer within {self.limits.timeout_s:g} s, or {self.limits.grace_s:g} s "
                    "after it was cancelled, got none; somebody has to look after the robot"
                )
            try:
                return Executed(what, _checked(result.result(), what), tries, stopped)
            except RobotError as error:
                last = error
                if stopped:
                    return Executed(what, Outcome("unknown", ""), tries, stopped)
        raise RobotError(f"{what}: expected an answer, got an error {tries} times; the last: {last}") from last


def _checked(outcome: Outcome, what: str) -> Outcome:
    if not isinstance(outcome, Outcome):
        raise InvalidInputError(f"{what}: expected an Outcome from the robot, got {type(outcome).__name__}")
    return outcome


def _into(result: concurrent.futures.Future[Outcome], call: Callable[[], Outcome]) -> None:
    try:
        result.set_result(call())
    except BaseException as error:  # reaches whoever waits
        result.set_exception(error)
