"""What the household world says: the house text of the prompt, first observations, answers in a small house."""

from __future__ import annotations

import memento_house
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.memento.data import load_tasks
from embodied_mem.worlds.memento.env import Env, MementoVectorEnv, candidates

_TAILS = (
    ". Use the appropriate tool to get a valid name.",
    ". This may not be the correct node name, try using appropriate tool to get the exact name. If that doesnt work, "
    "this node may just not exist yet, explore the house to discover.",
)


@pytest.fixture
def small(tmp_path):
    return Env(load_tasks("acquisition", memento_house.write_data(tmp_path))[0], seed=0)


def test_house_text_of_the_recorded_prompt(memento_data):
    prompt = (memento_data / "prompts_example.txt").read_text(encoding="utf-8")
    asked = prompt[prompt.rindex("\nTask: ") + 1 : prompt.rindex("\n\nPossible Actions:")]
    task = next(task for task in load_tasks("acquisition", memento_data) if task.name == "1001")
    assert Env(task).observation == asked


def test_every_episode_loads(memento_data):
    counts = {stage: len(load_tasks(stage, memento_data)) for stage in ("acquisition", "single", "joint")}
    assert counts == {"acquisition": 144, "single": 144, "joint": 24}
    for stage in counts:
        for task in load_tasks(stage, memento_data):
            env = Env(task)
            assert env.progress < 1.0
            assert env.observation.startswith(f"Task: {task.task}\n\nFurniture:\n")
            assert env.observation.endswith("\nObjects:\nNo objects found yet")


def test_house_text_orders_rooms_and_names_faucets(small):
    assert small.observation == (
        "Task: Put the cup and the book on the bed, next to each other.\n\nFurniture:\n"
        "kitchen_1: floor_kitchen_1, table_4, cabinet_5\nbedroom_1: floor_bedroom_1, bed_6, chest_of_drawers_7\n"
        "porch_1: floor_porch_1\n\nThe following furnitures have a faucet: cabinet_5\nObjects:\nNo objects found yet"
    )


def test_a_whole_task(small):
    script = (
        ("Explore[kitchen_1]", "Successful execution!", 0),
        ("Navigate[table_4]", "Successful execution!", 0),
        ("Pick[cup_0]", "Successful execution!", 0),
        ("Navigate[bed_6]", "Successful execution!", 0),
        ("Place[cup_0, on, bed_6, None, None]", "Successful execution!", 1 / 3),
        ("Navigate[book_1]", "Successful execution!", 1 / 3),
        ("Pick[book_1]", "Successful execution!", 1 / 3),
        ("Navigate[bed_6]", "Successful execution!", 1 / 3),
        ("Place[book_1, on, bed_6, next_to, cup_0]", "Successful execution!", 1),
    )
    for action, answer, progress in script:
        observation = small.step(action)
        assert observation.startswith(f"Result: {answer}\nObjects: "), action
        assert small.progress == pytest.approx(progress), action
    assert "cup_0: bed_6 in bedroom_1\nbook_1: bed_6 in bedroom_1" in observation
    assert small.won
    assert not small.ended
    small.step("Done[]")
    assert small.ended
    last = small.observation, small.sim_steps
    small.step("Pick[cup_0]")
    assert (small.observation, small.sim_steps) == last, "nothing happens after the end"


