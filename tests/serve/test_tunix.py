"""Tunix's task environment: an episode against the world's own, and a step of training by Tunix's GRPO learner."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError

pytest.importorskip("tunix.rl.agentic.environments.base_environment", reason="google-tunix is not installed")

from embodied_mem.serve.tunix import TunixWorld, batches


def test_a_group_plays_one_task_as_the_world_does():
    (batch,) = batches(1, batch_size=4, first_seed=3)
    row = {name: values[:1] for name, values in batch.items()}  # as its learner cuts a batch
    world = TextEnv("alfworld", max_steps=4)
    text, info = world.reset(seed=3)
    commands = [info["admissible_commands"][0], "fly away", "look", "inventory"]
    for pair_index in range(2):
        env = TunixWorld(row, group_id=7, pair_index=pair_index, world="alfworld", max_steps=4)
        first, _ = env.reset()
        assert first.startswith(text)
        assert env.extra_kwargs == {"group_id": 7, "pair_index": pair_index}
        world.reset(seed=3)
        for step, command in enumerate(commands):
            expected, reward, _, _, expected_info = world.step(command)
            observation, paid, done, info = env.step(f"<think>hm</think><action>{command}</action>")
            assert observation.startswith(expected)
            assert (paid, done) == (reward, step == 3)
            assert info == {
                "command": command,
                "won": bool(expected_info["won"]),
                "progress": expected_info["progress"],
            }
        env.close()


def test_a_reward_of_ones_own_replaces_the_worlds():
    env = TunixWorld({"seed": 0}, reward_fn=lambda task, action, reward: len(action) + task["seed"])
    env.reset()
    assert env.step("look")[1] == 4.0


@pytest.mark.parametrize("row", [{"prompts": "hello"}, "hello", {"seed": 1.5}, {"seed": np.arange(2)}])
def test_a_row_without_a_seed_is_refused(row):
    with pytest.raises(InvalidInputError, match="seed"):
        TunixWorld(row)


def test_what_cannot_be_played_is_refused():
    for settings in ({"max_steps": None}, {"options": {"max_steps": 3}}, {"options": "tasks"}):
        with pytest.raises(InvalidInputError, match=next(iter(settings))):
            TunixWorld({"seed": 0}, **settings)
    for paid in (None, float("nan")):
        env = TunixWorld({"seed": 0}, reward_fn=lambda paid=paid, **_: paid)
        env.reset()
        with pytest.raises(InvalidInputError, match="reward_fn"):
            env.step("look")
    with pytest.raises(InvalidInputError, match="batch_size: expected 1"):
        batches(3, 0)


def test_its_learner_takes_a_step_of_training():
    """A group of two plays one task, three steps each; a random model of one layer with letters for tokens.

    Without a KL penalty only rewards that differ in the group move the weights.
    """
    import jax
    import optax
    import tokenizers
    from flax import nnx
    from tokenizers import decoders, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from tunix.models.qwen3 import model as qwen3
    from tunix.rl import rl_cluster as clusters
    from tunix.rl.agentic.agentic_grpo_learner import GRPOConfig, GRPOLearner
    from tunix.rl.agentic.parser.chat_template_parser.parser import QwenChatTemplateParser
    from tunix.rl.rollout.base_rollout import RolloutConfig

    names = ["<pad>", "<bos>", "<eos>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    letters = tokenizers.Tokenizer(tokenizers.models.BPE({name: i for i, name in enumerate(names)}, []))
    letters.pre_tokenizer, letters.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    signs = {"pad_token": "<pad>", "bos_token": "<bos>", "eos_token": "<eos>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, **signs)
    shape = qwen3.ModelConfig(
        num_layers=1, vocab_size=len(names), embed_dim=16, hidden_dim=32, num_heads=2, head_dim=8, num_kv_heads=1,
        rope_theta=10_000, norm_eps=1e-6, use_tied_embedding=True,
    )  # fmt: skip
    actor, reference = (qwen3.Qwen3(shape, rngs=nnx.Rngs(0)) for _ in range(2))
    before = jax.tree.map(np.array, nnx.state(actor, nnx.Param))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("fsdp", "tp"))
    length = 4096
    cluster = clusters.RLCluster(
        actor=actor,
        reference=reference,
        tokenizer=tokenizer,
        cluster_config=clusters.ClusterConfig(
            role_to_mesh=dict.fromkeys(
                (clusters.Role.ACTOR, clusters.Role.REFERENCE, clusters.Role.ROLLOUT), mesh
            ),
            training_config=clusters.RLTrainingConfig(
                actor_optimizer=optax.sgd(0.1), eval_every_n_steps=100, max_steps=1, mini_batch_size=1
            ),
            rollout_config=RolloutConfig(
                max_tokens_to_generate=length, max_prompt_length=2048, kv_cache_size=4 * length, temperature=1.0,
                return_logprobs=True, eos_tokens=list(range(2, len(names), 32)),
            ),
        ),
    )  # fmt: skip
    generate, seeds = cluster.rollout.generate, itertools.count()  # its own engine samples equal replies otherwise
    cluster.rollout.generate = lambda prompts, config: generate(prompts, dataclasses.replace(config, seed=next(seeds)))
    played = []

    def reward(task, action, reward):
        played.append((int(task["seed"][0]), action))
        return float(len(action))

    GRPOLearner(
        rl_cluster=cluster,
        algo_config=GRPOConfig(num_generations=2, max_response_length=length, max_concurrency=2, beta=0.0),
        chat_parser=QwenChatTemplateParser(tokenizer),
        env_class=TunixWorld,
        env_kwargs={"max_steps": 3, "reward_fn": reward},
    ).train(batches(1, batch_size=1, first_seed=3))
    assert [seed for seed, _ in played] == [3] * 6
    assert len({action for _, action in played}) > 1
    assert cluster.global_steps == 1
    after = jax.tree.map(np.array, nnx.state(cluster.actor_trainer.model, nnx.Param))
    leaves = list(zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))
    assert all(np.isfinite(new).all() for _, new in leaves)
    assert any((old != new).any() for old, new in leaves)
