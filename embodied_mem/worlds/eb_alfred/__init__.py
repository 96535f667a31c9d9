"""EB-ALFRED of EmbodiedBench: household tasks in AI2-THOR's rooms, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "eb_alfred",
    env="embodied_mem.worlds.eb_alfred.env:EbAlfredVectorEnv",
    data="Wanted: EmbodiedBench's repository (splits.json and utils.py of embodiedbench/envs/eb_alfred), ALFRED's "
    "trials (huggingface.co/datasets/EmbodiedBench/EB-ALFRED, or ALFRED's json_2.1.0), ALFWorld's games of the same "
    "trials (`pip install alfworld && alfworld-download`), and optionally AI2-THOR's metadata of the floor plans.",
    convert="embodied_mem.worlds.eb_alfred.conversion.convert:convert",
    backends={"embodiedbench": "embodied_mem.worlds.eb_alfred.env:EbAlfredSimulator"},
    parity="embodied_mem.worlds.eb_alfred.expert:PARITY",
    skills="embodied_mem.worlds.eb_alfred.skills:skills_of",
    examples="embodied_mem.worlds.eb_alfred.skills:examples_of",
    instruction="embodied_mem.worlds.alfworld.wording.text:executor_instruction",
)
