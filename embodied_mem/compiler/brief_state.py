"""The Brief State: the compiler's running record of progress (done, next) and beliefs about the world.

    state = BriefState.start("put a clean apple in fridge", ("find apple", "clean apple", "put apple in fridge"))
    state, refused = apply_all((Create("at", "countertop 1"), Create("searched", "countertop 1")), state)
    state.render()        # "goal: put a clean apple in fridge\\nnow: find apple\\nnext: ..."
    state, errors = BriefState.parse(state.render())        # the same state, 0 errors

Source: MemCompiler 3.2.2 (Brief State, `b_{t+1} = Apply(delta b_t, b_t)` with create, update, delete, fold). The paper
gives the parts and the names of the operations; the text form and the exact meaning of each operation are ours.

Text form, one field a line, empty fields left out, list items separated by `; `:

    goal: put a clean apple in fridge        the instruction
    done: find apple                         completed subgoals, oldest first
    now: clean apple                         current subgoal
    next: put apple in fridge                pending subgoals, soonest first
    at: sinkbasin 1                          agent: where it stands
    holding: apple 1                         agent: what it carries
    seen: apple 2 in fridge 1; mug 1 in shelf 2        object -> place (`in` stands for every preposition)
    searched: countertop 1; drawer 2         facts: any other name holds a list of items
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from ..errors import InvalidInputError

AGENT_FIELDS = ("at", "holding")
"""Fields of the agent's own status, in the order in which they are written."""

FOLDED_FACTS = frozenset({"searched", "tried"})
"""Facts that serve a search and nothing after it; `Fold` drops them when no search is left."""

SEARCH_PREFIX = "find "
"""A subgoal that begins so is a search."""

_RESERVED = frozenset({"goal", "done", "now", "next", "seen", *AGENT_FIELDS})
_FACT_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


def is_item(text: str) -> bool:
    """Tell whether `text` can be an entry.

    An entry is not empty, has single spaces between words, none outside, and no `;`.
    """
    return text != "" and ";" not in text and " ".join(text.split()) == text


def is_object_name(text: str) -> bool:
    """Tell whether `text` can be the object of a `seen` entry.

    That is an item in which ` in ` does not begin before its end.
    """
    return is_item(text) and f"{text} in ".find(" in ") == len(text)


def is_fact_name(text: str) -> bool:
    """Tell whether `text` can name a fact.

    A name has lower-case letters, digits and `_`, and is not the name of another field.
    """
    return text not in _RESERVED and _FACT_NAME.match(text) is not None


def _require(condition: bool, what: str, expected: str, got: object) -> None:
    if not condition:
        raise InvalidInputError(f"{what}: expected {expected}, got {got!r}")


_ITEM = "words with single spaces, without `;` or line breaks"


@dataclasses.dataclass(frozen=True, slots=True)
class Create:
    """A new belief entry.

    Attributes:
        field: `seen`, `at`, `holding`, `now`, `next`, or a fact's name.
        item: the entry; for `seen` the object.
        place: for `seen` where the object is, otherwise empty.

    Raises:
        InvalidInputError: on construction, if the field takes no such edit or a text cannot be written.
    """

    field: str
    item: str
    place: str = ""

    def __post_init__(self) -> None:
        _check_edit(self, self.item, self.place)


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """A revised belief: another place for a seen object, another value for `at`, `holding`, `now`, a fact's only item.

    On a fact, `item` replaces all items. `next` cannot be updated. Attributes and errors as `Create`.
    """

    field: str
    item: str
    place: str = ""

    def __post_init__(self) -> None:
        _check_edit(self, self.item, self.place)


@dataclasses.dataclass(frozen=True, slots=True)
class Delete:
    """An invalidated belief.

    Attributes:
        field: as `Create`.
        item: the entry to drop (for `seen` the object; for `at`, `holding`, `now` the present value); empty: the
            whole field. `Delete("now")` abandons the current subgoal: the next one takes its place, nothing is done.

    Raises:
        InvalidInputError: on construction, as `Create`.
    """

    field: str
    item: str = ""

    def __post_init__(self) -> None:
        _check_edit(self, self.item or "x", "x" if self.field == "seen" else "")


@dataclasses.dataclass(frozen=True, slots=True)
class Fold:
    """The current subgoal is completed.

    It moves to the end of `completed`; the first pending subgoal becomes current (none: nothing is current). Facts in
    `FOLDED_FACTS` are dropped unless a search (`SEARCH_PREFIX`) is current or pending afterwards: a receptacle that was
    searched for the first of two objects need not be searched again for the second. All other beliefs stay.
    """


Edit = Create | Update | Delete | Fold


def _check_edit(edit: Create | Update | Delete, item: str, place: str) -> None:
    what, field = repr(edit), edit.field
    if field == "seen":
        _require(is_object_name(item), what, f"an object: {_ITEM}, and no ` in `", item)
        _require(is_item(place), what, f"a place: {_ITEM}", place)
        return
    _require(place == "", what, "no place but with the field `seen`", place)
    _require(is_item(item), what, _ITEM, item)
    if field in ("goal", "done") or (field == "next" and isinstance(edit, Update)):
        raise InvalidInputError(f"{what}: `{field}` cannot be edited so; goal is fixed, done grows by Fold only")
    _require(field in _RESERVED or is_fact_name(field), what, "a field (lower-case letters, digits, _)", field)


