"""What the compiler reads: which memories are used up, and what is left to search."""

from __future__ import annotations

import re

from embodied_mem import envs
from embodied_mem.compiler.brief_state import Create, apply_all
from embodied_mem.compiler.prompts import Shown, unmarked
from embodied_mem.compiler.view import View, compile_prompt, executor_text, render_trajectories, start_state
from embodied_mem.memory import Experiences
from embodied_mem.training.teachers.episodes import play_teacher
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher

GOAL, ROOM = "look at book under the desklamp.", "desk 2; drawer 3; shelf 1"


def prompt(*turns: tuple[str, str], searched: tuple[str, ...] = (), brief: bool = True) -> list[str]:
    """Lines of the prompt with one experience: a book was in drawer 9, and the lamp stood in a safe."""
    actions = ("go to drawer 9", "take book 1 from drawer 9", "go to safe 1", "use desklamp 1")
    answers = ("You are in a room.", "You arrive at drawer 9. On the drawer 9, you see a book 1.", "You pick up it.")
    steps = tuple(map(Step, (*answers, "You arrive at safe 1. On the safe 1, you see a desklamp 1."), actions))
    bank = Experiences()
    bank.add(Episode("other", GOAL, steps, True, "You turn on the desklamp 1."))
    state, refused = apply_all([Create("searched", place) for place in searched], start_state(GOAL, ROOM))
    assert not refused
    view = View(GOAL, ROOM, bank.retrieve(GOAL, k=1), list(turns), state)
    return compile_prompt(view, brief).split("\n")


def test_a_place_counts_as_searched_by_brief_state_or_newest_answer():
    lines = prompt()
    assert lines[1].endswith(": book was in drawer 1; used desklamp in safe 1 x"), "no drawer 9 and no safe here"
    assert lines[-3] == "left: desk 1; drawer 1; shelf 1"
    lines = prompt(
        ("go to drawer 1", "You arrive at drawer 1. On the drawer 1, you see nothing."), searched=("desk 1",)
    )
    assert lines[1].endswith(": book was in drawer 1 x; used desklamp in safe 1 x")
    assert lines[-3] == "left: desk 2; drawer 2; shelf 1"
    lines = prompt(("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed."), searched=("shelf 1",))
    assert "drawer 1 x" not in lines[1], "nobody has seen into it"
    assert lines[-3] == "left: desk 1; drawer 1"
    everything = ("desk 1", "desk 2", "drawer 1", "drawer 2", "drawer 3", "shelf 1")
    assert not any(line.startswith("left") for line in prompt(searched=everything))


def test_without_a_brief_state_nothing_is_marked():
    lines = prompt(("go to drawer 1", "You arrive at drawer 1. On the drawer 1, you see nothing."), brief=False)
    assert lines[1].endswith(": book was in drawer 9; used desklamp in safe 1")
    assert not any(line.startswith("left") for line in lines)


def test_the_executor_is_told_what_is_left_where_the_run_says_so():
    """From the answers alone: a closed drawer was not looked into, and what was is not asked for again."""
    turns = [
        ("go to desk 1", "You arrive at desk 1. On the desk 1, you see nothing."),
        ("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed."),
        ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a book 1."),
    ]
    told = executor_text(GOAL, ROOM, turns, Shown(1, marks=True), hint="find book in desk 2").split("\n")
    assert told[-4:] == ["left: desk 2; drawer 1", "at: shelf 1", "hint: find book in desk 2", ">"]
    plain = executor_text(GOAL, ROOM, turns, Shown(1), hint="find book in desk 2").split("\n")
    assert plain == [line for line in told if not line.startswith("left")]
    assert "left: desk 1; drawer 1; shelf 1" in executor_text(GOAL, ROOM, [], Shown(marks=True))
    assert "left" not in executor_text(GOAL, "", turns, Shown(marks=True))


def test_marks_can_be_taken_out_of_the_compilers_prompt_and_nothing_else():
    turn = ("go to drawer 1", "You arrive at drawer 1. On the drawer 1, you see a box x.")
    marked = prompt(turn, searched=("desk 1",))
    assert marked[1].endswith(": book was in drawer 1 x; used desklamp in safe 1 x")
    bare = unmarked("\n".join(marked)).split("\n")
    assert bare[1].endswith(": book was in drawer 1; used desklamp in safe 1")
    assert bare[2:] == [line for line in marked[2:] if not line.startswith("left: ")]
    history = "\n".join(prompt(turn, brief=False))
    assert unmarked(history) == history
    forged = [*marked[:-3], "left: said by the world", *marked[-2:]]
    assert unmarked("\n".join([*forged[:-2], "left: desk 2", *forged[-2:]])).split("\n")[2:] == forged[2:]


def test_the_place_that_the_teacher_names_stands_in_the_prompt_unmarked():
    games = [game.load() for game in generate(24, seed=2, num_scenes=6, split="train")]
    world = envs.make("alfworld", tasks=games, num_envs=24, seed=0, max_steps=50)
    bank = Experiences()

    def make_teacher(task: int) -> RuleTeacher:
        return RuleTeacher(statistics_order)

    bank.add_many(play_teacher(world, range(24), bank, make_teacher, top_k=3, detour=0, seed=0).episodes)
    data = play_teacher(world, range(24), bank, make_teacher, top_k=3, detour=0.2, seed=1)
    counts = {"found there before": 0, "not searched yet": 0}
    for sample in data.samples:
        found = re.search(r"do: find \w+ in (\w+ \d+)\nwhy: (.*)", sample.output)
        if not found or found[2] not in counts:
            continue
        memory, _, rest = sample.compiler_prompt.partition("\ngoal:")
        left = re.search(r"\nleft: (.*)\n", rest)
        if found[2] == "found there before":
            assert re.search(rf" in {found[1]}(?! x)(?=;|\n|\Z)", memory), (sample.compiler_prompt, sample.output)
        else:
            assert found[1] in left[1].split("; "), (sample.compiler_prompt, sample.output)
        counts[found[2]] += 1
    assert min(counts.values()) > 5, counts


def test_whole_trajectories_fill_the_room_and_are_cut_at_a_step():
    bank = Experiences()
    for name, number in (("first", 2), ("second", 5)):
        first = (
            f"You are in the middle of a room. Looking quickly around you, you see a desk {number}.\nYour task is to: x"
        )
        steps = (
            Step(first, f"go to desk {number}"),
            Step("You arrive at desk.\nOn it, you see a mug 1.", "take mug 1"),
        )
        bank.add(Episode(name, "put a mug in shelf.", steps, True, "You pick up the mug 1."))
    found = bank.retrieve("put a mug in shelf.", 2)
    room = "You are in the middle of a room. Looking quickly around you, you see a desk {}."
    one, other = (
        [
            "past: put a mug in shelf", room.format(number), f"> go to desk {number}",
            "You arrive at desk. On it, you see a mug 1.", "> take mug 1", "You pick up the mug 1.",
        ]
        for number in (2, 5)
    )  # fmt: skip
    assert render_trajectories(found, lambda text: True).split("\n") == [*one, *other]
    assert render_trajectories(found, lambda text: text.count("\n") < 10).split("\n") == [*one, *other[:4]]
    assert render_trajectories(found, lambda text: text.count("\n") < 8).split("\n") == one, "no start without a step"
    assert render_trajectories(found, lambda text: text.count("\n") < 5).split("\n") == one[:4]
    assert render_trajectories(found, lambda text: False) == render_trajectories([], len) == "nothing"
