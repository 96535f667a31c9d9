"""Agents for ScienceWorld without a language model: one without memory, one that repeats, one that criticises.

    agent = AGENTS["planner_critic"](memories)
    rollout(envs, [agent], [[0]])              # or by hand, command by command:
    player = agent.play(goal, first_text)
    command = next(player)
    command = player.send(answer)              # StopIteration: the agent has nothing more to do

- `none` walks through the rooms and does what the description says of things that it sees.
- `static` repeats the path of the most similar training task, its names replaced by ours, whatever the answers are.
- `planner_critic` takes the same path for a plan: see `PlannerCritic`.
- `planner_critic_own` is the same with paths that it found itself, and those that failed: see `GoalPlayer`.
- `planner_critic_no_memory` is that one with nothing remembered: what its rules do by the words of the description.

They read goal and answers, and neither score nor list of commands nor the name of the task.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

from embodied_mem.agents.agent import CommandGenerator

from .gold_paths import (
    DOOR,
    FAILED,
    MEASURED,
    MOVED,
    PLACED,
    ROOM,
    Device,
    GoldPath,
    Memories,
    Phrase,
    Step,
    adapt,
    mixture,
    parts_of,
    room_of,
    spoken,
    steps_of,
    substitutions,
)

_CONDITION = re.compile(
    r"If [^.]{,150}?(above|below|electrically conductive|electrically nonconductive)(?: (-?[\d.]+) degrees celsius)?, "
    r"(?:focus on|place it in) the (\w+ box)"
)
_TEMPERATURE = re.compile(r"measures a temperature of (-?[\d.]+) degrees")
_DOWN = re.compile(r"(?<!\d)(\d+)% down the plane|at the bottom of the plane")
_STATE = re.compile(r"(?:a substance called )?(solid|liquid) ")
_ANIMAL = re.compile(r"^\t(?:an? )?((?:baby |adult |juvenile |hatchling )?([a-z ]+?)(?: egg)?)$", re.MULTILINE)
_TREE = re.compile(r"\ba ((?:dead )?[a-z]+ (?:tree|plant))\b")
_FOCUSED_ANIMAL = re.compile(r"You focus on the (?:baby |adult |juvenile |hatchling )?([a-z ]+?)(?: egg)?\.")
_IN_POT = re.compile(r"focus on (.{1,80}?) in the (\w+) stage in ([a-z ]{1,80}?) \d+$")
MAX_LOOKS = 20
"""Looks at one inclined plane; on a slow one the share of the way tells enough."""


def bare(name: str) -> str:
    """Return the shortest name of a thing, for lookup in a text.

    It leaves out where the thing is and what it contains.
    """
    return re.split(r" in | on | containing ", name)[0].lower()


class Evidence:
    """Evidence of one episode so far."""

    def __init__(self, goal: str, memories: Sequence[GoldPath]):
        """Read the description's conditions, and life spans from memories.

        These are memories of any tasks.
        """
        self._goal = goal
        self._boxes = {kind: (float(limit or 0), box) for kind, limit, box in _CONDITION.findall(goal)}
        self._melting = "melting point" in goal
        self._liquid = "liquid" in goal
        self._named = True  # whether its name tells that the substance is liquid
        self._readings: list[tuple[bool, float]] = []  # (is it liquid, temperature)
        self._looks: collections.Counter[str] = collections.Counter()
        self._down: dict[str, float] = {}
        self._at_bottom: set[str] = set()
        self._spans: collections.Counter[str] = collections.Counter()
        for memory in memories:
            if "life span" in goal and "life span" in memory.goal:
                self._remember_span(memory)

    def _remember_span(self, memory: GoldPath) -> None:
        named = [found[1] for answer in memory.answers if (found := _FOCUSED_ANIMAL.match(answer))]
        longest, shortest = "longest" in memory.goal, "shortest" in memory.goal
        if named and longest:
            self._spans[named[0]] += 1
        if named and shortest:
            self._spans[named[-1]] -= 1

    @property
    def has_boxes(self) -> bool:
        """True if the description has a choice of boxes, for which something is measured."""
        return bool(self._boxes)

    def see(self, command: str, answer: str) -> None:
        """Takes a command and the answer to it."""
        if "pick up a liquid" in answer:
            self._liquid, self._named = True, False
        measured = command.startswith(("examine", "use thermometer")) and not answer.startswith("No known")
        if measured and (state := _STATE.match(answer)):
            self._liquid = state[1] == "liquid"
        elif self._named and measured:
            if "liquid" in answer or "liquid" in command:
                self._liquid = True
            elif command.startswith("examine") or "solid" in command:
                self._liquid = False
        if found := _TEMPERATURE.search(answer):
            self._readings.append((self._liquid, float(found[1])))
        if command.startswith("look at inclined plane") and (found := _DOWN.search(answer)):
            plane = command.removeprefix("look at ")
            self._looks[plane] += 1
            if plane not in self._at_bottom:
                self._down[plane] = float(found[1] or 100) / self._looks[plane]
            if not found[1]:
                self._at_bottom.add(plane)

    def wants(self, command: str, again: bool) -> bool:
        """Tell whether a step is still of use.

        A plane is of use until the block is down, a substance until it is known.

        Args:
            command: the step.
            again: whether the step before was the same.
        """
        if command.startswith("look at inclined plane"):
            plane = command.removeprefix("look at ")
            return not again or (plane not in self._at_bottom and self._looks[plane] < MAX_LOOKS)
        if self._melting and command.startswith(("examine", "use thermometer")):
            return self._verdict() == ""
        return True

    def _verdict(self) -> str:
        """`above` or `below` of the limit; empty while nothing tells."""
        if not self._readings or "above" not in self._boxes:
            return ""
        limit = self._boxes["above"][0]
        if not self._melting:
            return "above" if self._readings[-1][1] > limit else "below"
        for liquid, temperature in self._readings:
            if not liquid and temperature >= limit:
                return "above"
            if liquid and temperature <= limit:
                return "below"
        return ""

    @property
    def too_warm(self) -> bool:
        """True if a substance whose melting point is asked for is liquid above the limit, which tells nothing."""
        return self._melting and not self._verdict() and bool(self._readings) and self._readings[-1][0]

    def _is_choice(self, command: str) -> bool:
        return any(box in command for _, box in self._boxes.values())

    def look_first(self, command: str) -> str:
        """Return the look that shows what a choice depends on, if any."""
        if self._is_choice(command) and "electrically conductive" in self._boxes:
            return "look around"
        if _IN_POT.match(command):
            return "look around"
        return "look around" if "life span" in self._goal and command.startswith("focus") else ""

    def undecided(self, command: str) -> bool:
        """Return whether a choice needs a melting point not known yet."""
        return self._melting and self._is_choice(command) and bool(self._readings) and not self._verdict()

    def decide(self, command: str, look: str) -> str:
        """Correct a command by what was observed.

        The first rule of `CHOICES` that knows better decides.

        Args:
            command: a step of the plan.
            look: what was seen last in this room.
        """
        return next((better for rule in CHOICES if (better := rule(self, command, look))), command)

    def box(self, command: str, look: str) -> str:
        """Return the box that a measured temperature, melting point or lamp suggests.

        It is a box of the description.
        """
        if self._is_choice(command):
            kind = self._verdict()
            if "electrically conductive" in self._boxes:
                kind = "electrically conductive" if "light bulb, which is on" in look else "electrically nonconductive"
            if not kind and self._readings:  # neither melted below the limit nor solid above it
                kind = "below" if self._readings[-1][0] else "above"
            if kind in self._boxes:
                return re.sub(r"\b\w+ box", self._boxes[kind][1], command)
        return ""

    def plane(self, command: str, look: str) -> str:
        """Return the fastest or slowest inclined plane, as the description asks."""
        if not command.startswith("focus on inclined plane") or not self._down:
            return ""
        fast = "steepest" in self._goal or "least friction" in self._goal
        return f"focus on {(max if fast else min)(self._down, key=self._down.__getitem__)}"

    def life_span(self, command: str, look: str) -> str:
        """Return the animal here that lives longest or shortest.

        Life spans are as remembered tasks had them.
        """
        if "life span" not in self._goal or not command.startswith("focus"):
            return ""
        named = _staged(look)
        if not named:
            return command
        first = "then" in self._goal.lower() and not self._looks["focused"]
        self._looks["focused"] += 1
        longest = first or ("longest" in self._goal and "shortest" not in self._goal)
        return f"focus on {named[(max if longest else min)(named, key=self._spans.__getitem__)]}"

    def animal(self, command: str, look: str) -> str:
        """Return an animal that is here, for one that is not."""
        if not re.search(r"find a\(n\) (?:living thing|animal)", self._goal) or not command.startswith("focus"):
            return ""
        named = _staged(look)
        return f"focus on {next(iter(named.values()))}" if named and not any(kind in command for kind in named) else ""

    def plant(self, command: str, look: str) -> str:
        """Return a tree that is here, for one that is not."""
        if "find a(n) plant" not in self._goal or not command.startswith("focus"):
            return ""
        trees = [tree for tree in _TREE.findall(look) if not tree.startswith("dead ")]
        return f"focus on {trees[0]}" if trees and not any(tree in command for tree in trees) else ""

    def pot(self, command: str, look: str) -> str:
        """Return the command with the pot that holds the thing now.

        It replaces the numbered pot where memory had it.
        """
        named = _IN_POT.match(command)
        if not named:
            return ""
        thing, stage, pot = named.groups()
        shown = [f"{thing} in the {stage} stage", *([thing] if "seed" in stage.split() else [])]
        for name in shown:
            if found := re.search(rf"\t(?:an? )?({pot} \d+) \(containing (?:[^()]*, )?(?:an? )?{name}\b", look):
                return f"focus on {thing} in the {stage} stage in {found[1]}"
        return ""


CHOICES = (Evidence.pot, Evidence.box, Evidence.plane, Evidence.life_span, Evidence.animal, Evidence.plant)
"""Rules that choose better than a plan, in order: (evidence, command, look) -> command, empty for nothing."""


def _staged(look: str) -> dict[str, str]:
    """Find the animals that are here: kind -> name.

    They are told from things by their stage of life ("baby", "egg").
    """
    named = {kind: name for name, kind in _ANIMAL.findall(look.partition("You also see")[0])}
    return {kind: name for kind, name in named.items() if name != kind}


_CLOSED = re.compile(r"The ([a-z ]+) door is closed|(?<![a-z ])([a-z ]+) \(that is closed\)")
_PICKED = re.compile(r"You move the (.{1,80}) to the inventory")
FOCUSED = re.compile(r"You focus on the ([^.]+)\.")

MAX_ROOMS = 24
"""Times that it goes on to another room, or opens what is closed in one, in search of a thing."""

Saying = Generator[str, str, None]
Asking = Generator[str, str, str]
Doing = Generator[str, str, bool]


_HELD_IN = re.compile(r"(?:\t|: |, )(?:an? )?([a-z]+(?: [a-z]+)*(?: \d+)?) \(containing (?:an? )?([^()]+)\)")
_EMPTY = re.compile(r"(?:\t|: |, )(?:an? )?([a-z]+(?: [a-z]+)*) \(containing nothing\)")
_RECIPE = re.compile(r"To make .{1,80}?, you need to mix (.{1,200})\.")
MAX_WAITS = 4
"""Waits, of ten iterations each, for something to happen in one device."""
FAST_DEGREES = 15
"""Degrees Celsius in one iteration that are fast."""
THINGS = re.compile(r"(?:\t|: |, |\()(?:an? )?([a-z]+(?: [a-z]+)*(?: \d+)?)(?= \(|,|\.|\)|$)", re.MULTILINE)
_NO_MODIFIER = r"(?:on|up|to|in|into|of|a|the|with|containing)"
_LIQUID = re.compile(r"move (.+) to (.+)")
_PATIENT = re.compile(r"\b(?:wait|examine|use|look)")
_OBJECT = re.compile(r"(?:focus on|pick up|examine|look at|use thermometer in inventory on) (.+?)(?: in inventory)?$")
MAX_REPEATS = 12
"""Times that what a plan did last is done again, for a thing that has to grow or melt first."""
MAX_WATCHES = 20
"""Looks for a thing that a plan waited for."""
MAX_PLANS = 3
"""Memories that are tried for one task."""


def _from_tap(goal: str) -> bool:
    """Return whether a description is about water; it comes from taps."""
    return " water." in goal


def opposite(replaced: Mapping[Phrase, Phrase]) -> bool:
    """Decide whether a description asks for what another one excludes.

    An example is "nonrenewable" for "renewable".
    """
    pairs = [(a, b.lower()) for theirs, ours in replaced.items() for a, b in zip(theirs, ours)]
    return any(f"non{a}" == b or f"non{b}" == a for a, b in pairs)


Repairing = Generator[str, str, bool | None]
"""Generator of commands that returns True if one was done now; None where the next repair may do it."""


class PlannerCritic(CommandGenerator):
    """Plans by memory, criticises by what it sees; one object plays any number of episodes, one after the other.

    The plan is what the most similar remembered task did, with our names. Before a step the critic checks that the
    agent stands in the step's room (it walks there by the doors that memory knows) and that what was observed supports
    it: which box a measured temperature, a lamp or the time down a plane speaks for. After a step that failed it
    repairs: opens what is closed, tries other names of the same thing, looks where the thing was seen, waits as the
    plan did before. When nothing helps it replans with the next most similar memory; at the end of a plan it repeats
    what came last.
    """

    def __init__(self, memories: Memories):
        """Make one with these memories."""
        self._memories = memories

    def _begin(self, goal: str, text: str) -> None:
        """Begin an episode with its description and its first text."""
        self._goal = goal
        self._doors = {room: set(doors) for room, doors in self._memories.doors.items()}
        self._looks: dict[str, str] = {}
        self._room, self._picked, self._answer, self._focused = "", "", "", ""
        self._asked = ""
        self._passed: set[frozenset[str]] = set()  # two rooms whose door is open
        self._opened: set[tuple[str, str]] = set()
        self._done: list[str] = []
        self._mixtures = dict(self._memories.mixtures)
        self._evidence = Evidence(goal, self._memories.paths)
        self._carried: dict[str, str] = {}  # what the bowl that is carried holds -> its name
        self._kin: dict[str, str] = {}  # thing of the plan -> thing that is used for it
        self._plan = self._following = self._repairing = ""
        self.plans = self.repairs = 0
        self._see(text)

    def _fetch(self, thing: str) -> Doing:
        """Go where a thing was seen, else through the rooms.

        What is closed there is opened. Rooms in which memory saw the thing come first, then the nearest.
        """
        tried: set[str] = set()
        likely = self._memories.rooms_of(thing)
        for _ in range(MAX_ROOMS):
            known = [room for room, look in self._looks.items() if thing.lower() in look.lower()]
            if known and (yield from self._walk(known[0])):
                return True
            ahead = likely - tried
            if self._room not in tried and (not ahead or self._room in ahead):
                tried.add(self._room)
                if (yield from self._open_all()):
                    continue
                ahead.discard(self._room)
            rooms = sorted(ahead or self._rooms() - tried, key=lambda room: (len(self._way(room)), room))
            if not rooms or not (yield from self._walk(rooms[0])):
                if not ahead:
                    break
                tried.add(rooms[0])
        return False

    def _rooms(self) -> set[str]:
        """Rooms that are known, also those behind doors that were only seen."""
        return set(self._doors).union(*self._doors.values())

    def _try(self, command: str) -> Doing:
        """Do a command; return whether it changed or showed something.

        Of several meanings the first is taken.
        """
        answer = yield from self._ask(command)
        if answer.startswith("Ambiguous"):
            answer = yield from self._ask("0")
        self._answer = answer
        if FAILED.search(answer):
            return "already" in answer
        self._done.append(command)
        if picked := _PICKED.search(answer):
            self._picked = picked[1]
        if focused := FOCUSED.match(answer):
            self._focused = focused[1].lower()
        return True

    # Seeing and walking.

    def _ask(self, command: str) -> Asking:
        self._asked = command
        if command.startswith("close "):
            self._passed.clear()
        answer = yield command
        self._see(answer)
        self._evidence.see(command, answer)
        return answer

    def _see(self, text: str) -> None:
        if moved := MOVED.match(text):
            self._passed.add(frozenset((self._room, moved[1])))
            self._room = moved[1]
        elif found := ROOM.match(text):
            self._room = found[1]
            self._looks[self._room] = text
            for door, _ in DOOR.findall(text):
                self._doors.setdefault(self._room, set()).add(door)
                self._doors.setdefault(door, set()).add(self._room)

    def _look(self) -> str:
        """Return what was seen last in this room, in small letters."""
        return self._looks.get(self._room, "").lower()

    def _lacks_soil(self, pot: str) -> bool:
        """Return whether an empty pot here had soil in memory.

        In memory it is a pot of this name.
        """
        return f"{pot} (containing nothing)" in self._look() and self._memories.showed(f"{pot} (containing soil")

    def _dig(self, pot: str) -> Saying:
        """Fill a pot with soil, dug from the ground with a shovel."""
        home = self._room
        if "pick up shovel" not in self._done:
            yield from self._fetch("shovel")
            if not (yield from self._try("pick up shovel")):
                return
        if (yield from self._fetch("the ground")) and (yield from self._try("use shovel in inventory on ground")):
            yield from self._try("pick up soil")
            yield from self._walk(home)
            yield from self._try(f"move soil in inventory to {pot}")

    def _open_all(self) -> Doing:
        """Opens everything that is closed here; whether anything was."""
        fresh = self._asked == "look around" and self._room in self._looks
        text = self._looks[self._room] if fresh else (yield from self._ask("look around"))
        names = [a or b for a, b in _CLOSED.findall(text.partition("You also see")[0])]
        opened = False
        for name in names:
            if (self._room, name) not in self._opened:
                self._opened.add((self._room, name))
                opened |= "now open" in (yield from self._ask(f"open {name.strip()}"))
        if opened:
            yield from self._ask("look around")
        return opened

    def _walk(self, room: str) -> Doing:
        """Walk to a room; return whether the agent stands there now.

        It looks around in rooms that are new to it. Where no way is known it goes through the rooms that it has not
        seen, the nearest first.
        """
        for _ in range(MAX_ROOMS):
            if self._room == room:
                if room not in self._looks:
                    yield from self._ask("look around")
                return True
            way = self._way(room)
            if not way and self._room and self._room not in self._looks:
                yield from self._ask("look around")
                continue
            way = way or self._way_on()
            if not way:
                return False
            if frozenset((self._room, way[0])) not in self._passed:
                yield from self._ask(f"open door to {way[0]}")
            if not MOVED.match((yield from self._ask(f"go to {way[0]}"))):
                self._doors.get(self._room, set()).discard(way[0])
        return False

    def _way_on(self) -> Sequence[str]:
        """Return the rooms on the way to the nearest unseen one.

        It was not seen in this episode; without one the way is empty.
        """
        ways = [way for room in sorted(self._rooms() - set(self._looks)) if (way := self._way(room))]
        return min(ways, key=len, default=())

    def _way(self, room: str) -> Sequence[str]:
        """Return the rooms on the shortest way to a room.

        It is empty where none is known, or the agent is there.
        """
        before = {self._room: ""}
        queue = collections.deque([self._room])
        while queue:
            here = queue.popleft()
            for door in sorted(self._doors.get(here, ())):
                if door not in before:
                    before[door] = here
                    queue.append(door)
        if room not in before or room == self._room:
            return ()
        way = [room]
        while before[way[-1]] != self._room:
            way.append(before[way[-1]])
        return way[::-1]

    # Mixing: what a plan mixed may be something else than what is wanted, so that only its way of doing it is taken.

    def _mix(self, steps: Sequence[Step]) -> Doing:
        """Return whether what the plan ends with was made.

        It is made by the recipe that the plan reads, in the room where the plan mixed.
        """
        target = bare(steps[-1].command.removeprefix("focus on "))
        recipe: list[str] = []
        for step in steps:
            if "recipe" in step.command and (not step.room or (yield from self._walk(step.room))):
                if not (yield from self._try(step.command)) and step.command.startswith("pick up"):
                    yield from self._fetch("recipe")
                    yield from self._try(step.command)
                if found := _RECIPE.search(self._answer):
                    recipe = found[1].split(", ")
        if room := next(step.room for step in steps if step.command.startswith("mix ")):
            yield from self._walk(room)
        twice = sum(step.command.startswith("mix ") for step in steps) > 1
        if recipe:
            made = yield from self._mix_fetched(recipe)
        else:
            yield from self._open_all()
            made = yield from self._mix_here(target, shows_parts=twice)
        return made and (yield from self._try(f"focus on {target}"))

    def _holders(self) -> dict[str, str]:
        """Map contents, also nothing, to the things here that hold them.

        Of several with the same content the first counts.
        """
        look = self._looks.get(self._room, "").partition("You also see")[0].lower()
        return {content: name for name, content in reversed(_HELD_IN.findall(look))} | self._carried

    def _mix_here(self, target: str, *, shows_parts: bool = False) -> Doing:
        """Return whether a mixture was made of what stands here in cups.

        What came of each try tells what to try next. The parts of a name ("yellow-orange paint") are what to mix, and
        made first if they are not here, else a pair that is known to give it, else any pair of which it is not known
        what it gives.
        """
        colour, _, stuff = target.partition(" ")
        parts = [f"{part} {stuff}" for part in colour.split("-")]
        if len(parts) == 2:
            for part in parts:
                if part not in self._holders() and (yield from self._mix_here(part)) and shows_parts:
                    yield from self._try(f"focus on {part}")
            pairs = [tuple(parts)]
        else:
            here = sorted(content for content in self._holders() if content.endswith(f" {stuff}"))
            pairs = list(itertools.combinations(here, 2))
            pairs.sort(key=lambda pair: self._mixtures.get(frozenset(pair)) != target)
        for pair in pairs:
            if self._mixtures.get(frozenset(pair), target) != target:
                continue
            holder = yield from self._mixing_bowl(pair)
            if not holder:
                return False
            held = self._holders()
            for part in pair:
                if held.get(part) != holder:
                    yield from self._try(f"pour cup containing {part} in {holder}")
            yield from self._try(f"mix {holder}")
            if made := mixture(self._answer):
                self._mixtures[made[0]] = made[1]
                self._carried = {made[1]: holder} if self._carried else {}
            yield from self._ask("look around")
            if target in self._holders():
                return True
        return False

    def _mixing_bowl(self, pair: Sequence[str]) -> Asking:
        """Find a uniquely named thing here to mix a pair in.

        It holds one of the pair or nothing, or is emptied; it is "" without one.
        """
        for held, holder in self._carried.items():
            if held not in (*pair, "nothing"):
                yield from self._try(f"pour {holder} in {self._room}")
            return holder
        look = self._looks.get(self._room, "").partition("You also see")[0].lower()
        named = _HELD_IN.findall(look)
        alone = {name: held for name, held in named if [other for other, _ in named].count(name) == 1}
        for wanted in (*pair, "nothing"):
            if found := next((name for name, held in alone.items() if held == wanted), ""):
                return found
        holder = next((name for name, held in alone.items() if held.endswith(pair[0].rpartition(" ")[2])), "")
        if not holder:  # all have names of several; the one that is carried is told from the others
            empty = next((name for name, held in named if held == "nothing"), "")
            if not empty or not (yield from self._try(f"pick up {empty}")):
                return ""
            self._carried = {"nothing": f"{empty} in inventory"}
            return f"{empty} in inventory"
        return holder if (yield from self._try(f"pour {holder} in {self._room}")) else ""

    def _mix_fetched(self, parts: Sequence[str]) -> Doing:
        """Return whether a recipe's parts were fetched and mixed.

        They are fetched into something that can be carried, and mixed there.
        """
        yield from self._open_all()
        held = yield from self._take_empty()
        planned = re.findall(r"mix ([a-z ]+)", self._plan)
        for name in planned if not held else ():
            held = held or ((yield from self._fetch(name)) and (yield from self._take_empty()))
        if not held:
            return False
        holder = self._picked
        # What is poured comes last, so that the holder can be set down under a tap.
        for part in sorted(parts, key=lambda part: part == "water"):
            if part == "water":
                yield from self._fill(holder)
            elif (yield from self._fetch(part)):
                name = next((n for n, held in _HELD_IN.findall(self._looks[self._room].lower()) if part in held), "")
                yield from self._try(f"pick up {part}")
                if not (yield from self._try(f"move {part} to {holder}")) and name:
                    yield from self._try(f"pour {name} into {holder}")
        return (yield from self._try(f"mix {holder}"))

    def _take_empty(self) -> Doing:
        """Return whether something that holds nothing was picked up here.

        What the plan mixed in comes first.
        """
        empty = re.findall(_EMPTY, self._looks.get(self._room, "").lower())
        for name in sorted(empty, key=lambda name: name not in self._plan):
            if (yield from self._try(f"pick up {name}")):
                return True
        return False

    def _fill(self, holder: str) -> Doing:
        """Return whether water was let into what is carried.

        It is done at the first tap that works.
        """
        for room in sorted((r for r, look in self._looks.items() if "a sink" in look), key=lambda r: len(self._way(r))):
            if (yield from self._walk(room)) and (yield from self._try(f"move {holder} to sink")):
                filled = yield from self._try("activate sink")
                yield from self._try("deactivate sink")
                yield from self._try(f"pick up {holder}")
                if filled:
                    return True
        return False

    # Melting, boiling and freezing: of a plan that does so, only its devices are taken. What a device does was seen in
    # memory. One in which nothing happens for `MAX_WAITS` waits is followed by the next that does the same.

    def _device_of(self, step: Step) -> Device | None:
        """Find the device of a step that changes a thing's state.

        It is None for another step or a measurement.
        """
        placed = PLACED.match(step.command)
        return self._memories.devices.get(placed[2]) if placed and not self._evidence.has_boxes else None

    def _heat(self, steps: Sequence[Step]) -> Doing:
        """Change the state as a plan did from here on.

        It is True also where nothing helped, since no other plan would.

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
        """Cool what is measured, a liquid.

        It is too warm to tell at what temperature it becomes liquid.
        """
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
        """Return whether what was focused on could be moved by hand.

        No liquid can.
        """
        return any(
            command.startswith(f"move {self._focused}") and command.endswith(f" to {holder}") for command in self._done
        )

    def _devices(self, heats: bool, planned: Sequence[Device]) -> Iterator[Device]:
        """Yield devices that warm, or cool, in order of preference.

        The plan's come first, then the others by their way from here, then what is named like them.
        """
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
        """Return whether a holder is in a device that works."""
        yield from self._try(f"pick up {holder}")
        if not (yield from self._walk(device.room)):
            return False
        if f"{device.name} door is closed" in self._looks.get(self._room, ""):
            yield from self._try(f"open {device.name}")
        if not (yield from self._try(f"move {holder} to {device.name}")):
            return False
        return not device.switched or (yield from self._try(f"activate {device.name}"))

    def _changes(self, holder: str) -> Doing:
        """Return whether the name of what is held became another one.

        The name of a thing tells its state. Where it gets warmer fast it is looked at in every iteration, since its
        holder may melt, too.
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
        """Measure the temperature of what is held, in degrees Celsius.

        It is None where it cannot be measured.
        """
        if "pick up thermometer" in self._done:
            names = [f"substance in {holder}", self._focused]
            for name in sorted(names, key=lambda name: f"examine {name}" not in self._done):
                if found := MEASURED.search((yield from self._ask(f"use thermometer in inventory on {name}"))):
                    return float(found[1])
        return None

    def _named(self, holder: str) -> Asking:
        """Examine what a holder holds; return the answer, empty if not found."""
        names = [f"substance in {holder}", self._focused, f"liquid {self._focused}"]
        names.sort(key=lambda name: f"examine {name}" not in self._done)  # what was found before is tried first
        for name in names:
            if (yield from self._try(f"examine {name}")):
                return self._answer
        return ""

    def play(self, goal: str, text: str) -> Saying:
        """Commands, each sent the answer to it; `text` is the first text."""
        self._begin(goal, text)
        found = sorted(self._memories.retrieve(goal), key=lambda path: _from_tap(path.goal) and not _from_tap(goal))
        for memory in found[:MAX_PLANS]:
            self.plans += 1
            if (yield from self._follow(memory, found)):
                break
        for _ in range(MAX_REPEATS):
            if self._done and self._done[-1].startswith(("focus", "move", "connect", "pick up")) and not self._cycle():
                break
            yield from self._again()

    def explained(self) -> dict[str, object]:
        plan = self._plan.split("; ") if self._plan else []
        return {"plan": plan, "following": self._following, "objection": self._repairing}

    # Following a plan.

    def _follow(self, memory: GoldPath, others: Sequence[GoldPath]) -> Doing:
        """Carry out a memory's steps.

        It is False where one could not be done and another memory may do better.

        Args:
            memory: the plan.
            others: memories of the same kind, which tell what may stand for a thing of the plan.
        """
        replaced = substitutions(memory.goal, self._goal)
        steps = [
            Step(adapt(step.room, replaced), adapt(step.command, replaced), adapt(step.answer, replaced))
            for step in map(spoken, steps_of(memory))
            if not ("sink" in step.command and _from_tap(memory.goal) and not _from_tap(self._goal))
        ]
        self._kin, self._plan = {}, "; ".join(step.command for step in steps)
        self._following = memory.title
        self._parts, self._other_sort = parts_of(memory, others), opposite(replaced)
        if any(step.command.startswith("mix ") for step in steps):
            return (yield from self._mix(steps))
        watched = False
        for number, step in enumerate(steps):
            before = steps[number - 1].command if number else ""
            if not step.command.startswith("wait"):
                watched = False
            elif watched or (not before.startswith("wait") and (yield from self._watch(steps[number:]))):
                watched = True
                continue
            if not self._evidence.wants(step.command, step.command == before):
                continue
            if step.room and not (yield from self._walk(step.room)):
                continue
            if (placed := PLACED.match(step.command)) and self._lacks_soil(placed[2]):
                yield from self._dig(placed[2])
                yield from self._walk(step.room)
            if self._device_of(step):
                return (yield from self._heat(steps[number:]))
            command = yield from self._decided(step.command)
            if command == step.command and (thing := self._other_thing(step, memory)):
                done = yield from self._do_elsewhere(thing, step)
            else:
                done = yield from self._do(self._same_kind(command), before.startswith(("wait", "examine", "use")))
            if done and "find a(n)" in self._goal and command.startswith("focus") and "pick up" not in self._plan:
                yield from self._do(self._same_kind("pick up"))
            if not done and command.startswith(("focus", "activate", "pick up", "connect")):
                return False
            if self._evidence.too_warm:
                yield from self._cool()
        if "connect " in self._plan:
            yield from self._ask("look around")
            for name in self._kin.values():
                if f"{name}, which is off" in self._look():
                    yield from self._try(f"activate {name}")
        return True

    def _watch(self, steps: Sequence[Step]) -> Doing:
        """Return whether a plan's waits were replaced by watching.

        It watches for what the plan focuses on next, which is not here yet.

        Args:
            steps: the plan's, from the first wait of a run.
        """
        waits = list(itertools.takewhile(lambda step: step.command.startswith("wait"), steps))
        aim = steps[len(waits)].command if len(waits) < len(steps) else ""
        if not aim.startswith("focus on") or not (yield from self._walk(steps[len(waits)].room or self._room)):
            return False
        for number in range(MAX_WATCHES + 1):
            yield from self._ask("look around")
            if self._shows(self._same_kind(aim)):
                return number > 0  # what is here from the start is not what the plan waited for
            if number < MAX_WATCHES:
                for _ in range(2):
                    yield from self._try(waits[0].command)
        return True

    def _shows(self, command: str) -> bool:
        """Decide whether the last look showed what a command is about."""
        thing = _OBJECT.match(command.lower())
        name = thing[1] if thing else ""
        stage = re.match(r".{1,80}? in the [a-z ]{1,40}? stage", name)
        return (stage[0] if stage else bare(name)) in self._look()

    def _decided(self, command: str) -> Asking:
        """Return the command as the evidence has it, after looks and waits."""
        if (look := self._evidence.look_first(command)) and self._room:
            yield from self._ask(look)
        for _ in range(MAX_REPEATS):
            if not self._evidence.undecided(command):
                break
            yield from self._again()
        return self._evidence.decide(command, self._looks.get(self._room, ""))

    def _do_elsewhere(self, thing: str, step: Step) -> Doing:
        """Return whether a thing was focused on where it is.

        It then goes to where the step has it.
        """
        done = (yield from self._fetch(thing)) and (yield from self._do(f"focus on {thing}"))
        if done and (held := re.search(r"(?s) in (.+)$", step.command)):
            yield from self._do(f"move {thing} to {held[1]}")
            yield from self._walk(step.room)
        return done

    def _other_thing(self, step: Step, memory: GoldPath) -> str:
        """Find what to focus on instead of the plan's words.

        They ("substance in metal pot") would mean something else here.
        """
        focused = FOCUSED.match(step.answer)
        if not focused or not step.command.startswith("focus on substance in"):
            return ""
        return focused[1] if focused[1].lower() not in memory.goal.lower() else ""

    def _same_kind(self, command: str) -> str:
        """Replace absent things by others of their kind that are here.

        Examples are another wire, another pot. No two things of a plan become one. What was focused on and is in a
        numbered pot is the pot that is meant.
        """
        look = self._looks.get(self._room, "").lower()
        if self._focused and "find a(n)" in self._goal and command.startswith("pick up"):
            held = re.search(rf"\t(?:an? )?([a-z]+(?: [a-z]+)* \d+) \(containing [^()]*{self._focused}", look)
            return f"pick up {held[1] if held else self._focused}"
        here = sorted(set(THINGS.findall(look)), key=lambda name: (name in self._plan, name))
        if (part := self._part(command.removeprefix("pick up "), here)) and command.startswith("pick up "):
            self._kin[command.removeprefix("pick up ")] = part
        for name in here:
            numbered = name[-1].isdigit()
            kind = name.rpartition(" ")[0] if numbered else name.partition(" ")[2]
            if not kind or kind in ("egg", "plant", "tree", "seed"):
                continue
            other = re.search(rf"\b{kind} \d+" if numbered else rf"(?<= )(?!{_NO_MODIFIER} )\w+ {kind}\b", command)
            if other is None or other[0] in self._kin:
                continue
            old = other[0]
            if old in here and old not in self._kin.values():
                self._kin[old] = old
            elif name not in self._kin.values():
                self._kin[old] = name
        if not self._kin:
            return command
        return re.sub("|".join(map(re.escape, self._kin)), lambda old: self._kin[old[0]], command)

    def _part(self, thing: str, here: Sequence[str]) -> str:
        """Find what may replace an absent thing: what did in another memory.

        Where the opposite is asked for ("nonrenewable"), what is named alike and never played the part.
        """
        if thing not in self._parts or thing in self._goal:
            return ""
        players = [thing, *self._parts[thing]]
        if self._other_sort and len(players) > 1:
            kinds = {player.rpartition(" ")[2] for player in players}
            return next((name for name in here if name.rpartition(" ")[2] in kinds and name not in players), "")
        return "" if thing in here else next((name for name in players if name in here), "")

    def _do(self, command: str, waited: bool = False) -> Doing:
        """Do a command, else repair it; tell whether it was done.

        The first of `REPAIRS` that knows decides. `waited`: the plan waited.
        """
        if (yield from self._try(command)):
            return True
        self.repairs += 1
        done = None
        for repair in REPAIRS:
            self._repairing = f"{command!r} failed; repair: {repair.__name__}"
            if (done := (yield from repair(self, command, waited))) is not None:
                break
        self._repairing = ""
        return bool(done)

    def rename(self, command: str, waited: bool) -> Repairing:
        """Try other names of the command's thing.

        A command that only measures is not worth more.
        """
        if (yield from self._try_names(command)):
            return True
        return False if command.startswith(("examine", "use", "connect", "look")) else None

    def uncover(self, command: str, waited: bool) -> Repairing:
        """Opens what is closed here and tries again."""
        opened = yield from self._open_all()
        done = opened and ((yield from self._try(command)) or (yield from self._try_names(command)))
        return done or None

    def wait(self, command: str, waited: bool) -> Repairing:
        """Waits as the plan did, for what is to be focused on."""
        if not waited or not command.startswith("focus"):
            return None
        for _ in range(MAX_REPEATS):
            yield from self._again()
            if (yield from self._try(command)):
                return True
        return False

    def seek(self, command: str, waited: bool) -> Repairing:
        """Goes where the thing is."""
        thing = _OBJECT.match(command)
        name = bare(thing[1]) if thing and command.startswith(("focus", "pick up")) else ""
        if name in ("", "substance", "light"):
            return False
        return (yield from self._fetch(name)) and (yield from self._try(command))

    def _try_names(self, command: str) -> Doing:
        """Try other names of the command's thing, in the order of `NAMINGS`.

        It returns whether the command was done.
        """
        # All are made before the first is tried, which may change what is seen.
        for other in [name for naming in NAMINGS if (name := naming(self, command)) not in ("", command)]:
            if (yield from self._try(other)):
                return True
        return False

    def focused_thing(self, command: str) -> str:
        """Put what was focused on for "substance in ..."."""
        if "substance in " not in command or not self._focused:
            return ""
        return re.sub(r"(?s)substance in .+$", self._focused, command)

    def poured(self, command: str) -> str:
        """Pouring what holds the thing, for moving it."""
        moved = _LIQUID.match(command)
        look = self._looks.get(self._room, "").lower()
        inside = rf"(?:\t|: |, |\()(?:an? )?([a-z ]+) \(containing [^()]*{re.escape(moved[1].lower())}" if moved else ""
        held = re.search(inside, look) if moved else None
        return f"pour {held[1]} into {moved[2]}" if moved and held else ""

    def melted_or_frozen(self, command: str) -> str:
        """Swap "liquid" and "solid"; measuring a thing without either, use "liquid"."""
        if "solid " in command or "liquid " in command:
            swap = {"solid ": "liquid ", "liquid ": "solid "}
            return re.sub("solid |liquid ", lambda found: swap[found[0]], command)
        if not command.startswith(("examine", "use thermometer")):
            return ""
        head, _, thing = command.rpartition(" on ") if " on " in command else command.partition(" ")
        return f"{head}{' on' if ' on ' in command else ''} liquid {thing}".replace("  ", " ")

    def as_picked_up(self, command: str) -> str:
        """Use the held thing's name from when it was picked up."""
        moved = re.match(r"(?s)move (.{1,80}) in [a-z ]{1,80} to (.+)$", command)
        held = moved and self._picked and ("in inventory" in command or moved[1] == self._picked)
        return f"move {self._picked} in inventory to {moved[2]}" if moved and held else ""

    def not_held(self, command: str) -> str:
        """Without "in inventory"."""
        return "" if command.startswith("move") else command.removesuffix(" in inventory")

    def _again(self) -> Saying:
        """Repeat the commands just done twice in a row, or wait."""
        for command in self._cycle() or ["wait1"]:
            if FAILED.search((yield from self._ask(command))) and command.startswith(("examine", "use thermometer")):
                done = list(self._done)
                yield from self._try_names(command)
                self._done = done  # so that the cycle is found again

    def _cycle(self) -> list[str]:
        """Find the shortest run of commands just done twice in a row.

        It has waiting or measuring in it; without one it is empty.
        """
        done = self._done
        for n in range(1, 13):
            if len(done) >= 2 * n and done[-n:] == done[-2 * n : -n] and _PATIENT.search(" ".join(done[-n:])):
                return done[-n:]
        return []


