"""What readers assert of sentences of many forms: nothing that the sentence does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.readers import EVERYDAY

_LINES = [line.split("|") for line in Path(__file__).with_name("sentences.txt").read_text("utf-8").splitlines()[1:]]
SENTENCES = [(line[0].strip(), {one.strip() for one in line[1:]} - {"-"}) for line in _LINES]


def test_of_a_hundred_asserted_facts_ninety_nine_are_said():
    said, asserted, wrong, read = 0, 0, [], 0
    for text, facts in SENTENCES:
        found = {" ".join(fact) for fact in EVERYDAY.read(text).facts}
        asserted, said, read = asserted + len(found), said + bool(facts), read + bool(found)
        wrong += [(text, fact) for fact in found - facts]
    assert len(SENTENCES) >= 200
    assert len(wrong) <= asserted / 100, wrong
    assert read >= 0.4 * said


@pytest.mark.parametrize("text", [text for text, facts in SENTENCES if not facts])
def test_what_is_not_asserted_is_a_note(text):
    memory = LifelongMemory()
    memory.begin_task("t", "tidy up", "", place="kitchen")
    memory.observe("look", text)
    if not EVERYDAY.read(text).complete:
        assert [note.text for note in memory.get_all("notes")] == [text]
    memory.close()
