"""Long dialogues and questions about what was said: LoCoMo, BEAM. Only benchmarks: nothing is played."""

from embodied_mem.registry import World

LOCOMO = World("locomo", benchmark="experiments.dialogues.benchmark:LOCOMO")
BEAM = World("beam", benchmark="experiments.dialogues.benchmark:BEAM")
