"""The rule teacher on generated games: it wins them, and what it says follows from what stands in front of it."""

import collections
import functools
import re

import pytest

from embodied_mem import envs
from embodied_mem.compiler.brief_state import BriefState, apply_all
from embodied_mem.compiler.output_grammar import OutputType, parse_output, render_output
from embodied_mem.compiler.view import start_state
from embodied_mem.memory import Experience, Experiences
from embodied_mem.training.teachers.episodes import play_teacher
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher, subgoals_of
from embodied_mem.worlds.alfworld.wording.text import parse_goal, parse_room

NUM_GAMES = 60
PLACE = re.compile(r"\b[a-z]+ \d+\b")


@functools.cache
def games(num_games=NUM_GAMES):
    return tuple(game.load() for game in generate(num_games, seed=0, num_scenes=12, prove=False))


class Recorder(RuleTeacher):
    """A teacher that keeps (goal, first observation, experiences, state before, action, observation, lesson)."""

    def __init__(self, log, **keywords):
        super().__init__(statistics_order, **keywords)
        self.log = log

    def begin(self, goal, first_observation, experiences):
        self.start = (goal, first_observation, experiences)
        lesson = super().begin(goal, first_observation, experiences)
        room = first_observation.partition("Your task is to:")[0]
        self.log.append((*self.start, start_state(goal, _compact(room)), "", "", lesson))
        return lesson

    def next(self, action, observation, state):
        lesson = super().next(action, observation, state)
        self.log.append((*self.start, state, action, observation, lesson))
        return lesson


def _compact(room):
    counts = collections.defaultdict(int)
    for place in parse_room(room):
        kind, _, number = place.partition(" ")
        counts[kind] = max(counts[kind], int(number))
    return "; ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))


@functools.cache
def played(with_bank: bool, detour: float, grammar: str = "0.4", max_steps: int = 50, num_games: int = NUM_GAMES):
    """(TeacherData, log of all lessons)."""
    log: list = []
    world = envs.make(
        "alfworld", tasks=list(games(num_games)), num_envs=32, seed=0, max_steps=max_steps, grammar=grammar
    )
    bank = Experiences()
    if with_bank:
        bank.add_many(played(False, 0.0, num_games=num_games)[0].episodes)
    data = play_teacher(
        world, range(num_games), bank, lambda task: Recorder(log, grammar=grammar), top_k=4, detour=detour, seed=7
    )
    return data, log


@pytest.mark.parametrize("with_bank", [False, True], ids=["alone", "bank"])
def test_wins_every_game_within_50_steps(with_bank):
    data, _ = played(with_bank, 0.0)
    assert len({parse_goal(e.goal).task_type for e in data.episodes}) == 6
    assert (data.num_lost, len(data.episodes)) == (0, NUM_GAMES)
    assert max(len(e.steps) for e in data.episodes) <= 50


def test_memory_saves_steps():
    alone, taught = (sum(len(e.steps) for e in played(with_bank, 0.0)[0].episodes) for with_bank in (False, True))
    assert taught < alone


@pytest.mark.parametrize("detour", [0.1, 0.4])
@pytest.mark.parametrize("with_bank", [False, True], ids=["alone", "bank"])
def test_recovers_from_detours(with_bank, detour):
    data, _ = played(with_bank, detour, max_steps=300)
    assert data.num_lost == 0


def test_speaks_both_grammars():
    new, old = (played(False, 0.0, grammar)[0] for grammar in ("0.4", "0.3"))
    assert old.num_lost == 0
    assert [s.hint for s in old.samples] == [s.hint for s in new.samples]
    puts = [(a.action, b.action) for a, b in zip(new.samples, old.samples) if a.action != b.action]
    assert len(puts) >= NUM_GAMES / 2
    assert all(a == b.replace("put ", "move ").replace(" in/on ", " to ") for a, b in puts)


@pytest.mark.parametrize("detour", [0.0, 0.4])
def test_output_follows_from_state_observation_and_experiences_alone(detour):
    """A teacher that has seen nothing of the episode but b_t and o_t says the same. Objects put down on the way, taken
    back, or cooled after heating are among the detours; a teacher that counts them in its head fails here."""
    _, log = played(True, detour, max_steps=300 if detour else 50)
    for goal, first, experiences, state, action, observation, lesson in log:
        stranger = RuleTeacher(statistics_order)
        other = stranger.begin(goal, first, experiences)
        if action:
            other = stranger.next(action, observation, state)
        assert (other.output, other.state, other.reference) == (lesson.output, lesson.state, lesson.reference)


