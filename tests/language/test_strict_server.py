"""Schemas against a server that is as strict as OpenAI's: what is sent passes, what is refused is asked once more."""

from __future__ import annotations

import json

import jsonschema
import pytest
from chat_answers import reply
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_server import DONE, QUESTION, event

from embodied_mem.agents.planner_critic.chat import VERDICT_SCHEMA, ChatPlanner, plan_schema
from embodied_mem.agents.robot.skills import Skill
from embodied_mem.language import ChatError, RecordedChatModel, complete_json
from embodied_mem.language.json_answers import read_json, strict_form
from embodied_mem.training.teachers.chat_teacher import SCHEMA as LESSON_SCHEMA

SKILLS = [Skill("take", ("thing", "place"), "", (), "take {thing} from {place}"), Skill("look", wording="look")]
OPTIONAL = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "count": {"type": "integer"}, "kind": {"enum": ["a", "b"]}},
    "required": ["place"],
}


def strict_problem(schema, path=()) -> str:
    """Why OpenAI's strict mode refuses a schema, in its words; empty if it takes it."""
    where = f"In context={path}, "
    if not path and (not isinstance(schema, dict) or schema.get("type") != "object" or "anyOf" in schema):
        return "schema must be a JSON Schema of 'type: \"object\"'."
    if not isinstance(schema, dict):
        return where + "schema must be an object."
    if "object" in str(schema.get("type")) or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return where + "'additionalProperties' is required to be supplied and to be false."
        if sorted(schema.get("required", ())) != sorted(schema.get("properties", {})):
            return where + "'required' is required to be supplied and to be an array including every key in properties."
    inner = [*schema.get("properties", {}).items(), *enumerate(schema.get("anyOf", ()))]
    inner += [("items", schema["items"])] if "items" in schema else []
    return next(filter(None, (strict_problem(value, (*path, key)) for key, value in inner)), "")


def strictly(answer, *, lengths=True, strict=True):
    """Refuses a schema as OpenAI does, and else gives the answer that `answer` makes of the schema."""

    def respond(body):
        described = body["response_format"]["json_schema"]
        problem = strict_problem(described["schema"]) if described.get("strict") else ""
        if described.get("strict") and not lengths and "maxLength" in json.dumps(described["schema"]):
            problem = "In context=('properties', 'why'), 'maxLength' is not permitted."
        if described.get("strict") and not strict:
            problem = "json_schema.strict: extra fields not permitted"
        if problem:
            text = f"Invalid schema for response_format {described['name']!r}: {problem}"
            return 400, {"error": {"message": text, "type": "invalid_request_error"}}, {}
        text = json.dumps(answer(described["schema"]))
        return (200, event(text) + DONE, {}) if body.get("stream") else reply(text)

    return respond


def bodies(server) -> list[dict]:
    return [body for _, _, body in server.requests]


def first_of(schema):
    """The dullest value of a strict schema: null where it may be."""
    if "anyOf" in schema:
        return first_of(schema["anyOf"][-1])
    if "enum" in schema:
        return schema["enum"][-1]
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][-1]
    if kind == "object":
        return {key: first_of(inner) for key, inner in schema["properties"].items()}
    dull = {"array": lambda: [first_of(schema["items"])], "string": lambda: "look", "integer": lambda: 1}
    return dull.get(kind, lambda: None)()


@pytest.mark.parametrize("schema", [plan_schema(SKILLS, 3), VERDICT_SCHEMA, LESSON_SCHEMA, OPTIONAL])
def test_our_schemas_pass(schema):
    strict = strict_form(schema)
    assert strict_problem(strict) == ""
    assert strict_problem({**schema, "required": []})  # the server does look


def test_a_plan_of_a_strict_server_is_usable(play):
    server, model = play(strictly(first_of))
    planner = ChatPlanner(model, SKILLS, max_steps=3)
    plan = planner.plan(situation())
    assert [(step.command, step.why) for step in plan.steps] == [("look", "")]
    assert (planner.unusable, len(bodies(server))) == (0, 1)
    sent = bodies(server)[0]["response_format"]["json_schema"]
    assert sent["strict"] is True
    take = sent["schema"]["properties"]["steps"]["items"]["anyOf"][0]
    assert take["required"] == ["skill", "thing", "place", "why"]
    assert take["properties"]["why"]["type"] == ["string", "null"]


def situation():
    from embodied_mem.agents.planner_critic.interfaces import Situation
    from embodied_mem.memory.lifelong import LifelongMemory
    from embodied_mem.worlds.alfworld.agent.rules import AlfworldRules

    memory, rules = LifelongMemory(), AlfworldRules()
    working = rules.begin(memory, "t", "put a mug in shelf.", "You see a desk 1.", ())
    return Situation("put a mug in shelf.", "You see a desk 1.", rules.beliefs(memory, working), None, memory)


