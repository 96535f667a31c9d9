"""Speed of sampling: `python experiments/bench.py --suite models` ends with one JSON line.

SmolLM2-135M's shape in float32 (on a GPU, products in TF32) on this machine, all in one run, one process after the
other (`model_contenders.py`):

- `prefill_tokens_per_s`, `decode_tokens_per_s`: contender -> batch -> [median, slowest, fastest round];
- `contenders`: version of each, or why it was not measured;
- `decode_against`: our median by that of each other contender, by batch.

`--models-python NAME=PATH` runs a contender under another interpreter, for packages that do not go together.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORDER = ("ours", "llama.cpp", "transformers", "tunix")
FULL = {"batches": [1, 8, 16, 64], "prompt": 64, "new": 32, "rounds": 3}
QUICK = {"batches": [1, 4], "prompt": 16, "new": 4, "rounds": 1}
LIMIT_S = 600  # for one contender


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the suite's options."""
    add = parser.add_argument
    add("--models-contenders", nargs="+", choices=ORDER, default=list(ORDER), help="default: all")
    add("--models-python", nargs="*", default=[], metavar="NAME=PATH", help="interpreter of a contender")
    add("--models-quick", action="store_true", help="a trial: small batches, few tokens, one round")
    add("--models-device", choices=("cpu", "gpu"), default="cpu", help="of all contenders but llama.cpp; default: cpu")


def bench_models(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the measurements of the suite."""
    settings = (QUICK if args.models_quick else FULL) | {"device": args.models_device}
    pythons = dict(pair.split("=", 1) for pair in args.models_python)
    rates: dict[str, dict] = {}
    about: dict[str, str] = {}
    for name in args.models_contenders:
        found = run_contender(name, settings, pythons.get(name, sys.executable))
        about[name] = found.pop("what")
        if found:
            rates[name] = found
        print(f"{name}: {about[name]}", flush=True)
    kinds = {kind: {name: summary(found[kind]) for name, found in rates.items()} for kind in ("prefill", "decode")}
    for kind, table in kinds.items():
        print_table(kind, table, settings["batches"])
    ours = kinds["decode"].get("ours", {})
    return {
        "prefill_tokens_per_s": kinds["prefill"],
        "decode_tokens_per_s": kinds["decode"],
        "contenders": about,
        "decode_against": {
            name: {batch: round(ours[batch][0] / median, 3) for batch, (median, *_) in table.items()}
            for name, table in kinds["decode"].items()
            if ours and name != "ours"
        },
        "settings": settings,
    }


def run_contender(name: str, settings: dict, python: str) -> dict[str, Any]:
    """Return the contender's JSON, or only `what` with its error.

    Of the error only the last line is there.
    """
    command = [python, "-m", "experiments.benchmarks.model_contenders", name, json.dumps(settings)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    if settings.get("device") != "gpu":
        environment |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"what": f"not measured: took longer than {LIMIT_S} s"}
    if done.returncode:
        return {"what": f"not measured: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def summary(rounds: dict[str, list[float]]) -> dict[str, list[float]]:
    """Returns [median, slowest, fastest] by batch."""
    return {
        batch: [round(value, 1) for value in (statistics.median(values), min(values), max(values))]
        for batch, values in rounds.items()
    }


def print_table(kind: str, table: dict[str, dict[str, list[float]]], batches: list[int]) -> None:
    """Prints medians with the span of the rounds, one contender a line."""
    print(f"{kind + ', tokens/s at batch':28}" + "".join(f"{batch:>22}" for batch in batches))
    for name, rates in table.items():
        cells = (rates[str(batch)] for batch in batches)
        print(f"{name:28}" + "".join(f"{f'{mid:.0f} ({low:.0f} to {high:.0f})':>22}" for mid, low, high in cells))
