"""Throughput of training: tokens per second, share of the chips' peak (MFU), peak memory.

    work = {"tokens": flops_per_token(compiler.config, 448, trained=False)}
    metrics |= throughput(work, metrics, seconds)         # tokens_per_s, mfu, peak_memory_bytes

MFU counts what the model needs and nothing that is computed again (remat), padding left out, against the bfloat16 peak
of all devices. It is absent on hardware whose peak is not in `PEAK_FLOPS`, CPUs above all.

Source of the count: Kaplan et al. 2020, section 2.1, with attention over half of the positions on average.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping

import jax

from embodied_mem.models.config import DecoderConfig, num_parameters

PEAK_FLOPS = {
    "TPU v4": 275e12, "TPU v5 lite": 197e12, "TPU v5e": 197e12, "TPU v5p": 459e12, "TPU v5": 459e12,
    "TPU v6 lite": 918e12, "TPU v6e": 918e12, "A100": 312e12, "H20": 148e12, "H100": 989e12, "H200": 989e12,
}  # fmt: skip
"""bfloat16 operations per second of one device, dense, by a part of jax's `device_kind`; vendors' sheets."""


def flops_per_token(config: DecoderConfig, length: int, *, trained: bool) -> float:
    """Returns the operations of a forward and backward pass per token of sequences of `length`.

    A forward pass multiplies each weight once, 2 N, and attends to length / 2 positions, 2 H E length per layer
    (scores and context). The backward pass costs that once for the inputs' gradients, and 2 N again for those of the
    weights if they are `trained`. The embedding table is a lookup and does not count; the head does.
    """
    weights, attention = _forward_flops(config, length)
    return (3 if trained else 2) * weights + 3 * attention


def forward_flops_per_token(config: DecoderConfig, length: int) -> float:
    """Returns the operations of a forward pass alone, counted as in `flops_per_token`."""
    return sum(_forward_flops(config, length))


def _forward_flops(config: DecoderConfig, length: int) -> tuple[float, float]:
    weights = 2.0 * (num_parameters(config, embedding=False) + config.vocab_size * config.width)
    return weights, 2.0 * config.num_layers * config.num_heads * config.head_dim * length


def throughput(work: Mapping[str, float], metrics: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Returns what a step's metrics say about speed.

    Args:
        work: metric that counts tokens -> operations per token of these.
        metrics: of the step.
        seconds: that it took.
    """
    counted = {name: metrics[name] for name in work if name in metrics}
    speed = {"peak_memory_bytes": float(peak_memory())}
    if counted:
        speed["tokens_per_s"] = sum(counted.values()) / seconds
    peak = peak_flops(jax.devices()[0].device_kind)
    if counted and peak is not None:
        done = sum(tokens * work[name] for name, tokens in counted.items())
        speed["mfu"] = done / (seconds * peak * jax.device_count())
    return speed


def peak_flops(device_kind: str) -> float | None:
    """Returns the peak of a device, or None if it is not known; the longest name that fits decides."""
    fitting = [name for name in PEAK_FLOPS if name in device_kind]
    return PEAK_FLOPS[max(fitting, key=len)] if fitting else None


def peak_memory() -> int:
    """Returns the most bytes that a device of this process has held; on a CPU, that this process has."""
    stats = [device.memory_stats() for device in jax.local_devices()]
    if all(stats):
        return max(int(one.get("peak_bytes_in_use", 0)) for one in stats)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes, but bytes on macOS
    return used if sys.platform == "darwin" else 1024 * used
