"""Answers in the forms of servers that people use: what one test server plays is read, whole and streamed.

Forms are those of OpenAI, Anthropic (its OpenAI-compatible endpoint), vLLM, llama.cpp, Ollama, and of what stands
before them (Azure's filters, OpenRouter's comments, Mistral's parts).
"""

from __future__ import annotations

import itertools
import json
import re
import warnings

import pytest
from raw_server import QUESTION, response, sends

from embodied_mem.language import ChatError, ChatReply, ServerEmbedder, complete_json
from embodied_mem.language.json_answers import read_json, without_thoughts
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.worlds.memento.agent.react import ReActAgent
from embodied_mem.worlds.memento.traces.trace import Trace


class Says:
    """A model with one answer."""

    name = "says"

    def __init__(self, text):
        self.text = text

    def complete(self, messages, **settings):
        self.messages = list(messages)
        return ChatReply(self.text)


SCHEMA = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
    "additionalProperties": False,
}
TEXT = '{"place": "fridge"}'
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


def part(text):
    return {"type": "text", "text": text}


def call(arguments):
    return {"id": "call_1", "type": "function", "function": {"name": "answer", "arguments": arguments}}


MESSAGES = {
    "OpenAI": {"role": "assistant", "content": TEXT, "refusal": None, "annotations": []},
    "OpenAI with a tool": {"role": "assistant", "content": None, "tool_calls": [call(TEXT)]},
    "an older function": {"role": "assistant", "content": None, "function_call": {"name": "answer", "arguments": TEXT}},
    "Anthropic": {"role": "assistant", "content": TEXT},
    "parts": {"role": "assistant", "content": [part(TEXT[:7]), part(TEXT[7:])]},
    "parts with thinking": {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "a fridge?"}, part(TEXT)],
    },
    "Mistral": {"content": [{"type": "thinking", "thinking": [part("a fridge?")]}, part(TEXT)]},
    "parts with reasoning": {"content": [{"type": "reasoning", "text": "{a}"}, {"type": "output_text", "text": TEXT}]},
    "vLLM with reasoning": {
        "role": "assistant",
        "content": f"\n\n{TEXT}",
        "reasoning_content": 'is it {"place": "x"}?',
    },
    "vLLM with a tool": {
        "content": None,
        "reasoning_content": None,
        "tool_calls": [call(TEXT), call('{"place": "x"}')],
    },
    "llama.cpp": {"role": "assistant", "content": f"<think>\nhm {{x}}\n</think>\n\n{TEXT}"},
    "llama.cpp in a fence": {"role": "assistant", "content": f"```json\n{TEXT}\n```"},
    "Ollama": {"role": "assistant", "content": TEXT, "reasoning": "a fridge?"},
    "Ollama with a tool": {"role": "assistant", "content": "", "tool_calls": [call(json.loads(TEXT))]},
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("stream", [False, True])
def test_every_message_is_read(play, message, stream):
    """A server that does not stream answers whole all the same."""
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
    _, model = play((200, whole, {"Content-Type": "application/json"}), stream=stream)
    assert complete_json(model, QUESTION, SCHEMA) == {"place": "fridge"}
    assert (model.meter.prompt_tokens, model.meter.malformed, model.meter.last_error) == (9, 0, "")


def test_a_refusal_is_told(play):
    refused = {"role": "assistant", "content": None, "refusal": "I cannot help with fridges."}
    whole = {"choices": [{"message": refused, "finish_reason": "stop"}]}
    parts = {"choices": [{"message": {"content": [{"type": "refusal", "refusal": refused["refusal"]}]}}]}
    _, model = play((200, whole, {}), (200, parts, {}))
    assert [model.complete(QUESTION).text for _ in range(2)] == ["I cannot help with fridges."] * 2
    with pytest.raises(ChatError, match="I cannot help with fridges"):
        complete_json(model, QUESTION, SCHEMA, repairs=0)


