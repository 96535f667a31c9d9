"""The page of filled-in prompts shows what models are sent today."""

from __future__ import annotations

import pathlib

from experiments.analyses import prompt_page

PACKAGE = pathlib.Path(prompt_page.__file__).parents[2] / "embodied_mem"


def test_the_page_is_up_to_date(monkeypatch, tmp_path):
    page = prompt_page.PAGE.read_text(encoding="utf-8")
    assert prompt_page.main(["--check"]) == 0
    old = tmp_path / "prompts.md"
    old.write_text(page.replace("You are the critic of a robot.", "You criticise."))
    monkeypatch.setattr(prompt_page, "PAGE", old)
    assert prompt_page.main(["--check"]) == 1
    assert prompt_page.main([]) == 0
    assert old.read_text() == page


def test_every_prompt_of_memory_is_there():
    files = (PACKAGE / "memory" / "prompts").glob("*.txt")
    assert sorted(file.stem for file in files) == sorted(prompt_page.MEMORY)
