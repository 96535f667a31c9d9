"""All that `experiments/` adds to the package, by name: methods, agents, and what plays and scores worlds.

register_all()      # first thing in a program; nothing is imported before it is used
"""

from __future__ import annotations

import pathlib
import sys

from embodied_mem.registry import register

ROOT = str(pathlib.Path(__file__).resolve().parents[1])

PLACES = {
    "methods": {
        "a_mem": "baselines.a_mem:AMem",
        "g_memory": "baselines.g_memory:GMemory",
        "langmem": "baselines.langmem:LangMem",
        "mem0_1": "baselines.mem0:Mem0One",
        "mem0_2": "baselines.mem0:Mem0Two",
    },
    "agents": {
        "cradle": "baselines.cradle:Cradle",
        "memharness": "baselines.memharness:MemHarness",
        "reflexion": "baselines.reflexion:Reflexion",
        "verl_agent": "baselines.verl_agent:VerlAgent",
        "voyager": "baselines.voyager:Voyager",
    },
    "worlds": {
        "beam": "dialogues:BEAM",
        "life": "life:LIFE",
        "locomo": "dialogues:LOCOMO",
        "robot_week": "dialogues:ROBOT_WEEK",
    },
    "eb_alfred": {
        "agent": "solvers.eb_alfred.agent:agent_parts",
        "tasks": "solvers.eb_alfred.text_adapter:EbAlfredTasks",
        "benchmark": "solvers.eb_alfred.benchmark:BENCHMARK",
    },
    "eb_habitat": {
        "agent": "solvers.eb_habitat.agent:agent_parts",
        "tasks": "solvers.eb_habitat.text_adapter:EbHabitatTasks",
        "benchmark": "solvers.eb_habitat.benchmark:BENCHMARK",
    },
    "memento": {"benchmark": "solvers.memento.benchmark:BENCHMARK"},
    "scienceworld": {
        "samples": "solvers.scienceworld.samples:recorded_samples",
        "benchmark": "solvers.scienceworld.benchmark:BENCHMARK",
    },
    "deliveries": {"memgen": "baselines.memgen:woven_memory"},
}
"""Group, or world -> name, or part -> place in this folder."""


def register_all() -> None:
    """Register every place, and let `experiments` be imported from any working folder."""
    if ROOT not in sys.path:
        sys.path.append(ROOT)
    for group, places in PLACES.items():
        for name, place in places.items():
            register(group, name, f"experiments.{place}")
