"""Evaluations of memory on dialogues: LoCoMo's and BEAM's long ones, and a generated week of a robot in a home.

Only benchmarks: nothing is played.
"""

from embodied_mem.registry import World

LOCOMO = World("locomo", benchmark="experiments.dialogues.benchmark:LOCOMO")
BEAM = World("beam", benchmark="experiments.dialogues.benchmark:BEAM")
ROBOT_WEEK = World("robot_week", benchmark="experiments.dialogues.robot_week:BENCHMARK")
