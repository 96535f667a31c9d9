"""EB-Habitat of EmbodiedBench: rearrangement in ReplicaCAD apartments, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "eb_habitat",
    env="embodied_mem.worlds.eb_habitat.env:EbHabitatVectorEnv",
    data="Wanted: EmbodiedBench's episodes (the .pickle files of embodiedbench/envs/eb_habitat/datasets, or those of "
    "apple/ml-llarp) and Language Rearrangement's dataset.yaml (apple/ml-llarp, llarp/dataset/configs).",
    convert="embodied_mem.worlds.eb_habitat.conversion.convert:convert",
    backends={"embodiedbench": "embodied_mem.worlds.eb_habitat.env:EbHabitatSimulator"},
    parity="embodied_mem.worlds.eb_habitat.expert:PARITY",
    skills="embodied_mem.worlds.eb_habitat.skills:skills_of",
    examples="embodied_mem.worlds.eb_habitat.skills:examples_of",
    instruction="embodied_mem.worlds.alfworld.wording.text:executor_instruction",
)
