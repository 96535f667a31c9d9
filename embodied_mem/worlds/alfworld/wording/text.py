"""What ALFWorld's sentences say: goals, rooms and feedback as plain records, for experts, teachers and memories.

Pure functions over text, no state and no simulator. Both wordings are read ("move X to Y" of ALFWorld 0.4,
"put X in/on Y" and "You arrive at loc 3." of 0.3); everything that is not understood becomes a percept of kind
"unknown", never an error, because an agent must live with whatever a world says.

    task = parse_goal("put a clean apple in fridge.")    # task.object_type == "apple", task.change == "clean"
    receptacles = parse_room("... Looking quickly around you, you see a fridge 1, and a desk 1.")
    percept = parse_observation("You arrive at desk 1. On the desk 1, you see a pen 2, and a mug 1.")
    percept.arrived_at, percept.contents                 # "desk 1", ("pen 2", "mug 1")

Source: the grammar of ALFWorld game files (alfred.twl2), versions 0.3 and 0.4.
"""

from __future__ import annotations

import dataclasses
import re

from embodied_mem.errors import InvalidInputError

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six task types, in the order of ALFWorld's own numbering 1 to 6."""

GOAL_TEMPLATES = {
    "pick_and_place_simple": ("put a {object} in {receptacle}", "put some {object} on {receptacle}"),
    "look_at_obj_in_light": ("look at {object} under the {receptacle}", "examine the {object} with the {receptacle}"),
    "pick_clean_then_place_in_recep": (
        "put a clean {object} in {receptacle}",
        "clean some {object} and put it in {receptacle}",
    ),
    "pick_heat_then_place_in_recep": (
        "put a hot {object} in {receptacle}",
        "heat some {object} and put it in {receptacle}",
    ),
    "pick_cool_then_place_in_recep": (
        "put a cool {object} in {receptacle}",
        "cool some {object} and put it in {receptacle}",
    ),
    "pick_two_obj_and_place": ("put two {object} in {receptacle}", "find two {object} and put them in {receptacle}"),
}
"""Every task sentence of official games, without the closing full stop; `{receptacle}` is the lamp for looking."""

GRAMMARS = ("0.4", "0.3")
"""The action wordings that are spoken: "0.4" moves X to Y, "0.3" puts X in/on Y."""

CHANGES = {
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
}
"""The verb that prepares the object, for the task types that have one."""

CHANGERS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""The type of receptacle that carries out each preparation."""

_BANNER = "-= Welcome to TextWorld, ALFRED! =-"
_TASK_MARK = "Your task is to: "
_ROOM_MARK = "Looking quickly around you, you see "
_GOAL_PATTERNS = [
    (
        task_type,
        re.compile(template.format(object=r"(?P<object>[a-z]+)", receptacle=r"(?P<receptacle>[a-z]+)") + r"\s*\.?"),
    )
    for task_type, templates in GOAL_TEMPLATES.items()
    for template in templates
]


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A goal sentence as data.

    Attributes:
        task_type: one of `TASK_TYPES`.
        object_type: what to find, lower case as in the text, e.g. `apple`.
        receptacle_type: where it must end, e.g. `fridge`; empty for look_at_obj_in_light.
        lamp_type: the lamp to look under, e.g. `desklamp`; empty for the other five.
        count: how many such objects are needed, 1 or 2.
    """

    task_type: str
    object_type: str
    receptacle_type: str = ""
    lamp_type: str = ""
    count: int = 1

    @property
    def change(self) -> str:
        """The preparation verb, "clean", "heat" or "cool"; empty if the object is taken as it is."""
        return CHANGES.get(self.task_type, "")

    @property
    def changer_type(self) -> str:
        """The type of receptacle that prepares the object, e.g. "microwave"; empty if none is needed."""
        return CHANGERS.get(self.change, "")


