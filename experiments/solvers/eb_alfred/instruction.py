"""Parses instructions of EB-ALFRED: kinds of things, where they go, what is done to them on the way.

    goal = understand("Put a chilled slice of tomato in the sink.")
    goal.objects, goal.places, goal.change, goal.sliced        # ("Tomato",), ("Sink",), "cool", True

People name things loosely ("the stand", "something to write with"), so each slot holds kinds in the order in which they
are to be tried; what the home is known to hold decides among them (`planner`). Words and rules were made on
one half of the training side's instructions and on general knowledge of what things are for; no evaluation
instruction was read.
"""

from __future__ import annotations

import dataclasses
import re

from ..words import (
    Mention,
    State,
    goal_of,
    guess,
    lexicon_of,
    mentions_of,
    phrases_of,
    plain,
    resolved,
    table_of,
    wishes_of,
)
from ..words import described as by_looks

DOORS = ("Fridge", "Microwave", "Cabinet", "Drawer", "Safe")
BASINS = {"Sink": "SinkBasin", "Bathtub": "BathtubBasin"}
"""Kind that actions name -> kind that holds things there."""
RECEPTACLES = {
    "ArmChair", "BathtubBasin", "Bed", "Bowl", "Box", "Cabinet", "Cart", "CoffeeMachine", "CoffeeTable",
    "CounterTop", "Cup", "Desk", "DiningTable", "Drawer", "Dresser", "Fridge", "GarbageCan", "HandTowelHolder",
    "LaundryHamper", "Microwave", "Mug", "Ottoman", "Pan", "Plate", "Pot", "Safe", "Shelf", "SideTable",
    "SinkBasin", "Sofa", "StoveBurner", "TVStand", "Toaster", "Toilet", "ToiletPaperHanger", "TowelHolder",
}  # fmt: skip
MOVABLE = {"Bowl", "Box", "Cup", "Mug", "Pan", "Plate", "Pot"}
"""Receptacles that can be carried."""
FOOD = {"Apple", "Bread", "Egg", "Lettuce", "Potato", "Tomato"}
SLICEABLE = {"Apple", "Bread", "Lettuce", "Potato", "Tomato"}
TOOLS = {"clean": "Sink", "heat": "Microwave", "cool": "Fridge"}
"""Change -> kind, as actions name it, of what makes it."""


def actions_of_change(change: str, tool: str) -> list[str]:
    """Return the steps of changing a thing inside a tool."""
    if change == "clean":
        return ["turn on the Faucet", "turn off the Faucet"]
    heat = ["turn on the Microwave", "turn off the Microwave"] if change == "heat" else []
    return [f"close the {tool}", *heat, f"open the {tool}"]


_CHANGES = {
    "clean": "clean cleaned wash washed rinse rinsed wet washing rinsing cleaning scrubbed scrub soaked newly-cleaned",
    "heat": "heat heated hot warm warmed cook cooked microwaved heating warming cooking baked boiled bake boil "
    "reheated roasted microwaving toasted",
    "cool": "cool cooled cold chill chilled cooling chilling refrigerated icy frozen freeze refrigerate",
}
_SLICED = {
    "slice", "slices", "sliced", "cut", "cutting", "piece", "pieces", "slicing", "diced", "chopped", "chop", "wedge",
    "sections", "section",
}  # fmt: skip
_TWO = {"two", "2", "both", "pair", "couple", "second", "another", "multiple"}
_PLACING = {"put", "place", "set", "move", "store", "putting", "placing", "bring", "leave", "transfer", "throw"}
_LONGEST = 5
_SOMEWHERE = ("CounterTop", "DiningTable", "SideTable", "Desk", "Dresser", "CoffeeTable")
"""Places of things that are to be put beside something, or nowhere in particular."""
_BESIDE = re.compile(
    r"(next to|beside|near|by|behind|across from|in front of|left of|right of|left side of|right side of|between|under"
    r"|underneath|below|above|closest to|nearest to|opposite|at the foot of|beneath|against)"
    r"( the| a| an| two)?( \w+)?( \w+)? ?$"
)
_FROM = re.compile(r"(from|off of|off|out of)( on| in| inside)?( the| a| an)?( \w+)?( \w+)? ?$")
_INTO = re.compile(
    r"\b(in|into|on|onto|to|inside|inside of|upon|at|atop|over to)( top of)?( the| a| an)?( \w+)?( \w+)? ?$"
)
_ONTO = re.compile(r"\b(into|onto|to)( the| a| an)?( \w+)? ?$")
_HOLDS = re.compile(r"\b(with|containing|holding|and|plus|has|of)\b")


