"""Tokenizers: any text round-trips, pieces are as documented, training is deterministic."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.language import SPECIAL_TOKENS, Tokenizer, train_bpe

OBJECTS = ["apple", "mug", "alarmclock", "butterknife", "soapbottle"]
PLACES = ["fridge", "countertop", "drawer", "sinkbasin", "shelf"]
TEXTS = [
    f"goal: put a clean {thing} in {place}\nnow: find {thing}\nseen: {thing} {i} in {place} 1{i}; {thing} 2 in {place}"
    for i, thing in enumerate(OBJECTS)
    for place in PLACES
] + ["\n\n\n"] * 9


@functools.cache
def tokenizer():
    return train_bpe(TEXTS, 600)


valid_text = st.text(st.characters(codec="utf-8"), max_size=60)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.one_of(valid_text, st.lists(st.sampled_from([*TEXTS, *SPECIAL_TOKENS, " ", "\r\n"]), max_size=4).map("".join))
)
def test_any_text_round_trips(text):
    ids = tokenizer().encode(text)
    assert tokenizer().decode(ids) == text
    assert all(5 <= i < tokenizer().vocab_size for i in ids)  # no special token comes out of a text


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.one_of(valid_text, st.sampled_from(TEXTS)), max_size=4).map("\n".join))
def test_encoding_by_remembered_lines_equals_encoding_at_once(text):
    at_once = tokenizer()._backend.encode(text, add_special_tokens=False).ids
    assert tokenizer().encode(text) == tokenizer().encode(text) == at_once


def test_domain_words_digits_and_newlines_are_single_tokens():
    for word in [*OBJECTS, *PLACES, "clean", "in", "find"]:
        assert len(tokenizer().encode(f" {word}")) == 1
    pieces = [tokenizer().decode([i]) for i in tokenizer().encode("now: find mug\nseen: mug 12 in fridge 1; x-1\n\n")]
    joined = "|".join(pieces)
    assert "| mug| 12| in| fridge| 1|;|" in joined
    assert joined.endswith("|\n|\n")
    assert "| mug|\n|" in joined


def test_training_is_deterministic_across_processes(tmp_path):
    code = f"import sys; from embodied_mem.language import train_bpe\nprint(train_bpe({TEXTS!r}, 600).vocab_hash)"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "TOKENIZERS_PARALLELISM": parallel, "PYTHONHASHSEED": str(len(parallel))},
        ).stdout.strip()
        for parallel in ("true", "false")
    }
    assert hashes == {tokenizer().vocab_hash}
    assert train_bpe(TEXTS[:10], 600).vocab_hash != tokenizer().vocab_hash


def test_save_and_load_keep_ids_roles_and_hash(tmp_path):
    path = tmp_path / "folder" / "tokenizer.json"
    tokenizer().save(path)
    again = Tokenizer.load(path)
    assert again.vocab_hash == tokenizer().vocab_hash
    assert again.encode_batch(TEXTS) == tokenizer().encode_batch(TEXTS)
    roles = [again.pad_id, again.bos_id, again.eos_id, again.unk_id, again.soft_id]
    assert roles == [0, 1, 2, 3, 4] == [again.id_of(name) for name in SPECIAL_TOKENS]
    assert os.listdir(path.parent) == ["tokenizer.json"]
    path.write_text(path.read_text()[:-40])
    with pytest.raises(InvalidInputError, match=r"tokenizer\.json"):
        Tokenizer.load(path)


def test_special_tokens_only_when_asked_for():
    assert tokenizer().encode("<eos><soft>", special=True) == [2, 4]
    assert 2 not in tokenizer().encode("<eos>")
    assert 2 not in tokenizer().encode("<eos> in a line that is new after special=True")
    assert tokenizer().encode("a", bos=True, eos=True)[::2] == [1, 2]
    assert tokenizer().decode([1, *tokenizer().encode("a b"), 2]) == "<bos>a b<eos>"
    assert tokenizer().decode([1, *tokenizer().encode("a b"), 2], skip_special=True) == "a b"


def wordpiece(tmp_path) -> Tokenizer:
    """A tokenizer.json of another make: lower-casing WordPiece with BERT's names."""
    import tokenizers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "world", "##s"]
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    backend.normalizer = tokenizers.normalizers.BertNormalizer()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    backend.enable_padding()
    backend.enable_truncation(2)
    backend.save(str(tmp_path / "wordpiece.json"))
    return Tokenizer.load(tmp_path / "wordpiece.json")


def test_a_foreign_tokenizer_json_loads(tmp_path):
    tokenizer = wordpiece(tmp_path)
    assert tokenizer.encode("Hello\nworlds xyz") == [4, 5, 6, 1]
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id) == (0, 2, 3, 1)
    assert tokenizer.soft_id is None
    named = Tokenizer.load(tmp_path / "wordpiece.json", soft="[UNK]", eos="[CLS]")
    assert (named.soft_id, named.eos_id) == (1, 2)
    with pytest.raises(InvalidInputError, match="soft"):
        Tokenizer.load(tmp_path / "wordpiece.json", soft="<none>")
    with pytest.raises(InvalidInputError, match="roles"):
        Tokenizer.load(tmp_path / "wordpiece.json", mask="[UNK]")


def test_pad_puts_tokens_left_or_right():
    ids, mask = tokenizer().pad([[7, 8], [9]], 3)
    np.testing.assert_array_equal(ids, [[7, 8, 0], [9, 0, 0]])
    np.testing.assert_array_equal(mask, [[1, 1, 0], [1, 0, 0]])
    ids, mask = tokenizer().pad([[7, 8], [9], []], left=True)
    np.testing.assert_array_equal(ids, [[7, 8], [0, 9], [0, 0]])
    np.testing.assert_array_equal(mask, [[1, 1], [0, 1], [0, 0]])
    assert (ids.dtype, mask.dtype) == (np.int32, bool)
    with pytest.raises(InvalidInputError, match="at most 1"):
        tokenizer().pad([[7, 8]], 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tokenizer().encode("\ud800"),
        lambda: tokenizer().encode_batch("text"),
        lambda: tokenizer().decode([tokenizer().vocab_size]),
        lambda: tokenizer().decode([-1]),
        lambda: tokenizer().id_of("<none>"),
        lambda: train_bpe([], 100),
        lambda: train_bpe([], 600, ["<pad>"]),
        lambda: train_bpe([], 600, [*SPECIAL_TOKENS, "<pad>"]),
    ],
)
def test_wrong_input_is_refused(call):
    with pytest.raises(InvalidInputError):
        call()


def test_import_is_light():
    code = (
        "import sys, embodied_mem.language, embodied_mem.memory, embodied_mem.compiler\n"
        "heavy = {'jax', 'flax', 'tokenizers', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
