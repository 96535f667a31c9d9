"""Parses ALFWorld's sentences (goals, rooms, feedback) into plain records.

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
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.readers.household import names_in, read_observation
from embodied_mem.memory.readers.reading import STATE_AFTER

GOAL_TEMPLATES = {
    "pick_and_place_simple": ("put a {object} in {receptacle}", "put some {object} on {receptacle}"),
    "look_at_obj_in_light": ("look at {object} under the {receptacle}", "examine the {object} with the {receptacle}"),
    **{
        f"pick_{verb}_then_place_in_recep": (
            f"put a {adjective} {{object}} in {{receptacle}}",
            f"{verb} some {{object}} and put it in {{receptacle}}",
        )
        for verb, adjective in STATE_AFTER.items()
    },
    "pick_two_obj_and_place": ("put two {object} in {receptacle}", "find two {object} and put them in {receptacle}"),
}
"""Every task sentence of official games, without the closing full stop; `{receptacle}` is the lamp for looking."""

TASK_TYPES = tuple(GOAL_TEMPLATES)
"""The six task types, in the order of ALFWorld's own numbering 1 to 6."""

GRAMMARS = ("0.4", "0.3")
"""The action wordings: "0.4" moves X to Y, "0.3" puts X in/on Y."""

CHANGES = {f"pick_{verb}_then_place_in_recep": verb for verb in STATE_AFTER}
"""The verb that prepares the object, for the task types that have one."""

CHANGERS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""The type of receptacle that carries out each preparation."""

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
_NAMED_GOAL = re.compile(r"find a (?P<object>[a-z]+) and do the (?P<procedure>[a-z ]*[a-z]) ?\.?")


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
        """True if the command was refused."""
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


def task_of(task_type: str, object_type: str, target: str) -> Task:
    """Return the task of a type; `target` is its receptacle or lamp."""
    if task_type == "look_at_obj_in_light":
        return Task(task_type, object_type, lamp_type=target)
    return Task(task_type, object_type, target, count=2 if task_type == "pick_two_obj_and_place" else 1)


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
            return task_of(task_type, match["object"], match["receptacle"])
    known = "; ".join(template for templates in GOAL_TEMPLATES.values() for template in templates)
    raise InvalidInputError(f"goal: {goal!r} follows none of the task sentences known: {known}")


def render_goal(task: Task, variant: int = 0) -> str:
    """Return a task's goal sentence; `variant` 0 or 1 picks the wording."""
    target = task.lamp_type or task.receptacle_type
    return GOAL_TEMPLATES[task.task_type][variant].format(object=task.object_type, receptacle=target) + "."


def named_goal(object_type: str, procedure: str) -> str:
    """Return a task sentence with the home's name for the procedure."""
    return f"find a {object_type} and do the {procedure}."


def parse_named_goal(goal: str) -> tuple[str, str]:
    """Parse a `named_goal` into (object type, procedure); else both empty."""
    match = _NAMED_GOAL.fullmatch(" ".join(goal.split()).lower())
    return (match["object"], match["procedure"]) if match else ("", "")


def parse_room(first_observation: str) -> list[str]:
    """Return the receptacles that the room text lists, in order."""
    return list(names_in(first_observation.partition(_ROOM_MARK)[2].partition("\n")[0]))


