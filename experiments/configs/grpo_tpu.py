"""The paper's settings (Table 7): a Qwen2.5-7B compiler with LoRA, a frozen Qwen2.5-14B executor, ALFWorld train games.

Needs pretrained weights (`--model.weights DIR` with `compiler/` and `executor/` in Hugging Face layout) and 16 chips or
more; `python experiments/train.py --config=grpo_tpu --plan` shows what goes where without either. Not run yet: no
result.
"""

from embodied_mem.training.config import Config, MeshConfig, ModelConfig, WorldConfig


def config() -> Config:
    return Config(
        world=WorldConfig(train="train", valid="valid_seen", max_steps=50),
        model=ModelConfig(compiler="qwen2.5-7b", executor="qwen2.5-14b", lora=True, weights="weights"),
        mesh=MeshConfig(data=2, fsdp=8, tensor=1),
    )
