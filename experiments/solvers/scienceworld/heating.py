"""Melting, boiling and freezing in ScienceWorld: of a plan that does so, only its devices are taken.

A part of `PlannerCritic`. What a device does was seen in memory: it made things warmer or colder. One that is broken,
or in which nothing happens for `MAX_WAITS` waits, is followed by the next that does the same, known from memory or by
its name ("ultra low temperature freezer"). What is solid has to melt before it can freeze.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Generator, Iterator, Sequence

from .body import Asking, Body, Doing, Saying
from .gold_paths import MEASURED, PLACED, Device, Step

MAX_WAITS = 4
"""Waits, of ten iterations each, for something to happen in one device."""
MAX_LOOKS = 20
"""Looks, one in an iteration, where it gets warmer fast."""
FAST_DEGREES = 15
"""Degrees Celsius in one iteration that are fast."""


class Heater(Body):
    """Puts what it holds into devices until its state has changed as often as it has to."""

    def _device_of(self, step: Step) -> Device | None:
        """The device into which a step puts a thing to change its state; None for another step or a measurement."""
        placed = PLACED.match(step.command)
        return self._memories.devices.get(placed[2]) if placed and not self._evidence.has_boxes else None

    def _heat(self, steps: Sequence[Step]) -> Doing:
        """Changes the state as a plan did from here on; True also where nothing helped, since no other plan would.

        Args:
            steps: the plan's, from the first that puts the thing into a device.
        """
        placed = PLACED.match(steps[0].command)
        holder = placed[1] if placed else ""
        planned = [device for step in steps if (device := self._device_of(step))]
        ways = [heats for heats, _ in itertools.groupby(device.heats for device in planned)]
        if self._solid(holder):
            ways = ways[1:] if not ways[0] and len(ways) > 1 else [True, *ways] if not ways[0] else ways
        for number, heats in enumerate(ways, 1):
            for device in self._devices(heats, planned):
                changed = (yield from self._put(holder, device)) and (yield from self._changes(holder))
                while changed and number == len(ways):  # melted, it may boil here, too
                    changed = yield from self._changes(holder)
                if changed:
                    break
        return True

    def _cool(self) -> Saying:
        """Cools what is measured, which is liquid and too warm to tell at what temperature it becomes so."""
        holders = [found[1] for command in self._done if (found := PLACED.match(command))]
        for device in self._devices(False, ()) if holders else ():
            if (yield from self._put(holders[-1], device)):
                for _ in range(2 * MAX_WAITS):
                    yield from self._ask("wait")
                    yield from self._named(holders[-1])
                    yield from self._degrees(holders[-1])
                    if not self._evidence.too_warm:
                        return

    def _solid(self, holder: str) -> bool:
        """Whether what was focused on could be moved by hand, which no liquid can."""
        return any(
            command.startswith(f"move {self._focused}") and command.endswith(f" to {holder}") for command in self._done
        )

    def _devices(self, heats: bool, planned: Sequence[Device]) -> Iterator[Device]:
        """Devices that warm, or cool: the plan's, the others by their way from here, and what is named like them."""
        known = sorted(self._memories.devices.values(), key=lambda d: (d not in planned, len(self._way(d.room))))
        known = [device for device in known if device.heats == heats]
        yield from known
        names = {device.name for device in known}
        for device in known:
            for room, name in self._memories.kin_of(device.name):
                if name not in names:
                    names.add(name)
                    yield dataclasses.replace(device, name=name, room=room)

    def _put(self, holder: str, device: Device) -> Doing:
        """Whether a holder is in a device that works."""
        yield from self._try(f"pick up {holder}")
        if not (yield from self._walk(device.room)):
            return False
        if f"{device.name} door is closed" in self._looks.get(self._room, ""):
            yield from self._try(f"open {device.name}")
        if not (yield from self._try(f"move {holder} to {device.name}")):
            return False
        return not device.switched or (yield from self._try(f"activate {device.name}"))

    def _changes(self, holder: str) -> Doing:
        """Whether the name of what is held, which tells its state, became another one.

        Where it gets warmer fast it is looked at in every iteration, since its holder may melt, too.
        """
        before = yield from self._named(holder)
        first, second = (yield from self._degrees(holder)), (yield from self._degrees(holder))
        fast = first is not None and second is not None and second - first > FAST_DEGREES
        for _ in range(MAX_LOOKS if fast else MAX_WAITS):
            if not fast:
                yield from self._ask("wait")
            after = yield from self._named(holder)
            if before and after and after != before:
                return True
        return False

    def _degrees(self, holder: str) -> Generator[str, str, float | None]:
        """The temperature of what is held, in degrees Celsius; None where it cannot be measured."""
        if "pick up thermometer" in self._done:
            names = [f"substance in {holder}", self._focused]
            for name in sorted(names, key=lambda name: f"examine {name}" not in self._done):
                if found := MEASURED.search((yield from self._ask(f"use thermometer in inventory on {name}"))):
                    return float(found[1])
        return None

    def _named(self, holder: str) -> Asking:
        """What is held, by looking at it; empty where it cannot be found."""
        names = [f"substance in {holder}", self._focused, f"liquid {self._focused}"]
        names.sort(key=lambda name: f"examine {name}" not in self._done)  # what was found before is tried first
        for name in names:
            if (yield from self._try(f"examine {name}")):
                return self._answer
        return ""
