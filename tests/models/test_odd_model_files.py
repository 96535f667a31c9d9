"""Damaged and odd model files: every reader refuses them with an error of ours that names the file, or reads them.

Bytes are cut, flipped and overwritten; JSON gets values of other kinds, huge and missing ones. No panic of a Rust
package, no KeyError, struct.error or MemoryError leaves a reader.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
import struct
import traceback

import numpy as np
import pytest
from flax import nnx
from gguf_writing import write_gguf
from small_decoders import VARIANTS, build
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.language.tokenizers import Tokenizer, train_bpe
from embodied_mem.models.assembly import Index
from embodied_mem.models.config import LoraConfig
from embodied_mem.models.formats.gguf import GGUFFile, config_from_gguf
from embodied_mem.models.formats.hf import HFFolder, load_hf, save_hf
from embodied_mem.models.formats.peft import load_peft, save_peft
from embodied_mem.models.lora import add_lora

TRIES = 400
ODD = (
    None, True, -1, 0, 3, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, 1e308, float("inf"), float("nan"), "", "x", "\0",
    "\ud800", "../x", "BPE", "<pad>", [], [[]], [None], ["a", "b"], {}, {"a": {}}, {"type": "x"}, "9" * 5000, [0] * 9,
)  # fmt: skip


def flipped(rng: random.Random, data: bytes) -> bytes:
    """`data` cut, with bytes flipped, numbers overwritten, or parts moved."""
    changed = bytearray(data)
    near = min(len(data), 400) if rng.random() < 0.6 else len(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(near)
        how = rng.randrange(6)
        if how == 0:
            del changed[rng.choice((at, rng.randrange(len(data)))) :]
        elif how == 1:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif how == 2:
            number = rng.choice((0, 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1))
            changed[at : at + 8] = struct.pack("<Q", number)
        elif how == 3:
            del changed[at : at + rng.randrange(1, 40)]
        elif how == 4:
            changed[at:at] = changed[at // 2 : at // 2 + rng.randrange(40)]
        else:
            changed[at : at + 4] = struct.pack("<I", rng.choice((0, 5, 13, 2**31, 2**32 - 1)))
        near = max(1, min(near, len(changed)))
    return bytes(changed)


def twisted(rng: random.Random, data: bytes) -> bytes:
    """JSON with a value of another kind, a missing or a new key; or its bytes changed."""
    if rng.random() < 0.2:
        return flipped(rng, data)
    value = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        holder, at = value, None
        while isinstance(holder, (dict, list)) and holder:
            at = rng.choice(list(holder) if isinstance(holder, dict) else range(min(len(holder), 6)))
            if not isinstance(holder[at], (dict, list)) or not holder[at] or rng.random() < 0.35:
                break
            holder = holder[at]
        if at is None:
            return json.dumps(rng.choice(ODD)).encode()
        if rng.random() < 0.25:
            del holder[at]
        else:
            holder[at] = copy.deepcopy(rng.choice(ODD))
    return json.dumps(value).encode()


def whole(shape: tuple[int, ...]) -> Index:
    return tuple(slice(0, size) for size in shape)


def use(tokenizer: Tokenizer) -> None:
    for text in ("an apple 12", "é\n<pad>\0", ""):
        ids = tokenizer.encode(text)
        tokenizer.encode(text, special=True)
        tokenizer.decode(ids)
        tokenizer.cut(text, 2)
    tokenizer.decode(range(min(tokenizer.vocab_size, 40)), skip_special=True)
    tokenizer.token(3)


def read_gguf(path):
    file = GGUFFile(path)
    for tensor in file.tensors.values():
        tensor.read(whole(tensor.shape))
    config_from_gguf(file)
    pretrained = PretrainedTokenizer.from_gguf(file.metadata)
    use(pretrained.tokenizer)
    pretrained.render([{"role": "user", "content": "hi"}])


def read_pretrained(path):
    pretrained = PretrainedTokenizer.from_folder(path.parent)
    use(pretrained.tokenizer)
    pretrained.render([{"role": "user", "content": "hi"}])


def read_folder(path):
    folder = HFFolder(path.parent)
    for name in folder.left.copy():
        tensor = folder.tensor(name)
        tensor.read(whole(tensor.shape))


BASE = "qwen2"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder with one sound file, or set of files, of every kind."""
    root = tmp_path_factory.mktemp("sound")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    metadata = {
        "general.architecture": "llama", "general.alignment": 32, "llama.embedding_length": 8, "llama.block_count": 1,
        "llama.attention.head_count": 2, "llama.feed_forward_length": 8, "llama.context_length": 16,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [*letters, "an", "<eos>"], "tokenizer.ggml.merges": ["a n"],
        "tokenizer.ggml.token_type": np.array([1] * 257 + [3]), "tokenizer.ggml.eos_token_id": 257,
        "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
    }  # fmt: skip
    rows = np.zeros((258, 8), "<f4").tobytes()
    tensors = {"token_embd.weight": ((258, 8), 0, rows), "output_norm.weight": ((32,), 2, bytes(18))}
    write_gguf(root / "model.gguf", metadata, tensors)
    (root / "tokenizer").mkdir()
    train_bpe(["an apple 1 in fridge 12"] * 3, 280).save(root / "tokenizer" / "tokenizer.json")
    for kind, made in other_tokenizers().items():
        made.save(str(root / f"{kind}.json"))
    described = {
        "eos_token": "<eos>",
        "pad_token": {"content": "<pad>"},
        "chat_template": metadata["tokenizer.chat_template"],
    }
    (root / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(described))
    save_hf(build(VARIANTS[BASE]), root / "hf", max_shard_bytes=20_000)
    save_peft(add_lora(build(VARIANTS[BASE]), LoraConfig(rank=2, alpha=8.0), rngs=nnx.Rngs(3)), root / "peft")
    assert (root / "hf" / "model.safetensors.index.json").is_file()
    return root


