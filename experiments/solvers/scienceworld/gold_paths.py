"""Memory of paths through training variations, gold or the agent's own: retrieved by description, adapted to the task.

    memories = Memories(paths)
    memory, *others = memories.retrieve("Your task is to boil lead. ...")
    adapt("focus on water", substitutions(memory.goal, "Your task is to boil lead. ..."))      # "focus on lead"

Everything here is symbolic: tasks are compared by the words of their descriptions, and where two descriptions of one
kind of task differ, the words of one stand for those of the other. Rooms and doors are learned from the paths, too.
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import re
from collections.abc import Mapping, Sequence

ROOM = re.compile(r"This (?:room is|outside location is) called the ([a-z ]+)\.")
DOOR = re.compile(r"A door to the ([a-z ]+) \(that is (open|closed)\)")
MOVED = re.compile(r"You move to the ([a-z ]+)\.")
FAILED = re.compile(
    r"No known action|Unknown action|Ambiguous|can't|cannot|not moveable|isn't|is not|already|appears broken|not sure"
)
"""Words of an answer to a command that changed nothing."""

_WORD = re.compile(r"[A-Za-z0-9][\w.-]*\w|[A-Za-z0-9]|,")
_MIXED = re.compile(r"([A-Za-z ]{1,80}) and ([a-z ]{1,80}?)( paint)? mix to produce (?:an? )?([a-z -]{1,80})\.")
_READING = re.compile(r"currently reading a temperature of (-?\d+) degrees")
MEASURED = re.compile(r"measures a temperature of (-?[\d.]+) degrees")
_DROPPED = re.compile(r"You move the ([a-z ]+) to the ")
_CONNECTED = re.compile(r"([a-z]+(?: \d)?) on ([a-z ]+) is now connected to ([a-z]+(?: \d)?) on ([a-z ]+)")
_TAKEN = re.compile(r"pick up ([a-z ]+)$")
PLACED = re.compile(r"move (.+) to (.+)$", re.DOTALL)
_SENTENCE = re.compile(r"\.\s+")
Phrase = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class GoldPath:
    """A played variation of a task ("boil"): the description, the first text, the commands and their answers.

    `won` is whether it was done; a path that failed still tells of doors and mixtures.
    """

    game: str
    variation: int
    goal: str
    first: str
    commands: tuple[str, ...]
    answers: tuple[str, ...]
    won: bool = True

    @property
    def title(self) -> str:
        """Its name and description, for a trace."""
        return f"{self.game}/{self.variation}: {self.goal}"


@dataclasses.dataclass(frozen=True)
class Step:
    """A command of a path that changed something, the room where it was done, and what came of it."""

    room: str
    command: str
    answer: str


def words(text: str) -> list[str]:
    """Return a text's words and commas in order, without other marks."""
    return _WORD.findall(text)


def room_of(text: str) -> str:
    """Return the room that a look around shows; empty for another text."""
    found = ROOM.search(text)
    return found[1] if found else ""


def substitutions(theirs: str, ours: str) -> dict[Phrase, Phrase]:
    """Map phrases of their description to ours where the words differ.

    Their phrases are in lower case. Sentence by sentence where both have equally many, so that nothing is taken for a
    part of another sentence. A colour takes its box along ("red box" for "green box"), so that lamps keep their
    colours, and a single letter the word before it ("substance B"). A phrase that stands for several is taken for the
    most frequent one.
    """
    sides = [_SENTENCE.split(text) for text in (theirs, ours)]
    if len(sides[0]) != len(sides[1]):
        sides = [[theirs], [ours]]
    counted: dict[Phrase, collections.Counter[Phrase]] = collections.defaultdict(collections.Counter)
    for sentences in zip(*sides):
        a, b = map(words, sentences)
        low = [[word.lower() for word in side] for side in (a, b)]
        for kind, i, j, k, m in difflib.SequenceMatcher(None, low[0], low[1], autojunk=False).get_opcodes():
            if kind != "replace":
                continue
            if low[0][j : j + 1] == ["box"] and low[1][m : m + 1] == ["box"]:
                j, m = j + 1, m + 1
            if j - i == 1 and len(a[i]) == 1 and i and low[0][i - 1] in ("substance", "material", "unknown"):
                i, k = i - 1, k - 1
            counted[tuple(low[0][i:j])][tuple(b[k:m])] += 1
    return {phrase: found.most_common(1)[0][0] for phrase, found in counted.items()}


def adapt(text: str, replaced: Mapping[Phrase, Phrase]) -> str:
    """Replace every phrase, longest first, in one pass.

    All words are separated by one space afterwards.
    """
    given, i = re.findall(r"[^\s.,]+|[.,]", text), 0
    out: list[str] = []
    low = [word.lower() for word in given]
    longest = max(map(len, replaced), default=0)
    while i < len(given):
        for length in range(longest, 0, -1):
            if i + length <= len(given) and (ours := replaced.get(tuple(low[i : i + length]))) is not None:
                out += ours
                i += length
                break
        else:
            out.append(given[i])
            i += 1
    return re.sub(r" ([.,])", r"\1", " ".join(out))


def mixture(answer: str) -> tuple[frozenset[str], str] | None:
    """Read (what was mixed, what came of it) from a "mix" answer.

    It is in small letters.
    """
    found = _MIXED.match(answer)
    if not found:
        return None
    one, other, paint, made = found.groups("")
    return frozenset((one.lower() + paint, other + paint)), made


