"""LoCoMo: long dialogues of two people, and questions about what was said. Only a benchmark: nothing is played."""

from embodied_mem.registry import World

WORLD = World("locomo", benchmark="experiments.dialogues.benchmark:BENCHMARK")
