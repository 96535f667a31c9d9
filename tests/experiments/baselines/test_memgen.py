"""MemGen on a tiny executor: what is trained is what is played, the executor stays, the trigger learns, it plays."""

import dataclasses
import functools
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from embodied_mem import envs
from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.rollout import play, row_keys
from embodied_mem.compiler.prompts import Shown
from embodied_mem.compiler.view import View
from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.evaluation.command import Models
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.memory import Experiences
from embodied_mem.models.config import PRESETS, DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import LoraParam
from embodied_mem.training.bundle import Bundle, save_bundle
from embodied_mem.training.models import CompilerModel
from embodied_mem.training.tasks import make_tasks
from embodied_mem.training.teachers.games import Games
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.generator import generate
from experiments.baselines.memgen import WEAVER, MemGen
from experiments.baselines.memgen_config import MemGenConfig
from experiments.baselines.memgen_training import (
    command_scores,
    decisions_of,
    held_out_losses,
    make_trigger_step,
    shaped_rewards,
    train_weaver,
    weaver_batch,
)
from experiments.baselines.weaver import NUM_QUERIES, Weaving, load_weaving, save_weaving, trigger_only, weaver_only
from experiments.configs import load
from experiments.memgen import main

pytestmark = pytest.mark.usefixtures("unoptimised")

NANO = DecoderConfig(width=32, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16, mlp_width=32, smear=1)


weave, scores_of = nnx.jit(Weaving.weave), nnx.jit(command_scores)


def tiny():
    config = load("grpo_cpu")
    world = dataclasses.replace(config.world, num_train=8, num_valid=2, num_scenes=4, max_steps=3)
    model = dataclasses.replace(config.model, compiler="nano", executor="nano", vocab_size=400, max_action_tokens=4)
    data, memory = dataclasses.replace(config.data, passes=1), dataclasses.replace(config.memory, num_soft=0)
    return dataclasses.replace(config, world=world, model=model, data=data, memory=memory)


@functools.cache
def samples():
    config = tiny()
    tasks = make_tasks(config)
    return tuple(Games(config, tasks, Experiences()).lessons().samples)


@pytest.fixture(scope="module")
def bundle():
    PRESETS["nano"] = NANO
    tokenizer = train_bpe([sample.executor_text() for sample in samples()], 400)
    executor = Decoder(dataclasses.replace(NANO, vocab_size=tokenizer.vocab_size), rngs=nnx.Rngs(0))
    yield Bundle(tiny(), tokenizer, executor, CompilerModel(executor, None))
    del PRESETS["nano"]


@pytest.fixture
def model(bundle):
    """One whose adapters do something."""
    model = Weaving(bundle.executor, rngs=nnx.Rngs(1))
    state = nnx.state(model, LoraParam)
    nnx.update(model, jax.tree.map(lambda a: a + 0.1 * jax.random.normal(jax.random.key(a.size), a.shape), state))
    return model


def arrays(module, which=...):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state(module, which))]


def same(before, after):
    return [np.array_equal(a, b) for a, b in zip(before, after, strict=True)]


def views(chosen):
    return [View(goal, room, (), list(turns)) for goal, room, turns in (sample.view for sample in chosen)]


def test_what_is_trained_is_what_is_played(bundle, model):
    """Right-padded rows with commands behind the places, and left-padded prompts that end with them."""
    chosen = [samples()[i] for i in (0, 1, 7, 12)]
    batch = weaver_batch(bundle, chosen)
    assert batch.rows.suffix.sum(1).tolist() == [NUM_QUERIES] * 4
    assert batch.later.tolist() == [bool(sample.view[2]) for sample in chosen]
    assert set(batch.later.tolist()) == {False, True}
    rows = batch.rows.tokens, batch.rows.mask, batch.rows.suffix
    trained = weave(model, *rows, batch.later)
    executor, _ = bundle.acting(batch_buckets=(4,))
    memgen = MemGen(executor, model, bundle.config.memory.shown)
    played = [woven.soft for woven in memgen.weave(views(chosen), row_keys([0] * 4, range(4)))]
    np.testing.assert_allclose(np.stack(played), trained, atol=1e-5)
    others = weave(model, *rows, ~batch.later)
    assert np.abs(others - trained).max() > 1e-3  # later steps have queries of their own


