"""The chat agent for household tasks: its prompt, its turns, answers that are no action."""

from __future__ import annotations

import pytest

from embodied_mem.language.chat import ChatError, ChatReply, UsageMeter
from embodied_mem.language.recorded_chat import RecordedChatModel
from embodied_mem.worlds.memento.agent.react import ReActAgent, Reply, parse_reply
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep, parse_action

FIRST = (
    "Task: Put the cup on the bed.\n\nFurniture:\nkitchen_1: floor_kitchen_1, table_4\nObjects:\nNo objects found yet"
)


class Script:
    """A chat model that says given answers in turn and keeps what it was asked."""

    name = "script"

    def __init__(self, *answers):
        self.meter = UsageMeter()
        self.answers = list(answers)
        self.asked: list[list[dict]] = []

    def complete(self, messages, *, max_tokens=512, temperature=0.0, response_format=None, on_text=None):
        self.asked.append([dict(message) for message in messages])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ChatReply(answer)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Thought: I look.\n\nExplore[kitchen_1]", Reply("I look.", "Explore[kitchen_1]")),
        ("Thought: I look.\nAction: Pick[cup_1]", Reply("I look.", "Pick[cup_1]")),
        ("Explore[kitchen_1]\nResult: Successful", Reply("", "Explore[kitchen_1]")),
        ("I cannot do that.", Reply("", "I cannot do that.")),
        ("", Reply("", "")),
    ],
)
def test_thought_and_action_of_an_answer(text, reply):
    assert parse_reply(text) == reply


def test_prompt_and_turns():
    model = Script("Thought: a.\nExplore[kitchen_1]\nAssigned!", "Thought: b.\nDone[]\nAssigned!")
    agent = ReActAgent(model, max_examples=1)
    memory = Trace("1", "s", "Bring the mug.", (TraceStep("Why.", "Pick[mug_0]", "Result: ok"),))
    agent.begin("Put the cup on the bed.", FIRST, [memory, Trace("2", "s", "Never shown.")])
    assert agent.act(FIRST).action == "Explore[kitchen_1]"
    assert agent.act("Result: Successful execution!") == Reply("b.", "Done[]")
    first, second = model.asked
    assert [message["role"] for message in first] == ["system", "user"]
    asked = first[1]["content"]
    order = [
        "Example 1:\nTask: Bring the mug.",
        "Pick[mug_0]",
        "Task: Put the cup",
        "Possible actions:",
        "Answer in this",
    ]
    assert sorted(order, key=asked.index) == order
    assert "Never shown" not in asked
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[-1]["content"] == "Result: Successful execution!"


def test_answers_without_an_action_are_counted_and_a_used_up_budget_ends_the_run():
    model = Script("no idea", ChatError("server", "late"), "Done[]", ChatError("spent", "budget"))
    agent = ReActAgent(model)
    agent.begin("x", FIRST)
    assert [agent.act(FIRST).action for _ in range(3)] == ["no idea", "", "Done[]"]
    assert (agent.answers, agent.malformed) == (3, 2)
    with pytest.raises(ChatError, match="spent"):
        agent.act(FIRST)


def test_a_recorded_run_says_the_same_again(tmp_path):
    def played(model):
        agent = ReActAgent(model)
        agent.begin("x", FIRST)
        return [agent.act(FIRST), agent.act("Result: Successful execution!")]

    once = played(RecordedChatModel(Script("Explore[kitchen_1]", "Done[]"), tmp_path / "calls.jsonl"))
    assert played(RecordedChatModel(None, tmp_path / "calls.jsonl", name="script")) == once


SEEN = "Result: Successful execution!\nObjects: cup_0: table_4 in kitchen_1"
FAR = "Result: Not close enough to the object.\nObjects: cup_0: table_4 in kitchen_1"


def test_only_the_newest_list_of_objects_is_sent():
    model = Script("Explore[kitchen_1]", "Pick[cup_0]", "Done[]")
    agent = ReActAgent(model)
    agent.begin("Put the cup on the bed.", FIRST)
    for observation in (FIRST, SEEN, FAR):
        agent.act(observation)
    contents = [message["content"] for message in model.asked[-1]]
    assert FIRST in contents[1]
    assert contents[3] == "Result: Successful execution!"
    assert contents[5] == FAR


def test_an_action_that_is_refused_again_is_named():
    model = Script(*["Thought: now.\nPick[cup_0]"] * 4, "FindObjectTool[cup]", "FindObjectTool[cup]", "Done[]")
    agent = ReActAgent(model)
    agent.begin("Put the cup on the bed.", FIRST)
    agent.act(FIRST)
    for observation in (FAR, FAR, FAR, SEEN, FAR, FAR):
        agent.act(observation)
    newest = [asked[-1]["content"] for asked in model.asked[1:]]
    assert newest[:3] == [
        FAR,
        f"{FAR}\nPick[cup_0] was refused twice: try another action.",
        f"{FAR}\nPick[cup_0] was refused 3 times: try another action.",
    ]
    assert newest[3:] == [SEEN, FAR, FAR]  # a tool that finds nothing refuses nothing


def test_without_memories_there_is_an_example_of_another_house():
    model = Script("Done[]", "Done[]")
    for memories in ([], [Trace("1", "s", "Bring the mug.", (TraceStep("Why.", "Pick[mug_0]", "Result: ok"),))]):
        agent = ReActAgent(model)
        agent.begin("Put the cup on the bed.", FIRST, memories)
        agent.act(FIRST)
    alone, with_memory = (asked[1]["content"] for asked in model.asked)
    assert alone.startswith("Example of a task in another house:\n")
    assert with_memory.startswith("Below are example solutions")
    assert "another house" not in with_memory
    calls = [line for line in alone.partition("\n\nTask: ")[0].splitlines() if parse_action(line)[0]]
    assert [parse_action(call)[0] for call in calls] == ["Explore", "Navigate", "Pick", "Navigate", "Place", "Done"]
