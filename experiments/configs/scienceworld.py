"""ScienceWorld's test variations by agents without a model and by small ones; `evaluate.py --config=scienceworld`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ScienceWorldConfig:
    """What `evaluate_scienceworld` does.

    Attributes:
        agents: of `scienceworld_agents.AGENTS`.
        deliveries: of memory to the models of `weights`: `none`, `static`, `compiled`.
        weights: folder with config, tokenizer and weights.
        games: names of tasks; empty takes all 30.
        split: that is scored, `test` or `dev`.
        variations: scored of each task, evenly spaced over the split's.
        memories: gold paths of each task: of four evenly spaced training variations the first so many, 1 to 4.
        slow_games: tasks whose gold paths take the simulator a minute each, one memory of which is enough.
        max_steps: of an episode, the original's limit.
    """

    agents: tuple[str, ...] = ("none", "static", "planner_critic")
    deliveries: tuple[str, ...] = ()
    weights: str = ""
    games: tuple[str, ...] = ()
    split: str = "test"
    variations: int = 2
    memories: int = 2
    slow_games: tuple[str, ...] = ("mendelian-genetics-known-plant", "mendelian-genetics-unknown-plant")
    max_steps: int = 100


def config() -> ScienceWorldConfig:
    return ScienceWorldConfig()