@pytest.mark.parametrize(("with_bank", "detour"), [(False, 0.4), (True, 0.0), (True, 0.4)])
def test_guidance_names_only_what_the_compiler_can_know(with_bank, detour):
    data, _ = played(with_bank, detour, max_steps=300 if detour else 50)
    guided = 0
    for sample in data.samples:
        named = PLACE.findall(sample.hint) + PLACE.findall(sample.reference)
        guided += bool(sample.hint)
        highest = dict(item.rsplit(" ", 1) for item in sample.view[1].split("; "))  # the prompt's list of the room
        for name in named:
            known = re.search(rf"\b{name}\b", sample.compiler_prompt)
            kind, number = name.rsplit(" ", 1)
            listed = 1 <= int(number) <= int(highest.get(kind, 0))
            assert known or listed, (name, sample.compiler_prompt, sample.output)
    assert guided > len(data.samples) / 4


def test_searches_on_where_nothing_was_searched():
    _, log = played(False, 0.4, max_steps=300)
    on = [lesson for *_, lesson in log if lesson.output.reason == "not searched yet"]
    assert len(on) > NUM_GAMES
    for lesson in on:
        place = lesson.output.guidance.partition(" in ")[2]
        assert lesson.state.fact("searched")
        assert place not in lesson.state.fact("searched")


def test_says_nothing_when_memory_is_empty_and_nothing_was_searched():
    _, log = played(False, 0.0)
    silent = [
        lesson
        for *_, lesson in log
        if not (lesson.state.locations or lesson.state.agent_value("holding") or lesson.state.fact("searched"))
    ]
    assert len(silent) >= NUM_GAMES
    assert {lesson.output.type for lesson in silent} <= {OutputType.NOACTION, OutputType.BRIEF}
    assert all(lesson.reference == "" for lesson in silent)
    types = {lesson.output.type for with_bank in (False, True) for *_, lesson in played(with_bank, 0.1)[1]}
    assert types == set(OutputType)


@pytest.mark.parametrize("detour", [0.0, 0.4])
def test_edits_are_never_refused_and_keep_the_state_true(detour):
    data, log = played(True, detour, max_steps=300 if detour else 50)
    for goal, _, _, state, action, observation, lesson in log:
        assert apply_all(lesson.output.edits, state) == (lesson.state, 0)
        assert parse_output(render_output(lesson.output)) == lesson.output
        subgoals = subgoals_of(parse_goal(goal))
        left = (lesson.state.current, *lesson.state.pending)
        assert left == subgoals[-len(left) :]
        if action.startswith("take ") and observation.startswith("You pick up"):
            assert lesson.state.agent_value("holding") == " ".join(action.split()[1:3])
        if observation.startswith(("You move", "You put")):
            assert lesson.state.agent_value("holding") == ""
    assert all(parse_output(sample.output).guidance == sample.hint for sample in data.samples)


def test_any_brief_state_is_put_right():
    """A compiler's own Brief State may be wrong in every field; the lesson is legal all the same."""
    wrong = [
        BriefState(),
        BriefState.start("x", ["find mug", "put mug in desk", "fold", "a", "b", "c"]),
        BriefState.start("x", ["put apple in fridge"]),
        BriefState(goal="g", current="find apple", agent=(("holding", "put lettuce in countertop"),)),
        BriefState(
            goal="g", current="clean apple", agent=(("at", "moon 1"), ("holding", "apple 9")),
            locations=(("apple 9", "fridge 1"), ("pen 1", "desk 1")), facts=(("used", ("a",)), ("searched", ("b",))),
        ),
    ]  # fmt: skip
    seen = 0
    for goal, first, experiences, _, action, observation, _ in played(True, 0.4, max_steps=300)[1][::5]:
        for state in wrong:
            teacher = RuleTeacher()
            teacher.begin(goal, first, experiences)
            lesson = teacher.next(action or "look", observation or "Nothing happens.", state)
            assert apply_all(lesson.output.edits, state) == (lesson.state, 0)
            assert lesson.action
            left = (lesson.state.current, *lesson.state.pending)
            assert left == subgoals_of(parse_goal(goal))[-len(left) :]
            seen += 1
    assert seen > 100


def test_experience_elsewhere_speaks_for_the_first_place_of_its_kind():
    room = (
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 3, a cabinet 2, and a desk 1."
    )
    steps = (
        Step(f"{room}\n\nYour task is to: put a mug in desk.", "go to cabinet 9"),
        Step("You arrive at cabinet 9. On the cabinet 9, you see a mug 1.", "take mug 1 from cabinet 9"),
        Step("You pick up the mug 1 from the cabinet 9.", "go to desk 1"),
        Step("You arrive at desk 1. On the desk 1, you see nothing.", "move mug 1 to desk 1"),
    )
    past = Experience(
        Episode("a/trial_T1", "put a mug in desk.", steps, True, "You move the mug 1 to the desk 1."),
        "",
        same_room=False,
    )
    first = f"{room}\n\nYour task is to: put a mug in desk."
    assert RuleTeacher().begin("put a mug in desk.", first, [past]).output.guidance == "find mug in cabinet 2"
    assert RuleTeacher().begin("put a pen in desk.", first, [past]).output.guidance == ""


