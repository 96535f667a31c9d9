"""Worlds to act in: one `gymnasium.vector.VectorEnv` API with text observations for all of them.

envs = embodied_mem.envs.make("alfworld", tasks="valid_seen", num_envs=16, seed=0, max_steps=50)
observations, info = envs.reset()
observations, rewards, terminations, truncations, info = envs.step(["look"] * 16)

Under gymnasium they are `embodied_mem/<world>-v0` (`single_env`). The worlds themselves are in `embodied_mem.worlds`;
`embodied_mem.registry.names()` lists them.
"""

from __future__ import annotations

from embodied_mem.envs.single_env import register
from embodied_mem.envs.vector_env import make

__all__ = ["make"]

register()
