"""Regular expressions read any text in time that grows with its length alone."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import linear_patterns
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

MADE_LATER = {
    "embodied_mem.agents.robot.skills: ''.join((re.escape(text) + (f'(?P<{field}>.+?)' if field els",
    "embodied_mem.atomic_file: re.escape(f'.{path.name}.') + '[0-9a-f]{16}\\.partial'",
    "embodied_mem.language.json_answers: schema['pattern']",
    "embodied_mem.memory.words: pattern + _no_letter_after(last)",
    "embodied_mem.memory.stored_modules: '|'.join((f'(?:{piece})' for piece in pieces))",
    "embodied_mem.memory.words: '\\s+'.join(map(re.escape, asked.split()))",
    "embodied_mem.memory.words: re.escape(asked)",
    "embodied_mem.memory.words: single",
    "embodied_mem.models.encoders.mpnet: pattern",
    "embodied_mem.models.sentence_encoders: pattern",
    "embodied_mem.worlds.scienceworld.subgoals: text",
    "experiments.solvers.memento.variants: pattern",
    "experiments.solvers.memento.reading: self._mention.pattern.replace(preposition, '\\b(?P<prep>)', ",
    "experiments.solvers.scienceworld.agents: '|'.join(map(re.escape, self._kin))",
    "experiments.solvers.scienceworld.agents: f'\\b{kind} \\d+' if numbered else f'(?<= )(?!{_NO_MODIFIER}",
    "experiments.solvers.scienceworld.agents: inside",
}
"""Calls with a pattern of names, or of one that stands in no module: nobody saw it made."""

PLANTED = {
    r"(\s+)*x": "match",
    r"(a|a)*b": "match",
    r"a?\s*,?\s*b": "search",
    r"put\s*,?\s*b": "match",
    r".*foo.*bar": "search",
    r",?\s+and\s+(?=my\s+[a-z' -]+?\s+(?:is|are)\s)": "split",
    r"\s+\Z": "sub",
    r"\w+@": "findall",
    r"On the (.+?), you see (.*?)\.?\Z": "match",
    r"take (.+ \d+) from (.+ \d+)": "fullmatch",
    r"a(?!.*b)": "finditer",
}
LINEAR = {
    r"(?<!\s)\s+\Z": "sub",
    r"(?s)On the (.+?), you see (.*?)\.?\Z": "match",
    r"\s*+,?\s*+b": "match",
    r"\b\w+@": "findall",
    r"a+b": "match",
}


@pytest.mark.parametrize("pattern", PLANTED)
def test_a_slow_pattern_is_found(pattern):
    # An engine that is in a loop over one set does not look at the clock: a third of the length takes a ninth.
    assert linear_patterns.slow_text(re.compile(pattern), PLANTED[pattern], budget_s=0.1, length=30_000) is not None


@pytest.mark.parametrize("pattern", LINEAR)
def test_a_linear_pattern_is_none(pattern):
    assert linear_patterns.slow_text(re.compile(pattern), LINEAR[pattern]) is None


def test_each_pattern_is_linear():
    program = [sys.executable, linear_patterns.__file__, "embodied_mem", "experiments"]
    told = json.loads(subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    assert told["patterns"] > 400
    assert not told["slow"]
    assert {call.replace("\\\\", "\\") for call in told["unseen"]} <= MADE_LATER
