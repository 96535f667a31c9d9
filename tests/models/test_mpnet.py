"""MPNet's sentence vectors against transformers' MPNet with the same random weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.models.sentence_encoders import MiniLM, MPNet

pytestmark = pytest.mark.usefixtures("unoptimised")

WORDS = ["<s>", "<pad>", "</s>", "[UNK]", "put", "apple", "in", "fridge", "the", "cup", "vase"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """transformers' model with random weights, and a folder with it as sentence-transformers writes one."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=len(WORDS), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        max_position_embeddings=200, initializer_range=0.7,
    )  # fmt: skip
    model = transformers.MPNetModel(config, add_pooling_layer=False).eval()
    folder = tmp_path_factory.mktemp("mpnet")
    model.save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 190}))
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return model, folder


def test_vectors_equal_those_of_transformers(original):
    import torch

    model, folder = original
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS[4:], n)) for n in (1, 5, 14, 40, 188)]  # up to distances beyond 128
    vectors = MPNet.load(folder).embed(texts)
    for text, vector in zip(texts, vectors):
        ids = torch.tensor([[0, *(WORDS.index(word) for word in text.split()), 2]])
        with torch.no_grad():
            mean = model(ids).last_hidden_state[0].mean(0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_order_of_words_far_apart_counts(original):
    embedder = MPNet.load(original[1])
    one, other = embedder.embed(["put apple the cup", "the cup put apple"])
    assert one @ other < 0.999


def test_other_checkpoints_and_no_folder_are_refused(original):
    with pytest.raises(InvalidInputError, match="expected model_type bert"):
        MiniLM.load(original[1])
    with pytest.raises(DataNotFoundError, match="give the folder"):
        MPNet.load()
