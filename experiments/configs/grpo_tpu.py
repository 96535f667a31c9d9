"""The paper's settings (Table 7): Qwen2.5-7B compiler with LoRA, frozen Qwen2.5-14B executor, ALFWorld's train split.

Needs pretrained weights (`--model.weights DIR` with `compiler/` and `executor/` in Hugging Face layout) and 16 chips or
more; `python experiments/train.py --config=grpo_tpu --plan` shows what goes where without either. The executor is not
trained: it is pretrained and frozen. The paper's 5 epochs are given in steps: 5 x 30,750 teacher steps / batch 16. Its
batch of 2 does not divide over 16 devices.

Not run yet: no result.
"""

from embodied_mem.training.config import Config, DataConfig, MeshConfig, ModelConfig, SFTConfig, WorldConfig


def config() -> Config:
    return Config(
        world=WorldConfig(train="train", valid="valid_seen", max_steps=50),
        model=ModelConfig(compiler="qwen2.5-7b", executor="qwen2.5-14b", lora=True, weights="weights"),
        data=DataConfig(no_brief=0.15),
        executor_sft=SFTConfig(steps=0),
        compiler_sft=SFTConfig(steps=9_610, batch_size=16, checkpoint_every=200),
        mesh=MeshConfig(data=2, fsdp=8, tensor=1, remat=True, logits_chunk=256, sampling_tensor=4),
    )
