"""What a memory finds of dialogues: LoCoMo's long ones of two people, and a generated week of a robot in a home.

Only benchmarks: nothing is played.
"""

from embodied_mem.registry import World

WORLD = World("locomo", benchmark="experiments.dialogues.benchmark:BENCHMARK")
ROBOT_WEEK = World("robot_week", benchmark="experiments.dialogues.robot_week:BENCHMARK")
