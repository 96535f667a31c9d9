"""A planner-critic for ScienceWorld whose plans are gold paths of training tasks; by rules, without a language model.

    player = PlannerCritic(memories).play(goal, first_text)

The plan is what the most similar remembered task did, with our names. Before a step the critic checks that the agent
stands in the step's room (it walks there by the doors that memory knows) and that what was observed supports it: which
box a measured temperature, a lamp or the time down a plane speaks for. After a step that failed it repairs: opens what
is closed, tries other names of the same thing, looks where the thing was seen, waits as the plan did before. When
nothing helps it replans with the next most similar memory; at the end of a plan it repeats what came last.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Mapping, Sequence

from .body import Asking, Doing, Saying
from .evidence import bare
from .gold_paths import (
    FAILED,
    PLACED,
    GoldPath,
    Phrase,
    Step,
    adapt,
    parts_of,
    spoken,
    steps_of,
    substitutions,
)
from .heating import Heater
from .mixing import Mixer

_FOCUSED = re.compile(r"You focus on the ([^.]+)\.")
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
    """Whether a description is about water, which comes from taps."""
    return " water." in goal


def opposite(replaced: Mapping[Phrase, Phrase]) -> bool:
    """Whether a description asks for what another one excludes, "nonrenewable" for "renewable"."""
    pairs = [(a, b.lower()) for theirs, ours in replaced.items() for a, b in zip(theirs, ours)]
    return any(f"non{a}" == b or f"non{b}" == a for a, b in pairs)


Repairing = Generator[str, str, bool | None]
"""Whether a command was done now; None where the next repair may do it."""


class PlannerCritic(Mixer, Heater):
    """Plans by memory, criticises by what it sees; one object plays any number of episodes, one after the other."""

    def play(self, goal: str, text: str) -> Saying:
        """Commands, each sent the answer to it; `text` is the first text."""
        self._begin(goal, text)
        self.plans = self.repairs = 0
        self._kin: dict[str, str] = {}  # thing of the plan -> thing that is used for it
        self._plan = self._following = self._repairing = ""
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
        """Carries out a memory's steps; False where one could not be done and another memory may do better.

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
        """Whether a plan's waits were replaced by watching for what it focuses on next, which is not here yet.

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
        """Whether what a command is about was seen in the last look."""
        thing = _OBJECT.match(command.lower())
        name = thing[1] if thing else ""
        stage = re.match(r".{1,80}? in the [a-z ]{1,40}? stage", name)
        return (stage[0] if stage else bare(name)) in self._look()

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
        if done and (held := re.search(r"(?s) in (.+)$", step.command)):
            yield from self._do(f"move {thing} to {held[1]}")
            yield from self._walk(step.room)
        return done

    def _other_thing(self, step: Step, memory: GoldPath) -> str:
        """What is to be focused on, where the plan's words ("substance in metal pot") would mean something else."""
        focused = _FOCUSED.match(step.answer)
        if not focused or not step.command.startswith("focus on substance in"):
            return ""
        return focused[1] if focused[1].lower() not in memory.goal.lower() else ""

    def _same_kind(self, command: str) -> str:
        """The command with things that are here for things of the same kind that are not: another wire, another pot.

        No two things of a plan become one. What was focused on and is in a numbered pot is the pot that is meant.
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
        """What is here that may play the part of a thing: what played it in another memory, if the thing is not here.

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

    def focused_thing(self, command: str) -> str:
        """With what was focused on for "substance in ..."."""
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
        """With "liquid" for "solid", or the other way; measuring a thing without either, with "liquid"."""
        if "solid " in command or "liquid " in command:
            swap = {"solid ": "liquid ", "liquid ": "solid "}
            return re.sub("solid |liquid ", lambda found: swap[found[0]], command)
        if not command.startswith(("examine", "use thermometer")):
            return ""
        head, _, thing = command.rpartition(" on ") if " on " in command else command.partition(" ")
        return f"{head}{' on' if ' on ' in command else ''} liquid {thing}".replace("  ", " ")

    def as_picked_up(self, command: str) -> str:
        """With the name that the thing in the inventory had when it was picked up, wherever the plan has it."""
        moved = re.match(r"(?s)move (.{1,80}) in [a-z ]{1,80} to (.+)$", command)
        held = moved and self._picked and ("in inventory" in command or moved[1] == self._picked)
        return f"move {self._picked} in inventory to {moved[2]}" if moved and held else ""

    def not_held(self, command: str) -> str:
        """Without "in inventory"."""
        return "" if command.startswith("move") else command.removesuffix(" in inventory")

    def _again(self) -> Saying:
        """Repeats the run of commands that was done twice in a row just now, else waits."""
        for command in self._cycle() or ["wait1"]:
            if FAILED.search((yield from self._ask(command))) and command.startswith(("examine", "use thermometer")):
                done = list(self._done)
                yield from self._try_names(command)
                self._done = done  # so that the cycle is found again

    def _cycle(self) -> list[str]:
        """The shortest run of commands with waiting or measuring that was done twice in a row just now; else empty."""
        done = self._done
        for n in range(1, 13):
            if len(done) >= 2 * n and done[-n:] == done[-2 * n : -n] and _PATIENT.search(" ".join(done[-n:])):
                return done[-n:]
        return []


REPAIRS = (PlannerCritic.rename, PlannerCritic.uncover, PlannerCritic.wait, PlannerCritic.seek)
"""What is done about a command that failed, in order: (agent, command, whether the plan had waited) -> `Repairing`."""

NAMINGS = (
    PlannerCritic.focused_thing, PlannerCritic.poured, PlannerCritic.melted_or_frozen,
    PlannerCritic.as_picked_up, PlannerCritic.not_held,
)  # fmt: skip
"""The command with another name of its thing, empty where that says nothing, in the order in which they are tried."""