def test_every_failure_in_the_order_of_the_checks(small):
    """Derived from the order in which the original checks; a wrong order gives the neighbour's message."""
    fail = "Unexpected failure! - "
    place = fail + "Failed to place! "
    spot = fail + "No valid placements found for entity "
    wrong = (
        "Wrong use of API for place or rearrange. Please use [<object_to_be_moved>, <spatial_relation>, "
        "<furniture/floor to be placed>, <spatial_constraint> (Optional - None otherwise), "
        "<reference_object> (Optional - None otherwise)]"
    )
    inaccessible = "Could not find a suitable nav target for {}. Possibly inaccessible."
    unasked = "reference_object was valid, but corresponding spatial_constraint was none"
    grasping = "The arm is currently grasping cup_0. Make the agent place the grasped object first."
    on_or_within = "due to spatial relation can only be 'on' and 'within'"
    far = "chest_of_drawers_7 is occluded or too far from agent to Open."
    no_receptacle = " has no receptacle for proposition within"
    bracket = 'SyntaxError in Action directive. Opening "[" or closing "]" square bracket is missing!'
    infeasible = (
        "bed_6. It looks like the spatial constraint next_to is not feasible because the reference object book_1 "
        "either does not exist or has not yet been placed on the bed_6. Try placing the grasped object cup_0 on bed_6 "
        "without the spatial constraint next_to."
    )
    syntax = "Incorrect syntax for place/rearrange skill. "
    before = (
        ("Navigate[cup_0]", "Node with name cup_0 not present in the graph", True),
        ("Pick[cup_0]", "Node with name cup_0 not present in the graph", True),
        ("Place[cup_0, on, bed_6, None, None]", "Node with name cup_0 not present in the graph", True),
        ("Explore[porch_1]", fail + inaccessible.format("floor_porch_1"), False),
        ("Navigate[porch_1]", fail + inaccessible.format("porch_1"), False),
        ("Explore[kitchen_1]", "Successful execution!", False),
        ("Place[cup_0, on, bed_6]", wrong, True),
        ("Place[cup_0, on, None, None, None]", wrong, True),
        ("Place[cup_0, on, bed_6, None, book_1]", syntax + unasked, True),
        ("Place[cup_0, on, bed_6, next_to, spoon_9]", "Node with name spoon_9 not present in the graph", True),
        ("Place[cup_0, on, bed_6, None, None]", place + "The agent is not holding any object.", False),
        ("Navigate[table_4]", "Successful execution!", False),
        ("Pick[cup_0]", "Successful execution!", False),
        ("Pick[book_1]", fail + "Failed to pick book_1! " + grasping, False),
        ("Navigate[cup_0]", fail + "Failed! This object is already held by this agent.", False),
        ("Place[cup_0, on, book_1, None, None]", place + "Place receptacle is not furniture or floor.", False),
        ("Place[cup_0, on, bed_6, None, None]", place + "Not close enough to bed_6 or occluded.", False),
        ("Place[cup_0, under, table_4, None, None]", spot + on_or_within, False),
        ("Place[cup_0, on, table_4, beside, book_1]", spot + "due to spatial constraint can only be 'next_to'", False),
        ("Place[cup_0, on, table_4, next_to, cup_0]", spot + "due to Object cannot be 'next to' itself.", False),
        ("Place[cup_0, within, table_4, None, None]", spot + "due to Furniture table_4" + no_receptacle, False),
        ("Open[table_4]", fail + "Failed to Open! table_4 is not articulated - and cannot be Opened.", False),
        ("Open[chest_of_drawers_7]", fail + "Failed to Open! " + far, False),
        ("Navigate[bed_6]", "Successful execution!", False),
        (
            "Place[cup_0, on, bed_6, next_to, book_1]",
            spot + infeasible,
            False,
        ),
        ("Drop[cup_0]", 'Tool "Drop" not found', False),
        ("Thought: I wonder", bracket, False),
        ("DescribeObjectTool[cup_0]", "The description of the object 'cup_0' is:\nA red cup.", False),
        ("DescribeObjectTool[book_1]", "The description of the object 'book_1' is:\nnan", False),
        ("DescribeObjectTool[bed_6]", "The description of the object 'bed_6' is:\nnan", False),
        ("DescribeObjectTool[spoon_9]", "Object 'spoon_9' not found in the environment.", False),
        ("Thought: now I know.\n\nPlace[cup_0, on, bed_6, None, None]\n", "Successful execution!", False),
    )  # fmt: skip
    for action, answer, has_tail in before:
        small.step(action)
        assert small.response in ([answer + tail for tail in _TAILS] if has_tail else [answer]), action


