"""The chat teacher against scripted answers: what is readable becomes a lesson, what is not is counted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from embodied_mem.agents.view import compile_prompt, start_state
from embodied_mem.compiler.output_grammar import OutputType, render_output
from embodied_mem.language.chat import ChatReply
from embodied_mem.training.teachers.chat_teacher import ChatTeacher, TeacherError, TeacherStatistics
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher
from embodied_mem.worlds.alfworld.wording.teacher_noise import TeacherNoise

ROOM = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
    "cabinet 2, a cabinet 1, a fridge 1, and a sinkbasin 1.\n\nYour task is to: put a clean apple in fridge."
)
GOAL = "put a clean apple in fridge."


class Scripted:
    """A chat model that gives prepared answers and keeps what it was asked."""

    def __init__(self, *answers: str):
        self.answers, self.asked = list(answers), []

    def complete(self, messages, **options):
        self.asked.append((messages, options))
        return ChatReply(self.answers.pop(0))


def answer(output: str, action: str, reference: str = "") -> str:
    return json.dumps({"output": output, "action": action, "reference": reference})


def test_a_chat_teacher_that_says_what_the_rules_say_gives_the_same_lessons():
    rules = RuleTeacher()
    first = rules.begin(GOAL, ROOM, ())
    took = "You arrive at fridge 1. The fridge 1 is closed."
    second = rules.next(first.action, took, first.state)
    model = Scripted(
        *(answer(render_output(lesson.output), lesson.action, lesson.reference) for lesson in (first, second))
    )
    teacher = ChatTeacher(model)
    assert teacher.begin(GOAL, ROOM, ()) == first
    assert teacher.next(first.action, took, first.state) == second
    assert teacher.statistics == TeacherStatistics(answers=2)
    system, user = model.asked[0][0]
    assert system["role"] == "system"
    assert "room: cabinet 2; fridge 1; sinkbasin 1" in user["content"]
    assert model.asked[0][1]["response_format"]["type"] == "json_schema"


def test_illegal_edits_are_left_out_and_counted():
    model = Scripted(
        answer("hybrid\n+ now: find apple\n- seen: mug 1\n+ nonsense\ndo: find apple in fridge 1", "go to fridge 1")
    )
    teacher = ChatTeacher(model)
    lesson = teacher.begin(GOAL, ROOM, ())
    assert render_output(lesson.output) == "hybrid\n+ now: find apple\ndo: find apple in fridge 1"
    assert lesson.state.current == "find apple"
    assert teacher.statistics.malformed == 1


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"output": 1, "action": "look", "reference": ""}'])
def test_an_unreadable_answer_is_no_guidance(text):
    lesson = ChatTeacher(Scripted(text)).begin(GOAL, ROOM, ())
    assert lesson.output.type is OutputType.NOACTION
    assert (lesson.action, lesson.state) == ("look", start_state(GOAL, "cabinet 2; fridge 1; sinkbasin 1"))


def test_a_teacher_that_is_mostly_unreadable_stops():
    statistics = TeacherStatistics()
    for _ in range(19):
        ChatTeacher(Scripted("?"), statistics).begin(GOAL, ROOM, ())
    with pytest.raises(TeacherError, match="20 of 20 answers"):
        ChatTeacher(Scripted("?"), statistics).begin(GOAL, ROOM, ())


def test_the_user_message_is_the_compilers_prompt():
    model = Scripted(answer("noaction", "look"))
    teacher = ChatTeacher(model)
    teacher.begin(GOAL, ROOM, ())
    assert model.asked[0][0][1]["content"] + "\n=" == compile_prompt(teacher._view)


def test_the_play_is_misled_as_the_worlds_noise_says_and_not_at_all_without():
    text = answer("brief\n+ now: find apple", "go to fridge 1")
    closed, shows = "You arrive at fridge 1. The fridge 1 is closed.", "On the cabinet 1, you see a mug 1."

    def said(noise):
        teacher = ChatTeacher(Scripted(text), noise=noise)
        lesson = teacher.begin(GOAL, ROOM, ())
        misled = teacher.mislead(lesson, lesson.action, closed, "cabinet 2; fridge 1", np.random.default_rng(0))
        return lesson, misled, teacher.imagined_answer(shows, "apple", np.random.default_rng(0))

    lesson, (misled, action), imagined = said(TeacherNoise())
    assert (action, len(misled.state.locations)) == (lesson.action, 1)
    assert imagined.startswith("On the cabinet 1, you see ")
    assert imagined != shows
    lesson, misled, imagined = said(None)
    assert (misled, imagined) == ((lesson, lesson.action), "")
