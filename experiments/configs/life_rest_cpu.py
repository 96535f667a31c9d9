"""`life_cpu` with soft tokens that carry what the hint does not: the other lines of the pool, with ages and speakers.

Beside it `life_cpu` aligns them to the hint's places; equal steps and seeds, 16 executor tokens each. At equal tokens
without soft ones: `--hint_tokens` of `evaluate.py`.
"""

import dataclasses

from embodied_mem.training.config import Config

from . import life_cpu


def config() -> Config:
    base = life_cpu.config()
    return dataclasses.replace(base, memory=dataclasses.replace(base.memory, soft_reference="rest"))
