"""All that is remembered goes to JSON and back, byte for byte; a line that is wrong is named."""

from __future__ import annotations

import json

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.memory.export import exported, imported

SCOPE = Scope(user="ann", environment="home")


def lived(memory: LifelongMemory) -> LifelongMemory:
    memory.tell("I usually keep the jug and cup on the desk for my night drink.")
    memory.tell("Der Schlüssel\nist „hier“.", speaker="Bob", when="8 May", labels={"room": "hall", "n": 1, "x": None})
    note = memory.tell("Open every drawer.", trust="document").notes[0]
    memory.update(note.id, "Open every door.")
    memory.begin_task("t", "put a mug on the shelf", "Looking quickly around you, you see a desk 1, and a shelf 1.")
    memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 1.", pose=(1, 2, 3))
    memory.observe("look", facts=[("cup 7", "on", "desk 1", 0.5)], trust="agent", time=3.5)
    memory.observe("sing", "Nothing happens.")
    memory.observe("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
    memory.observe("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see nothing.")
    memory.observe("move mug 1 to shelf 1", "You move the mug 1 to the shelf 1.")
    memory.end_task(True)
    memory.retrieve("where is the mug?")
    memory.tell("mug 1 is on shelf 1")  # a reference
    memory.forget(object="pen 1")  # holes in the graph
    memory.begin_task("u", "find the cup", "A hall.")
    memory.observe("wave", "The lamp blinks.", outcome="failure")
    return memory


def test_the_round_trip_is_exact(tmp_path):
    memory = lived(LifelongMemory(SCOPE))
    text = memory.export()
    assert exported(imported(text)) == text
    with LifelongMemory.open(tmp_path, SCOPE, fsync="never") as other:
        assert other.import_(text) == len(memory.get_all())
        assert other.state() == memory.state()
        for entry in memory.get_all():
            assert other.get(entry.id) == entry
            assert other.history(entry.id) == memory.history(entry.id)
        for query in (None, "mug", "night drink", "lamp"):
            assert other.retrieve(query) == memory.retrieve(query)
        for one in (memory, other):
            one.tell("I don't like tea anymore.")
            one.end_task(False)
        assert other.state() == memory.state()
    with LifelongMemory.open(tmp_path, SCOPE) as other:
        assert other.state() == memory.state()
    assert {json.loads(line).get("module") for line in text.splitlines()} == {
        None, "lifelong", "spatial", "temporal", "episodic", "semantic", "profile", "notes", "views",
    }  # fmt: skip


@pytest.mark.parametrize("modules", [("notes",), ("spatial", "temporal"), ()])
def test_an_empty_memory_and_one_with_few_modules(modules):
    memory, other = (LifelongMemory(SCOPE, modules=modules) for _ in range(2))
    assert other.import_(memory.export()) == 0
    memory.begin_task("t", "look", "A hall.")
    memory.observe("look", "On the desk 1, you see a mug 1.\nA bell rings.")
    assert other.import_(memory.export()) == len(memory.get_all())
    assert other.state() == memory.state()


def test_what_cannot_be_taken_changes_nothing():
    memory = lived(LifelongMemory(SCOPE))
    text, state = memory.export(), memory.state()
    with pytest.raises(InvalidInputError, match="expected an empty memory"):
        memory.import_(text)
    for other in (LifelongMemory(), LifelongMemory(SCOPE, modules=("notes",))):
        empty = other.state()
        with pytest.raises(InvalidInputError, match="expected"):
            other.import_(text)
        assert other.state() == empty
    assert memory.state() == state


def line_of(lines: list[str], **wanted) -> int:
    return next(i for i, line in enumerate(lines) if wanted.items() <= json.loads(line).items())


@pytest.mark.parametrize(
    ("where", "field", "value", "named"),
    [
        ({"module": "notes", "field": "notes"}, "text", 3, "text: expected str, got 3"),
        ({"module": "notes", "field": "notes"}, "trust", "guest", "trust: expected one of"),
        ({"module": "notes", "field": "notes"}, "sources", [["x", 0, 0]], "sources: expected a whole number"),
        ({"module": "notes", "field": "notes"}, "mood", 1, "expected some of id, module"),
        ({"module": "profile", "field": "known"}, "said", [3], "said: expected a list, got 3"),
        ({"module": "semantic", "field": "entries"}, "created", None, "created: expected a whole number, got None"),
        ({"module": "episodic", "field": "entries"}, "support", {}, "support: expected a list"),
        ({"module": "temporal", "field": "entries"}, "done", [], "done: expected a mapping"),
        ({"module": "spatial", "part": "graph", "field": "nodes"}, "name", 7, "'nodes': expected a row of a graph"),
        ({"module": "spatial", "part": "graph", "field": "facts"}, "subject", -1, "'facts': expected a row"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(where, field, value, named):
    lines = lived(LifelongMemory(SCOPE)).export().splitlines()
    at = line_of(lines, **where)
    row = json.loads(lines[at])
    row["row"][field] = value
    lines[at] = json.dumps(row)
    other = LifelongMemory(SCOPE)
    state = other.state()
    with pytest.raises(InvalidInputError) as caught:
        other.import_("\n".join(lines))
    assert f"line {at + 1}, field" in str(caught.value)
    assert named in str(caught.value)
    assert other.state() == state


def test_any_damage_is_an_error_of_the_library():
    """A line left out, or put out of shape: refused or, where a list only got shorter, read."""
    lines = lived(LifelongMemory(SCOPE)).export().splitlines()
    for at in range(0, len(lines), 9):
        for damage in ("", "{", "[]", "7", '{"module": "moods", "field": "x", "value": 1}', lines[at][:-1]):
            text = "\n".join([*lines[:at], *([damage] if damage else []), *lines[at + 1 :]])
            other = LifelongMemory(SCOPE)
            state = other.state()
            refused = ""
            try:
                other.import_(text)
            except InvalidInputError as error:
                refused = str(error)
            assert bool(damage) <= bool(refused)
            assert not refused or other.state() == state
            assert damage not in ("{", "[]", "7") or f"line {at + 1}, " in refused


@pytest.mark.parametrize("levels", [101, 400, 940, 100_000])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a": ', "}")])
def test_a_value_that_is_nested_too_deep_is_named(levels, brackets):
    lines = lived(LifelongMemory(SCOPE)).export().splitlines()
    value = f"{brackets[0] * levels}1{brackets[1] * levels}"
    for at, key in ((2, "value"), (len(lines) // 2, "row"), (len(lines) - 1, "note")):
        changed = [*lines[:at], lines[at][:-1] + f', "{key}": {value}}}', *lines[at + 1 :]]
        memory = LifelongMemory(SCOPE)
        with pytest.raises(InvalidInputError, match=f"line {at + 1}, .* at most 100 deep"):
            memory.import_("\n".join(changed))
        assert memory.time == 0
