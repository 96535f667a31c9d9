"""Plans: bytes against hand counts, published sizes and real caches; the paper's run fits in seconds on any machine."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from embodied_mem.models import decoder
from embodied_mem.models.config import DecoderConfig, logical_axes, num_parameters, preset
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.prompt_cache import sampling_network
from embodied_mem.models.sampling import LAYOUT_SHARE
from embodied_mem.parallel.mesh import MeshShape
from experiments.plan.plan import Pass, Phase, PlannedModel, activation_bytes, cache_bytes, plan

ROOT = Path(__file__).parents[3]


def _model(config: DecoderConfig, trainable=lambda path: True) -> PlannedModel:
    params = jax.eval_shape(lambda: nnx.state(Decoder(config, rngs=nnx.Rngs(0))))
    return PlannedModel("m", config, params, logical_axes(config), trainable)


def test_bytes_of_a_decoder_counted_by_hand():
    config = DecoderConfig(
        vocab_size=10, width=8, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=2, mlp_width=12, dtype="bfloat16"
    )
    answer = plan(
        [_model(config)], MeshShape(1, 2, 2), [Phase("train", (Pass("m", 4, 6),), trains=True)], optax.adamw(1.0)
    )
    # Whole: embedding 10*8, final norm 8; a layer has query 8*4*2, key and value 8*2*2 each, output 4*2*8, gate, up and
    # down 8*12 each, two norms of 8.
    layer = 64 + 32 + 32 + 64 + 3 * 96 + 2 * 8
    assert answer.models[0].parameters_total == 80 + 8 + 2 * layer
    # A device: norms split over fsdp (2) alone, everything else over fsdp and tensor (4); float32.
    device = 4 * (80 // 4 + 8 // 2 + 2 * ((layer - 16) // 4 + 16 // 2))
    assert answer.models[0].parameters == answer.models[0].gradients == device
    assert answer.models[0].optimizer == 2 * device + 4  # two moments and an int32 count
    (phase,) = answer.phases
    assert phase.resident == 3 * device + 4
    # A layer and the tables whole along fsdp, in bfloat16.
    assert phase.gathered == 2 * (80 // 2 + 8 + (layer - 16) // 2 + 16)
    # Two sequences of 6 per device; one block, so (6 + 6) / 2 = 6 keys per query; the docstring's formula in numbers.
    tokens, heads, kv, mlp, vocab = 12, 2, 1, 6, 5
    one = tokens * (2 * (4 * 8 + 3 * (heads + kv) * 2 + 4 * mlp) + 16 * 8 + (4 + 2) * 6 * heads)
    logits = 12 * 2 * 6 * vocab
    assert phase.activations == 2 * one + logits
    assert phase.activations_remat == 2 * 2 * tokens * 8 + one + logits
    assert phase.total == phase.resident + phase.gradients + phase.gathered + phase.activations_remat


def test_bytes_of_the_layout_for_sampling_counted_by_hand():
    config = DecoderConfig(vocab_size=10, width=8, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=2, mlp_width=12)
    phases = [
        Phase("both", caches=(Pass("m", 4, 6),), sampled=("m",)),
        Phase("moved", caches=(Pass("m", 4, 6),), sampled=("m",), only_sampled=("m",)),
        Phase("as trained", caches=(Pass("m", 4, 6),)),
    ]
    answer = plan([_model(config)], MeshShape(1, 4, 1), phases, optax.sgd(1.0), MeshShape(2, 1, 2))
    layer = 64 + 32 + 32 + 64 + 3 * 96 + 2 * 8
    trained = 4 * (80 + 8 + 2 * layer) // 4
    sampled = 4 * (80 // 2 + 8 + 2 * ((layer - 16) // 2 + 16))  # two devices hold a copy, norms are whole
    assert (answer.models[0].parameters, answer.models[0].sampling) == (trained, sampled)
    assert [phase.resident for phase in answer.phases] == [trained + sampled, sampled, trained]
    # float32 is stored and computed in, so nothing is gathered there; else both tables and one layer are.
    assert [phase.gathered for phase in answer.phases] == [0, 0, 4 * (80 + 8 + layer)]
    row = 2 * 2 * 6 * 2 * 2 * 4  # keys and values, 2 layers, 6 columns, 2 heads of 2 numbers
    assert [phase.caches for phase in answer.phases] == [2 * row // 2, 2 * row // 2, row]


def test_the_second_layout_of_a_gpu_is_that_of_a_real_sampler():
    config = preset("tiny", scan_layers=True)
    network = sampling_network(Decoder(config, rngs=nnx.Rngs(0)))
    layers = sum(array.nbytes for array in jax.tree.leaves(network.weights["layers"]))
    assert isinstance(network.weights["layers"], tuple)
    phases = [Phase("rollout", caches=(Pass("m", 1, 8),), sampled=("m",)), Phase("other", (Pass("m", 1, 8),))]
    for scan in (True, False):
        model = _model(dataclasses.replace(config, scan_layers=scan))
        answer = plan([model], MeshShape(1, 1, 1), phases, optax.sgd(1.0))
        rollout, other = answer.phases
        enough = LAYOUT_SHARE * answer.models[0].parameters
        assert rollout.on_gpu(enough) == rollout.total + scan * layers
        assert rollout.on_gpu(enough - 1) == rollout.total
        assert other.on_gpu(enough) == other.total
        assert ("layers apart" in answer.table()) == scan


def test_cache_bytes_are_those_of_a_real_cache():
    config = preset("tiny")

    def prefill():
        network = Decoder(config, rngs=nnx.Rngs(0)).network()
        return decoder.prefill(network, jnp.zeros((6, 10), jnp.int32), capacity=40)[1]

    cache = jax.eval_shape(prefill)
    held = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves((cache.keys, cache.values)))
    assert cache_bytes(config, {"data": 1, "fsdp": 1, "tensor": 1}, 6, 40) == held
    assert cache_bytes(config, {"data": 2, "fsdp": 1, "tensor": 2}, 6, 40) == held // 4
    assert cache_bytes(config, {"data": 1, "fsdp": 1, "tensor": 4}, 6, 40) == held  # two key heads do not go round


def test_a_plan_names_what_it_cannot_split():
    model = _model(preset("tiny"), trainable=lambda path: path == ("final_norm",))
    answer = plan([model], MeshShape(2, 1, 4), [Phase("act", caches=(Pass("m", 3, 8),))], optax.sgd(1.0))
    assert "m.layers.key: kv_heads=2 is whole, tensor=4 does not divide it" in answer.fallbacks
    assert "act: batch 3 of m does not divide over 2 devices" in answer.fallbacks
    assert answer.models[0].trainable_total == 128
    assert [row.path for row in answer.parameters if row.trainable] == ["final_norm"]
    assert all(line in answer.table() for line in answer.fallbacks)


def test_remat_and_chunks_only_ever_save():
    one = {"data": 1, "fsdp": 1, "tensor": 1}
    config = preset("qwen2.5-7b")
    sizes = [activation_bytes(config, one, 8, 2048, remat, chunk) for remat in (False, True) for chunk in (0, 256)]
    assert sizes == sorted(sizes, reverse=True)
    assert activation_bytes(config, one | {"fsdp": 8}, 8, 2048, True) * 8 == activation_bytes(
        config, one, 8, 2048, True
    )


def test_the_papers_run_plans_without_weights():
    command = [sys.executable, str(ROOT / "experiments/train.py"), "--config=grpo_tpu", "--plan", "--json"]
    mesh = ["--mesh.data", "1", "--mesh.fsdp", "4", "--mesh.tensor", "4", "--mesh.sampling-tensor", "8"]
    out = subprocess.run([*command, *mesh], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    answer = json.loads(out.splitlines()[-1])
    assert answer["mesh"] == {"data": 1, "fsdp": 4, "tensor": 4}
    compiler, executor, vision = answer["models"]
    # Published sizes: Qwen2.5-7B has 7,615,616,512 parameters and Qwen2.5-14B 14,770,033,664.
    frozen = compiler["parameters_total"] - compiler["trainable_total"]
    assert (frozen, executor["parameters_total"]) == (7_615_616_512, 14_770_033_664)
    assert num_parameters(preset("qwen2.5-7b")) == frozen
    assert vision["trainable_total"] == 0
    assert executor["trainable_total"] == executor["gradients"] == executor["optimizer"] == 0
    # Adapters on q (28 heads) and v (4) of 28 layers, and two maps 3584 x 5120 with bias.
    adapters = 28 * 16 * (2 * 3584 + 28 * 128 + 4 * 128)
    assert compiler["trainable_total"] == adapters + 2 * (3584 * 5120 + 5120)
    # bfloat16 over 16 devices is 0.95 GB; norms and biases are the little that is less split.
    assert 7_615_616_512 * 2 / 16 < compiler["parameters"] < 1.02 * 7_615_616_512 * 2 / 16 + 40e6
    assert {phase["phase"]: 80 in phase["fits_gb"] for phase in answer["phases"]} == dict.fromkeys(
        ("sft", "grpo", "rollout"), True
    )
    assert "compiler.decoder.layers.query " in out
    # Of the executor, whose 40 and 8 heads are multiples of 8, an eighth.
    assert 14_770_033_664 * 2 / 8 < executor["sampling"] < 1.001 * 14_770_033_664 * 2 / 8
    assert [row["chip"] for row in answer["forecast"]] == ["H20", "TPU v5e"]