REPAIRS = (PlannerCritic.rename, PlannerCritic.uncover, PlannerCritic.wait, PlannerCritic.seek)
"""Repairs of a command that failed, in order: (agent, command, whether the plan had waited) -> `Repairing`."""

NAMINGS = (
    PlannerCritic.focused_thing, PlannerCritic.poured, PlannerCritic.melted_or_frozen,
    PlannerCritic.as_picked_up, PlannerCritic.not_held,
)  # fmt: skip
"""The command with another name of its thing, empty where that says nothing, in the order in which they are tried."""


_FOCUS = re.compile(r"focus on (?:the |a )?([A-Za-z' -]{1,100}?)(?= and\b|[.,]|$)", re.IGNORECASE)
_CHANGED_STATE = re.compile(r"to (?:boil|melt|freeze|change the state of matter of) ([a-z ]{1,80})\.")
_FIND = re.compile(r"find a\(n\) ([a-z-]+(?: thing)?)\.")
_CREATE = re.compile(r"create (?:the substance ')?([a-z -]+?)'?\. ")
_STAGES = re.compile(r"focus on the (?:\d+ )?life stages of the ([a-z -]+),")
_MOVE_TO_BOX = re.compile(r"(?:move|place) it (?:to|in) the ([a-z]+ box)")
_PLANE = re.compile(r"\b(inclined plane (?:with an? [a-z ]{1,80}? surface|[a-z]))(?=,|$)", re.MULTILINE)
_SOURCE = re.compile(r"\ba ([a-z]+ (?:generator|panel)|battery)\b")
_WIRE = re.compile(r"\b([a-z]+ wire)\b")
_SWITCH = re.compile(r"\ta(?:n)? ([a-z ]+), which is turned off")
_DOORED = re.compile(r"The ([a-z ]+) door is (?:open|closed)")
_NOT_NAMES = {"substance", "thing", "seed", "life stages of the", "the agent", "agent", "air", "nothing"}
MAX_GUESSED_WAITS = 60
"""Steps for which it waits for the next stage of a life."""