@dataclasses.dataclass(frozen=True, slots=True)
class BriefState:
    """Task progress and environment belief at one step; immutable, hashable.

    Attributes:
        goal: the instruction, one line.
        completed: subgoals done, oldest first.
        current: the subgoal being worked on; empty if none.
        pending: subgoals after it; empty if there is no current one.
        agent: (name, value) pairs, names out of `AGENT_FIELDS` in that order.
        locations: (object, place) pairs in order of creation, objects unique.
        facts: (name, items) pairs in order of creation, names unique, items unique and at least one.

    Raises:
        InvalidInputError: on construction, if an invariant above does not hold or a text cannot be written.
    """

    goal: str = ""
    completed: tuple[str, ...] = ()
    current: str = ""
    pending: tuple[str, ...] = ()
    agent: tuple[tuple[str, str], ...] = ()
    locations: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        _require(" ".join(self.goal.split()) == self.goal, "goal", "one line with single spaces", self.goal)
        for name in ("completed", "pending", "agent", "locations", "facts"):
            _require(isinstance(getattr(self, name), tuple), name, "a tuple", getattr(self, name))
        for name, items in (("completed", self.completed), ("pending", self.pending), ("current", (self.current,))):
            for item in items:
                _require(is_item(item) or (item == "" and name == "current"), name, _ITEM, item)
        _require(self.current != "" or not self.pending, "pending", "nothing while there is no current", self.pending)
        names = tuple(name for name, _ in self.agent)
        _require(names == tuple(n for n in AGENT_FIELDS if n in names), "agent", f"{AGENT_FIELDS} in order", names)
        for name, value in self.agent:
            _require(is_item(value), f"agent.{name}", _ITEM, value)
        for item, place in self.locations:
            _require(is_object_name(item), "locations", f"an object: {_ITEM}, and no ` in `", item)
            _require(is_item(place), f"locations[{item!r}]", _ITEM, place)
        _require(len(dict(self.locations)) == len(self.locations), "locations", "unique objects", self.locations)
        for name, items in self.facts:
            _require(is_fact_name(name), "facts", "a name of lower-case letters that is no other field", name)
            _require(isinstance(items, tuple) and len(items) > 0, f"facts.{name}", "a tuple with items", items)
            _require(all(map(is_item, items)), f"facts.{name}", _ITEM, items)
            _require(len(set(items)) == len(items), f"facts.{name}", "unique items", items)
        _require(len(dict(self.facts)) == len(self.facts), "facts", "unique names", self.facts)

    @classmethod
    def start(cls, goal: str, subgoals: Iterable[str] = ()) -> BriefState:
        """Make the state before the first step; white space is normalised.

        Nothing is done, the first subgoal is current.
        """
        subgoals = tuple(" ".join(subgoal.split()) for subgoal in subgoals)
        return cls(" ".join(goal.split()), (), subgoals[0] if subgoals else "", subgoals[1:])

    def place_of(self, name: str) -> str:
        """Look up where `name` is believed to be; empty if unknown."""
        return next((place for item, place in self.locations if item == name), "")

    def agent_value(self, field: str) -> str:
        """Return the agent's `at` or `holding`; empty if unknown."""
        return next((value for name, value in self.agent if name == field), "")

    def fact(self, name: str) -> tuple[str, ...]:
        """Items of the fact `name`; empty if there is none."""
        return next((items for fact, items in self.facts if fact == name), ())

    def render(self) -> str:
        """Return the state as text (module docstring), without a final newline.

        It is empty for an empty state.
        """
        fields = [
            ("goal", self.goal),
            ("done", "; ".join(self.completed)),
            ("now", self.current),
            ("next", "; ".join(self.pending)),
            *self.agent,
            ("seen", "; ".join([f"{item} in {place}" for item, place in self.locations])),
            *[(name, "; ".join(items)) for name, items in self.facts],
        ]
        return "\n".join([f"{name}: {text}" for name, text in fields if text])

    @staticmethod
    def parse(text: str) -> tuple[BriefState, int]:
        """Parse `text`, the exact inverse of `render`; return (state, number of errors).

        It is total on any text.

        Args:
            text: any text; lines may come in any order, white space may vary.

        Returns:
            (state, errors): an entry that cannot be read is left out and counts 1 (a line that is no field, an empty
            or repeated item, a second value for a single-valued field, `next` without `now`).
        """
        errors = 0
        single: dict[str, str] = {}
        subgoals: dict[str, list[str]] = {"done": [], "next": []}
        locations: dict[str, str] = {}
        facts: dict[str, dict[str, None]] = {}
        for line in text.split("\n"):
            name, colon, rest = line.partition(":")
            name = name.strip()
            if not colon:
                errors += name != ""
                continue
            items = [" ".join(item.split()) for item in ([rest] if name == "goal" else rest.split(";"))]
            if name in ("goal", "now", *AGENT_FIELDS):
                if name in single or len(items) > 1 or not items[0]:
                    errors += 1
                else:
                    single[name] = items[0]
            elif name in subgoals:
                subgoals[name] += filter(None, items)
                errors += items.count("")
            elif name == "seen":
                for item in items:
                    thing, found, place = item.partition(" in ")
                    if not found or not place or thing in locations or not is_object_name(thing):
                        errors += 1
                    else:
                        locations[thing] = place
            elif is_fact_name(name):
                known = facts.get(name, {})
                for item in items:
                    if not item or item in known:
                        errors += 1
                    else:
                        known[item] = None
                if known:
                    facts[name] = known
            else:
                errors += 1
        pending = subgoals["next"]
        if pending and "now" not in single:
            errors += 1
            single["now"] = pending.pop(0)
        state = _make(
            single.get("goal", ""),
            tuple(subgoals["done"]),
            single.get("now", ""),
            tuple(pending),
            tuple((name, single[name]) for name in AGENT_FIELDS if name in single),
            tuple(locations.items()),
            tuple((name, tuple(items)) for name, items in facts.items()),
        )
        return state, errors


