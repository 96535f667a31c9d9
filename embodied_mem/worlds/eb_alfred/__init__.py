"""EB-ALFRED of EmbodiedBench: household tasks in AI2-THOR's rooms, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "eb_alfred",
    env="embodied_mem.worlds.eb_alfred.env:EbAlfredVectorEnv",
    data="ALFRED's trials are EmbodiedBench's data set (huggingface.co/datasets/EmbodiedBench/EB-ALFRED) and "
    "go to json_2.1.0/; splits.json has the subsets in EmbodiedBench's format. floorplans.json is derived "
    "from the problems that ALFWorld's games publish (docs/worlds/eb_alfred.md); no program here derives "
    "it yet.",
    backends={"embodiedbench": "embodied_mem.worlds.eb_alfred.env:EbAlfredSimulator"},
    parity="embodied_mem.worlds.eb_alfred.parity:PARITY",
    agent="embodied_mem.worlds.eb_alfred.planner:agent_parts",
    skills="embodied_mem.worlds.eb_alfred.skills:skills_of",
    benchmark="embodied_mem.worlds.eb_alfred.benchmark:BENCHMARK",
    instruction="embodied_mem.worlds.alfworld.wording.text:executor_instruction",
    tasks="embodied_mem.worlds.eb_alfred.tasks:EbAlfredTasks",
)