@dataclasses.dataclass(frozen=True)
class Goal:
    """A parsed instruction; each tuple holds kinds in the order in which they are tried.

    Attributes:
        objects: what is to be fetched.
        places: where it goes; empty for a task by a lamp.
        carriers: the movable receptacle that it goes into first; empty without one.
        lamps: to be turned on while the object is held; empty for other tasks.
        change: "clean", "heat", "cool" or "".
        sliced: whether a slice is meant.
        count: how many objects.
        condition: a state that decides between `then` and `otherwise`, which are the goal; None where nothing decides.
        then, otherwise: goals; None where nothing is to be done.
    """

    objects: tuple[str, ...]
    places: tuple[str, ...] = ()
    carriers: tuple[str, ...] = ()
    lamps: tuple[str, ...] = ()
    change: str = ""
    sliced: bool = False
    count: int = 1
    condition: State | None = None
    then: Goal | None = None
    otherwise: Goal | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Every kind that may matter."""
        own = (*self.objects, *self.carriers, *self.places, *self.lamps)
        asked = (*self.condition.things, *self.condition.places) if self.condition else ()
        branches = [kind for goal in (self.then, self.otherwise) if goal for kind in goal.kinds]
        return tuple(dict.fromkeys((*asked, *own, *branches)))


_TABLES = lexicon_of(__package__)
_LEXICONS = {kind: phrases_of(_TABLES[f"{kind}s"]) for kind in ("thing", "place", "lamp")}
_LOOKS, _HEADS = table_of(_TABLES["looks of things"]), frozenset(_TABLES["described things"].split())
_KINDS = tuple(dict.fromkeys(kind for kinds in _LEXICONS["thing"].values() for kind in kinds))
_USE_OF, _PLACE_USE_OF = table_of(_TABLES["uses of things"]), table_of(_TABLES["uses of places"])
_CHANGE_OF = {word: change for change, words in _CHANGES.items() for word in words.split()}
_IRREGULAR = {"knives": "knife", "shelves": "shelf", "loaves": "loaf", "leaves": "leaf", "glasses": "glass"}


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "shes", "ches", "oes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("'s", "").replace("-", " "))


@dataclasses.dataclass(frozen=True)
class _Sentence:
    """The lexicons' finds in an instruction.

    Attributes:
        words, single: of it, as written and in the singular.
        objects: things that are asked for, the likeliest first.
        places, lamps: that it names.
        where: kinds of places by what is said of their use.
        change: that it asks for, or "".
        sliced: whether it speaks of slices.
    """

    words: list[str]
    single: list[str]
    objects: list[Mention]
    places: list[Mention]
    lamps: list[Mention]
    where: tuple[str, ...]
    change: str
    sliced: bool

    @property
    def things(self) -> list[Mention]:
        """Things that it names, in its order."""
        return sorted((thing for thing in self.objects if thing.end), key=lambda thing: thing.start)

    def has(self, *words: str) -> bool:
        """Return whether one of these words is in it."""
        return not set(words).isdisjoint(self.words)

    def before(self, mention: Mention) -> str:
        """Return the last few words before a phrase."""
        return " ".join(self.words[max(0, mention.start - 6) : mention.start]) + " "

    def is_plural(self, mention: Mention) -> bool:
        """Return whether a phrase is in the plural."""
        return self.words[mention.start : mention.end] != self.single[mention.start : mention.end]

    def is_cut(self, thing: Mention) -> bool:
        """Return whether a slice of a thing is meant."""
        return self.sliced and _can_cut(thing)

    @property
    def several(self) -> bool:
        """True if more than one thing is meant."""
        return self.is_plural(self.objects[0]) or self.has(*_TWO)


def _read(instruction: str) -> _Sentence:
    words = _words(re.sub(r"(top|bottom|middle) (shelf|rack) (of|in) ", "", instruction.lower()))
    single = [_singular(word) for word in words]
    things, places, lamps = (mentions_of((single,), _LEXICONS[kind], _LONGEST) for kind in ("thing", "place", "lamp"))
    votes = guess(words, _USE_OF, 40)
    described = by_looks(words, single, _HEADS, _LOOKS, (*votes, *(kind for kind in _KINDS if kind not in votes)))
    # "A fruit" alone is a phrase of the lexicon; "a red fruit" is told by its looks.
    looks = [look for look in described if set(_LOOKS) & set(words[look.start : look.end]) - _HEADS]
    looks = [look for look in looks if not any(_hides(t, look) for t in things if single[t.start] not in _HEADS)]
    things = [t for t in things if not any(look.start < t.end and t.start < look.end for look in looks)]
    things = sorted((*things, *looks), key=lambda thing: thing.start)
    # Where phrases of two lexicons overlap ("toilet paper", "coffee cup", "watering can"), the longer one is meant.
    things = [t for t in things if not any(_hides(other, t) for other in (*places, *lamps))]
    places = [p for p in places if not any(_hides(other, p) for other in (*things, *lamps))]
    sliced, change = any(word in _SLICED for word in words), _change(words, things)
    objects = _objects(things, sliced, change)
    used, where = _described(words)
    if not objects and used:
        objects = [Mention(0, 0, used)]
    return _Sentence(words, single, objects, places, lamps, where, change, sliced)


def understand(instruction: str) -> Goal | None:
    """Read an instruction's goal; None without a portable thing."""
    return goal_of(
        plain(instruction), _read, _goal,
        lambda state, then, otherwise: Goal((), condition=state, then=then, otherwise=otherwise),
    )  # fmt: skip


