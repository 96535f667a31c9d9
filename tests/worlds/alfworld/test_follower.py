"""What guidance says at each level, and what carrying it out word by word comes to."""

import pytest

from embodied_mem.agents.deliveries import GUIDANCE
from embodied_mem.worlds.alfworld.wording.follower import Follower

ROOM = "task: put a clean mug in desk\nroom: desk 1; drawer 2; sinkbasin 1\n"
FAR = f"{ROOM}hint: find mug in drawer 2\n>"
CLOSED = f"{ROOM}> go to drawer 2\nThe drawer 2 is closed.\nat: drawer 2\nhint: take mug 1 from drawer 2\n>"
OPEN = f"{ROOM}> open drawer 2\nYou open the drawer 2.\nat: drawer 2\nhint: take mug 1 from drawer 2\n>"
SINK = f"{ROOM}at: sinkbasin 1\nhint: clean mug 1 with sinkbasin 1\n>"
DESK = f"{ROOM}at: desk 1\nhint: put mug 1 in desk 1\n>"
SAID = {
    "far": (FAR, "find mug", "find mug in drawer 2", "go to drawer 2", "go to drawer 2"),
    "closed": (CLOSED, "take mug 1", "take mug 1 from drawer 2", "open drawer 2", "open drawer 2"),
    "open": (OPEN, "take mug 1", "take mug 1 from drawer 2", "take mug 1", "take mug 1 from drawer 2"),
    "sink": (SINK, "clean mug 1", "clean mug 1 with sinkbasin 1", "clean mug 1", "clean mug 1 with sinkbasin 1"),
    "desk": (DESK, "put mug 1", "put mug 1 in desk 1", "move mug 1 to desk 1", "move mug 1 to desk 1"),
}


@pytest.mark.parametrize("case", SAID)
def test_a_hint_says_as_much_as_its_level_and_is_carried_out_as_said(case):
    prompt, *hints = SAID[case]
    command = hints[-1]
    for level, hint in zip(GUIDANCE, hints, strict=True):
        before, _, after = prompt.rpartition(prompt[prompt.index("hint: ") : prompt.rindex("\n")])
        assert Follower().reworded(prompt, level) == f"{before}hint: {hint}{after}"
        done = {"subgoal": "look", "place": command, "short": hint, "command": command}[level]
        assert Follower().at(level).act([prompt], None).actions == [done]
    assert Follower().act([prompt], None).actions == [command]


@pytest.mark.parametrize("level", GUIDANCE)
def test_without_a_hint_it_looks(level):
    prompt = f"{ROOM}at: desk 1\n>"
    assert Follower().reworded(prompt, level) == prompt
    assert Follower().at(level).act([prompt], None).actions == ["look"]


def test_the_older_grammar_puts():
    hint = Follower("0.3").reworded(DESK, "short")
    assert "hint: put mug 1 in/on desk 1\n" in hint
    assert Follower("0.3").at("command").act([DESK], None).actions == ["put mug 1 in/on desk 1"]


@pytest.mark.parametrize(
    "command",
    ["go to drawer 2", "open drawer 2", "examine drawer 2", "use desklamp 1", "move mug 1 to desk 1",
     "put mug 1 in/on desk 1", "take mug 1 from desk 1", "clean mug 1 with sinkbasin 1", "look"],
)  # fmt: skip
def test_what_is_a_command_already_is_given_as_it_is(command):
    here = command.rpartition(" from ")[2] if " from " in command else command.rpartition(" with ")[2]
    prompt = f"{ROOM}at: {here}\nhint: {command}\n>"
    assert Follower().act([prompt], None).actions == [command]
    assert Follower().at("command").act([prompt], None).actions == [command]
