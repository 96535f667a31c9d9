"""Whether guidance is what its source says."""

import pytest

from embodied_mem.agents.citations import FOUND_BEFORE, cite, is_supported
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.compiler.view import View
from embodied_mem.memory.bank import Experience
from embodied_mem.types import Episode, Step

GOAL = "put a mug in shelf."
STEPS = (Step("You see a shelf 1.", "look"),)


def view(*told, numbered=True):
    """Experiences of this room, or elsewhere, with these rationales."""
    experiences = [
        Experience(Episode(f"t{i}", GOAL, STEPS, True), text, same_object=True, same_room=here, number=i * numbered)
        for i, (text, here) in enumerate(told, 1)
    ]
    return View(GOAL, "shelf 3; desk 2", experiences)


def supported(guidance, reason, seen):
    return is_supported(CompilerOutput.make(guidance, (), reason), seen)


SEEN = view(("mug 1 was in desk 2; placed in shelf 1; 5 steps", True), ("mug 2 was in fridge 1; 4 steps", False))


@pytest.mark.parametrize(
    ("guidance", "number", "expected"),
    [
        ("find mug in desk 2", 1, True),
        ("find mug in desk 1", 1, False),  # another place of this room
        ("find mug in desk 2", 2, False),  # the other experience says so
        ("find mug in fridge 3", 2, True),  # numbers of another room mean nothing
        ("find cup in desk 2", 1, False),
        ("find mug in desk 2", 7, False),
        ("find mug in shelf 1", 1, False),  # where it was put, not where it was
        ("look around", 1, False),
    ],
)
def test_guidance_is_held_against_the_experience_it_names(guidance, number, expected):
    assert supported(guidance, cite(number), SEEN) is expected


def test_a_wrong_source_is_not_made_up_if_another_experience_says_so():
    def made_up(guidance, number):
        return is_supported(CompilerOutput.make(guidance, (), cite(number)), SEEN, by_any=True) is False

    assert supported("find mug in fridge 1", cite(1), SEEN) is False
    assert not made_up("find mug in fridge 1", 1)
    assert made_up("find mug in desk 1", 1)
    assert is_supported(CompilerOutput.make("look", (), "not searched yet"), SEEN, by_any=True) is None


def test_without_numbers_any_experience_will_do():
    seen = view(("mug 1 was in desk 2; 5 steps", True), ("mug 2 was in fridge 1; 4 steps", False), numbered=False)
    assert supported("find mug in fridge 1", FOUND_BEFORE, seen) is True
    assert supported("find mug in shelf 2", FOUND_BEFORE, seen) is False
    assert cite(0) == FOUND_BEFORE


@pytest.mark.parametrize("reason", ["not searched yet", "the goal says so", "memory two", ""])
def test_other_reasons_claim_no_experience(reason):
    assert supported("find mug in desk 2", reason, SEEN) is None


@pytest.mark.parametrize(
    ("guidance", "number", "expected"),
    [
        ("put cup 1 in shelf 1", 1, True),
        ("put cup 1 in shelf 2", 1, False),  # another place of this room
        ("clean cup 1 with sinkbasin 1", 1, True),
        ("heat cup 1 with microwave 1", 1, False),
        ("put cup 1 in shelf 1", 2, False),  # what another name means here
    ],
)
def test_what_is_to_be_done_needs_an_experience_that_was_asked_the_same(guidance, number, expected):
    told = "mug 1 was in desk 2; cleaned at sinkbasin 1; placed in shelf 1; 5 steps"
    goals = "find a mug and do the copper round.", "find a mug and do the maple round."
    experiences = [
        Experience(Episode(f"t{i}", goal, STEPS, True), told, same_room=True, number=i)
        for i, goal in enumerate(goals, 1)
    ]
    seen = View("find a cup and do the copper round.", "shelf 3; desk 2", experiences)
    assert supported(guidance, cite(number), seen) is expected
