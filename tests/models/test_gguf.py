"""GGUF files: formats against the package `gguf` and by hand, models of every family, damaged files, tokenizers."""

from __future__ import annotations

import dataclasses
import json

import gguf
import jax
import numpy as np
import pytest
from flax import nnx
from gguf_writing import write_gguf
from small_decoders import VARIANTS, build

from embodied_mem.errors import CheckpointError, EmbodiedMemError, InvalidInputError
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.formats.gguf import GGUFFile, load_gguf
from embodied_mem.models.formats.hf import decoder_arrays

# As llama.cpp names them (its `gguf` package, `MODEL_TENSORS` and `TENSOR_NAMES`); {} is the number of the layer.
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "model.layers.{}.input_layernorm.weight": "blk.{}.attn_norm.weight",
    "model.layers.{}.self_attn.q_proj.weight": "blk.{}.attn_q.weight",
    "model.layers.{}.self_attn.k_proj.weight": "blk.{}.attn_k.weight",
    "model.layers.{}.self_attn.v_proj.weight": "blk.{}.attn_v.weight",
    "model.layers.{}.self_attn.o_proj.weight": "blk.{}.attn_output.weight",
    "model.layers.{}.self_attn.q_proj.bias": "blk.{}.attn_q.bias",
    "model.layers.{}.self_attn.k_proj.bias": "blk.{}.attn_k.bias",
    "model.layers.{}.self_attn.v_proj.bias": "blk.{}.attn_v.bias",
    "model.layers.{}.self_attn.q_norm.weight": "blk.{}.attn_q_norm.weight",
    "model.layers.{}.self_attn.k_norm.weight": "blk.{}.attn_k_norm.weight",
    "model.layers.{}.post_attention_layernorm.weight": "blk.{}.ffn_norm.weight",
    "model.layers.{}.mlp.gate_proj.weight": "blk.{}.ffn_gate.weight",
    "model.layers.{}.mlp.up_proj.weight": "blk.{}.ffn_up.weight",
    "model.layers.{}.mlp.down_proj.weight": "blk.{}.ffn_down.weight",
}
FAMILIES = {"llama": "llama", "untied": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}


