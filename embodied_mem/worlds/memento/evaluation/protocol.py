"""MEMENTO's two stages: an agent plays the acquisition episodes, then lives on what it remembers of them.

    runs = play_stage(tasks, records, make_agent, lambda record: Given(), seed=0)     # acquisition
    memory = TraceMemory([run.trace for run in runs])
    given = recall(memory, Recall(k=5, guaranteed=True))
    runs = play_stage(tasks, records, make_agent, given, seed=0)                      # utilisation
    summary(runs, acquired)

The agent sees the instruction, the house text, the answers and the memories it is given: text, never the env.

Source: MEMENTO section 3 (stages, metrics) and C.1 (memory, retrieval within the scene).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem.envs.memento import MAX_ACTIONS, MementoVectorEnv
from embodied_mem.envs.memento_data import DEVELOPMENT_SCENES, Task, related_ids
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.intervals import paired_difference, wilson
from embodied_mem.memory.profile import UserProfile
from embodied_mem.memory.trace_retrieval import TraceMemory
from embodied_mem.memory.traces import Trace, TraceStep

if TYPE_CHECKING:
    from embodied_mem.agents.household import HouseholdAgent

NUM_ENVS = 48

Record = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Given:
    """What an agent is given before a task.

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
        """Whether the episode's house is none of those that agents are tuned on."""
        return self.record["scene_id"] not in DEVELOPMENT_SCENES


@dataclasses.dataclass(frozen=True)
class Recall:
    """How memories are found.

    Attributes:
        strategy: a name of `trace_retrieval.STRATEGIES`.
        k: number of memories given.
        guaranteed: whether a memory that the task needs and that was not found replaces a hit drawn at random (the
            paper's main setting).
        seed: of that draw.
    """

    strategy: str = "hybrid"
    k: int = 5
    guaranteed: bool = True
    seed: int = 0

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
) -> list[Run]:
    """Play every task once, many side by side, and return the runs in the order of the tasks.

    Args:
        tasks: the episodes.
        records: their official entries, in the same order.
        make_agent: called once per task.
        given: what the agent is given, by entry.
        seed: of the world's chance.
        max_steps: actions after which a run ends.
        num_envs: tasks played side by side; the world's chance depends on it.

    Raises:
        InvalidInputError: tasks and records differ.
    """
    if [task.name for task in tasks] != [str(record["episode_id"]) for record in records]:
        raise InvalidInputError("play_stage: expected tasks and records of the same episodes in the same order")
    runs: list[Run] = []
    if not tasks:
        return runs
    envs = MementoVectorEnv(tasks, num_envs=min(num_envs, len(tasks)), seed=seed, max_steps=max_steps)
    for start in range(0, len(tasks), envs.num_envs):
        runs += _play_together(envs, range(start, min(start + envs.num_envs, len(tasks))), records, make_agent, given)
    return runs


def _play_together(
    envs: MementoVectorEnv,
    chosen: range,
    records: Sequence[Record],
    make_agent: Callable[[], HouseholdAgent],
    given: Callable[[Record], Given],
) -> list[Run]:
    indices = np.full(envs.num_envs, chosen[0])
    indices[: len(chosen)] = chosen
    observations, _ = envs.reset(options={"task_indices": indices})
    agents, gifts = [], []
    for i, task in enumerate(chosen):
        gift, agent = given(records[task]), make_agent()
        agent.begin(records[task]["instruction"], observations[i], gift.memories, gift.profile)
        agents.append(agent)
        gifts.append(gift)
    steps: list[list[TraceStep]] = [[] for _ in chosen]
    runs: list[Run | None] = [None] * len(chosen)
    actions = ["Done[]"] * envs.num_envs
    while any(run is None for run in runs):
        thoughts = [""] * len(chosen)
        for i, agent in enumerate(agents):
            if runs[i] is None:
                reply = agent.act(observations[i])
                thoughts[i], actions[i] = reply.thought, reply.action
            else:
                actions[i] = "Done[]"
        observations, _, terminations, truncations, info = envs.step(actions)
        for i, task in enumerate(chosen):
            if runs[i] is not None:
                continue
            steps[i].append(TraceStep(thoughts[i], actions[i], observations[i]))
            if terminations[i] or truncations[i]:
                record, won = records[task], bool(info["won"][i])
                identity = (str(record["episode_id"]), record["scene_id"], record["instruction"])
                runs[i] = Run(
                    record,
                    won,
                    float(info["progress"][i]),
                    len(steps[i]) + bool(truncations[i] and not terminations[i]),
                    int(info["sim_steps"][i]),
                    Trace(*identity, steps=tuple(steps[i])),
                    gifts[i].missing,
                )
    return [run for run in runs if run is not None]


