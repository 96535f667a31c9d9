"""A planner-critic for ScienceWorld whose plans are gold paths of training tasks; by rules, without a language model.

    player = PlannerCritic(memories).play(goal, first_text)

The plan is what the most similar remembered task did, with our names. Before a step the critic checks that the agent
stands in the step's room (it walks there by the doors that memory knows) and that what was observed supports it: which
box a measured temperature, a lamp or the time down a plane speaks for. After a step that failed it repairs: opens what
is closed, tries other names of the same thing, looks where the thing was seen, waits as the plan did before. When
nothing helps it replans with the next most similar memory; at the end of a plan it repeats what came last.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Generator, Sequence

from embodied_mem.agents.agent import CommandGenerator
from embodied_mem.worlds.scienceworld.evidence import Evidence, bare
from embodied_mem.worlds.scienceworld.gold_paths import (
    DOOR,
    FAILED,
    MOVED,
    ROOM,
    GoldPath,
    Memories,
    Step,
    adapt,
    mixture,
    steps_of,
    substitutions,
)

_CLOSED = re.compile(r"The ([a-z ]+) door is closed|([a-z ]+) \(that is closed\)")
_PICKED = re.compile(r"You move the (.+) to the inventory")
_FOCUSED = re.compile(r"You focus on the ([^.]+)\.")
_THINGS = re.compile(r"(?:\t|: |, |\()(?:an? )?([a-z]+(?: [a-z]+)*(?: \d+)?)(?= \(|,|\.|\)|$)", re.MULTILINE)
_NO_MODIFIER = r"(?:on|up|to|in|into|of|a|the|with|containing)"
_HELD_IN = re.compile(r"(?:\t|: |, )(?:an? )?([a-z]+(?: [a-z]+)*(?: \d+)?) \(containing (?:an? )?([^()]+)\)")
_EMPTY = re.compile(r"(?:\t|: |, )(?:an? )?([a-z]+(?: [a-z]+)*) \(containing nothing\)")
_RECIPE = re.compile(r"To make .+?, you need to mix (.+)\.")
_LIQUID = re.compile(r"move (.+) to (.+)")
_PATIENT = re.compile(r"\b(?:wait|examine|use|look)")
_OBJECT = re.compile(r"(?:focus on|pick up|examine|look at|use thermometer in inventory on) (.+?)(?: in inventory)?$")
MAX_REPEATS = 12
"""Times that what a plan did last is done again, for a thing that has to grow or melt first."""
MAX_PLANS = 3
"""Memories that are tried for one task."""


def _from_tap(goal: str) -> bool:
    """Whether a description is about water, which comes from taps."""
    return " water." in goal


Saying = Generator[str, str, None]
Asking = Generator[str, str, str]
Doing = Generator[str, str, bool]
Repairing = Generator[str, str, bool | None]
"""Whether a command was done now; None where the next repair may do it."""


class PlannerCritic(CommandGenerator):
    """Plans by memory, criticises by what it sees; one object plays any number of episodes, one after the other."""

    def __init__(self, memories: Memories):
        """Make one with these memories."""
        self._memories = memories

    def play(self, goal: str, text: str) -> Saying:
        """Commands, each sent the answer to it; `text` is the first text."""
        self._goal = goal
        self.plans = self.repairs = 0
        self._doors = {room: set(doors) for room, doors in self._memories.doors.items()}
        self._looks: dict[str, str] = {}
        self._room, self._picked, self._answer = "", "", ""
        self._opened: set[tuple[str, str]] = set()
        self._done: list[str] = []
        self._kin: dict[str, str] = {}  # thing of the plan -> thing that is used for it
        self._plan = self._following = self._repairing = ""
        self._focused = ""
        self._mixtures = dict(self._memories.mixtures)
        found = sorted(self._memories.retrieve(goal), key=lambda path: _from_tap(path.goal) and not _from_tap(goal))
        self._evidence = Evidence(goal, self._memories.paths)
        self._see(text)
        for memory in found[:MAX_PLANS]:
            self.plans += 1
            if (yield from self._follow(memory)):
                break
        for _ in range(MAX_REPEATS):
            if self._done and self._done[-1].startswith(("focus", "move", "connect", "pick up")) and not self._cycle():
                break
            yield from self._again()

    def explained(self) -> dict[str, object]:
        """As `Agent.explained`."""
        plan = self._plan.split("; ") if self._plan else []
        return {"plan": plan, "following": self._following, "objection": self._repairing}

    # Following a plan.

    def _follow(self, memory: GoldPath) -> Doing:
        """Carries out a memory's steps; False where one could not be done and another memory may do better."""
        replaced = substitutions(memory.goal, self._goal)
        steps = [
            Step(adapt(step.room, replaced), adapt(step.command, replaced), adapt(step.answer, replaced))
            for step in steps_of(memory)
            if not ("sink" in step.command and _from_tap(memory.goal) and not _from_tap(self._goal))
        ]
        self._kin, self._plan = {}, "; ".join(step.command for step in steps)
        self._following = memory.title
        if any(step.command.startswith("mix ") for step in steps):
            return (yield from self._mix(steps))
        for before, step in zip(["", *(step.command for step in steps)], steps):
            if not self._evidence.wants(step.command, step.command == before):
                continue
            if step.room and not (yield from self._walk(step.room)):
                continue
            command = yield from self._decided(step.command)
            if command == step.command and (thing := self._other_thing(step, memory)):
                done = yield from self._do_elsewhere(thing, step)
            else:
                done = yield from self._do(self._same_kind(command), before.startswith(("wait", "examine", "use")))
            if done and "find a(n)" in self._goal and command.startswith("focus") and "pick up" not in self._plan:
                yield from self._do(self._same_kind("pick up"))
            if not done and command.startswith(("focus", "activate", "pick up", "connect")):
                return False
        return True

    # Mixing: what a plan mixed may be something else than what is wanted, so that only its way of doing it is taken.

    def _mix(self, steps: Sequence[Step]) -> Doing:
        """Whether what the plan ends with was made: by the recipe that it reads, in the room where it mixed."""
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
        """What is here that holds something or nothing, by name; of several with one name the first."""
        look = self._looks.get(self._room, "").partition("You also see")[0].lower()
        return {content: name for name, content in reversed(_HELD_IN.findall(look))}

    def _mix_here(self, target: str, *, shows_parts: bool = False) -> Doing:
        """Whether a mixture was made of what stands here in cups; what came of each try tells what to try next.

        The parts of a name ("yellow-orange paint") are what to mix, and made first if they are not here, else a pair
        that is known to give it, else any pair of which it is not known what it gives.
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
            yield from self._ask("look around")
            if target in self._holders():
                return True
        return False

    def _mixing_bowl(self, pair: Sequence[str]) -> Asking:
        """The one thing of its name here that holds one of a pair or nothing, or is emptied; "" without one."""
        look = self._looks.get(self._room, "").partition("You also see")[0].lower()
        named = _HELD_IN.findall(look)
        alone = {name: held for name, held in named if [other for other, _ in named].count(name) == 1}
        for wanted in (*pair, "nothing"):
            if found := next((name for name, held in alone.items() if held == wanted), ""):
                return found
        holder = next((name for name, held in alone.items() if held.endswith(pair[0].rpartition(" ")[2])), "")
        emptied = bool(holder) and (yield from self._try(f"pour {holder} in {self._room}"))
        return holder if emptied else ""

    def _mix_fetched(self, parts: Sequence[str]) -> Doing:
        """Whether the parts of a recipe were fetched into something that can be carried, and mixed there."""
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
        """Whether something that holds nothing was picked up here, what the plan mixed in first."""
        empty = re.findall(_EMPTY, self._looks.get(self._room, "").lower())
        for name in sorted(empty, key=lambda name: name not in self._plan):
            if (yield from self._try(f"pick up {name}")):
                return True
        return False

    def _fill(self, holder: str) -> Doing:
        """Whether water was let into what is carried, at the first tap that works."""
        for room in sorted((r for r, look in self._looks.items() if "a sink" in look), key=lambda r: len(self._way(r))):
            if (yield from self._walk(room)) and (yield from self._try(f"move {holder} to sink")):
                filled = yield from self._try("activate sink")
                yield from self._try("deactivate sink")
                yield from self._try(f"pick up {holder}")
                if filled:
                    return True
        return False

    def _decided(self, command: str) -> Asking:
        """The command as the evidence has it, which is looked and waited for."""
        if (look := self._evidence.look_first(command)) and self._room:
            yield from self._ask(look)
        for _ in range(MAX_REPEATS):
            if not self._evidence.undecided(command):
                break
            yield from self._again()
        return self._evidence.decide(command, self._looks.get(self._room, ""))

    def _do_elsewhere(self, thing: str, step: Step) -> Doing:
        """Whether a thing was focused on where it is; it then goes to where the step has it."""
        done = (yield from self._fetch(thing)) and (yield from self._do(f"focus on {thing}"))
        if done and (held := re.search(r" in (.+)$", step.command)):
            yield from self._do(f"move {thing} to {held[1]}")
            yield from self._walk(step.room)
        return done

    def _other_thing(self, step: Step, memory: GoldPath) -> str:
        """What is to be focused on, where the plan's words ("substance in metal pot") would mean something else."""
        focused = _FOCUSED.match(step.answer)
        if not focused or not step.command.startswith("focus on substance in"):
            return ""
        return focused[1] if focused[1].lower() not in memory.goal.lower() else ""

    def _fetch(self, thing: str) -> Doing:
        """Goes where a thing was seen, else through the rooms, the nearest first, opening what is closed."""
        tried: set[str] = set()
        for _ in range(2 * len(self._doors)):
            known = [room for room, look in self._looks.items() if thing.lower() in look.lower()]
            if known and (yield from self._walk(known[0])):
                return True
            if self._room not in tried:
                tried.add(self._room)
                if (yield from self._open_all()):
                    continue
            rooms = sorted((room for room in self._doors if room not in tried), key=lambda room: len(self._way(room)))
            if not rooms or not (yield from self._walk(rooms[0])):
                break
        return False

    def _same_kind(self, command: str) -> str:
        """The command with things that are here for things of the same kind that are not: another wire, another pot.

        No two things of a plan become one. What was focused on and is in a numbered pot is the pot that is meant.
        """
        look = self._looks.get(self._room, "").lower()
        if self._focused and "find a(n)" in self._goal and command.startswith("pick up"):
            held = re.search(rf"\t(?:an? )?([a-z]+(?: [a-z]+)* \d+) \(containing [^()]*{self._focused}", look)
            return f"pick up {held[1] if held else self._focused}"
        here = sorted(set(_THINGS.findall(look)), key=lambda name: (name in self._plan, name))
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

    def _do(self, command: str, waited: bool = False) -> Doing:
        """Whether a command was done, by the first of `REPAIRS` that knows; `waited`: the plan had waited for it."""
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
        """Tries other names of the command's thing; what only measures is not worth more."""
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
        """Whether the command was done with another name of its thing, in the order of `NAMINGS`."""
        # All are made before the first is tried, which may change what is seen.
        for other in [name for naming in NAMINGS if (name := naming(self, command)) not in ("", command)]:
            if (yield from self._try(other)):
                return True
        return False

    def _try(self, command: str) -> Doing:
        """Whether a command changed or showed something; of several meanings the first is taken."""
        answer = yield from self._ask(command)
        if answer.startswith("Ambiguous"):
            answer = yield from self._ask("0")
        self._answer = answer
        if FAILED.search(answer):
            return "already" in answer
        self._done.append(command)
        if picked := _PICKED.search(answer):
            self._picked = picked[1]
        if focused := _FOCUSED.match(answer):
            self._focused = focused[1].lower()
        return True

    def focused_thing(self, command: str) -> str:
        """With what was focused on for "substance in ..."."""
        if "substance in " not in command or not self._focused:
            return ""
        return re.sub(r"substance in .+$", self._focused, command)

    def poured(self, command: str) -> str:
        """Pouring what holds the thing, for moving it."""
        moved = _LIQUID.match(command)
        look = self._looks.get(self._room, "").lower()
        inside = rf"(?:\t|: |, |\()(?:an? )?([a-z ]+) \(containing [^()]*{re.escape(moved[1].lower())}" if moved else ""
        held = re.search(inside, look) if moved else None
        return f"pour {held[1]} into {moved[2]}" if moved and held else ""

    def melted_or_frozen(self, command: str) -> str:
        """With "liquid" for "solid", or the other way; measuring a thing without either, with "liquid"."""
        if "solid " in command or "liquid " in command:
            swap = {"solid ": "liquid ", "liquid ": "solid "}
            return re.sub("solid |liquid ", lambda found: swap[found[0]], command)
        if not command.startswith(("examine", "use thermometer")):
            return ""
        head, _, thing = command.rpartition(" on ") if " on " in command else command.partition(" ")
        return f"{head}{' on' if ' on ' in command else ''} liquid {thing}".replace("  ", " ")

    def as_picked_up(self, command: str) -> str:
        """With the name that the thing in the inventory had when it was picked up."""
        moved = re.match(r"move .+ in inventory to (.+)$", command)
        return f"move {self._picked} in inventory to {moved[1]}" if moved and self._picked else ""

    def not_held(self, command: str) -> str:
        """Without "in inventory"."""
        return "" if command.startswith("move") else command.removesuffix(" in inventory")

    def _again(self) -> Saying:
        """Repeats the run of commands that was done twice in a row just now, else waits."""
        for command in self._cycle() or ["wait1"]:
            yield from self._ask(command)

    def _cycle(self) -> list[str]:
        """The shortest run of commands with waiting or measuring that was done twice in a row just now; else empty."""
        done = self._done
        for n in range(1, 13):
            if len(done) >= 2 * n and done[-n:] == done[-2 * n : -n] and _PATIENT.search(" ".join(done[-n:])):
                return done[-n:]
        return []

    # Seeing and walking.

    def _ask(self, command: str) -> Asking:
        answer = yield command
        self._see(answer)
        self._evidence.see(command, answer)
        return answer

    def _see(self, text: str) -> None:
        if moved := MOVED.match(text):
            self._room = moved[1]
        elif found := ROOM.match(text):
            self._room = found[1]
            self._looks[self._room] = text
            self._doors.setdefault(self._room, set()).update(door for door, _ in DOOR.findall(text))

    def _open_all(self) -> Doing:
        """Opens everything that is closed here; whether anything was."""
        text = yield from self._ask("look around")
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
        """Whether the agent stands in this room now; it looks around in rooms that are new to it."""
        for _ in range(8):
            if self._room == room:
                if room not in self._looks:
                    yield from self._ask("look around")
                return True
            way = self._way(room)
            if not way:
                return False
            yield from self._ask(f"open door to {way[0]}")
            if not MOVED.match((yield from self._ask(f"go to {way[0]}"))):
                self._doors.get(self._room, set()).discard(way[0])
        return False

    def _way(self, room: str) -> Sequence[str]:
        """Rooms on the shortest way; empty where none is known, or the agent is there."""
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


REPAIRS = (PlannerCritic.rename, PlannerCritic.uncover, PlannerCritic.wait, PlannerCritic.seek)
"""What is done about a command that failed, in order: (agent, command, whether the plan had waited) -> `Repairing`."""

NAMINGS = (
    PlannerCritic.focused_thing, PlannerCritic.poured, PlannerCritic.melted_or_frozen,
    PlannerCritic.as_picked_up, PlannerCritic.not_held,
)  # fmt: skip
"""The command with another name of its thing, empty where that says nothing, in the order in which they are tried."""
