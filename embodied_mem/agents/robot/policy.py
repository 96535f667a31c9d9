"""A robot whose skills a vision-language-action policy carries out, behind a server of openpi or LeRobot.

    policy = OpenPiPolicy("ws://gpu:8000")                                   # `scripts/serve_policy.py` of openpi
    policy = LeRobotPolicy("gpu:8080", "smolvla", CHECKPOINT, FEATURES)      # `lerobot.async_inference.policy_server`
    robot = PolicyRobot(body, policy, navigate=drive_to, judge=OutcomeJudge(model))
    Runner(robot, Limits(max_steps=15)).run(agent, "Put the banana into the oven.")

`body` is the hardware (`Body`). The policy is told a skill in words ("pick up the banana"). Its chunks of actions are
applied until `max_chunks` are over, or until a judge says after one of them that the skill is done.

Source: RoboMemory 3.3, B.2, B.3, table 3. Needs the extra `robot`. The protocols are

- that of openpi's remote inference: a msgpack message each way over a WebSocket, after one with the server's metadata;
  an answer in text is an error;
- that of LeRobot's asynchronous inference: gRPC calls of a service `AsyncInference`, whose messages hold pickles of
  LeRobot's dataclasses. LeRobot is not needed here; its answers are torch tensors, and torch is.
"""

from __future__ import annotations

import functools
import io
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
        return _matrix(actions)

    def close(self) -> None:
        """End the connection; `infer` opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _open(self) -> dict[str, Any]:
        """Connect, and return what the server says of itself."""
        try:
            self._socket = self._connect()
            metadata: dict[str, Any] = self._received()
        except self._errors as error:
            self.close()
            raise RobotError(f"policy: expected a server at {self._address}: {error}") from error
        return metadata

    def _received(self) -> Any:
        answer = self._socket.recv(timeout=self._timeout_s)
        if isinstance(answer, str):
            raise RobotError(f"policy: the server says: {answer.strip()[-300:]}")
        return self._msgpack.unpackb(answer, object_hook=_unpacked)


def _matrix(actions: Any) -> np.ndarray:
    is_matrix = isinstance(actions, np.ndarray) and actions.ndim == 2 and actions.dtype.kind in "iuf"
    if not is_matrix or not np.isfinite(actions).all():
        raise RobotError(f"policy: expected finite actions[horizon, dimensions], got {str(actions)[:80]}")
    return np.asarray(actions)


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


class LeRobotPolicy:
    """A policy that LeRobot's server loads when this client connects; it answers one caller at a time.

    Args:
        address: `HOST:PORT`. The server reads pickles and answers with one: only for a network that is trusted.
        kind: of the policy, as `smolvla`.
        checkpoint: its folder or name, at the server.
        features: of the body's inputs as LeRobot's datasets describe them.
        actions_per_chunk: of an answer, at most.
        device: of the server.
        timeout_s: an answer may take.
        load_s: loading may take.

    Raises:
        MissingDependencyError: the extra `robot`, or torch, is not installed.
        RobotError: there is no such server.
    """

    def __init__(
        self,
        address: str,
        kind: str,
        checkpoint: str,
        features: Mapping[str, Any],
        *,
        actions_per_chunk: int = 50,
        device: str = "cuda",
        timeout_s: float = 10.0,
        load_s: float = 600.0,
    ):
        try:
            import grpc
            import torch  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError(f"policy: expected `pip install -e '.[robot]' torch`: {error}") from error
        self._grpc, self._address, self._timeout_s, self._load_s = grpc, address, timeout_s, load_s
        self._setup = _field(_call("RemotePolicyConfig", kind, checkpoint, dict(features), actions_per_chunk, device))
        self._lock, self._step = threading.Lock(), 0
        self._channel: Any = None
        self._open()

    def infer(self, observation: Mapping[str, Any]) -> np.ndarray:
        """Return the next actions as `OpenPiPolicy.infer`; the prompt is LeRobot's `task`."""
        inputs = {"task" if name == "prompt" else name: value for name, value in observation.items()}
        with self._lock:
            if self._channel is None:
                self._open()
            self._step += 1
            try:
                self._ask("SendObservations", _parts(_call("TimedObservation", time.time(), self._step, inputs, True)))
                chunk = _Answer(io.BytesIO(_data_of(self._ask("GetActions", b"")))).load()
                if {action.timestep - index for index, action in enumerate(chunk)} != {self._step}:
                    raise ValueError("no actions for this observation; the server's log says why")
                actions = np.stack([action.action.numpy() for action in chunk])
            except Exception as error:  # whatever a pickle raises
                self.close()
                raise RobotError(f"policy: expected an answer with actions: {error!r}") from error
        return _matrix(actions)

    def close(self) -> None:
        """End the connection; `infer` opens another."""
        if self._channel is not None:
            self._channel.close()
        self._channel = None

    def _open(self) -> None:
        self._channel = self._grpc.insecure_channel(self._address, [("grpc.max_receive_message_length", -1)])
        try:
            self._ask("Ready", b"")
            self._ask("SendPolicyInstructions", self._setup, self._load_s)
        except self._grpc.RpcError as error:
            self.close()
            raise RobotError(f"policy: expected a server at {self._address} that loads it: {error!r}") from error

    def _ask(self, method: str, message: Any, timeout_s: float | None = None) -> bytes:
        path, channel = f"/transport.AsyncInference/{method}", self._channel
        call = channel.unary_unary(path) if isinstance(message, bytes) else channel.stream_unary(path)
        answer: bytes = call(message, timeout=timeout_s or self._timeout_s)
        return answer


_CHUNK_BYTES = 2 << 20
_BEGIN, _MIDDLE, _END = 1, 2, 3  # of a message in parts


def _call(name: str, *values: Any) -> bytes:
    """Return a pickle that makes one of LeRobot's dataclasses."""
    start, end = b"\x80\x03clerobot.async_inference.helpers\n" + name.encode() + b"\n", b"R."
    return start + pickle.dumps(values, 3)[2:-1] + end


def _field(data: bytes, number: int = 1) -> bytes:
    """Return the field `number` of a protocol buffer with these bytes."""
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def _parts(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _CHUNK_BYTES):
        state = _END if start + _CHUNK_BYTES >= len(data) else _MIDDLE if start else _BEGIN
        yield bytes([1 << 3, state]) + _field(data[start : start + _CHUNK_BYTES], 2)


def _data_of(message: bytes) -> bytes:
    """Return the bytes in field 1 of an answer."""
    start = 1
    while start < len(message) and message[start] > 127:
        start += 1
    if message[:1] != b"\x0a":
        raise ValueError("no actions for this observation; the server's log says why")
    return message[start + 1 :]


class _TimedAction:
    """LeRobot's action with its number and time."""

    timestep: int
    action: Any


class _Answer(pickle.Unpickler):
    """Reads a list of actions, and nothing else that a pickle may name."""

    def find_class(self, module: str, name: str) -> Any:
        import torch

        types = {
            ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
            ("torch.storage", "_load_from_bytes"): lambda data: torch.load(io.BytesIO(data), weights_only=True),
            ("collections", "OrderedDict"): dict,
        }
        if module.startswith("lerobot.") and name == "TimedAction":
            return _TimedAction
        if (module, name) not in types:
            raise pickle.UnpicklingError(f"expected tensors with their times, got {module}.{name}")
        return types[module, name]


class Policy(Protocol):
    """The source of a `PolicyRobot`'s actions."""

    def infer(self, observation: Mapping[str, Any]) -> np.ndarray:
        """Return the next actions, float[horizon, dimensions], for inputs with their prompt."""
        ...


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
        policy: Policy,
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
