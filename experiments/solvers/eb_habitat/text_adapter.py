"""EB-Habitat's text adapter: rewrites its texts in ALFWorld's wording.

    envs = EbHabitatTextAdapter(tasks, num_envs=16)
    observations, info = envs.reset(options={"task_indices": range(16)})
    info["goal"][0]                                      # "put a plate in sofa from sink, then a cup in blacktable."
    observations, _, terminations, truncations, info = envs.step(["go to blacktable 1"] * 16)

What all adapters share is in `wording.text_adapter`. The instruction becomes one of ALFWorld's task sentences or of
`errands` by its words (`instruction`). Where a word may mean several kinds or places, the adapter takes the likeliest,
since no later text says that another one was meant. A thing that is only to be taken away goes to the sofa, or to the
brown table if it lies there. Things get numbers in the order in which they are seen, since the world's texts
name kinds only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from embodied_mem.worlds.alfworld.wording.text import Command, type_of
from embodied_mem.worlds.eb_habitat.engine import ACTIONS
from embodied_mem.worlds.eb_habitat.env import MAX_STEPS

from ..alfworld_adapter import AdapterRow, AlfworldTextAdapter
from ..errands import Errands, ErrandTasks, Move, held_out, render_errands
from . import instruction as words
from .generator import PER_LAYOUT, generate, training_records
from .places import DOORS, KINDS, PLACES, SPOKEN, Layout

_VIEW = re.compile(
    r"^(?:On the|The) [^.,\n]+?(?:(?P<open> is open\. In it)?, you see (?P<things>.*)| is (?P<shut>closed))\.",
    re.MULTILINE,
)
_HELD = re.compile(r"^You are holding an? (.+)\.\Z", re.MULTILINE)


def goal_sentence(goal: words.Goal) -> str:
    """Write an instruction as a task sentence, of branches the first."""
    goal = goal.branches[0]
    if goal.go:
        return render_errands(Errands(visit=f"go to {SPOKEN[goal.go]}"))
    if goal.close or goal.open:
        return render_errands(Errands(visit=f"{'close' if goal.close else 'open'} {SPOKEN[goal.close or goal.open]}"))
    return render_errands(Errands(tuple(map(_move, goal.moves)) or (Move("thing", "sofa"),)))


def _move(move: words.Move) -> Move:
    source = SPOKEN.get(move.source, "")
    place = SPOKEN[move.places[0]] if move.places else "browntable" if source == "sofa" else "sofa"
    return Move(move.kinds[0].replace(" ", ""), place, source, move.all)


class _Row(AdapterRow):
    world = "eb_habitat"

    def _prepare(self, task: Any) -> None:
        self.task_id = self.task_id.partition("+")[0]  # tasks of one layout are no other homes
        self._places = {f"{kind} 1": name for kind, name in PLACES.items()}
        self._where: dict[str, str] = {}  # spoken name of a thing -> place
        self._numbers: Counter[str] = Counter()
        self._taking = ""
        self.goal = goal_sentence(words.understand(self.goal_text, Layout.of(task.layout)))

    def _see(self, observation: str) -> None:
        view = _VIEW.search(observation.partition("\n")[2])
        names = (view["things"] or "") if view else ""
        self._view = [re.sub(r"^(and )?an? ", "", name) for name in names.split(", ") if name not in ("", "nothing")]
        self._open = "closed" if view and view["shut"] else "open" if view and view["open"] else ""
        self._hand = held[1] if (held := _HELD.search(observation)) else ""

    def _is_known(self, action: str) -> bool:
        return action in ACTIONS

    def _walk(self, place: str) -> str:
        return f"navigate to the {self._places[place]}"

    def _actions_here(self, command: Command) -> list[str] | None:
        here, name = self._at, self._places[self._at]
        match command.verb:
            case "open" | "close" if self._has_door(here):
                return [f"{command.verb} the {DOORS[name][1]}"]
            case "take" if command.object in self._contents():
                self._taking = command.object
                del self._where[command.object]
                return [f"pick up the {KINDS[type_of(command.object)]}"]
            case "put" if command.object == self._held():
                self._where[command.object] = here
                return [f"place at the {name}"]
        return None

    def _held(self) -> str:
        return self._taking if self._hand else ""

    def _state(self) -> str:
        return self._open

    def _has_door(self, place: str) -> bool:
        return self._places[place] in DOORS

    def _contents(self) -> list[str]:
        """Name the kinds in view, as before at this place."""
        known = [name for name, place in self._where.items() if place == self._at]
        names = []
        for kind in self._view:
            spoken = kind.replace(" ", "")
            name = next((n for n in known if type_of(n) == spoken), "")
            if name:
                known.remove(name)
            else:
                self._numbers[spoken] += 1
                name = f"{spoken} {self._numbers[spoken]}"
                self._where[name] = self._at
            names.append(name)
        for gone in known:
            del self._where[gone]
        return names


class EbHabitatTextAdapter(AlfworldTextAdapter):
    """EB-Habitat's tasks side by side, in ALFWorld's wording; see the module."""

    row = _Row
    max_steps = MAX_STEPS


def apartment_order(thing: str, places: Sequence[str]) -> list[str]:
    """Order an apartment's search: open places first (`PLACES`)."""
    order = list(PLACES)
    return sorted(places, key=lambda place: order.index(type_of(place)))


def training_sides() -> tuple[list[Any], list[Any]]:
    """Return EB-Habitat's training tasks: (to train on, held out to choose by).

    `PER_LAYOUT` more are made in the layout of each. A layout in seven is held out; none is of an evaluation subset.

    Raises:
        DataNotFoundError: the data is not installed.
    """
    return held_out(generate(training_records(), PER_LAYOUT), lambda task: task.name.partition("+")[0], 7)


class EbHabitatTasks(ErrandTasks):
    """`TaskSource` of EB-Habitat."""

    adapter, order, kinds = EbHabitatTextAdapter, apartment_order, tuple(KINDS)

    def sides(self) -> tuple[list[Any], list[Any]]:
        return training_sides()