@dataclasses.dataclass(frozen=True, slots=True)
class Percept:
    """One feedback text as data. Fields that the text does not tell are empty, or None where empty has a meaning.

    Attributes:
        kind: "room", "arrive", "open", "close", "take", "put", "clean", "heat", "cool", "turn_on", "turn_off",
            "receptacle" (an examined receptacle), "object" (an examined object), "inventory", "facing", "help",
            "nothing" (nothing happens) or "unknown".
        receptacle: the receptacle it is about, e.g. "fridge 1".
        object: the object it is about, e.g. "apple 2"; for "inventory" the object held.
        is_open: whether `receptacle` stands open (True), is closed (False), or the text does not say (None; a
            receptacle that cannot be opened is None as well).
        contents: objects seen in or on `receptacle`, in the order of the text; None if its inside was not seen.
        receptacles: for "room" all receptacles listed, for "facing" those in front of the agent.
    """

    kind: str
    receptacle: str = ""
    object: str = ""
    is_open: bool | None = None
    contents: tuple[str, ...] | None = None
    receptacles: tuple[str, ...] = ()

    @property
    def arrived_at(self) -> str:
        """The receptacle just reached, or empty."""
        return self.receptacle if self.kind == "arrive" else ""

    @property
    def opened(self) -> str:
        """The receptacle just opened, or empty."""
        return self.receptacle if self.kind == "open" else ""

    @property
    def took(self) -> str:
        """The object just picked up, or empty."""
        return self.object if self.kind == "take" else ""

    @property
    def put(self) -> str:
        """The object just put down, or empty."""
        return self.object if self.kind == "put" else ""

    @property
    def held(self) -> str | None:
        """The object in the hand as far as this text tells: a name, "" for an empty hand, None if it does not say."""
        if self.kind in ("take", "clean", "heat", "cool", "inventory"):
            return self.object
        return "" if self.kind == "put" else None

    @property
    def nothing_happens(self) -> bool:
        """Whether the command was refused."""
        return self.kind == "nothing"


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """A command as data: `verb` is "go", "open", "close", "take", "put", "clean", "heat", "cool", "use", "examine",
    "look", "inventory", "help" or "" (not understood); both wordings of putting give "put"."""

    verb: str
    object: str = ""
    receptacle: str = ""


def type_of(name: str) -> str:
    """Return the type of a numbered thing: "countertop 2" -> "countertop"."""
    return name.partition(" ")[0]


def parse_goal(goal: str) -> Task:
    """Return what a goal sentence asks for.

    Args:
        goal: the text after "Your task is to: ", with or without its full stop; upper case and the prefix itself
            are accepted.

    Raises:
        InvalidInputError: the sentence follows none of the official templates.
    """
    text = goal.strip().lower()
    text = text.removeprefix(_TASK_MARK.strip().lower()).strip()
    for task_type, pattern in _GOAL_PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            target = match["receptacle"]
            if task_type == "look_at_obj_in_light":
                return Task(task_type, match["object"], lamp_type=target)
            return Task(task_type, match["object"], target, count=2 if task_type == "pick_two_obj_and_place" else 1)
    known = "; ".join(template for templates in GOAL_TEMPLATES.values() for template in templates)
    raise InvalidInputError(f"goal: {goal!r} follows none of the task sentences known: {known}")


def render_goal(task: Task, variant: int = 0) -> str:
    """Return the goal sentence of a task, with its full stop; `variant` 0 or 1 picks the official wording."""
    target = task.lamp_type or task.receptacle_type
    return GOAL_TEMPLATES[task.task_type][variant].format(object=task.object_type, receptacle=target) + "."


def split_first_observation(observation: str) -> tuple[str, str]:
    """Return (room text, goal) of a first observation: banner and task sentence are taken off.

    The goal is empty if the observation does not hold one.
    """
    room, _, goal = observation.partition(_TASK_MARK)
    return room.replace(_BANNER, "", 1).strip(), goal.strip()


def parse_room(first_observation: str) -> list[str]:
    """Return the receptacles that the room text lists, in its order; empty if it lists none."""
    text = first_observation.partition(_ROOM_MARK)[2]
    return list(_parse_list(text.partition("\n")[0].rstrip()))


def _parse_list(text: str) -> tuple[str, ...]:
    """Return the names in "a pen 2, a mug 1, and a cup 3." (articles and the full stop go)."""
    if text.endswith("."):
        text = text[:-1]
    if not text or text == "nothing":
        return ()
    names = []
    for item in text.split(", "):
        words = item.split()
        if len(words) >= 2 and words[-1].isdigit():
            names.append(f"{words[-2]} {words[-1]}")
        elif words:
            names.append(words[-1])
    return tuple(names)


def _parse_receptacle_view(text: str, kind: str, receptacle: str = "") -> Percept:
    """Return what "On the desk 1, you see ...", "The fridge 1 is closed." or "... is open. In it, ..." tells."""
    if text.startswith("On the "):
        name, mark, items = text[7:].partition(", you see ")
        return Percept(kind, name, contents=_parse_list(items)) if mark else Percept(kind, receptacle)
    if text.startswith("The "):
        name, mark, _ = text[4:].partition(" is closed.")
        if mark:
            return Percept(kind, name, is_open=False)
        name, mark, items = text[4:].partition(" is open. In it, you see ")
        if mark:
            return Percept(kind, name, is_open=True, contents=_parse_list(items))
    return Percept(kind if receptacle else "unknown", receptacle)


def _parse_two(text: str, kind: str, separator: str) -> Percept:
    """Return the percept of "<object><separator><receptacle>."."""
    first, mark, second = text.partition(separator)
    return Percept(kind, second.rstrip("."), first) if mark else Percept("unknown")


