"""Homes with names of their own for what is done there, and the teacher that reads what a name means."""

import pytest

from embodied_mem.agents.citations import is_supported
from embodied_mem.compiler.view import render_experiences, start_view
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import BankView
from embodied_mem.training.config import Config, GRPOConfig, WorldConfig
from embodied_mem.training.tasks import scoring_bank, sources_of, teach_bank
from embodied_mem.training.teachers.episodes import play_teacher
from embodied_mem.worlds.alfworld.generator import Generator
from embodied_mem.worlds.alfworld.procedures import (
    HELD_OUT_NAMES,
    LEAST_OBJECTS,
    TRAINING_NAMES,
    Procedures,
    plans_of,
    task_of_game,
)
from embodied_mem.worlds.alfworld.wording.teacher import ProcedureTeacher, meaning_of
from embodied_mem.worlds.alfworld.wording.text import named_goal, parse_named_goal

WORLD = WorldConfig(num_train=60, num_valid=40, num_scenes=12, habit=1.0, procedures=4, homes=4, max_steps=12)
ROOM = "Looking quickly around you, you see a desk 1, a shelf 1, and a sinkbasin 1."
CONFIG = Config(WORLD, grpo=GRPOConfig(num_tasks=4))


@pytest.fixture(scope="module")
def source():
    [one] = sources_of(WORLD, CONFIG.seed)
    return one


@pytest.fixture(scope="module")
def bank() -> Experiences:
    return scoring_bank(CONFIG)


@pytest.fixture(scope="module")
def homes() -> Procedures:
    return Procedures(Generator(0, 1.0), per_home=6, num_training=48)


def test_a_name_means_different_things_in_different_homes(homes):
    meanings = {}
    for number in range(48):
        for name, *meaning in homes.of(number):
            meanings.setdefault(name, set()).add(tuple(meaning))
    assert set(meanings) <= set(TRAINING_NAMES)
    assert sum(len(told) > 1 for told in meanings.values()) > 0.9 * len(meanings)


def test_in_a_home_names_and_meanings_are_distinct_and_can_be_done(homes):
    for number in range(60):
        known = homes.of(number)
        assert len({one.name for one in known}) == len({one.meaning for one in known}) == len(known) > 1
        plans = plans_of(Generator(0, 1.0).scene(number))
        assert all(len(plans[one.meaning]) >= LEAST_OBJECTS for one in known)


def test_homes_held_out_share_no_name_with_its_meaning_with_training_homes(homes):
    trained = {procedure for number in range(48) for procedure in homes.of(number)}
    held_out = [procedure for number in range(48, 72) for procedure in homes.of(number)]
    assert not trained & set(held_out)
    new = [procedure for procedure in held_out if procedure.name in HELD_OUT_NAMES]
    assert 0.3 < len(new) / len(held_out) < 0.6
    assert {p.name for p in held_out} & {p.name for p in trained}  # with another meaning
    assert {p.meaning for p in held_out} & {p.meaning for p in trained}  # under another name


def test_the_instruction_names_the_object_and_neither_place_nor_treatment(source):
    for game in source.sides()[1]:
        thing, procedure = parse_named_goal(game.task)
        task = task_of_game(game.name)
        assert thing == task.object_type == game.goal["object_type"].removesuffix("type")
        assert game.task == named_goal(thing, procedure)
        assert game.goal["task_type"] == task.task_type
    assert parse_named_goal("put a mug in shelf.") == ("", "")


def test_what_it_means_is_read_off_this_home_only(source, bank):
    envs = source.envs(source.sides()[1], 40)
    observations, info = envs.reset(options={"task_indices": range(40)})
    understood = 0
    for text, goal, task_id in zip(observations, info["goal"], info["task_id"]):
        found = bank.retrieve(goal, 4, text, (task_id,))
        task, told_by = meaning_of(goal, found)
        if task is not None:
            understood += 1
            assert task == task_of_game(task_id)
            assert told_by.same_room
            name = parse_named_goal(goal)[1]
            assert f"here: {told_by.episode.goal.rstrip('.')}; " in render_experiences([told_by])
            assert name in told_by.episode.goal
        elsewhere = bank.retrieve(goal, 8, text, other_rooms=True)
        assert meaning_of(goal, elsewhere) == (None, None)
    assert understood >= 36


def test_memory_is_what_wins_and_the_teacher_without_it_loses(source, bank):
    envs = source.envs(source.sides()[1], 40, WORLD.max_steps)

    def won(view):
        played = play_teacher(envs, range(40), view, lambda _: source.teacher(), top_k=4, detour=0, seed=0)
        return len(played.episodes)

    with_memory, without = won(bank), won(Experiences())
    assert with_memory >= 33
    assert with_memory - without >= 14
    assert abs(won(BankView(bank, ("other_rooms",))) - without) <= 4


def test_guidance_says_which_experience_tells_what_is_meant(source, bank):
    envs = source.envs(source.sides()[1], 40)
    view = BankView(bank, numbered=True)
    cited = []
    played = play_teacher(envs, range(40), view, lambda _: source.teacher(), top_k=4, detour=0, seed=0)
    for episode in played.episodes:
        found = view.retrieve(episode.goal, 4, episode.first_observation, (episode.task_id,))
        teacher = source.teacher()
        lesson = teacher.begin(episode.goal, episode.first_observation, found)
        here = start_view(episode.goal, episode.first_observation, found)
        answers = [*(step.observation for step in episode.steps[1:]), episode.final_observation]
        for step, answer in zip(episode.steps, answers):
            if lesson.output.guidance.startswith("put ") and lesson.output.reason.startswith("memory "):
                cited.append(is_supported(lesson.output, here))
                other = [one for one in found if parse_named_goal(one.episode.goal) != parse_named_goal(episode.goal)]
                assert all(one.number for one in other)
            lesson = teacher.next(step.action, answer, lesson.state)
    assert len(cited) > 20
    assert all(cited)


def test_who_was_told_plays_what_memory_holds(source, bank):
    assert len(bank) >= 92  # of 100; one kitchen has 27 cabinets
    for episode, rationale in bank.records:
        task = task_of_game(episode.task_id)
        if task.change:
            assert f"{ {'clean': 'cleaned', 'heat': 'heated', 'cool': 'cooled'}[task.change] } " in rationale
        assert len(episode.steps) < 40
    training = teach_bank(CONFIG)
    assert {episode.task_id for episode, _ in training.records} <= {game.name for game in source.sides()[0]}
    assert len(training) >= 56


def test_without_memory_nothing_is_written_while_it_tries():
    teacher = ProcedureTeacher()
    lesson = teacher.begin(named_goal("mug", "copper round"), ROOM, ())
    assert [edit.item for edit in lesson.output.edits] == ["find mug", "try mug"]
    lesson = teacher.next("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1.", lesson.state)
    assert lesson.action == "take mug 1 from desk 1"
    lesson = teacher.next(lesson.action, "You pick up the mug 1 from the desk 1.", lesson.state)
    assert (lesson.output.guidance, lesson.action) == ("", "go to sinkbasin 1")
