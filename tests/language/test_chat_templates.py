"""Chat templates with what published ones use, against what transformers 5.24 renders from the same."""

from __future__ import annotations

import datetime
import json

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from embodied_mem.errors import InvalidInputError
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.language.tokenizers import Tokenizer

USER = [{"role": "user", "content": "Wo ist die Tasse? é<b>"}]
TURNS = [
    {"role": "system", "content": " Be short. "},
    {"role": "user", "content": "Where?"},
    {
        "role": "assistant", "content": "<think>hm</think>There.",
        "tool_calls": [{"name": "look", "arguments": {"b": 1, "a": "é"}}],
    },
    {"role": "tool", "content": "desk"},
    {"role": "user", "content": "And now?"},
]  # fmt: skip
PARTS = [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image"}]}]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"z": 1, "a": ["é"]}}}]
CASES = {
    "tojson": ("{{ messages | tojson }}", USER, {}, "[{\"role\": \"user\", \"content\": \"Wo ist die Tasse? é<b>\"}]"),
    "tojson(ensure_ascii)": (
        "{{ messages | tojson(ensure_ascii=True) }}", USER, {},
        "[{\"role\": \"user\", \"content\": \"Wo ist die Tasse? \\u00e9<b>\"}]",
    ),
    "tojson by place": (
        "{{ tools | tojson(False, 2, (',', ': '), True) }}", USER,
        {"tools": TOOLS}, json.dumps(TOOLS, ensure_ascii=False, indent=2, separators=(",", ": "), sort_keys=True),
    ),
    "tojson(separators)": (
        "{{ tools | tojson(separators=(',', ':')) }}", USER, {"tools": TOOLS},
        "[{\"type\":\"function\",\"function\":{\"name\":\"look\",\"parameters\":{\"z\":1,\"a\":[\"é\"]}}}]",
    ),
    "tojson(sort_keys, indent)": (
        "{{ tools | tojson(sort_keys=True, indent=4) }}", USER,
        {"tools": TOOLS}, json.dumps(TOOLS, ensure_ascii=False, indent=4, sort_keys=True),
    ),
    "tools that are none": (
        "{% if tools is not none %}T{% endif %}{% if tools is defined %}D{% endif %}", USER, {}, "D",
    ),
    "documents that are none": ("{% if documents is none %}N{% endif %}", USER, {}, "N"),
    "generation": (
        "{% for m in messages %}\n  {% if m.role == 'assistant' %}\n    {% generation %}\n{{ m.content }}<e>\n"
        "    {% endgeneration %}\n  {% else %}\n[{{ m.role }}] {{ m.content | trim }}\n  {% endif %}\n{% endfor %}",
        TURNS, {},
        "[system] Be short.\n[user] Where?\n<think>hm</think>There.<e>\n[tool] desk\n[user] And now?\n",
    ),
    "generation, stripped": (
        "{%- for m in messages -%}{%- generation -%} {{ m.content }} {%- endgeneration -%}{%- endfor -%}", TURNS, {},
        " Be short. Where?<think>hm</think>There.deskAnd now?",
    ),
    "a name set in a generation": (
        "{% set x = 'out' %}{% generation %}{% set x = 'in' %}{{ x }}{% endgeneration %}{{ x }}", USER, {},
        "inout",
    ),
    "namespace and reverse": (
        "{% set ns = namespace(last=-1, many=false) %}{% for m in messages[::-1] %}"
        "{% if m.role == 'user' and ns.last < 0 %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}",
        TURNS, {},
        "0",
    ),
    "loop controls": (
        "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
        "{% if m.role == 'tool' %}{% break %}{% endif %}{{ loop.index }}{{ m.content }}\n{% endfor %}", TURNS, {},
        "2Where?\n3<think>hm</think>There.\n",
    ),
    "methods of texts": (
        "{% for m in messages %}{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}"
        "{{ m.content.startswith('<think>') }}{% endif %}{% endfor %}", TURNS, {},
        "There.True",
    ),
    "calls": (
        "{% for m in messages if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>\n"
        '{"name": "{{ c.name }}", "arguments": {{ c.arguments | tojson }}}\n</tool_call>{% endfor %}{% endfor %}',
        TURNS, {},
        "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"b\": 1, \"a\": \"é\"}}\n</tool_call>",
    ),
    "macro": (
        "{% macro say(role, text) %}<|{{ role }}|>{{ text | trim }}{% endmacro %}"
        "{% for m in messages %}{{ say(m.role, m.content) }}{% endfor %}", TURNS, {},
        "<|system|>Be short.<|user|>Where?<|assistant|><think>hm</think>There.<|tool|>desk<|user|>And now?",
    ),
    "parts": (
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
        "{% if p.type == 'text' %}{{ p['text'] }}{% elif p.type == 'image' %}<image>{% endif %}{% endfor %}{% endif %}"
        "{% endfor %}", PARTS, {},
        "x<image>",
    ),
    "switches": (
        "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>{% endif %}"
        "{% if add_generation_prompt %}<a>{% endif %}{{ bos_token }}{{ eos_token }}{{ messages | length }}",
        USER, {"enable_thinking": False},
        "<think>\n\n</think><a><pad><end>1",
    ),
    "selected": (
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('|') }}", TURNS, {},
        "Where?|And now?",
    ),
    "mapping": (
        "{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}{{ messages[0] is mapping }}"
        "{{ messages is iterable }}{{ messages[0].get('name', 'no name') }}", USER, {},
        "role=user;content=Wo ist die Tasse? é<b>;TrueTrueno name",
    ),
    "content None": (
        "{% if messages[0].content is none %}none{% endif %}{{ messages[0].content or '' }}",
        [{"role": "assistant", "content": None}], {},
        "none",
    ),
}  # fmt: skip
REFUSED = {
    "raise_exception": ("{{ raise_exception('roles must alternate') }}", USER),
    "content None": ("{{ 'a' + messages[0].content }}", [{"role": "assistant", "content": None}]),
    "content in parts": ("{{ 'a' + messages[0].content }}", PARTS),
    "a number as content": ("{{ messages[0].content.strip() }}", [{"role": "user", "content": 3}]),
    "no content": ("{{ messages[0].content.strip() }}", [{"role": "user"}]),
    "an unknown filter": ("{{ messages | whatever }}", USER),
    "an unknown tag": ("{% whatever %}", USER),
    "no end": ("{% generation %}x", USER),
    "a division by zero": ("{{ 1 / (messages | length - 1) }}", USER),
    "what JSON cannot hold": ("{{ messages | tojson }}", [{"role": "user", "content": {1, 2}}]),
    "an endless call": ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", USER),
    "a way out of the sandbox": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", USER),
    "a list that is changed": ("{{ messages.append(1) }}", USER),
    "a bad date": ("{{ strftime_now(3) }}", USER),
}


@pytest.fixture(scope="module")
def render():
    letters = {
        sign: i for i, sign in enumerate(["<pad>", "<unk>", "<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())])
    }
    backend = Backend(models.BPE(vocab=letters, merges=[], unk_token="<unk>"))
    tokenizer = Tokenizer(backend)

    def made(template, messages, **variables):
        roles = {"bos": "<pad>", "eos": "<end>"}
        return PretrainedTokenizer(tokenizer, template, roles).render(messages, **variables)

    return made


@pytest.mark.parametrize("name", CASES)
def test_a_template_says_what_transformers_says(render, name):
    template, messages, variables, expected = CASES[name]
    assert render(template, messages, **variables) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_template_cannot_write_is_an_error_of_ours(render, name):
    with pytest.raises(InvalidInputError, match="chat template: "):
        render(*REFUSED[name])


def test_the_date_of_today(render):
    assert render("{{ strftime_now('%Y-%m-%d') }}", USER) == datetime.datetime.now().strftime("%Y-%m-%d")
