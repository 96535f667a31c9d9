"""OpenEnv's environment of a world, in process and over its server and client, and TRL's trainer with it."""

from __future__ import annotations

import contextlib
import importlib
import socket
import sys
import threading
import time

import pytest
from pages import FENCE, ROOT

from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError

pytest.importorskip("openenv.core", reason='OpenEnv is not installed: pip install "embodied_mem[openenv]"')

from embodied_mem.serve.openenv import CommandAction, ToolEnvironment, WorldClient, WorldEnvironment, app

OPTIONS = {"max_steps": 4, "seed": 5}


@contextlib.contextmanager
def _served(**options):
    """A server on a free port of this machine, in a thread; yields its address."""
    import uvicorn

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app("alfworld", **options), port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def _played(reset, step, commands):
    """The texts, rewards, ends and commands of an episode of seed 7."""
    answers = [reset(seed=7, episode_id="seventh")]
    answers += [step(CommandAction(command=command)) for command in commands]
    return [(one.text, one.reward, one.done, one.admissible_commands, one.goal) for one in answers]


def test_the_environment_plays_the_worlds_own_env():
    env, plain = WorldEnvironment("alfworld", **OPTIONS), TextEnv("alfworld", **OPTIONS)
    commands = ["look", "inventory", "xyzzy", "look"]
    rows = [plain.reset(seed=7)]
    expected = [(rows[0][0], None, False, rows[0][1]["admissible_commands"], rows[0][1]["goal"])]
    for i, command in enumerate(commands, 1):
        text, reward, terminated, truncated, info = plain.step(command)
        expected.append((text, reward, terminated or truncated, info["admissible_commands"], info["goal"]))
        assert truncated == (i == 4)
    assert _played(env.reset, env.step, commands) == expected
    state = env.state
    assert (state.world, state.episode_id, state.step_count, state.won) == ("alfworld", "seventh", 4, False)
    assert state.task_id == info["task_id"]
    with pytest.raises(InvalidInputError, match="the episode is over"):
        env.step(CommandAction(command="look"))
    assert env.reset(seed=7).text == expected[0][0] != env.reset(task_index=1, seed=7).text
    assert env.state.episode_id == env.state.task_id
    with pytest.raises(InvalidInputError, match="got also colour"):
        env.reset(colour="red")
    env.close()


def test_sessions_over_the_server_are_apart_and_give_the_same():
    env = WorldEnvironment("alfworld", **OPTIONS)
    commands = ["look", "inventory"]
    expected = _played(env.reset, env.step, commands)
    with _served(**OPTIONS) as url, WorldClient(base_url=url).sync() as one, WorldClient(base_url=url).sync() as other:
        other.reset(seed=8)
        played = _played(
            lambda **kwargs: one.reset(**kwargs).observation, lambda action: one.step(action).observation, commands
        )
        assert played == expected
        assert one.state() == env.state
        assert other.state().step_count == 0


def _tools():
    return ToolEnvironment(WorldEnvironment("alfworld", max_steps=2))


def test_tools_tell_what_is_possible_and_sum_the_reward():
    for env in (_tools(), _tools()):
        first = env.reset(seed=3, prompt=[{"role": "user", "content": ""}])
        assert "Your task is to" in first
        command = first.partition("Possible now: ")[2].split(", ")[0]
        assert "Possible now: " in env.act(command)
        assert "Possible now: " not in env.act("look")
        assert env.act("look") == "The episode is over."
        assert env.get_reward() == 0.0


def test_a_won_game_is_rewarded():
    from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan

    world = WorldEnvironment("alfworld")
    env = ToolEnvironment(world)
    env.reset(seed=1)
    for command in shortest_plan(WorldState.from_env(world._env._envs.env(0))):
        assert env.get_reward() == 0.0
        env.act(command)
    assert env.get_reward() == 1.0
    assert world.state.won


@pytest.mark.slow
def test_trl_trains_with_it(tmp_path):
    """One step of the real trainer, a random model of 2 layers: prompts hold the game, `act` is a tool."""
    trl = pytest.importorskip("trl", reason="TRL is not installed: pip install trl transformers torch")
    torch = pytest.importorskip("torch")
    from datasets import Dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    marks = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<pad>"]
    raw = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<pad>", additional_special_tokens=marks
    )
    from trl.chat_template_utils import qwen3_chat_template

    tokenizer.chat_template = qwen3_chat_template
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=2, head_dim=16,
            num_attention_heads=2, num_key_value_heads=2, eos_token_id=tokenizer.eos_token_id,
        )
    )  # fmt: skip
    rows = [{"prompt": [{"role": "user", "content": "Play.\n"}], "seed": seed} for seed in (1, 2)]
    made, seen = [], []

    def environment():
        made.append(_tools())
        return made[-1]

    def length(prompts, environments, **_):
        seen.extend(prompts)
        return [float(len(prompt[-1]["content"])) for prompt in prompts]

    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path), per_device_train_batch_size=4, num_generations=2, max_completion_length=16,
        max_steps=1, report_to=[], use_cpu=True, save_strategy="no",
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
        environment_factory=environment, reward_funcs=length,
    )  # fmt: skip
    trainer.train()
    assert len(made) == 4
    assert [tool.__name__ for tool in trainer.tools] == ["act"]
    assert all("Your task is to" in prompt[-1]["content"] for prompt in seen)
    assert any("rewards/ToolEnvironment/mean" in row for row in trainer.state.log_history)


def test_the_block_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/drop_in.md").read_text()
    (code,) = (
        code for language, code in FENCE.findall(page) if language == "python" and "serve.openenv import" in code
    )
    exec(compile(code, "block", "exec"), {"__name__": "block"})


def test_openenvs_own_command_accepts_the_folder_and_its_app_answers(monkeypatch):
    """What `openenv validate`, `build` and `push` read: the manifest's fields, and the files that must be there."""
    import yaml
    from openenv.cli._cli_utils import validate_env_structure
    from openenv.validation import run_validation

    folder = ROOT / "examples/openenv_alfworld"
    validate_env_structure(folder)  # raises for a missing file
    report = run_validation(folder, skip_build=True)
    assert not [one for one in report.results if one.status in ("fail", "error")]
    manifest = yaml.safe_load((folder / "openenv.yaml").read_text())
    module, _, name = manifest["app"].partition(":")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, module, raising=False)
    served = getattr(importlib.import_module(module), name)
    sys.modules.pop(module)
    assert {"/reset", "/step", "/health"} <= {route.path for route in served.routes}
    assert f'"{manifest["app"]}"' in (folder / "Dockerfile").read_text()
    assert f'"{manifest["port"]}"' in (folder / "Dockerfile").read_text()
