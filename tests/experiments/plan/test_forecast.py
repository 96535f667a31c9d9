"""Forecasts against numbers worked out by hand, on a chip whose bandwidth, links or operations are all that counts."""

import dataclasses

import jax
import pytest
from flax import nnx

from embodied_mem.models.config import DecoderConfig, logical_axes, num_parameters
from embodied_mem.models.decoder import Decoder
from embodied_mem.training.config import Config, MeshConfig, WorldConfig
from experiments.plan.forecast import Chip, Forecast, forecast
from experiments.plan.plan import PlannedModel

SHAPE = DecoderConfig(vocab_size=16, width=8, num_layers=2, num_heads=4, num_kv_heads=4, head_dim=2, mlp_width=8)
WEIGHTS = 4 * num_parameters(SHAPE)  # bytes; the embedding is the head, so all of them are read for a token
LENGTHS = {"compiler": 600, "executor": 100}
EPISODES, STEPS, WRITTEN = 16, 15, {"compiler": 512, "executor": 64}  # Table 7
NEVER = 1e30


def of(mesh: MeshConfig, chip: Chip) -> Forecast:
    config = Config(world=WorldConfig(num_train=8, num_valid=1), mesh=mesh)
    parameters = jax.eval_shape(lambda: nnx.state(Decoder(SHAPE, rngs=nnx.Rngs(0))))
    models = {role: PlannedModel(role, SHAPE, parameters, logical_axes(SHAPE), lambda path: True) for role in LENGTHS}
    return forecast(config, models, chip, LENGTHS)


def cache(role: str) -> int:
    """Bytes of a row: keys and values, 2 layers, 4 heads of 2 float32."""
    return 2 * 2 * LENGTHS[role] * 4 * 2 * 4


def test_a_token_costs_the_reading_of_weights_and_caches():
    slow = Chip("H20", 96, bandwidth=1.0, links=NEVER)
    for role, speed in of(MeshConfig(1, 1, 1), slow).tokens_per_s.items():
        assert speed == pytest.approx(EPISODES / (WEIGHTS + EPISODES * cache(role)))
    norms = 4 * 8 * 5  # whole on each of the four devices that share a copy; two copies share the rows
    for role, speed in of(MeshConfig(2, 1, 4), slow).tokens_per_s.items():
        read = (WEIGHTS - norms) / 4 + norms + 8 * cache(role) / 4
        assert speed == pytest.approx(EPISODES / read)


def test_weights_split_over_fsdp_are_gathered_for_every_token_unless_they_are_moved():
    far = Chip("H20", 96, bandwidth=NEVER, links=1.0)
    assert EPISODES / of(MeshConfig(1, 8, 1), far).tokens_per_s["compiler"] == pytest.approx(7 / 8 * WEIGHTS)
    # Moved, two activations per layer are summed over the four devices of a copy: 4 x 3/4 x 2 layers x 8 rows x 8 x 4.
    moved = of(MeshConfig(1, 8, 1, sampling_tensor=4), far)
    assert EPISODES / moved.tokens_per_s["compiler"] == pytest.approx(4 * 3 / 4 * 2 * 8 * 8 * 4)
    assert of(MeshConfig(1, 8, 1, sampling_tensor=1), far).tokens_per_s["compiler"] > 1e9  # nothing is sent


def test_an_update_reads_writes_and_trains():
    busy = Chip("H20", 96, bandwidth=NEVER, links=NEVER)
    row = of(MeshConfig(1, 1, 1), busy)
    weights = 2 * num_parameters(SHAPE, embedding=False) + 2 * 16 * 8

    def forward(length: float) -> float:
        return weights + 2 * 2 * 4 * 2 * length  # attention to half of the positions on average

    rollout = 0.0
    for role, length in LENGTHS.items():
        prompt = length - WRITTEN[role]
        rollout += STEPS * EPISODES * (prompt * forward(prompt) + WRITTEN[role] * forward(2 * length))
    assert row.rollout_s == pytest.approx(rollout / busy.peak)
    trained = EPISODES * STEPS * 600 * 3 * forward(600)  # all weights are trained; without remat
    assert row.update_s == pytest.approx((rollout + trained) / busy.peak)
    step = 2 * (600 * 3 * forward(600) + 100 * (2 * weights + 3 * (forward(100) - weights)))
    assert row.sft_step_s == pytest.approx(step / busy.peak)
    assert row.run_h == pytest.approx((1000 * row.sft_step_s + 500 * row.update_s) / 3600)


def test_remat_costs_another_forward_pass():
    busy = Chip("H20", 96, bandwidth=NEVER, links=NEVER)
    without, remat = (of(MeshConfig(1, 1, 1, remat=remat), busy) for remat in (False, True))
    assert remat.rollout_s == without.rollout_s
    assert remat.update_s - remat.rollout_s == pytest.approx(4 / 3 * (without.update_s - without.rollout_s))
    assert dataclasses.asdict(without)["chip"] == "H20"
