"""EB-Habitat in ALFWorld's wording: texts that ALFWorld's readers read; the rule teacher wins in a home of our own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from embodied_mem.compiler.brief_state import Create, Delete, Fold, Update, apply_all
from embodied_mem.worlds.alfworld.wording.text import parse_goal, parse_observation, parse_room
from embodied_mem.worlds.eb_habitat.data import Scenes, read_tasks
from experiments.solvers.alfworld_adapter import NOTHING
from experiments.solvers.eb_habitat.instruction import understand
from experiments.solvers.eb_habitat.text_adapter import EbHabitatTextAdapter, apartment_order, goal_sentence
from experiments.solvers.errands import Errands, ErrandTeacher, Move, parse_errands, render_errands
from tests.worlds.eb_habitat.eb_habitat_home import EMPTY_HAND, FRIDGE, PARTS, SOFA, TABLE, episode, placed, quantified


def home(text: str, goal: dict, **changes):
    """The text adapter with one task in a small home, which has begun, and its first text."""
    content = {"episodes": [episode(goal, instruction=text, **changes)]}
    envs = EbHabitatTextAdapter(list(read_tasks(json.dumps(content).encode(), "home.json", Scenes())))
    [first], info = envs.reset(options={"task_indices": [0]})
    return envs, first, info["goal"][0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Bring a cup to the couch.", "put a cup in sofa."),
        ("Take the hammer off the black table.", "put a hammer in sofa from blacktable."),
        ("Take the hammer off the sofa.", "put a hammer in browntable from sofa."),
        ("Get all pears to the sink.", "put all pear in sink."),
        ("Move the toy airplane to the sink, the can to the sofa.", "put a toyairplane in sink, then a can in sofa."),
        ("Can you shut the fridge?", "close fridge."),
        ("Go and stand by the TV stand.", "go to tvstand."),
    ],
)  # fmt: skip
def test_instructions_are_sentences(text, sentence):
    assert goal_sentence(understand(text)) == sentence
    if errands := parse_errands(sentence):
        assert render_errands(errands) == sentence
    else:
        parse_goal(sentence)


def test_what_is_not_understood_is_a_sentence_too():
    parse_goal(goal_sentence(understand("Hum a song.")))


def test_sentences_that_alfworld_has_are_no_errands():
    assert parse_errands("put a plate in sofa.") is None
    assert parse_errands("put a clean plate in sofa.") is None
    assert parse_errands("put all plate in sofa.") == Errands((Move("plate", "sofa", all=True),))
    assert parse_errands("put a plate in sofa, then a big cup in sink.") is None


CUP_TO_SOFA = quantified("EXISTS", {"X": "cup"}, placed("X", SOFA), EMPTY_HAND)


def test_texts_and_refusals():
    envs, first, goal = home("Move a cup to the sofa.", CUP_TO_SOFA)
    assert goal == "put a cup in sofa."
    assert {"blacktable 1", "sofa 1", "fridge 1", "leftdrawer 1"} <= set(parse_room(first))

    def say(command: str) -> str:
        return envs.step([command])[0][0]

    assert say("take cup 1 from sink 1") == NOTHING
    assert say("go to sink 1") == "You arrive at sink 1. On the sink 1, you see a apple 1, and a cup 1."
    assert say("go to blacktable 1") == "You arrive at blacktable 1. On the blacktable 1, you see a cup 2."
    assert say("open blacktable 1") == NOTHING
    assert say("take cup 2 from blacktable 1") == "You pick up the cup 2 from the blacktable 1."
    assert say("examine blacktable 1") == "On the blacktable 1, you see nothing."
    assert say("go to fridge 1") == "You arrive at fridge 1. The fridge 1 is closed."
    assert parse_observation(say("open fridge 1")).contents == ()
    assert say("move cup 2 to fridge 1") == "You move the cup 2 to the fridge 1."
    assert say("take cup 2 from fridge 1") == "You pick up the cup 2 from the fridge 1."
    say("go to sofa 1")
    assert say("move cup 2 to sofa 1") == "You move the cup 2 to the sofa 1."
    [(won, progress, steps)] = envs.outcomes()
    assert (won, progress, steps) == (True, 1.0, 10)  # the two senseless commands took no step
    assert say("go to sink 1") == NOTHING


MOVE_ALL = quantified("FORALL", {"X": "cup"}, placed("X", SOFA))
BOTH = quantified("EXISTS", {"X": "cup", "Y": "apple"}, placed("X", SOFA), placed("Y", FRIDGE), EMPTY_HAND)
OPEN_FRIDGE = dict.fromkeys(PARTS, "closed") | {PARTS[0]: "open"}


@pytest.mark.parametrize(
    ("text", "goal", "changes"),
    [
        ("Move a cup to the sofa.", CUP_TO_SOFA, {}),
        ("Move the cup from the sink to the sofa.", CUP_TO_SOFA, {}),
        ("Bring all cups to the sofa.", MOVE_ALL, {}),
        ("Move the cup to the sofa, then the apple to the fridge.", BOTH, {}),
        ("Walk to the black table.", {"pred": "robot_at", "args": [TABLE]}, {}),
        ("Close the fridge.", {"pred": "closed_fridge", "args": [PARTS[0]]}, {"initial_articulated": OPEN_FRIDGE}),
    ],
)
def test_the_rule_teacher_wins(text, goal, changes):
    envs, first, sentence = home(text, goal, **changes)
    teacher = ErrandTeacher(apartment_order)
    lesson = teacher.begin(sentence, first, ())
    won = [False]
    for _ in range(20):
        [answer], _, ended, _, info = envs.step([lesson.action])
        won = info["won"]
        if ended[0]:
            break
        lesson = teacher.next(lesson.action, answer, lesson.state)
    assert won[0]


def test_subgoals_are_what_is_left():
    teacher = ErrandTeacher(apartment_order)
    envs, first, goal = home("Move the apple to the fridge, then the cup to the sofa.", BOTH)
    state = teacher.begin(goal, first, ()).state
    assert (state.current, *state.pending) == ("find apple", "put apple in fridge", "find cup", "put cup in sofa")

    def does(command: str, state):
        [answer], *_ = envs.step([command])
        lesson = teacher.next(command, answer, state)
        return lesson, lesson.state

    _, state = does("go to blacktable 1", state)
    lesson, state = does("take cup 1 from blacktable 1", state)  # not what the teacher would do first
    assert (state.current, *state.pending) == ("put cup in sofa", "find apple", "put apple in fridge")
    _, state = does("go to sofa 1", state)
    lesson, state = does("move cup 1 to sofa 1", state)
    assert state.fact("placed") == ("cup in sofa",)
    assert (state.current, *state.pending) == ("find apple", "put apple in fridge")
    assert state.completed == ("put cup in sofa",)
    lesson, state = does("take cup 1 from sofa 1", state)  # what was delivered is taken back
    assert state.fact("placed") == ()
    assert lesson.output.guidance == "put cup 1 in sofa 1"


def test_what_was_placed_in_vain_is_sought_again():
    """Nobody says that another cup was meant: the last errand stays, with a subgoal that is worked on."""
    goal = quantified("EXISTS", {"X": "apple"}, placed("X", SOFA), EMPTY_HAND)
    envs, first, sentence = home("Move the cup from the sink to the sofa.", goal)
    teacher = ErrandTeacher(apartment_order)
    lesson, answers = teacher.begin(sentence, first, ()), []
    for _ in range(9):
        answers += envs.step([lesson.action])[0]
        lesson = teacher.next(lesson.action, answers[-1], lesson.state)
        assert lesson.state.current
    assert [answer for answer in answers if " to the sofa 1" in answer] == [
        "You move the cup 1 to the sofa 1.",
        "You move the cup 2 to the sofa 1.",
    ]


BROKEN = (
    Delete("now"), Delete("next"), Create("next", "find nothing"), Update("now", "use lamp"),
    Create("holding", "mug 7"), Update("holding", "cup 9"), Create("placed", "cup in sofa"), Delete("placed"),
    Create("seen", "cup 3", "sofa 1"), Create("seen", "thing 1", "nowhere 4"), Create("searched", "sink 1"),
    Delete("seen"), Fold(),
)  # fmt: skip


@pytest.mark.parametrize(
    "text", ["Move the cup to the sofa, then the apple to the fridge.", "Bring all cups to the sofa."]
)
def test_any_brief_state_can_be_taught_from(text):
    """A compiler's own Brief States are labelled: whatever it wrote, subgoals of the task follow and a command."""
    random = np.random.default_rng(0)
    for _ in range(10):
        envs, first, goal = home(text, BOTH)
        teacher = ErrandTeacher(apartment_order)
        lesson = teacher.begin(goal, first, ())
        for _ in range(15):
            edits = [BROKEN[i] for i in random.choice(len(BROKEN), 2)]
            [answer], *_ = envs.step([lesson.action])
            lesson = teacher.next(lesson.action, answer, apply_all(edits, lesson.state)[0])
            verb, _, rest = lesson.state.current.partition(" ")
            assert verb in ("find", "put")
            assert rest.split()[0] in ("cup", "apple")
            assert lesson.action