def other_tokenizers():
    """Tokenizers of the other kinds of models that the package has."""
    vocabulary = {"[UNK]": 0, "an": 1, "apple": 2, "##s": 3, "\u2581an": 4, "1": 5}
    made = {
        "word_piece": Backend(models.WordPiece(vocabulary, unk_token="[UNK]")),
        "word_level": Backend(models.WordLevel(vocabulary, unk_token="[UNK]")),
        "unigram": Backend(models.Unigram([(token, -1.0) for token in vocabulary], unk_id=0, byte_fallback=False)),
    }
    for backend in made.values():
        backend.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace("x", "y")])
        backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Metaspace()])
        backend.decoder = decoders.WordPiece()
        backend.post_processor = processors.TemplateProcessing("[UNK] $A", special_tokens=[("[UNK]", 0)])
        backend.add_special_tokens(["<eos>", "<pad>"])
    return made


def load_adapter(decoder):
    return lambda path: load_peft(decoder, path.parent)


READERS = {
    "GGUF": ("model.gguf", flipped, read_gguf, 3),
    "tokenizer.json": ("tokenizer/tokenizer.json", twisted, lambda path: use(Tokenizer.load(path)), 3),
    **{
        f"tokenizer.json of {kind}": (f"{kind}.json", twisted, lambda path: use(Tokenizer.load(path)), 2)
        for kind in ("word_piece", "word_level", "unigram")
    },
    "tokenizer_config.json": ("tokenizer/tokenizer_config.json", twisted, read_pretrained, 1),
    "safetensors": ("hf/*.safetensors", flipped, read_folder, 1),
    "index": ("hf/model.safetensors.index.json", twisted, read_folder, 1),
    "config.json": ("hf/config.json", twisted, lambda path: load_hf(path.parent), 0.15),
    "adapter_config.json": ("peft/adapter_config.json", twisted, None, 0.5),
    "adapters": ("peft/adapter_model.safetensors", flipped, None, 0.5),
}


@pytest.mark.parametrize("name", READERS)
def test_odd_files_are_refused_by_name_or_read(sound, tmp_path, name):
    pattern, change, read, share = READERS[name]
    shutil.copytree(sound, tmp_path / "odd")
    path = sorted((tmp_path / "odd").glob(pattern))[0]
    read = read or load_adapter(build(VARIANTS[BASE]))
    data, rng = path.read_bytes(), random.Random(name)
    read(path)
    wrong, refused = {}, 0
    odd = [b"", b"\0", b"[]", b"{}", b"null", data[:7], data[: len(data) // 2], data[:-1], b"\xff" * 64]
    for number in range(int(TRIES * share)):
        changed = odd[number] if number < len(odd) else change(rng, data)
        path.write_bytes(changed)
        try:
            read(path)
        except EmbodiedMemError as error:
            refused += 1
            if not any(
                part in str(error) for part in (path.name, path.parent.name, "tokenizer.ggml", "GGUF", "template")
            ):
                wrong.setdefault(f"no file in: {str(error)[:150]}", changed[:200])
        except BaseException as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            place = next(
                (f for f in traceback.extract_tb(error.__traceback__)[::-1] if "embodied_mem/" in f.filename), at
            )
            wrong.setdefault(f"{type(error).__name__} at {place.filename[-40:]}:{place.lineno}: {str(error)[:120]}", "")
    assert not wrong, "\n".join(wrong)
    assert refused > 0.1 * TRIES * share
