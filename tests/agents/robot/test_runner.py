"""The runner waits, tries again and stops: with real threads and short times."""

from __future__ import annotations

import threading
import time

import pytest

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.robot.robot import Outcome, RobotError
from embodied_mem.agents.robot.runner import NOTHING_SEEN, Limits, Runner
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill
from embodied_mem.errors import InvalidInputError

QUICK = Limits(max_steps=6, timeout_s=0.2, grace_s=5.0, max_retries=2)


class Arm:
    """A robot whose skill `do` goes as it is told: late, deaf (late, and not to be cancelled), error, blind, wrong."""

    skills = (Skill("do", ("what",)), TASK_COMPLETE)

    def __init__(self):
        self.executed, self.cancelled, self.errors, self.blind = [], threading.Event(), 0, 0
        self.began = threading.Event()

    def observe(self):
        if self.blind:
            self.blind -= 1
            return Outcome("unknown", "")
        return Outcome("success", f"{len(self.executed)} done", (b"\x89PNG\r\n\x1a\n",))

    def execute(self, skill, arguments):
        what = arguments["what"]
        if what.startswith("error"):
            self.errors += 1
            if self.errors <= int(what.split()[1]):
                raise RobotError("the line is dead")
        self.executed.append(what)
        self.began.set()
        if what == "late":
            self.cancelled.wait(10)
            return Outcome("success", "stopped half way")
        if what == "deaf":
            time.sleep(1)
        if what.startswith("blind"):
            self.blind = int(what.split()[1])
            return Outcome("success", "")
        return None if what == "wrong" else Outcome("failure" if what == "fail" else "success", f"did {what}")

    def cancel(self):
        self.cancelled.set()


class Script(Agent):
    """Gives its commands and keeps what it is told."""

    def __init__(self, *commands):
        self.commands, self.told, self.ended = iter(commands), [], []

    def reset(self, goal, observation, info):
        self.goal = goal

    def act(self, observation, info):
        self.told.append((observation, info.get("status"), len(info.get("images", ()))))
        return next(self.commands, None)

    def end(self, won, observation):
        self.ended.append((won, observation))


def do(*what):
    return Script(*(f"do({one})" for one in what))


def test_outcomes_reach_the_agent_until_it_says_that_it_is_done():
    agent = do("this", "fail")
    run = Runner(Arm(), QUICK).run(agent, "work")
    assert (run.ended, run.won, [step.command for step in run.steps]) == ("agent", True, ["do(this)", "do(fail)"])
    assert agent.told == [("0 done", None, 1), ("did this", "success", 0), ("did fail", "failure", 0)]
    assert agent.ended == [(True, "")]  # it was told the last answer before


def test_somebody_else_may_say_that_it_is_done():
    robot, agent = Arm(), do("this", "that")
    run = Runner(robot, QUICK).run(agent, "work", is_done=lambda: len(robot.executed) == 1)
    assert (run.ended, run.won, agent.ended) == ("done", True, [(True, "did this")])
    run = Runner(Arm(), QUICK).run(do(), "work", is_done=lambda: False)
    assert (run.ended, run.won) == ("agent", False)
    run = Runner(Arm(), QUICK).run(do(*"abcdefgh"), "work")
    assert (run.ended, run.won, len(run.steps)) == ("steps", False, 6)


def test_a_late_skill_is_cancelled_and_what_is_seen_then_is_told():
    robot, agent = Arm(), do("late")
    start = time.monotonic()
    [step] = Runner(robot, QUICK).run(agent, "work").steps
    assert time.monotonic() - start < 5
    assert robot.cancelled.is_set()
    assert robot.executed == ["late"]  # never twice: it may have been done
    assert (step.stopped, step.outcome.status) == (True, "unknown")
    assert agent.told[-1] == ("'do(late)' did not end in time and was stopped.\n1 done", "unknown", 1)


def test_a_robot_that_cannot_be_cancelled_is_an_error():
    with pytest.raises(
        RobotError, match=r"do\(deaf\): expected an answer within 0.1 s, or 0.1 s after it was cancelled"
    ):
        Runner(Arm(), Limits(timeout_s=0.1, grace_s=0.1)).run(do("deaf"), "work")


def test_errors_are_tried_again_and_then_an_error():
    [step] = Runner(Arm(), QUICK).run(do("error 2"), "work").steps
    assert (step.tries, step.outcome.message) == (3, "did error 2")
    with pytest.raises(RobotError, match=r"got an error 3 times; the last: the line is dead"):
        Runner(Arm(), QUICK).run(do("error 3"), "work")


def test_a_blind_robot_looks_again_and_does_nothing_twice():
    robot = Arm()
    run = Runner(robot, QUICK).run(do("blind 1", "blind 2"), "work")
    assert [(step.tries, step.outcome.message) for step in run.steps] == [(3, "1 done"), (3, NOTHING_SEEN)]
    assert [step.outcome.status for step in run.steps] == ["success", "success"]
    assert robot.executed == ["blind 1", "blind 2"]


def test_cancel_stops_robot_and_task():
    robot, agent = Arm(), do("late", "never")
    runner = Runner(robot, Limits(timeout_s=30, grace_s=5))
    waiting = threading.Thread(target=lambda: (robot.began.wait(10), runner.cancel(), runner.cancel()))
    waiting.start()
    run = runner.run(agent, "work")
    waiting.join()
    assert (run.ended, run.won, robot.executed, robot.cancelled.is_set()) == ("cancelled", False, ["late"], True)


def test_cancel_while_the_agent_thinks_moves_nothing():
    robot = Arm()
    runner = Runner(robot, QUICK)

    class Slow(Script):
        def act(self, observation, info):
            runner.cancel()
            return "do(this)"

    assert (runner.run(Slow(), "work").ended, robot.executed) == ("cancelled", [])
    assert runner.run(do("this"), "work").ended == "agent"  # the next task is another


def test_what_no_skill_words_moves_nothing_and_says_so():
    robot = Arm()
    [step] = Runner(robot, QUICK).run(Script("look"), "work").steps
    assert step.outcome == Outcome("failure", "'look' is an unknown skill; there are do.")
    assert robot.executed == []


def test_wrong_answers_and_limits_are_refused():
    with pytest.raises(InvalidInputError, match=r"do\(wrong\): expected an Outcome from the robot, got NoneType"):
        Runner(Arm(), QUICK).run(do("wrong"), "work")
    with pytest.raises(InvalidInputError, match=r"limits.timeout_s: expected >= 0, got -1"):
        Limits(timeout_s=-1)
