"""Tables of words: what a lexicon's file says, and that every lexicon is installed with the package."""

from __future__ import annotations

import pathlib
import tomllib

from embodied_mem.language.word_votes import guess, lexicon_of, phrases_of, table_of

ROOT = pathlib.Path(__file__).parents[2]


def test_a_lexicon_is_read_as_it_is_written(tmp_path, monkeypatch):
    folder = tmp_path / "cellar_words"
    folder.mkdir()
    (folder / "__init__.py").touch()
    text = "# wines\n[things]\nred wine, claret: wine|port\n\n[uses]\ndrink toast: wine|tea\n"
    (folder / "lexicon.txt").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    tables = lexicon_of("cellar_words")
    assert list(tables) == ["things", "uses"]
    phrases = phrases_of(tables["things"], "|")
    assert phrases == {("red", "wine"): ("wine", "port"), ("claret",): ("wine", "port")}
    assert phrases_of("cup: Cup Mug") == {("cup",): ("Cup", "Mug")}
    assert guess(("to", "drink"), table_of(tables["uses"], "|")) == ("wine", "tea")


def test_every_lexicon_is_installed():
    installed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    package = ROOT / "embodied_mem"
    held = {path for pattern in installed["embodied_mem"] for path in package.glob(pattern)}
    assert {*package.rglob("lexicon.txt")} <= held
    assert len([*package.rglob("lexicon.txt")]) >= 2
