"""The supervised losses against a few lines of numpy, and what their gradients may reach."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.training.config import ONE_DEVICE, MeshConfig, SFTConfig
from embodied_mem.training.data import CompilerBatch, ExecutorBatch, Row, pad_rows, spots_of
from embodied_mem.training.models import CompilerModel, split_executor
from embodied_mem.training.optimizers import TrainState, make_muon
from embodied_mem.training.sft import make_compiler_step, make_executor_step

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]

VOCAB, SOFT, NUM_SOFT, WIDTH = 24, 4, 4, 24


@functools.cache
def key():
    return jax.random.key(5)


GUIDED = np.array([True, False, True])
REFERENCES = np.array([[7, 8, 9, 4], [4, 4, 4, 4], [11, 4, 4, 4]], np.int32)
SHAPE = {"vocab_size": VOCAB, "num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "mlp_width": 32, "max_length": 32}
BATCH = pad_rows(
    [
        Row([5, 6, 7, 8], [9, 10, 2], [SOFT] * NUM_SOFT),
        Row([5, 6, 13], [14, 2], [SOFT] * NUM_SOFT),
        Row([6, 15], [16, 17, 18, 2], [SOFT] * NUM_SOFT),
    ],
    pad_id=0, multiple=8,
)  # fmt: skip


def placeholders(batch):
    return batch._replace(suffix=(batch.tokens == SOFT) & batch.mask)


EXECUTOR_ROWS = [
    Row([5, 6, SOFT, SOFT, SOFT, SOFT, 7], [9, 2]),
    Row([5, 8], [10, 11, 2]),
    Row([6, SOFT, SOFT, SOFT, SOFT], [12]),
]
EXECUTOR_BATCH = placeholders(pad_rows(EXECUTOR_ROWS, pad_id=0, multiple=8))


@functools.cache
def models():
    compiler = Decoder(DecoderConfig(width=32, head_dim=16, **SHAPE), rngs=nnx.Rngs(0))
    executor = Decoder(DecoderConfig(width=WIDTH, head_dim=12, **SHAPE), rngs=nnx.Rngs(1))
    # Embeddings of size 1, so that the soft tokens matter to the executor.
    executor.embedding[...] = executor.embedding[...] * 50
    config = SoftMemConfig(NUM_SOFT, embedding_std=0.9)
    return compiler, SoftMem(config, compiler_width=32, executor_width=WIDTH, rngs=nnx.Rngs(2)), executor


def keeping(step):
    """The step, which leaves the state that it is given as it is: it uses up a copy."""
    return lambda state, *rest: step(jax.tree.map(jnp.copy, state), *rest)


@functools.cache
def compiler_step(with_soft=True, mesh=ONE_DEVICE, **weights):
    """(step, state, executor_state): the step takes one step of SGD with rate 1, so old - new is the gradient."""
    compiler, soft_mem, executor = models()
    graphdef, params = nnx.split(CompilerModel(compiler, soft_mem if with_soft else None))
    executor_graphdef, executor_state = nnx.split(executor)
    optimizer = optax.sgd(1.0)
    terms = {"action": 0.0, "entropy": 0.0, "latent": 0.0, "orthogonality": 0.0} | weights
    step = make_compiler_step(graphdef, nnx.State({}), executor_graphdef, optimizer, SFTConfig(**terms), mesh=mesh)
    return keeping(step), TrainState(params, optimizer.init(params)), executor_state


ORIGIN = np.arange(3, dtype=np.int32)
DATA = CompilerBatch(BATCH, REFERENCES, GUIDED, EXECUTOR_BATCH, ORIGIN, spots_of(BATCH, 5), spots_of(EXECUTOR_BATCH, 5))


def run(with_soft=True, data=DATA, **weights):
    """(metrics, gradient as flat numpy vector by leaf path)."""
    step, state, executor_state = compiler_step(with_soft, **weights)
    new, metrics = step(state, executor_state, data, key())
    gradient = jax.tree.map(lambda a, b: a - b, state.trainable, new.trainable)
    leaves = {jax.tree_util.keystr(p): np.asarray(x) for p, x in jax.tree_util.tree_leaves_with_path(gradient)}
    return {k: float(v) for k, v in metrics.items()}, leaves


@nnx.jit
def _forward(decoder, embeddings, mask):
    hidden = decoder(embeddings=embeddings, mask=mask)
    return hidden, decoder.logits(hidden)


def forward(decoder, embeddings, mask):
    """(hidden states, logits) as float64 arrays."""
    return [np.asarray(x, np.float64) for x in _forward(decoder, jnp.asarray(embeddings, jnp.float32), mask)]


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


ALL = {"action": 0.7, "entropy": 0.1, "latent": 0.9, "orthogonality": 0.3}


def test_five_terms():
    compiler, soft_mem, executor = models()
    metrics, _ = run(**ALL)
    hidden, logits = forward(compiler, compiler.embedding[...][BATCH.tokens], BATCH.mask)
    table = log_softmax(logits)
    text = [
        -0.9 * table[b, t, BATCH.targets[b, t]] - 0.1 * table[b, t].mean()
        for b in range(3) for t in range(BATCH.tokens.shape[1]) if BATCH.learned[b, t]
    ]  # fmt: skip
    assert len(text) == 3 + 2 + 4
    expected = {"text": np.mean(text)}
    noise_keys = jax.random.split(jax.random.split(key())[0], 3)
    action, latent, orth, entropy = [], [], [], []
    embedding = np.asarray(executor.embedding[...], np.float64)
    inputs = embedding[EXECUTOR_BATCH.tokens]
    for b in (0, 2):
        start = {0: 7, 2: 6}[b]
        h = hidden[b, start : start + NUM_SOFT]
        mu = h @ np.asarray(soft_mem.mu_kernel[...]) + np.asarray(soft_mem.mu_bias[...])
        log_sigma = h @ np.asarray(soft_mem.log_sigma_kernel[...]) + np.asarray(soft_mem.log_sigma_bias[...])
        soft = mu + np.exp(log_sigma) * np.asarray(jax.random.normal(noise_keys[b], (NUM_SOFT, WIDTH)))
        inputs[b, EXECUTOR_BATCH.tokens[b] == SOFT] = soft
        cosine = mu @ embedding.T / np.linalg.norm(mu, axis=1)[:, None] / np.linalg.norm(embedding, axis=1)
        latent.append(-log_softmax(cosine / 0.1)[np.arange(NUM_SOFT), REFERENCES[b]].mean())
        said = hidden[b, BATCH.text[b]].mean(0)
        mean = h.mean(0)
        orth.append(abs(mean @ said) / np.linalg.norm(mean) / np.linalg.norm(said))
        entropy.append(-(log_sigma.mean() + 0.5 * np.log(2 * np.pi * np.e)))
    acted = log_softmax(forward(executor, inputs, EXECUTOR_BATCH.mask)[1])
    for b in (0, 2):
        action += [-acted[b, t, EXECUTOR_BATCH.targets[b, t]] for t in np.flatnonzero(EXECUTOR_BATCH.learned[b])]
    expected |= {"action": np.mean(action), "latent": np.mean(latent), "orth": np.mean(orth)}
    expected["entropy"] = np.mean(entropy)
    expected["loss"] = expected["text"] + sum(
        weight * expected[{"orthogonality": "orth"}.get(name, name)] for name, weight in ALL.items()
    )
    for name, value in expected.items():
        assert metrics[name] == pytest.approx(value, rel=2e-4, abs=1e-5), name


NO_ACTION = ALL | {"action": 0.0}


def test_action_gradient_through_the_executor_equals_finite_differences():
    """Along its own direction the central difference of L_action must be the gradient's length; the path leads from
    the compiler's embedding over soft positions, projection, sample and executor to the action's tokens."""
    (_, both), (_, others) = run(**ALL), run(**NO_ACTION)
    gradient = {name: (both[name] - others[name]) / ALL["action"] for name in both}
    assert all(np.abs(gradient[name]).max() > 0 for name in gradient)
    length = np.sqrt(sum((g**2).sum() for g in gradient.values()))
    step, state, executor_state = compiler_step(**ALL)
    paths, structure = jax.tree_util.tree_flatten_with_path(state.trainable)
    size, losses = 0.1 / length, []
    for sign in (-1, 1):
        moved = [leaf + sign * size * gradient[jax.tree_util.keystr(path)] / length for path, leaf in paths]
        there = state._replace(trainable=jax.tree_util.tree_unflatten(structure, moved))
        _, metrics = step(there, executor_state, DATA, key())
        losses.append(float(metrics["action"]))
    assert (losses[1] - losses[0]) / (2 * size) == pytest.approx(length, rel=0.02)


def test_without_soft_tokens_the_text_loss_alone_is_left():
    """The action loss has no other way into the compiler: without soft tokens it is not there at all, and the gradient
    is that of a batch in which no row has guidance."""
    metrics, without = run(with_soft=False, **ALL)
    assert set(metrics) == {"text", "text_nll", "text_accuracy", "loss", "grad_norm", "tokens"}
    none, silent = run(data=DATA._replace(guided=np.zeros(3, bool)), **ALL)
    assert [none[name] for name in ("action", "latent", "orth", "entropy")] == [0, 0, 0, 0]
    assert none["loss"] == pytest.approx(metrics["loss"], rel=1e-6)
    for name, value in silent.items():
        expected = 0 if "soft_mem" in name else without[name]
        np.testing.assert_allclose(value, expected, atol=1e-6)


def test_the_executor_may_read_some_of_the_rows_only():
    """With rows 2 and 0 of three, in this order, and row 1 without guidance, nothing is left out: all terms stay."""

    def read_by(rows, origin):
        return DATA._replace(executor=rows, origin=np.asarray(origin, np.int32), executor_spots=spots_of(rows, 5))

    rows = [EXECUTOR_ROWS[2], EXECUTOR_ROWS[0]]
    some = placeholders(pad_rows(rows, 0, 8, length=EXECUTOR_BATCH.tokens.shape[1]))
    metrics, gradient = run(**ALL)
    fewer, other = run(data=read_by(some, [2, 0]), **ALL)
    for name in ("loss", "action", "latent"):
        assert fewer[name] == pytest.approx(metrics[name], rel=1e-5)
    for name, value in gradient.items():
        np.testing.assert_allclose(other[name], value, atol=1e-5)
    one, _ = run(data=read_by(placeholders(pad_rows(rows[:1], 0, 8)), [2]), **ALL)
    assert one["action"] != pytest.approx(metrics["action"], rel=1e-3)
    assert one["latent"] == metrics["latent"]


def test_muon_orthogonalises_the_matrices_of_the_layers_alone():
    """One step from zero momentum: all singular values of a layer's matrix are moved nearly alike, in every layer."""
    compiler, soft_mem, _ = models()
    _, params = nnx.split(CompilerModel(compiler, soft_mem))
    optimizer = make_muon(lambda _: 1e-3, 0.0, 1e9)
    gradient = jax.tree.map(lambda p: jax.random.normal(key(), p.shape), params)
    updates = jax.jit(lambda gradient: optimizer.update(gradient, optimizer.init(params), params)[0])(gradient)
    flat = {jax.tree_util.keystr(p): np.asarray(x) for p, x in jax.tree_util.tree_leaves_with_path(updates)}
    shapes = {"query": 1, "output": 2, "down": 1}
    for name, split in shapes.items():
        (stacked,) = [x for path, x in flat.items() if f"'{name}'" in path]
        for matrix in stacked:
            values = np.linalg.svd(matrix.reshape(int(np.prod(matrix.shape[:split])), -1), compute_uv=False)
            assert values.max() < 3 * values.min(), name
    for path, value in flat.items():
        if "norm" in path or "embedding" in path or "soft_mem" in path:
            assert np.ptp(np.abs(value)) < 0.05 * np.abs(value).max()  # Adam's first step: signs


