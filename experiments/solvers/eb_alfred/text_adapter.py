"""EB-ALFRED's text adapter: rewrites its texts in ALFWorld's wording.

    envs = EbAlfredTextAdapter(tasks, num_envs=16)
    observations, info = envs.reset(options={"task_indices": range(16)})
    info["goal"][0]                                      # "put a clean mug in coffeemachine."
    observations, _, terminations, truncations, info = envs.step(["go to sinkbasin 1"] * 16)

What all adapters share is in `wording.text_adapter`; "heat" takes eight actions here. The instruction becomes one of
ALFWorld's task sentences by its words (`instruction`) and by what places and lamps the room has. `find` of a thing that
was not seen, EB-ALFRED's short cut, does not exist here: things have to be searched for.

ALFWorld has no words for slices and for things carried in others. Where the instruction wants a slice, "take apple 1"
cuts it first, and its slices are apples; where it wants the thing in something ("in a bowl"), "move" of that thing to a
place of the kind that is meant puts it into one first, wherever one is (`find`), and moves that. So what to look for
and where it goes is left to who acts, how it is done is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from embodied_mem.memory.readers.reading import class_of
from embodied_mem.worlds.alfworld.statistics import household_kinds
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.text import CHANGES, Command, render_goal, task_of
from embodied_mem.worlds.eb_alfred.env import MAX_STEPS, load_tasks

from ..alfworld_adapter import AdapterRow, AlfworldTextAdapter
from ..errands import ErrandTasks, held_out
from .instruction import BASINS, MOVABLE, RECEPTACLES, TOOLS, Goal, actions_of_change, understand
from .view import read_view

_TYPES = {change: task_type for task_type, change in CHANGES.items()}
_TOOLS = {verb: BASINS.get(tool, tool) for verb, tool in TOOLS.items()}


def spoken(name: str) -> str:
    """Return ALFWorld's name: "mug 2" for "Mug_2", "mug 1" for "Mug"."""
    kind, _, number = name.partition("_")
    return f"{kind.lower()} {number or 1}"


def goal_sentence(goal: Goal | None, kinds: Sequence[str]) -> str:
    """Write an instruction as ALFWorld's task sentence.

    `kinds` are the kinds of places and lamps in the room.
    """
    if goal is None:
        return render_goal(task_of("pick_and_place_simple", "thing", "countertop"))
    thing = goal.objects[0].lower()
    if goal.lamps:
        lamp = next((lamp for lamp in goal.lamps if lamp in kinds), goal.lamps[0])
        return render_goal(task_of("look_at_obj_in_light", thing, lamp.lower()))
    places = [BASINS.get(place, place) for place in goal.places]
    place = next((place for place in places if place in kinds), places[0])
    kind = "pick_two_obj_and_place" if goal.count == 2 else _TYPES.get(goal.change, "pick_and_place_simple")
    return render_goal(task_of(kind, thing, place.lower()))


