"""The verifiers environment, played by verifiers' own agent: its interception server, its model client, its traces."""

from __future__ import annotations

import asyncio
import sys
import tomllib

import pytest
from chat_answers import Server
from pages import FENCE, ROOT

from embodied_mem.envs.single_env import TextEnv

pytest.importorskip("verifiers.v1", reason='verifiers is not installed: pip install "embodied_mem[verifiers]"')

import verifiers.v1 as vf

from embodied_mem.serve.verifiers import SYSTEM_PROMPT, WorldEnv, WorldTaskset, command_of

HARNESS = '''
"""A harness that asks once per turn and runs in this process; verifiers' own are programs that uv fetches."""
import httpx
import verifiers.v1 as vf
from verifiers.v1.dialects.chat import message_to_wire

__all__ = ["OneCall"]


class OneCallConfig(vf.HarnessConfig):
    pass


class OneCall(vf.Harness[OneCallConfig]):
    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    SUPPORTS_MCP = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, tool_interception_url=None):
        system, prompt = self.resolve_prompt(data)
        first = isinstance(prompt, str)
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": "user", "content": prompt}] if first else [message_to_wire(one) for one in prompt]
        async with httpx.AsyncClient(timeout=30) as client:
            answer = await client.post(
                f"{endpoint}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": messages},
            )
        answer.raise_for_status()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
'''


def said(reply):
    """An answer of a chat server, with all that verifiers asks for."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "told", "choices": [choice]}
    return 200, answer | {"usage": usage}, {"Content-Type": "application/json"}


@pytest.fixture
def episode(tmp_path, monkeypatch):
    """(replies, options) -> the trace of task 0, and what the model was asked."""
    (tmp_path / "one_call.py").write_text(HARNESS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    servers = []

    def play(replies, **options):
        servers.append(Server(*map(said, replies)))
        client = vf.EvalClientConfig(base_url=servers[-1].url)
        config = vf.resolve_env_config(
            {
                "taskset": {"id": "embodied_mem_verifiers", "options": options, "num_tasks": 2},
                "player": {"harness": {"id": "one_call"}, "runtime": {"type": "subprocess"}},
                "interception": {"type": "server"},
            }
        )
        env = vf.load_environment(config)
        assert isinstance(env, WorldEnv)

        async def run():
            context = vf.ModelContext(model="told", client=client, sampling=vf.SamplingConfig())
            async with env.serving():
                return await env.run_episode(next(iter(env.taskset)), context)

        played = asyncio.run(run())
        assert played.errors == []
        (trace,) = played.traces
        return trace, [body["messages"] for _, _, body in servers[-1].requests]

    yield play
    for server in servers:
        server.close()
    sys.modules.pop("one_call", None)


def test_tasks_are_the_worlds_first_texts():
    world = TextEnv("alfworld", max_steps=5)
    taskset = WorldTaskset(vf.taskset_config_type("embodied_mem_verifiers")(options={"max_steps": 5}, num_tasks=3))
    tasks = list(taskset)
    assert [task.data.idx for task in tasks] == [0, 1, 2]
    assert len({task.key for task in tasks}) == 3
    for task in tasks:
        text, info = world.reset(seed=task.data.seed)
        assert task.data.prompt == f"{text}\nPossible now: {', '.join(info['admissible_commands'])}"


@pytest.mark.parametrize(
    ("reply", "command"), [("look", "look"), ("I think\n\n go to x 1 \n", "go to x 1"), ("\n", "")]
)
def test_the_command_is_the_last_line(reply, command):
    assert command_of(reply) == command


def test_an_agent_of_verifiers_plays_and_loses(episode):
    trace, asked = episode(["Let me see.\nlook", "inventory"], max_steps=3)
    world = TextEnv("alfworld", max_steps=3)
    first, info = world.reset(seed=0)
    assert trace.errors == []
    assert (trace.rewards["won"].value, trace.metrics["steps"]) == (0.0, 3.0)
    assert trace.info["task_id"] == info["task_id"]
    assert len(asked) == 3
    assert asked[0][0] == {"role": "system", "content": SYSTEM_PROMPT}
    assert asked[0][-1]["content"].startswith(first)
    told = world.step("look")
    assert asked[1][-1]["content"] == f"{told[0]}\nPossible now: {', '.join(told[4]['admissible_commands'])}"


def test_an_agent_of_verifiers_wins(episode):
    from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan

    world = TextEnv("alfworld")
    world.reset(seed=0)
    plan = shortest_plan(WorldState.from_env(world._envs.env(0)))
    trace, asked = episode(plan)
    assert trace.errors == []
    assert (trace.reward, trace.metrics["progress"], trace.metrics["steps"]) == (1.0, 1.0, len(plan))
    assert len(asked) == len(plan)


def test_the_block_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/drop_in.md").read_text()
    (code,) = (
        code for language, code in FENCE.findall(page) if language == "python" and "serve.verifiers import" in code
    )
    exec(compile(code, "block", "exec"), {"__name__": "block"})


def test_the_taskset_ends_is_cheap_and_can_be_pickled():
    import pickle

    taskset = WorldTaskset(vf.taskset_config_type("embodied_mem_verifiers")(num_tasks=50))
    assert taskset.bounded
    again = pickle.loads(pickle.dumps(taskset))
    tasks = list(taskset)
    assert [task.key for task in again] == [task.key for task in tasks]
    assert pickle.loads(pickle.dumps(tasks[3])).data == tasks[3].data
    assert [task.data.idx for task in taskset.shuffle(seed=1).take(3)] == [
        task.data.idx for task in again.shuffle(seed=1).take(3)
    ]


def test_prime_rls_config_names_an_env_that_verifiers_resolves():
    """prime-rl is in no index. It gives an entry without its own fields to verifiers' resolver, as is done here."""
    config = tomllib.loads((ROOT / "examples/prime_rl_alfworld.toml").read_text())
    assert set(config) <= {
        "max_steps",
        "seq_len",
        "deployment",
        "model",
        "trainer",
        "orchestrator",
        "ckpt",
        "inference",
    }
    (entry,) = config["orchestrator"]["train"]["env"]
    assert entry.pop("name") == "alfworld"
    env = vf.load_environment(vf.resolve_env_config(entry))
    assert isinstance(env, WorldEnv)
    assert env.taskset.config.num_tasks == 2000
    assert next(iter(env.taskset)).data.options == {"max_steps": 30}
    with pytest.raises(ValueError, match="taskset"):
        vf.resolve_env_config({**entry, "taskset": {**entry["taskset"], "colour": "red"}})
