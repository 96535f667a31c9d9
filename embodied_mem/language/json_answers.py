"""JSON from a chat model, checked against a schema, with one try at repair.

    schema = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"],
              "additionalProperties": False}
    complete_json(model, messages, schema)["place"]

The checker knows the part of JSON Schema that such answers need (`KEYWORDS`) and refuses a schema with more: what is
not checked would be a promise that is not kept.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from ..errors import InvalidInputError
from .chat import ChatError, ChatModel, Json, Message

KEYWORDS = {
    "type", "enum", "const", "anyOf", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
    "minimum", "maximum", "minLength", "maxLength", "pattern", "title", "description",
}  # fmt: skip
"""Keywords that `problems` understands; the last two say nothing about a value."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float),
    "integer": (int, float),
}  # fmt: skip
MAX_DEPTH = 100
"""Deepest nesting that is read."""


def complete_json(
    model: ChatModel,
    messages: Sequence[Message],
    schema: Json,
    *,
    name: str = "answer",
    max_tokens: int = 512,
    temperature: float = 0.0,
    repairs: int = 1,
    is_open_ended: bool = False,
) -> object:
    """Return the model's answer as JSON data that fits `schema`.

    The schema goes along as `response_format`, which servers may or may not keep to. An answer that does not fit is
    counted in `model.meter.malformed` and shown to the model once more with what is wrong. Thoughts, words and Markdown
    around the JSON are taken off (`find_json`).

    Args:
        name: of the schema, for the server.
        repairs: how often a wrong answer may be repaired.
        is_open_ended: whether an answer that was cut off is read as far as it goes, if that fits.

    Raises:
        ChatError: of kind "malformed", no answer fitted; or as `ChatModel.complete`.
        InvalidInputError: the schema has a keyword outside `KEYWORDS`.
    """
    check_schema(schema)
    asked = list(messages)
    response_format = {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}
    for attempt in range(repairs + 1):
        reply = model.complete(asked, max_tokens=max_tokens, temperature=temperature, response_format=response_format)
        value, wrong = read_json(reply.text, schema)
        if wrong and is_open_ended and reply.finish_reason == "length":
            whole, missing = read_json(close_json(reply.text), schema)
            value, wrong = (whole, "") if not missing else (value, wrong)
        if not wrong:
            if attempt:
                model.meter.add(repaired=1)
            return value
        model.meter.add(malformed=1)
        if reply.finish_reason == "length":
            wrong += f"; the answer was cut off at {max_tokens} tokens"
        asked = [
            *messages,
            {"role": "assistant", "content": reply.text or "(nothing)"},  # servers refuse an empty turn
            {"role": "user", "content": f"That is not what was asked for: {wrong}. Answer again, with the JSON only."},
        ]
    raise ChatError(f"{model.name}: expected JSON that fits {name!r}, got {reply.text[:200]!r}: {wrong}", "malformed")


def read_json(text: str, schema: Json) -> tuple[object, str]:
    """Return (value, what is wrong with it) of an answer.

    The second is empty if the value fits. A property that is null, need not be there and may not be null counts as left
    out: what `strict_form` asks for. Where the value may stand: `find_json`. Takes time in proportion to the length of
    the text.
    """

    def check(value: object) -> tuple[object, str]:
        value = _without_nulls(value, schema)
        return value, "; ".join(itertools.islice(problems(value, schema), 3))

    return find_json(text, check)


def find_json(text: str, check: Callable[[object], tuple[object, str]]) -> tuple[object, str]:
    """Return (value, what is wrong with it) of an answer's JSON.

    That is the whole answer, but for a Markdown fence; or else the object or list with which `check` finds nothing
    wrong, among words, fences and thoughts (`without_thoughts`). Several of them that differ are none, an answer that
    was cut off is none, and after thoughts without an end only a value that ends the answer is one.

    Args:
        check: the value as it is meant, and what is wrong with it; empty for nothing.
    """
    try:
        value = load_json(_without_fence(text.strip().lstrip("\ufeff")), parse_constant=_refuse)
    except ValueError as error:
        wrong = f"it is no JSON ({error})"
    else:
        return check(value)
    said, has_end = _spoken(text)
    fitting: list[object] = []
    for value in _values_in(said, at_end=not has_end):
        value, wrong = check(value)
        if not wrong and not any(_same(value, other) for other in fitting):
            fitting.append(value)
        if len(fitting) > 1:
            return None, "it holds several answers that differ"
    return (fitting[0], "") if fitting else (None, wrong)


