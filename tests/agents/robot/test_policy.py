"""A robot by a policy at servers of openpi's and LeRobot's protocols, which are written here from their documents."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sys
import threading
import types
from concurrent import futures
from typing import Any

import msgpack
import numpy as np
import pytest
from websockets.sync.server import serve

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.agents.robot.judge import OutcomeJudge
from embodied_mem.agents.robot.policy import KITCHEN_SKILLS, LeRobotPolicy, OpenPiPolicy, PolicyRobot
from embodied_mem.agents.robot.robot import RobotError
from embodied_mem.agents.robot.runner import Limits, Runner
from embodied_mem.language.chat import ChatReply, UsageMeter

CHUNK = np.arange(6, dtype=np.float32).reshape(3, 2)


def array(value):
    """An array of a message of openpi's."""
    return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": list(value.shape)}


class PolicyServer:
    """Answers with `answers` in turn, the last one for ever; a text is an error, as the original's traceback is."""

    def __init__(self, *answers):
        self.answers, self.received, self.keys = list(answers), [], []
        self.before_answer = lambda: None
        self.server = serve(self.answer, "127.0.0.1", 0, compression=None, max_size=None)
        self.address = f"ws://127.0.0.1:{self.server.socket.getsockname()[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, connection):
        self.keys.append(connection.request.headers.get("Authorization"))
        connection.send(msgpack.packb({"action_horizon": 3}))
        for message in connection:
            self.received.append(msgpack.unpackb(message))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.before_answer()
            connection.send(answer if isinstance(answer, str) else msgpack.packb(answer))


@pytest.fixture
def serving():
    servers = []

    def start(*answers):
        servers.append(PolicyServer(*answers))
        return servers[-1]

    yield start
    for server in servers:
        server.server.shutdown()


class Arms:
    """A body that counts what it did."""

    def __init__(self):
        self.applied = []

    def inputs(self):
        return {"observation/state": np.array([len(self.applied), 0.5]), "observation/image": np.zeros((4, 4, 3), "u1")}

    def pictures(self):
        return [np.full((8, 8, 3), len(self.applied), np.uint8)]

    def apply(self, action):
        self.applied.append(action.tolist())


def judging(*outcomes):
    left = iter(outcomes)
    return OutcomeJudge(lambda messages: json.dumps({"reason": "seen", "outcome": next(left)}))


def test_a_message_is_openpis(serving):
    server = serving({"actions": array(CHUNK), "server_timing": {"infer_ms": 1.5}})
    policy = OpenPiPolicy(server.address, api_key="secret")
    assert policy.metadata == {"action_horizon": 3}
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    actions = policy.infer({"observation/image": image, "step": np.float32(0.5), "prompt": "pick up the banana"})
    np.testing.assert_array_equal(actions, CHUNK)
    assert server.keys == ["Api-Key secret"]
    [sent] = server.received
    assert sent["observation/image"] == array(image)
    assert sent["step"] == {b"__npgeneric__": True, b"data": 0.5, b"dtype": "<f4"}
    assert sent["prompt"] == "pick up the banana"
    policy.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Traceback: KeyError: 'state'", "the server says: Traceback: KeyError"),
        ({"action": 1}, "expected an answer with actions"),
        ({"actions": array(CHUNK[0])}, r"expected finite actions\[horizon, dimensions\]"),
        ({"actions": array(CHUNK * np.nan)}, "expected finite actions"),
        ({"actions": array(np.array([["a", "b"]]))}, "expected finite actions"),
    ],
)
def test_what_is_no_answer_is_an_error_of_the_robot(serving, answer, said):
    with pytest.raises(RobotError, match=said):
        OpenPiPolicy(serving(answer).address).infer({"prompt": "open the oven"})


