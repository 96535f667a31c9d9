"""Qwen2.5-VL and Qwen3-VL as chat models: their answers are those of transformers, and they serve where models do."""

from __future__ import annotations

import base64
import functools
import re
import shutil

import numpy as np
import pytest
from random_transformers import SEEING, random_qwen_vl

from embodied_mem.agents.planner_critic.beliefs import Beliefs
from embodied_mem.agents.planner_critic.chat import ChatCritic, ChatPlanner, ChatPreprocessor
from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.agents.robot.skills import TASK_COMPLETE
from embodied_mem.errors import CheckpointError, DataNotFoundError, InvalidInputError
from embodied_mem.language import SPECIAL_TOKENS, ChatError, RecordedChatModel, Usage, train_bpe
from embodied_mem.language.images import content, pixels
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.models.chat import TEMPLATES, ChatTemplate
from embodied_mem.models.vision.qwen_vl_chat import QwenVLChatModel

pytestmark = [pytest.mark.slow, pytest.mark.parity, pytest.mark.usefixtures("unoptimised")]

SIGNS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
TEMPLATE = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nBe of help.<|im_end|>\n"
    "{% endif %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}{% for part in "
    "m.content %}{% if part.type == 'text' %}{{ part.text }}{% else %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LIMITS = {"min_pixels": 256, "max_pixels": 2048}
VOCABULARY = 330  # rows of the model; as in published ones, more than the tokenizer has tokens
RNG = np.random.default_rng(0)
FIRST, SECOND = (RNG.integers(0, 256, size, np.uint8) for size in ((30, 45, 3), (80, 61, 3)))  # both are scaled
SAID = "<|im_end|> here"
TALK = [
    {"role": "user", "content": content("where is the mug?", [FIRST])},
    {"role": "assistant", "content": "on the desk"},
    {"role": "user", "content": [*content(f"and {SAID}", [SECOND]), {"type": "text", "text": " or there?"}]},
]


@functools.cache
def tokenizer():
    trained = train_bpe(["system user assistant where is the mug on desk"] * 4, 310, (*SPECIAL_TOKENS, *SIGNS))
    return PretrainedTokenizer(trained, TEMPLATE)


@pytest.fixture(scope="module", params=SEEING)
def original(request):
    pytest.importorskip("torch", reason="pip install torch transformers")
    pytest.importorskip("transformers", reason="pip install torch transformers")
    pytest.importorskip("PIL", reason="pip install pillow")
    start, pad, end = map(tokenizer().tokenizer.id_of, SIGNS[3:])
    return random_qwen_vl(request.param, VOCABULARY, pad, (start, end), max_position_embeddings=4096)


@pytest.fixture(scope="module")
def folder(original, tmp_path_factory):
    path = tmp_path_factory.mktemp("qwen-vl")
    original.save_pretrained(path)
    tokenizer().save(path)
    return path


@pytest.fixture(scope="module")
def chat(folder):
    return QwenVLChatModel.from_folder(folder, dtype="float32", length_buckets=(256,), **LIMITS)


