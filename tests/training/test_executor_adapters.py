"""An executor with adapters in its upper layers: what enters these may be kept, and all below stays as it is."""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from eight_devices_training import SHAPE, TOKENIZER, inputs
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import LoraConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import save_hf
from embodied_mem.models.formats.peft import save_peft
from embodied_mem.models.lora import LoraParam, add_lora, merge_lora, remove_lora
from embodied_mem.parallel.checkpoints import Checkpoints
from embodied_mem.training import config as c
from embodied_mem.training import loop, models, sft
from embodied_mem.training.data import ExecutorBatch, first_seen, spots_of
from embodied_mem.training.loop import read_metrics
from embodied_mem.training.optimizers import TrainState
from embodied_mem.training.sft import make_below, make_executor_step
from embodied_mem.training.teachers.episodes import Sample
from embodied_mem.worlds.alfworld.benchmark import AlfworldConfig, published_executor

pytestmark = pytest.mark.usefixtures("unoptimised")

LAYERS, TOP = 3, 2


def adapted(scan_layers: bool) -> Decoder:
    """A decoder whose adapters are new below and trained above, as they are after some steps."""
    shape = dataclasses.replace(SHAPE, num_layers=LAYERS, scan_layers=scan_layers)
    decoder = add_lora(Decoder(shape, rngs=nnx.Rngs(0)), LoraConfig(rank=4, dropout=0.0), rngs=nnx.Rngs(1))
    for name in ("query_lora_b", "value_lora_b"):
        array = getattr(decoder.layers, name)
        array[...] = array[...].at[LAYERS - TOP :].set(0.1)
    return decoder


@pytest.mark.parametrize("scan_layers", [False, True])
def test_what_is_kept_gives_the_loss_and_gradients_of_the_whole_run(scan_layers):
    rows, _, references, _ = inputs()
    key, optimizer = jax.random.key(3), optax.sgd(1.0)
    decoder = adapted(scan_layers)
    graph, params, frozen = models.split_executor(decoder)
    assert len(jax.tree.leaves(params)) == 4
    bare, base = nnx.split(remove_lora(nnx.merge(graph, params, frozen)))
    below = make_below(bare, base, TOP)(rows, references, key)
    assert below.shape == (*rows.tokens.shape, SHAPE.width)
    results = []
    for top, kept in ((None, None), (TOP, below)):
        step = make_executor_step(graph, frozen, optimizer, c.SFTConfig(), top=top)
        state = TrainState(jax.tree.map(jnp.copy, params), optimizer.init(params))
        new, metrics = step(state, ExecutorBatch(rows, references, spots_of(rows, 8), kept), key)
        gradients = jax.tree.map(lambda old, after: np.asarray(old - after), params, new.trainable)
        results.append((float(metrics["loss"]), nnx.to_flat_state(gradients)))
    (loss, whole), (kept_loss, upper) = results
    assert kept_loss == pytest.approx(loss, rel=1e-6)
    for (path, one), (_, other) in zip(whole, upper, strict=True):
        one, other = one[...], other[...]
        np.testing.assert_allclose(other[-TOP:], one[-TOP:], rtol=1e-4, atol=1e-7, err_msg=str(path))
        assert np.abs(other[-TOP:]).max() > 1e-5
        assert not other[:-TOP].any()
        assert one[:-TOP].any() == path[-1].endswith("_b")  # B is zero there, so A has no gradient


def test_epochs_are_the_first_in_other_orders():
    steps = [first_seen(step, 5, 7) for step in range(20)]
    assert steps[:5] == [0, 1, 2, 3, 4]
    for start in (5, 10, 15):
        assert sorted(steps[start : start + 5]) == [0, 1, 2, 3, 4]
    assert len({tuple(steps[start : start + 5]) for start in (0, 5, 10, 15)}) > 2


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """folder, changes of the configuration -> a run whose executor is a published one of three layers."""
    weights = tmp_path_factory.mktemp("published")
    save_hf(adapted_base(), weights / "executor")
    TOKENIZER.save(weights / "executor" / "tokenizer.json")

    def made(folder, top=TOP, **sft) -> loop.Run:
        config = c.Config(
            world=c.WorldConfig(num_train=8, num_valid=1),
            memory=c.MemoryConfig(num_soft=0),
            model=c.ModelConfig("micro", "qwen2.5-0.5b", weights=str(weights), executor_lora=top),
            executor_sft=c.SFTConfig(**{"steps": 8, "num_batches": 3, "learning_rate": 0.05, **sft}),
        )
        return loop.Run(config, TOKENIZER, folder)

    return made


