"""What this world is trained on, and its teacher: look where the thing was before, then everywhere."""

from __future__ import annotations

from cellar_world.env import ROOMS, CellarVectorEnv, tasks
from cellar_world.reader import READER
from embodied_mem.compiler.brief_state import Create, apply_all
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.compiler.view import start_state
from embodied_mem.training.teachers.lesson import Lesson


class CellarTeacher:
    def begin(self, goal, first_observation, experiences):
        self._thing = READER.goal_object(goal)
        past = [place for e in experiences for _, kind, name, place in READER.events(e.episode) if kind == "take"]
        self._order = list(dict.fromkeys([*past, *(room for room in ROOMS if room != "hall")]))
        self._remembered, self._held, self._here = set(past), False, "hall"
        return self._lesson(start_state(goal, ""), READER.read(first_observation))

    def next(self, action, observation, state):
        return self._lesson(state, READER.read(observation))

    def _lesson(self, state, reading):
        self._here = reading.arrived_at or self._here
        self._held = self._held or any(relation == "holds" for _, relation, _ in reading.facts)
        there = any(name == self._thing for name, relation, _ in reading.facts if relation == "in")
        edits, guidance = [], ""
        if self._held:
            action = f"drop {self._thing}" if self._here == "hall" else "enter hall"
        elif there:
            action = f"grab {self._thing}"
        else:
            if self._here in self._order:
                self._order.remove(self._here)
                edits = [Create("searched", self._here)]
            room = (self._order or list(ROOMS))[0]
            action = f"enter {room}"
            guidance = action if room in self._remembered else ""
        output = CompilerOutput.make(guidance, edits, "it was there before" if guidance else "")
        return Lesson(output, apply_all(edits, state)[0], action, guidance)

    def mislead(self, lesson, action, observation, room, random):
        return lesson, action

    def imagined_answer(self, observation, thing, random):
        return ""


class CellarTasks:
    kinds = ("lantern", "rope", "violin")

    def __init__(self, world, seed):
        self._seed = seed

    def sides(self):
        return tasks(12, self._seed), tasks(6, self._seed + 1)

    def envs(self, tasks, num_envs, max_steps=None):
        return CellarVectorEnv(tasks, num_envs, self._seed, max_steps or 12)

    def teacher(self, kinds=None):
        return CellarTeacher()

    def commands(self):
        return "enter ROOM, grab THING, drop THING"

    def task_key(self, task_id):
        return task_id