def _goal(text: str) -> Goal | None:
    """Return an unconditional text's goal, without forbidden kinds if others remain."""
    wishes, forbidden = wishes_of(text)
    told, bans = _read(wishes), [_read(clause) for clause in forbidden]
    barred = next((" ".join(b.words[b.things[0].start : b.things[0].end]) for b in bans if b.things), "")
    if barred and not told.objects:
        told = _read(resolved(wishes, barred, "", names_thing=False, names_place=bool(told.places)))
    if not told.objects:
        return None
    goal = _asked(told)
    things = {thing.kinds[0] for ban in bans for thing in ban.things}
    places = {place.kinds[0] for ban in bans for place in ban.places}
    return dataclasses.replace(
        goal,
        objects=tuple(kind for kind in goal.objects if kind not in things) or goal.objects,
        places=tuple(kind for kind in goal.places if kind not in places) or goal.places,
    )


def _asked(told: _Sentence) -> Goal:
    """Return what a sentence asks for, whatever its kind."""
    return _by_a_lamp(told) or _in_a_carrier(told) or _carrier_in_another(told) or _as_it_is(told)


def _by_a_lamp(told: _Sentence) -> Goal | None:
    """Return a thing to hold under a lamp, unless its place follows."""
    places, lamps = told.places, told.lamps
    if not lamps or (places and places[-1].start > lamps[-1].start and told.has("place")):
        return None
    return Goal(told.objects[0].kinds, lamps=lamps[-1].kinds)


