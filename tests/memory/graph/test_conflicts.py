"""Verdicts of a scripted resolver, against what the graph says before and after; answers that are late or nonsense."""

from __future__ import annotations

import threading

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import ChatWriter, KnowledgeGraph, LifelongMemory, Triple
from embodied_mem.memory.conflicts import ChatResolver, Conflict, ConflictReview
from embodied_mem.memory.relations import HOUSEHOLD_RULES


def kitchen() -> KnowledgeGraph:
    graph = KnowledgeGraph(rules=HOUSEHOLD_RULES)
    graph.update([Triple("apple 1", "in", "fridge 1", 3, 17), Triple("fridge 1", "near", "table 1", 3)])
    graph.update([Triple("lamp 1", "near", "bed 1", 3), Triple("agent", "holds", "mug 1", 4)])
    return graph


def said(graph: KnowledgeGraph, as_of: int | None = None) -> set[str]:
    with graph.snapshot() as now:
        facts = [now.fact(i) for i in now.facts(as_of)]
        return {f"{now.node(f.subject).name} {f.relation} {now.node(f.object).name}" for f in facts}


OTHERS = {"fridge 1 near table 1", "lamp 1 near bed 1", "agent holds mug 1"}
OLD, NEW = "apple 1 in fridge 1", "apple 1 on table 1"


@pytest.mark.parametrize(
    ("verdict", "now", "corrected"), [("old", {NEW}, 0), ("new", {OLD}, 1), ("neither", {OLD, NEW}, 1)]
)
def test_verdicts(verdict, now, corrected):
    graph, questions = kitchen(), []

    def resolver(facts, conflicts):
        questions.append((facts, conflicts))
        return [verdict]

    review = ConflictReview(graph, resolver)
    change = graph.update([Triple("apple 1", "on", "table 1", 5, 18)])
    assert said(graph) == OTHERS | {NEW}  # by rules
    applied = review(change)
    assert said(graph) == OTHERS | now
    assert said(graph, as_of=4) == OTHERS | {OLD}  # the past is as it was
    assert (applied is not None) == bool(corrected)
    assert (review.asked, review.corrected) == (1, corrected)
    assert questions == [
        (["fridge 1 near table 1 (since 3)"], [Conflict(f"{OLD} (since 3)", f"{NEW} (since 5)", "place")])
    ]  # the lamp is far away
    if verdict == "new":
        assert said(graph, as_of=5) == OTHERS | {OLD}  # the new one never held
        with graph.snapshot() as snapshot:
            assert snapshot.fact(applied.facts[0]).sources == (17,)


def test_several_conflicts_of_one_fact():
    """Taking the apple ends its place and lets go of the mug; the resolver says that the robot has two hands."""
    graph = kitchen()
    review = ConflictReview(
        graph, lambda facts, conflicts: ["old" if c.rule == "place" else "neither" for c in conflicts]
    )
    review(graph.update([Triple("agent", "holds", "apple 1", 5)]))
    assert said(graph) == OTHERS | {"agent holds apple 1"}


def test_no_conflict_no_question():
    graph = kitchen()
    review = ConflictReview(graph, lambda *_: pytest.fail("asked"))
    assert review(graph.update([Triple("apple 1", "near", "table 1", 5)])) is None
    assert review.asked == 0


@pytest.mark.parametrize("answer", [None, [], ["old", "old"], ["both"], "old", 7, {"old": 1}])
def test_nonsense_leaves_it_to_the_rules(answer):
    graph = kitchen()
    review = ConflictReview(graph, lambda *_: answer)
    assert review(graph.update([Triple("apple 1", "on", "table 1", 5)])) is None
    assert said(graph) == OTHERS | {NEW}
    assert (review.asked, review.malformed, review.corrected) == (1, 1, 0)


def test_failures():
    graph = kitchen()

    def unreachable(facts, conflicts):
        raise ConnectionError("no answer")

    def broken(facts, conflicts):
        raise ZeroDivisionError

    change = graph.update([Triple("apple 1", "on", "table 1", 5)])
    review = ConflictReview(graph, unreachable)
    assert review(change) is None
    assert review.malformed == 1
    with pytest.raises(ZeroDivisionError):  # a bug is not hidden
        ConflictReview(graph, broken)(change)
    with pytest.raises(InvalidInputError, match="timeout_s"):
        ConflictReview(graph, broken, timeout_s=0)


def test_late_answers_are_not_used():
    graph, go = kitchen(), threading.Event()

    def slow(facts, conflicts):
        go.wait(60)
        return ["new"] * len(conflicts)

    review = ConflictReview(graph, slow, timeout_s=0.02)
    assert review(graph.update([Triple("apple 1", "on", "table 1", 5)])) is None
    assert review(graph.update([Triple("apple 1", "on", "bed 1", 6)])) is None
    assert (review.asked, review.late) == (1, 2)  # one model at a time
    go.set()
    review._thread.join(60)
    assert said(graph) == OTHERS | {"apple 1 on bed 1"}
    review._timeout_s = 60
    review(graph.update([Triple("apple 1", "on", "table 1", 7)]))
    assert said(graph) == OTHERS | {"apple 1 on bed 1"}
    assert (review.asked, review.corrected) == (2, 1)


def test_what_changed_meanwhile_stays():
    graph = kitchen()

    def busy(facts, conflicts):
        graph.update([Triple("apple 1", "on", "bed 1", 6)])
        return ["new"]

    review = ConflictReview(graph, busy)
    assert review(graph.update([Triple("apple 1", "on", "table 1", 5)])) is None
    assert said(graph) == OTHERS | {"apple 1 on bed 1"}
    assert (review.corrected, review.stale) == (0, 1)


def test_a_chat_model_is_asked_in_words():
    graph, asked = kitchen(), []
    answers = iter(['```json\n{"ends": ["new"]}\n```', "I think the new one."])

    def chat(messages):
        asked.append(messages[1]["content"])
        return next(answers)

    writer = ChatWriter(chat)
    review = ConflictReview(graph, ChatResolver(writer))
    review(graph.update([Triple("apple 1", "on", "table 1", 5)]))
    assert said(graph) == OTHERS | {OLD}
    assert f"1. old: {OLD} (since 3); new: {NEW} (since 5); rule: place" in asked[0].splitlines()
    assert "lamp" not in asked[0]
    review(graph.update([Triple("apple 1", "on", "bed 1", 6)]))
    assert said(graph) == OTHERS | {"apple 1 on bed 1"}
    assert (review.asked, review.corrected, review.malformed, writer.malformed) == (2, 1, 1, 1)


def test_a_memory_reviews_the_conflicts_of_rules_where_it_is_told_to():
    text = "You arrive at desk 1. On the desk 1, you see a mug 1."
    asked = []

    def chat(messages):
        asked.append(messages[-1]["content"])
        return '{"ends": ["neither"]}'

    for reviews, count, places in (("doubtful", 0, ["shelf 1"]), ("all", 1, ["desk 1", "shelf 1"])):
        memory = LifelongMemory(chat=chat, modules=("spatial",), reviews=reviews)
        memory.begin_task("task", "put a mug on the bed.", "")
        memory.observe("go to desk 1", text)
        memory.observe("look", "The mug 1 is on the shelf 1.")
        assert len(asked) == memory.review.asked == count
        lines = memory.retrieve("Where is mug 1?").render().splitlines()
        assert sorted(line for line in lines if "mug 1" in line) == [f"mug 1 is on {place}" for place in places]
    with pytest.raises(InvalidInputError, match="reviews: expected doubtful or all, got 'none'"):
        LifelongMemory(reviews="none")
