"""MEMENTO: personalised tasks in PARTNR's houses, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "memento",
    env="embodied_mem.worlds.memento.env:MementoVectorEnv",
    data="Wanted: MEMENTO's episodes (Connoriginal/MEMENTO, data/datasets), and tables with the categories and "
    "captions of objects (PARTNR's data/hssd-hab/metadata, MEMENTO's captions). scenes.json is what PARTNR's "
    "simulator says of its houses: no published file has it (docs/worlds/memento.md).",
    convert="embodied_mem.worlds.memento.conversion.convert:convert",
    backends={"habitat": "embodied_mem.worlds.memento.env:PartnrSimulator"},
    benchmark="embodied_mem.worlds.memento.evaluation.benchmark:BENCHMARK",
)
