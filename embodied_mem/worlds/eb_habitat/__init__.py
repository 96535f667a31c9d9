"""EB-Habitat of EmbodiedBench: rearrangement in ReplicaCAD apartments, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "eb_habitat",
    env="embodied_mem.worlds.eb_habitat.env:EbHabitatVectorEnv",
    backends={"embodiedbench": "embodied_mem.worlds.eb_habitat.env:EbHabitatSimulator"},
    parity="embodied_mem.worlds.eb_habitat.parity:PARITY",
    agent="embodied_mem.worlds.eb_habitat.planner:agent_parts",
    skills="embodied_mem.worlds.eb_habitat.planner:skills_of",
    benchmark="embodied_mem.worlds.eb_habitat.benchmark:BENCHMARK",
    tasks="embodied_mem.worlds.eb_habitat.tasks:EbHabitatTasks",
)
