"""The output grammar: any bytes give one of four types, rendering and parsing invert each other."""

from __future__ import annotations

import pytest
from brief_state_strategies import edits, noisy_text, outputs
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.compiler import (
    CompilerOutput,
    Create,
    Delete,
    Fold,
    OutputType,
    Update,
    parse_output,
    render_edit,
    render_output,
)
from embodied_mem.errors import InvalidInputError

EXAMPLE = """\
hybrid
+ searched: countertop 1
+ seen: apple 1 in fridge 1
~ at: countertop 1
- seen: apple 2
- holding
fold
do: find apple in fridge 1
why: apple was in fridge 1 before"""


def test_documented_text_reads_as_its_parts():
    output = parse_output(EXAMPLE)
    assert output == CompilerOutput(
        OutputType.HYBRID,
        "find apple in fridge 1",
        (
            Create("searched", "countertop 1"),
            Create("seen", "apple 1", "fridge 1"),
            Update("at", "countertop 1"),
            Delete("seen", "apple 2"),
            Delete("holding"),
            Fold(),
        ),
        "apple was in fridge 1 before",
    )
    assert output.well_formed
    assert render_output(output) == EXAMPLE


@settings(max_examples=300, derandomize=True)
@given(outputs)
def test_parse_inverts_render(output):
    text = render_output(output)
    assert parse_output(text) == output
    assert render_output(parse_output(text)) == text
    if text.isascii():
        assert parse_output(text.encode()) == output


@settings(max_examples=200, derandomize=True)
@given(edits)
def test_every_edit_survives_its_line(edit):
    assert parse_output(f"brief\n{render_edit(edit)}") == CompilerOutput(OutputType.BRIEF, edits=(edit,))


@settings(max_examples=500, derandomize=True)
@given(st.one_of(st.binary(max_size=80), noisy_text, noisy_text.map(lambda text: text.encode("utf-8", "replace"))))
def test_any_bytes_give_one_of_four_types(text):
    output = parse_output(text)
    assert output.type in set(OutputType)
    has = (output.guidance != "", len(output.edits) > 0)
    assert output.type == {(1, 0): "experience", (0, 1): "brief", (1, 1): "hybrid", (0, 0): "noaction"}[has]
    newline = b"\n" if isinstance(text, bytes) else "\n"
    lines = [line for line in text.split(newline) if line.strip()]
    read = len(output.edits) + sum(len(t.splitlines()) for t in (output.guidance, output.reason) if t)
    assert output.malformed + read <= len(lines) <= output.malformed + read + 1  # at most one line is the type
    clean = CompilerOutput(output.type, output.guidance, output.edits, output.reason)
    assert parse_output(render_output(clean)) == clean


@pytest.mark.parametrize(
    ("text", "kind", "malformed", "mismatched"),
    [
        ("", "noaction", 0, True),
        ("noaction", "noaction", 0, False),
        ("NoAction\nwhy: nothing seen", "noaction", 0, False),
        ("hybrid", "noaction", 0, True),
        ("noaction\ndo: x", "experience", 0, True),
        ("do: x", "experience", 0, True),
        ("experience\ndo:", "noaction", 1, True),
        ("experience\nhybrid\ndo: x", "experience", 1, False),
        ("brief\nfold\nfold: x\nfolded", "brief", 2, False),
        ("brief\n+at:desk 1", "brief", 0, False),
        ("brief\n+ goal: x\n+ done: x\n~ next: x\n+ seen: apple\n+ at\n- :x\n+\n- seen:\n* a", "noaction", 9, True),
        ("do: x\nexperience\nwhy: y", "experience", 0, False),
        (b"experience\ndo: \xff", "experience", 0, False),
    ],
)
def test_disagreement_and_malformed_lines_are_counted(text, kind, malformed, mismatched):
    output = parse_output(text)
    assert (output.type, output.malformed, output.mismatched) == (kind, malformed, mismatched)
    assert output.well_formed == (malformed == 0 and not mismatched)


def test_guidance_and_reason_may_have_lines():
    output = CompilerOutput.make("go  to desk 1\n\n look ", reason="a\nb")
    assert (output.type, output.guidance, output.reason) == ("experience", "go to desk 1\nlook", "a\nb")
    assert render_output(output) == "experience\ndo: go to desk 1\ndo: look\nwhy: a\nwhy: b"


@pytest.mark.parametrize(
    "output",
    [
        CompilerOutput(OutputType.BRIEF, "go"),
        CompilerOutput(OutputType.NOACTION, edits=(Fold(),)),
        CompilerOutput(OutputType.EXPERIENCE, " go"),
        CompilerOutput(OutputType.EXPERIENCE, "go\r"),
        CompilerOutput(OutputType.NOACTION, reason="a\n\nb"),
    ],
)
def test_inconsistent_outputs_are_not_rendered(output):
    with pytest.raises(InvalidInputError):
        render_output(output)
