"""Tables of words: what a lexicon's file says, and that every lexicon is installed with the package."""

from __future__ import annotations

from experiments.solvers.words import guess, lexicon_of, phrases_of, table_of


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
