"""JSON answers: the checker against the package `jsonschema`, and the repair of a wrong answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.language import ChatError, ChatReply, complete_json
from embodied_mem.language.chat import UsageMeter
from embodied_mem.language.json_answers import KEYWORDS, check_schema, problems, read_json

SCHEMA = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "minLength": 1},
        "steps": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["place"],
    "additionalProperties": False,
}
QUESTION = [{"role": "user", "content": "Where?"}]

_KEYS = st.sampled_from(["a", "b", "c"])
_SCALARS = st.sampled_from([None, True, False, 0, 1, -1, 2, 1.0, 0.5, "", "a", "ab", "b1"])
VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3), max_leaves=8
)
_SMALL = st.integers(0, 2)


def _schemas(inner):
    types = st.sampled_from(["object", "array", "string", "boolean", "null", "number", "integer"])
    return st.fixed_dictionaries(
        {},
        optional={
            "type": types | st.lists(types, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "properties": st.dictionaries(_KEYS, inner, max_size=2),
            "required": st.lists(_KEYS, max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "minItems": _SMALL,
            "maxItems": _SMALL,
            "minimum": _SMALL,
            "maximum": _SMALL,
            "minLength": _SMALL,
            "maxLength": _SMALL,
            "pattern": st.sampled_from(["a", "^b", "1$"]),
            "title": st.just("t"),
        },
    )


SCHEMAS = st.recursive(st.booleans() | _schemas(st.booleans()), _schemas, max_leaves=4)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(schema=SCHEMAS, value=VALUES)
def test_the_checker_agrees_with_jsonschema(schema, value):
    jsonschema = pytest.importorskip("jsonschema", reason="install it with: pip install 'embodied_mem[test]'")
    check_schema(schema)
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    found = list(problems(value, schema))
    assert (not found) == expected, (found, schema, value)


def test_all_keywords_were_compared():
    """The comparison above draws every keyword that the checker claims to know."""
    drawn = set(_schemas(st.booleans()).wrapped_strategy.optional) | {"description"}
    assert drawn == KEYWORDS


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"a": {"oneOf": []}}}, r"schema\.properties\.a: .* got \['oneOf'\]"),
        ({"items": {"type": "text"}}, r"schema\.items\.type: .* got 'text'"),
        ({"anyOf": [{}, 3]}, r"schema\.anyOf\[1\]"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema, message):
    with pytest.raises(InvalidInputError, match=message):
        complete_json(None, QUESTION, schema)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"place": "fridge 1"}', ""),
        (' ```json\n{"place": "fridge 1"}\n``` ', ""),
        ('```\n{"place": "fridge 1"}```', ""),
        ("", "it is no JSON"),
        ('{"place": "fridge 1"', "it is no JSON"),
        ('{"place": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ('{"place": ""}', "at least 1, not 0"),
        ("{}", "should have the key 'place'"),
        ('{"place": "x", "why": 1}', "the answer['why'] is not allowed"),
        ('{"place": "x", "steps": ["a", 2]}', "the answer['steps'][1] should be of type string, not 2"),
        ('"fridge 1"', 'should be of type object, not "fridge 1"'),
    ],
)
def test_what_is_wrong_is_said(text, wrong):
    value, found = read_json(text, SCHEMA)
    assert wrong in found
    if not wrong:
        assert (value, found) == ({"place": "fridge 1"}, "")


class Scripted:
    """Gives its answers in order and remembers what it was asked."""

    name = "scripted"

    def __init__(self, *answers):
        self.answers, self.asked, self.meter = list(answers), [], UsageMeter()

    def complete(self, messages, **settings):
        self.asked.append((list(messages), settings))
        return self.answers.pop(0)


def test_a_wrong_answer_is_repaired_once():
    model = Scripted(ChatReply('{"place": 3}'), ChatReply('{"place": "fridge 1"}'))
    assert complete_json(model, QUESTION, SCHEMA, name="plan", max_tokens=9) == {"place": "fridge 1"}
    (first, settings), (second, _) = model.asked
    assert first == QUESTION
    assert settings["response_format"]["json_schema"] == {"name": "plan", "strict": True, "schema": SCHEMA}
    assert (settings["max_tokens"], settings["temperature"]) == (9, 0.0)
    assert second[:2] == [*QUESTION, {"role": "assistant", "content": '{"place": 3}'}]
    assert "the answer['place'] should be of type string, not 3" in second[2]["content"]
    assert (model.meter.malformed, model.meter.repaired) == (1, 1)


def test_what_stays_wrong_is_an_error_with_the_answer():
    model = Scripted(ChatReply("no"), ChatReply('{"pla', finish_reason="length"))
    with pytest.raises(ChatError, match=r"fits 'answer', got '{\"pla': it is no JSON.*cut off at 512 tokens") as caught:
        complete_json(model, QUESTION, SCHEMA)
    assert caught.value.kind == "malformed"
    assert (model.meter.malformed, model.meter.repaired, len(model.asked)) == (2, 0, 2)
    model = Scripted(ChatReply("no"), ChatReply(json.dumps({"place": "x"})))
    with pytest.raises(ChatError, match="no JSON"):
        complete_json(model, QUESTION, SCHEMA, repairs=0)
    assert len(model.asked) == 1


def test_an_open_ended_answer_is_read_as_far_as_it_goes():
    cut = ChatReply('{"place": "bed", "steps": ["go", "loo', finish_reason="length")
    model = Scripted(cut)
    assert complete_json(model, QUESTION, SCHEMA, is_open_ended=True) == {"place": "bed", "steps": ["go"]}
    assert model.meter.malformed == 0
    for answers in ([cut, cut], [ChatReply(cut.text), ChatReply(cut.text)]):  # not asked for, or not cut off
        with pytest.raises(ChatError):
            complete_json(Scripted(*answers), QUESTION, SCHEMA, is_open_ended=answers[0] is not cut)