class GoalPlayer(PlannerCritic):
    """A planner-critic that does what a description says where no memory of the kind was won."""

    def play(self, goal: str, text: str) -> Saying:
        if self._memories.retrieve(goal):
            yield from super().play(goal, text)
            return
        self._begin(goal, text)
        self._parts, self._other_sort = {}, False
        if found := _FIND.search(goal):
            yield from self._guess(found[1])
        elif found := _STAGES.search(goal):
            yield from self._stages(found[1])
        elif "inclined plane" in goal:
            yield from self._planes()
        elif "life span" in goal:
            yield from self._spans()
        elif "chemistry" in goal and (found := _CREATE.search(goal)):
            yield from self._create(found[1])
        elif found := _CHANGED_STATE.search(goal):
            yield from self._change(found[1])
        elif "electrical circuit" in goal:
            yield from self._circuit()
        else:
            yield from self._named_things()

    def _tried(self) -> set[str]:
        """Return the last focus of lost episodes with the same first sentence."""
        first = self._goal.partition(". ")[0]
        lost = [path for path in self._memories.paths if not path.won and path.goal.startswith(first)]
        chosen = [[c for c in path.commands if c.startswith("focus on ")] for path in lost]
        return {commands[-1].removeprefix("focus on ") for commands in chosen if commands}

    def _put_in_box(self, name: str) -> Saying:
        """Move a thing to the box named by description or evidence."""
        box = _MOVE_TO_BOX.search(self._goal)
        if box and (yield from self._try(f"pick up {name}")):
            held = self._picked
            wanted = self._evidence.decide(f"move {held} in inventory to {box[1]}", self._look())
            yield from self._fetch(wanted.rpartition(" to ")[2])
            yield from self._try(wanted)

    def _named_things(self) -> Saying:
        """Focus on named things in order; use a thermometer on the next."""
        names = [name for name in _FOCUS.findall(self._goal) if name.lower() not in _NOT_NAMES]
        measured = [name for name in names if not name.endswith("box")]
        for name in measured:
            if not (yield from self._fetch(name)):
                continue
            if name == "thermometer":
                yield from self._try("pick up thermometer")
                yield from self._try("focus on thermometer in inventory")
                continue
            yield from self._try(f"focus on {name}")
            if "thermometer" in measured:
                yield from self._try(f"examine {name}")
                yield from self._try(f"use thermometer in inventory on {name}")
        if boxes := [name for name in names if name.endswith("box")]:
            chosen = self._evidence.decide(f"focus on {boxes[0]}", self._look())
            if (yield from self._fetch(chosen.removeprefix("focus on "))):
                yield from self._try(chosen)
        elif measured:
            yield from self._put_in_box(measured[-1])

    def _planes(self) -> Saying:
        """Let a block go down each inclined plane; focus on one.

        It is the one that the evidence speaks for.
        """
        yield from self._fetch("inclined plane")
        yield from self._ask("look around")
        planes = list(dict.fromkeys(_PLANE.findall(self._look())))
        block = "block" if (yield from self._try("pick up block")) else "brick"
        for plane in planes:
            if not (yield from self._try(f"move {block} to {plane}")):
                break
            while self._evidence.wants(f"look at {plane}", True):
                if not (yield from self._try(f"look at {plane}")):
                    break
        if planes:
            yield from self._try(self._evidence.decide(f"focus on {planes[0]}", self._look()))

    def _related(self, kind: str) -> set[str]:
        """Collect words for what won episodes with this word focused on.

        The word is in their description.
        """
        won = [path for path in self._memories.paths if path.won and kind in path.goal]
        chosen = [c.removeprefix("focus on ") for path in won for c in path.commands if c.startswith("focus on ")]
        return {word for name in chosen for word in name.split() if len(word) > 2} - {"box", "outside"}

    def _guess(self, kind: str) -> Saying:
        """Focus on something that was not chosen in vain, and box it.

        What shares a word with what other tasks on such things were about is looked for in all rooms first.
        """
        tried, related = self._tried(), self._related(kind.rpartition(" ")[2] if " " not in kind else kind)
        for _ in range(MAX_ROOMS if related else 0):
            if self._asked != "look around":
                yield from self._ask("look around")
            if named := [name for name in self._here(tried) if related & set(name.split())]:
                yield from self._choose(named[0])
                return
            rooms = sorted(self._rooms() - set(self._looks), key=lambda room: (len(self._way(room)), room))
            if not rooms or not (yield from self._walk(rooms[0])):
                break
        yield from self._ask("look around")
        for name in self._here(tried):
            if (yield from self._choose(name)):
                return

    def _here(self, tried: set[str]) -> list[str]:
        names = dict.fromkeys(THINGS.findall(self._look().partition("you also see")[0]))
        return [name for name in names if name not in tried | _NOT_NAMES]

    def _choose(self, name: str) -> Doing:
        if not (yield from self._try(f"focus on {name}")):
            return False
        yield from self._put_in_box(self._same_kind("pick up").removeprefix("pick up "))
        return True

    def _stages(self, animal: str) -> Saying:
        """Focus once on each thing named after the animal; await more."""
        kind = animal.partition(" ")[0]
        yield from self._fetch(kind)
        seen: set[str] = set()
        for _ in range(MAX_GUESSED_WAITS):
            yield from self._ask("look around")
            here = [name for name in THINGS.findall(self._look()) if kind in name.split() and name not in seen]
            for name in here[:1]:
                seen.add(name)
                yield from self._try(f"focus on {name}")
            if not here:
                yield from self._ask("wait1")

    def _spans(self) -> Saying:
        """Focuses on animals outside, those first that were not chosen in vain."""
        yield from self._walk("outside")
        yield from self._ask("look around")
        tried = self._tried()
        wanted = "focus on animal"
        for _ in range(2 if "then" in self._goal.lower() else 1):
            names = [name for name in THINGS.findall(self._look()) if name.split()[0] in ("baby", "adult", "juvenile")]
            names += [name for name in THINGS.findall(self._look()) if name.endswith(" egg")]
            names = [name for name in names if name not in tried] or names
            if names:
                tried.add(names[0])
                yield from self._try(f"{wanted.removesuffix('animal')}{names[0]}")

    def _create(self, target: str) -> Saying:
        """Mixes by a recipe, else what stands in cups."""
        if "recipe" in self._goal and (yield from self._fetch("recipe")):
            yield from self._try("pick up recipe")
            yield from self._try("read recipe in inventory")
            if recipe := self._recipe():
                yield from self._mix_fetched(recipe)
        elif (yield from self._fetch(target.rpartition(" ")[2])):
            yield from self._open_all()
            yield from self._mix_here(target, shows_parts="intermediate" in self._goal)
        yield from self._try(f"focus on {target}")

    def _change(self, thing: str) -> Saying:
        """Put a thing into whatever may warm or cool it.

        Known devices come first, then whatever has a switch or a door.
        """
        if (yield from self._fetch("thermometer")):
            yield from self._try("pick up thermometer")
        if not (yield from self._fetch(thing)) or not (yield from self._try(f"focus on {thing}")):
            return
        yield from self._try(f"pick up {thing}")
        yield from self._open_all()
        for device in [*self._memories.devices.values(), *self._guessed_devices()]:
            if (yield from self._put(thing, device)):
                while (yield from self._changes(thing)):
                    pass

    def _guessed_devices(self) -> list[Device]:
        """Return what has a switch, and freezers, the nearest first."""
        found: list[Device] = []
        for room in sorted(self._looks, key=lambda room: len(self._way(room))):
            look = self._looks[room].lower()
            found += [
                Device(name, room, True, True) for name in _SWITCH.findall(look) if name not in ("sink", "bathtub")
            ]
            found += [Device(name, room, False, False) for name in _DOORED.findall(look) if "freezer" in name]
        return list(dict.fromkeys(found))

    def _circuit(self) -> Saying:
        """Wire a source and the thing to turn on in a ring.

        The ring has two wires.
        """
        names = [name for name in _FOCUS.findall(self._goal) if name.lower() not in _NOT_NAMES]
        if not names or not (yield from self._fetch(names[0])):
            return
        yield from self._try(f"focus on {names[0]}")
        yield from self._ask("look around")
        look, tried = self._look(), " ".join(" ".join(p.commands) for p in self._memories.paths if not p.won)
        sources = sorted(dict.fromkeys(_SOURCE.findall(look)), key=lambda name: (f"connect {name}" in tried, name))
        wires = list(dict.fromkeys(_WIRE.findall(look)))
        if len(wires) < 2 or not sources:
            return
        one, other = wires[:2]
        for a, b in (
            (f"{sources[0]} anode", f"{one} terminal 1"),
            (f"{one} terminal 2", f"{names[0]} cathode"),
            (f"{names[0]} anode", f"{other} terminal 2"),
            (f"{other} terminal 1", f"{sources[0]} cathode"),
        ):
            yield from self._try(f"connect {a} to {b}")
        yield from self._try(f"activate {sources[0]}")
        for _ in range(3):
            yield from self._ask("wait1")

    def _recipe(self) -> list[str]:
        found = re.search(r"To make .{1,80}?, you need to mix (.{1,200})\.", self._answer)
        return found[1].split(", ") if found else []