def test_executor_is_not_changed():
    step, state, executor_state = compiler_step(**ALL)
    before = jax.tree.map(np.array, executor_state)
    new, _ = step(state, executor_state, DATA, key())
    assert jax.tree.structure(new.trainable) == jax.tree.structure(state.trainable)
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(executor_state)))


def test_rows_without_guidance_contribute_to_the_text_loss_only():
    """Whatever the executor's row and the reference of row 1 say, nothing changes; nor does its share of a mean."""
    metrics, gradient = run(**ALL)
    rows = [EXECUTOR_ROWS[0], Row([9, 9, 9], [13, 2]), EXECUTOR_ROWS[2]]
    other = placeholders(pad_rows(rows, 0, 8, length=EXECUTOR_BATCH.tokens.shape[1]))
    references = REFERENCES.copy()
    references[1] = [20, 21, 22, 23]
    changed, other_gradient = run(
        data=DATA._replace(executor=other, references=references, executor_spots=spots_of(other, 5)), **ALL
    )
    for name in ("loss", "text", "action", "latent", "orth", "entropy"):
        assert changed[name] == metrics[name]
    assert all(np.array_equal(gradient[name], other_gradient[name]) for name in gradient)


@pytest.mark.parametrize("name", ["prompt", "suffix", "completion"])
def test_only_the_completion_carries_text_loss(name):
    """Another target at the prompt's or the soft positions changes no number; at one completion token it does."""
    where = {
        "prompt": BATCH.mask & ~BATCH.learned & ~BATCH.text & ~BATCH.suffix,
        "suffix": BATCH.suffix | ~BATCH.mask,
        "completion": BATCH.learned,
    }[name]
    assert where.any()
    metrics, gradient = run(**ALL)
    targets = np.where(where, (BATCH.targets + 1) % VOCAB, BATCH.targets)
    changed, other = run(data=DATA._replace(compiler=BATCH._replace(targets=targets)), **ALL)
    same = metrics["loss"] == changed["loss"] and all(np.array_equal(gradient[k], other[k]) for k in gradient)
    assert same == (name != "completion")