def greedy(original, talk, count):
    """(prompt, answer) of transformers' processors and `generate`."""
    import torch
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    urls = [p["image_url"]["url"] for m in talk for p in m["content"] if isinstance(p, dict) and "image_url" in p]
    images = [pixels(base64.b64decode(url.partition(",")[2])) for url in urls]
    colours = {} if "Qwen2" in type(original).__name__ else {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    processor = Qwen2VLImageProcessorPil(patch_size=4, merge_size=2, **LIMITS, **colours)
    seen = processor(images=images, return_tensors="pt") if images else {}
    spoken = tokenizer().tokenizer
    # The sign inside a message is text for us, and stands here encoded as text.
    first, *rest = tokenizer().render(talk).split(SAID)
    ids = spoken.encode(first, special=True)
    for piece in rest:
        ids += spoken.encode(SAID) + spoken.encode(piece, special=True)
    pad, prompt = spoken.id_of("<|image_pad|>"), []
    counts = iter(seen["image_grid_thw"].prod(-1).tolist() if images else ())
    for token in ids:
        prompt += [token] * (next(counts) // 4 if token == pad else 1)
    tokens = torch.tensor([prompt])
    given = {**seen, "mm_token_type_ids": (tokens == pad).int()} if images else {}
    with torch.no_grad():
        answer = original.generate(tokens, max_new_tokens=count, do_sample=False, eos_token_id=None, **given)
    return prompt, answer[0, len(prompt) :].tolist()


def text_of(tokens):
    known = [token for token in tokens if token < tokenizer().tokenizer.vocab_size]
    return tokenizer().tokenizer.decode(known, skip_special=True)


@pytest.mark.parametrize("talk", [TALK, TALK[:1], [{"role": "user", "content": "no picture"}]], ids=["2", "1", "0"])
def test_answers_are_the_greedy_ones_of_transformers(original, chat, talk):
    prompt, expected = greedy(original, talk, 24)
    assert chat.prompt_ids(talk) == prompt
    ends = {tokenizer().tokenizer.id_of(sign) for sign in ("<|im_end|>", "<|endoftext|>")}
    count = next((at for at, token in enumerate(expected) if token in ends), 24)
    reply = chat.complete(talk, max_tokens=24)
    assert reply.text == text_of(expected[:count])
    assert reply.usage == Usage(len(prompt), min(count + 1, 24))
    assert reply.finish_reason == ("stop" if count < 24 else "length")


def test_an_answer_ends_at_its_sign(original, folder):
    _, tokens = greedy(original, TALK, 24)
    at = next(i for i in range(1, 24) if tokens[i] not in tokens[:i] and tokens[i] < tokenizer().tokenizer.vocab_size)
    base = TEMPLATES["chatml"]
    ends = ChatTemplate("", base.head, base.tail, (tokenizer().tokenizer.token(tokens[at]),))
    reply = QwenVLChatModel.from_folder(
        folder, dtype="float32", length_buckets=(256,), template=ends, **LIMITS
    ).complete(TALK, max_tokens=24)
    assert (reply.text, reply.finish_reason, reply.usage.completion_tokens) == (text_of(tokens[:at]), "stop", at + 1)


def test_another_picture_gets_another_answer(chat):
    shown = [[{"role": "user", "content": content("?", [image])}] for image in (FIRST, 255 - FIRST)]
    assert len({chat.complete(one, max_tokens=24).text for one in shown}) == 2


def test_it_plans_criticises_and_summarises_and_is_replayed_without_weights(folder, tmp_path):
    """What a random model says is no plan; it is asked, with the picture, and its recording is enough the next time."""
    path = tmp_path / "calls.jsonl"
    seeing = QwenVLChatModel.from_folder(folder, dtype="float32", length_buckets=(2048,), **LIMITS)
    situation = Situation("find a mug", "", Beliefs(), None, None, images=(FIRST,))

    def said(model):
        planner, critic = ChatPlanner(model, (TASK_COMPLETE,), max_tokens=8), ChatCritic(model, max_tokens=8)
        lines = ChatPreprocessor(model, max_tokens=8)
        return (
            planner.plan(situation), planner.unusable, critic.review(PlanStep("look"), situation), critic.unusable,
            lines.summarise("find a mug", "look", "A desk.", (FIRST,)), lines.unusable,
        )  # fmt: skip

    first = said(RecordedChatModel(seeing, path))
    assert first[1::2] == (1, 1, 0)
    assert path.read_text().count("sha256:") == seeing.meter.calls >= 3
    assert said(RecordedChatModel(None, path, name=seeing.name)) == first
    replay = RecordedChatModel(None, path, name=seeing.name)
    with pytest.raises(ChatError, match="not recorded"):
        replay.complete([{"role": "user", "content": content("", [SECOND])}])


def test_a_folder_that_is_not_whole_is_refused(folder, tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere: expected config.json, found none"):
        QwenVLChatModel.from_folder(tmp_path / "nowhere")
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model: expected \*\.safetensors files, found none"):
        QwenVLChatModel.from_folder(tmp_path / "model")
    shutil.copy(folder / "model.safetensors", tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").unlink()
    with pytest.raises(DataNotFoundError, match=r"model: expected tokenizer\.json"):
        QwenVLChatModel.from_folder(tmp_path / "model")
    config = (tmp_path / "model" / "config.json").read_text()
    config = re.sub('"model_type": "qwen(2_5|3)_vl",', '"model_type": "x",', config)
    (tmp_path / "model" / "config.json").write_text(config)
    with pytest.raises(InvalidInputError, match="expected one of qwen2_5_vl, qwen3_vl, got 'x'"):
        QwenVLChatModel.from_folder(tmp_path / "model")


def test_a_tokenizer_without_the_models_signs_is_refused(chat):
    plain = train_bpe(["where"], 310, (*SPECIAL_TOKENS, *SIGNS[:3]))
    with pytest.raises(InvalidInputError, match=r"expected one of the vocabulary, got '<\|vision_start\|>'"):
        QwenVLChatModel(chat._decoder, PretrainedTokenizer(plain, None))
    other = train_bpe(["where"], 310, (*SPECIAL_TOKENS, *reversed(SIGNS)))
    with pytest.raises(InvalidInputError, match=r"expected <\|image_pad\|> to be the model's image_token 9, got 6"):
        QwenVLChatModel(chat._decoder, PretrainedTokenizer(other, None))