_ANSWERS = [
    ("take", r"You pick up the (?P<object>.*?) from the (?P<receptacle>.*)"),
    ("put", r"You move the (?P<object>.*?) to the (?P<receptacle>.*)"),
    ("put", r"You put the (?P<object>.*?) in/on the (?P<receptacle>.*)"),
    *((verb, rf"You {verb} the (?P<object>.*?) using the (?P<receptacle>.*)") for verb in CHANGERS),
    ("turn_on", r"You turn on the (?P<object>.*)"),
    ("turn_off", r"You turn off the (?P<object>.*)"),
    ("arrive", r"You arrive at (?P<receptacle>.*?)(?:\. .*)?\Z"),
    ("open", r"You open the (?P<receptacle>.*?)(?:\. .*)?\Z"),
    ("close", r"You close the (?P<receptacle>.*)"),
    ("inventory", r"You are (?:carrying: (?P<names>.*)|not carrying anything)"),
    ("facing", r"You are facing the (?P<names>.*?)(?:\. Next to it.*)?\Z"),
    ("nothing", r"Nothing happens"),
    ("object", r"There's nothing special about (?P<object>.*)"),
    ("object", r"This (?:.*? )??(?P<object>\S+ \d+)(?=[ .]|\Z)"),
    ("receptacle", r"(?:On the|The) "),
    ("help", r"Available commands"),
]
"""Kinds of answers and how they begin, in the order in which they are tried."""
_ANSWER_PATTERNS = [(kind, re.compile(pattern, re.DOTALL)) for kind, pattern in _ANSWERS]


def parse_observation(text: str) -> Percept:
    """Parse a feedback text; an unreadable one is of kind "unknown"."""
    text = text.strip()
    if _ROOM_MARK in text:
        return Percept("room", receptacles=tuple(parse_room(text)))
    found = ((kind, match) for kind, pattern in _ANSWER_PATTERNS if (match := pattern.match(text)))
    kind, match = next(found, ("unknown", None))
    told = match.groupdict("") if match else {}
    names, receptacle = names_in(told.get("names", "")), told.get("receptacle", "").rstrip(".")
    match kind:
        case "facing":
            return Percept(kind, receptacles=names)
        case "inventory":
            return Percept(kind, object=names[0] if names else "")
        case "arrive" | "open" | "close" | "receptacle":
            return _with_view(kind, text, receptacle)
    return Percept(kind, receptacle, told.get("object", "").rstrip("."))


def _with_view(kind: str, text: str, receptacle: str) -> Percept:
    """Parse a text that may show a receptacle, for memory's rules, too."""
    reading = read_observation(text)
    place, contents = next(iter(reading.complete), ("", None))
    doors = {name: state == "open" for name, relation, state in reading.facts if relation == "is"}
    place = place or next(iter(doors), receptacle)
    return Percept(kind if place else "unknown", place, is_open=doors.get(place), contents=contents)


_COMMANDS = (
    ("go", "go to R"),
    ("open", "open R"),
    ("close", "close R"),
    ("take", "take O from R"),
    ("put", "move O to R"),
    ("put", "put O in/on R"),
    *((verb, f"{verb} O with R") for verb in CHANGERS),
    ("use", "use O"),
    ("examine", "examine O"),
    *((verb, verb) for verb in ("look", "inventory", "help")),
)
"""Verb -> its command; O stands for an object, R for a receptacle."""
_OBJECT, _RECEPTACLE = r"(?P<object>\w+ \d+)", r"(?P<receptacle>\w+ \d+)"
_COMMAND_PATTERNS = [
    (verb, re.compile(words.replace("O", _OBJECT).replace("R", _RECEPTACLE))) for verb, words in _COMMANDS
]


def parse_command(command: str) -> Command:
    """Parse a command; other texts give an empty verb."""
    text = command.strip()
    for verb, pattern in _COMMAND_PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            return Command(verb, **match.groupdict())
    return Command("")


def put_command(object_name: str, receptacle: str, grammar: str = "0.4") -> str:
    """Return the command to put an object down, worded by `grammar`.

    Raises:
        InvalidInputError: an unknown grammar.
    """
    if grammar == "0.4":
        return f"move {object_name} to {receptacle}"
    if grammar == "0.3":
        return f"put {object_name} in/on {receptacle}"
    raise InvalidInputError(f"grammar: expected one of {', '.join(GRAMMARS)}, got {grammar!r}")


def executor_instruction(grammar: str = "0.4") -> str:
    """Return a published model's instruction, commands worded by `grammar`."""
    told = prompt(__package__, "executor").replace("{put}", put_command("THING", "PLACE", grammar))
    return told.replace("{put it}", put_command("it", "the place", grammar))