def _in_a_carrier(told: _Sentence) -> Goal | None:
    """Return a portable thing that goes into another one first."""
    carriers = [t for t in told.objects if t.kinds[0] in MOVABLE]
    carried = [t for t in told.objects if t not in carriers]
    if not carriers or not carried or (told.several and not _HOLDS.search(" ".join(told.words))):
        return None
    sliced = told.is_cut(carried[0])
    return Goal(carried[0].kinds, _where(told), carriers[0].kinds, change=told.change, sliced=sliced)


def _carrier_in_another(told: _Sentence) -> Goal | None:
    """Return a bowl in a pot."""
    carriers = [t for t in told.objects if t.kinds[0] in MOVABLE]
    if len(carriers) < 2 or not told.has("in", "inside", "into", "with", "containing"):
        return None
    return Goal(carriers[0].kinds, _where(told), carriers[1].kinds, change=told.change)


def _as_it_is(told: _Sentence) -> Goal:
    """Return one thing or two for a place."""
    first = told.objects[0]
    sliced = told.is_cut(first)
    one_cut = sliced and not told.has("two", "2", "both") and not told.is_plural(first)
    two = told.several and not told.change and not one_cut
    return Goal(first.kinds, _where(told), change=told.change, sliced=sliced, count=2 if two else 1)


def _where(told: _Sentence) -> tuple[str, ...]:
    """Kinds of the place that things go to, the likeliest first."""
    if told.has("throw", "discard", "dispose"):
        return ("GarbageCan",)
    before = told.before
    aims = [p for p in told.places if not _FROM.search(before(p)) and not _BESIDE.search(before(p))]
    aims = _without_tools([p for p in aims if _INTO.search(before(p))] or aims, told.change)
    verb = max((i for i, word in enumerate(told.words) if word in _PLACING), default=0)
    aims = [aim for aim in aims if aim.start > verb] or aims[-1:]
    aims = [aim for aim in aims if _ONTO.search(before(aim))] or aims  # "the book on the bed to the desk"
    return aims[0].kinds if aims else told.where or _SOMEWHERE


def _described(words: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return thing and place kinds by uses around the last preposition."""
    cuts = [i for i, word in enumerate(words) if word in ("in", "into", "on", "onto", "to", "inside")]
    cut = max((i for i in cuts if words[i - 1 : i] != ["used"] and words[i + 1 : i + 2] != ["be"]), default=len(words))
    return guess(words[:cut], _USE_OF), guess(words[cut:], _PLACE_USE_OF)


def _hides(other: Mention, mention: Mention) -> bool:
    overlap = other.start < mention.end and mention.start < other.end
    return overlap and (other.end - other.start > mention.end - mention.start)


def _can_cut(mention: Mention) -> bool:
    return mention.kinds[0] in SLICEABLE


def _change(words: list[str], things: list[Mention]) -> str:
    """Return the wanted change; words within things' names do not count."""
    inside = {i for thing in things for i in range(thing.start, thing.end)}
    changes = [_CHANGE_OF[word] for i, word in enumerate(words) if word in _CHANGE_OF and i not in inside]
    return changes[0] if changes else ""


def _objects(things: list[Mention], sliced: bool, change: str) -> list[Mention]:
    """Return the wanted things; a knife beside food is its tool."""
    if any(_can_cut(thing) for thing in things):
        things = [t for t in things if t.kinds[0] not in ("Knife", "ButterKnife")]
    if sliced or change in ("heat", "cool"):
        food = [t for t in things if t.kinds[0] in FOOD]
        rest = [t for t in things if t not in food]
        things = food + rest
    return things


def _without_tools(aims: list[Mention], change: str) -> list[Mention]:
    """Return places, without the changing one if others are named."""
    others = [aim for aim in aims if aim.kinds[0] != TOOLS.get(change)]
    return others if len(others) < len(aims) and others else aims
