"""Measures what an accelerator gives, part by part, with random weights of published shapes; called by `gpu.sh`.

    python experiments/gpu.py --output experiments/results/gpu.json
    python experiments/gpu.py --tiny                               # the same on a CPU with tiny shapes, minutes

Parts, each a process of its own with a time limit; what one has printed is kept when it fails:

- `limits`: device-to-device copy (bytes read and written per second) and bfloat16 products (TFLOP/s), to divide by;
- `decode`, `decode_flags`: tokens per second of prefill and decode by batch, ours, without and with `host.GPU_FLAGS`;
- `transformers`: the same of transformers, where torch sees the device;
- `weights`: seconds in which random weights are written and a compiler's are loaded;
- `train`: steps of SFT and of GRPO as `--config=grpo_tpu` has them: seconds of each part, peak memory, MFU, and the gap
  between the log-probs of sampler and trainer. Random models win nothing, so half of the episodes are called won.
- `life`, when it is named (`--parts life`): the study of `--config=life`, trained and scored on homes held out. Its run
  folder with the weights lies beside the JSON file, and the same command goes on where it was stopped.

The JSON file is written after every part.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from embodied_mem.models.host import GPU_FLAGS

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLAGS = " ".join(f"--{name}={value}" for name, value in GPU_FLAGS.items())

LIMITS_S = {
    "limits": 50, "decode_flags": 90, "decode": 90, "transformers": 80, "weights": 160, "train": 250,
}  # fmt: skip
"""Seconds of each part, in the order in which they run."""
STUDIES_S = {"life": 560}
"""The same of parts that run only when they are named."""
SIZES = (
    (100e9, {"decode": "qwen2.5-7b", "compiler": "qwen2.5-7b", "executor": "qwen2.5-14b"}),
    (45e9, {"decode": "qwen2.5-7b", "compiler": "qwen2.5-3b", "executor": "qwen2.5-3b"}),
    (18e9, {"decode": "qwen2.5-3b", "compiler": "qwen2.5-0.5b", "executor": "qwen2.5-0.5b"}),
    (0, {"decode": "qwen2.5-0.5b", "compiler": "qwen2.5-0.5b", "executor": "qwen2.5-0.5b"}),
)
"""Bytes that JAX may use of a device -> presets."""
TINY = {"decode": "tiny", "compiler": "qwen2.5-0.5b", "executor": "qwen2.5-0.5b"}
TINY_SHAPE = {
    "vocab_size": 2048, "width": 32, "num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "head_dim": 16,
    "mlp_width": 64, "max_length": 4096, "dtype": "float32", "param_dtype": "float32",
}  # fmt: skip
RUN = {
    "mesh.data": 1, "mesh.fsdp": 1, "mesh.tensor": 1, "world.train": "generated", "world.valid": "generated",
    "world.num_train": 32, "world.num_valid": 4, "world.max_steps": 3, "compiler_sft.steps": 10,
    "compiler_sft.batch_size": 8, "grpo.steps": 3, "grpo.max_steps": 2, "model.max_compiler_tokens": 128,
    "evaluation.seeds": 0, "evaluation.tasks": "", "evaluation.num_tasks": 2, "evaluation.deliveries": "none",
}  # fmt: skip
TINY_RUN = {
    "world.num_train": 4, "world.num_valid": 2, "world.num_scenes": 2, "world.max_steps": 1, "memory.top_k": 1,
    "memory.num_soft": 4, "model.max_compiler_tokens": 6, "model.max_action_tokens": 3, "compiler_sft.steps": 1,
    "compiler_sft.batch_size": 2, "grpo.steps": 1, "grpo.num_tasks": 2, "grpo.group_size": 2, "grpo.max_steps": 1,
    "grpo.microbatch": 4,
}  # fmt: skip
TINY_LIFE = {
    "world.num_train": 40, "world.num_valid": 8, "world.num_scenes": 1, "world.homes": 1, "executor_sft.steps": 2,
    "executor_correction.num_games": 4, "executor_correction.rounds": 1, "executor_correction.sft.steps": 1,
    "compiler_sft.steps": 2, "correction.num_games": 4, "correction.rounds": 1, "correction.sft.steps": 1,
    "grpo.steps": 1, "grpo.num_tasks": 2, "grpo.group_size": 2, "evaluation.deliveries": "none",
    "evaluation.batch_size": 8,
}  # fmt: skip
SHOWN = (
    "step_s", "rollout_s", "tokens", "executor_tokens", "samples", "tokens_per_s", "mfu", "peak_memory_bytes",
    "log_prob_gap", "loss", "grad_norm",
)  # fmt: skip
"""Metrics of training that are kept."""

Rows = Iterator[dict[str, Any]]


def median_seconds(call: Callable[[], object], rounds: int = 3) -> float:
    """Returns the median of some calls after one that compiles."""
    call()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def limits(options: argparse.Namespace) -> Rows:
    """Measure the device itself."""
    import jax
    import jax.numpy as jnp

    [device, *_] = jax.devices()
    stats = device.memory_stats() or {}
    yield {"device": device.device_kind, "count": jax.device_count(), "usable_bytes": int(stats.get("bytes_limit", 0))}
    size, times = (1 << 20, 2) if options.tiny else (1 << 30, 10)
    data = jnp.zeros(size, jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    seconds = median_seconds(lambda: [copy(data) for _ in range(times)][-1].block_until_ready()) / times
    yield {"copy_bytes_per_s": 2 * data.nbytes / seconds}
    width = 128 if options.tiny else 8192
    left = jax.random.normal(jax.random.key(0), (width, width), jnp.bfloat16)
    product = jax.jit(lambda x: x @ x)
    seconds = median_seconds(lambda: [product(left) for _ in range(times)][-1].block_until_ready()) / times
    yield {"product_flops_per_s": 2 * width**3 / seconds}


def rates(options: argparse.Namespace, contender: Any, peak: Callable[[], int]) -> Rows:
    """Measure prefill and decode by batch.

    The contender reads the prompts of a batch and writes so many tokens.
    """
    prompt, new = lengths(options)
    for batch in (2,) if options.tiny else (16, 1, 64):
        began = time.perf_counter()
        try:
            contender.run(batch, 1), contender.run(batch, 1 + new)
            warm = time.perf_counter() - began
            first, whole = (median_seconds(functools.partial(contender.run, batch, count)) for count in (1, 1 + new))
        except Exception as error:  # e.g. no memory for this batch: the others are measured all the same
            yield {"batch": batch, "error": f"{type(error).__name__}: {error}"[:300]}
            continue
        speeds = {"prefill_tokens_per_s": batch * prompt / first, "decode_tokens_per_s": batch * new / (whole - first)}
        yield {"batch": batch, **speeds, "compile_s": warm, "peak_memory_bytes": peak()}


def lengths(options: argparse.Namespace) -> tuple[int, int]:
    """Return the tokens of a prompt and of an answer."""
    return (16, 4) if options.tiny else (1024, 64)


def decode(options: argparse.Namespace) -> Rows:
    """Measure our sampler."""
    from benchmarks.model_contenders import Ours
    from embodied_mem.training.loop import peak_memory

    return rates(options, Ours({"preset": options.decode, "prompt": lengths(options)[0]}), peak_memory)


def transformers(options: argparse.Namespace) -> Rows:
    """Measure `generate` of transformers."""
    import torch

    from benchmarks.model_contenders import Transformers

    has_gpu = torch.cuda.is_available()
    if not has_gpu and not options.tiny:
        raise RuntimeError("torch sees no device")
    settings = {"preset": options.decode, "prompt": lengths(options)[0], "device": "gpu" if has_gpu else "cpu"}
    return rates(options, Transformers(settings), torch.cuda.max_memory_allocated if has_gpu else lambda: 0)


def weights(options: argparse.Namespace) -> Rows:
    """Write random weights with a tokenizer, and load the compiler's."""
    import jax
    from flax import nnx

    from embodied_mem.language.tokenizers import train_bpe
    from embodied_mem.models.config import preset
    from embodied_mem.models.decoder import Decoder
    from embodied_mem.models.formats.hf import load_hf, save_hf

    folder = pathlib.Path(options.folder) / "weights"
    tokenizer = train_bpe([path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))], 1024)
    template = "{% for message in messages %}{{ message['role'] + ': ' + message['content'] }}\n{% endfor %}assistant:"
    for role in ("executor", "compiler"):
        began = time.perf_counter()
        shape = preset(getattr(options, role), **(TINY_SHAPE if options.tiny else {}))
        save_hf(Decoder(shape, rngs=nnx.Rngs(0)), folder / role)
        tokenizer.save(folder / role / "tokenizer.json")
        (folder / role / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
        size = sum(path.stat().st_size for path in (folder / role).glob("*.safetensors"))
        yield {"role": role, "preset": getattr(options, role), "bytes": size, "write_s": time.perf_counter() - began}
    began = time.perf_counter()
    jax.block_until_ready(nnx.state(load_hf(folder / "compiler")))
    yield {"role": "compiler", "load_s": time.perf_counter() - began}


def train(options: argparse.Namespace) -> Rows:
    """Train a compiler for some steps.

    Lines of `metrics.jsonl` are read by the caller, too, after a time-out.
    """
    import contextlib

    import numpy as np

    import train as program
    from embodied_mem.training import grpo

    def advantages_of(trajectories: Any, group_size: int) -> tuple[Any, int]:
        return np.resize(np.float32([1, -1]), len(trajectories)), 0

    grpo.advantages_of = advantages_of
    fields = RUN | (TINY_RUN if options.tiny else {})
    fields |= {"model.weights": f"{options.folder}/weights"}
    fields |= {f"model.{role}": getattr(options, role) for role in ("compiler", "executor")}
    given = [f"--{name}={value}" for name, value in fields.items()]
    with contextlib.redirect_stdout(sys.stderr):
        program.main(["--config=grpo_tpu", "--run_dir", f"{options.folder}/run", "--unchecked", *given])
    yield {"finished": True}


def life(options: argparse.Namespace) -> Rows:
    """Train on lives and score homes held out."""
    import contextlib

    import train as program
    from embodied_mem.evaluation import evaluate
    from embodied_mem.models.config import PRESETS

    if options.tiny:
        PRESETS["mini"] = dataclasses.replace(PRESETS["mini"], num_layers=1)
    run, result = options.output.with_suffix(".run"), options.output.with_suffix(".life.json")
    fields = [f"--{name}={value}" for name, value in (TINY_LIFE if options.tiny else {}).items()]
    size = ["--part", "dev", "--homes", "1", "--num_tasks", "4"] if options.tiny else []
    deliveries = ["none", "static", "compiled", "lifelong_static", "lifelong_compiled", "lifelong_teacher"]
    with contextlib.redirect_stdout(sys.stderr):
        program.main(["--config=life", "--run_dir", str(run), *fields])
        scored = ["--config=life", "--weights", str(run / "weights"), "--deliveries", *deliveries, *size]
        evaluate.main([*scored, "--result", str(result)])
    report = json.loads(result.read_text())
    for name, row in report["rows"].items():
        yield {"delivery": name, "first": row["first"], "last": row["last"]}
    yield {"differences": report["differences"]}


def training_rows(run_dir: pathlib.Path) -> list[dict[str, Any]]:
    """Return the steps of a run, also of one that was stopped."""
    rows = []
    for stage in ("compiler", "grpo"):
        path = run_dir / stage / "metrics.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            metrics = json.loads(line)
            row = {name: metrics[name] for name in SHOWN if name in metrics}
            if "rollout_s" in row:
                row["update_s"] = row["step_s"] - row["rollout_s"]
            rows.append({"stage": "sft" if stage == "compiler" else stage, "step": metrics["step"], **row})
    return rows


PARTS = {
    "limits": limits, "decode": decode, "decode_flags": decode, "transformers": transformers, "weights": weights,
    "train": train, "life": life,
}  # fmt: skip


def run_part(
    name: str, sizes: dict[str, str], tiny: bool, folder: pathlib.Path, limit_s: float, output: pathlib.Path
) -> dict[str, Any]:
    """Run a part in its own process.

    `error` says why it ended early.
    """
    command = [sys.executable, str(pathlib.Path(__file__)), "--part", name, "--folder", str(folder)]
    command += ["--output", str(output)]
    command += [word for role, preset in sizes.items() for word in (f"--{role}", preset)] + ["--tiny"] * tiny
    environment = dict(os.environ)
    if name == "decode_flags" and not tiny:
        environment["XLA_FLAGS"] = f"{FLAGS} {environment.get('XLA_FLAGS', '')}".strip()
    if tiny:  # each program runs a few times
        quick = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {quick}".strip()
    began, error = time.perf_counter(), ""
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("w") as stdout, err.open("w") as stderr:
        try:
            status = subprocess.run(command, stdout=stdout, stderr=stderr, env=environment, timeout=limit_s).returncode
        except subprocess.TimeoutExpired:
            error = f"stopped after {limit_s:.0f} s"
        else:
            error = err.read_text(errors="replace").strip()[-600:] if status else ""
    rows = [json.loads(line) for line in out.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
    if name == "train":
        rows = training_rows(folder / "run")
    part: dict[str, Any] = {"seconds": round(time.perf_counter() - began, 1), "rows": rows}
    return (
        part
        | ({"error": error} if error else {})
        | ({"xla_flags": FLAGS} if name == "decode_flags" and not tiny else {})
    )


def versions() -> dict[str, str]:
    """Returns the versions of the packages that decide the numbers."""
    names = ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin", "flax", "optax", "torch", "transformers")
    by_name = {}
    for name in names:
        try:
            by_name[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return by_name


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Runs all parts and returns what the file holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "runs/gpu.json", help="default: runs/gpu.json")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, to rehearse on a CPU")
    parser.add_argument("--limit_s", type=float, default=720, help="of all parts together")
    parser.add_argument("--parts", nargs="*", choices=(*LIMITS_S, *STUDIES_S), default=tuple(LIMITS_S))
    parser.add_argument("--part", choices=tuple(PARTS), help=argparse.SUPPRESS)
    for name in ("folder", *TINY):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part:
        for row in PARTS[options.part](options):
            print(json.dumps(row), flush=True)
        return {}
    from embodied_mem.evaluation.report import manifest, write_result

    began = time.perf_counter()
    result = {"tiny": options.tiny, "parts": {}, **manifest(versions=versions())}
    sizes = dict(TINY if options.tiny else SIZES[-1][1])
    with tempfile.TemporaryDirectory() as scratch:
        limits_s = LIMITS_S | STUDIES_S
        for name in (name for name in limits_s if name in options.parts):
            left = options.limit_s - (time.perf_counter() - began)
            if left < 5:
                result["parts"][name] = {"seconds": 0, "rows": [], "error": "no time was left"}
                continue
            print(f"[{time.perf_counter() - began:4.0f} s] {name}", file=sys.stderr, flush=True)
            limit_s = min(limits_s[name], left)
            part = run_part(name, sizes, options.tiny, pathlib.Path(scratch), limit_s, options.output.absolute())
            result["parts"][name] = part
            for row in part["rows"] if name == "limits" else ():
                result |= {key: row[key] for key in ("device", "count") if key in row}
                if "usable_bytes" in row and not options.tiny:
                    sizes = dict(next(presets for least, presets in SIZES if row["usable_bytes"] >= least))
            result |= {"presets": sizes, "seconds": round(time.perf_counter() - began, 1)}
            write_result(options.output, result)
            print(f"        {part.get('error', 'done').splitlines()[-1]}", file=sys.stderr, flush=True)
    failed = [name for name, part in result["parts"].items() if "error" in part]
    ended = f", {len(failed)} of them not to the end: {', '.join(failed)}" if failed else ""
    print(f"{len(result['parts'])} parts in {result.get('seconds', 0)} s{ended}: {options.output}")
    return result


if __name__ == "__main__":
    parts = main().get("parts", {})
    sys.exit(any("error" in part for name, part in parts.items() if name != "transformers"))