def test_an_answer_that_came_too_late_is_never_taken_for_the_next_one(serving):
    server = serving({"actions": array(CHUNK)}, {"actions": array(CHUNK + 100)})
    policy, late = OpenPiPolicy(server.address, timeout_s=0.5), threading.Event()
    server.before_answer = late.wait
    with pytest.raises(RobotError, match="timed out"):
        policy.infer({"prompt": "open the oven"})
    late.set()
    np.testing.assert_array_equal(policy.infer({"prompt": "close the oven"}), CHUNK + 100)
    policy.close()


def test_without_a_server_the_address_is_named():
    with pytest.raises(RobotError, match=r"expected a server at ws://127\.0\.0\.1:9"):
        OpenPiPolicy("ws://127.0.0.1:9", timeout_s=2)


def test_a_skill_goes_on_chunk_by_chunk_until_the_judge_sees_it_done(serving):
    server, arms = serving({"actions": array(CHUNK)}), Arms()
    judge = judging("failure", "unknown", "success")
    robot = PolicyRobot(arms, OpenPiPolicy(server.address), judge=judge, chunk_steps=2)
    outcome = robot.execute("pick_up", {"object": "banana"})
    assert outcome.status == "success"
    assert outcome.images[0][0, 0, 0] == 6
    assert arms.applied == CHUNK[:2].tolist() * 3
    assert [message["prompt"] for message in server.received] == ["pick up the banana"] * 3
    assert judge.writer.calls == 3


def test_limits_errors_and_stops(serving):
    server, arms = serving({"actions": array(CHUNK)}, "Traceback: out of memory"), Arms()
    robot = PolicyRobot(arms, OpenPiPolicy(server.address), max_chunks=2)
    outcome = robot.execute("open", {"object": "oven"})
    assert (outcome.status, len(arms.applied)) == ("unknown", 3)
    assert "out of memory" in outcome.message
    with pytest.raises(RobotError, match="out of memory"):  # before anything was done
        robot.execute("open", {"object": "oven"})

    class Stopping(Arms):
        def apply(self, action):
            super().apply(action)
            stopped.cancel()

    body = Stopping()
    stopped = PolicyRobot(body, OpenPiPolicy(serving({"actions": array(CHUNK)}).address))
    assert stopped.execute("close", {"object": "oven"}).message == "It was stopped."
    assert len(body.applied) == 1
    server = serving({"actions": array(CHUNK[:1])})  # by the last action of a chunk
    stopped = PolicyRobot(Stopping(), OpenPiPolicy(server.address), judge=(judge := judging("failure")))
    assert stopped.execute("close", {"object": "oven"}).message == "It was stopped."
    assert (len(server.received), judge.writer.calls) == (1, 0)


class Model:
    """Plans one step of a task after the other, and sees each done."""

    name = "model"

    def __init__(self):
        self.meter, self.judged = UsageMeter(), []

    def complete(self, messages, **settings):
        system, asked = messages[0]["content"], messages[-1]["content"]
        if "household robot's hands" in system:
            self.judged.append([part["type"] for part in asked])
            return ChatReply(json.dumps({"reason": "", "outcome": "success"}))
        if "You are the planner" in system:
            steps = [{"skill": "navigate_to", "point": "counter"}, {"skill": "pick_up", "object": "banana"}]
            steps += [{"skill": "put_down_to", "place": "basket"}, {"skill": "task_complete"}]
            return ChatReply(json.dumps({"reasoning": "", "done": "", "left": "", "steps": steps}))
        return ChatReply(json.dumps({"ok": True, "reason": ""}) if "You are the critic" in system else "so")


def test_an_agent_acts_through_a_policy(serving):
    server, arms, model, places = serving({"actions": array(CHUNK)}), Arms(), Model(), []
    robot = PolicyRobot(
        arms, OpenPiPolicy(server.address), judge=OutcomeJudge(model), navigate=lambda place: not places.append(place)
    )
    agent = PlannerCriticAgent(**chat_parts(model, KITCHEN_SKILLS))
    run = Runner(robot, Limits(max_steps=15)).run(agent, "Put the banana into the basket.")
    assert (run.ended, run.won, places) == ("agent", True, ["counter"])
    assert [step.outcome.status for step in run.steps] == ["success"] * 3
    assert [message["prompt"] for message in server.received] == ["pick up the banana", "put it down at the basket"]
    assert model.judged == [["text", "image_url", "image_url"]] * 2


