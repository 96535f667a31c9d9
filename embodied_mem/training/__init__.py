"""Training: teacher data, SFT, GRPO, and what a long run needs: schedules, metrics, progress, exact resume.

    from embodied_mem.training.config import Config
    from embodied_mem.training import grpo, sft

Import from the modules; the package itself imports nothing.
"""
