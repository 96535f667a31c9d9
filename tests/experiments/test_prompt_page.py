"""The page of filled-in prompts shows what models are sent today."""

from __future__ import annotations

import pathlib

import pytest

from experiments.analyses import prompt_page

PACKAGE = pathlib.Path(prompt_page.__file__).parents[2] / "embodied_mem"
SEATS = (
    "perceiver", "planner", "critic", "judge", "react", "rerank", "expand", "teacher",
    *(f"memory_{name}" for name in prompt_page.MEMORY),
)  # fmt: skip


def test_the_page_is_up_to_date(monkeypatch, tmp_path):
    page = prompt_page.PAGE.read_text(encoding="utf-8")
    assert prompt_page.main(["--check"]) == 0
    old = tmp_path / "prompts.md"
    old.write_text(page.replace("You are the critic of a robot.", "You criticise."))
    monkeypatch.setattr(prompt_page, "PAGE", old)
    assert prompt_page.main(["--check"]) == 1
    assert prompt_page.main([]) == 0
    assert old.read_text() == page


@pytest.mark.parametrize("name", [f"{seat}_{part}" for seat in SEATS for part in ("system", "user")])
def test_every_seat_is_on_the_page(name):
    text = prompt_page.filled()[name]
    assert text in prompt_page.PAGE.read_text(encoding="utf-8")
    assert text.strip() == text


def test_the_shown_situation_has_every_part():
    told = prompt_page.filled()["planner_user"]
    parts = [
        "Task: ",
        "At first: ",
        "Earlier steps:",
        "Last step: ",
        "Its answer: ",
        "Now:",
        "Remembered:",
        "The last plan",
    ]
    assert sorted(parts, key=told.index) == parts
    assert prompt_page.filled()["critic_user"].count("Next step: ") == 1


def test_every_prompt_of_memory_is_there():
    files = (PACKAGE / "memory" / "prompts").glob("*.txt")
    assert sorted(file.stem for file in files) == sorted(prompt_page.MEMORY)
