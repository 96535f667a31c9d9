"""EB-ALFRED of EmbodiedBench: household tasks in AI2-THOR's rooms, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "eb_alfred",
    env="embodied_mem.worlds.eb_alfred.env:EbAlfredVectorEnv",
    backends={"embodiedbench": "embodied_mem.worlds.eb_alfred.env:EbAlfredSimulator"},
    parity="embodied_mem.worlds.eb_alfred.parity:PARITY",
    agent="embodied_mem.worlds.eb_alfred.planner:agent_parts",
    skills="embodied_mem.worlds.eb_alfred.skills:skills_of",
    benchmark="embodied_mem.worlds.eb_alfred.benchmark:BENCHMARK",
    tasks="embodied_mem.worlds.eb_alfred.tasks:EbAlfredTasks",
)