def test_useless_verdicts_leave_the_outcome_unknown():
    judge = OutcomeJudge(lambda messages: "well")
    picture = np.zeros((8, 8, 3), np.uint8)
    assert judge.judge("open the oven", [picture], [picture]) == "unknown"
    assert judge.writer.malformed == 1
    assert judge.judge("open the oven", [picture], []) == "unknown"
    assert judge.writer.calls == 1


@dataclasses.dataclass
class RemotePolicyConfig:
    policy_type: str
    pretrained_name_or_path: str
    lerobot_features: dict[str, Any]
    actions_per_chunk: int
    device: str = "cpu"


@dataclasses.dataclass
class TimedObservation:
    timestamp: float
    timestep: int
    observation: dict[str, Any]
    must_go: bool = False


@dataclasses.dataclass
class TimedAction:
    timestamp: float
    timestep: int
    action: Any


SERVICE = {"SendObservations": "Observation", "GetActions": "Empty", "SendPolicyInstructions": "PolicySetup"}
FIELDS = {"Observation": ("transfer_state", "data"), "Actions": ("data",), "PolicySetup": ("data",), "Empty": ()}


def messages():
    """LeRobot's messages, by the package protobuf; an enumeration is a number on the wire."""
    protobuf = pytest.importorskip("google.protobuf", reason="no protobuf: pip install protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    assert protobuf
    file = descriptor_pb2.FileDescriptorProto(name="services.proto", package="transport", syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field in fields:
            number, kind = (1, 5) if field == "transfer_state" else (len(fields), 12)
            message.field.add(name=field, number=number, type=kind, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"transport.{name}")) for name in FIELDS}


class LeRobotServer:
    """Answers an observation with actions that count on from its number, as the original does; `spoilt` changes them.

    An observation that is missing, or an error, gets an empty answer.
    """

    def __init__(self, grpc, port=0):
        self.types, self.setups, self.seen, self.parts, self.spoilt = messages(), [], [], [], lambda actions: actions
        self.waiting = None
        handlers = {"Ready": grpc.unary_unary_rpc_method_handler(lambda request, context: b"")}
        for name, kind in SERVICE.items():
            make = (
                grpc.stream_unary_rpc_method_handler if kind == "Observation" else grpc.unary_unary_rpc_method_handler
            )
            read = self.types[kind].FromString
            handlers[name] = make(getattr(self, name), read, lambda message: message.SerializeToString())
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("transport.AsyncInference", handlers)]
        )
        self.address = f"127.0.0.1:{self.server.add_insecure_port(f'127.0.0.1:{port}')}"
        self.server.start()

    def SendPolicyInstructions(self, request, context):
        self.setups.append(pickle.loads(request.data))
        return self.types["Empty"]()

    def SendObservations(self, parts, context):
        parts = list(parts)
        self.parts = [part.transfer_state for part in parts]
        self.waiting = pickle.loads(b"".join(part.data for part in parts))
        return self.types["Empty"]()

    def GetActions(self, request, context):
        import torch

        seen, self.waiting = self.waiting, None
        self.seen.append(seen)
        actions = [
            TimedAction(seen.timestamp + i / 30, seen.timestep + i, torch.from_numpy(row.copy()))
            for i, row in enumerate(CHUNK + seen.observation["shoulder.pos"])
        ]
        actions = self.spoilt(actions)
        return self.types["Actions"](data=pickle.dumps(actions)) if actions else self.types["Empty"]()