@functools.cache
def executor_step(prompt_weight):
    *_, executor = models()
    graphdef, params, frozen = split_executor(executor)
    optimizer = optax.sgd(1.0)
    step = make_executor_step(graphdef, frozen, optimizer, SFTConfig(prompt_weight=prompt_weight))
    return keeping(step), params, optimizer.init(params)


def executor_run(batch, references=REFERENCES, prompt_weight=0.0):
    step, params, optimizer = executor_step(prompt_weight)
    data = ExecutorBatch(batch, references, spots_of(batch, 2))
    new, metrics = step(TrainState(params, optimizer), data, key())
    return float(metrics["loss"]), np.asarray(params["embedding"][...] - new.trainable["embedding"][...])


def test_executor_loss():
    """Action tokens alone; placeholders hold the references' embeddings plus noise."""
    *_, executor = models()
    table = np.asarray(executor.embedding[...])
    noise = 0.6 * table.std() * np.asarray(jax.random.normal(key(), (3, NUM_SOFT, WIDTH)))
    inputs = table[EXECUTOR_BATCH.tokens]
    for b in (0, 2):
        inputs[b, EXECUTOR_BATCH.suffix[b]] = table[REFERENCES[b]] + noise[b]
    out = log_softmax(forward(executor, inputs, EXECUTOR_BATCH.mask)[1])
    where = np.nonzero(EXECUTOR_BATCH.learned)
    expected = -out[(*where, EXECUTOR_BATCH.targets[where])].mean()
    loss, gradient = executor_run(EXECUTOR_BATCH)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert np.abs(gradient).max() > 0
    other = np.where(EXECUTOR_BATCH.learned, EXECUTOR_BATCH.targets, 3)
    assert executor_run(EXECUTOR_BATCH._replace(targets=other))[0] == loss


