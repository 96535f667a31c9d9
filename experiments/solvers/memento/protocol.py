"""MEMENTO's two stages: an agent plays the acquisition episodes, then others with its memory of them.

    runs = play_stage(tasks, records, make_agent, lambda record: Given(), seed=0)     # acquisition
    memory = TraceMemory([run.trace for run in runs])
    given = recall(memory, Recall(k=5, guaranteed=True))
    runs = play_stage(tasks, records, make_agent, given, seed=0)                      # utilisation
    summary(runs, acquired)

The agent sees the instruction, the house text, the answers and the memories it is given: text, never the env.

Source: MEMENTO section 3 (stages, metrics) and C.1 (memory, retrieval within the scene).
"""

from __future__ import annotations

import csv
import dataclasses
import os
import pathlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.rollout import rollout
from embodied_mem.agents.trace import traced
from embodied_mem.errors import GameFileError, InvalidInputError
from embodied_mem.evaluation.intervals import paired_difference, wilson
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.profile import UserProfile
from embodied_mem.worlds.memento.data import DEVELOPMENT_SCENES, related_ids
from embodied_mem.worlds.memento.engine import Task
from embodied_mem.worlds.memento.env import MAX_ACTIONS, MementoVectorEnv
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep

from .retrieval import TraceMemory

if TYPE_CHECKING:
    from embodied_mem.worlds.memento.agent.react import HouseholdAgent


NUM_ENVS = 48
ALL_HOUSES = "all houses"
"""Scene of the traces in a memory that joins the histories of all houses."""

Record = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Given:
    """The gift of memories to an agent before a task.

    Attributes:
        memories: best first.
        profile: the user's, or None.
        missing: whether a memory that the task needs was not among the hits of retrieval.
    """

    memories: tuple[Trace, ...] = ()
    profile: UserProfile | None = None
    missing: bool = False


@dataclasses.dataclass(frozen=True)
class Run:
    """One played episode.

    Attributes:
        record: the official entry.
        won: success at the end.
        progress: percent complete at the end, in [0, 1].
        cycles: planning cycles: answers of the agent; one more where the limit of actions was reached, as the paper
            counts the call that is not played any more.
        sim_steps: simulator steps spent.
        trace: what is remembered.
        missing: see `Given`.
    """

    record: Record
    won: bool
    progress: float
    cycles: int
    sim_steps: int
    trace: Trace
    missing: bool = False

    @property
    def episode_id(self) -> str:
        return str(self.record["episode_id"])

    @property
    def held_out(self) -> bool:
        """True if agents are not tuned on the episode's house."""
        return self.record["scene_id"] not in DEVELOPMENT_SCENES


@dataclasses.dataclass(frozen=True)
class Recall:
    """A way to find memories.

    Attributes:
        strategy: a name of `trace_retrieval.STRATEGIES`.
        k: number of memories given.
        guaranteed: whether a memory that the task needs and that was not found replaces a hit drawn at random (the
            paper's main setting).
        seed: of that draw.
        all_houses: whether the memory joins all houses (its traces' scene is `ALL_HOUSES`).
    """

    strategy: str = "hybrid"
    k: int = 5
    guaranteed: bool = True
    seed: int = 0
    all_houses: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidInputError(f"recall.k: expected >= 1, got {self.k}")


def play_stage(
    tasks: Sequence[Task],
    records: Sequence[Record],
    make_agent: Callable[[], HouseholdAgent],
    given: Callable[[Record], Given],
    *,
    seed: int = 0,
    max_steps: int = MAX_ACTIONS,
    num_envs: int = NUM_ENVS,
    trace: TextIO | None = None,
    name: str = "",
    parallel: int = 1,
) -> list[Run]:
    """Play every task once by a fresh agent; return ordered runs.

    Args:
        tasks: the episodes; `records` are their official entries, in the same order.
        given: what the agent is given, by entry.
        num_envs: tasks played side by side; the world's chance depends on it as on `seed`.
        trace: gets every step under this `name`, in the order in which the tasks end.
        parallel: so many agents decide side by side.

    Raises:
        InvalidInputError: tasks and records differ.
    """
    if [task.name for task in tasks] != [str(record["episode_id"]) for record in records]:
        raise InvalidInputError("play_stage: expected tasks and records of the same episodes in the same order")
    runs: list[Run] = []
    if not tasks:
        return runs
    envs = MementoVectorEnv(tasks, num_envs=min(num_envs, len(tasks)), seed=seed, max_steps=max_steps)
    for first in range(0, len(tasks), envs.num_envs):
        chosen = range(len(tasks))[first : first + envs.num_envs]
        gifts = [given(records[task]) for task in chosen]
        agents = [_Player(make_agent(), records[task]["instruction"], gift) for task, gift in zip(chosen, gifts)]
        played_by = [traced(agent, trace, name, agent.memories) for agent in agents]
        free = envs.num_envs - len(chosen)
        episodes = rollout(
            envs, played_by + played_by[:1] * free, [[task] for task in chosen] + [[]] * free, idle="Done[]",
            parallel=parallel,
        )  # fmt: skip
        for agent, gift, played in zip(agents, gifts, episodes):
            record, turns = records[played.task], zip(agent.thoughts, played.actions, played.answers)
            steps = tuple(TraceStep(*turn) for turn in turns)
            kept = Trace(str(record["episode_id"]), record["scene_id"], record["instruction"], steps)
            cycles, sim_steps = len(played.actions) + played.cut, int(played.info["sim_steps"][played.row])
            runs.append(Run(record, played.won, played.progress, cycles, sim_steps, kept, gift.missing))
    return runs


