"""The page of filled-in prompts shows what models are sent today."""

from __future__ import annotations

import pathlib
import re

from embodied_mem.agents.robot.perceiver import filled_prompt

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "prompts.md"
KNOWN = [("banana", "on", "counter"), ("agent", "next to", "banana"), ("oven", "is", "closed")]


def test_the_perceivers_prompt_is_the_one_on_the_page():
    blocks = re.findall(r"```text\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    instruction, question = filled_prompt("a hand at a counter", "pick(banana)", KNOWN)
    assert blocks[:2] == [instruction, question]