def recall(
    memory: TraceMemory,
    how: Recall,
    *,
    shown: Callable[[Trace], Trace] = lambda trace: trace,
    profiles: Mapping[str, UserProfile] | None = None,
) -> Callable[[Record], Given]:
    """The function that gives each task its memories.

    Args:
        memory: of all scenes; only those of the task's scene are looked at.
        how: strategy, number, guarantee.
        shown: the format under test, applied to each memory that is given.
        profiles: the user's profile by scene; None gives none.
    """

    def given(record: Record) -> Given:
        scene = record["scene_id"]
        hits = memory.retrieve(record["instruction"], scene, how.k, how.strategy)
        missing = [number for number in related_ids(record) if number not in {hit.episode_id for hit in hits}]
        if how.guaranteed and missing:
            hits = _with(hits, [memory[number] for number in missing], related_ids(record), how, record)
        profile = profiles.get(scene) if profiles is not None else None
        return Given(tuple(shown(hit) for hit in hits), profile, bool(missing))

    return given


def _with(
    hits: Sequence[Trace], wanted: Iterable[Trace], needed: Sequence[str], how: Recall, record: Record
) -> list[Trace]:
    """`hits` with each wanted trace in the place of one that is not needed, drawn at random."""
    rng = random.Random(f"{how.seed}/{record['episode_id']}")
    hits = list(hits)
    for trace in wanted:
        free = [i for i, hit in enumerate(hits) if hit.episode_id not in needed]
        if free:
            hits[rng.choice(free)] = trace
        else:
            hits.append(trace)
    return hits


def missing_rates(memory: TraceMemory, records: Sequence[Record], strategy: str, k: int) -> dict[str, float]:
    """Share of tasks of which a needed memory is not among the first `k`: of all, and of the held-out houses."""
    rows: list[tuple[bool, bool]] = []
    for record in records:
        hits = {hit.episode_id for hit in memory.retrieve(record["instruction"], record["scene_id"], k, strategy)}
        rows.append((not hits >= set(related_ids(record)), record["scene_id"] not in DEVELOPMENT_SCENES))
    rates = {"all": float(np.mean([missing for missing, _ in rows]))}
    if held_out := [missing for missing, out in rows if out]:
        rates["held_out"] = float(np.mean(held_out))
    return rates


def build_profiles(records: Iterable[Record], embedder: Any = None) -> dict[str, UserProfile]:
    """The user's profile of each scene, told by the acquisition instructions in their order (D.1, algorithm 1)."""
    profiles: dict[str, UserProfile] = {}
    for time, record in enumerate(records):
        profile = profiles.setdefault(record["scene_id"], UserProfile(embedder=embedder))
        number = int(record["episode_id"]) if str(record["episode_id"]).isdigit() else time
        profile.tell(record["instruction"], episode=number, step=0, time=time)
    return profiles


def summary(runs: Sequence[Run], acquired: Mapping[str, Run] | None = None) -> dict[str, Any]:
    """The metrics of table 1, rates and differences in [0, 1] with 95 % intervals.

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
        "sr_interval": list(wilson(float(won.mean()), len(runs))),
        "pc": float(progress.mean()),
        "pc_interval": list(paired_difference(progress, np.zeros(len(runs)))[1:]),
        "cycles": float(np.mean([run.cycles for run in runs])),
        "sim_steps": float(np.mean([run.sim_steps for run in runs])),
    }
    if acquired is not None:
        related = [[acquired[number] for number in related_ids(run.record)] for run in runs]
        for name, values in (("delta_sr", won), ("delta_pc", progress)):
            field = "won" if name == "delta_sr" else "progress"
            before = np.array([np.mean([float(getattr(run, field)) for run in group]) for group in related])
            row[name] = list(paired_difference(values, before))
        row["missing"] = float(np.mean([run.missing for run in runs]))
    return row


def kind_of(record: Record, kinds: Mapping[str, str]) -> str:
    """Knowledge type of an entry; of a joint one the sorted types of its parts, joined by " + ".

    Args:
        record: an official entry.
        kinds: knowledge type by acquisition episode id.
    """
    return " + ".join(sorted(kinds[number] for number in related_ids(record)))


def subtype_of(record: Record) -> str:
    """Subtype of an entry; of a joint one the sorted subtypes of its parts, joined by " + "."""
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
