"""Trains executor and compiler for ScienceWorld on recorded episodes; `train.py --config=scienceworld_train` calls it.

First the recordings, which need Java and some seconds of processor time each, then the two supervised stages of
`train.py`. Nothing is played in training, so nothing is corrected on own episodes, and there is no GRPO. The models are
scored by `evaluate.py --config=scienceworld`, which the end of the run says.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import time
from collections.abc import Sequence

VARIATIONS = 32
"""Of each task at most, evenly spaced over its training variations; those in the middle of what is left come first."""
SKIPPED = (
    "mendelian-genetics-known-plant",
    "mendelian-genetics-unknown-plant",
    "inclined-plane-friction-unnamed-surfaces",
)
"""Tasks whose solutions take the simulator a minute, or are longer than what is played."""


def bisected(values: Sequence[int]) -> list[int]:
    """The values in an order of which every beginning is spread: first, middle, quarters, ..."""
    order = sorted(range(len(values)), key=lambda i: int(f"{i:0{max(len(values) - 1, 1).bit_length()}b}"[::-1], 2))
    return [values[i] for i in order]


def training_pairs(count: int) -> list[tuple[str, int]]:
    """The first `count` (task, training variation) pairs, the tasks taking turns; 0 takes all."""
    from embodied_mem.envs.scienceworld_jvm import official_variations
    from experiments.evaluate_scienceworld import spread

    found: dict[str, list[int]] = {}
    for game, variation in official_variations("train"):
        if game not in SKIPPED:
            found.setdefault(game, []).append(variation)
    columns = [[(game, v) for v in bisected(spread(variations, VARIATIONS))] for game, variations in found.items()]
    pairs = [pair for turn in itertools.zip_longest(*columns) for pair in turn if pair]
    return pairs[: count or None]


def train(options, config) -> dict:
    """Trains, writes the weights, returns what was trained on.

    Raises:
        MissingDependencyError: Java or the package `scienceworld` is not installed, and recordings are missing.
    """
    from embodied_mem.models.host import keep_freed_memory

    keep_freed_memory()
    from embodied_mem.training import stages
    from embodied_mem.training.runs import claim_run
    from embodied_mem.training.scienceworld_recordings import record_all
    from embodied_mem.training.scienceworld_samples import samples_of
    from embodied_mem.training.vocabulary import make_tokenizer
    from embodied_mem.training.weights import save_bundle

    run_dir = pathlib.Path(options.run_dir or f"runs/{options.config}-{config.fingerprint()}")
    claim_run(run_dir, config)
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - started:6.0f} s] {text}", flush=True)

    pairs = training_pairs(config.world.num_train)
    recordings = record_all(pairs, run_dir / "recordings.jsonl", detour=config.data.detour, seed=config.seed)
    say(f"recordings: {len(recordings)} of {len(pairs)} training variations reached the whole score")
    samples = samples_of(recordings, draws=config.data.passes, seed=config.seed)
    tokenizer = make_tokenizer(config, run_dir / "tokenizer.json", samples)
    some = samples[:: max(1, len(samples) // 1000)]
    lengths = sorted(map(len, tokenizer.encode_batch([sample.compiler_prompt for sample in some])))
    say(f"samples: {len(samples)}; tokens of a compiler's prompt {lengths[len(lengths) // 2]}, at most {lengths[-1]}")
    executor = stages.train_executor(config, tokenizer, samples, run_dir)
    say("executor trained on the teacher's commands; it is frozen from here on")
    model = stages.train_compiler(config, tokenizer, samples, executor, run_dir)
    save_bundle(run_dir / "weights", config, tokenizer, executor, model)
    say("compiler trained on the teacher's outputs")
    seconds = round(time.perf_counter() - started, 1)
    report = {"recordings": len(recordings), "samples": len(samples), "seconds": seconds}
    print(
        "\nScore the weights (--split dev to choose):\n  python experiments/evaluate.py --config=scienceworld "
        f"--agents --deliveries none static compiled --weights {run_dir / 'weights'}\n"
    )
    print(json.dumps(report))
    return report