class _Row(AdapterRow):
    world = "eb_alfred"

    def __init__(self, tasks: Sequence[Any], max_actions: int):
        super().__init__(tasks, max_actions)
        self._carriers: list[str] = []  # things to put the object in, the next to be tried first

    def _prepare(self, task: Any) -> None:
        self._known = frozenset(task.actions)
        if self.task_id.startswith(task.trial):  # a training task: other instructions of its trial are no other home
            self.task_id = task.trial
        finds = {action.removeprefix("find a ") for action in task.actions if action.startswith("find a ")}
        findable = {basin: kind for kind, basin in BASINS.items()}
        self._places: dict[str, tuple[str, str]] = {}  # spoken -> (name in views, name to find)
        for name in task.names.values():
            target = findable.get(name, name)
            kind = class_of(name)
            if (kind == "FloorLamp" or (kind in RECEPTACLES and kind not in MOVABLE)) and target in finds:
                self._places[spoken(name)] = name, target
        kinds = [class_of(name) for name in task.names.values() if class_of(name) in ("DeskLamp", "FloorLamp")]
        kinds += [class_of(name) for name, _ in self._places.values()]
        self._meant = understand(self.goal_text) or Goal(())
        while self._meant.condition is not None:  # ALFWorld has no conditions
            self._meant = self._meant.then or Goal(())
        self._cut = self._meant.objects[0] if self._meant.sliced else ""
        self._carriers = [
            n for kind in self._meant.carriers for n in sorted(task.names.values()) if class_of(n) == kind
        ]
        self.goal = goal_sentence(self._meant if self._meant.objects else None, kinds)

    def _see(self, observation: str) -> None:
        if view := read_view(observation):
            self._view, self._hand = {item.name: item for item in view.items}, view.hand
            seen = {name for item in view.items for name in (item.name, *item.things)}
            self._carriers.sort(key=lambda name: name not in seen)  # stable: what was seen last is tried first

    def _listed(self) -> list[str]:
        return sorted(self._places, key=lambda name: (name.split()[0], -int(name.split()[1])))

    def _is_known(self, action: str) -> bool:
        return action in self._known

    def _walk(self, place: str) -> str:
        return f"find a {self._places[place][1]}"

    def _actions(self, command: Command) -> list[str] | None:
        if command.verb == "use":
            kind = command.object.split()[0]
            return {"desklamp": ["turn on the DeskLamp"], "floorlamp": ["turn on the FloorLamp"]}.get(kind)
        return super()._actions(command)

    def _actions_here(self, command: Command) -> list[str] | None:
        name, target = self._places[self._at]
        return_there = [] if self._last.startswith(("find ", "open ")) else [f"find a {target}"]
        match command.verb:
            case "open" | "close":
                return [f"{command.verb} the {name}"]
            case "take":
                things = [class_of(t) for t in self._names() if self._spoken(t) == command.object]
                cut = [f"slice the {self._cut}"] if things and things[0] == self._cut else []
                return [*cut, f"pick up the {things[0].removesuffix('Sliced')}"] if things else None
            case "put":
                if self._spoken(self._hand) != command.object:
                    return None
                if self._carriers and self._is_delivery(class_of(name)):
                    put, carrier = "put down the object in hand", self._carriers[0]
                    return [f"find a {carrier}", put, f"pick up the {class_of(carrier)}", f"find a {target}", put]
                return [*return_there, "put down the object in hand"]
            case "clean" | "heat" | "cool":
                if self._spoken(self._hand) != command.object or class_of(name) != _TOOLS[command.verb]:
                    return None
                return [*return_there, *self._change(command.verb, name)]
        return None

    def _refused(self, command: Command, actions: Sequence[str]) -> None:
        if command.verb == "put" and len(actions) > 2:  # it cannot be put into this one, behind a door perhaps
            self._carriers.append(self._carriers.pop(self._carriers.index(actions[0].removeprefix("find a "))))

    def _held(self) -> str:
        return "" if self._hand == "nothing" else self._spoken(self._hand)

    def _state(self) -> str:
        item = self._view.get(self._places[self._at][0])
        return item.states.partition(",")[0] if item else ""

    def _contents(self) -> list[str]:
        return [self._spoken(name) for name in self._names()]

    def _treatments(self, held: str) -> list[str]:
        name = class_of(self._places[self._at][0])
        return [f"{verb} {held} with {self._at}" for verb, tool in _TOOLS.items() if tool == name]

    def _spoken(self, name: str) -> str:
        """Name a thing in ALFWorld's wording.

        A slice has the name of the whole where the goal wants slices.
        """
        kind, _, number = name.partition("_")
        return spoken(f"{self._cut}_{number}" if self._cut and kind == f"{self._cut}Sliced" else name)

    def _is_delivery(self, place: str) -> bool:
        """Decide whether the instruction wants the held object in such a place."""
        kind = class_of(self._hand).removesuffix("Sliced")
        return kind in self._meant.objects and place in {BASINS.get(name, name) for name in self._meant.places}

    def _change(self, verb: str, name: str) -> list[str]:
        """List actions that clean, heat or cool the held object.

        The last action takes it again.
        """
        put, take = "put down the object in hand", f"pick up the {class_of(self._hand).removesuffix('Sliced')}"
        door = [f"open the {name}"] if self._state() == "closed" and verb != "clean" else []
        return [*door, put, *actions_of_change(verb, name), take]

    # Views.

    def _names(self) -> list[str]:
        """List what is in, on or beside the agent's place.

        Beside it are lamps, things on the floor, and things in holders, which are no places.
        """
        if self._state() == "closed":
            return []
        here = self._view.get(self._places[self._at][0])
        places = {name for name, _ in self._places.values()}
        others = [item for name, item in self._view.items() if name not in places]
        loose = [o.name for o in others if f"pick up the {class_of(o.name).removesuffix('Sliced')}" in self._known]
        held = [thing for item in others if item.name not in loose for thing in item.things]
        lamps = [name for name in self._view if class_of(name) in ("DeskLamp", "FloorLamp")]
        return [*(here.things if here else ()), *lamps, *loose, *held]


class EbAlfredTextAdapter(AlfworldTextAdapter):
    """EB-ALFRED's tasks side by side, in ALFWorld's wording; see the module."""

    row = _Row
    max_steps = MAX_STEPS


_TRIAL = re.compile(r"trial_T\w+")


def training_sides() -> tuple[list[Any], list[Any]]:
    """Return EB-ALFRED's training tasks: (to train on, held out to choose by).

    All instructions of a trial are on one side. Neither has a trial of an evaluation subset; a trial in ten is held
    out.

    Raises:
        DataNotFoundError: the data is not installed.
    """
    return held_out(load_tasks("train"), lambda task: task.trial, 10)


class EbAlfredTasks(ErrandTasks):
    """`TaskSource` of EB-ALFRED."""

    adapter, order, kinds = EbAlfredTextAdapter, statistics_order, household_kinds()

    def sides(self) -> tuple[list[Any], list[Any]]:
        return training_sides()

    def task_key(self, task_id: str) -> str:
        """Return the trial as task key; it has several instructions.

        See `TaskSource.task_key`.
        """
        found = _TRIAL.search(task_id)
        return found[0] if found else task_id
