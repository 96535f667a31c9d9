"""Pictures of one size in prompts: read as by transformers, sampled as read, and nothing of it where there are none."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from random_transformers import SEEING, random_qwen_vl
from small_decoders import read
from small_seeing import BLACK, COUNT, SIDE, SIGNS, VOCABULARY, picture, reader, seeing, tokenizer

from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.executor_format import ChatFormat
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.compiler.prompts import executor_prompt
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.images import pixels
from embodied_mem.models.prompt_cache import PromptCache
from embodied_mem.models.sampling import SamplingSettings, pad_prompts
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.models.vision.pictures import PictureReader, embed_seen
from embodied_mem.models.vision.qwen_vl import embed_images
from embodied_mem.models.vision.qwen_vl_vision import patches_of
from embodied_mem.training.models import published_decoder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]

TEXTS = ["goal: find the mug\n> go to desk 1\n=", "room: desk 1\n="]
SHOWN = [(picture(0), picture(1, 31, 40)), (picture(2),)]
KEYS = jax.random.split(jax.random.key(0), 2)


def encoded(eyes: PictureReader, texts=TEXTS, shown=SHOWN):
    return eyes.prompts(tokenizer().encode_batch, texts, shown)


def sampler(decoder, **settings):
    greedy = SamplingSettings(temperature=0.0)
    return PromptCache(decoder, greedy, max_new_tokens=6, length_buckets=(64,), batch_buckets=(2,), **settings)


@pytest.mark.parity
@pytest.mark.parametrize("family", SEEING)
def test_logits_and_greedy_tokens_are_those_of_transformers(family, tmp_path):
    torch = pytest.importorskip("torch", reason="pip install torch transformers")
    pytest.importorskip("transformers", reason="pip install torch transformers")
    start, one, end = map(tokenizer().id_of, SIGNS[3:])
    original = random_qwen_vl(family, VOCABULARY, one, (start, end))
    original.save_pretrained(tmp_path)
    decoder = published_decoder(tmp_path, seeing=True)
    assert published_decoder(tmp_path).config.vision is None
    eyes = PictureReader(decoder.config.vision, tokenizer(), COUNT, SIDE)
    prompts = encoded(eyes)
    assert [ids.count(one) for ids in prompts] == [18, 9]
    tokens, mask = pad_prompts(prompts, buckets=(64,))
    arrays = np.stack([eyes.pixels(row) for row in SHOWN])
    embeddings, positions = nnx.jit(embed_seen)(decoder, tokens, mask, mask, arrays)
    hidden = read(decoder, embeddings=embeddings, mask=mask, positions=positions)
    flat = [arrays[0, 0], arrays[0, 1], arrays[1, 0]]
    patches, grids = patches_of(decoder.config.vision, flat, min_pixels=64)
    given = {
        "input_ids": torch.tensor(tokens).long(), "attention_mask": torch.tensor(mask.astype(int)),
        "pixel_values": torch.tensor(patches), "image_grid_thw": torch.tensor([[1, *grid] for grid in grids]),
        "mm_token_type_ids": torch.tensor((tokens == one).astype(int)),
    }  # fmt: skip
    with torch.no_grad():
        expected = original(**given).logits.numpy()
        ids = original.generate(**given, max_new_tokens=6, do_sample=False, eos_token_id=None, pad_token_id=0)
    np.testing.assert_allclose(decoder.logits(hidden)[mask], expected[mask], rtol=1e-4, atol=1e-4)
    # The other way of placing pictures, for any sizes, gives the same.
    others, places = embed_images(decoder, tokens, mask, patches, grids)
    np.testing.assert_array_equal(np.where(mask, places, 0), np.where(mask, positions, 0))
    np.testing.assert_allclose(others, embeddings, atol=2e-5)

    cache = sampler(decoder)
    for _ in range(2):  # the second time from the text before the pictures
        written = cache.generate(prompts, KEYS, pictures=list(arrays)).tokens
        np.testing.assert_array_equal(written, ids[:, 64:].numpy())
    assert cache.kept_tokens > 0
    black = cache.generate(prompts, KEYS, pictures=list(np.zeros_like(arrays))).tokens
    assert (np.asarray(black) != np.asarray(written)).any()


def test_what_is_kept_of_a_prompt_ends_where_its_pictures_begin():
    decoder = seeing(0)
    eyes = reader(decoder)
    kept, fresh = sampler(decoder), sampler(decoder)
    for shown in (SHOWN, [(picture(5), picture(1)), (picture(6),)], [(), (picture(2),)]):
        prompts, arrays = encoded(eyes, shown=shown), [eyes.pixels(row) for row in shown]
        fresh.forget()
        one, other = (cache.generate(prompts, KEYS, pictures=arrays, extra_capacity=0) for cache in (kept, fresh))
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-5)
    assert kept.kept_tokens > 0


def test_rows_of_one_text_with_other_pictures_are_read_apart():
    decoder = seeing(0)
    eyes = reader(decoder)
    cache = PromptCache(
        decoder, SamplingSettings(temperature=0.0), max_new_tokens=4, length_buckets=(64,), batch_buckets=(1, 2)
    )
    shown = [(picture(0),), (picture(1),)]
    prompts = encoded(eyes, TEXTS[:1] * 2, shown)
    assert prompts[0] == prompts[1]
    out = cache.generate(prompts, KEYS, pictures=[eyes.pixels(row) for row in shown])
    assert cache.shared_tokens == 0
    assert np.abs(np.asarray(out.log_probs[0]) - np.asarray(out.log_probs[1])).max() > 1e-3
    cache.generate(prompts, KEYS, pictures=[eyes.pixels(shown[0])] * 2)
    assert cache.shared_tokens == len(prompts[0])


def compiler(decoder, **settings):
    soft = SoftMem(SoftMemConfig(4), compiler_width=48, executor_width=48, rngs=nnx.Rngs(1))
    return MemoryCompiler(
        decoder, soft, tokenizer(), max_tokens=4, length_buckets=(64,), batch_buckets=(2,), **settings
    )


def test_soft_tokens_depend_on_the_pixels_and_texts_alone_are_read_as_by_a_blind_model():
    decoder = seeing(0)
    sees, blind = compiler(decoder, reader=reader(decoder)), compiler(decoder)
    shown = sees.compile(TEXTS, KEYS, pictures=SHOWN)
    again = sees.compile(TEXTS, KEYS, pictures=SHOWN)
    black = sees.compile(TEXTS, KEYS, pictures=[(BLACK,) * len(row) for row in SHOWN])
    alone, never = sees.compile(TEXTS, KEYS), blind.compile(TEXTS, KEYS, pictures=SHOWN)
    for row in range(2):
        np.testing.assert_allclose(shown[row].soft, again[row].soft, atol=1e-6)
        assert np.abs(shown[row].soft - black[row].soft).max() > 1e-3
        assert alone[row].prompt == never[row].prompt == tokenizer().encode(TEXTS[row])
        np.testing.assert_allclose(alone[row].soft, never[row].soft, atol=1e-6)
        assert alone[row].pictures is None
        assert shown[row].pictures.shape == (COUNT, SIDE, SIDE, 3)
    np.testing.assert_array_equal(shown[1].pictures[0], pixels(SHOWN[1][0]))


def test_an_executor_reads_them_before_its_question_plain_and_in_a_chat():
    decoder, signs = seeing(1), tokenizer()
    start, one, end = map(signs.id_of, SIGNS[3:])
    eyes = reader(decoder)
    told = executor_prompt("find the mug", "desk 1", [], num_soft=2)
    plain = Executor(decoder, signs, max_action_tokens=4, length_buckets=(96,), batch_buckets=(2,), reader=eyes)
    soft = np.zeros((2, 48), np.float32)
    turn = plain.act([told, told], KEYS, [soft, soft], pictures=[SHOWN[1], ()])
    assert turn.tokens_in[0] - turn.tokens_in[1] == 11
    for format in (ChatFormat(signs, "Act."), plain._format):
        for num_soft in (0, 2):
            text = executor_prompt("find the mug", "desk 1", [], num_soft=num_soft)
            [ids] = format.prompts([text], pictures=[eyes.tokens(SHOWN[1])])
            at = ids.index(start)
            assert ids[at : at + 11] == [start, *[one] * 9, end]
            assert ids[at + 11 : at + 11 + num_soft] == [signs.soft_id] * num_soft
            [without] = format.prompts([text])
            assert signs.decode(ids[:at] + ids[at + 11 :]).split() == signs.decode(without).split()


@pytest.mark.filterwarnings("ignore:compiler. prompts are longer")
def test_room_for_pictures_is_checked():
    decoder = seeing(0)
    with pytest.raises(InvalidInputError, match="room for 18 tokens of pictures"):
        MemoryCompiler(decoder, None, tokenizer(), max_tokens=4, length_buckets=(16,), reader=reader(decoder)).compile(
            TEXTS, KEYS, pictures=SHOWN
        )
    with pytest.raises(InvalidInputError, match="multiple of 8"):
        PictureReader(decoder.config.vision, tokenizer(), 1, 20)


def test_a_placeholder_that_a_model_wrote_is_a_token():
    decoder = seeing(0)
    one = decoder.config.vision.image_token
    tokens = jnp.asarray([[5, one, 6, one]])
    mask, told = jnp.ones((1, 4), bool), jnp.asarray([[True, True, True, False]])
    black = jnp.zeros((1, 2, 8, 8, 3), jnp.uint8)  # room for one that nobody shows
    embeddings, positions = nnx.jit(embed_seen)(decoder, tokens, mask, told, black)
    own = np.asarray(decoder.embed(tokens))
    assert np.abs(np.asarray(embeddings[0, 1]) - own[0, 1]).max() > 1e-3
    np.testing.assert_array_equal(embeddings[0, 3], own[0, 3])
    assert positions[:, 0].tolist() == [[0, 1, 2, 3]] * 3