class _Player(Agent):
    """A household agent with what it is given; plays one task.

    Attributes:
        thoughts: of its answers.
    """

    def __init__(self, agent: HouseholdAgent, instruction: str, gift: Given):
        self._agent, self._instruction, self._gift = agent, instruction, gift
        self.thoughts: list[str] = []

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        self._agent.begin(self._instruction, observation, self._gift.memories, self._gift.profile)

    @property
    def memories(self) -> list[str]:
        """The given memories, as text."""
        return [f"episode {memory.episode_id}: {memory.render()}" for memory in self._gift.memories]

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        reply = self._agent.act(observation)
        self.thoughts.append(reply.thought)
        return reply.action

    def explained(self) -> dict[str, str]:
        return {"thought": self.thoughts[-1]}


def recall(
    memory: TraceMemory,
    how: Recall,
    *,
    shown: Callable[[Trace], Trace] = lambda trace: trace,
    profiles: Mapping[str, UserProfile] | None = None,
) -> Callable[[Record], Given]:
    """Make the function that gives each task its memories and profile.

    The memories are of the task's scene, in the format `shown`; the profile is the user's in `profiles`, by scene.
    """

    def given(record: Record) -> Given:
        scene = record["scene_id"]
        hits = memory.retrieve(record["instruction"], ALL_HOUSES if how.all_houses else scene, how.k, how.strategy)
        missing = [number for number in related_ids(record) if number not in {hit.episode_id for hit in hits}]
        if how.guaranteed and missing:
            hits = _with(hits, [memory[number] for number in missing], related_ids(record), how, record)
        profile = profiles.get(scene) if profiles is not None else None
        return Given(tuple(shown(hit) for hit in hits), profile, bool(missing))

    return given


def _with(
    hits: Sequence[Trace], wanted: Iterable[Trace], needed: Sequence[str], how: Recall, record: Record
) -> list[Trace]:
    """Put each wanted trace in a random unneeded hit's place."""
    rng = random.Random(f"{how.seed}/{record['episode_id']}")
    hits = list(hits)
    for trace in wanted:
        free = [i for i, hit in enumerate(hits) if hit.episode_id not in needed]
        if free:
            hits[rng.choice(free)] = trace
        else:
            hits.append(trace)
    return hits


def missing_rates(
    memory: TraceMemory, records: Sequence[Record], strategy: str, k: int, *, all_houses: bool = False
) -> dict[str, float]:
    """Return missing rates at `k` of all tasks and of held-out houses."""
    missing: dict[str, list[bool]] = {"all": [], "held_out": []}
    for record in records:
        scene = ALL_HOUSES if all_houses else record["scene_id"]
        hits = {hit.episode_id for hit in memory.retrieve(record["instruction"], scene, k, strategy)}
        for name in ("all", "held_out") if record["scene_id"] not in DEVELOPMENT_SCENES else ("all",):
            missing[name].append(not hits >= set(related_ids(record)))
    return {name: float(np.mean(values)) for name, values in missing.items() if values or name == "all"}


def build_profiles(
    records: Iterable[Record], embedder: Any = None, writer: ChatWriter | None = None
) -> dict[str, UserProfile]:
    """Return each scene's user profile from acquisition instructions (D.1, algorithm 1).

    A writer reads and resolves them, and puts into words what is recalled; None for rules.
    """
    profiles: dict[str, UserProfile] = {}
    for time, record in enumerate(records):
        profile = profiles.setdefault(record["scene_id"], UserProfile(embedder=embedder, writer=writer))
        number = int(record["episode_id"]) if str(record["episode_id"]).isdigit() else time
        profile.tell(record["instruction"], episode=number, step=0, time=time)
    return profiles


