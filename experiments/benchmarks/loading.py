"""Speed of `load_hf` beside a plain read of the same files from the page cache.

`python experiments/bench.py --suite loading` writes a folder of random bfloat16 weights in the shape of `--model`
(files of 1 GB), which is in the page cache then, and removes it at the end. Each measurement is a process of its own,
in turn, `--loads` of each:

- `read_gb_per_s`: `read` of whole files into memory that holds all of them.
- `load_gb_per_s`: `load_hf` on the default device, until all arrays are there; start and imports are not counted.
- `ratio` of the medians; `ratio_cpu`: the same per second of processor time, which other programs disturb less.
- `host_gb`: most anonymous memory of the loading process over what it had before; on a CPU the weights, `weights_gb`,
  are in it.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import pathlib
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from embodied_mem.models.config import DecoderConfig, preset
from embodied_mem.progress import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this suite."""
    parser.add_argument("--model", default="qwen2.5-3b", help="loading: shape of the weights (default qwen2.5-3b)")
    parser.add_argument("--loads", type=int, default=3, help="loading: measurements of each side (default 3)")


def bench_loading(args: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements named in the module's text."""
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        write_random(preset(args.model), folder, args.seed)
        rows: dict[Callable[..., Any], list[dict[str, float]]] = {_read: [], _load: []}
        for kind in counted([_read, _load] * args.loads, "loading", "measurement"):
            with multiprocessing.get_context("spawn").Pool(1) as process:
                rows[kind].append(process.apply(kind, (folder,)))
    reads, loads = ([one["gb_per_s"] for one in ones] for ones in rows.values())
    read_cpu, load_cpu = (statistics.median(one["gb_per_cpu_s"] for one in ones) for ones in rows.values())
    return {
        "model": args.model,
        "weights_gb": rows[_load][0]["gb"],
        "read_gb_per_s": round(statistics.median(reads), 3),
        "load_gb_per_s": round(statistics.median(loads), 3),
        "ratio": round(statistics.median(loads) / statistics.median(reads), 3),
        "ratio_cpu": round(load_cpu / read_cpu, 3),
        "host_gb": max(one["host_gb"] for one in rows[_load]),
        "reads": reads,
        "loads": loads,
        "read_gb_per_cpu_s": read_cpu,
        "load_gb_per_cpu_s": load_cpu,
    }


def write_random(config: DecoderConfig, folder: pathlib.Path, seed: int) -> None:
    """Write random bfloat16 weights in this shape as a Hugging Face folder."""
    import jax
    from flax import nnx

    from embodied_mem.models.assembly import as_stored_shape
    from embodied_mem.models.decoder import Decoder
    from embodied_mem.models.formats.hf import SavedArray, config_to_hf, name_in_hf, write_arrays

    random = np.random.default_rng(seed)

    def make(shape: tuple[int, ...]) -> np.ndarray:
        bits = random.integers(0, 1 << 16, shape, np.uint16)
        return (bits & 0x807F | 0x3C00).view(ml_dtypes.bfloat16)  # about 0.01, of either sign

    arrays = {}
    state = nnx.eval_shape(lambda: nnx.state(Decoder(config, rngs=nnx.Rngs(0))))
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        *stack, name = (key.key for key in path if isinstance(key, jax.tree_util.DictKey))
        for layer in range(leaf.shape[0]) if stack else (None,):
            shape = as_stored_shape(name, leaf.shape[1:] if stack else leaf.shape)
            arrays[(layer, name)] = SavedArray(2 * math.prod(shape), functools.partial(make, shape))
    order = sorted(arrays, key=lambda at: (at[0] is not None, at))
    write_arrays({name_in_hf(n, layer): arrays[layer, n] for layer, n in order}, config_to_hf(config), folder, 1 << 30)


def _read(folder: pathlib.Path) -> dict[str, float]:
    start, start_cpu = time.perf_counter(), time.process_time()
    files = [path.read_bytes() for path in sorted(folder.glob("*.safetensors"))]
    return _rates(sum(map(len, files)), start, start_cpu)


def _rates(num_bytes: int, start: float, start_cpu: float) -> dict[str, float]:
    seconds, seconds_cpu = time.perf_counter() - start, time.process_time() - start_cpu
    return {"gb_per_s": round(num_bytes / 1e9 / seconds, 3), "gb_per_cpu_s": round(num_bytes / 1e9 / seconds_cpu, 3)}


def _load(folder: pathlib.Path) -> dict[str, float]:
    import jax
    from flax import nnx

    from embodied_mem.models.formats.hf import load_hf

    jax.devices()
    end, most, before = threading.Event(), [0.0], _anonymous_gb()

    def watch() -> None:
        while not end.wait(0.01):
            most[0] = max(most[0], _anonymous_gb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, start_cpu = time.perf_counter(), time.process_time()
    leaves = jax.block_until_ready(jax.tree.leaves(nnx.state(load_hf(folder))))
    num_bytes = sum(leaf.nbytes for leaf in leaves)
    rates = _rates(num_bytes, start, start_cpu)
    end.set()
    watcher.join()
    return rates | {"gb": round(num_bytes / 1e9, 2), "host_gb": round(most[0] - before, 2)}


def _anonymous_gb() -> float:
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024 / 1e9