def test_what_was_left_out_as_null_is_left_out(play):
    _, model = play(strictly(first_of))
    assert complete_json(model, QUESTION, OPTIONAL) == {"place": "look"}
    assert read_json('{"place": null}', OPTIONAL)[1] == "the answer['place'] should be of type string, not null"


@pytest.mark.parametrize("options", [{"lengths": False}, {"strict": False}], ids=["no lengths", "no strict mode"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_refuses_strict_mode_is_asked_once_more_and_remembered(play, options, stream):
    server, model = play(strictly(lambda schema: {"ok": True, "reason": ""}, **options), stream=stream)
    for _ in range(3):
        assert complete_json(model, QUESTION, VERDICT_SCHEMA) == {"ok": True, "reason": ""}
    asked = [body["response_format"]["json_schema"] for body in bodies(server)]
    assert [described["strict"] for described in asked] == [True, False, False, False]
    assert asked[1]["schema"] == VERDICT_SCHEMA
    assert (model.meter.calls, model.meter.failed, model.meter.retries) == (3, 0, 1)


def test_another_refusal_is_not_asked_again(play):
    server, model = play((400, b"too long", {}))
    with pytest.raises(ChatError, match="status 400: too long"):
        complete_json(model, QUESTION, VERDICT_SCHEMA)
    assert len(bodies(server)) == 1
    assert model._strict


def test_a_schema_without_a_strict_form_is_sent_as_it_is(play):
    free = {"type": "object", "properties": {"of": {"type": "object"}}, "required": ["of"]}
    server, model = play(strictly(lambda schema: {"of": {"any": 1}}))
    assert complete_json(model, QUESTION, free) == {"of": {"any": 1}}
    described = bodies(server)[0]["response_format"]["json_schema"]
    assert (described["strict"], described["schema"], len(bodies(server))) == (False, free, 1)


def test_a_recording_holds_the_schema_as_it_was_asked(play, tmp_path):
    """So that recordings made before there was a strict form are still found."""
    _, model = play(strictly(first_of))
    complete_json(RecordedChatModel(model, tmp_path / "calls.jsonl"), QUESTION, OPTIONAL)
    request = json.loads((tmp_path / "calls.jsonl").read_text())["request"]
    assert request["response_format"]["json_schema"] == {"name": "answer", "strict": True, "schema": OPTIONAL}


_LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 1},
        {"enum": ["a", 1]},
        {"type": ["string", "null"]},
        {"const": 2},
    ]
)


@st.composite
def objects(draw, inner):
    known = draw(st.dictionaries(st.sampled_from("abc"), inner, max_size=3))
    return {"type": "object", "properties": known, "required": [key for key in known if draw(st.booleans())]}


def _inner(inner):
    arrays = inner.map(lambda items: {"type": "array", "items": items})
    return objects(inner) | arrays | st.lists(inner, min_size=1, max_size=2).map(lambda some: {"anyOf": some})


def value_of(strict, draw):
    """Some value that fits a strict form."""
    for key in ("anyOf", "enum"):
        if key in strict:
            one = draw(st.sampled_from(strict[key]))
            return value_of(one, draw) if key == "anyOf" else one
    if "const" in strict:
        return strict["const"]
    kind = draw(st.sampled_from([strict["type"]] if isinstance(strict["type"], str) else strict["type"]))
    if kind == "object":
        return {key: value_of(inner, draw) for key, inner in strict["properties"].items()}
    if kind == "array":
        return [value_of(strict["items"], draw) for _ in range(draw(st.integers(0, 2)))]
    return {"string": "x", "integer": 3, "null": None}[kind]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(schema=objects(st.recursive(_LEAVES, _inner, max_leaves=5)), data=st.data())
def test_what_fits_the_strict_form_fits_without_its_nulls(schema, data):
    strict = strict_form(schema)
    assert strict_problem(strict) == ""
    value = value_of(strict, data.draw)
    assert jsonschema.Draft202012Validator(strict).is_valid(value)
    read, wrong = read_json(json.dumps(value), schema)
    assert not wrong, (strict, schema, value)
    assert jsonschema.Draft202012Validator(schema).is_valid(read)


@pytest.mark.parametrize("schema", [None, 3, [], {"type": "object", "properties": 3}, {"type": "object", "anyOf": 5}])
def test_what_is_no_schema_has_no_strict_form(schema):
    assert strict_form(schema) is None