_SLOTS = tuple(getattr(BriefState, field.name) for field in dataclasses.fields(BriefState))


def _make(*values: Any) -> BriefState:
    """Return a state from valid fields without checking them again."""
    state = object.__new__(BriefState)
    for slot, value in zip(_SLOTS, values):
        slot.__set__(state, value)
    return state


def _replace(state: BriefState, **changes: Any) -> BriefState:
    new = object.__new__(BriefState)
    for name, slot in zip(BriefState.__slots__, _SLOTS):
        slot.__set__(new, changes[name] if name in changes else slot.__get__(state))
    return new


def apply_all(edits: Iterable[Edit], state: BriefState) -> tuple[BriefState, int]:
    """Return (state after all edits in order, number of refused edits).

    A refused edit changes nothing. Pure. Refused: creating what exists, updating or deleting what does not, and without
    a current subgoal `Fold` and `Create("next")`.
    """
    refused = 0
    for edit in edits:
        new = _fold(state) if isinstance(edit, Fold) else _edited(edit, state)
        if new is None:
            refused += 1
        else:
            state = new
    return state, refused


def _edited(edit: Create | Update | Delete, state: BriefState) -> BriefState | None:
    """Return the state after `edit`; None if it is refused."""
    field = edit.field
    if field == "now":
        value = _edited_value(edit, state.current)
        if value == "":
            return _next(state)
        return None if value is None else _replace(state, current=value)
    if field == "next":
        return _with_pending(edit, state)
    if field in AGENT_FIELDS:
        value = _edited_value(edit, state.agent_value(field))
        if value is None:
            return None
        agent = {**dict(state.agent), field: value}
        return _replace(state, agent=tuple((name, agent[name]) for name in AGENT_FIELDS if agent.get(name)))
    if field == "seen":
        known = dict(state.locations)
        if isinstance(edit, Delete) and not edit.item:
            return _replace(state, locations=()) if known else None
        if (edit.item in known) == isinstance(edit, Create):
            return None
        if isinstance(edit, Delete):
            del known[edit.item]
        else:
            known[edit.item] = edit.place
        return _replace(state, locations=tuple(known.items()))
    facts = dict(state.facts)
    items = facts.get(field, ())
    if isinstance(edit, Create):
        if edit.item in items:
            return None
        facts[field] = (*items, edit.item)
    elif not items or (isinstance(edit, Delete) and edit.item and edit.item not in items):
        return None
    elif isinstance(edit, Update):
        facts[field] = (edit.item,)
    else:
        facts[field] = tuple(item for item in items if item != edit.item) if edit.item else ()
    return _replace(state, facts=tuple((name, own) for name, own in facts.items() if own))


def _edited_value(edit: Create | Update | Delete, known: str) -> str | None:
    """Return a single-valued field's new value: empty if deleted, None if refused."""
    if isinstance(edit, Create):
        return edit.item if not known else None
    if isinstance(edit, Update):
        return edit.item if known else None
    return "" if known and edit.item in ("", known) else None


def _with_pending(edit: Create | Update | Delete, state: BriefState) -> BriefState | None:
    pending = list(state.pending)
    if isinstance(edit, Create):
        return _replace(state, pending=(*pending, edit.item)) if state.current else None
    if not edit.item:
        return _replace(state, pending=()) if pending else None
    if edit.item not in pending:
        return None
    pending.remove(edit.item)
    return _replace(state, pending=tuple(pending))


def _next(state: BriefState, **changes: Any) -> BriefState:
    """Return the state with the first pending subgoal current."""
    return _replace(state, current=state.pending[0] if state.pending else "", pending=state.pending[1:], **changes)


def _fold(state: BriefState) -> BriefState | None:
    if not state.current:
        return None
    facts = state.facts
    if not any(subgoal.startswith(SEARCH_PREFIX) for subgoal in state.pending):
        facts = tuple((name, items) for name, items in facts if name not in FOLDED_FACTS)
    return _next(state, completed=(*state.completed, state.current), facts=facts)
