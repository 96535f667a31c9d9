"""Runs `--config=grpo_tpu`, but smaller: `python small_pod_run.py DIR WEIGHTS SECONDS [--field VALUE]`.

WEIGHTS has `compiler/` and `executor/`. After so many seconds it writes to stderr where its threads stand, and goes on.
The mesh is 1 x 8 x 1, so that it takes eight devices, of however many processes, and episodes are
played with two copies of the weights. Random models win no game, so
every group would be equal and give no gradient: half of the trajectories are called won.
"""

import faulthandler
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "experiments"))

import numpy as np

import train
from embodied_mem.evaluation.command import run
from embodied_mem.training import grpo

FIELDS = {
    "mesh.data": 1, "mesh.fsdp": 8, "mesh.tensor": 1, "mesh.sampling_tensor": 4,
    "world.train": "generated", "world.valid": "generated", "world.num_train": 4, "world.num_valid": 2,
    "world.num_scenes": 2, "world.max_steps": 1, "memory.top_k": 1, "memory.num_soft": 4,
    "model.max_compiler_tokens": 6, "model.max_action_tokens": 3, "compiler_sft.steps": 2, "compiler_sft.batch_size": 4,
    "grpo.steps": 2, "grpo.num_tasks": 2, "grpo.group_size": 2, "grpo.max_steps": 1, "grpo.microbatch": 4,
    "grpo.checkpoint_every": 1,
    "evaluation.seeds": 0, "evaluation.tasks": "", "evaluation.batch_size": 4, "evaluation.deliveries": "compiled",
}  # fmt: skip

if __name__ == "__main__":
    faulthandler.dump_traceback_later(float(sys.argv[3]))
    grpo.advantages_of = lambda trajectories, group_size: (np.resize(np.float32([1, -1]), len(trajectories)), 0)
    arguments = [f"--{name}={value}" for name, value in FIELDS.items()]
    given = ["--config=grpo_tpu", "--run_dir", sys.argv[1], f"--model.weights={sys.argv[2]}", "--unchecked", "--json"]
    run(lambda: train.main([*given, *arguments, *sys.argv[4:]]))
