"""Settings of a process: the page faults of a repeated allocation go away; XLA's flags where a GPU will be used."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from embodied_mem.models.host import GPU_FLAGS, keep_freed_memory, keep_programs, set_gpu_flags

SCRIPT = """
import resource, sys
import numpy as np
from embodied_mem.models.host import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def touch():
    np.ones(16 << 20, np.uint8)
    np.ones(48 << 20, np.uint8)
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_repeated_allocations_fault_no_more():
    if not sys.platform.startswith("linux"):  # a setting of glibc
        assert keep_freed_memory() is False
        return

    def faults(mode):
        done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("keep") * 10 < faults("default")


@pytest.fixture
def with_gpu(monkeypatch):
    """The plugin and the driver's file are there, as on a machine with a GPU."""
    spec, exists = importlib.util.find_spec, pathlib.Path.exists
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "jax_cuda12_plugin" or spec(name))
    monkeypatch.setattr(pathlib.Path, "exists", lambda path: str(path) == "/dev/nvidiactl" or exists(path))
    for name in ("JAX_PLATFORMS", "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("platforms", "is_gpu"), [("", True), ("cuda,cpu", True), ("gpu", True), ("cpu", False)])
def test_flags_are_set_where_jax_will_use_a_gpu(platforms, is_gpu, with_gpu, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    assert set_gpu_flags() == is_gpu
    assert os.environ.get("XLA_FLAGS", "").split() == [f"--{name}={GPU_FLAGS[name]}" for name in GPU_FLAGS if is_gpu]


def test_flags_that_are_given_win(with_gpu, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=true --xla_dump_to=there")
    assert set_gpu_flags()
    flags = dict(flag[2:].split("=") for flag in os.environ["XLA_FLAGS"].split())
    assert flags == {**GPU_FLAGS, "xla_gpu_enable_triton_gemm": "true", "xla_dump_to": "there"}


def test_this_xla_knows_the_flags():
    """An unknown one ends the process."""
    flags = " ".join(f"--{name}={value}" for name, value in GPU_FLAGS.items())
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", "import jax; jax.devices()"], env=environment, check=True)


PROGRAM = """
import sys
import jax
from embodied_mem.models.host import keep_programs
if sys.argv[1] != "cpu":  # the same programs, compiled for what is here
    jax.default_backend = lambda: sys.argv[1]
folder = keep_programs()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.jit(lambda x: x + 1)(1)
print(folder)
"""


@pytest.mark.parametrize("given", ["", "mine"])
@pytest.mark.parametrize("backend", ["gpu", "cpu"])
def test_accelerators_keep_their_programs(backend, given, tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "JAX_COMPILATION_CACHE_DIR": given and str(tmp_path / given)}
    command = [sys.executable, "-c", PROGRAM, backend]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    folder = tmp_path / (given or ".cache/embodied_mem/programs")
    assert out.strip() == ("None" if backend == "cpu" else str(folder))
    assert folder.is_dir() == bool(given or backend == "gpu")
    assert keep_programs() is None
