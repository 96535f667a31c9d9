"""A simulated robot whose skills fail, on any text world that lists the commands it would accept.

    envs = embodied_mem.envs.make("alfworld", tasks=games, num_envs=1)
    roles = Roles(take="take", put="put", open="open", go="go_to")
    robot = SimulatedRobot(envs, skills, roles, Faults(grasp=0.1, late=0.05), seed=0)
    robot.begin(task=3)
    Runner(robot, clock=robot.clock).run(agent, robot.goal, is_done=lambda: robot.won)
    robot.injected                     # every fault, with the step it hit

Time is simulated: a late answer costs no real time, and the same seed gives the same faults for the same commands.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from embodied_mem.agents.robot.robot import Outcome
from embodied_mem.agents.robot.skills import Skill, checked_skills, read_command
from embodied_mem.errors import InvalidInputError

Fault = Literal["grasp", "slip", "stuck", "wrong", "blind", "late"]


@dataclasses.dataclass(frozen=True)
class Faults:
    """Chances, from 0 to 1, each of one use of a skill.

    Attributes:
        grasp: the gripper closes on nothing.
        slip: what is held falls when the robot drives off, and lies where it was.
        stuck: a door does not open, the first time and perhaps again.
        wrong: the gripper takes another thing of the same place.
        blind: the sensors give nothing after a skill, for one to `max_blind` looks.
        late: the answer takes 0.5 to 2 times `late_s`.
        max_blind, late_s: see there.
    """

    grasp: float = 0.0
    slip: float = 0.0
    stuck: float = 0.0
    wrong: float = 0.0
    blind: float = 0.0
    late: float = 0.0
    max_blind: int = 4
    late_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("grasp", "slip", "stuck", "wrong", "blind", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInputError(f"faults.{name}: expected a chance of 0 to 1, got {getattr(self, name)}")
        if self.max_blind < 1 or self.late_s <= 0:
            raise InvalidInputError(
                f"faults: expected max_blind >= 1 and late_s > 0, got {self.max_blind}, {self.late_s}"
            )


@dataclasses.dataclass(frozen=True)
class Roles:
    """Which skills of a world do what: names. `take` and `put` have the arguments `thing` and `place`, the others
    `place`."""

    take: str
    put: str
    open: str
    go: str


@dataclasses.dataclass(frozen=True)
class Injected:
    """A fault that happened.

    Attributes:
        step: number of the skill in the task, from 1.
        fault: its kind.
    """

    step: int
    fault: Fault


class SimulatedRobot:
    """One robot in env 0 of a vector env.

    Args:
        envs: a vector env with one env, whose `info` has `admissible_commands`, those that have an effect now.
        skills: of its commands.
        roles: which of them can go wrong how.
        faults: how often.
        seed: of the faults; each task draws its own.

    Attributes:
        goal, won: of the running task.
        held, at: what is in the gripper and where the robot is, in truth; for whoever scores, not for agents.
        injected: faults of the running task.
        worked: of each skill of the running task, whether it had an effect, in truth.
        clock: for `Runner`.
    """

    def __init__(
        self, envs: Any, skills: Sequence[Skill], roles: Roles, faults: Faults | None = None, *, seed: int = 0
    ):
        if envs.num_envs != 1:
            raise InvalidInputError(f"envs: expected one env for one robot, got {envs.num_envs}")
        self.skills, self._roles, self._faults, self._seed = checked_skills(skills), roles, faults or Faults(), seed
        self._skill = {skill.name: skill for skill in self.skills}
        for role in dataclasses.astuple(roles):
            if role not in self._skill:
                raise InvalidInputError(f"roles: expected some of {', '.join(self._skill)}, got {role!r}")
        self._envs, self.clock = envs, SimulatedClock()
        self.won, self.goal = False, ""
        self.injected: list[Injected] = []
        self.worked: list[bool] = []

    def begin(self, task: int, attempt: int = 0) -> None:
        """Set up a task.

        The same task and attempt bring the same luck.
        """
        observations, info = self._envs.reset(options={"task_indices": np.array([task])})
        self._rng = np.random.default_rng([self._seed, task, attempt])
        self.goal, self.task_id = info["goal"][0], info["task_id"][0]
        self.held = self.at = ""
        self.won, self.injected, self.worked, self._blind = False, [], [], 0
        self._stuck: dict[str, int] = {}
        self._take_in(observations, info)

    def observe(self) -> Outcome:
        """Implement `Robot.observe`: give the last answer until something is done."""
        if self._blind:
            self._blind -= 1
            return Outcome("unknown")
        return Outcome("success", self._text)

    def cancel(self) -> None:
        self.clock.interrupt()

    def execute(self, skill: str, arguments: Mapping[str, str]) -> Outcome:
        self._blind = 0
        luck = self._rng.random(4)  # always as many, so that one chance does not move the others
        self.worked.append(False)
        outcome = self._act(skill, dict(arguments), luck)
        self.worked[-1] = outcome.status == "success"
        if luck[2] < self._faults.late:
            self._inject("late")
            if not self.clock.sleep(self._faults.late_s * (0.5 + 1.5 * luck[2] / self._faults.late)):
                return Outcome("unknown")
        if luck[3] < self._faults.blind:
            self._inject("blind")
            self._blind = 1 + int(self._faults.max_blind * luck[3] / self._faults.blind)
            return Outcome("unknown")
        return outcome

    def _act(self, skill: str, arguments: dict[str, str], luck: np.ndarray) -> Outcome:
        faults, roles = self._faults, self._roles
        command = self._skill[skill].command(arguments)
        works = command in self._accepted
        if works and skill == roles.open:
            door = arguments["place"]
            if self._stuck.setdefault(door, 1 + int(2 * luck[1]) if luck[0] < faults.stuck else 0) > 0:
                self._stuck[door] -= 1
                self._inject("stuck")
                return self._say(f"The door of the {door} is stuck.")
        if works and skill == roles.take:
            if luck[0] < faults.grasp:
                self._inject("grasp")
                return self._say("The grasp failed.")
            others = [call for call in self._calls(roles.take) if call["place"] == arguments["place"] != ""]
            others = [call for call in others if call["thing"] != arguments["thing"]]
            if luck[1] < faults.wrong and others:
                self._inject("wrong")
                arguments = others[int(len(others) * luck[1] / faults.wrong)]
                command = self._skill[skill].command(arguments)
        loss = ""
        if works and skill == roles.go and self.held and luck[0] < faults.slip:
            here = [call for call in self._calls(roles.put) if call["thing"] == self.held and call["place"] == self.at]
            if here:
                self._inject("slip")
                self._do(self._skill[roles.put].command(here[0]))
                loss, self.held = "\nYou are not carrying anything.", ""
        self._do(command)
        if works:
            self._remember(skill, arguments)
            self._text += loss
        return Outcome("success" if works else "failure", self._text)

    def _remember(self, skill: str, arguments: Mapping[str, str]) -> None:
        roles = self._roles
        self.at = arguments["place"] if skill == roles.go else self.at
        self.held = arguments["thing"] if skill == roles.take else "" if skill == roles.put else self.held

    def _calls(self, skill: str) -> list[dict[str, str]]:
        """Return the arguments that would make a skill work now, in order."""
        calls = [read_command((self._skill[skill],), command) for command in sorted(self._accepted)]
        return [call.arguments for call in calls if call is not None]

    def _say(self, text: str) -> Outcome:
        self._text = text
        return Outcome("failure", text)

    def _do(self, command: str) -> None:
        observations, _, _, _, info = self._envs.step([command])
        self._take_in(observations, info)

    def _take_in(self, observations: Sequence[str], info: Mapping[str, Any]) -> None:
        self._text, self._accepted = observations[0], frozenset(info["admissible_commands"][0])
        self.won = bool(info["won"][0])

    def _inject(self, fault: Fault) -> None:
        self.injected.append(Injected(len(self.worked), fault))


class SimulatedClock:
    """Time that passes only while the robot sleeps in it.

    Attributes:
        now: seconds that have passed.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._changed = threading.Condition()
        self._until: float | None = None  # when the sleeper wakes up
        self._interrupted = False

    def sleep(self, seconds: float) -> bool:
        """Sleeps, in the robot's thread; whether nobody interrupted."""
        with self._changed:
            self._until, self._interrupted = self.now + seconds, False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._interrupted or self._until is None)
            self._until = None
            return not self._interrupted

    def interrupt(self) -> None:
        """Wakes the sleeper up."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()

    def wait(self, calls: Sequence[concurrent.futures.Future[Any]], seconds: float) -> None:
        """Let the time pass that the robot sleeps, at most `seconds`."""
        for call in calls:
            call.add_done_callback(self._notify)
        with self._changed:
            deadline = self.now + seconds
            while not any(call.done() for call in calls):
                if self._until is None or self._interrupted:
                    self._changed.wait()
                elif self._until > deadline:
                    self.now = deadline
                    return
                else:
                    self.now, self._until = self._until, None
                    self._changed.notify_all()

    def _notify(self, _: concurrent.futures.Future[Any]) -> None:
        with self._changed:
            self._changed.notify_all()
