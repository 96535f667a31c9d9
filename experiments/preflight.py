"""Lists all that a run needs before it begins, with the command that mends each thing that is missing.

    for rows in preflight(config, run_dir):     # `train.py` does so first and exits with 2 where something is missing
        print(table(rows))

Files come first, before JAX is imported: what is missing of them is shown after a second, devices and memory later.
No weight is read: of safetensors files the headers say which arrays they have and where the file must end. Memory is
that of `--plan`: refused is what does not fit with prompts of `SHORT_PROMPT` tokens, on a CPU what does not fit even
without activations; what fits only so is noted.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import http.client
import json
import math
import pathlib
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from embodied_mem import registry
from embodied_mem.agents.deliveries import check_names
from embodied_mem.errors import CheckpointError, DataNotFoundError, EmbodiedMemError, InvalidInputError
from embodied_mem.training.config import (
    EVERY_WORLD,
    FROM_SCRATCH,
    ROLES,
    STAGES,
    Config,
    is_published,
    is_taught,
    weights_of,
)

SHORT_PROMPT = 256
"""Tokens; shorter prompts are hardly met."""
_KEPT_CHECKPOINTS = 3
"""Checkpoints of a stage on disk: two, and the one that is being written."""
_PROCESS_BYTES = 2 * 10**9
"""Host memory of Python, JAX and a run's samples."""
_SMALL_FILES_BYTES = 200 * 10**6
"""Bank, samples, metrics and reports of a run."""
_ANSWER_S = 5.0
"""Seconds that a server may take to name its models."""


class Row(NamedTuple):
    """One thing that a run needs, what is wanted and found, the command that mends it if missing, what is tight."""

    what: str
    wanted: str
    found: str
    mend: str = ""
    note: str = ""


class Devices(NamedTuple):
    """Count of the devices of all processes, platform (cpu, gpu, tpu), memory of one, 0 where unknown."""

    count: int
    platform: str
    memory_bytes: int = 0


def found_devices() -> Devices:
    """Start JAX's devices and count them.

    Those of a CPU share the host's memory.
    """
    import jax

    first = jax.local_devices()[0]
    memory = int((first.memory_stats() or {}).get("bytes_limit", 0))
    if first.platform == "cpu":
        memory = host_memory() // jax.local_device_count()
    return Devices(jax.device_count(), first.platform, memory)


