"""ScienceWorld in few words: what a look becomes, and a path as numbered lines in our names."""

from __future__ import annotations

from experiments.solvers.scienceworld.gold_paths import GoldPath, Step
from experiments.solvers.scienceworld.narration import MAX_LINES, Narrator, PathBank, lines_of, things_of

KITCHEN = (
    "This room is called the kitchen. In it, you see: \n"
    "\tthe agent\n"
    "\ta substance called air\n"
    "\ta chair. On the chair is: nothing.\n"
    "\ta counter. On the counter is: a bowl (containing a red apple, a banana), a drawer.\n"
    "\ta cupboard. The cupboard door is open. In the cupboard is: a tin cup (containing nothing).\n"
    "\ta oven, which is turned off. The oven door is closed. \n"
    "\ta sink, which is turned on. In the sink is: nothing.\n"
    "\ta substance called soap\n"
    "\ta thermometer, currently reading a temperature of 10 degrees celsius\n"
    "You also see:\n"
    "\tA door to the hallway (that is open)\n"
    "\tA door to the outside (that is closed)"
)
THINGS = (
    "chair; counter: bowl (red apple, banana), drawer; cupboard open: tin cup; oven closed; sink, which is turned on; "
    "soap; thermometer; doors: hallway open, outside"
)
BOIL = "Your task is to boil {}. First, focus on the substance."


def test_a_look_becomes_the_names_of_things():
    assert things_of(KITCHEN) == THINGS


def test_an_answer_is_followed_by_what_was_seen_in_this_room():
    narrator = Narrator(KITCHEN)
    assert narrator.first == f"kitchen: {THINGS}"
    said = narrator.tell("focus on soap", "You focus on\n\tthe soap.")
    assert said == f"You focus on the soap.\nkitchen: {THINGS}"
    before = "\nbefore: focus on soap"
    hallway, kitchen = "You move to the hallway.", "You move to the kitchen."
    assert narrator.tell("go to hallway", hallway) == f"{hallway}\nhallway{before}"
    assert narrator.tell("go to kitchen", kitchen) == f"{kitchen}\nkitchen{before}"  # what is there may have changed
    assert narrator.tell("look around", KITCHEN) == narrator.first + before
    for number in range(9):
        said = narrator.tell(f"pick up {number}", "Done.")
    assert said.endswith("\nbefore: pick up 4; pick up 5; pick up 6; pick up 7")


def test_waits_that_follow_each_other_are_one_line_and_other_steps_are_not():
    commands = ["open oven", "wait", "examine water", "wait", "examine water", "open oven", "wait"]
    lines, where = lines_of([Step("kitchen", command, "") for command in commands])
    assert [line.command for line in lines] == ["open oven", "wait", "examine water", "open oven"]
    assert [line.again for line in lines] == [False, True, True, False]
    assert where == [0, 1, 2, 1, 2, 3, 1]


def path(variation: int, thing: str, commands: tuple[str, ...]) -> GoldPath:
    answers = tuple("You move to the hallway." if c.startswith("go to") else "Done." for c in commands)
    return GoldPath("boil", variation, BOIL.format(thing), KITCHEN, commands, answers)


def test_a_path_is_remembered_in_our_names_without_its_ways():
    bank = PathBank([path(0, "water", ("open oven", "go to hallway", "focus on water", "wait1", "wait1"))])
    [memory] = bank.retrieve(BOIL.format("lead"), k=1)
    assert memory.brief() == "@ kitchen\n1 open oven\n@ hallway\n2 focus on lead\n3 wait1 *"
    assert memory.name(1) == "2 focus on lead"


def test_the_own_path_is_left_out_and_long_ones_are_cut():
    many = tuple(f"open box {i}" for i in range(50))
    bank = PathBank([path(3, "water", ("open oven", "open fridge")), path(4, "lead", many)])
    [memory] = bank.retrieve(BOIL.format("water"), k=2, exclude_task_ids=("boil/3",))
    assert len(memory.lines) == MAX_LINES
    assert bank.retrieve(BOIL.format("water"), k=1)[0].brief() == "@ kitchen\n1 open oven\n2 open fridge"
