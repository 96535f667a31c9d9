"""Formats of a trace and what damages it, on a trace whose content is known by heart."""

import random

import pytest

from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep, parse_action
from experiments.solvers.memento.variants import DAMAGES, SHOWN, damaged, mixed_up, noisy, shuffled, summarised, thinned

OK = "Result: Successful execution!\nObjects: "
STEPS = (
    TraceStep("look", "Explore[kitchen_1]", f"{OK}cup_0: table_4 in kitchen_1\nbook_1: table_4 in kitchen_1"),
    TraceStep("", "DescribeObjectTool[cup_0]", "Result: The description of the object 'cup_0' is:\nA red cup.\n"
              "Objects: cup_0: table_4 in kitchen_1"),
    TraceStep("", "Pick[cup_0]", f"{OK}cup_0: held by the agent\nbook_1: table_4 in kitchen_1"),
    TraceStep("", "Navigate[bed_6]", f"{OK}cup_0: held by the agent"),
    TraceStep("", "Place[book_1, on, bed_6, None, None]", "Result: Unexpected failure! - no\nObjects: cup_0: held by "
              "the agent"),
    TraceStep("", "Place[cup_0, on, bed_6, next_to, book_1]", f"{OK}cup_0: bed_6 in bedroom_1"),
    TraceStep("", "Done[]", "Result: \nObjects: cup_0: bed_6 in bedroom_1"),
)  # fmt: skip
TRACE = Trace("7", "small", "Put the cup on the bed. It is my favourite.", STEPS)


def test_a_summary_says_what_moved_from_where_to_where_and_nothing_that_failed():
    note = summarised(TRACE).note
    assert note == ("Moved cup_0 (A red cup) from table_4 in kitchen_1 onto bed_6 next to book_1.")
    assert summarised(TRACE).steps == ()


def test_instruction_only_keeps_the_instruction_alone():
    shown = SHOWN["instruction_only"](TRACE)
    assert (shown.instruction, shown.steps, shown.note) == (TRACE.instruction, (), "")
    assert shown.render() == f"Task: {TRACE.instruction}"


def test_render_has_thoughts_actions_and_observations_in_order():
    text = TRACE.render()
    assert text.index("Thought: look\nExplore[kitchen_1]") < text.index("Pick[cup_0]") < text.index("Done[]")


@pytest.mark.parametrize("how", DAMAGES)
def test_damage_is_the_same_for_the_same_seed_and_leaves_instruction_and_id(how):
    other = Trace("8", "elsewhere", "x", (TraceStep("", "Wait[]", "r"),))
    first, second = damaged([TRACE, other], how, seed=3), damaged([TRACE, other], how, seed=3)
    assert first == second
    assert (first[0].episode_id, first[0].instruction) == ("7", TRACE.instruction)
    assert first[0].steps != TRACE.steps


def test_mixed_up_steps_are_of_another_trace_by_share():
    other = Trace("8", "elsewhere", "x", (TraceStep("", "Wait[]", "r"),))
    assert mixed_up([TRACE, other], 0.0) == [TRACE, other]
    mixed = mixed_up([TRACE, other], 0.5, seed=1)[0]
    assert 0 < sum(step.action == "Wait[]" for step in mixed.steps) < len(STEPS) == len(mixed.steps)
    assert all(step in (old, other.steps[0]) for step, old in zip(mixed.steps, STEPS))
    assert all(step.action == "Wait[]" for step in mixed_up([TRACE, other], 1.0)[0].steps)


def test_noise_comes_from_other_houses_and_keeps_the_own_steps_in_order():
    stranger = TraceStep("", "Wait[]", "r")
    steps = noisy(TRACE, [stranger], random.Random(0)).steps
    assert len(steps) == 7 + 2  # 30 % of 7, rounded
    assert tuple(step for step in steps if step != stranger) == STEPS


def test_shuffle_keeps_all_steps_and_gaps_lose_a_fifth():
    assert sorted(shuffled(TRACE, random.Random(0)).steps, key=str) == sorted(STEPS, key=str)
    assert len(thinned(TRACE, random.Random(0)).steps) == 7 - 1  # 20 % of 7, rounded


def test_without_an_action_no_step_of_it_is_left():
    steps = damaged([TRACE], "without_Place")[0].steps
    assert len(steps) == 5
    assert not any(parse_action(step.action)[0] == "Place" for step in steps)


def test_a_call_is_name_and_arguments():
    assert parse_action("thinking\nPlace[a_1, on, b_2, None, None]") == ("Place", ["a_1", "on", "b_2", "None", "None"])
    assert parse_action("Done[]") == ("Done", [])
    assert parse_action("I am done") == ("", [])