def converse(goal, room, turns):
    """The lessons of a dialogue of (action, answer) pairs, the first one included."""
    first = f"You are in the middle of a room. Looking quickly around you, you see {room}.\n\nYour task is to: {goal}"
    teacher = RuleTeacher()
    lessons = [teacher.begin(goal, first, [])]
    for action, answer in turns:
        lessons.append(teacher.next(action, answer, lessons[-1].state))
    return lessons


def test_two_objects_taken_back_and_put_elsewhere():
    """Delivered means: in the receptacle of the first one. What is taken back or put in another drawer is not."""
    lessons = converse(
        "put two pen in drawer.",
        "a desk 1, a drawer 2, and a drawer 1",
        [
            ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a pen 2, and a pen 1."),
            ("take pen 1 from desk 1", "You pick up the pen 1 from the desk 1."),
            ("move pen 1 to drawer 1", "You move the pen 1 to the drawer 1."),
            ("open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see a pen 1."),
            ("take pen 1 from drawer 1", "You pick up the pen 1 from the drawer 1."),
            ("move pen 1 to drawer 2", "You move the pen 1 to the drawer 2."),
            ("take pen 2 from desk 1", "You pick up the pen 2 from the desk 1."),
            ("move pen 2 to drawer 1", "You move the pen 2 to the drawer 1."),
        ],
    )
    assert [lesson.output.guidance for lesson in lessons] == [
        "",
        "take pen 2 from desk 1",
        "put pen 1 in drawer 1",
        "take pen 2 from desk 1",
        "take pen 2 from desk 1",
        "put pen 1 in drawer 1",
        "take pen 2 from desk 1",
        "put pen 2 in drawer 2",
        "take pen 2 from drawer 1",
    ]
    assert [lesson.state.fact("used") for lesson in lessons[2:7]] == [
        (), ("drawer 1",), ("drawer 1",), (), ("drawer 2",)
    ]  # fmt: skip
    assert lessons[5].state.pending == ("find pen", "put pen in drawer")
    assert lessons[4].state.place_of("pen 1") == ""


def test_a_change_that_is_undone_and_one_that_is_kept():
    """Heating undoes cooling; an apple that was cooled and put down needs no cooling when it is taken up again."""
    lessons = converse(
        "put a cool apple in shelf.",
        "a countertop 1, a fridge 1, a microwave 1, and a shelf 1",
        [
            ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1."),
            ("take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."),
            ("cool apple 1 with fridge 1", "You cool the apple 1 using the fridge 1."),
            ("heat apple 1 with microwave 1", "You heat the apple 1 using the microwave 1."),
            ("cool apple 1 with fridge 1", "You cool the apple 1 using the fridge 1."),
            ("move apple 1 to countertop 1", "You move the apple 1 to the countertop 1."),
            ("take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."),
            ("heat apple 1 with microwave 1", "You heat the apple 1 using the microwave 1."),
            ("move apple 1 to countertop 1", "You move the apple 1 to the countertop 1."),
            ("take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."),
        ],
    )
    cool, put, take = "cool apple 1 with fridge 1", "put apple 1 in shelf 1", "take apple 1 from countertop 1"
    guidance = [lesson.output.guidance for lesson in lessons]
    assert guidance == ["", take, cool, put, cool, put, take, put, cool, take, cool]
    assert [lesson.state.fact("cooled") for lesson in lessons[5:9]] == [(), ("apple 1",), ("apple 1",), ()]


def test_a_refused_take_ends_the_belief_and_its_place_is_looked_at_again():
    """The answer was misread as `mug 2`. Elsewhere, or for another thing, a refusal says nothing about the belief."""
    room = "a countertop 1, a shelf 2, and a shelf 1"
    seen = ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a mug 1.")
    before = converse("put a mug in shelf.", room, [seen])[-1].state
    wrong = apply_all(parse_output("brief\n- seen: mug 1\n+ seen: mug 2 in countertop 1").edits, before)[0]
    assert wrong.place_of("mug 2") == "countertop 1"

    def after(action, answer="Nothing happens."):
        teacher = RuleTeacher()
        teacher.begin(
            "put a mug in shelf.", f"You are in the middle of a room. Looking quickly around you, you see {room}.", []
        )
        teacher.next(*seen, before)
        return teacher, teacher.next(action, answer, wrong)

    teacher, lesson = after("take mug 2 from countertop 1")
    assert lesson.output.guidance == "find mug in countertop 1"
    assert lesson.action == "examine countertop 1"
    assert lesson.state.place_of("mug 2") == ""
    assert lesson.state.fact("searched") == ()
    lesson = teacher.next(lesson.action, "On the countertop 1, you see a mug 1.", lesson.state)
    assert lesson.action == lesson.output.guidance == "take mug 1 from countertop 1"
    for other in ("take mug 2 from shelf 1", "take cup 2 from countertop 1", "open countertop 1"):
        assert after(other)[1].output.guidance == "take mug 2 from countertop 1"
