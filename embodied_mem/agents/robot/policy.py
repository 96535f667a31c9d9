"""A robot whose skills a vision-language-action policy carries out, behind a server of openpi.

    policy = OpenPiPolicy("ws://gpu:8000")                                   # `scripts/serve_policy.py` of openpi
    robot = PolicyRobot(body, policy, navigate=drive_to, judge=OutcomeJudge(model))
    Runner(robot, Limits(max_steps=15)).run(agent, "Put the banana into the oven.")

`body` is the hardware (`Body`). The policy is told a skill in words ("pick up the banana"). Its chunks of actions are
applied until `max_chunks` are over, or until a judge says after one of them that the skill is done.

Source: RoboMemory 3.3, B.2, B.3, table 3. The protocol is that of openpi's remote inference: a msgpack message each way
over a WebSocket, after one with the server's metadata; an answer in text is an error. Needs the extra `robot`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from embodied_mem.agents.robot.judge import OutcomeJudge
from embodied_mem.agents.robot.robot import Outcome, RobotError
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill
from embodied_mem.errors import MissingDependencyError
from embodied_mem.language.images import Picture

KITCHEN_SKILLS = (
    Skill("navigate_to", ("point",), "Drives to a place."),
    Skill("pick_up", ("object",), "Picks a thing up.", ("being at the object",)),
    Skill("put_down_to", ("place",), "Puts what is held in or on a place.", ("being at {place}", "holding a thing")),
    Skill("open", ("object",), "Opens a door or drawer.", ("being at the object", "an empty hand")),
    Skill("close", ("object",), "Closes a door or drawer.", ("being at the object", "an empty hand")),
    Skill("turn_on", ("object",), "Turns something on, such as a faucet.", ("being at the object",)),
    Skill("turn_off", ("object",), "Turns it off.", ("being at the object",)),
    TASK_COMPLETE,
)
"""Skills of RoboMemory's real kitchen (table 3)."""
_VERBS = {"navigate_to": "go to", "put_down_to": "put it down at"}


class OpenPiPolicy:
    """A policy at a server; it answers one caller at a time.

    Args:
        address: `ws://HOST:PORT`.
        api_key: sent along, where the server asks for one.
        timeout_s: an answer may take.

    Attributes:
        metadata: what the server says of itself.

    Raises:
        MissingDependencyError: the extra `robot` is not installed.
        RobotError: there is no such server.
    """

    def __init__(self, address: str, api_key: str = "", timeout_s: float = 10.0):
        try:
            import msgpack
            from websockets.exceptions import WebSocketException
            from websockets.sync.client import connect
        except ImportError as error:
            raise MissingDependencyError(f"policy: expected `pip install -e '.[robot]'`: {error}") from error
        self._msgpack = msgpack
        self._errors = OSError, WebSocketException, ValueError, TypeError, LookupError
        self._address, self._timeout_s, self._lock = address, timeout_s, threading.Lock()
        headers = {"Authorization": f"Api-Key {api_key}"} if api_key else None
        settings = {"additional_headers": headers, "open_timeout": timeout_s, "close_timeout": 1.0}
        self._socket: Any = None
        self._connect = functools.partial(connect, address, compression=None, max_size=None, **settings)
        self.metadata: dict[str, Any] = self._open()

    def infer(self, observation: Mapping[str, Any]) -> np.ndarray:
        """Return the next actions, float[horizon, dimensions], for inputs with their prompt.

        Raises:
            RobotError: no answer, an error of the server, or an answer without actions.
        """
        with self._lock:
            if self._socket is None:
                self.metadata = self._open()
            try:
                self._socket.send(self._msgpack.packb(dict(observation), default=_packed))
                actions = self._received()["actions"]
            except self._errors as error:
                self.close()  # the answer may come yet, and is none to the next question
                raise RobotError(f"policy: expected an answer with actions: {error!r}") from error
        if not isinstance(actions, np.ndarray) or actions.ndim != 2 or not _is_finite(actions):
            raise RobotError(f"policy: expected finite actions[horizon, dimensions], got {str(actions)[:80]}")
        return actions

    def close(self) -> None:
        """End the connection; `infer` opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _open(self) -> dict[str, Any]:
        """Connect, and return what the server says of itself."""
        try:
            self._socket = self._connect()
            said: dict[str, Any] = self._received()
        except self._errors as error:
            self.close()
            raise RobotError(f"policy: expected a server at {self._address}: {error}") from error
        return said

    def _received(self) -> Any:
        answer = self._socket.recv(timeout=self._timeout_s)
        if isinstance(answer, str):
            raise RobotError(f"policy: the server says: {answer.strip()[-300:]}")
        return self._msgpack.unpackb(answer, object_hook=_unpacked)


def _is_finite(actions: np.ndarray) -> bool:
    return actions.dtype.kind in "iuf" and bool(np.isfinite(actions).all())


def _packed(value: Any) -> Any:
    """Write an array as openpi's messages have it."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufSU":
        if isinstance(value, np.generic):
            return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    raise TypeError(f"expected numbers, texts and arrays of them, got {type(value).__name__}")


