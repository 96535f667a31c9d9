"""MEMENTO: personalised tasks in PARTNR's houses, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "memento",
    env="embodied_mem.worlds.memento.env:MementoVectorEnv",
    data="Wanted: MEMENTO's episodes (Connoriginal/MEMENTO, data/datasets), and tables with the categories and "
    "captions of objects (PARTNR's data/hssd-hab/metadata, MEMENTO's captions). The houses, scenes.json, cannot be "
    "made of public files: the points that a robot can stand on come from a navigation mesh, and which surfaces are "
    "in use from a run of PARTNR's simulator. Without it two ways are left: play in that simulator itself "
    "(`embodied-mem doctor --simulator memento` says what it needs), or write down a house of your own, in the format "
    "of docs/worlds/memento.md, for which `python -m embodied_mem.worlds.memento.generator` makes episodes.",
    convert="embodied_mem.worlds.memento.conversion.convert:convert",
    backends={"habitat": "embodied_mem.worlds.memento.env:PartnrSimulator"},
)
