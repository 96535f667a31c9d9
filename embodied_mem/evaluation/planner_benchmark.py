"""The planner-critic agent on EmbodiedBench's worlds: what it remembers from training tasks, and what it then scores.

    benchmark = BENCHMARKS["eb_alfred"]
    memory = remember(benchmark, AGENTS["full"], training_tasks(benchmark))
    outcomes = play(benchmark, AGENTS["full"], memory, benchmark.load("base"))

Every scored task starts from the same memory, as it was after the training tasks: tasks are independent of each other
and of their order, so that intervals over tasks mean what they say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from embodied_mem import envs
from embodied_mem.agents.eb_alfred_planner import EbAlfredCritic, EbAlfredPlanner
from embodied_mem.agents.eb_alfred_scene import EbAlfredRules
from embodied_mem.agents.eb_habitat_planner import EbHabitatCritic, EbHabitatPlanner, EbHabitatRules
from embodied_mem.agents.lives import Outcome, play_lives
from embodied_mem.agents.planner_critic import ABLATIONS, PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.envs import eb_alfred, eb_habitat_data
from embodied_mem.memory.lifelong import LifelongMemory

AGENTS = {**ABLATIONS, "no_memory": PlannerCriticConfig(spatial=False, long_term=False)}
"""The agent, its ablations, and one that has the last three answers and no other memory."""


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A world and its parts of the agent.

    Attributes:
        world: id of the environment.
        training: name of the tasks that memory is made of.
        subsets: names of the tasks that are scored.
        load: the tasks of a name.
        parts: new planner, critic and rules.
        lists_actions: as for `play_lives`.
    """

    world: str
    training: str
    subsets: tuple[str, ...]
    load: Callable[[str], list[Any]]
    parts: Callable[[], dict[str, Any]]
    lists_actions: bool

    def agent(self, config: PlannerCriticConfig, memory: LifelongMemory | None) -> PlannerCriticAgent:
        """A new agent; with `memory`, one that goes on with it."""
        return PlannerCriticAgent(config, memory, **self.parts())


BENCHMARKS = {
    "eb_alfred": Benchmark(
        "eb_alfred",
        "train",
        ("base", "common_sense", "long_horizon"),
        eb_alfred.load_tasks,
        lambda: {"planner": EbAlfredPlanner(), "critic": EbAlfredCritic(), "world": EbAlfredRules()},
        lists_actions=True,
    ),
    "eb_habitat": Benchmark(
        "eb_habitat",
        "train_validation",
        ("base", "common_sense", "long_horizon"),
        eb_habitat_data.load_tasks,
        lambda: {"planner": EbHabitatPlanner(), "critic": EbHabitatCritic(), "world": EbHabitatRules()},
        lists_actions=False,
    ),
}


def training_tasks(benchmark: Benchmark) -> list[Any]:
    """Tasks that memory is made of: one instruction per trial, and none that an evaluation subset has, too."""
    tasks = benchmark.load(benchmark.training)
    if benchmark.world == "eb_habitat":
        records = eb_habitat_data.load_records(benchmark.training)
        shared = {record["id"] for record in records if record.get("same_layout_as")}
        return [task for task in tasks if task.name not in shared and not task.satisfied_at_start]
    return list({task.trial: task for task in tasks}.values())


def scored_tasks(benchmark: Benchmark, subset: str) -> list[Any]:
    """The tasks of a subset without those whose goal holds before anything is done."""
    return [task for task in benchmark.load(subset) if not getattr(task, "satisfied_at_start", False)]


def remember(
    benchmark: Benchmark,
    config: PlannerCriticConfig,
    tasks: Sequence[Any],
    on_task: Callable[[Outcome], None] | None = None,
) -> LifelongMemory | None:
    """The memory of an agent that lived through these tasks; None for one that keeps nothing between tasks."""
    if not config.long_term or not tasks:
        return None
    agent = benchmark.agent(config, None)
    world = envs.make(benchmark.world, tasks=list(tasks), num_envs=1)
    play_lives(world, [agent], [range(len(tasks))], on_task, lists_actions=benchmark.lists_actions)
    return agent.memory


def play(
    benchmark: Benchmark,
    config: PlannerCriticConfig,
    memory: LifelongMemory | None,
    tasks: Sequence[Any],
    on_task: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Outcomes of the tasks, each played by an agent that starts with its own fork of `memory`."""
    world = envs.make(benchmark.world, tasks=list(tasks), num_envs=1)
    outcomes = []
    for index in range(len(tasks)):
        agent = benchmark.agent(config, memory.fork() if memory is not None else None)
        outcomes += play_lives(world, [agent], [[index]], on_task, lists_actions=benchmark.lists_actions)
    return outcomes