_CALLED = {"substance", "thing", "seed"}
"""Words that stand for a thing and do not name it."""


class Explorer(CommandGenerator):
    """Goes through all rooms, depth first, and focuses on what the description names, in its order.

    What is to be put into a box is picked up once it was focused on; of several boxes it takes the first that is named.
    """

    def __init__(self, memories: Memories):
        """Make one; it remembers nothing, whatever it is given."""

    def play(self, goal: str, text: str) -> Saying:
        wanted = [name for name in _FOCUS.findall(goal) if name.lower() not in _CALLED]
        if found := _CHANGED_STATE.search(goal):
            wanted.insert(0, found[1])
        carried, box = "", _MOVE_TO_BOX.search(goal)
        here = room_of(text)
        visited, way = {here}, list[str]()
        while True:
            while wanted and wanted[0].lower() in text.lower():
                name = wanted.pop(0)
                yield f"focus on {name}"
                if box and not wanted:
                    yield f"pick up {name}"
                    carried = name
            if carried and box and box[1] in text:
                yield f"move {carried} to {box[1]}"
                carried = ""
            room = next((door for door, _ in DOOR.findall(text) if door not in visited), "")
            if not room:
                if not way:
                    return
                room = way.pop()
            else:
                way.append(here)
            yield f"open door to {room}"
            if not MOVED.match((yield f"go to {room}")):
                visited.add(room)
                if way:
                    way.pop()
                continue
            here = room
            visited.add(here)
            text = yield "look around"


class Repeater(CommandGenerator):
    """Gives the commands of the most similar training task, names replaced, one after the other."""

    def __init__(self, memories: Memories):
        """Make one that repeats these."""
        self._memories = memories

    def play(self, goal: str, text: str) -> Saying:
        self._following = ""
        for memory in self._memories.retrieve(goal)[:1]:
            self._following = memory.title
            replaced = substitutions(memory.goal, goal)
            for command in memory.commands:
                yield adapt(command, replaced)

    def explained(self) -> dict[str, object]:
        return {"following": self._following}


OWN = "planner_critic_own"
"""The agent whose memory is its own episodes on training variations."""
NO_MEMORY = "planner_critic_no_memory"
"""Its control: nothing is remembered."""
AGENTS: dict[str, Callable[[Memories], CommandGenerator]] = {
    "none": Explorer,
    "static": Repeater,
    "planner_critic": PlannerCritic,
    OWN: GoalPlayer,
    NO_MEMORY: GoalPlayer,
}