def adapted_base() -> Decoder:
    shape = dataclasses.replace(SHAPE, num_layers=LAYERS, vocab_size=TOKENIZER.vocab_size, max_length=256)
    return Decoder(shape, rngs=nnx.Rngs(0))


def samples() -> list[Sample]:
    view = ("put apple in fridge", "fridge 1", ())
    return [Sample("", "", "", view, "", f"find apple {i}", "", f"go to fridge {i}") for i in range(8)]


def test_each_batch_goes_through_the_lower_layers_once(run_of, tmp_path, monkeypatch):
    calls = []
    make = sft.make_below

    def counted(*arguments):
        below = make(*arguments)
        return lambda *rows: calls.append(1) or below(*rows)

    monkeypatch.setattr(sft, "make_below", counted)
    executor = sft.train_executor(run_of(tmp_path / "straight"), samples())
    assert len(calls) == 3
    losses = [line["loss"] for line in read_metrics(tmp_path / "straight/executor")]
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    state = nnx.state(executor)
    for name in ("query", "down", "final_norm"):
        kept, was = (getattr(one.layers, name, None) or one.final_norm for one in (executor, adapted_base()))
        np.testing.assert_array_equal(kept[...], was[...])
    changed = np.abs(np.asarray(executor.layers.query_lora_b[...])).max((1, 2, 3))
    assert (changed[:-TOP] == 0).all()
    assert (changed[-TOP:] > 0).all()
    assert len(jax.tree.leaves(nnx.filter_state(state, LoraParam))) == 4

    sft.train_executor(run_of(tmp_path / "all", num_batches=0, steps=4), samples())
    assert len(calls) == 3 + 4  # none of them comes again


def test_a_stage_that_was_stopped_goes_on_to_the_same_numbers(run_of, tmp_path, monkeypatch):
    straight = sft.train_executor(run_of(tmp_path / "straight"), samples())
    whole = run_of(tmp_path / "stopped", checkpoint_every=2)

    make, steps, save = sft.make_executor_step, [], Checkpoints.save

    def written(checkpoints, *arguments):
        save(checkpoints, *arguments)
        checkpoints.wait()

    def stopping(*arguments, **options):
        step = make(*arguments, **options)

        def stopped(*arguments):
            steps.append(1)
            if len(steps) > 5:
                raise KeyboardInterrupt
            return step(*arguments)

        return stopped

    monkeypatch.setattr(Checkpoints, "save", written)
    monkeypatch.setattr(sft, "make_executor_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        sft.train_executor(whole, samples())
    monkeypatch.setattr(sft, "make_executor_step", make)
    resumed = sft.train_executor(whole, samples())
    for one, other in zip(jax.tree.leaves(nnx.state(straight)), jax.tree.leaves(nnx.state(resumed)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_adapters_want_a_published_executor_with_as_many_layers(run_of, tmp_path):
    with pytest.raises(
        InvalidInputError, match=r"model\.executor_lora: expected 0, or layers .* has 3, got 4 with qwen"
    ):
        sft.train_executor(run_of(tmp_path, top=4), samples())
    config = run_of(tmp_path).config
    scratch = dataclasses.replace(config, model=dataclasses.replace(config.model, weights=""))
    with pytest.raises(InvalidInputError, match=r"model\.executor_lora: .* of a published executor"):
        models.executor_of(scratch, adapted_base())


def test_evaluate_reads_them_and_tells_the_executor_nothing(run_of, tmp_path):
    folder = run_of(tmp_path).config.model.weights + "/executor"
    decoder = adapted(False)
    save_peft(decoder, tmp_path / "adapters")
    executor = published_executor(pathlib.Path(folder), "0.4", 0.0, str(tmp_path / "adapters"))
    turn = executor.act(["task: put apple in fridge\n>"], jax.random.split(jax.random.key(0), 1))
    assert turn.tokens_in == [len(TOKENIZER.encode("task: put apple in fridge\n>"))]
    merged = merge_lora(decoder).layers.query[...]
    np.testing.assert_allclose(executor.decoder.layers.query[...], merged, rtol=1e-6)
    assert np.abs(merged - adapted_base().layers.query[...]).max() > 1e-3
    with pytest.raises(InvalidInputError, match="--adapters: expected --executor beside them"):
        AlfworldConfig(adapters=str(tmp_path / "adapters"))