def test_soft_tokens_change_what_the_executor_says_and_commands_do_not_change_them(bundle, model):
    batch = weaver_batch(bundle, samples()[:2])
    changed = batch.rows._replace(tokens=np.where(batch.rows.text, 7, batch.rows.tokens))
    first, second = (weave(model, rows.tokens, rows.mask, rows.suffix, batch.later) for rows in (batch.rows, changed))
    np.testing.assert_array_equal(first, second)
    scores = scores_of(model, bundle.executor, batch)[0].log_probs
    model.projection.mu_bias[...] += 0.5
    assert np.abs(scores_of(model, bundle.executor, batch)[0].log_probs - scores).max() > 1e-3


def test_the_weaver_learns_and_the_executor_and_the_trigger_stay(bundle):
    model = Weaving(bundle.executor, rngs=nnx.Rngs(1))
    executor, trigger, weaver = arrays(bundle.executor), arrays(model, trigger_only), arrays(model, weaver_only)
    base = arrays(model.weaver, nnx.Not(LoraParam))
    settings = MemGenConfig(steps=25, batch_size=4, learning_rate=0.02)
    losses = train_weaver(model, bundle, samples()[:4], settings)
    assert np.mean(losses[-5:]) < losses[0] - 0.1  # of an executor that was never trained
    assert all(same(executor, arrays(bundle.executor)))
    assert all(same(base, arrays(model.weaver, nnx.Not(LoraParam))))
    assert all(same(trigger, arrays(model, trigger_only)))
    assert not any(same(weaver, arrays(model, weaver_only)))
    found = held_out_losses(model, bundle, samples()[:4])
    assert found["memgen"]["loss"] < found["none"]["loss"] - 0.1


def test_the_penalty_is_for_more_memory_than_won_episodes_use():
    """Median 0.5, so the first two count as high: p = (1 + 0) / 2. Above it are 0.5 of each INVOKE."""
    invoked = [np.array(d, float) for d in ([1, 1], [0, 0], [1, 0], [1, 1], [])]
    given = shaped_rewards(np.array([1.0, 1.0, 0.0, 0.0, 0.0]), invoked[:4] + invoked[4:], penalty=0.1)
    # With the fifth the median is 0, and all that decided count: p = (1 + 0 + 0.5 + 1) / 4 = 0.625.
    np.testing.assert_allclose(given, [1 - 0.0375, 1.0, -0.01875, -0.0375, 0.0])
    given = shaped_rewards(np.array([1.0, 1.0, 0.0, 0.0]), invoked[:4], penalty=0.1)
    np.testing.assert_allclose(given, [0.95, 1.0, -0.025, -0.05])


def test_what_an_episode_earned_is_told_against_its_group():
    """Two groups of two, each of one INVOKE and one SKIP behind the first step. In the first INVOKE wins and SKIP
    loses, in the second both win: p = (1 + 1 + 0) / 3 of those that won, so an INVOKE costs 0.1 / 3. Divided by their
    spread the second group's would be as large as the first's."""
    asked = []

    def trajectory(won, invoked):
        steps = (Step("You see a shelf 1.", "look"), Step("Nothing happens.", "wait"))
        given = [types.SimpleNamespace(soft=one) for one in ("first", "soft" if invoked else None)]
        return types.SimpleNamespace(won=won, delivered=given, episode=Episode("1", "a goal", steps, won, "Done."))

    played = [trajectory(True, True), trajectory(False, False), trajectory(True, True), trajectory(True, False)]
    memgen = types.SimpleNamespace(prefixes=lambda steps: asked.extend(steps) or [[1]] * len(steps))
    found = decisions_of(played, memgen, MemGenConfig(group_size=2))
    assert [one.invoked for one in found] == [True, False, True, False]
    half = 0.1 / 3 / 2
    np.testing.assert_allclose([one.advantage for one in found], [0.5 - half, half - 0.5, -half, half])
    assert asked[0] == ("a goal", "shelf 1", [("look", "Nothing happens.")])  # as it was when the trigger decided


