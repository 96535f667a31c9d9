"""A world of somebody else, installed as a package of its own, is found, played, remembered, trained on and scored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from quick_programs import flags

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PLAY = """
from embodied_mem import envs, registry
from embodied_mem.memory import LifelongMemory
from cellar_world.env import tasks

assert "cellar" in registry.names() and "cellar" in registry.names("tasks")
world = envs.make("cellar", tasks=tasks(6, seed=3), num_envs=2, max_steps=20)
memory = LifelongMemory(reader=registry.load("cellar", "reader"))
for task in range(4):
    texts, info = world.reset(options={"task_indices": [task, task]})
    memory.begin_task(info["task_id"][0], info["goal"][0], texts[0])
    thing = info["goal"][0].split()[2]
    if task > 2:
        assert memory.spatial.last_seen(thing).receptacle == "hall"
    for command in ("enter cellar", "enter attic", "enter kitchen", "enter study", "enter hall"):
        texts, _, ended, _, info = world.step([command] * 2)
        memory.observe(command, texts[0])
        if f"grab {thing}" in info["admissible_commands"][0]:
            for command in (f"grab {thing}", "enter hall", f"drop {thing}"):
                texts, _, ended, _, info = world.step([command] * 2)
                memory.observe(command, texts[0])
            break
    assert ended.all() and info["won"].all()
    memory.end_task(True)
print(memory.retrieve("bring the lantern to the hall", 200).render())
"""
TRAIN = """
import dataclasses, sys
sys.path.insert(0, "experiments")
import train
from embodied_mem.models.config import PRESETS

PRESETS["mini"] = dataclasses.replace(PRESETS["mini"], num_layers=1)
train.main(sys.argv[1:])
"""
FIELDS = {
    "world.name": "cellar", "world.train": "train", "world.valid": "held_out",
    "world.num_train": 8, "world.num_valid": 4, "world.max_steps": 8, "memory.top_k": 1,
    "memory.num_soft": 4, "model.vocab_size": 400, "model.max_compiler_tokens": 12, "model.max_action_tokens": 4,
    "executor_sft.steps": 4, "executor_sft.batch_size": 2, "executor_correction.num_games": 0,
    "executor_sft.optimizer": "adamw", "compiler_sft.optimizer": "adamw",
    "compiler_sft.steps": 4, "compiler_sft.batch_size": 2, "correction.num_games": 0,
    "grpo.steps": 1, "grpo.num_tasks": 2, "grpo.group_size": 2, "grpo.max_steps": 3, "grpo.microbatch": 4,
    "evaluation.batch_size": 16,
}  # fmt: skip


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Variables of an environment in which the world is installed, and nothing of it in this repository's folders."""
    target, source = tmp_path_factory.mktemp("site"), Path(__file__).parent / "worlds" / "third_party"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run([*install, "--target", str(target), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path = [str(target), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Optimising passes off: each program runs a few times.
    return os.environ | {"PYTHONPATH": os.pathsep.join(path), "XLA_FLAGS": flags()}


def test_it_is_played_and_remembered(environment):
    done = subprocess.run([sys.executable, "-c", PLAY], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "lantern" in done.stdout


def test_it_is_trained_on_and_scored(environment, tmp_path):
    words = [word for name, value in FIELDS.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-c", TRAIN, "--config=grpo_cpu", "--run_dir", str(tmp_path / "run"), *words]
    command += ["--evaluation.deliveries", "none", "compiled", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    scored = json.loads(done.stdout.strip().splitlines()[-1])
    assert set(scored["deliveries"]) == {"none", "compiled"}
