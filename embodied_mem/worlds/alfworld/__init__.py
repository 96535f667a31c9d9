"""ALFWorld: household tasks in text, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "alfworld",
    env="embodied_mem.worlds.alfworld.env:AlfworldVectorEnv",
    generated="embodied_mem.worlds.alfworld.generator:generated_home",
    agent="embodied_mem.worlds.alfworld.planner:agent_parts",
    skills="embodied_mem.worlds.alfworld.skills:skills_of",
    tasks="embodied_mem.worlds.alfworld.tasks:AlfworldTasks",
    benchmark="embodied_mem.worlds.alfworld.benchmark:BENCHMARK",
)
