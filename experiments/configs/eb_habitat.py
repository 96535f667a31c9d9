"""EB-Habitat's three subsets by the planner-critic agent; for `python experiments/evaluate.py --config=eb_habitat`."""

from experiments.configs.eb_alfred import PlannerConfig


def config() -> PlannerConfig:
    return PlannerConfig(world="eb_habitat")
