"""A compiler behind a chat model: what it is sent, and what is read of its answers."""

from __future__ import annotations

import pathlib
import re

import pytest
from told_chat import ToldChat

from embodied_mem.agents.deliveries import CompiledMemory, make_delivery
from embodied_mem.compiler.output_grammar import parse_output, render_output
from embodied_mem.compiler.served_compiler import ServedCompiler
from embodied_mem.compiler.view import start_view
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory import Experiences
from embodied_mem.types import Episode, Step

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "prompts.md"
ROOM = (
    "You are in the middle of a room. Looking quickly around you, you see a desk 1, a drawer 2, a drawer 1, a shelf 1, "
    "and a sinkbasin 1."
)
LIFE = (
    Step(ROOM, "go to drawer 2"),
    Step("You arrive at drawer 2. On the drawer 2, you see a mug 1.", "take mug 1 from drawer 2"),
    Step("You pick up the mug 1 from the drawer 2.", "move mug 1 to shelf 1"),
)


def examples():
    """The answers in the system message."""
    text = prompt("embodied_mem.compiler", "compile")
    return [part.partition("\n\n")[0].partition(":\n")[2] for part in text.split("Example")[1:]]


def test_the_prompt_of_the_second_step_is_the_one_on_the_page():
    bank = Experiences()
    bank.add(Episode("old", "put some mug on shelf.", LIFE, True, "You move the mug 1 to the shelf 1."))
    view = start_view("put a clean mug in desk.", ROOM, bank.retrieve("put a clean mug in desk.", k=1, context=ROOM))
    page = PAGE.read_text(encoding="utf-8").partition("## Compiler")[2].partition("\n## ")[0]
    question, answer = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    model = ToldChat(examples()[0], answer)
    delivery = make_delivery("compiled_chat", ServedCompiler(model))
    delivery.begin([view])
    [first] = delivery.deliver([view], None)
    view.turns.append(("go to drawer 2", "You arrive at drawer 2. In it, you see a mug 1, and a pen 1."))
    [second] = delivery.deliver([view], None)
    assert (first.hint, second.hint) == ("find mug in drawer 2", "take mug 1 from drawer 2")
    assert model.asked[1] == question
    assert view.state.fact("searched") == ("drawer 2",)
    assert second.soft is None


def test_the_examples_of_the_system_message_are_in_the_grammar():
    assert len(examples()) == 2
    assert all(render_output(parse_output(text)) == text for text in examples())


@pytest.mark.parametrize(
    ("answer", "guidance", "is_well_formed"),
    [
        ("<think>do: sleep</think>experience\ndo: find mug in desk 1", "find mug in desk 1", True),
        ("```text\nnoaction\n```", "", True),
        ("Sure!\nexperience\ndo: find mug in desk 1", "find mug in desk 1", False),
        ("find mug in desk 1", "", False),
        ("", "", False),
    ],
)
def test_what_is_read_of_an_answer(answer, guidance, is_well_formed):
    [compiled] = ServedCompiler(ToldChat(answer)).compile(["a prompt"])
    assert (compiled.output.guidance, compiled.output.well_formed) == (guidance, is_well_formed)


def test_hints_are_not_cut_by_tokens_that_nobody_knows():
    with pytest.raises(InvalidInputError, match="expected all tokens of its hints"):
        CompiledMemory(ServedCompiler(ToldChat()), name="compiled_chat", hint_tokens=3)
