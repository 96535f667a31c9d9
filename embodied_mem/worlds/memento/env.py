"""MEMENTO's household world (PARTNR episodes in HSSD houses), natively and without a 3-D simulator.

    envs = embodied_mem.envs.make("memento", tasks="acquisition", num_envs=16, seed=0)
    observations, info = envs.reset()
    observations, rewards, terminations, truncations, info = envs.step(["Explore[kitchen_1]"] * 16)

What is exact, what is fitted, and on how many recorded steps, is in docs/worlds/memento.md.
"""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embodied_mem.envs.checks import checked_actions, checked_tasks
from embodied_mem.envs.simulators.env import SimulatorVectorEnv, episodes_of
from embodied_mem.envs.simulators.process import Program
from embodied_mem.envs.vector_env import Answers, NativeVectorEnv
from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.memento.data import load_tasks
from embodied_mem.worlds.memento.engine import Env, Task, VectorEnv

MAX_ACTIONS = 40
"""Actions of a run in the paper: its 41st answer is not played any more."""

Finder = Callable[[str, str, str], str]
"""Answers a finding tool: (tool, query, list of candidates) to text."""

_FIND = re.compile(r"(FindReceptacleTool|FindObjectTool|FindRoomTool)\s*\[")

Tasks = str | os.PathLike[str] | Sequence[Task]


class MementoVectorEnv(NativeVectorEnv):
    """Household tasks stepped together; autoreset is disabled, results do not depend on the number of threads.

    The first observation is `Task: <instruction>`, a blank line and the house text of the original's prompt; later
    ones are `Result: <answer>` and `Objects: <one line per object seen so far>`. After its end (Done[], or five answers
    in a row that are no action) an env changes nothing and repeats its last observation until it is reset.

    `info` holds, each with one entry per env: `goal` (the instruction), `task_id`, `won` (bool[B], success as of now),
    `progress` (float64[B], PARTNR's percent complete as of now), `sim_steps` (int64[B], simulator steps spent).
    Actions have names as arguments, so there is no list of admissible ones. `rewards` is 1.0 after each step at which
    the task stands fulfilled, else 0.0; `terminations` is true at the end described above; `truncations` where
    `max_steps` actions were played without one.
    """

    default_tasks = "acquisition"
    action_forms = (
        "Navigate[room, floor, furniture or object]",
        "Explore[room]",
        "Pick[object]",
        "Place[object, on or within, furniture or floor, next_to or None, object, furniture or None]",
        "Open[furniture]",
        "Close[furniture]",
        "FindReceptacleTool[what]",
        "FindObjectTool[what]",
        "FindRoomTool[what]",
        "DescribeObjectTool[object]",
        "Wait[]",
        "Done[]",
    )
    extra_info = ("sim_steps",)
    has_chance = True

    def __init__(
        self,
        tasks: Tasks,
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = MAX_ACTIONS,
        *,
        data: str | os.PathLike[str] | None = None,
        finder: Finder | None = None,
        num_threads: int | None = None,
    ):
        """Read the tasks and make the envs. Other arguments as for `NativeVectorEnv`.

        Args:
            tasks: a stage (`acquisition`, `single`, `joint`), an episode file, or `Task` objects.
            max_steps: actions after which an episode is truncated; None for no limit.
            data: folder with `scenes.json`, `captions.json`, `episodes/`; None takes `$EMBODIED_MEM_DATA/memento`.
            finder: answers the three finding tools with a str, e.g. by a chat model; None answers by rule.

        Raises:
            DataNotFoundError: the data is not installed.
            GameFileError: a data file is malformed.
            InvalidInputError: any other argument is out of range.
        """
        if finder is not None and not callable(finder):
            raise InvalidInputError(f"finder: expected a function of (tool, query, candidates), got {finder!r}")
        loaded = checked_tasks(tasks, lambda name: load_tasks(name, data), Task)
        super().__init__(VectorEnv, loaded, num_envs, seed, max_steps, num_threads)
        self._finder = finder

    def step(self, actions: Sequence[str], recorded: Sequence[Mapping[str, Any] | None] | None = None) -> Answers:
        """Step every env; return `(observations, rewards, terminations, truncations, info)`.

        Args:
            actions: one action per env, `Name[arguments]`; any string at all, of which the last line is read.
            recorded: per env None or what a recorded run says of the step, to be believed: `response`, `room` and
                `position` (of the agent, afterwards), `revealed` (names of objects newly shown).

        Raises:
            InvalidInputError: not one `str` per env, `recorded` or what `finder` says is something else, or `reset` was
                never called. No env has moved then.
        """
        actions = checked_actions(actions)
        if recorded is None and self._finder is not None:
            recorded = self._found(actions, self._finder)
        if recorded is not None:
            if not isinstance(recorded, list | tuple):
                raise InvalidInputError(f"recorded: expected a list, one entry per env, got {type(recorded).__name__}")
            recorded = [None if entry is None else _checked_record(i, entry) for i, entry in enumerate(recorded)]
        return self._answered(self._native.step(actions, recorded))

    def _found(self, actions: Sequence[str], finder: Finder) -> list[dict[str, str] | None] | None:
        answers: list[dict[str, str] | None] = [None] * self.num_envs
        if len(actions) != self.num_envs or not self._started.all():
            return None  # the native step refuses these
        for i, action in enumerate(actions):
            line = action.strip().rpartition("\n")[2] if isinstance(action, str) else ""
            # The end first: a pattern for all of it tries every beginning against every end.
            if line.endswith("]") and (match := _FIND.search(line)):
                tool, query = match[1], line[match.end() : -1]
                env = self._native.snapshot(i)
                if not env.ended:
                    answers[i] = {"response": finder(tool, query.strip(), candidates(env, tool))}
        return answers if any(answers) else None


