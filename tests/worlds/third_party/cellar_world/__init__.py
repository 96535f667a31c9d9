"""A house of five rooms, of which nothing outside this package knows: find a thing and carry it to the hall."""

from embodied_mem.registry import World

WORLD = World(
    "cellar",
    env="cellar_world.env:CellarVectorEnv",
    native=False,
    reader="cellar_world.reader:READER",
    tasks="cellar_world.tasks:CellarTasks",
)