def host_memory() -> int:
    """Return the bytes of memory that this machine or container has left.

    It is 0 where nothing tells.
    """
    try:
        lines = dict(line.split(":", 1) for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
        left = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return 0
    for path in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            left = min(left, int(pathlib.Path("/sys/fs/cgroup", path).read_text()))
        except (OSError, ValueError):
            continue
    return left


def preflight(
    config: Config, run_dir: pathlib.Path, devices: Callable[[], Devices] = found_devices
) -> Iterator[list[Row]]:
    """Yield the rows of a run's files, then of devices and memory.

    The files are all that a run of `config` in `run_dir` needs.
    """
    yield [
        _configuration(config), *_splits(config), *_weights(config), *_tokenizer(config), *_servers(config),
        _run_folder(config, run_dir),
    ]  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield list(_devices_and_memory(config, run_dir, pool.submit(devices)))  # while shapes are computed


def table(rows: list[Row]) -> str:
    """Return the rows for a person, with mends below missing ones."""
    cells = [("", "needed", "wanted", "found")]
    cells += [("MISSING" if row.mend else "ok", row.what, row.wanted, row.found) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    for number in reversed(range(len(rows))):
        row = rows[number]
        lines[number + 2 : number + 2] = [f"         mend: {row.mend}"] * bool(row.mend)
        lines[number + 2 : number + 2] = [f"         note: {row.note}"] * bool(row.note)
    return "\n".join(lines)


def _servers(config: Config) -> Iterator[Row]:
    """Ask the servers that sample in rollouts for their models."""
    for field, role in (("server", "compiler"), ("executor_server", "executor")):
        if not (url := getattr(config.grpo, field)):
            continue
        state, mend = "answers", ""
        try:
            urllib.request.urlopen(f"{url.rstrip('/')}/models", timeout=_ANSWER_S).close()
        except urllib.error.HTTPError:
            pass  # it wants a key
        except (OSError, ValueError, http.client.HTTPException) as error:
            state = f"no answer: {error}"
            mend = f"vllm serve weights/{role} --port 8000, see docs/training.md, and its URL, http://HOST:8000/v1"
        yield Row(f"grpo.{field}", url, state, mend)


def _configuration(config: Config) -> Row:
    """Check what fields say together."""
    from embodied_mem.parallel.mesh import MeshShape

    recorded = config.world.name in registry.names("samples")
    played = config.executor_correction.num_games, config.correction.num_games, config.grpo.steps, config.data.banks
    try:
        check_names(config.evaluation.deliveries)
        if recorded and any(played):
            raise InvalidInputError(
                "executor_correction.num_games, correction.num_games, grpo.steps, data.banks: expected none with "
                f"{config.world.name}, which is recorded and not played in training"
            )
        shape = MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor)
        if -1 not in shape.sizes:
            shape.for_sampling(config.mesh.sampling_tensor)
        is_published(config, "compiler")
    except InvalidInputError as error:
        return Row("configuration", "fields that go together", str(error), "change the field, or leave it out")
    return Row("configuration", "fields that go together", config.fingerprint())


def _splits(config: Config) -> Iterator[Row]:
    world = config.world
    sides = {"train": (world.train, world.num_train), "valid": (world.valid, world.num_valid)}
    sides["table"] = (config.evaluation.tasks, config.evaluation.num_tasks)
    if world.name in ("alfworld", EVERY_WORLD):
        for side, (split, count) in sides.items():
            if split and split != "generated":
                yield _games(f"games, {side}", split, count, world)
    mixed = [name for name in registry.names("tasks") if name in registry.BUILT_IN]
    for name in mixed if world.name == EVERY_WORLD else [world.name]:
        if name == "alfworld" or name not in registry.names("tasks"):
            continue
        try:
            train, valid = (len(side) for side in registry.load(name, "tasks")(world, config.seed).sides())
            yield Row(f"games, {name}", "training side", f"{train} and {valid} held out")
        except DataNotFoundError as error:
            yield Row(f"games, {name}", "training side", str(error), f"as docs/worlds/{name}.md says")


def _games(what: str, split: str, count: int, world: Any) -> Row:
    from embodied_mem.worlds.alfworld.env import split_files

    wanted = f"{split}, {count or 'all'}"
    try:
        found = len(split_files(split, world.valid))
    except DataNotFoundError as error:
        mend = "alfworld-download; or ALFWORLD_DATA names the folder that holds json_2.1.1"
        if "train" in what or "valid" in what:
            field = what.split()[-1]
            mend += f"; or play generated games: --world.{field} generated --world.num-{field} 200"
        return Row(what, wanted, str(error).partition(";")[0], mend)
    if found < max(count, 1):
        return Row(what, wanted, f"{found} games", f"ask for at most {found}, or install the whole split")
    return Row(what, wanted, f"{found} games")


def repository_of(preset_name: str) -> str:
    """Returns where a preset's weights are published."""
    family, _, size = preset_name.rpartition("-")
    if family.startswith("qwen"):
        chat = "-Instruct" if "2.5" in family else ""
        return f"Qwen/{family.replace('qwen', 'Qwen').replace('vl', 'VL')}-{size.upper()}{chat}"
    known = {"smollm2": "HuggingFaceTB/SmolLM2", "llama-3.2": "meta-llama/Llama-3.2"}
    return f"{known.get(family, family)}-{size.upper()}-Instruct"


def _download(config: Config, role: str, folder: pathlib.Path | None = None) -> str:
    where = folder or pathlib.Path(config.model.weights) / role
    return f"hf download {repository_of(getattr(config.model, role))} --local-dir {where}"


def _sources(config: Config) -> dict[str, pathlib.Path]:
    """Return the places of each role's published weights, where there are any."""
    found = {}
    for role in ROLES:
        try:
            source = weights_of(config, role)
        except (DataNotFoundError, InvalidInputError):
            continue
        if source is not None:
            found[role] = source
    return found


def _weights(config: Config) -> Iterator[Row]:
    sources = _sources(config)
    for role in ROLES if config.model.weights else ():
        name = getattr(config.model, role)
        if name in FROM_SCRATCH:
            continue
        if role not in sources:
            found = f"nothing at {pathlib.Path(config.model.weights) / role}"
            yield Row(f"{role}'s weights", name, found, _download(config, role))
            continue
        try:
            _check_shape(sources[role], name)
            yield Row(f"{role}'s weights", name, stored_weights(sources[role]))
        except EmbodiedMemError as error:
            yield Row(f"{role}'s weights", name, str(error), _download(config, role, sources[role]))


def _check_shape(source: pathlib.Path, name: str) -> None:
    """Compare a folder's model with a preset.

    A run would train whatever lies there.
    """
    from embodied_mem.models.config import preset
    from embodied_mem.models.formats.hf import read_described

    described = read_described(source) if source.is_dir() else {}
    described |= described.get("text_config") or {}
    shape = preset(name)
    for field, wanted in (("hidden_size", shape.width), ("num_hidden_layers", shape.num_layers)):
        if described.get(field, wanted) != wanted:
            raise CheckpointError(f"{source}: another model: {field} {described[field]}, but {name} has {wanted}")


def stored_weights(source: pathlib.Path) -> str:
    """Describes complete weights: files, bytes, dtypes.

    Raises:
        CheckpointError: a file or an array is missing, or a file ends too early.
    """
    if source.suffix == ".gguf":
        from embodied_mem.models.formats.gguf import GGUFFile

        return f"{len(GGUFFile(source).tensors)} tensors, {source.stat().st_size / 1e9:.2f} GB"
    from embodied_mem.models.formats.hf import read_described, read_json, weight_files

    read_described(source)
    files, arrays, dtypes, size = weight_files(source), set(), set(), 0
    if absent := [path.name for path in files if not path.is_file()]:
        raise CheckpointError(f"{source}: {len(absent)} of {len(files)} files missing: {', '.join(absent[:3])}")
    for path in files:
        header, end = _header(path)
        if path.stat().st_size != end:
            raise CheckpointError(f"{path}: expected {end:,} bytes, got {path.stat().st_size:,}; it was cut")
        arrays |= set(header)
        dtypes |= {array["dtype"] for array in header.values()}
        size += end
    index = source / "model.safetensors.index.json"
    named = set(read_json(index)["weight_map"]) if index.is_file() else set()
    if lost := named - arrays:
        raise CheckpointError(f"{source}: {len(lost)} arrays of the index are in no file, e.g. {min(lost)}")
    return f"{len(files)} files, {size / 1e9:.2f} GB, {', '.join(sorted(dtypes))}"


def _header(path: pathlib.Path) -> tuple[dict[str, Any], int]:
    """Return (arrays of a safetensors file, bytes that it must have)."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size:
                raise ValueError(f"a header of {length} bytes")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        return header, 8 + length + max((array["data_offsets"][1] for array in header.values()), default=0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: expected a safetensors file: {error}") from error


def _tokenizer(config: Config) -> Iterator[Row]:
    """Compare each published model with its tokenizer."""
    for role, folder in _sources(config).items():
        if not folder.is_dir():
            continue
        mend = _download(config, role, folder) + " --include 'tokenizer*'"
        try:
            vocabulary, special = _vocabulary(folder)
            largest = max(*vocabulary.values(), *special, 0)
            described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            described |= described.get("text_config") or {}
            size, ends = described.get("vocab_size", 0), described.get("eos_token_id")
            ends = ends if isinstance(ends, list) else [ends] * (ends is not None)
            if size and largest >= size:
                raise InvalidInputError(f"{folder}: {largest + 1:,} tokens, but the {role} has {size:,}")
            if wrong := [end for end in ends if special and end not in special]:
                raise InvalidInputError(f"{folder}: the {role} ends with token {wrong[0]}, which is no special token")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EmbodiedMemError) as error:
            yield Row("tokenizer", f"the {role}'s", str(error), mend)
        else:
            yield Row("tokenizer", f"the {role}'s", f"{largest + 1:,} tokens")


def _vocabulary(folder: pathlib.Path) -> tuple[dict[str, int], set[int]]:
    """Return (token -> id, ids of added tokens)."""
    described = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = described["model"]["vocab"]
    if not isinstance(vocabulary, dict):
        vocabulary = {token: number for number, (token, _) in enumerate(vocabulary)}
    return vocabulary, {token["id"] for token in described.get("added_tokens", ())}


def _run_folder(config: Config, run_dir: pathlib.Path) -> Row:
    from embodied_mem.training.run_folder import check_run

    above = _existing(run_dir)
    try:
        with tempfile.TemporaryFile(dir=above):
            pass
    except OSError as error:
        found = f"{above} cannot be written to: {error.strerror or error}"
        return Row("run folder", str(run_dir), found, "--run_dir DIR, a folder that can be written to")
    try:
        begun = check_run(run_dir, config)
    except CheckpointError as error:
        return Row("run folder", str(run_dir), str(error), "--run_dir DIR, another folder")
    return Row("run folder", str(run_dir), f"goes on after {begun[-1]}" if begun else "new")


def _devices_and_memory(
    config: Config, run_dir: pathlib.Path, starting: concurrent.futures.Future[Devices]
) -> Iterator[Row]:
    """Compare mesh, memory plan and checkpoint sizes with what is here."""
    from embodied_mem.parallel.mesh import MeshShape
    from experiments.plan.device_plan import PROMPT_LENGTH, fullest, plan_run, planned_models

    models: list[Any] = []
    try:
        models = planned_models(config)
    except InvalidInputError as error:
        yield Row("models", "a plan", str(error), "change the field, or leave it out")
    here = starting.result()
    axes = config.mesh.data, config.mesh.fsdp, config.mesh.tensor
    asked = " x ".join(f"{name} {size}" for name, size in zip(("data", "fsdp", "tensor"), axes))
    found = f"{here.count} x {here.platform}"
    try:
        shape = MeshShape(*axes).resolve(here.count)
        yield Row("devices", asked, found)
    except InvalidInputError:
        mend = "--mesh.data -1 --mesh.fsdp 1 --mesh.tensor 1, or another mesh that makes as many devices"
        count = math.prod(axes)
        if count > 0:
            mend = f"run it on {count} devices, or with {mend}"
        yield Row("devices", f"{asked} = {count}" if count > 0 else asked, found, mend)
        if -1 in axes:
            return
        shape = MeshShape(*axes)
    if not models:
        return
    try:
        mesh = dataclasses.replace(config.mesh, data=shape.data, fsdp=shape.fsdp, tensor=shape.tensor)
        config = dataclasses.replace(config, mesh=mesh)
        short, long = (plan_run(config, models, tokens).phases for tokens in (SHORT_PROMPT, PROMPT_LENGTH))
    except InvalidInputError as error:
        yield Row("memory of a device", "a plan", str(error), "change the mesh; --plan says more")
        return
    if here.platform == "cpu":  # on which small models run, of whose activations the plan knows little
        least = full = max(phase.resident + phase.gradients for phase in short)
    else:
        is_gpu = here.platform == "gpu"
        least, full = (fullest(config, phases, here.memory_bytes, is_gpu) for phases in (short, long))
    yield _room(
        "memory of a device", least, here.memory_bytes, "--mesh.remat True, more devices to a copy (--mesh.tensor, "
        "--mesh.fsdp), smaller batches; --plan shows which", full,
    )  # fmt: skip
    trained = _trained_bytes(config, models)
    host = _PROCESS_BYTES + max(trained.values())
    yield _room("memory of the host", host, host_memory(), "a machine with more, or smaller models")
    stages = [name for name in STAGES if trained.get(name)]
    disk = _SMALL_FILES_BYTES + _KEPT_CHECKPOINTS * sum(trained[name] for name in stages)
    disk += 2 * (trained["compiler"] + trained["executor"]) // 3  # the weights before GRPO, and the last ones
    above = _existing(run_dir)
    yield _room(f"disk of {above}", disk, shutil.disk_usage(above).free, "--run_dir DIR on another disk")


def _existing(folder: pathlib.Path) -> pathlib.Path:
    """Return the folder, or the nearest one above it that is there."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _room(what: str, needed: int, there: int, mend: str, full: int = 0) -> Row:
    from experiments.plan.plan import size_of

    found = size_of(there) if there else "unknown"
    note = f"with long prompts the plan has {size_of(full)}" if there and needed <= there < full else ""
    return Row(what, size_of(needed), found, mend if 0 < there < needed else "", note)


def _trained_bytes(config: Config, models: list[Any]) -> dict[str, int]:
    """Return a checkpoint's bytes by stage: trained weights and two moments."""
    import jax

    from embodied_mem.parallel.sharding import leaf_path

    found = {}
    for model in models:
        leaves = jax.tree_util.tree_flatten_with_path(model.parameters)[0]
        whole = model.name == "executor" and is_taught(config) and not config.model.executor_lora
        found[model.name] = 3 * sum(
            math.prod(leaf.shape) * leaf.dtype.itemsize
            for path, leaf in leaves
            if whole or model.trainable(leaf_path(path))
        )
    found.pop("vision", None)
    found["executor_correction"] = found["executor"] * bool(config.executor_correction.num_games)
    found["correction"] = found["compiler"] * bool(config.correction.num_games)
    return found | {"grpo": found["compiler"] * bool(config.grpo.steps)}
