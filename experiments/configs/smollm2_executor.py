"""A published model as executor: SmolLM2-135M-Instruct trained whole on the teacher's commands, then frozen; a micro
compiler from scratch writes to it, soft tokens into its 576 dimensions. Otherwise `smollm2`.

Not run yet: no result.
"""

import dataclasses

from embodied_mem.training.config import Config

from . import alfworld, smollm2


def config() -> Config:
    small, published = alfworld.config(), smollm2.config()

    def whole(sft, learning_rate: float, steps: int):
        changes = {"optimizer": "adamw", "prompt_weight": 0.0, "learning_rate": learning_rate, "steps": steps}
        return dataclasses.replace(sft, **changes)

    correction = small.executor_correction
    return dataclasses.replace(
        published,
        model=dataclasses.replace(published.model, compiler="micro", executor="smollm2-135m", lora=False),
        executor_sft=whole(small.executor_sft, 1e-4, 1000),
        executor_correction=dataclasses.replace(correction, rounds=1, sft=whole(correction.sft, 5e-5, 300)),
        compiler_sft=small.compiler_sft,
        correction=small.correction,
    )
