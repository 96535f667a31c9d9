"""ALFWorld: household tasks in text, played natively."""

from embodied_mem.registry import World

WORLD = World(
    "alfworld",
    env="embodied_mem.worlds.alfworld.env:AlfworldVectorEnv",
    data="The games (json_2.1.1/<split>/<task>/<trial>/game.tw-pddl) are published by the package alfworld: "
    "`pip install alfworld && alfworld-download` puts them under $ALFWORLD_DATA, or ~/.cache/alfworld, "
    "and there they are found and read as they are.",
    generated="embodied_mem.worlds.alfworld.generator:generated_home",
    agent="embodied_mem.worlds.alfworld.agent.planner:agent_parts",
    skills="embodied_mem.worlds.alfworld.agent.skills:skills_of",
    examples="embodied_mem.worlds.alfworld.agent.skills:examples_of",
    instruction="embodied_mem.worlds.alfworld.wording.text:executor_instruction",
    tasks="embodied_mem.worlds.alfworld.tasks:AlfworldTasks",
    benchmark="embodied_mem.worlds.alfworld.benchmark:BENCHMARK",
)
