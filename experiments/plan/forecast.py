"""The time of a run on absent hardware, by formula: bandwidths, peaks and shapes, no measurement.

    row = forecast(config, models, CHIPS["H20"], {"compiler": 3088, "executor": 2640})
    row.tokens_per_s["compiler"], row.update_s, row.run_h

Every program is as fast as its chip's data sheet allows, every text as long as its limit, no prompt is kept, and
nothing overlaps. Per device, with b = ceil(rows / copies) rows on each of the T devices that hold one copy of a model:

    decode one token    max((W + b C) / bandwidth, 2 N b / (T peak)) + sent / links
    read a prompt       2 N b L / (T peak) + L sent / links
    train on rows       n b L (2 N + attention) / (T peak) + (n L sent + gathered) / links

W are the bytes of weights on the device without the embedding table, which is looked up; C those of a row's KV cache at
its full length; 2 N the operations of a forward pass per token, attention included. A pass that trains costs n = 2
forward passes with adapters or frozen weights, 3 where all is trained, one more with remat. In every layer two
activations are summed over the T devices: sent = 4 (T - 1) / T * layers * b * D * bytes. Where weights are split over F
devices of `fsdp`, each forward and backward pass gathers (F - 1) / F of what T devices hold together, and so does every
decoded token unless `mesh.sampling_tensor` is set.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import jax.numpy as jnp

from embodied_mem.parallel.mesh import MeshShape, abstract_mesh
from embodied_mem.training.config import Config
from embodied_mem.training.loop import PEAK_FLOPS, flops_per_token, forward_flops_per_token

from .plan import PlannedModel, cache_bytes, weight_bytes


@dataclasses.dataclass(frozen=True)
class Chip:
    """A vendor's sheet of one device.

    Attributes:
        name: as in `throughput.PEAK_FLOPS`.
        memory_gb: decimal.
        bandwidth: of its memory, bytes/s.
        links: bytes/s that it sends along one axis of the mesh.
    """

    name: str
    memory_gb: int
    bandwidth: float
    links: float

    @property
    def peak(self) -> float:
        """bfloat16 operations per second."""
        return PEAK_FLOPS[self.name]


CHIPS = {chip.name: chip for chip in (Chip("H20", 96, 4.0e12, 450e9), Chip("TPU v5e", 16, 819e9, 100e9))}
"""The paper's GPU, of 96 GB, with NVLink; and TPU v5e, two of whose four links of 50 GB/s lie along an axis."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Bounds of one run on one kind of chip.

    Attributes:
        chip: its name.
        tokens_per_s: by model, decoded tokens of all rows of a GRPO batch.
        rollout_s: of one GRPO update, all steps of all episodes.
        update_s: rollout, and the pass over all its samples.
        sft_step_s: one step of the compiler's supervised training.
        run_h: both stages; samples and scoring are not in it.
    """

    chip: str
    tokens_per_s: dict[str, float]
    rollout_s: float
    update_s: float
    sft_step_s: float
    run_h: float


@dataclasses.dataclass(frozen=True)
class _Work:
    """One model on one mesh of one kind of chip."""

    model: PlannedModel
    shape: MeshShape
    chip: Chip

    def _rows(self, rows: int) -> int:
        return -(-rows // (self.shape.data * self.shape.fsdp))

    def _sent_s(self, rows: int) -> float:
        """Return the seconds of sending one token of each row.

        That is two sums a layer over the devices of a copy.
        """
        tensor, size = self.shape.tensor, jnp.dtype(self.model.config.dtype).itemsize
        activations = self._rows(rows) * self.model.config.width * size
        return 4 * (tensor - 1) / tensor * self.model.config.num_layers * activations / self.chip.links

    def _gathered_s(self) -> float:
        """Count it for all weights once."""
        copy = MeshShape(self.shape.data * self.shape.fsdp, 1, self.shape.tensor)
        whole = weight_bytes(self.model, abstract_mesh(copy))
        return (self.shape.fsdp - 1) / self.shape.fsdp * whole / self.chip.links

    def decode_s(self, rows: int, length: int) -> float:
        mesh = abstract_mesh(self.shape)
        looked_up = () if self.model.config.tie_embeddings else (("embedding",), ("decoder", "embedding"))
        read = weight_bytes(self.model, mesh, without=looked_up)
        read += cache_bytes(self.model.config, mesh.shape, rows, length)
        operations = self._rows(rows) * forward_flops_per_token(self.model.config, 2 * length) / self.shape.tensor
        busy = max(read / self.chip.bandwidth, operations / self.chip.peak)
        return busy + self._sent_s(rows) + self._gathered_s()

    def pass_s(self, rows: int, length: int, passes: float = 1.0) -> float:
        """`passes`: operations of the whole pass over those of a forward pass."""
        operations = self._rows(rows) * length * forward_flops_per_token(self.model.config, length) / self.shape.tensor
        busy = operations / self.chip.peak + length * self._sent_s(rows)
        return passes * busy + math.ceil(passes) * self._gathered_s()

    def train_s(self, rows: int, length: int, *, trained: bool, remat: bool) -> float:
        passes = flops_per_token(self.model.config, length, trained=trained) / forward_flops_per_token(
            self.model.config, length
        )
        return self.pass_s(rows, length, passes + remat)


def forecast(config: Config, models: Mapping[str, PlannedModel], chip: Chip, lengths: Mapping[str, int]) -> Forecast:
    """Return the bounds of a run that trains its compiler.

    Args:
        config: the run; its mesh has no -1.
        models: `compiler` and `executor`.
        chip: of which the mesh is made.
        lengths: tokens of a row of each, output included.
    """
    mesh, rl, sft = config.mesh, config.grpo, config.compiler_sft
    lying = MeshShape(mesh.data, mesh.fsdp, mesh.tensor)
    acting = lying.for_sampling(mesh.sampling_tensor)
    train = {role: _Work(models[role], lying, chip) for role in models}
    sample = {role: _Work(models[role], acting, chip) for role in models}
    episodes, whole = rl.num_tasks * rl.group_size, not config.model.lora
    written = {"compiler": config.model.max_compiler_tokens, "executor": config.model.max_action_tokens}
    token_s = {role: sample[role].decode_s(rl.num_rows, lengths[role]) for role in models}
    rollout_s = (
        rl.max_steps
        * (episodes / rl.num_rows)
        * sum(
            sample[role].pass_s(rl.num_rows, lengths[role] - written[role]) + written[role] * token_s[role]
            for role in models
        )
    )
    length = lengths["compiler"]
    parts = math.ceil(episodes * rl.max_steps / rl.microbatch)
    update_s = rollout_s + parts * train["compiler"].train_s(rl.microbatch, length, trained=whole, remat=mesh.remat)
    acted = math.ceil(sft.action_share * sft.batch_size)
    sft_step_s = train["compiler"].train_s(sft.batch_size, length, trained=whole, remat=mesh.remat)
    sft_step_s += train["executor"].train_s(acted, lengths["executor"], trained=False, remat=mesh.remat)
    return Forecast(
        chip.name,
        {role: rl.num_rows / token_s[role] for role in models},
        rollout_s,
        update_s,
        sft_step_s,
        (sft.steps * sft_step_s + rl.steps * update_s) / 3600,
    )
