"""BriefState: rendering and parsing invert each other, edits are pure and do what they say."""

from __future__ import annotations

import pickle

import pytest
from brief_state_strategies import edits, noisy_text, states
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.compiler import BriefState, Create, Delete, Fold, Update, apply_all
from embodied_mem.errors import InvalidInputError

EXAMPLE = """\
goal: put a clean apple in fridge
done: find apple
now: clean apple
next: put apple in fridge
at: sinkbasin 1
holding: apple 1
seen: apple 2 in fridge 1; mug 1 in shelf 2
searched: countertop 1; drawer 2"""


def apply(edit, state: BriefState) -> BriefState:
    return apply_all([edit], state)[0]


def rebuild(state: BriefState) -> BriefState:
    """The state made anew through the checking constructor."""
    return BriefState(
        state.goal, state.completed, state.current, state.pending, state.agent, state.locations, state.facts
    )


def test_documented_text_reads_as_the_fields_it_names():
    state, errors = BriefState.parse(EXAMPLE)
    assert errors == 0
    assert state == BriefState(
        goal="put a clean apple in fridge",
        completed=("find apple",),
        current="clean apple",
        pending=("put apple in fridge",),
        agent=(("at", "sinkbasin 1"), ("holding", "apple 1")),
        locations=(("apple 2", "fridge 1"), ("mug 1", "shelf 2")),
        facts=(("searched", ("countertop 1", "drawer 2")),),
    )
    assert state.render() == EXAMPLE
    assert (state.place_of("mug 1"), state.place_of("mug 2")) == ("shelf 2", "")
    assert (state.agent_value("at"), state.fact("searched")) == ("sinkbasin 1", ("countertop 1", "drawer 2"))


@settings(max_examples=300, derandomize=True)
@given(states())
def test_parse_inverts_render(state):
    text = state.render()
    assert BriefState.parse(text) == (state, 0)
    assert state.render() == text
    assert pickle.loads(pickle.dumps(state)) == state
    assert hash(BriefState.parse(text)[0]) == hash(state)


@settings(max_examples=300, derandomize=True)
@given(noisy_text)
def test_any_text_gives_a_valid_state(text):
    state, errors = BriefState.parse(text)
    assert rebuild(state) == state
    assert 0 <= errors <= text.count("\n") + text.count(";") + 2
    assert BriefState.parse(state.render()) == (state, 0)


@pytest.mark.parametrize(
    ("text", "rendered", "errors"),
    [
        ("hello", "", 1),
        ("\n \n", "", 0),
        ("goal: a\ngoal: b", "goal: a", 1),
        ("next: a; b", "now: a\nnext: b", 1),
        ("now: a\nnext: b; ;c\ndone: ;", "now: a\nnext: b; c", 3),
        ("at: x; y", "", 1),
        ("at: x\nat: y", "at: x", 1),
        ("seen: apple 1", "", 1),
        ("seen: apple 1 in box 1; apple 1 in box 2", "seen: apple 1 in box 1", 1),
        ("searched: a; ; a;b", "searched: a; b", 2),
        ("searched: a\nsearched: b", "searched: a; b", 0),
        ("Searched: a", "", 1),
        ("now:\nx", "", 2),
        ("  now :  find \t apple ", "now: find apple", 0),
    ],
)
def test_errors_are_counted(text, rendered, errors):
    state, count = BriefState.parse(text)
    assert (state.render(), count) == (rendered, errors)


@settings(max_examples=300, derandomize=True)
@given(states(), st.lists(edits, max_size=8))
def test_edits_keep_invariants_and_are_pure(state, sequence):
    before = pickle.dumps(state)
    now, refused = state, 0
    for edit in sequence:
        new, one = apply_all([edit], now)
        if one:
            assert new is now
        else:
            legal_change_is_seen(edit, now, new)
        refused += one
        assert rebuild(new) == new
        assert apply(edit, now) == new
        now = new
    assert apply_all(sequence, state) == (now, refused)
    assert pickle.dumps(state) == before


def as_model(state: BriefState) -> dict[tuple[str, str], str]:
    """Every belief as {(field, entry): value}, written without the code under test."""
    model = {("seen", name): place for name, place in state.locations}
    model |= {(name, ""): value for name, value in (*state.agent, ("now", state.current)) if value}
    for name, items in (*state.facts, ("next", state.pending)):
        model |= {(name, item): "" for item in items}
    return model