def test_parts_of_quantised_tensors_are_parts_of_the_whole(tmp_path):
    """Rows of three blocks of each format; a part may begin and end inside a block."""
    rng = np.random.default_rng(0)
    kinds = {
        kind: gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)] for kind in (0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 30)
    }
    tensors = {}
    for kind, (size, num_bytes) in kinds.items():
        data = rng.integers(0, 60, (2, 5, 3 * num_bytes), np.uint8)  # scales are finite: no exponent is all ones
        tensors[str(kind)] = ((2, 5, 3 * size), kind, data.tobytes())
    write_gguf(tmp_path / "m.gguf", {}, tensors)
    read = GGUFFile(tmp_path / "m.gguf").tensors
    for kind, (size, _) in kinds.items():
        shape, _, data = tensors[str(kind)]
        whole = gguf.quants.dequantize(np.frombuffer(data, np.uint8).reshape(2, 5, -1), gguf.GGMLQuantizationType(kind))
        assert np.isfinite(whole).all()
        part = (slice(1, 2), slice(1, 4), slice(size // 2, 2 * size + 1))
        got = read[str(kind)].read(part)
        assert (read[str(kind)].shape, got.dtype) == (shape, np.float32)
        np.testing.assert_array_equal(got, whole[part])


def test_a_block_by_hand(tmp_path):
    # d = 0.5, m = -1; byte 0 is 0x2f: weight 0 is 15, weight 16 is 2.
    block = np.array([0.5, -1.0], np.float16).tobytes() + b"\x2f" + bytes(15)
    write_gguf(tmp_path / "m.gguf", {}, {"t": ((32,), 3, block)})
    weights = GGUFFile(tmp_path / "m.gguf").tensors["t"].read((slice(0, 32),))
    assert weights[[0, 16, 1]].tolist() == [6.5, 0.0, -1.0]
    write_gguf(tmp_path / "m.gguf", {}, {"t": ((32,), 24, bytes(32))})  # I8, which is no format of weights
    with pytest.raises(CheckpointError, match="t: expected a format that the package gguf reads, got number 24"):
        GGUFFile(tmp_path / "m.gguf")


def interleaved(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Rows of query or key as GGUF's `llama` has them: of each head 0, half, 1, half + 1, ..."""
    order = [base + j + half for base in range(0, len(rows), head_dim) for j in range(head_dim // 2)
             for half in (0, head_dim // 2)]  # fmt: skip
    return rows[order]


def write_model(path, decoder, family: str, kind: int = 0) -> int:
    config = decoder.config
    metadata = {
        "general.architecture": family,
        f"{family}.embedding_length": config.width,
        f"{family}.attention.head_count": config.num_heads,
        f"{family}.attention.head_count_kv": config.num_kv_heads,
        f"{family}.attention.key_length": config.head_dim,
        f"{family}.attention.layer_norm_rms_epsilon": config.norm_eps,
        f"{family}.block_count": config.num_layers,
        f"{family}.feed_forward_length": config.mlp_width,
        f"{family}.context_length": config.max_length,
        f"{family}.rope.freq_base": config.rope_theta,
    }
    tensors = {}
    for published, (_, make) in decoder_arrays(decoder).items():
        layer = next((part for part in published.split(".") if part.isdigit()), "")
        stored = NAMES[published.replace(f".{layer}.", ".{}.")].format(layer)
        array = np.asarray(make(), np.float32)
        if family == "llama" and stored.endswith(("attn_q.weight", "attn_k.weight")):
            array = interleaved(array, config.head_dim)
        data = array.astype(np.float16) if kind == 1 and array.ndim == 2 else array
        tensors[stored] = (array.shape, kind if array.ndim == 2 else 0, data.tobytes())
    return write_gguf(path, metadata, tensors)


@pytest.mark.parametrize("name", FAMILIES)
def test_models_of_every_family_are_read(tmp_path, name):
    decoder = build(VARIANTS[name])
    write_model(tmp_path / "m.gguf", decoder, FAMILIES[name])
    other = load_gguf(tmp_path / "m.gguf", attention_block=0)
    eps = other.config.norm_eps  # float32 in the file
    assert dataclasses.replace(other.config, norm_eps=decoder.config.norm_eps) == decoder.config
    assert eps == pytest.approx(decoder.config.norm_eps, rel=1e-6)
    jax.tree.map(np.testing.assert_array_equal, nnx.state(other), nnx.state(decoder))


def test_halves_and_other_dtypes(tmp_path):
    decoder = build(VARIANTS["qwen2"])
    write_model(tmp_path / "m.gguf", decoder, "qwen2", kind=1)
    other = load_gguf(tmp_path / "m.gguf", param_dtype="bfloat16", dtype="bfloat16")
    expected = np.asarray(decoder.layers.query[...]).astype(np.float16).astype(other.embedding[...].dtype)
    np.testing.assert_array_equal(other.layers.query[...], expected)


def test_wrong_files_are_refused(tmp_path):
    path = tmp_path / "m.gguf"
    decoder = build(VARIANTS["llama"])
    write_model(path, decoder, "llama")
    file = GGUFFile(path)
    for key, value, message in [
        ("general.architecture", "gemma", "expected one of llama, qwen2, qwen3, got 'gemma'"),
        ("llama.rope.scaling.type", "yarn", "expected no rotary scaling, got 'yarn'"),
        ("llama.rope.dimension_count", 4, "rope.dimension_count: expected 6, got 4"),
    ]:
        changed = GGUFFile(path)
        changed.metadata[key] = value
        with pytest.raises(InvalidInputError, match=message):
            load_gguf(changed)
    missing = file.tensors.pop("blk.1.ffn_up.weight")
    with pytest.raises(CheckpointError, match=r"expected a tensor blk\.1\.ffn_up\.weight"):
        load_gguf(file)
    file.tensors |= {"blk.1.ffn_up.weight": missing, "blk.9.ffn_up.weight": missing}
    with pytest.raises(CheckpointError, match=r"1 tensors have no place.*blk\.9\.ffn_up"):
        load_gguf(file)
    file.tensors["blk.1.ffn_up.weight"] = file.tensors["blk.1.ffn_down.weight"]
    with pytest.raises(CheckpointError, match=r"expected shape \(32, 24\), got \(24, 32\)"):
        load_gguf(file)
    path.write_bytes(b"GGML" + path.read_bytes()[4:])
    with pytest.raises(CheckpointError, match="expected GGUF version 2 or 3, got b'GGML'"):
        GGUFFile(path)


@pytest.mark.parametrize("kind", [0, 1, 3, 8, 14])
@pytest.mark.parametrize("shape", [(), (0,), (0, 256), (2, 0), (2, 0, 256), (2, 255), (2**63, 2**63)])
def test_a_tensor_of_no_or_another_size_is_refused_by_name(tmp_path, shape, kind):
    write_gguf(tmp_path / "m.gguf", {}, {"t": (shape, kind, bytes(64))})
    with pytest.raises(CheckpointError, match=r"m\.gguf: t: expected"):
        GGUFFile(tmp_path / "m.gguf")


def test_a_header_that_lies_about_the_model_is_refused_by_name(tmp_path):
    path, decoder = tmp_path / "m.gguf", build(VARIANTS["llama"])
    write_model(path, decoder, "llama")
    lies = [0, -1, 2**60, "x", 0.5, None, [], ["x"], np.arange(3), True]
    keys = [key for key in GGUFFile(path).metadata if key.startswith("llama.")]
    refused = 0
    for key in [*keys, "general.architecture", "llama.rope.dimension_count", "llama.rope.scaling.type"]:
        for lie in lies:
            file = GGUFFile(path)
            file.metadata[key] = lie
            try:
                other = load_gguf(file)
            except EmbodiedMemError:
                refused += 1
            else:  # a number that decides no shape, e.g. how long a text may be
                assert other.embedding[...].shape == decoder.embedding[...].shape
    assert refused > 9 * len(lies)
    file = GGUFFile(path)
    file.metadata["llama.feed_forward_length"] = 2**60
    with pytest.raises(CheckpointError, match=r"m\.gguf: expected the description of a decoder.*parameters"):
        load_gguf(file)
    write_gguf(path, {"general.alignment": "x"}, {})
    with pytest.raises(CheckpointError, match=r"general\.alignment: expected an integer >= 1, got 'x'"):
        GGUFFile(path)
    write_gguf(path, {}, {"t": ((8,), 0, bytes(32)), "u": ((8,), 0, bytes(32))})
    data = path.read_bytes()
    path.write_bytes(data.replace(b"u", b"t", 1))
    with pytest.raises(CheckpointError, match="t: expected one tensor of this name, got 2"):
        GGUFFile(path)


TEXTS = ["put a clean mug in cabinet 12.", "It's 1,234 o'clock;\n\n  über-naïve  日本語 🙂\t!", "don't DON'T we'll"]


@pytest.fixture(scope="module")
def metadata() -> dict:
    """Tokenizer metadata as llama.cpp's converter writes it, from a small vocabulary trained here."""
    names = ("<pad>", "<bos>", "<eos>", "<unk>", "<soft>", "<|im_start|>", "<|im_end|>")
    described = json.loads(train_bpe([*TEXTS * 3, "12\n" * 20], 400, names)._backend.to_str())
    tokens = sorted(described["model"]["vocab"], key=described["model"]["vocab"].get)
    merges = [" ".join(m) if isinstance(m, list) else m for m in described["model"]["merges"]]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.array([3 if token in names else 1 for token in tokens]),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 5,
        "tokenizer.ggml.eos_token_id": 6,
        "tokenizer.chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    }


@pytest.mark.parametrize("cutting", ["gpt-2", "smollm", "qwen2", "llama-bpe"])
def test_a_tokenizer_from_metadata_round_trips(metadata, cutting):
    pretrained = PretrainedTokenizer.from_gguf(metadata | {"tokenizer.ggml.pre": cutting})
    tokenizer = pretrained.tokenizer
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.vocab_size) == (5, 6, len(metadata["tokenizer.ggml.tokens"]))
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode("<|im_end|>", special=True) == [6]
    assert 6 not in tokenizer.encode("<|im_end|>")


def test_digits_stand_alone_where_the_family_has_them_alone(metadata):
    def pieces(cutting: str) -> list[str]:
        tokenizer = PretrainedTokenizer.from_gguf(metadata | {"tokenizer.ggml.pre": cutting}).tokenizer
        return [tokenizer.token(i) for i in tokenizer.encode("12")]

    assert "12" in metadata["tokenizer.ggml.tokens"]  # the merge exists, so only the cutting keeps them apart
    assert pieces("smollm") == pieces("qwen2") == ["1", "2"]
    assert pieces("gpt-2") == pieces("llama-bpe") == ["12"]


def test_unknown_tokenizers_are_refused(metadata):
    for change, message in [
        ({"tokenizer.ggml.model": "llama"}, r"expected gpt2 \(byte-level BPE\), got 'llama'"),
        ({"tokenizer.ggml.pre": "viking"}, "expected one of gpt-2, smollm, qwen2, llama-bpe, got 'viking'"),
        ({"tokenizer.ggml.pre": None}, "tokenizer.ggml.pre: expected one of .*, got None; where a file has none"),
        ({"tokenizer.ggml.pre": ["smollm"]}, "tokenizer.ggml.pre: expected one of"),
        ({"tokenizer.ggml.model": np.arange(2)}, "tokenizer.ggml.model: expected gpt2"),
        ({"tokenizer.ggml.tokens": 3}, "tokenizer.ggml.tokens: expected texts, got 3"),
        ({"tokenizer.ggml.merges": [1]}, "tokenizer.ggml.merges: expected texts"),
        ({"tokenizer.ggml.token_type": 1}, "token_type: expected a number per token"),
        ({"tokenizer.ggml.eos_token_id": 10**6}, r"eos_token_id: expected a number below \d+, got 1000000"),
        ({"tokenizer.ggml.bos_token_id": -1}, "bos_token_id: expected a number below"),
        ({"tokenizer.chat_template": 4}, "chat_template: expected a text, got 4"),
        ({"tokenizer.ggml.merges": ["a b c"]}, "merges of two"),
        ({"tokenizer.ggml.merges": ["qqq zzz"]}, "expected merges of the vocabulary's tokens"),
        ({"tokenizer.ggml.tokens": ["a", "a"]}, "expected distinct tokens"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            PretrainedTokenizer.from_gguf(metadata | change)


def test_templates(metadata, tmp_path):
    pretrained = PretrainedTokenizer.from_gguf(metadata)
    chat = [{"role": "user", "content": "hi"}]
    assert pretrained.render(chat) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    pretrained.save(tmp_path)
    again = PretrainedTokenizer.from_folder(tmp_path)
    assert again.chat_template == pretrained.chat_template
    assert again.render(chat) == pretrained.render(chat)
    assert again.tokenizer.encode(again.render(chat), special=True)[0] == 5
    assert again.tokenizer.eos_id == 6
    assert again.roles == pretrained.roles == {"bos": "<|im_start|>", "eos": "<|im_end|>"}
    # The file has no padding and no unknown token: the vocabulary's are used here, and the model does not get them.
    assert again.tokenizer.pad_id == 0
    described = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert {key for key in described if key.endswith("_token")} == {"bos_token", "eos_token"}
    assert json.loads((tmp_path / "generation_config.json").read_text()) == {"bos_token_id": 5, "eos_token_id": 6}
    named = dataclasses.replace(pretrained, chat_template="{{ bos_token }}|{{ pad_token }}|{{ unk_token }}")
    assert named.render(chat) == "<|im_start|>||"
    assert (tmp_path / "chat_template.jinja").read_text() == pretrained.chat_template
    dataclasses.replace(pretrained, chat_template=None).save(tmp_path)
    assert PretrainedTokenizer.from_folder(tmp_path).chat_template is None
    refusing = dataclasses.replace(pretrained, chat_template="{{ raise_exception('roles must alternate') }}")
    with pytest.raises(InvalidInputError, match="chat template: roles must alternate"):
        refusing.render(chat)
    unsafe = dataclasses.replace(pretrained, chat_template="{{ ''.__class__.__mro__ }}")
    with pytest.raises(InvalidInputError, match="unsafe"):
        unsafe.render(chat)
    with pytest.raises(InvalidInputError, match="this model has none"):
        dataclasses.replace(pretrained, chat_template=None).render(chat)
