"""MEMENTO: personalised tasks in PARTNR's houses, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "memento",
    env="embodied_mem.worlds.memento.env:MementoVectorEnv",
    backends={"habitat": "embodied_mem.worlds.memento.env:PartnrSimulator"},
    benchmark="embodied_mem.worlds.memento.evaluation.benchmark:BENCHMARK",
)
