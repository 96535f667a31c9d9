"""MEMENTO: personalised tasks in PARTNR's houses, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "memento",
    env="embodied_mem.worlds.memento.env:MementoVectorEnv",
    data="The episodes are in MEMENTO's repository (Connoriginal/MEMENTO) and go to episodes/ as they are. "
    "captions.json joins PARTNR's object metadata with MEMENTO's captions; scenes.json is read off a run "
    "of PARTNR's simulator, so it cannot be made from published files alone (docs/worlds/memento.md).",
    backends={"habitat": "embodied_mem.worlds.memento.env:PartnrSimulator"},
    benchmark="embodied_mem.worlds.memento.evaluation.benchmark:BENCHMARK",
)