def delta(finish=None, **fields):
    return {"id": "1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def pieces(field="content"):
    return [delta(role="assistant", **{field: ""}), delta(**{field: TEXT[:9]}), delta(**{field: TEXT[9:]})]


def tool_pieces():
    start = delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "answer", "arguments": ""}}])
    rest = [delta(tool_calls=[{"index": 0, "function": {"arguments": text}}]) for text in (TEXT[:4], TEXT[4:])]
    return [delta(role="assistant", content=None), start, *rest, delta("tool_calls")]


STOP = delta("stop")
COUNTED = {"choices": [], "usage": USAGE}
NO_DELTA = {"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {}}]}
STREAMS = {
    "OpenAI": [*pieces(), STOP, COUNTED],
    "OpenAI with a tool": tool_pieces(),
    "Azure": [{"choices": [], "prompt_filter_results": [{}]}, *pieces(), STOP, NO_DELTA],
    "a null delta": [*pieces(), STOP, {"choices": [{"index": 0, "delta": None}]}],
    "usage alone": [*pieces(), STOP, {"usage": USAGE}],
    "null choices": [*pieces(), STOP, {"choices": None, "usage": USAGE}],
    "signs of life as JSON": [{"type": "ping"}, *pieces(), {"type": "ping"}, STOP, {}],
    "usage in every event": [{**event, "usage": USAGE} for event in [*pieces(), STOP]],
    "null usage": [{**event, "usage": None} for event in [*pieces(), STOP]],
    "Anthropic": [*pieces(), delta("stop", content="")],
    "vLLM with reasoning": [delta(reasoning_content="a {fridge}?"), *pieces(), STOP, COUNTED],
    "Mistral": [delta(content=[{"type": "thinking", "thinking": [part("hm")]}]), delta(content=[part(TEXT)]), STOP],
    "llama.cpp": [delta(content="<think>hm"), delta(content="</think>"), *pieces(), STOP],
    "Ollama": [delta(role="assistant", content="", reasoning="hm"), *pieces(), STOP],
    "the whole message at the end": [
        *pieces(), {"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]},
    ],
    "the whole message alone": [{"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]}],
    "no end but the sign": [*pieces()],
}  # fmt: skip
ENDS = {
    "[DONE]": b"data: [DONE]\n\n", "[DONE] without an empty line": b"data: [DONE]", "nothing": b"",
    "a comment": b": done\n\n",
}  # fmt: skip


@pytest.mark.parametrize("rows", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_every_stream_is_read(play, rows, end):
    if rows is STREAMS["no end but the sign"]:  # without a sign either the answer may be cut off
        end = ENDS["[DONE]"]
    head = b": OPENROUTER PROCESSING\n\n"
    data = head + b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows) + end
    _, model = play((200, data, {"Content-Type": "text/event-stream"}), stream=True)
    assert complete_json(model, QUESTION, SCHEMA, repairs=0) == {"place": "fridge"}
    assert model.meter.retries == 0


@pytest.mark.parametrize("size", [1, 5, 64])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["OpenAI", "usage alone", "Anthropic"])
def test_a_stream_without_done_in_packets(serve, name, line_end, size):
    """With any line ends, cut anywhere, the last empty line left out."""
    data = (line_end * 2).join(f"data: {json.dumps(row)}" for row in STREAMS[name]).encode()
    packets = [data[i : i + size] for i in range(0, len(data), size)]
    _, model = serve(sends(response(b"", kind="text/event-stream"), *packets), stream=True, max_retries=0)
    assert model.complete(QUESTION).text == TEXT


def test_a_connection_that_breaks_after_the_end_of_the_answer(serve):
    """The reason of the end has come; what breaks off behind it was not needed, and nobody waits for it."""
    events = b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in STREAMS["Anthropic"])
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    _, model = serve(sends(head + b"%x\r\n%s\r\n" % (len(events), events)), stream=True, max_retries=0)
    assert model.complete(QUESTION).text == TEXT
    cut = events.partition(b'"stop"')[0]
    _, model = serve(sends(head + b"%x\r\n%s\r\n" % (len(cut), cut)), stream=True, max_retries=0)
    with pytest.raises(ChatError, match="bytes of an answer"):
        model.complete(QUESTION)


@pytest.mark.parametrize(
    "row",
    [
        {"error": {"message": "out of memory"}}, {"object": "error", "message": "out of memory", "code": 400},
        {"choices": [3]}, {"choices": [{"delta": 3}]}, {"detail": "no such model"},
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_an_error(play, row):
    _, model = play((200, b"data: " + json.dumps(row).encode() + b"\n\ndata: [DONE]\n\n", {}), stream=True)
    with pytest.raises(ChatError, match=r"expected choices\[0\]\.delta") as caught:
        model.complete(QUESTION)
    assert str(caught.value) == model.meter.last_error


# Fields that servers refuse.


def refusing(names, say, status=400):
    """A server that refuses each of the fields that it is sent, one at a time."""

    def answer(body):
        for name in names:
            if name in body:
                return status, say(name), {}
        content = {"choices": [{"message": {"content": "hi"}, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
        return 200, content, {}

    return answer


SAYINGS = {
    "OpenAI": lambda name: {"error": {"message": f"Unsupported parameter: '{name}'.", "param": name, "code": "x"}},
    "OpenAI, renamed": lambda name: {
        "error": {"message": f"'{name}' is not supported. Use 'max_completion_tokens' instead.", "param": name}
    },
    "Anthropic": lambda name: {"error": {"message": f"`{name}` is deprecated for this model.", "param": None}},
    "vLLM": lambda name: {"object": "error", "message": f"{name} is not supported.", "code": 400},
    "pydantic": lambda name: {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs"}]},
    "llama.cpp": lambda name: {"error": {"code": 400, "message": f"unknown field {name}", "type": "invalid"}},
    "text": lambda name: f"Bad request: {name}".encode(),
}
FIELDS = ("max_tokens", "temperature", "response_format", "seed", "top_p", "stream_options")


@pytest.mark.parametrize("say", SAYINGS.values(), ids=SAYINGS)
@pytest.mark.parametrize("names", [*((name,) for name in FIELDS), FIELDS], ids="+".join)
def test_a_refused_field_is_left_out_or_renamed_and_remembered(play, say, names):
    status = 422 if say is SAYINGS["pydantic"] else 400
    server, model = play(
        refusing(names, say, status), stream="stream_options" in names, extra_body={"seed": 1, "top_p": 0.5}
    )
    ask = {"response_format": {"type": "json_object"}, "max_tokens": 77}
    with pytest.warns(UserWarning, match="the server refuses"):
        assert model.complete(QUESTION, **ask).text == "hi"
    assert set(model.refused) == set(names)
    assert model.meter.retries == len(names) == len(server.requests) - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.complete(QUESTION, **ask).text == "hi"
    assert len(server.requests) == len(names) + 2
    sent = server.requests[-1][2]
    assert not set(sent) & set(names)
    assert sent.get("max_completion_tokens", 77) == 77
    assert ("max_completion_tokens" in sent) == ("max_tokens" in names)


def test_a_limit_of_tokens_is_never_left_out(play):
    server, model = play(refusing(("max_tokens", "max_completion_tokens"), SAYINGS["OpenAI"]))
    with pytest.raises(ChatError, match="max_completion_tokens"):
        model.complete(QUESTION)
    assert (len(server.requests), model.refused) == (2, {})


def test_what_is_the_callers_error_stays_one(play):
    for say in ("temperature: at most 1", "messages: too long", "no such model", "stream"):
        server, model = play((400, say.encode(), {}))
        with pytest.raises(ChatError, match=say):
            model.complete(QUESTION, temperature=1.5)
        assert (len(server.requests), model.refused) == (1, {})


def test_a_field_can_be_left_out_or_renamed_by_the_caller(play):
    body = {"max_tokens": None, "max_completion_tokens": 100, "temperature": None}
    server, model = play(refusing((), None), extra_body=body)
    model.complete(QUESTION)
    sent = server.requests[0][2]
    assert (set(sent), sent["max_completion_tokens"]) == ({"model", "messages", "max_completion_tokens"}, 100)


# Words around the JSON.

THOUGHTS = {
    "none": "{}", "closed": "<think>\nIt says {{fridge}} or {{\"place\": \"x\"}}.\n</think>\n\n{}",
    "empty": "<think>\n\n</think>\n\n{}", "end alone": "a fridge, {{\"place\": \"x\"}}?</think>{}",
    "unclosed": "<think>\nIt says fridge.\n\n{}", "two": "<think>a</think><think>b</think>{}",
    "behind": "{}\n<think>was it right?</think>", "thinking": "<thinking>[1, 2</thinking>\n{}",
    "Magistral": "[THINK]hm[/THINK]{}", "Kimi": "◁think▷hm◁/think▷{}", "Seed": "<seed:think>hm</seed:think>{}",
    "capitals": "<THINK>hm</THINK>{}", "Sky": "<|begin_of_thought|>hm<|end_of_thought|>{}",
    "gpt-oss": "<|channel|>analysis<|message|>{{}}<|end|><|start|>assistant<|channel|>final<|message|>{}",
}  # fmt: skip
WORDS = {
    "none": "{}", "before": "Here is the JSON:\n{}", "a list before": "I saw [1] and {{that}}: {}",
    "a fence": "```json\n{}\n```", "words, then a fence": "Sure!\n```json\n{}\n```",
    "fence on one line": "```json {}```", "waves": "~~~\n{}\n~~~", "a tag": "<answer>{}</answer>",
    "bold": "**{}**", "twice": "{0}\n\n{0}", "a mark of order": "\ufeff{}",
}  # fmt: skip
AFTER = {"none": "", "words": "\nLet me know.", "an end token": "<|im_end|>", "an end of a turn": "<end_of_turn>\n</s>"}
LONGER = '{\n  "place": "fridge \\"{1}\\" ] </b>"\n}'


@pytest.mark.parametrize("thought", THOUGHTS)
@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("text", [TEXT, LONGER], ids=["short", "long"])
def test_json_is_found_among_words_and_thoughts(thought, words, text):
    for after in AFTER if thought != "unclosed" else ["none"]:
        answer = THOUGHTS[thought].format(WORDS[words].format(text) + AFTER[after])
        value, wrong = read_json(answer, SCHEMA)
        if words == "a tag" and thought == "unclosed":
            continue
        assert (value, wrong) == (json.loads(text), ""), answer


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"place": "a"} or {"place": "b"}', "several answers that differ"),
        ('<think>Is it {"place": "a"}? But the', "no JSON"),
        ('<think>Is it {"place": "a"}?</think>', "no JSON"),
        ('Here: {"place": "a", "why": [{"place": "b"}', "no JSON"),
        ('[{"place": "a"}, {"place": "b', "no JSON"),
        ('It is {"place": 3}.', "should be of type string, not 3"),
        ('It is {"place": NaN}.', "no JSON"),
        ('It is {"at": {"place": "a"}}.', "should have the key"),
        ("I do not know. </think>", "no JSON"),
        ("x " + '{"a":' * 90 + TEXT + "}" * 90, "should have the key"),
        ("x " + "[" * 2000 + TEXT + "]" * 2000, "no JSON"),
    ],
)
def test_what_is_not_sure_is_no_answer(text, wrong):
    value, found = read_json(text, SCHEMA)
    assert wrong in found
    assert "several" not in found or value is None


def test_text_without_thoughts():
    for form, said in itertools.product(THOUGHTS.values(), ["Explore[x]", "Two\n\nlines."]):
        text = without_thoughts(form.format(said))
        assert text.endswith(said) or form == THOUGHTS["unclosed"]
        assert said in text
        assert "think" not in text.lower()


# Why the last one failed.


class _Silent(Exception):
    def __repr__(self):
        return ""


def test_a_writer_says_why():
    def fails(messages):
        raise _Silent

    for answer in ("no", '{"place": 3}', "", '{"summary": ""}', None, 3, [TEXT], '{"a": 1} {"b": 2}', "[" * 200):
        writer = ChatWriter(lambda messages, answer=answer: answer)
        assert (writer.summary(["a"]), list(writer.facts("a", "b"))) == (None, [])
        assert (writer.malformed, bool(writer.last_error)) == (2, True)
        assert "the answer was" in writer.last_error
    writer = ChatWriter(fails)
    assert writer.summary(["a"]) is None
    assert (writer.failed, bool(writer.last_error)) == (1, True)


def test_a_meter_says_why(play):
    server, model = play((500, b"out of memory", {}))
    embedder = ServerEmbedder(server.url, "small", max_retries=0)
    with pytest.raises(ChatError):
        model.complete(QUESTION)
    with pytest.raises(ChatError):
        embedder.embed(["a"])
    for meter in (model.meter, embedder.meter):
        assert (meter.failed, "out of memory" in meter.last_error) == (1, True)


# Actions of a ReAct agent.

CALLS = ("Explore[kitchen_1]", "Place[cup_1, on, table_4, none, none]", "FindObjectTool[the user's red cup]", "Done[]")
ACTIONS = (
    "{}", "Action: {}", "**Action:** {}", "**Action**: {}", "Action 1: {}", "**Action 1:** {}", 'action: "{}"',
    "ACTION: `{}`", "### Action: {}", "- Action: {}", "1. {}", "1) **{}**", "- {}", "* `{}`", "> {}", "**{}**", "_{}_",
    "```\n{}\n```", "```text\nAction: {}\n```", "Action:\n{}", "Action:\n```\n{}\n```", "Next action: {}", "Act: {}",
    "Final Action: {}.", "{}<|im_end|>", "Action: {}</s>", "<action>{}</action>", "Action\uff1a{}", "Action = {}",
    "I go there. Action: {}", "{}\nObservation: Successful execution!", "Action: {}\nResult: ok\nAssigned!",
    "1. {}\n2. Pick[cup_1]\n3. Done[]", "Action 1: {}\nAction 2: Done[]", '{{"action": "{}"}}',
    '```json\n{{"thought": "hm", "action": "{}"}}\n```',
)  # fmt: skip
LEADS = ("", "Thought: I look there first.\n", "**Thought:** I look.\n\n", "<think>\nAction: Done[]\n</think>\n\n")


@pytest.mark.parametrize("form", ACTIONS)
@pytest.mark.parametrize("lead", LEADS)
def test_an_action_in_any_usual_form(lead, form):
    for call_ in CALLS:
        agent = ReActAgent(Says(lead + form.format(call_)))
        agent.begin("Put the cup on the bed.", "Furniture:\nkitchen_1: table_4")
        reply = agent.act("")
        assert (reply.action, agent.malformed, agent.last_error) == (call_, 0, "")
        assert reply.thought.startswith(("I", "hm")) or not (reply.thought and "Thought" in lead)
        assert "Thought" not in reply.thought


@pytest.mark.parametrize(
    "text", ["", "I cannot do that.", "Explore kitchen_1", "Use [1] and [2].", "{}", "**Action:**"]
)
def test_an_answer_without_an_action_says_so(text):
    agent = ReActAgent(Says(text))
    agent.begin("Put the cup on the bed.", "Furniture:\nkitchen_1: table_4")
    agent.act("")
    assert (agent.malformed, "no action in" in agent.last_error) == (1, True)


@pytest.mark.parametrize("count", [0, 1, 5, 10, 12])
def test_as_many_memories_are_shown_as_are_given(count):
    model = Says("Done[]")
    agent = ReActAgent(model)
    agent.begin("Put the cup.", "Furniture:", [Trace(str(i), "s", f"Bring {i}.") for i in range(count)])
    agent.act("")
    assert len(re.findall(r"Example \d+:", str(model.messages))) == count
    assert str(model.messages).count("Bring ") == count
