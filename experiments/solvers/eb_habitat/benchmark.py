"""EB-Habitat's benchmark: three subsets of EmbodiedBench, memory from training tasks."""

from __future__ import annotations

from typing import Any

from embodied_mem.evaluation.benchmark import Published
from embodied_mem.evaluation.benchmark import embodiedbench_row as _row
from embodied_mem.worlds.eb_habitat.data import load_records, load_tasks
from experiments.solvers.embodiedbench import PlannerBenchmark


def _training() -> list[Any]:
    """Return unsolved tasks in layouts outside all evaluation subsets."""
    shared = {record["id"] for record in load_records("train_validation") if record.get("same_layout_as")}
    tasks = load_tasks("train_validation")
    return [task for task in tasks if task.name not in shared and not task.satisfied_at_start]


PUBLISHED: tuple[Published, ...] = (
    _row("MemCompiler: Qwen-2.5-VL-32B, no memory", (78, 80.75), (22, 33), (10, 24.19)),
    _row("MemCompiler: Qwen-2.5-VL-32B, A-Mem", (24, 37.25), (8, 15.5), (0, 5.33)),
    _row("MemCompiler: Qwen-2.5-VL-32B, compiled", (84, 86.75), (54, 62.5), (38, 46.93)),
    _row("MemCompiler: Qwen-3-VL-32B, no memory", (78, 82.67), (26, 35.5), (14, 26.97)),
    _row("MemCompiler: Qwen-3-VL-32B, compiled", (90, 93.25), (58, 60.5), (38, 54.33)),
    _row("MemCompiler: GPT-5, no memory", (80, 81.75), (38, 44.5), (16, 32.2)),
    _row("MemCompiler: Gemini, no memory", (86, 88.5), (52, 61), (30, 44.86)),
    _row("MemCompiler: Gemini, A-Mem", (98, 98.5), (72, 75.5), (24, 40.6)),
)
"""Results in papers: other models in the real simulator, on images.

Source: MemCompiler, tables 1, 2, 3 and 6 (it names its closed model GPT-5 in one and GPT-5.2 in the other).
RoboMemory's figures are in a picture and not repeated here.
"""
BENCHMARK = PlannerBenchmark(
    "eb_habitat",
    ("base", "common_sense", "long_horizon"),
    load_tasks,
    _training,
    lists_actions=False,
    published=PUBLISHED,
)
