"""SkyRL's env class: episodes through its own registry, in many threads, and its dataset."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError
from embodied_mem.serve.replies import command_of

skyrl_gym = pytest.importorskip("skyrl_gym", reason="skyrl-gym is not installed: pip install skyrl-gym")

from embodied_mem.serve import skyrl  # noqa: E402


def _episode(row: dict) -> list:
    env = skyrl_gym.make(row["env_class"], env_config={}, extras={**row, "max_turns": 7})
    messages, _ = env.init(row["prompt"])
    answers, done = [messages], False
    while not done:
        commands = messages[-1]["content"].rsplit("Possible now: ", 1)[1].split(", ")
        step = env.step(
            f"<think>so far {len(answers)}</think><action>{commands[len(answers) % len(commands)]}</action>"
        )
        messages, done = step["observations"], step["done"]
        answers.append((messages, step["reward"], done, step["metadata"]))
    return [*answers, env.get_metrics()]


def test_an_episode_is_the_worlds_own():
    (row,) = skyrl.rows("alfworld", 1, first_seed=3)
    env = skyrl_gym.make(row["env_class"], env_config={}, extras=row)
    (system, first), info = env.init(row["prompt"])
    world = TextEnv("alfworld")
    text, expected = world.reset(seed=3)
    assert system == row["prompt"][0]
    assert first["content"].startswith(text)
    assert info["task_id"] == expected["task_id"]
    answered = env.step("I look around.\nlook")
    text, reward, _, _, _ = world.step("look")
    assert answered["observations"][0]["content"].startswith(text)
    assert (answered["reward"], answered["done"], answered["metadata"]["command"]) == (reward, False, "look")
    assert env.get_metrics() == {"won": 0.0, "progress": 0.0, "steps": 1.0}
    assert type(env).aggregate_metrics([env.get_metrics()])["won"] == 0.0


def test_256_threads_play_as_one_does():
    """All begin at once; each plays to its end what the same row gives in this thread alone."""
    rows, begin = skyrl.rows("alfworld", 256), threading.Barrier(256, timeout=60)
    with ThreadPoolExecutor(256) as pool:
        together = list(pool.map(lambda row: begin.wait() >= 0 and _episode(row), rows))
    assert together == [_episode(row) for row in rows]
    assert len({str(episode) for episode in together}) > 16  # of the tasks of a home


def test_a_dataset_holds_the_rows(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "new" / "train.parquet"
    skyrl.main(["alfworld", str(path), "--num_tasks", "3", "--options", '{"max_steps": 5}'])
    rows = pandas.read_parquet(path).to_dict("records")
    assert [row["extra_info"]["seed"] for row in rows] == [0, 1, 2]
    assert json.loads(rows[0]["extra_info"]["options"]) == {"max_steps": 5}
    assert len(_episode({**rows[0], "prompt": list(rows[0]["prompt"])})) == 1 + 5 + 1


def test_the_writer_says_in_a_line_what_is_missing(tmp_path):
    command = [sys.executable, "-m", "embodied_mem.serve.skyrl", "alfworld", str(tmp_path / "train.parquet")]
    environment = {**os.environ, "EMBODIED_MEM_DATA": str(tmp_path), "ALFWORLD_DATA": ""}
    ended = subprocess.run(
        [*command, "--options", '{"tasks": "train"}'], capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ALFWorld's split 'train' is not installed")
    assert ended.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_row_without_a_world_is_refused():
    with pytest.raises(InvalidInputError, match="world"):
        skyrl_gym.make(skyrl.ENV_CLASS, extras={"extra_info": {"seed": 1}})


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"seed": 1.7}, "seed: expected a whole number"),
        ({"seed": None}, "seed: expected a whole number"),
        ({"options": "{"}, "options: expected JSON"),
        ({"options": "[]"}, "options: expected an object"),
        ({"options": '{"num_envs": 3}'}, "num_envs"),
    ],
)
def test_a_row_that_names_no_task_is_refused(row, words):
    (good,) = skyrl.rows("alfworld", 1)
    with pytest.raises(InvalidInputError, match=words):
        skyrl_gym.make(skyrl.ENV_CLASS, extras={"extra_info": {**good["extra_info"], **row}})


def test_what_cannot_be_played_is_refused():
    (row,) = skyrl.rows("alfworld", 1)
    env = skyrl_gym.make(skyrl.ENV_CLASS, extras={"extra_info": {**row["extra_info"], "options": {"max_steps": 5}}})
    with pytest.raises(InvalidInputError, match="prompt: expected a list"):
        env.init("You act.")
    env.init(row["prompt"])
    with pytest.raises(InvalidInputError, match="action: expected a str, got NoneType"):
        env.step(None)
    for wrong in (-1, 1.5, "7"):
        with pytest.raises(InvalidInputError, match="max_turns"):
            skyrl_gym.make(skyrl.ENV_CLASS, extras={**row, "max_turns": wrong})
    for wrong in ("alfworld", [row], 7):
        with pytest.raises(InvalidInputError, match="extras: expected extra_info"):
            skyrl_gym.make(skyrl.ENV_CLASS, extras={"extra_info": wrong})
    with pytest.raises(InvalidInputError, match="options: expected JSON, so tasks by name or file"):
        skyrl.rows("alfworld", 1, tasks=[object()])


@pytest.mark.parametrize(
    ("reply", "command"),
    [
        ("go to desk 1", "go to desk 1"),
        ("I think.\n\n  look \n", "look"),
        ("<think>take it?</think>\n<action> take mug 1\nfrom desk 1 </action>", "take mug 1 from desk 1"),
        ("<action>look</action> no: <ACTION>inventory</ACTION> done", "inventory"),
        ("<think>cut off <action>look</action>", ""),
        ("I could <action>look</action>\n</think>\ngo to desk 1", "go to desk 1"),
        ("</think><action>look", "look"),
        ("<action></action>\nlook", "look"),
        ("```\nlook\n```", "look"),
        ("", ""),
    ],
)
def test_the_command_of_a_reply(reply, command):
    assert command_of(reply) == command
