"""EB-ALFRED's three subsets by the planner-critic agent; for `python experiments/evaluate.py --config=eb_alfred`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class PlannerConfig:
    """What `evaluate_planner` does.

    Attributes:
        world: id of the environment.
        agents: of `planner_benchmark.AGENTS`.
        subsets: that are scored; empty takes all at hand.
        deliveries: of memory, by the models in `weights`.
        weights: folder with models that read ALFWorld's texts.
        seeds: of the deliveries; each task is played once per seed.
        temperature: of the deliveries; 0 is greedy.
        training_tasks: that memory is made of; 0 takes all.
        num_tasks: of each subset; 0 takes all.
    """

    world: str = "eb_alfred"
    agents: tuple[str, ...] = ("full", "no_critic", "no_spatial", "no_long_term", "no_memory")
    subsets: tuple[str, ...] = ()
    deliveries: tuple[str, ...] = ()
    weights: str = "experiments/weights/alfworld"
    seeds: tuple[int, ...] = (0, 1, 2)
    temperature: float = 0.5
    training_tasks: int = 0
    num_tasks: int = 0


def config() -> PlannerConfig:
    return PlannerConfig()
