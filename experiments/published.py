"""Success and progress in percent that papers report on EmbodiedBench: other models in the real simulators, on images.

    PUBLISHED["eb_alfred"][0].rows["base"]        # (success, progress); None for what is not reported

Sources: MemCompiler, tables 1, 2, 3 and 6 (it names its closed model GPT-5 in one and GPT-5.2 in the other);
RoboMemory, tables 1 and 2 (EB-ALFRED, base and long), whose EB-Habitat figures are in a picture and not repeated here.
ScienceWorld: MemCompiler's 90 tasks of 16 kinds, with descriptions written anew (AgentSquare's); RoboMemory has none.
"""

from __future__ import annotations

import dataclasses

Cell = tuple[float | None, float | None]


@dataclasses.dataclass(frozen=True)
class Published:
    """One published row: who, and (success, progress) by subset."""

    name: str
    rows: dict[str, Cell]


def _row(name: str, base: Cell, common: Cell, long: Cell) -> Published:
    return Published(name, {"base": base, "common_sense": common, "long_horizon": long})


_NONE: Cell = (None, None)
PUBLISHED = {
    "eb_alfred": (
        _row("MemCompiler: Qwen-2.5-VL-32B, no memory", (22, 33.67), (26, 32.33), (2, 13)),
        _row("MemCompiler: Qwen-2.5-VL-32B, A-Mem", (2, 12.33), (4, 15.67), (0, 0.5)),
        _row("MemCompiler: Qwen-2.5-VL-32B, compiled", (42, 44.67), (50, 61.52), (4, 10.37)),
        _row("MemCompiler: Qwen-3-VL-32B, no memory", (24, 36), (24, 31.83), (0, 10.5)),
        _row("MemCompiler: Qwen-3-VL-32B, compiled", (52, 56.22), (54, 60.9), (10, 22.75)),
        _row("MemCompiler: GPT-5, no memory", (60, 66.99), (40, 48.33), (0, 9.5)),
        _row("MemCompiler: Gemini, no memory", (70, 76.67), (56, 65.33), (44, 62)),
        _row("MemCompiler: Gemini, A-Mem", (90, 92), (78, 82.83), (72, 81.5)),
        _row("RoboMemory: Qwen2.5-VL-72B", (68, 75.5), _NONE, (66, 81.3)),
        _row("RoboMemory without critic", (60, None), _NONE, (50, None)),
        _row("RoboMemory without spatial memory", (52, None), _NONE, (42, None)),
        _row("RoboMemory without long-term memory", (66, None), _NONE, (48, None)),
        _row("RoboMemory: Qwen2.5-VL-72B alone", (50, None), _NONE, (34, None)),
        _row("RoboMemory: GPT-4o alone", (64, 74), _NONE, (54, 62.5)),
        _row("RoboMemory: Claude-3.5-Sonnet alone", (72, 72), _NONE, (52, 54.5)),
    ),
    "eb_habitat": (
        _row("MemCompiler: Qwen-2.5-VL-32B, no memory", (78, 80.75), (22, 33), (10, 24.19)),
        _row("MemCompiler: Qwen-2.5-VL-32B, A-Mem", (24, 37.25), (8, 15.5), (0, 5.33)),
        _row("MemCompiler: Qwen-2.5-VL-32B, compiled", (84, 86.75), (54, 62.5), (38, 46.93)),
        _row("MemCompiler: Qwen-3-VL-32B, no memory", (78, 82.67), (26, 35.5), (14, 26.97)),
        _row("MemCompiler: Qwen-3-VL-32B, compiled", (90, 93.25), (58, 60.5), (38, 54.33)),
        _row("MemCompiler: GPT-5, no memory", (80, 81.75), (38, 44.5), (16, 32.2)),
        _row("MemCompiler: Gemini, no memory", (86, 88.5), (52, 61), (30, 44.86)),
        _row("MemCompiler: Gemini, A-Mem", (98, 98.5), (72, 75.5), (24, 40.6)),
    ),
    "scienceworld": (
        Published("MemCompiler: Qwen-2.5-14B, no memory", {"test": (31.11, 45.26)}),
        Published("MemCompiler: Qwen-2.5-14B, static injection", {"test": (27.93, 52.68)}),
        Published("MemCompiler: Qwen-2.5-14B, A-Mem", {"test": (34.44, None)}),
        Published("MemCompiler: Qwen-2.5-14B, compiled", {"test": (46.67, 69.33)}),
        Published("MemCompiler: Qwen-3.5-27B, no memory", {"test": (21.11, None)}),
        Published("MemCompiler: Qwen-3.5-27B, compiled", {"test": (48.44, None)}),
        Published("MemCompiler: GPT-5.2, no memory", {"test": (25.55, None)}),
        Published("MemCompiler: GPT-5.2, A-Mem", {"test": (50, None)}),
        Published("MemCompiler: Gemini-3-flash, no memory", {"test": (45.55, None)}),
        Published("MemCompiler: Gemini-3-flash, LangMem", {"test": (50.82, None)}),
    ),
}