def close_json(text: str) -> str:
    """Close a JSON object that was cut off; "" without one.

    close_json('{"facts": [["mug", "on", "table"], ["spo')       # '{"facts": [["mug", "on", "table"]]}'
    """
    answer = without_thoughts(text)
    start, whole, closing = answer.find("{"), 0, ""
    if start < 0:
        return ""
    open_: list[str] = []
    is_text = is_escaped = False
    for place in range(start, len(answer)):
        sign = answer[place]
        if is_text:
            is_text = is_escaped or sign != '"'
            is_escaped = sign == "\\" and not is_escaped
        elif sign == '"':
            is_text = True
        elif sign in "{[":
            open_.append("}" if sign == "{" else "]")
        elif sign in "}]":
            if not open_ or open_.pop() != sign:
                break
            whole, closing = place + 1, "".join(reversed(open_))
        elif sign == "," and open_:
            whole, closing = place, "".join(reversed(open_))
        if not open_ or len(open_) > MAX_DEPTH:
            break
    return answer[start:whole] + closing if whole else ""


def without_thoughts(text: str) -> str:
    """Return an answer without what a model thought aloud.

    That is `<think>...</think>` and the forms of other models. An end alone ends thoughts that began in the prompt. A
    beginning without an end is left out by itself.
    """
    return _spoken(text)[0].strip()


# Tags of DeepSeek, Qwen, Seed, Kimi, Magistral, Sky-T1; the final channel of gpt-oss.
_THOUGHTS = re.compile(
    r"(</?(?:seed:)?(?:think|thinking|thought|thoughts|reasoning)>|\[/?THINK\]|\u25c1/?think\u25b7"
    r"|<\|(?:begin|end)_of_thought\|>)",
    re.IGNORECASE,
)
_FINAL = "<|channel|>final<|message|>"


def _spoken(text: str) -> tuple[str, bool]:
    """Return (the text without thoughts, whether all thoughts have an end)."""
    said: list[str] = []
    thought: list[str] = []
    is_thinking = False
    for part in _THOUGHTS.split(text.rpartition(_FINAL)[2]):
        if not _THOUGHTS.fullmatch(part):
            (thought if is_thinking else said).append(part)
        elif "/" in part or "end_of" in part.lower():
            if not is_thinking:
                said.clear()
            is_thinking = False
        else:
            is_thinking = True
            thought.clear()
    return "".join(said + thought if is_thinking else said), not is_thinking


def _values_in(text: str, at_end: bool) -> Iterator[object]:
    """Yield outermost objects and lists.

    With `at_end`, only the one that ends the text is yielded.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse)
    # What fails may be tried again inside, so the work is bounded: some 20 reads of the text.
    size, start, effort = len(text.rstrip(" \t\r\n`~*")), 0, 100_000 + 20 * len(text)
    while (found := _OPENING.search(text, start)) and effort > 0:
        start, end = found.start(), 0
        try:
            value, end = decoder.raw_decode(text, start)
            effort -= 1000
        except json.JSONDecodeError as error:
            if error.pos >= size or error.msg.startswith("Unterminated string"):  # cut off: what is inside is a part
                return
            effort -= 100 + error.pos  # read, and counted by lines for the error
        except (ValueError, RecursionError):
            effort -= len(text)
        if end and not _is_deep(value) and (end >= size or not at_end):
            yield value
        start = end or start + 1


_OPENING = re.compile(r'\{\s*["}]|\[\s*[\[{"\]\-0-9tfn]')


def load_json(text: str | bytes, **options: Any) -> object:
    """`json.loads`, at most `MAX_DEPTH` deep. Raises ValueError for anything else."""
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    if _is_deep(value):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return value


def _is_deep(value: object) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inside = (outer.values() if isinstance(outer, dict) else outer for outer in level if _is_nest(outer))
        level = list(filter(_is_nest, itertools.chain.from_iterable(inside)))
        if not level:
            return False
    return True


def _is_nest(value: object) -> bool:
    return isinstance(value, (dict, list))


def _without_fence(text: str) -> str:
    """Return the content of a Markdown fence around the whole text.

    Without such a fence, the text itself is returned.
    """
    first, newline, rest = text.partition("\n")
    language = first.removeprefix("```").strip()
    begins = newline and first.startswith("```") and (not language or (language.isascii() and language.isalpha()))
    return rest.removesuffix("```").strip() if begins and rest.endswith("```") else text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def strict_form(schema: Json) -> Json | None:
    """Return the schema in the form for servers' strict mode.

    Every property is required, and there are none besides; an optional one may be null. None if there is no such form:
    an object may have any properties.

    Source: OpenAI, "Structured model outputs", supported schemas.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    try:
        return _strict(schema)
    except (TypeError, AttributeError, RecursionError):  # no schema at all: for the server to judge
        return None


