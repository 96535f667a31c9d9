"""A study in which every memory is needed: generated lives in homes, and players by rules as its controls."""

from embodied_mem.registry import World

LIFE = World("life", benchmark="experiments.life.benchmark:BENCHMARK", tasks="experiments.life.tasks:LifeTasks")
