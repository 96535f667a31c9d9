"""The view in EB-ALFRED's answers, and the world with things hidden.

    read_view("In view: Fridge (open) with Egg, Cup; Mug.\nIn hand: Pan.").items[0].things         # ["Egg", "Cup"]
    envs = HiddenThings(embodied_mem.envs.make("eb_alfred", tasks="base", num_envs=1))
    envs.step(["find a Mug"])                # invalid as long as no view has shown a mug; its door may be shut

The original's `find` walks to a thing wherever it is, so that nothing has to be remembered. With `HiddenThings` a thing
has to be searched for, place by place. What can be picked up is a thing, everything else a place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from embodied_mem.memory.readers.reading import class_of

_VIEW = re.compile(r"^In view: (.*)\.\nIn hand: (.*)\.", re.MULTILINE)


class Item(NamedTuple):
    """A thing in view.

    Attributes:
        name: of it.
        states: "open", "closed, hot", ...; empty if none is told.
        things: in or on it, those in them behind them; none if none are told.
    """

    name: str
    states: str
    things: list[str]


class View(NamedTuple):
    """Things in view, and the name of what is in the hand or "nothing"."""

    items: list[Item]
    hand: str


def read_view(observation: str) -> View | None:
    """Return the view that an answer tells; None if it tells none."""
    found = _VIEW.search(observation)
    if not found:
        return None
    items = []
    for item in found[1].split("; "):
        head, _, contents = item.partition(" with ")
        name, _, states = head.partition(" (")
        if name != "nothing":
            things = [_bare(thing) for thing in re.split(r", | with ", contents)] if contents else []
            items.append(Item(name, states.rstrip(")"), things))
    return View(items, _bare(found[2].partition(" with ")[0]))


def _bare(name: str) -> str:
    return name.partition(" (")[0]


HIDDEN = "Things have to be seen before they can be found."
"""The line of the first text that says so."""
_FIND = "find a "


class HiddenThings:
    """Envs whose `find` of a thing that was not seen is an unusable answer: it counts as invalid and takes no step."""

    def __init__(self, envs: Any):
        """Take envs of EB-ALFRED that show the view."""
        self._envs = envs
        self.num_envs, self.max_steps = envs.num_envs, envs.max_steps
        self._seen: list[set[str]] = [set() for _ in range(envs.num_envs)]
        self._actions: list[Sequence[str]] = [()] * envs.num_envs
        self._things: list[frozenset[str]] = [frozenset()] * envs.num_envs

    def reset(self, *, options: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        """Reset as `NativeVectorEnv.reset`; the rows that begin have seen nothing."""
        observations, info = self._envs.reset(options=options)
        texts = list(observations)
        for i in range(self.num_envs):
            if options.get("reset_mask", [True] * self.num_envs)[i]:
                self._seen[i], self._actions[i] = set(), info["admissible_commands"][i]
                picked = (a.removeprefix("pick up the ") for a in self._actions[i] if a.startswith("pick up the "))
                self._things[i] = frozenset(picked)
                self._look(i, texts[i])
                texts[i] = f"{HIDDEN}\n{texts[i]}"
        return texts, info

    def step(self, actions: Sequence[str], /) -> tuple[Any, Any, Any, Any, Any]:
        answers = self._envs.step([self._usable(i, action) for i, action in enumerate(actions)])
        for i, text in enumerate(answers[0]):
            self._look(i, text)
        found: tuple[Any, Any, Any, Any, Any] = answers
        return found

    def _usable(self, i: int, action: str) -> str:
        number = action.strip()
        said = self._actions[i][int(number)] if number.isdigit() and int(number) < len(self._actions[i]) else action
        name = said.removeprefix(_FIND)
        hides = name != said and class_of(name) in self._things[i] and name not in self._seen[i]
        return f"unseen: {name}" if hides else action

    def _look(self, i: int, text: str) -> None:
        if view := read_view(text):
            self._seen[i].update(name for item in view.items for name in (item.name, *item.things))
