"""The rooms, stepped together: `enter ROOM`, `grab THING`, `drop THING`."""

from __future__ import annotations

import dataclasses

import numpy as np

ROOMS = ("attic", "cellar", "hall", "kitchen", "study")
THINGS = ("lantern", "rope", "violin")


@dataclasses.dataclass(frozen=True)
class Task:
    """A thing to be brought to the hall, and the room where it lies."""

    name: str
    thing: str
    room: str


def tasks(count: int, seed: int) -> list[Task]:
    """Things where they always are in the home of this seed, but for one in four."""
    random = np.random.default_rng(seed)
    away = [room for room in ROOMS if room != "hall"]
    usual = {thing: str(random.choice(away)) for thing in THINGS}
    found = []
    for number in range(count):
        thing = THINGS[number % len(THINGS)]
        room = usual[thing] if random.random() < 0.75 else str(random.choice(away))
        found.append(Task(f"home-{seed}/day-{number}", thing, room))
    return found


class _House:
    def __init__(self, task: Task):
        self.task, self.here, self.held, self.lies = task, "hall", False, task.room
        self.steps, self.won = 0, False

    def describe(self) -> str:
        return f"You stand in the {self.here}. Here: {self.task.thing if self.lies == self.here else 'nothing'}."

    def play(self, command: str) -> str:
        self.steps += 1
        verb, _, name = command.partition(" ")
        if verb == "enter" and name in ROOMS:
            self.here = name
            return self.describe()
        if command == f"grab {self.task.thing}" and self.lies == self.here:
            self.held, self.lies = True, ""
            return f"You hold the {self.task.thing}."
        if command == f"drop {self.task.thing}" and self.held:
            self.held, self.lies, self.won = False, self.here, self.here == "hall"
            return f"The {self.task.thing} is in the {self.here} now."
        return "That does not work."

    def commands(self) -> list[str]:
        found = [f"enter {room}" for room in ROOMS]
        if self.lies == self.here:
            found.append(f"grab {self.task.thing}")
        return [*found, f"drop {self.task.thing}"] if self.held else found


class CellarVectorEnv:
    """As `gymnasium.vector.VectorEnv`, of tasks of this world."""

    def __init__(self, tasks: list[Task], num_envs: int = 1, seed: int = 0, max_steps: int = 12):
        self._tasks, self.num_envs, self.max_steps, self.num_tasks = list(tasks), num_envs, max_steps, len(tasks)
        self._random = np.random.default_rng(seed)

    def reset(self, *, seed=None, options=None):
        drawn = (options or {}).get("task_indices", self._random.integers(self.num_tasks, size=self.num_envs))
        self._houses = [_House(self._tasks[int(index)]) for index in drawn]
        texts = [f"{h.describe()} Doors: {', '.join(ROOMS)}.\n\nYour task is to: {self._goal(h)}" for h in self._houses]
        return texts, self._info()

    def step(self, actions):
        texts = [house.play(action) for house, action in zip(self._houses, actions)]
        ended = np.array([house.won for house in self._houses])
        cut = np.array([house.steps >= self.max_steps for house in self._houses]) & ~ended
        return texts, ended.astype(float), ended, cut, self._info()

    def _goal(self, house: _House) -> str:
        return f"bring the {house.task.thing} to the hall."

    def _info(self):
        return {
            "goal": [self._goal(house) for house in self._houses],
            "task_id": [house.task.name for house in self._houses],
            "won": np.array([house.won for house in self._houses]),
            "progress": np.array([1.0 if house.won else 0.5 * house.held for house in self._houses]),
            "admissible_commands": [house.commands() for house in self._houses],
        }
