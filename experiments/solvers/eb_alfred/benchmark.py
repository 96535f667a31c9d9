"""EB-ALFRED's benchmark: three subsets of EmbodiedBench, memory from training tasks."""

from __future__ import annotations

from typing import Any

from embodied_mem.evaluation.benchmark import Published
from embodied_mem.evaluation.benchmark import embodiedbench_row as _row
from embodied_mem.worlds.eb_alfred.env import load_tasks
from experiments.solvers.embodiedbench import PlannerBenchmark

from .view import HiddenThings


def _training() -> list[Any]:
    """Return one instruction of each trial."""
    return list({task.trial: task for task in load_tasks("train")}.values())


PUBLISHED: tuple[Published, ...] = (
    _row("MemCompiler: Qwen-2.5-VL-32B, no memory", (22, 33.67), (26, 32.33), (2, 13)),
    _row("MemCompiler: Qwen-2.5-VL-32B, A-Mem", (2, 12.33), (4, 15.67), (0, 0.5)),
    _row("MemCompiler: Qwen-2.5-VL-32B, compiled", (42, 44.67), (50, 61.52), (4, 10.37)),
    _row("MemCompiler: Qwen-3-VL-32B, no memory", (24, 36), (24, 31.83), (0, 10.5)),
    _row("MemCompiler: Qwen-3-VL-32B, compiled", (52, 56.22), (54, 60.9), (10, 22.75)),
    _row("MemCompiler: GPT-5, no memory", (60, 66.99), (40, 48.33), (0, 9.5)),
    _row("MemCompiler: Gemini, no memory", (70, 76.67), (56, 65.33), (44, 62)),
    _row("MemCompiler: Gemini, A-Mem", (90, 92), (78, 82.83), (72, 81.5)),
    _row("RoboMemory: Qwen2.5-VL-72B", (68, 75.5), (None, None), (66, 81.3)),
    _row("RoboMemory without critic", (60, None), (None, None), (50, None)),
    _row("RoboMemory without spatial memory", (52, None), (None, None), (42, None)),
    _row("RoboMemory without long-term memory", (66, None), (None, None), (48, None)),
    _row("RoboMemory: Qwen2.5-VL-72B alone", (50, None), (None, None), (34, None)),
    _row("RoboMemory: GPT-4o alone", (64, 74), (None, None), (54, 62.5)),
    _row("RoboMemory: Claude-3.5-Sonnet alone", (72, 72), (None, None), (52, 54.5)),
)
"""Results in papers: other models in the real simulator, on images.

Sources: MemCompiler, tables 1, 2, 3 and 6 (it names its closed model GPT-5 in one and GPT-5.2 in the other);
RoboMemory, tables 1 and 2 (base and long).
"""
BENCHMARK = PlannerBenchmark(
    "eb_alfred",
    ("base", "common_sense", "long_horizon"),
    load_tasks,
    _training,
    lists_actions=True,
    published=PUBLISHED,
    hides=HiddenThings,
)
