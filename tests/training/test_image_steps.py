"""Training steps with images: they reach losses and policy, the tower stays as it is, and texts alone are as before."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from small_seeing import BLACK, COUNT, SIDE, picture, reader, seeing, tokenizer

from embodied_mem.agents.deliveries import CompiledMemory
from embodied_mem.agents.rollout import play
from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experiences
from embodied_mem.models.config import LoraConfig
from embodied_mem.models.lora import add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig, perceptual_alignment
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.models.vision.qwen_vl_vision import see
from embodied_mem.parallel.mesh import MeshShape, abstract_mesh
from embodied_mem.parallel.sharding import shardings
from embodied_mem.training import grpo, models
from embodied_mem.training.config import Config, DataConfig, MemoryConfig, ModelConfig, WorldConfig
from embodied_mem.training.data import compiler_batch
from embodied_mem.training.models import CompilerModel
from embodied_mem.training.optimizers import TrainState
from embodied_mem.training.sft import make_compiler_step
from embodied_mem.training.teachers.episodes import Sample
from embodied_mem.types import Episode, Step

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]

NUM_SOFT = 4
CONFIG = Config(
    world=WorldConfig(num_train=4, num_valid=4),
    memory=MemoryConfig(num_soft=NUM_SOFT),
    model=ModelConfig(lora=True, images=COUNT, image_side=SIDE),
    data=DataConfig(no_brief=0.0),
)
SAMPLE = Sample(
    "memory:\nnothing\ngoal: find the mug\n=", "", "hybrid\ndo: go to desk 1\n", ("find the mug", "desk 1", ()), "",
    "go to desk 1", "desk 1 room", "go to desk 1", images=(picture(0),), remembered=(picture(1), picture(2)),
)  # fmt: skip
PLAIN = dataclasses.replace(SAMPLE, images=(), remembered=())


@functools.cache
def both_models():
    executor = seeing(1, layers=1)
    compiler = add_lora(seeing(0, layers=1), LoraConfig(rank=2), rngs=nnx.Rngs(2))
    for name in ("query_lora_b", "value_lora_b"):  # at zero, where they start, their other half has no gradient
        adapter = getattr(compiler.layers, name)
        adapter[...] = jax.random.normal(jax.random.key(5), adapter[...].shape) * 0.1
    soft = SoftMem(SoftMemConfig(NUM_SOFT), compiler_width=48, executor_width=48, rngs=nnx.Rngs(3))
    return CompilerModel(compiler, soft), executor


@functools.cache
def compiler_step():
    """(step, state, executor_state); the step is one of SGD with rate 1."""
    model, executor = both_models()
    graph, params, frozen = models.split_model(CONFIG, model)
    executor_graph, executor_state = nnx.split(executor)
    optimizer = optax.sgd(1.0)
    step = make_compiler_step(graph, frozen, executor_graph, optimizer, CONFIG.compiler_sft)
    return step, TrainState(params, optimizer.init(params)), executor_state


def trained(*samples: Sample):
    """(metrics, gradient as one vector) of a supervised step."""
    step, state, executor_state = compiler_step()
    readers = reader(both_models()[0].decoder), reader(both_models()[1])
    batch = compiler_batch(tokenizer(), samples, CONFIG, 1.0, np.random.default_rng(0), readers)
    new, metrics = step(jax.tree.map(jnp.copy, state), executor_state, batch, jax.random.key(0))
    moved = jax.tree.map(lambda a, b: (a - b).ravel(), state.trainable, new.trainable)
    return batch, {name: float(value) for name, value in metrics.items()}, np.concatenate(jax.tree.leaves(moved))


def test_a_supervised_step_depends_on_the_pixels():
    other = dataclasses.replace(SAMPLE, images=(picture(7),))
    batch, metrics, gradient = trained(SAMPLE, other)
    _, black, black_gradient = trained(*(dataclasses.replace(s, images=(BLACK,)) for s in (SAMPLE, other)))
    assert batch.compiler.pictures.shape == (2, COUNT, SIDE, SIDE, 3)
    assert batch.recalled.tolist() == [[True, False]] * 2  # the best of memory's two, then what is seen now
    for name in ("text", "action", "orth"):
        assert abs(metrics[name] - black[name]) > 1e-5, name
    assert np.abs(gradient - black_gradient).max() > 1e-4
    assert np.isfinite(gradient).all()
    assert metrics["perceptual"] > 0

    remembered = dataclasses.replace(SAMPLE, remembered=(picture(1), BLACK))
    _, changed, _ = trained(remembered, dataclasses.replace(other, remembered=(picture(1), BLACK)))
    assert abs(changed["perceptual"] - metrics["perceptual"]) > 1e-5


def test_without_pictures_a_step_is_that_of_texts():
    batch, metrics, _ = trained(PLAIN, PLAIN)
    assert batch.compiler.pictures is batch.executor.pictures is batch.recalled is None
    assert "perceptual" not in metrics
    blind = PictureReader(None, tokenizer())  # of a model that does not see: pictures change nothing
    unseen = compiler_batch(tokenizer(), (SAMPLE, SAMPLE), CONFIG, 1.0, np.random.default_rng(0), (blind, blind))
    jax.tree.map(np.testing.assert_array_equal, unseen, batch)


def test_the_tower_is_frozen():
    model, _ = both_models()
    for config in (CONFIG, dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, lora=False))):
        _, params, frozen = models.split_model(config, model)
        paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
        assert paths
        assert not any("vision" in path for path in paths)
        assert any("vision" in jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(frozen))


def test_adapters_in_the_tower_are_trained_with_the_others():
    config = dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, vision_lora=True))
    model = models.compiler_of(config, seeing(0, layers=1), 48, 0.02)
    without = models.compiler_of(CONFIG, seeing(0, layers=1), 48, 0.02)
    shown = np.stack([reader(model.decoder).pixels((picture(0),))])
    before = [np.asarray(nnx.jit(see)(one.decoder.vision, shown)) for one in (model, without)]
    np.testing.assert_array_equal(*before)  # they start as nothing
    graph, params, frozen = models.split_model(config, model)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    assert [path for path in paths if "vision" in path] == [path for path in paths if "qkv_lora" in path] != []
    _, executor = both_models()
    executor_graph, executor_state = nnx.split(executor)
    optimizer = optax.sgd(1.0)
    step = make_compiler_step(graph, frozen, executor_graph, optimizer, config.compiler_sft)
    readers = reader(model.decoder), reader(executor)
    batch = compiler_batch(tokenizer(), (SAMPLE,), config, 1.0, np.random.default_rng(0), readers)
    state = TrainState(jax.tree.map(jnp.copy, params), optimizer.init(params))
    new, _ = step(state, executor_state, batch, jax.random.key(0))
    trained = nnx.merge(graph, new.trainable, frozen)
    assert np.abs(np.asarray(trained.decoder.vision.blocks.qkv_lora_b[...])).max() > 0
    assert np.abs(np.asarray(nnx.jit(see)(trained.decoder.vision, shown)) - before[0]).max() > 1e-6
    with pytest.raises(InvalidInputError, match="vision_lora"):
        ModelConfig(vision_lora=True)
    # Every array has axes, so that a mesh splits the tower as all else.
    placed = shardings(nnx.state(model), models.parameter_axes(model), abstract_mesh(MeshShape(2, 2, 2)))
    assert not [line for line in placed.fallbacks if "no axes" in line or "vision" in line]


class Rooms:
    """Two rows of an env that shows a picture a step; the text says nothing."""

    num_envs, max_steps = 2, 3

    def __init__(self, first: int):
        self._next = first

    def _info(self):
        images = [picture(self._next + row) for row in range(2)]
        self._next += 2
        told = {"goal": ["find the mug"] * 2, "task_id": ["a", "b"], "won": [False] * 2, "progress": [0.0] * 2}
        return told | {"images": images}

    def reset(self, *, options):
        return ["You see a desk 1."] * 2, self._info()

    def step(self, actions):
        return ["Nothing happens."] * 2, None, [False] * 2, [False] * 2, self._info()


def test_a_policy_gradient_depends_on_the_pixels_and_agrees_with_the_sampler():
    model, executor = both_models()
    settings = {"length_buckets": (192,), "batch_buckets": (2,)}
    compiler = MemoryCompiler(
        model.decoder, model.soft_mem, tokenizer(), max_tokens=6, temperature=1.0, reader=reader(model.decoder),
        **settings,
    )  # fmt: skip
    acting = Executor(executor, tokenizer(), max_action_tokens=3, reader=reader(executor), **settings)
    bank = Experiences()
    step = Step("You see a desk 1.", "take mug 1 from desk 1", (picture(90),))
    bank.add(Episode("other", "find the mug", (step,), True, "You win.", (picture(91),)))
    trajectories = play(
        Rooms(0), acting, CompiledMemory(compiler), bank, tasks=[0, 1], seeds=[0, 1], top_k=1, max_steps=3
    )
    steps = trajectories[1].episode.steps
    assert [one.images for one in steps] == [(picture(1),), (picture(3),), (picture(5),)]
    assert trajectories[1].episode.final_images == (picture(7),)
    records = [delivered.record for delivered in trajectories[1].delivered]
    eyes = reader(model.decoder)
    np.testing.assert_array_equal(records[1].pictures, eyes.pixels((picture(90), picture(3))))

    graph, params, frozen = models.split_model(CONFIG, model)
    samples = grpo.policy_samples(trajectories, np.array([1.0, -1.0]), (NUM_SOFT, 48), tokenizer().soft_id)
    settings = dataclasses.replace(CONFIG.grpo, temperature=1.0)
    gradient = grpo.make_grpo_gradient(graph, settings)

    def policy(rows):
        return grpo.accumulate(gradient, params, frozen, rows, 8, tokenizer().pad_id)

    _, metrics = policy(samples)
    assert metrics["log_prob_gap"] < 1e-4
    black = [dataclasses.replace(s, row=s.row._replace(pictures=np.zeros_like(s.row.pictures))) for s in samples]
    assert policy(black)[1]["log_prob_gap"] > 1e-2


def test_perceptual_alignment_by_hand():
    """Two rows; the first remembers one picture of two, of four features; the second none."""
    seen = jnp.zeros((2, 2, 4, 3)).at[0, 0].set(jnp.array([[1, 0, 0], [1, 0, 0], [0, 2, 0], [0, 4, 0]]))
    recalled = jnp.array([[True, False], [False, False]])
    mu = jnp.array([[[5.0, 0, 0], [0, 0.1, 0]], [[1, 1, 1], [1, 2, 3]]])
    found = perceptual_alignment(mu, seen, recalled, temperature=0.5)
    right = -np.log(np.exp(2) / (np.exp(2) + 1))  # each mean is its token's direction, at right angles to the other's
    np.testing.assert_allclose(found, [right, 0.0], atol=1e-6)
    wrong = perceptual_alignment(mu[:, ::-1], seen, recalled, temperature=0.5)
    np.testing.assert_allclose(wrong[0], right + 2, atol=1e-6)
    assert np.isfinite(jax.grad(lambda mu: perceptual_alignment(mu, seen, recalled).sum())(mu)).all()


def test_a_mesh_sees_what_one_device_sees(on_eight_devices):
    report = on_eight_devices(pathlib.Path(__file__).with_name("eight_devices_images.py"))
    one, mesh = report["one"], report["mesh"]
    assert one["metrics"]["perceptual"] > 0
    for name, value in one["metrics"].items():
        assert mesh["metrics"][name] == pytest.approx(value, rel=1e-4, abs=1e-5), name
    for wanted, got in zip(one["trained"], mesh["trained"], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-5)
    np.testing.assert_allclose(mesh["soft"], one["soft"], atol=1e-4)
    assert mesh["actions"] == one["actions"]
    assert mesh["tower_bytes"] < 0.4 * one["tower_bytes"]