def _checked_record(index: int, entry: Any) -> dict[str, Any]:
    """Return an entry of `recorded` with the native side's types."""
    if not isinstance(entry, Mapping):
        raise InvalidInputError(f"recorded[{index}]: expected None or a dict, got {type(entry).__name__}")
    for key, value in entry.items():
        if key == "position":
            fits = np.shape(value) == (3,) and np.asarray(value).dtype.kind in "iuf"
        elif key == "revealed":
            fits = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
        else:
            fits = isinstance(key, str) and isinstance(value, str)
        if not fits:
            raise InvalidInputError(
                f"recorded[{index}]: expected response and room as str, position as 3 numbers, revealed as a list of "
                f"str, got {key!r}: {value!r}"
            )
    return dict(entry)


def candidates(env: Env, tool: str) -> str:
    """Return a finding tool's list: furniture by type, seen objects, rooms.

    Rooms of furniture are named by type alone, as in the original: bedroom_1 cannot be told from bedroom_2.
    """
    house = env.task.house
    types = {room["name"]: room["type"] for room in house["rooms"]}
    if tool == "FindRoomTool":
        return "\n".join(room["name"] for room in house["rooms"] if room["has_floor"])
    if tool == "FindReceptacleTool":
        by_type: dict[str, list[str]] = collections.defaultdict(list)
        for piece in house["furniture"]:
            faucet = " with components: faucet" if piece["faucet"] else ""
            by_type[piece["type"]].append(f"{piece['name']} in {types[piece['room']]}{faucet}")
        return "\n".join(f"{kind.capitalize()} : {', '.join(names)}" for kind, names in by_type.items())
    state = env.state()
    lines = []
    for name, entry in state["objects"].items():
        if entry["known"]:
            where = "held by the agent" if entry["held"] else f"in/on {entry['place']} in {entry['room']}"
            away = np.hypot(*(entry["position"][k] - state["position"][k] for k in (0, 2)))
            lines.append(f"{name} is {where} and {away:.1f} meters away from the agent")
    return "\n".join(lines)


CONFIG = "examples/skill_runner_default_config.yaml"
AGENT = "agent@evaluation.agents.agent_0.config=oracle_rearrange_agent"
"""MEMENTO's one robot, with Explore and the tools for states of objects."""


class PartnrSimulator(SimulatorVectorEnv):
    """PARTNR on habitat-lab and habitat-sim: actions `Name[arguments]` as in the native `memento`; agent 0 acts."""

    default_tasks = "data/datasets/partnr_episodes/v0_0/val_mini.json.gz"
    action_forms = ("Navigate[<name>]", "Pick[<object>]", "Place[<object>, on, <furniture>, none, none]", "Done[]")

    def __init__(
        self,
        tasks: str | Sequence[str] = default_tasks,
        num_envs: int = 1,
        seed: int = 0,
        max_steps: int | None = 40,
        *,
        config: str = CONFIG,
        overrides: Sequence[str] = (),
        camera: str = "head_rgb",
        python: str | None = None,
        folder: str | os.PathLike[str] | None = None,
    ):
        """Start the processes.

        Args:
            tasks: an episode file, seen from `folder`, or ids of episodes in one file, "<file>/3".
            num_envs, seed, max_steps, python, folder: as for `SimulatorVectorEnv`.
            config: a file of PARTNR's `habitat_llm/conf`; it must keep its visual sensors if images are wanted.
            overrides: Hydra's, such as "world_model.partial_obs=True". Unless one of them says otherwise, agent 0 is
                `AGENT`, with MEMENTO's tools; PARTNR's own file gives it none to explore with.
            camera: end of the sensor's name whose image is passed on.
        """
        program = self.program_for(
            tasks, seed=seed, config=config, overrides=overrides, camera=camera, python=python, folder=folder
        )
        super().__init__(program, tasks, num_envs, seed, max_steps)

    @classmethod
    def program_for(
        cls,
        tasks: str | Sequence[str] = default_tasks,
        *,
        seed: int = 0,
        config: str = CONFIG,
        overrides: Sequence[str] = (),
        camera: str = "head_rgb",
        python: str | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> Program:
        """Return what a process runs."""
        chosen = [] if any(given.startswith(AGENT.partition("=")[0]) for given in overrides) else [AGENT]
        options = {
            "data_path": episodes_of(tasks)[0],
            "config": config,
            "overrides": [*chosen, *overrides],
            "camera": camera,
            "seed": seed,
        }
        return Program(Path(__file__).with_name("simulator_program.py"), options, python, folder)
