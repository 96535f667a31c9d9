"""Settings that tiny models share: 0.4 million parameters from scratch, the paper's stages.

Differs from the paper where size demands it. Learning rates are those of models of this size that start from scratch,
and so is Muon. There is no label smoothing: it would spread mass over 1,024 tokens, which puts a wrong token into every
second sampled output. Temperature 1 and not 1.2, for the same reason.
"""

from embodied_mem.training.config import (
    Config,
    CorrectionConfig,
    DataConfig,
    EvalConfig,
    GRPOConfig,
    MemoryConfig,
    ModelConfig,
    SFTConfig,
    WorldConfig,
)


def small() -> Config:
    """Return the settings that `grpo_cpu`, `alfworld`, `habits` and `scienceworld` begin with."""
    return Config(
        world=WorldConfig(num_train=1200, num_valid=100, num_scenes=12, habit=0.8, max_steps=20),
        memory=MemoryConfig(top_k=4),
        model=ModelConfig(compiler="micro", executor="micro", max_compiler_tokens=64, max_action_tokens=12),
        data=DataConfig(passes=3, detour=0.15, imagined=0.5),
        executor_sft=SFTConfig(
            steps=800, batch_size=32, learning_rate=2e-3, label_smoothing=0, prompt_weight=0.3, optimizer="muon"
        ),
        executor_correction=CorrectionConfig(
            num_games=256,
            sft=SFTConfig(
                steps=200, batch_size=32, learning_rate=1e-3, label_smoothing=0, prompt_weight=0.3, optimizer="muon"
            ),
        ),
        compiler_sft=SFTConfig(
            steps=1000, batch_size=32, learning_rate=2e-3, label_smoothing=0, action_share=0.25, optimizer="muon"
        ),
        correction=CorrectionConfig(
            num_games=256,
            sft=SFTConfig(
                steps=400, batch_size=32, learning_rate=1e-3, label_smoothing=0, action_share=0.25, optimizer="muon"
            ),
        ),
        grpo=GRPOConfig(
            steps=8,
            num_tasks=8,
            group_size=4,
            max_steps=15,
            temperature=1.0,
            learning_rate=1e-4,
            min_learning_rate=1e-5,
            microbatch=32,
        ),
        evaluation=EvalConfig(seeds=(0,), batch_size=64),
    )
