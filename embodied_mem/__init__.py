"""Memory for embodied language agents: worlds to act in, memory kept while acting, memory compiled per step.

    import embodied_mem
    envs = embodied_mem.envs.make("alfworld", tasks="valid_seen", num_envs=16, seed=0, max_steps=50)
    observations, info = envs.reset()

Sub-packages load on first use, so `import embodied_mem` costs milliseconds and pulls no jax.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"

_PACKAGES = (
    "agents", "compiler", "envs", "errors", "evaluation", "language",
    "memory", "models", "parallel", "training", "types",
)  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; known: {', '.join(_PACKAGES)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PACKAGES])