def _strict(schema: object) -> Json | None:
    if not isinstance(schema, dict):
        return None
    strict = dict(schema)
    kinds = schema.get("type", [])
    if "object" in ([kinds] if isinstance(kinds, str) else kinds) or "properties" in schema:
        if "properties" not in schema or schema.get("additionalProperties", False) is not False:
            return None
        required = schema.get("required", ())
        properties = {key: _strict(value) for key, value in schema["properties"].items()}
        inner = {key: value for key, value in properties.items() if value is not None}
        if not set(required) <= inner.keys() or len(inner) < len(properties):
            return None
        strict["properties"] = {key: value if key in required else _nullable(value) for key, value in inner.items()}
        strict["required"] = list(inner)
        strict["additionalProperties"] = False
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        strict["anyOf"] = [_strict(alternative) for alternative in schema["anyOf"]]
    return None if strict.get("items", {}) is None or None in strict.get("anyOf", ()) else strict


def _nullable(schema: Json) -> Json:
    if not any(problems(None, schema)):
        return schema
    if "type" not in schema or schema.keys() & {"enum", "const", "anyOf"}:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"]
    return {**schema, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}


def _without_nulls(value: object, schema: Json | bool) -> object:
    """`value` without the nulls that stand for what was left out."""
    if isinstance(schema, bool):
        return value
    for alternative in schema.get("anyOf", ()):
        shorter = _without_nulls(value, alternative)
        if not any(problems(shorter, alternative)):
            value = shorter
            break
    if isinstance(value, list) and "items" in schema:
        return [_without_nulls(item, schema["items"]) for item in value]
    if isinstance(value, dict) and "properties" in schema:
        known, required = schema["properties"], schema.get("required", ())
        return {
            key: _without_nulls(item, known.get(key, True))
            for key, item in value.items()
            if not (item is None and key in known and key not in required and any(problems(None, known[key])))
        }
    return value


def check_schema(schema: object, where: str = "schema") -> None:
    """Raise InvalidInputError if a schema uses what `problems` does not check."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict) or not set(schema) <= KEYWORDS:
        got = sorted(set(schema) - KEYWORDS) if isinstance(schema, dict) else repr(schema)
        raise InvalidInputError(f"{where}: expected a schema with keywords from {sorted(KEYWORDS)}, got {got}")
    names = schema.get("type", [])
    for kind in [names] if isinstance(names, str) else names:
        if kind not in _TYPES:
            raise InvalidInputError(f"{where}.type: expected one of {sorted(_TYPES)}, got {kind!r}")
    for key, inner in schema.get("properties", {}).items():
        check_schema(inner, f"{where}.properties.{key}")
    for keyword in ("items", "additionalProperties"):
        check_schema(schema.get(keyword, True), f"{where}.{keyword}")
    for index, inner in enumerate(schema.get("anyOf", ())):
        check_schema(inner, f"{where}.anyOf[{index}]")


def problems(value: object, schema: Json | bool, where: str = "the answer") -> Iterator[str]:
    """Yield a sentence for each way a value violates a schema."""
    if isinstance(schema, bool):
        if not schema:
            yield f"{where} is not allowed"
        return
    if "type" in schema:
        kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(_is(value, kind) for kind in kinds):
            yield f"{where} should be of type {' or '.join(kinds)}, not {_shown(value)}"
            return
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        yield f"{where} should be one of {_shown(schema['enum'])}, not {_shown(value)}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{where} should be {_shown(schema['const'])}, not {_shown(value)}"
    if "anyOf" in schema and all(any(problems(value, inner)) for inner in schema["anyOf"]):
        yield f"{where} should fit one of the {len(schema['anyOf'])} alternatives, not be {_shown(value)}"
    if isinstance(value, dict):
        yield from _object_problems(value, schema, where)
    elif isinstance(value, list):
        yield from _bounds(len(value), schema, "minItems", "maxItems", f"the length of {where}")
        for index, item in enumerate(value):
            yield from problems(item, schema.get("items", True), f"{where}[{index}]")
    elif isinstance(value, str):
        yield from _bounds(len(value), schema, "minLength", "maxLength", f"the length of {where}")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{where} should match {schema['pattern']!r}, not be {_shown(value)}"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _bounds(value, schema, "minimum", "maximum", where)


def _object_problems(value: Json, schema: Json, where: str) -> Iterator[str]:
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{where} should have the key {key!r}"
    known = schema.get("properties", {})
    for key, item in value.items():
        yield from problems(item, known.get(key, schema.get("additionalProperties", True)), f"{where}[{key!r}]")


def _bounds(value: float, schema: Json, low: str, high: str, what: str) -> Iterator[str]:
    if low in schema and value < schema[low]:
        yield f"{what} should be at least {schema[low]}, not {value}"
    if high in schema and value > schema[high]:
        yield f"{what} should be at most {schema[high]}, not {value}"


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool) and kind in ("number", "integer"):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _same(first: object, second: object) -> bool:
    """Equality of JSON values: 1 is 1.0 and not true."""
    if isinstance(first, bool) != isinstance(second, bool):
        return False
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    return first == second


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