def test_prompt_weight_adds_the_prompts_own_tokens():
    """Row 0 reads 5 6 S S S S 7 | 9 2: of the prompt only 5 -> 6 counts (6 predicts a placeholder, the last placeholder
    predicts 7 but is not text); row 1 reads 5 8 | ..: none (5 -> 8 ends where the action begins); row 2: none."""
    loss, _ = executor_run(EXECUTOR_BATCH)
    weighted, _ = executor_run(EXECUTOR_BATCH, prompt_weight=0.5)
    counted = []
    for position in zip(*np.nonzero(~EXECUTOR_BATCH.learned)):
        targets = EXECUTOR_BATCH.targets.copy()
        targets[position] = (targets[position] + 1) % VOCAB
        changed, _ = executor_run(EXECUTOR_BATCH._replace(targets=targets), prompt_weight=0.5)
        if changed != weighted:
            counted.append(tuple(map(int, position)))
    assert counted == [(0, 0)]
    assert weighted > loss


def test_remat_and_chunked_logits_change_nothing_but_memory():
    plain = compiler_step(**ALL)
    frugal = compiler_step(mesh=MeshConfig(remat=True, logits_chunk=5), **ALL)
    results = []
    for step, state, executor_state in (plain, frugal):
        results.append(step(state, executor_state, DATA, key()))
    (one, metrics), (other, frugal_metrics) = results
    for name, value in metrics.items():
        np.testing.assert_allclose(frugal_metrics[name], value, rtol=2e-5, err_msg=name)
    for a, b in zip(jax.tree.leaves(one.trainable), jax.tree.leaves(other.trainable)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
