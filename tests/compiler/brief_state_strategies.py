"""Hypothesis strategies for states, edits and outputs; words are few so that edits meet existing entries."""

from __future__ import annotations

from hypothesis import strategies as st

from embodied_mem.compiler import BriefState, CompilerOutput, Create, Delete, Fold, Update
from embodied_mem.compiler.brief_state import AGENT_FIELDS, is_fact_name, is_item, is_object_name

WORDS = ["apple 1", "apple 2", "fridge 1", "in", "in box", "find apple", "put: it", "- x", "é", "now"]
items = st.one_of(st.sampled_from(WORDS), st.text(max_size=12).filter(is_item))
objects = st.one_of(st.sampled_from(["apple 1", "apple 2", "mug 1", "in"]), st.text(max_size=8).filter(is_object_name))
fact_names = st.one_of(st.sampled_from(["searched", "tried", "hot"]), st.from_regex(r"[a-z][a-z0-9_]{0,5}\Z"))
fact_names = fact_names.filter(is_fact_name)
goals = st.one_of(st.just(""), st.text(max_size=20).map(lambda text: " ".join(text.split())))


@st.composite
def states(draw) -> BriefState:
    current = draw(st.one_of(st.just(""), items))
    agent = {name: draw(items) for name in AGENT_FIELDS if draw(st.booleans())}
    facts = draw(st.dictionaries(fact_names, st.lists(items, min_size=1, max_size=4, unique=True), max_size=3))
    return BriefState(
        goal=draw(goals),
        completed=tuple(draw(st.lists(items, max_size=3))),
        current=current,
        pending=tuple(draw(st.lists(items, max_size=3))) if current else (),
        agent=tuple(agent.items()),
        locations=tuple(draw(st.dictionaries(objects, items, max_size=4)).items()),
        facts=tuple((name, tuple(values)) for name, values in facts.items()),
    )


plain_fields = st.one_of(st.sampled_from(["at", "holding", "now"]), fact_names)
edits = st.one_of(
    st.builds(Create, st.one_of(st.just("next"), plain_fields), items),
    st.builds(Update, plain_fields, items),
    st.builds(Delete, st.one_of(st.just("next"), plain_fields), st.one_of(st.just(""), items)),
    st.builds(Create, st.just("seen"), objects, items),
    st.builds(Update, st.just("seen"), objects, items),
    st.builds(Delete, st.just("seen"), st.one_of(st.just(""), objects)),
    st.builds(Fold),
)
texts = st.one_of(st.just(""), st.text(max_size=30))
outputs = st.builds(CompilerOutput.make, texts, st.lists(edits, max_size=5), texts)

_LINES = ["hybrid", "noaction", "brief", "experience", "fold", "do: go to fridge 1", "why: seen there", "+ at: desk 1"]
_LINES += [
    "- seen: apple 1",
    "~ seen: apple 1 in box 1",
    "+ goal: x",
    "do:",
    "goal: put",
    "now: x",
    "next: a; b",
    "seen: a",
]
_LINES += ["seen: a in b; ; a in c", "at: x; y", "searched: a; a", "+", "-", "~ next: x", "hy brid", "foo: bar"]
noisy_text = st.one_of(
    st.text(max_size=80), st.lists(st.one_of(st.sampled_from(_LINES), st.text(max_size=10)), max_size=10).map("\n".join)
)
