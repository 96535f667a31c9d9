"""The paper's settings: Qwen2.5-VL-7B compiler with LoRA, frozen Qwen2.5-14B executor, ALFWorld's train split.

Needs pretrained weights (`--model.weights DIR` with `compiler/` and `executor/` in Hugging Face layout) and eight GPUs
of 96 GB, the paper's hardware, of which four hold one copy of each model; `--config=grpo_tpu --plan` shows what goes
where without either. For a TPU v5e-16 see docs/training.md. On EmbodiedBench the paper's frozen
executor is Qwen2.5-VL-32B (`--model.executor qwen2.5-vl-32b`).

What the paper says is as it says (C.3, Table 7; `SFTConfig`, `GRPOConfig` and `LoraConfig` have it as defaults). Its 5
epochs are given in steps: 5 x 30,750 teacher steps of the whole train split / batch 2; the rooms of `dev` are not
trained on, so they are a few more than 5. What it leaves open is ours:

- the development split: `dev`, every tenth room of train; all is chosen on it, and `valid_unseen` is scored once;
- experiences retrieved (6), turns that the executor reads with their answers (2), steps of an episode outside of GRPO
  (50 at most);
- weight decay, gradient clipping and the smallest learning rate of SFT: 0.01, 1.0, a tenth of the peak;
- decoding when scored (greedy, three seeds of play) and of the executor in rollouts (greedy);
- log-probs of the trainer before an update, since the sampler rounds differently in bfloat16, and importance weights
  up to 2 for the difference;
- updates per batch of episodes (1), rows per pass (16), how a soft token counts in the ratio (`grpo.density`);
- 15 % of the compiler's rows without Brief State, for the ablation.

ALFWorld has no images, so the compiler reads texts alone: its vision tower is not kept, and eq. 6 aligns soft tokens
with texts of memory. `--model.images` has it see (docs/training.md, Images).

Not run yet: no result.
"""

from embodied_mem.training.config import Config, EvalConfig, GRPOConfig, MeshConfig, ModelConfig, SFTConfig, WorldConfig


def config() -> Config:
    return Config(
        world=WorldConfig(train="train", valid="dev", max_steps=50),
        model=ModelConfig(compiler="qwen2.5-vl-7b", executor="qwen2.5-14b", lora=True, weights="weights"),
        executor_sft=SFTConfig(steps=0),
        compiler_sft=SFTConfig(steps=76_875),
        grpo=GRPOConfig(old_log_probs="trainer", max_importance=2.0),
        evaluation=EvalConfig(tasks="valid_unseen"),
        mesh=MeshConfig(data=2, fsdp=1, tensor=4, remat=True, logits_chunk=256),
    )
