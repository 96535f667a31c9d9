"""EB-Habitat of EmbodiedBench: rearrangement in ReplicaCAD apartments, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "eb_habitat",
    env="embodied_mem.worlds.eb_habitat.env:EbHabitatVectorEnv",
    data="The episodes are the .pickle files of EmbodiedBench's repository "
    "(embodiedbench/envs/eb_habitat/datasets), read as they are beside domain.json, which names the "
    "category of each asset (docs/worlds/eb_habitat.md); no program here derives that, nor scenes.json "
    "for reach='geometry', yet.",
    backends={"embodiedbench": "embodied_mem.worlds.eb_habitat.env:EbHabitatSimulator"},
    parity="embodied_mem.worlds.eb_habitat.parity:PARITY",
    agent="embodied_mem.worlds.eb_habitat.planner:agent_parts",
    skills="embodied_mem.worlds.eb_habitat.planner:skills_of",
    benchmark="embodied_mem.worlds.eb_habitat.benchmark:BENCHMARK",
    instruction="embodied_mem.worlds.alfworld.wording.text:executor_instruction",
    tasks="embodied_mem.worlds.eb_habitat.tasks:EbHabitatTasks",
)