def _parse_you(text: str) -> Percept:
    """Return what a sentence that begins with "You " tells."""
    if text.startswith("You arrive at "):
        name, _, rest = text[14:].partition(". ")
        return _parse_receptacle_view(rest, "arrive", name.rstrip("."))
    if text.startswith("You pick up the "):
        return _parse_two(text[16:], "take", " from the ")
    if text.startswith("You move the "):
        return _parse_two(text[13:], "put", " to the ")
    if text.startswith("You put the "):
        return _parse_two(text[12:], "put", " in/on the ")
    if text.startswith("You open the "):
        name, _, rest = text[13:].partition(". ")
        percept = _parse_receptacle_view(rest, "open", name.rstrip("."))
        return percept if percept.is_open else Percept("open", name.rstrip("."), is_open=True)
    if text.startswith("You close the "):
        return Percept("close", text[14:].rstrip("."), is_open=False)
    for kind in ("clean", "heat", "cool"):
        if text.startswith(f"You {kind} the "):
            return _parse_two(text[9 + len(kind) :], kind, " using the ")
    if text.startswith("You turn on the "):
        return Percept("turn_on", object=text[16:].rstrip("."))
    if text.startswith("You turn off the "):
        return Percept("turn_off", object=text[17:].rstrip("."))
    if text.startswith("You are carrying: "):
        held = _parse_list(text[18:])
        return Percept("inventory", object=held[0] if held else "")
    if text.startswith("You are not carrying anything"):
        return Percept("inventory")
    if text.startswith("You are facing the "):
        return Percept("facing", receptacles=_parse_list(text[19:].partition(". Next to it")[0]))
    return Percept("unknown")


def parse_observation(text: str) -> Percept:
    """Return what one feedback text says; never raises, an unreadable text is of kind "unknown"."""
    text = text.strip()
    if _ROOM_MARK in text:
        return Percept("room", receptacles=tuple(parse_room(text)))
    if text.startswith("You "):
        return _parse_you(text)
    if text.startswith("Nothing happens"):
        return Percept("nothing")
    if text.startswith(("On the ", "The ")):
        return _parse_receptacle_view(text, "receptacle")
    if text.startswith("There's nothing special about "):
        return Percept("object", object=text[30:].rstrip("."))
    if text.startswith("This "):
        words = text.partition(". ")[0].rstrip(".").split()
        numbers = [i for i, word in enumerate(words) if word.isdigit() and i > 1]
        if numbers:
            return Percept("object", object=f"{words[numbers[0] - 1]} {words[numbers[0]]}")
    if text.startswith("Available commands"):
        return Percept("help")
    return Percept("unknown")


_COMMAND_PATTERNS = [
    ("go", re.compile(r"go to (?P<receptacle>\w+ \d+)")),
    ("open", re.compile(r"open (?P<receptacle>\w+ \d+)")),
    ("close", re.compile(r"close (?P<receptacle>\w+ \d+)")),
    ("take", re.compile(r"take (?P<object>\w+ \d+) from (?P<receptacle>\w+ \d+)")),
    ("put", re.compile(r"move (?P<object>\w+ \d+) to (?P<receptacle>\w+ \d+)")),
    ("put", re.compile(r"put (?P<object>\w+ \d+) in/on (?P<receptacle>\w+ \d+)")),
    ("clean", re.compile(r"clean (?P<object>\w+ \d+) with (?P<receptacle>\w+ \d+)")),
    ("heat", re.compile(r"heat (?P<object>\w+ \d+) with (?P<receptacle>\w+ \d+)")),
    ("cool", re.compile(r"cool (?P<object>\w+ \d+) with (?P<receptacle>\w+ \d+)")),
    ("use", re.compile(r"use (?P<object>\w+ \d+)")),
    ("examine", re.compile(r"examine (?P<object>\w+ \d+)")),
    ("look", re.compile(r"look")),
    ("inventory", re.compile(r"inventory")),
    ("help", re.compile(r"help")),
]


def parse_command(command: str) -> Command:
    """Return a command as data; a text that is no command gives an empty verb. "examine X" names X as its object."""
    text = command.strip()
    for verb, pattern in _COMMAND_PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            return Command(verb, **match.groupdict())
    return Command("")


def put_command(object_name: str, receptacle: str, grammar: str = "0.4") -> str:
    """Return the command that puts an object down, in the wording of `grammar`.

    Raises:
        InvalidInputError: an unknown grammar.
    """
    if grammar == "0.4":
        return f"move {object_name} to {receptacle}"
    if grammar == "0.3":
        return f"put {object_name} in/on {receptacle}"
    raise InvalidInputError(f"grammar: expected one of {', '.join(GRAMMARS)}, got {grammar!r}")