@pytest.fixture
def lerobot(monkeypatch):
    """A server whose process has LeRobot's classes."""
    grpc = pytest.importorskip("grpc", reason="no grpcio: pip install grpcio")
    pytest.importorskip("torch", reason="no torch: pip install torch")
    module = types.ModuleType("lerobot.async_inference.helpers")
    for kind in (RemotePolicyConfig, TimedObservation, TimedAction):
        monkeypatch.setattr(kind, "__module__", module.__name__)
        setattr(module, kind.__name__, kind)
    for name in ("lerobot", "lerobot.async_inference", module.__name__):
        monkeypatch.setitem(sys.modules, name, module)
    server = LeRobotServer(grpc)
    yield server
    server.server.stop(None)


def test_a_message_is_lerobots(lerobot):
    features = {"observation.state": {"dtype": "float32", "shape": (1,), "names": ["shoulder.pos"]}}
    policy = LeRobotPolicy(
        lerobot.address, "smolvla", "lerobot/smolvla_base", features, actions_per_chunk=3, timeout_s=60
    )
    assert lerobot.setups == [RemotePolicyConfig("smolvla", "lerobot/smolvla_base", features, 3, "cuda")]
    image = np.arange(1200 * 1300 * 3, dtype=np.uint8).reshape(1200, 1300, 3)  # in three parts of 2 MiB
    for number in (1, 2):
        inputs = {"shoulder.pos": 10.0 * number, "front": image, "prompt": "pick up the banana"}
        np.testing.assert_array_equal(policy.infer(inputs), CHUNK + 10 * number)
    assert lerobot.parts == [1, 2, 3]
    first, second = lerobot.seen
    assert (first.timestep, second.timestep, second.must_go) == (1, 2, True)
    assert set(second.observation) == {"shoulder.pos", "front", "task"}
    assert second.observation["task"] == "pick up the banana"
    np.testing.assert_array_equal(second.observation["front"], image)
    policy.close()


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (lambda actions: [], "no actions for this observation"),
        (lambda actions: [dataclasses.replace(one, timestep=one.timestep - 1) for one in actions], "no actions for th"),
        (lambda actions: [dataclasses.replace(one, action=one.action * np.nan) for one in actions], "expected finite"),
        (lambda actions: [dataclasses.replace(one, action=print) for one in actions], "got builtins.print"),
    ],
)
def test_what_is_no_chunk_is_an_error_of_the_robot_and_the_next_call_connects_anew(lerobot, spoilt, said):
    policy = LeRobotPolicy(lerobot.address, "act", "folder", {})
    lerobot.spoilt = spoilt
    with pytest.raises(RobotError, match=said):
        policy.infer({"shoulder.pos": 0.0, "prompt": "open the oven"})
    lerobot.spoilt = lambda actions: actions
    np.testing.assert_array_equal(policy.infer({"shoulder.pos": 1.0, "prompt": "open the oven"}), CHUNK + 1)
    assert len(lerobot.setups) == 1 + (said != "expected finite")
    policy.close()


def test_without_lerobots_server_the_address_is_named():
    pytest.importorskip("grpc", reason="no grpcio: pip install grpcio")
    pytest.importorskip("torch", reason="no torch: pip install torch")
    with pytest.raises(RobotError, match=r"expected a server at 127\.0\.0\.1:9"):
        LeRobotPolicy("127.0.0.1:9", "act", "folder", {}, timeout_s=2)


def test_a_robot_acts_by_lerobots_policy(lerobot):
    class Arm(Arms):
        def inputs(self):
            return {"shoulder.pos": float(len(self.applied))}

    arm = Arm()
    robot = PolicyRobot(arm, LeRobotPolicy(lerobot.address, "act", "folder", {}), judge=judging("failure", "success"))
    assert robot.execute("open", {"object": "oven"}).status == "success"
    assert arm.applied == [*CHUNK.tolist(), *(CHUNK + 3).tolist()]
    assert [one.observation["task"] for one in lerobot.seen] == ["open the oven"] * 2
