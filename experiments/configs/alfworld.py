"""ALFWorld's own games: trained on the train split, chosen on valid_seen, 50 steps per episode; hours on two cores.

Same models and settings as `grpo_cpu`, more steps and four teacher passes with other detours each. Not run to
the end yet: the log has what a rehearsal showed.
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


def config() -> Config:
    return Config(
        world=WorldConfig(train="train", valid="valid_seen", max_steps=50),
        memory=MemoryConfig(top_k=4),
        model=ModelConfig(compiler="micro", executor="micro", max_compiler_tokens=64, max_action_tokens=12),
        data=DataConfig(passes=4, detour=0.15),
        executor_sft=SFTConfig(
            steps=2200, batch_size=32, learning_rate=2e-3, label_smoothing=0, prompt_weight=0.3, optimizer="muon"
        ),
        compiler_sft=SFTConfig(
            steps=5000, batch_size=32, learning_rate=2e-3, label_smoothing=0, action_share=0.25, optimizer="muon"
        ),
        correction=CorrectionConfig(
            num_games=1024,
            max_steps=30,
            sft=SFTConfig(
                steps=2000, batch_size=32, learning_rate=1e-3, label_smoothing=0, action_share=0.25, optimizer="muon"
            ),
        ),
        grpo=GRPOConfig(
            steps=12,
            num_tasks=8,
            group_size=4,
            max_steps=15,
            temperature=1.0,
            learning_rate=1e-4,
            min_learning_rate=1e-5,
            microbatch=32,
        ),
        evaluation=EvalConfig(seeds=(0, 1, 2), batch_size=70),
    )