def steps_of(path: GoldPath) -> list[Step]:
    """List the commands that changed something, each with its room.

    Ways, looks and answers are left out.
    """
    room, steps = room_of(path.first), []
    for i, (command, answer) in enumerate(zip(path.commands, path.answers)):
        if moved := MOVED.match(answer):
            room = moved[1]
        elif command.isdigit() or command.startswith(("open door to", "go to", "look around")):
            continue
        elif answer.startswith("Ambiguous"):
            if i + 1 < len(path.answers) and not FAILED.search(path.answers[i + 1]):
                steps.append(Step(room, command, path.answers[i + 1]))
        elif not FAILED.search(answer) and (command.startswith("wait") or path.commands[i - 1] != command):
            steps.append(Step(room, command, answer))
    return steps


@dataclasses.dataclass(frozen=True)
class Device:
    """Something that warms or cools what is put into it, the room it is in, and whether it has to be switched on."""

    name: str
    room: str
    heats: bool
    switched: bool


def devices_of(path: GoldPath) -> list[Device]:
    """Find the devices that a path heats or cools with.

    A thing was put in and then measured, warmer or colder than the air before.
    """
    found: dict[str, Device] = {}
    ambient = next((int(shown[1]) for text in path.answers if (shown := _READING.search(text))), None)
    steps = steps_of(path)
    for i, step in enumerate(steps, 1):
        if not (moved := PLACED.match(step.command)):
            continue
        readings, switched = list[float](), False
        for after in steps[i:]:
            if after.command.startswith(("move", "pick up", "focus", "pour", "deactivate")):
                break
            switched |= after.command == f"activate {moved[2]}"
            readings += [float(degrees) for degrees in MEASURED.findall(after.answer)]
        if readings and (before := readings[0] if ambient is None else ambient) != readings[-1]:
            found[moved[2]] = Device(moved[2], step.room, readings[-1] > before, switched)
    return list(found.values())


def spoken(step: Step) -> Step:
    """Return the step with the names in its answer.

    "drop light" dropped the red light bulb.
    """
    command = step.command
    if dropped := _DROPPED.match(step.answer):
        command = f"drop {dropped[1]}" if command.startswith("drop ") else command
    if joined := _CONNECTED.match(step.answer):
        command = f"connect {joined[2]} {joined[1]} to {joined[4]} {joined[3]}"
    return dataclasses.replace(step, command=command)


def parts_of(path: GoldPath, others: Sequence[GoldPath]) -> dict[str, list[str]]:
    """List other paths' counterparts of each thing a path picked up.

    They are found by the place in order.
    """
    mine, *theirs = ([found[1] for c in p.commands if (found := _TAKEN.match(c))] for p in (path, *others))
    return {
        thing: [other[i] for other in theirs if len(other) == len(mine) and other[i] not in mine]
        for i, thing in enumerate(mine)
    }


class Memories:
    """A bank of gold paths."""

    def __init__(self, paths: Sequence[GoldPath]):
        """Keep the paths and learn what they have in common.

        Args:
            paths: any number, also none.
        """
        self.paths = list(paths)
        kinds: dict[str, list[set[str]]] = collections.defaultdict(list)
        for path in paths:
            kinds[path.game].append({word.lower() for word in words(path.goal)})
        self._common = {game: set.intersection(*found) for game, found in kinds.items()}
        self.mixtures = dict(filter(None, (mixture(answer) for path in paths for answer in path.answers)))
        self.devices = {device.name: device for path in paths for device in devices_of(path)}
        self.doors: dict[str, set[str]] = collections.defaultdict(set)
        self._seen: dict[str, list[str]] = collections.defaultdict(list)  # room -> looks around it, in small letters
        for path in paths:
            room = room_of(path.first)
            for text in (path.first, *path.answers):
                if moved := MOVED.match(text):
                    self.doors[room].add(moved[1])
                    self.doors[moved[1]].add(room)
                    room = moved[1]
                elif room and room_of(text) == room:
                    self._seen[room].append(text.lower())
                    for door, _ in DOOR.findall(text):
                        self.doors[room].add(door)
                        self.doors[door].add(room)

    def rooms_of(self, thing: str) -> set[str]:
        """Return the rooms where a thing was seen at any time."""
        named = re.compile(rf"\b{re.escape(thing.lower())}\b")
        return {room for room, looks in self._seen.items() if any(named.search(look) for look in looks)}

    def showed(self, text: str) -> bool:
        """Tell whether a look around at any time said this."""
        return any(text in look for looks in self._seen.values() for look in looks)

    def kin_of(self, name: str) -> list[tuple[str, str]]:
        """Return (room, name) of seen things with names ending in this one.

        "freezer" finds "low temperature freezer".
        """
        longer = re.compile(rf"\t(?:an? )?((?!an? )[a-z]+(?: [a-z]+)* {re.escape(name)})\b")
        return sorted({(room, found) for room, looks in self._seen.items() for found in longer.findall("".join(looks))})

    def retrieve(self, goal: str) -> list[GoldPath]:
        """Return memories of the best fitting kind of task, the likest first.

        It is the kind that the description fits best; only what was done counts. A kind is known by the words that all
        its remembered descriptions share; of kinds that share as many, by the likest description ("a non-living thing
        ... in the living room" has the words of living things, too).
        """
        if not self.paths:
            return []
        ours = [word.lower() for word in words(goal)]
        given = set(ours)

        def likeness(path: GoldPath) -> float:
            theirs = [word.lower() for word in words(path.goal)]
            return difflib.SequenceMatcher(None, theirs, ours, autojunk=False).ratio()

        def fit(game: str) -> tuple[float, float]:
            common = self._common[game]
            return len(common & given) / len(common | given), max(likeness(p) for p in self.paths if p.game == game)

        game = max(self._common, key=fit)
        of_kind = [path for path in self.paths if path.game == game and path.won]
        return sorted(of_kind, key=likeness, reverse=True)