def legal_change_is_seen(edit, old: BriefState, new: BriefState) -> None:
    if isinstance(edit, Fold):
        assert new.completed == (*old.completed, old.current)
        assert (new.current, *new.pending) == (*old.pending, "")[: len(old.pending) + 1][: len(new.pending) + 1]
        assert (new.goal, new.agent, new.locations) == (old.goal, old.agent, old.locations)
        return
    assert (new.goal, new.completed) == (old.goal, old.completed)
    had, has = as_model(old), as_model(new)
    single = edit.field in ("at", "holding", "now")
    key = (edit.field, "" if single else edit.item)
    value = edit.item if single else getattr(edit, "place", "")
    if isinstance(edit, Create):
        assert edit.field == "next" or key not in had
        assert has == {**had, key: value}
    elif isinstance(edit, Update):
        kept = {k: v for k, v in had.items() if edit.field == "seen" or k[0] != edit.field}
        assert has == {**kept, key: value}
    elif edit.field == "now":
        assert new.current == (old.pending[0] if old.pending else "")
        assert new.pending == old.pending[1:]
    elif edit.field == "next" and edit.item:
        left = list(old.pending)
        left.remove(edit.item)
        assert new.pending == tuple(left)
    else:
        gone = [k for k in had if k[0] == edit.field and (single or not edit.item or k[1] == edit.item)]
        assert gone
        assert has == {k: v for k, v in had.items() if k not in gone}


@pytest.mark.parametrize(
    "edit",
    [
        Create("at", "desk 1"),
        Create("seen", "apple 2", "desk 1"),
        Create("searched", "drawer 2"),
        Create("now", "x"),
        Update("seen", "apple 9", "desk 1"),
        Update("note", "stuck"),
        Delete("seen", "apple 9"),
        Delete("holding", "apple 2"),
        Delete("searched", "drawer 3"),
        Delete("next", "find apple"),
        Delete("note"),
    ],
)
def test_illegal_edits_are_refused_and_counted(edit):
    state, _ = BriefState.parse(EXAMPLE)
    assert apply(edit, state) is state
    assert apply_all([edit, Update("at", "desk 1"), edit], state) == (apply(Update("at", "desk 1"), state), 2)


def test_fold_and_next_need_a_current_subgoal():
    assert apply_all([Fold(), Create("next", "x")], BriefState()) == (BriefState(), 2)


def test_fold_moves_subgoals_and_keeps_a_search_while_another_is_pending():
    state = BriefState.start("put two cups in shelf", ["find cup", "put cup in shelf", "find  cup", "put cup in shelf"])
    state = apply(Create("searched", "desk 1"), apply(Create("seen", "cup 2", "desk 1"), state))
    texts = []
    for _ in range(4):
        state = apply(Fold(), state)
        texts.append((state.completed[-1], state.current, state.fact("searched")))
    assert texts == [
        ("find cup", "put cup in shelf", ("desk 1",)),  # the second search is pending: what was searched still counts
        ("put cup in shelf", "find cup", ("desk 1",)),  # and is current
        ("find cup", "put cup in shelf", ()),  # no search is left
        ("put cup in shelf", "", ()),
    ]
    assert state.place_of("cup 2") == "desk 1"
    assert apply_all([Fold()], state) == (state, 1)


def test_deleting_a_pending_subgoal_drops_its_first_occurrence():
    state = BriefState.start("g", ["a", "b", "c", "b", "d"])
    assert apply(Delete("next", "b"), state).pending == ("c", "b", "d")
    assert apply(Delete("next", "d"), state).pending == ("b", "c", "b")
    assert apply(Delete("next"), state).pending == ()


def test_abandoning_the_current_subgoal_does_not_complete_it():
    state = apply(Delete("now"), BriefState.start("g", ["a", "b"]))
    assert (state.completed, state.current, state.pending) == ((), "b", ())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Create("goal", "x"),
        lambda: Update("done", "x"),
        lambda: Update("next", "x"),
        lambda: Create("searched", ""),
        lambda: Create("searched", "a;b"),
        lambda: Create("searched", "a\nb"),
        lambda: Create("searched", " a"),
        lambda: Create("Bad name", "a"),
        lambda: Create("seen", "a in b", "c"),
        lambda: Create("seen", "a in", "c"),
        lambda: Create("seen", "a"),
        lambda: Create("at", "a", "b"),
        lambda: BriefState(goal="a\nb"),
        lambda: BriefState(pending=("a",)),
        lambda: BriefState(completed=("",)),
        lambda: BriefState(agent=(("holding", "a"), ("at", "b"))),
        lambda: BriefState(agent=(("mood", "a"),)),
        lambda: BriefState(locations=(("a", "b"), ("a", "c"))),
        lambda: BriefState(facts=(("searched", ()),)),
        lambda: BriefState(facts=(("searched", ("a", "a")),)),
        lambda: BriefState(facts=(("seen", ("a",)),)),
    ],
)
def test_what_cannot_be_written_is_refused_at_construction(make):
    with pytest.raises(InvalidInputError):
        make()
