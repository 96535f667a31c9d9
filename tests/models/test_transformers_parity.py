"""Every family against transformers with torch: small random models, both directions, adapters, images.

pip install torch transformers peft      (a CPU build of torch is enough; without them these tests are skipped)

Tolerances are for float32 on a CPU: both sides sum in another order.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from random_transformers import SEEING, SIZES, random_qwen_vl, randomise
from small_decoders import VARIANTS, build, prefill, read

from embodied_mem.errors import InvalidInputError
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.config import LoraConfig
from embodied_mem.models.decoder import Decoder, extend, mean_attention
from embodied_mem.models.formats.hf import load_hf, save_hf
from embodied_mem.models.formats.peft import load_peft, save_peft
from embodied_mem.models.lora import add_lora, add_tower_lora, merge_lora
from embodied_mem.models.sampling import SamplingSettings, append, generate
from embodied_mem.models.vision.qwen_vl import embed_images, load_qwen_vl
from embodied_mem.models.vision.qwen_vl_vision import VisionTower, arrange, patches_of
from embodied_mem.training.models import published_decoder

pytestmark = [pytest.mark.slow, pytest.mark.parity, pytest.mark.usefixtures("unoptimised")]

TOLERANCE = {"rtol": 1e-4, "atol": 2e-5}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}  # fmt: skip
FAMILIES = {
    "llama": ("LlamaConfig", {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "llama3": ("LlamaConfig", {"rope_parameters": LLAMA3}),
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True}),
    "qwen2.5": ("Qwen2Config", {"num_key_value_heads": 4, "tie_word_embeddings": False}),
    "qwen3": ("Qwen3Config", {"head_dim": 20, "tie_word_embeddings": False}),
}


@pytest.fixture(scope="module", autouse=True)
def originals() -> None:
    """Imports the two when the first test runs; that takes seconds."""
    global torch, transformers
    torch = pytest.importorskip("torch", reason="pip install torch transformers peft")
    transformers = pytest.importorskip("transformers", reason="pip install torch transformers peft")


def theirs(name: str):
    kind, changes = FAMILIES[name]
    torch.manual_seed(0)
    config = getattr(transformers, kind)(**(SIZES | changes), attn_implementation="eager")
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    randomise(model)
    return model


def first_layers(decoder: Decoder, count: int) -> Decoder:
    """The decoder without the layers from `count` on."""
    shorter = Decoder(dataclasses.replace(decoder.config, num_layers=count), rngs=nnx.Rngs(0))
    state = nnx.state(decoder)
    nnx.update(shorter, {**state, "layers": jax.tree.map(lambda x: x[:count], state["layers"])})
    return shorter


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_hidden_states_and_greedy_tokens(name, tmp_path):
    model = theirs(name)
    model.save_pretrained(tmp_path)
    decoder = load_hf(tmp_path)
    rng = np.random.default_rng(0)
    tokens, mask = rng.integers(0, 96, (3, 11)), np.arange(11)[None] >= np.array([[0], [4], [9]])
    positions = np.maximum(np.cumsum(mask, 1) - 1, 0)
    with torch.no_grad():
        inputs = {"attention_mask": torch.tensor(mask.astype(int)), "position_ids": torch.tensor(positions)}
        expected = model(torch.tensor(tokens), **inputs, output_hidden_states=True, output_attentions=True)
    hidden = read(decoder, jnp.asarray(tokens), mask=jnp.asarray(mask))
    np.testing.assert_allclose(hidden[mask], expected.hidden_states[-1].numpy()[mask], **TOLERANCE)
    np.testing.assert_allclose(decoder.logits(hidden)[mask], expected.logits.numpy()[mask], **TOLERANCE)
    counts = [3, 2, 1]
    attended = mean_attention(*nnx.split(decoder), jnp.asarray(tokens), jnp.asarray(mask), jnp.asarray(counts), 3)
    weights = torch.stack(expected.attentions).mean((0, 2)).numpy()
    wanted = np.stack([row[-count:].mean(0) for row, count in zip(weights, counts)])
    np.testing.assert_allclose(attended, wanted, **TOLERANCE)
    # Inner layers: their hidden states before the last norm, which a shorter decoder applies.
    for count in (1, 2):
        inner = read(first_layers(decoder, count), jnp.asarray(tokens), mask=jnp.asarray(mask))
        with torch.no_grad():
            wanted = model.model.norm(expected.hidden_states[count]).numpy()
        np.testing.assert_allclose(inner[mask], wanted[mask], **TOLERANCE)

    prompt = tokens[:1]
    with torch.no_grad():
        ids = model.generate(
            torch.tensor(prompt), max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    hidden, cache = prefill(decoder, jnp.asarray(prompt), capacity=32)
    assert continue_greedily(decoder, hidden, cache, 12) == ids[0, 11:].tolist()


def test_the_language_model_of_a_qwen3_vl(tmp_path):
    model = random_qwen_vl("Qwen3VL", 96, IMAGE, (92, 93))
    model.save_pretrained(tmp_path)
    decoder = load_hf(tmp_path)
    tokens = np.random.default_rng(0).integers(0, 90, (2, 11))
    with torch.no_grad():
        expected = model(torch.tensor(tokens), output_hidden_states=True)
        ids = model.generate(
            torch.tensor(tokens[:1]), max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    hidden = read(decoder, jnp.asarray(tokens), mask=jnp.ones(tokens.shape, bool))
    np.testing.assert_allclose(hidden, expected.hidden_states[-1].numpy(), **TOLERANCE)
    np.testing.assert_allclose(decoder.logits(hidden), expected.logits.numpy(), **TOLERANCE)
    hidden, cache = prefill(decoder, jnp.asarray(tokens[:1]), capacity=32)
    assert continue_greedily(decoder, hidden, cache, 8) == ids[0, 11:].tolist()
    save_hf(decoder, tmp_path / "text")
    there = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "text").float().eval()
    with torch.no_grad():
        np.testing.assert_allclose(there(torch.tensor(tokens)).logits.numpy(), expected.logits.numpy(), **TOLERANCE)


def test_qwen3_5_is_refused_by_its_name(tmp_path):
    config = transformers.Qwen3_5TextConfig(num_hidden_layers=4)
    assert config.layer_types.count("linear_attention") == 3  # whose state has no positions to cut
    config.save_pretrained(tmp_path)
    with pytest.raises(InvalidInputError, match="got 'qwen3_5_text', whose layers are not here; a server may have it"):
        published_decoder(tmp_path)


def continue_greedily(decoder: Decoder, hidden: jax.Array, cache, count: int) -> list[int]:
    written = [int(decoder.logits(hidden[:, -1]).argmax())]
    while len(written) < count:
        hidden, cache = append(decoder, cache, tokens=jnp.asarray([[written[-1]]]))
        written.append(int(decoder.logits(hidden[:, -1]).argmax()))
    return written


@pytest.mark.parametrize("name", ["llama", "untied", "qwen2", "qwen3", "llama3"])
def test_what_is_saved_here_runs_there(name, tmp_path):
    decoder = build(dataclasses.replace(VARIANTS[name], num_kv_heads=2))
    save_hf(decoder, tmp_path, max_shard_bytes=9000)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    assert model.dtype == torch.float32
    tokens = np.random.default_rng(3).integers(0, 40, (2, 9))
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).logits.numpy()
    np.testing.assert_allclose(decoder.logits(read(decoder, jnp.asarray(tokens))), expected, **TOLERANCE)


def with_adapters(seed: int = 0) -> Decoder:
    decoder = build(VARIANTS["qwen2"], seed)
    add_lora(decoder, LoraConfig(rank=3, alpha=6.0, targets=("query", "value")), rngs=nnx.Rngs(seed))
    for name in ("query_lora_b", "value_lora_b"):
        variable = getattr(decoder.layers, name)
        variable[...] = jax.random.normal(jax.random.key(seed), variable[...].shape) * 0.3
    return decoder


def test_adapters_run_in_peft_and_come_back(tmp_path):
    peft = pytest.importorskip("peft", reason="pip install peft")
    decoder, base = with_adapters(), build(VARIANTS["qwen2"])
    save_hf(base, tmp_path / "base")
    save_peft(decoder, tmp_path / "adapter", base=str(tmp_path / "base"))
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base", attn_implementation="eager")
    model = peft.PeftModel.from_pretrained(model, tmp_path / "adapter").eval()
    tokens = np.random.default_rng(3).integers(0, 40, (2, 9))
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).logits.numpy()
    logits = decoder.logits(read(decoder, jnp.asarray(tokens)))
    np.testing.assert_allclose(logits, expected, **TOLERANCE)
    assert np.abs(np.asarray(logits) - base.logits(read(base, jnp.asarray(tokens)))).max() > 0.1

    model.save_pretrained(tmp_path / "theirs")
    again = load_peft(build(VARIANTS["qwen2"]), tmp_path / "theirs")
    assert again.lora == dataclasses.replace(decoder.lora, targets=again.lora.targets)
    jax.tree.map(np.testing.assert_array_equal, nnx.state(again), nnx.state(decoder))

    save_hf(merge_lora(decoder), tmp_path / "merged")
    merged = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "merged", attn_implementation="eager")
    with torch.no_grad():
        np.testing.assert_allclose(merged(torch.tensor(tokens)).logits.numpy(), expected, **TOLERANCE)


def test_a_saved_tokenizer_is_read_with_its_template(tmp_path):
    names = ("<pad>", "<bos>", "<eos>", "<unk>", "<soft>", "<|im_start|>", "<|im_end|>")
    tokenizer = train_bpe(["put the mug into cabinet 12", "you are a robot"] * 4, 330, names)
    template = (
        "{%- for m in messages %}\n    {{- '<|im_start|>' + m.role + '\\n' + m.content | trim + '<|im_end|>\\n' }}\n"
        "{%- endfor %}\n{%- if tools %}{{ tools | tojson }}{% endif %}\n"
        "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}"
    )
    pretrained = PretrainedTokenizer(tokenizer, template)
    pretrained.save(tmp_path)
    other = transformers.AutoTokenizer.from_pretrained(tmp_path)
    chat = [{"role": "system", "content": " you are a robot "}, {"role": "user", "content": "put the mug ünïcode"}]
    tools = [{"name": "grasp", "what": "é"}]
    for given in (None, tools):
        expected = other.apply_chat_template(chat, tools=given, tokenize=False, add_generation_prompt=True)
        assert pretrained.render(chat, tools=given) == expected
    assert (
        tokenizer.encode(pretrained.render(chat), special=True)
        == other.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    )
    assert other.eos_token_id == tokenizer.eos_id


IMAGE = 90


def prompt_with_images(blocks: list[int]) -> list[int]:
    """Text, then for each image its placeholders and more text."""
    line = [1, 2, 3]
    for count in blocks:
        line += [92, *[IMAGE] * count, 93, 7, 8]
    return line


def features_of(decoder: Decoder, patches: np.ndarray, grids) -> np.ndarray:
    windows = arrange(decoder.config.vision, grids)
    seen = nnx.jit(VisionTower.__call__)(decoder.vision, patches[windows.order], windows.positions, windows.mask)
    return np.asarray(seen).reshape(-1, seen.shape[-1])[windows.blocks]


def features_of_original(model, patches: np.ndarray, grids) -> np.ndarray:
    """Return the embeddings of images, behind them what the first layers add."""
    with torch.no_grad():
        seen = model.model.visual(torch.tensor(patches), grid_thw=torch.tensor([[1, *pair] for pair in grids]))
    deep = getattr(seen, "deepstack_features", None) or []
    return torch.cat([getattr(seen, "pooler_output", seen), *deep], dim=-1).numpy()


@pytest.mark.parametrize("scan", [False, True], ids=["apart", "scan"])
@pytest.mark.parametrize("family", SEEING)
def test_images_are_read_as_by_transformers(family, scan, tmp_path):
    model = random_qwen_vl(family, 96, IMAGE, (92, 93))
    model.save_pretrained(tmp_path)
    ours = load_qwen_vl(tmp_path, scan_layers=scan)
    vision = ours.config.vision
    # 5 x 3 blocks: windows of 2 x 2 blocks that the borders cut, and one image of a single window.
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, size, np.uint8) for size in ((40, 24, 3), (16, 16, 3), (24, 32, 3))]
    patches, grids = patches_of(vision, images, min_pixels=64)
    assert grids == [(10, 6), (4, 4), (6, 8)]
    first, second = prompt_with_images([15, 4]), prompt_with_images([12])
    length = max(len(first), len(second))
    tokens = np.array([[0] * (length - len(line)) + line for line in (first, second)])
    mask = np.arange(length)[None] >= np.array([[length - len(first)], [length - len(second)]])
    grid = torch.tensor([[1, *pair] for pair in grids])
    with torch.no_grad():
        expected = model(
            input_ids=torch.tensor(tokens), attention_mask=torch.tensor(mask.astype(int)),
            pixel_values=torch.tensor(patches), image_grid_thw=grid,
            mm_token_type_ids=torch.tensor((tokens == IMAGE).astype(int)),
        ).logits.numpy()  # fmt: skip
    seen = features_of_original(model, patches, grids)
    np.testing.assert_allclose(features_of(ours, patches, grids), seen, **TOLERANCE)
    embeddings, positions = embed_images(ours, tokens, mask, patches, grids)
    hidden = read(ours, embeddings=embeddings, mask=mask, positions=positions)
    np.testing.assert_allclose(ours.logits(hidden)[mask], expected[mask], **TOLERANCE)
    for top in (1, 2):  # layers of which the second is one that pictures are added to
        below = ours.below(embeddings, mask=mask, positions=positions, top=top)
        split = ours(embeddings=below, mask=mask, positions=positions, top=top)
        np.testing.assert_allclose(split[mask], hidden[mask], **TOLERANCE)
    # The images after what was read before them.
    _, cache = prefill(ours, embeddings=embeddings[:, :4], mask=mask[:, :4], positions=positions[..., :4], capacity=64)
    rest = positions[..., 4:] - np.asarray(cache.next_position)[None, :, None]
    after, _ = extend(ours.network(), cache, embeddings=embeddings[:, 4:], mask=mask[:, 4:], positions=rest)
    np.testing.assert_allclose(after[mask[:, 4:]], hidden[:, 4:][mask[:, 4:]], **TOLERANCE)

    # One text with two images, continued: positions go on after the largest of the image.
    alone, positions = embed_images(ours, np.array([first]), np.ones((1, len(first)), bool), patches[:76], grids[:2])
    hidden, cache = prefill(ours, embeddings=alone, positions=positions, capacity=48)
    with torch.no_grad():
        ids = model.generate(
            input_ids=torch.tensor([first]), pixel_values=torch.tensor(patches[:76]), image_grid_thw=grid[:2],
            mm_token_type_ids=torch.tensor((np.array([first]) == IMAGE).astype(int)),
            max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
    assert continue_greedily(ours, hidden, cache, 8) == ids[0, len(first) :].tolist()
    sampled = generate(
        ours, jax.random.split(jax.random.key(0), 1), SamplingSettings(temperature=0.0),
        embeddings=alone, positions=positions, max_new_tokens=8,
    )  # fmt: skip
    assert sampled.tokens[0].tolist() == ids[0, len(first) :].tolist()


@pytest.mark.parametrize("family", SEEING)
def test_adapters_of_the_tower_run_in_peft(family, tmp_path):
    peft = pytest.importorskip("peft", reason="pip install peft")
    model = random_qwen_vl(family, 96, IMAGE, (92, 93))
    model.save_pretrained(tmp_path / "base")
    ours, plain, lora = load_qwen_vl(tmp_path / "base"), load_qwen_vl(tmp_path / "base"), LoraConfig(3, 6.0)
    add_tower_lora(ours.vision, lora, rngs=nnx.Rngs(0))
    add_lora(ours, lora, rngs=nnx.Rngs(1))
    for holder, name in ((ours.vision.blocks, "qkv_lora_b"), (ours.layers, "value_lora_b")):
        variable = getattr(holder, name)
        variable[...] = jax.random.normal(jax.random.key(2), variable[...].shape) * 0.1
    save_peft(ours, tmp_path / "adapter", base=str(tmp_path / "base"))
    adapted = peft.PeftModel.from_pretrained(model, tmp_path / "adapter").eval()

    image = np.random.default_rng(0).integers(0, 256, (40, 24, 3), np.uint8)
    patches, grids = patches_of(ours.vision.config, [image], min_pixels=64)
    tokens = np.array([prompt_with_images([15])])
    grid, given = torch.tensor([[1, *grids[0]]]), torch.tensor(patches)
    with torch.no_grad():
        logits = adapted(
            input_ids=torch.tensor(tokens), pixel_values=given, image_grid_thw=grid,
            mm_token_type_ids=torch.tensor((tokens == IMAGE).astype(int)),
        ).logits.numpy()  # fmt: skip
    features, without = (features_of(decoder, patches, grids) for decoder in (ours, plain))
    np.testing.assert_allclose(features, features_of_original(model, patches, grids), **TOLERANCE)
    assert np.abs(features - without).max() > 0.1
    embeddings, positions = embed_images(ours, tokens, np.ones(tokens.shape, bool), patches, grids)
    np.testing.assert_allclose(ours.logits(read(ours, embeddings=embeddings, positions=positions)), logits, **TOLERANCE)

    adapted.save_pretrained(tmp_path / "theirs")
    again = load_peft(plain, tmp_path / "theirs")
    jax.tree.map(np.testing.assert_array_equal, nnx.state(again), nnx.state(ours))


@pytest.mark.parametrize("third", [False, True], ids=["Qwen2.5-VL", "Qwen3-VL"])
def test_pictures_become_the_same_patches(third):
    pytest.importorskip("PIL", reason="pip install pillow")
    from embodied_mem.models.vision.qwen_vl_vision import VisionConfig

    processors = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    given = {"patch_size": 16, "image_mean": [0.5] * 3, "image_std": [0.5] * 3} if third else {}
    vision = VisionConfig(patch_size=16, window_size=0, num_positions=4) if third else VisionConfig()
    processor = processors.Qwen2VLImageProcessorPil(min_pixels=56 * 56, max_pixels=28 * 28 * 20, **given)
    rng = np.random.default_rng(0)
    for size in ((56, 84, 3), (61, 200, 3), (20, 30, 3), (300, 180, 3)):
        image = np.repeat(np.repeat(rng.integers(0, 256, size, np.uint8)[::4, ::4], 4, 0), 4, 1)
        patches, grids = patches_of(vision, [image], min_pixels=56 * 56, max_pixels=28 * 28 * 20)
        expected = processor(images=[image], return_tensors="np")
        assert expected["image_grid_thw"].tolist() == [[1, *grids[0]]]
        np.testing.assert_allclose(patches, expected["pixel_values"], atol=1e-5)