def test_five_answers_in_a_row_that_are_no_action_end_the_run(small):
    for _ in range(4):
        small.step("I do not know")
    small.step("Wait[]")
    for k in range(5):
        assert not small.ended, k
        small.step("I do not know")
    assert small.ended


def test_costs_in_simulator_steps(small):
    for action, cost in (("Wait[]", 600), ("DescribeObjectTool[bed_6]", 0), ("Open[bed_6]", 1), ("Drop[x]", 0)):
        before = small.sim_steps
        small.step(action)
        assert small.sim_steps - before == cost, action


def test_finding_tools_by_rule(small):
    def ask(action):
        small.step(action)
        return small.response

    assert ask("FindReceptacleTool[a table in the kitchen]") == "- table_4 in kitchen"
    assert ask("FindReceptacleTool[dresser]") == "- chest_of_drawers_7 in bedroom"
    assert ask("FindReceptacleTool[something with a faucet]") == "- cabinet_5 in kitchen"
    answer = ask("FindReceptacleTool[a bed in the kitchen]")
    assert (
        answer
        == "No bed was found there. I was able to find the following pieces of that type though:\n- bed_6 in bedroom"
    )
    assert ask("FindRoomTool[a room to sleep with a bed]") == "- bedroom_1"
    assert ask("FindRoomTool[garage]").endswith("- kitchen_1, bedroom_1, porch_1")
    assert ask("FindObjectTool[cups]").startswith("No objects found yet")
    small.step("Explore[kitchen_1]")
    assert ask("FindObjectTool[cups]") == "- cup_0: table_4 in kitchen_1"
    assert ask("FindObjectTool[a cup in the bedroom]").endswith("though:\n- cup_0: table_4 in kitchen_1")
    for line in ("- cup_0: table_4 in kitchen_1", "- book_1: table_4 in kitchen_1"):
        assert line in ask("FindObjectTool[everything on the table]").split("\n")


def test_a_finder_that_says_no_text_is_refused(tmp_path):
    envs = MementoVectorEnv(load_tasks("acquisition", memento_house.write_data(tmp_path)), finder=lambda *_: 5)
    before = envs.reset()[0]
    with pytest.raises(InvalidInputError, match="got 'response': 5"):
        envs.step(["FindRoomTool[kitchen]"])
    assert envs.answers()[0] == before


def test_a_finder_answers_instead_of_the_rule(tmp_path):
    asked = []

    def finder(tool, query, listing):
        asked.append((tool, query, listing))
        return "- bed_6, I believe"

    tasks = load_tasks("acquisition", memento_house.write_data(tmp_path))
    envs = MementoVectorEnv(tasks, num_envs=2, finder=finder)
    envs.reset()
    observations, *_ = envs.step(["FindReceptacleTool[a place to rest]", "FindRoomTool[kitchen]\n"])
    assert [o.split("\n")[0] for o in observations] == ["Result: - bed_6, I believe"] * 2
    assert [entry[:2] for entry in asked] == [("FindReceptacleTool", "a place to rest"), ("FindRoomTool", "kitchen")]
    assert "Cabinet : cabinet_5 in kitchen with components: faucet" in asked[0][2]
    assert asked[1][2] == "kitchen_1\nbedroom_1\nporch_1"
    # The first tool that is opened counts, to the end of the line; no text takes long.
    envs.step(["So: FindRoomTool [FindObjectTool[a]]", "FindRoomTool[" * 70_000])
    assert [entry[:2] for entry in asked[2:]] == [("FindRoomTool", "FindObjectTool[a]")]
    envs.step(["Explore[kitchen_1]"] * 2)
    assert "cup_0 is in/on table_4 in kitchen_1 and " in candidates(envs.env(0), "FindObjectTool")