def _unpacked(value: dict[Any, Any]) -> Any:
    if b"__ndarray__" in value:
        return np.frombuffer(value[b"data"], np.dtype(value[b"dtype"])).reshape(value[b"shape"])
    if b"__npgeneric__" in value:
        return np.dtype(value[b"dtype"]).type(value[b"data"])
    return value


class Body(Protocol):
    """The hardware."""

    def inputs(self) -> Mapping[str, Any]:
        """Return cameras and joints by the names that the policy knows."""
        ...

    def pictures(self) -> Sequence[Picture]:
        """Return what agent and judge see now."""
        ...

    def apply(self, action: np.ndarray) -> None:
        """Carry out one action; return when the next may come."""
        ...


class PolicyRobot:
    """A `Robot` of a body and a policy.

    Args:
        body: the hardware.
        policy: of its arms.
        navigate: drives to a place and says whether it got there; None where the policy does that, too.
        judge: says whether a skill is done; without one the outcome is unknown.
        skills: what the policy was trained on.
        max_chunks: of a skill.
        chunk_steps: actions of a chunk that are applied before the policy is asked again; None for all.
    """

    def __init__(
        self,
        body: Body,
        policy: OpenPiPolicy,
        *,
        navigate: Callable[[str], bool] | None = None,
        judge: OutcomeJudge | None = None,
        skills: Sequence[Skill] = KITCHEN_SKILLS,
        max_chunks: int = 20,
        chunk_steps: int | None = None,
    ):
        self.skills = tuple(skills)
        self._body, self._policy, self._navigate, self._judge = body, policy, navigate, judge
        self._max_chunks, self._chunk_steps = max_chunks, chunk_steps
        self._stop = threading.Event()

    def observe(self) -> Outcome:
        return Outcome("unknown", "", self._body.pictures())

    def execute(self, skill: str, arguments: Mapping[str, str]) -> Outcome:
        """Carry out a skill; raise `RobotError` before the first action alone."""
        self._stop.clear()
        if skill == "navigate_to" and self._navigate is not None:
            is_there = self._navigate(*arguments.values())
            return Outcome("success" if is_there else "failure", "", self._body.pictures())
        words = " the ".join([_VERBS.get(skill, skill.replace("_", " ")), *arguments.values()])
        before, outcome = self._body.pictures(), Outcome("unknown")
        for chunk in range(self._max_chunks):
            try:
                actions = self._policy.infer({**self._body.inputs(), "prompt": words})
            except RobotError as error:
                if not chunk:
                    raise
                return outcome._replace(message=str(error))
            for action in actions[: self._chunk_steps]:
                if self._stop.is_set():
                    break
                self._body.apply(action)
            after = self._body.pictures()
            if self._stop.is_set():  # before anything that takes long
                return Outcome("unknown", "It was stopped.", after)
            status = self._judge.judge(words, before, after) if self._judge else "unknown"
            outcome = Outcome(status, "", after)
            if status == "success":
                break
        return outcome

    def cancel(self) -> None:
        self._stop.set()
