"""Runs `experiments/train.py` small enough for a test: `python tiny_run.py RUN_DIR [--field VALUE ...]`.

`python tiny_run.py RUN_DIR --arms NAME ... [--option VALUE ...]` runs `experiments/analyses/arms.py` on such a run.

Untrained models win no game, so every group would be equal and give no gradient: the reward here is a number made from
what the compiler wrote. Two files in the run's folder tell the test where the process is (`rollout`: number of the
update, while its episodes are played) and how often functions were traced, with how many shapes they were called
(`traces.json`, at the end).
"""

import json
import pathlib
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "experiments"))

import jax
import jax.numpy as jnp
import numpy as np

import train
from embodied_mem.models import prompt_cache
from embodied_mem.models.config import PRESETS, DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.training import grpo, sft
from embodied_mem.training.loop import read_metrics

# Compiling is most of the time. So a stage and its correction have one schedule, which makes them the same programs
# in the cache that processes share, and the vocabulary is large enough for prompts of few lengths.
FIELDS = {
    "world.num_train": 4, "world.num_valid": 2, "world.num_scenes": 2, "world.homes": 1, "world.max_steps": 2,
    "memory.top_k": 1, "memory.num_soft": 4, "model.compiler": "nano", "model.executor": "nano",
    "model.vocab_size": 1500, "model.max_compiler_tokens": 12, "model.max_action_tokens": 4,
    "data.passes": 1, "data.imagined": 0, "data.no_brief": 0,
    "executor_sft.steps": 16, "executor_sft.batch_size": 2, "executor_sft.checkpoint_every": 4,
    "executor_correction.num_games": 4, "executor_correction.max_steps": 2, "executor_correction.sft.steps": 16,
    "executor_correction.sft.batch_size": 2, "executor_correction.sft.checkpoint_every": 8,
    "compiler_sft.steps": 12, "compiler_sft.batch_size": 2, "compiler_sft.checkpoint_every": 2,
    "correction.num_games": 4, "correction.max_steps": 2, "correction.rounds": 2,
    "correction.sft.steps": 6, "correction.sft.batch_size": 2, "correction.sft.checkpoint_every": 2,
    "grpo.steps": 2, "grpo.num_tasks": 2, "grpo.group_size": 2, "grpo.max_steps": 4,
    "grpo.microbatch": 4, "grpo.minibatches": 2, "grpo.checkpoint_every": 1, "grpo.learning_rate": 1e-3,
    "evaluation.batch_size": 16,
}  # fmt: skip
for stage in ("executor_sft", "executor_correction.sft", "compiler_sft", "correction.sft"):
    FIELDS |= {f"{stage}.learning_rate": 2e-3, f"{stage}.optimizer": "adamw"}

NANO = DecoderConfig(width=32, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16, mlp_width=32)

traces: Counter = Counter()
shapes: dict[str, list[set]] = {}  # one set per function that was made under a name


def count_trace(event: str, seconds: float, fun_name: str = "", **_) -> None:
    if event == "/jax/core/compile/jaxpr_trace_duration":
        traces[fun_name] += 1


def noted(name: str, function):
    """`function`, which notes the shapes that it is called with; what is no array is noted as it is."""
    calls: set[str] = set()
    shapes.setdefault(name, []).append(calls)

    def describe(leaf) -> str:
        if hasattr(leaf, "shape"):
            return f"{leaf.dtype}{leaf.shape}"
        return "float" if isinstance(leaf, float) else repr(leaf)

    def call(*arguments, **keywords):
        seen = [a.config if isinstance(a, Decoder) else jax.tree.map(describe, a) for a in arguments]
        calls.add(str((seen, jax.tree.map(describe, keywords))))
        return function(*arguments, **keywords)

    call._cache_size = getattr(function, "_cache_size", None)
    return call


def main() -> None:
    run_dir = pathlib.Path(sys.argv[1])
    PRESETS["nano"] = NANO
    jax.monitoring.register_event_duration_secs_listener(count_trace)
    for module, maker, name in (
        (sft, "make_executor_step", "executor_step"),
        (sft, "make_compiler_step", "compiler_step"),
        (grpo, "make_grpo_gradient", "grpo_gradient"),
    ):
        make = getattr(module, maker)
        setattr(module, maker, lambda *a, make=make, name=name, **k: noted(name, make(*a, **k)))
    for name in ("_read", "_write"):
        setattr(prompt_cache, name, noted(name, getattr(prompt_cache, name)))

    def advantages_of(trajectories, group_size):
        rewards = [sum(int(r.record.tokens.sum()) for r in t.delivered) + i for i, t in enumerate(trajectories)]
        rewards = np.asarray(rewards, np.float32).reshape(-1, group_size) % 1009
        advantages, num_equal = grpo.group_normalized_advantages(jnp.asarray(rewards))
        return np.asarray(advantages).reshape(-1), int(num_equal)

    grpo.advantages_of = advantages_of
    play, place = grpo.play, run_dir / "rollout"

    def visible_play(*arguments, **keywords):
        update = len(read_metrics(run_dir / "grpo"))
        trajectories = play(*arguments, on_step=lambda *_: place.write_text(str(update)), **keywords)
        place.unlink()
        return trajectories

    grpo.play = visible_play
    if "--arms" in sys.argv:
        from analyses import arms

        arms.main(["--run", str(run_dir), *sys.argv[2:]])
        return
    arguments = [word for name, value in FIELDS.items() for word in (f"--{name}", str(value))]
    arguments += ["--evaluation.deliveries", "none", "compiled", *sys.argv[2:]]
    train.main(["--config=grpo_cpu", "--json", "--run_dir", str(run_dir), *arguments])
    (run_dir / "traces.json").write_text(
        json.dumps({"traces": traces, "shapes": {name: list(map(len, calls)) for name, calls in shapes.items()}})
    )


if __name__ == "__main__":
    main()
