"""ScienceWorld: elementary science tasks, played by the original simulator."""

from embodied_mem.registry import World

WORLD = World(
    "scienceworld",
    env="embodied_mem.worlds.scienceworld.env:ScienceWorldVectorEnv",
    data="The simulator and all its tasks come with the package, and Java with another: "
    'pip install "embodied_mem[scienceworld]".',
    native=False,
    instruction="embodied_mem.worlds.scienceworld.env:executor_instruction",
)