def test_the_trigger_learns_when_memory_pays(bundle):
    """INVOKE pays behind the token 5 and SKIP behind 6: both decisions are drawn, and only advantages tell."""
    model = Weaving(bundle.executor, rngs=nnx.Rngs(1))
    weaver = arrays(model, weaver_only)
    step, state, frozen = make_trigger_step(model, optax.adam(0.05))
    random = np.random.default_rng(0)
    for _ in range(15):
        last, invoked = random.integers(5, 7, 16), random.random(16) < 0.5
        tokens = np.stack([np.full(16, 9), last], 1).astype(np.int32)
        advantages = np.where((last == 5) == invoked, 1.0, -1.0)
        state, _ = step(state, frozen, tokens, np.ones(tokens.shape, bool), invoked, advantages)
    nnx.update(model, state.trainable)
    pays, does_not = model.decide(jnp.array([[9, 5], [9, 6]]), jnp.ones((2, 2), bool), 1)
    assert pays > 1 > -1 > does_not
    assert all(same(weaver, arrays(model, weaver_only)))


@pytest.mark.parametrize(("bias", "later"), [(9.0, True), (-9.0, False)])
def test_it_plays_and_the_trigger_decides_at_later_steps(bundle, model, bias, later, tmp_path):
    model.bias[...] = jnp.asarray(bias)
    save_weaving(tmp_path / WEAVER, model)
    executor, _ = bundle.acting(batch_buckets=(2,))
    delivery = make_delivery(
        "memgen", executor=executor, registered=functools.partial(Models(str(tmp_path)).delivery, shown=Shown())
    )
    world = envs.make(
        "alfworld", tasks=[game.load() for game in generate(2, seed=0, num_scenes=4, prove=False)], num_envs=2,
        seed=0, max_steps=3,
    )  # fmt: skip
    played = play(world, executor, delivery, Experiences(), tasks=[0, 1], seeds=[0, 0], top_k=1)
    for one in played:
        assert [d.soft is not None for d in one.delivered] == [True, later, later]
        assert one.delivered[0].soft.shape == (NUM_QUERIES, NANO.width)
        assert all(d.tokens > 20 for d in one.delivered)


def test_a_drawn_decision_has_the_triggers_probability(bundle, model):
    model.bias[...] = jnp.asarray(1.0)
    executor, _ = bundle.acting(batch_buckets=(4,))
    memgen = MemGen(executor, model, bundle.config.memory.shown, sampled=True)
    later = next(sample for sample in samples() if sample.view[2])
    drawn = [one.soft is not None for one in memgen.weave(views([later] * 200), row_keys([0] * 200, range(200)))]
    assert np.mean(drawn) == pytest.approx(1 / (1 + np.exp(-1)), abs=0.08)  # the head is zero
    again = [one.soft is not None for one in memgen.weave(views([later] * 200), row_keys([0] * 200, range(200)))]
    assert drawn == again


def test_a_file_holds_what_was_trained_and_fits_its_executor_alone(bundle, model, tmp_path):
    path = tmp_path / WEAVER
    save_weaving(path, model)
    assert all(same(arrays(model), arrays(load_weaving(path, bundle.executor))))
    assert path.stat().st_size < 100_000  # nothing of the executor
    wider = Decoder(dataclasses.replace(bundle.executor.config, width=48), rngs=nnx.Rngs(0))
    with pytest.raises(CheckpointError, match="with this executor"):
        load_weaving(path, wider)
    with pytest.raises(InvalidInputError, match=r"experiments/memgen.py --weights nowhere"):
        Models("nowhere").delivery("memgen", None, Shown())
    with pytest.raises(InvalidInputError, match=r"memgen\.group_size: expected >= 2, got 1"):
        main(["--weights", "nowhere", "--group_size", "1"])
    with pytest.raises(InvalidInputError, match="an executor with weights of it"):
        make_delivery("memgen")


def test_the_command_writes_the_file(bundle, tmp_path, capsys):
    save_bundle(tmp_path, bundle.config, bundle.tokenizer, bundle.executor, bundle.model)
    sizes = {"steps": 2, "batch_size": 2, "trigger_steps": 1, "num_tasks": 2, "group_size": 2, "max_steps": 2}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    report = main(["--weights", str(tmp_path), *words])
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == report
    assert set(report["held_out"]) == {"none", "memgen"}
    assert [row["won"] for row in report["trigger"]] == [0]
    load_weaving(tmp_path / WEAVER, bundle.executor)