def summary(runs: Sequence[Run], acquired: Mapping[str, Run] | None = None) -> dict[str, Any]:
    """Return table 1's rates and differences with 95 % intervals.

    Runs of one episode are not independent: the interval of success counts episodes.

    Args:
        runs: of one stage or a part of it; at least one.
        acquired: the acquisition runs by episode id; with it also `delta_pc` and `delta_sr`, each run against the mean
            of the acquisition runs that its task is related to (3.4), as [difference, low, high].
    """
    won = np.array([run.won for run in runs], float)
    progress = np.array([run.progress for run in runs], float)
    row: dict[str, Any] = {
        "episodes": len(runs),
        "sr": float(won.mean()),
        "sr_interval": list(wilson(float(won.mean()), len({run.episode_id for run in runs}))),
        "pc": float(progress.mean()),
        "pc_interval": list(paired_difference(progress, np.zeros(len(runs)))[1:]),
        "cycles": float(np.mean([run.cycles for run in runs])),
        "sim_steps": float(np.mean([run.sim_steps for run in runs])),
    }
    if acquired is not None:
        related = [[acquired[number] for number in related_ids(run.record)] for run in runs]
        for name, field, values in (("delta_sr", "won", won), ("delta_pc", "progress", progress)):
            before = np.array([np.mean([float(getattr(run, field)) for run in group]) for group in related])
            row[name] = list(paired_difference(values, before))
        row["missing"] = float(np.mean([run.missing for run in runs]))
    return row


def kind_of(record: Record, kinds: Mapping[str, str]) -> str:
    """Return an entry's knowledge type of `kinds`, joint ones joined by "+"."""
    return " + ".join(sorted(kinds[number] for number in related_ids(record)))


def subtype_of(record: Record) -> str:
    """Subtype of an entry; of a joint one as for `kind_of`."""
    subtype = record["metadata"]["subtype"]
    return subtype if isinstance(subtype, str) else " + ".join(sorted(subtype))


def grouped(
    runs: Sequence[Run], acquired: Mapping[str, Run] | None, key: Callable[[Run], str]
) -> dict[str, dict[str, Any]]:
    """`summary` of each group of runs, groups in alphabetical order."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return {name: summary(groups[name], acquired) for name in sorted(groups)}


MODELS = ("gpt-4o", "claude-3.5-sonnet", "qwen-2.5-72b-instruct", "llama-3.1-70b-instruct", "qwen-2.5-7b-instruct")
"""Models shown, in the order of the paper's table 1; llama-3.1-8b-instruct is left out for want of one episode."""

_SETTINGS = {"acquisition": "acquisition", "single_utilization": "single", "joint_utilization": "joint"}

Scores = dict[str, tuple[float, float]]
"""(success, percent complete in [0, 1]) by episode id."""


def published_scores(root: str | os.PathLike[str]) -> dict[str, dict[str, Scores]]:
    """Read the paper's main scores by stage, model, episode, perhaps none.

    Raises:
        GameFileError: the file has other columns or values than expected.
    """
    path = pathlib.Path(root) / "results" / "per_episode.csv"
    if not path.is_file():
        return {}
    scores: dict[str, dict[str, Scores]] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["experiment"] == "main_table" and row["setting"] in _SETTINGS and row["model"] in MODELS:
                    of_model = scores.setdefault(_SETTINGS[row["setting"]], {}).setdefault(row["model"], {})
                    of_model[row["episode_id"]] = (float(row["success"]), float(row["percent_complete"]))
    except (OSError, KeyError, ValueError) as error:
        raise GameFileError(
            f"{path}: expected experiment, setting, model, episode_id, success and percent_complete: {error!r}"
        ) from error
    return scores


def beside(runs: Sequence[Run], scores: Scores) -> dict[str, Any]:
    """Return both sides' scores on common episodes, in [0, 1].

    `difference` is ours minus theirs in success, paired by episode, as [middle, low, high].
    """
    common = [run for run in runs if run.episode_id in scores]
    if not common:
        return {}
    ours = np.array([run.won for run in common], float)
    theirs = np.array([scores[run.episode_id][0] for run in common])
    return {
        "episodes": len(common),
        "sr": float(theirs.mean()),
        "sr_interval": list(wilson(float(theirs.mean()), len(common))),
        "pc": float(np.mean([scores[run.episode_id][1] for run in common])),
        "our_sr": float(ours.mean()),
        "our_pc": float(np.mean([run.progress for run in common])),
        "difference": list(paired_difference(ours, theirs)),
    }
