"""Whatever a configuration trains comes back out of a bundle: in another process, on another mesh, beside its base."""

import dataclasses
import json
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from embodied_mem.errors import CheckpointError, DataNotFoundError, InvalidInputError
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.evaluate import parse
from embodied_mem.language.tokenizers import Tokenizer, train_bpe
from embodied_mem.models.config import PRESETS, DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import save_hf
from embodied_mem.models.lora import LoraParam
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.models.weights_version import weights_version
from embodied_mem.training import config as c
from embodied_mem.training import grpo, loop, models, sft
from embodied_mem.training.bundle import OWN_TOKENIZER, flat_arrays, load_bundle, save_bundle
from embodied_mem.training.config import ROLES, is_frozen, is_published
from embodied_mem.training.data import compiler_batch
from embodied_mem.training.models import make_tokenizer, new_decoder
from embodied_mem.training.tasks import make_tasks, teach_bank
from embodied_mem.training.teachers.episodes import Sample, play_teacher
from embodied_mem.training.teachers.games import Games
from experiments.configs import load
from tests.training.eight_devices_bundle import MESHES, said

pytestmark = pytest.mark.usefixtures("unoptimised")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPE = {"num_layers": 1, "num_heads": 4, "num_kv_heads": 2, "head_dim": 8, "mlp_width": 32}
TOKENIZER = train_bpe(["go to fridge 1", "take apple 1 from fridge 1"] * 4, 300)


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> pathlib.Path:
    """A folder with `compiler` and `executor` as Hugging Face folders, of different widths."""
    return write_published(tmp_path_factory.mktemp("published"), TOKENIZER)


def write_published(folder: pathlib.Path, of_executor: Tokenizer) -> pathlib.Path:
    for seed, (role, width, tokenizer) in enumerate((("compiler", 32, TOKENIZER), ("executor", 16, of_executor))):
        shape = DecoderConfig(**SHAPE, width=width, vocab_size=tokenizer.vocab_size, scan_layers=True, max_length=2560)
        save_hf(Decoder(shape, rngs=nnx.Rngs(seed)), folder / role)
        tokenizer.save(folder / role / "tokenizer.json")
    return folder


def leaves_of(module) -> dict[str, tuple[str, np.ndarray]]:
    """Every variable of a module by its path: the name of its type, and its value."""
    flat = nnx.to_flat_state(nnx.state(module))
    return {".".join(map(str, path)): (type(leaf).__name__, np.asarray(leaf[...])) for path, leaf in flat}


def perturb(module, wanted) -> int:
    """Moves every variable that the filter names to a value that no fresh model has; returns how many there are."""
    state = nnx.state(module, wanted)
    leaves, structure = jax.tree.flatten(state)
    random = np.random.default_rng(len(leaves))
    changed = [jnp.asarray(leaf + random.normal(size=leaf.shape), leaf.dtype) for leaf in leaves]
    nnx.update(module, jax.tree.unflatten(structure, changed))
    return len(leaves)


@pytest.mark.parametrize(
    ("name", "lora"),
    [
        ("grpo_cpu", False), ("grpo_cpu", True), ("eb_alfred", False), ("scienceworld", False), ("grpo_tpu", False),
        ("smollm2", False), ("smollm2_executor", False),
    ],
)  # fmt: skip
def test_every_trainable_leaf_of_each_kind_of_configuration_comes_back(name, lora, published, tmp_path, monkeypatch):
    monkeypatch.setitem(PRESETS, "micro", DecoderConfig(**SHAPE, width=24, smear=1))
    config = load(name)
    changes = {"weights": str(published) if config.model.weights else ""} | ({"lora": lora} if lora else {})
    changes |= {"executor_lora": 1} if config.model.executor_lora else {}
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, **changes))
    executor = models.executor_of(config, new_decoder(config, TOKENIZER, "executor", 1))
    model = models.new_compiler(config, TOKENIZER, executor)
    if not is_frozen(config, "executor"):
        assert perturb(executor, ...) > 10
    elif executor.lora:
        assert perturb(executor, LoraParam) == 4
    assert perturb(model, models.trainable_filter(config)) == 8 if config.model.lora else 14
    save_bundle(tmp_path / "w", config, TOKENIZER, executor, model)
    bundle = load_bundle(tmp_path / "w")
    for before, after in ((executor, bundle.executor), (model, bundle.model)):
        wanted, got = leaves_of(before), leaves_of(after)
        assert {path: kind for path, (kind, _) in got.items()} == {path: kind for path, (kind, _) in wanted.items()}
        for path, (_, value) in wanted.items():
            assert got[path][1].dtype == value.dtype
            np.testing.assert_array_equal(got[path][1], value, err_msg=path)
    stored = load_file(tmp_path / "w" / "weights.safetensors")
    for role in ROLES:  # a base that stays as it is is not written again
        frozen = is_published(config, role) and is_frozen(config, role)
        assert any(path.startswith(role) and path.endswith("embedding") for path in stored) != frozen
    # No trainable array may be missing.
    with safe_open(tmp_path / "w" / "weights.safetensors", framework="numpy") as file:
        metadata = file.metadata()
    for path in (next(path for path in stored if part in path) for part in ("compiler.", "query")):
        others = {other: stored[other] for other in stored if other != path}
        save_file(others, tmp_path / "w" / "weights.safetensors", metadata)
        with pytest.raises(CheckpointError, match=f"{path}: expected shape .*, got nothing"):
            load_bundle(tmp_path / "w")


def tiny(published: pathlib.Path) -> c.Config:
    """The paper's configuration in tiny: a published compiler with adapters, a frozen published executor."""
    config = load("grpo_tpu")
    return dataclasses.replace(
        config,
        world=c.WorldConfig(num_train=4, num_valid=2, num_scenes=2, max_steps=8),
        memory=dataclasses.replace(config.memory, num_soft=4, top_k=1),
        model=dataclasses.replace(config.model, weights=str(published), max_compiler_tokens=8, max_action_tokens=4),
        compiler_sft=c.SFTConfig(steps=4, batch_size=2, learning_rate=0.05),
        mesh=c.MeshConfig(),
    )


@pytest.fixture(scope="module")
def trained(published, tmp_path_factory):
    """(folder of the run, config, tokenizer, executor, compiler) after SFT of the adapters, saved in `weights`."""
    run_dir, config = tmp_path_factory.mktemp("run"), tiny(published)
    view = ("put apple in fridge", "a room", ())
    samples = [Sample("go to", "go", "find apple", view, "", "find apple", "apple 1", "go to fridge 1")] * 4
    tokenizer = make_tokenizer(config, run_dir / "tokenizer.json", samples)
    run = loop.Run(config, tokenizer, run_dir)
    executor = sft.train_executor(run, samples)
    model = sft.train_compiler(run, samples, executor)
    again = sft.train_compiler(run, samples, executor)  # from the checkpoint
    assert (
        leaves_of(again)["decoder.layers.query_lora_b"][1] == leaves_of(model)["decoder.layers.query_lora_b"][1]
    ).all()
    save_bundle(run_dir / "weights", config, tokenizer, executor, model)
    return run_dir, config, tokenizer, executor, model


def test_trained_adapters_say_the_same_in_another_process_on_other_meshes(trained, published, on_eight_devices):
    run_dir, config, tokenizer, executor, model = trained
    before = said(config, tokenizer, executor, model)
    untrained = said(config, tokenizer, executor, models.new_compiler(config, tokenizer, executor))
    assert all(np.abs(np.subtract(one[1], other[1])).max() > 0.01 for one, other in zip(untrained, before))
    bundle = load_bundle(run_dir / "weights")
    assert said(bundle.config, bundle.tokenizer, bundle.executor, bundle.model) == before
    script = pathlib.Path(__file__).with_name("eight_devices_bundle.py")
    report = on_eight_devices(script, run_dir / "weights", published)
    for (tokens, log_probs, soft, action), wanted in zip(report["said"], before, strict=True):
        assert (tokens, action) == (wanted[0], wanted[3])
        np.testing.assert_allclose(log_probs, wanted[1], atol=2e-5)
        np.testing.assert_allclose(soft, wanted[2], rtol=1e-5, atol=2e-5)
    whole = [sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(one))) for one in (executor, model)]
    for name in MESHES:
        assert report[name]["version"] == weights_version(executor, model), name
        if name != "training":  # which is data=-1: whole on every device
            assert all(part < 0.6 * size for part, size in zip(report[name]["bytes"], whole))
            assert np.median(report[name]["shares"]) <= 0.5  # biases of the Soft-Mem head are whole everywhere


def test_models_of_two_families_read_with_their_own_tokenizers(tmp_path, monkeypatch):
    """The executor's tokens are others for the same words, and more than the compiler has."""
    other = train_bpe(["put the mug on the shelf", "find apple in fridge 1: open it"] * 4, 320)
    config = tiny(write_published(tmp_path / "published", other))
    config = dataclasses.replace(
        config, executor_sft=c.SFTConfig(steps=2, batch_size=2), evaluation=c.EvalConfig(),
        grpo=c.GRPOConfig(steps=1, num_tasks=1, group_size=2, max_steps=2, microbatch=2),
    )  # fmt: skip
    tasks = make_tasks(config)
    bank = teach_bank(config, tasks=tasks)
    samples = play_teacher(tasks.train, [0], bank, tasks.make_teacher, top_k=1, detour=0.0, seed=1).samples
    tokenizer = make_tokenizer(config, tmp_path / "tokenizer.json", samples)
    own = models.make_own_tokenizer(config, tmp_path / OWN_TOKENIZER)
    assert (tokenizer.vocab_hash, own.vocab_hash) == (TOKENIZER.vocab_hash, other.vocab_hash)
    blind = PictureReader(None, tokenizer), PictureReader(None, own)
    rows = compiler_batch(tokenizer, samples[:2], config, 1.0, np.random.default_rng(0), blind, own)
    for b, origin in enumerate(rows.origin):
        named, read = rows.references[origin], rows.executor.tokens[b][rows.executor.mask[b]]
        assert f" {samples[origin].reference}".startswith(own.decode(named[named >= 0].tolist()))
        assert samples[origin].action in own.decode(read.tolist())
        assert (read == own.soft_id).sum() == config.memory.num_soft * bool(samples[origin].hint)
    run = loop.Run(config, tokenizer, tmp_path, own)
    executor = sft.train_executor(run, samples)
    model = sft.train_compiler(run, samples, executor)
    monkeypatch.setattr(grpo, "advantages_of", lambda trajectories, size: (np.float32([1, -1]), 0))
    acted = []
    monkeypatch.setattr(
        grpo, "make_executor", lambda *given, **named: acted.append(given[2]) or models.make_executor(*given, **named)
    )
    before = flat_arrays("x", model)
    model = grpo.train_grpo(run, model, executor, Games(config, tasks, bank))
    assert any((before[name] != value).any() for name, value in flat_arrays("x", model).items())
    save_bundle(tmp_path / "weights", config, tokenizer, executor, model, own)
    acting, compiler = load_bundle(tmp_path / "weights").acting()
    assert (compiler.tokenizer.vocab_hash, acting.tokenizer.vocab_hash) == (TOKENIZER.vocab_hash, other.vocab_hash)
    assert acted[0] is own


def test_a_base_is_found_by_another_path_and_only_the_same_one_is_taken(trained, published, tmp_path):
    folder, wanted = tmp_path / "weights", flat_arrays("x", trained[4])
    shutil.copytree(trained[0] / "weights", folder)
    described = json.loads((folder / "config.json").read_text())
    described["model"]["weights"] = str(tmp_path / "gone")
    (folder / "config.json").write_text(json.dumps(described))
    needs = r"needs the published weights of qwen2\.5-14b \(config\.json with SHA-256 [0-9a-f]{64}, model\.safetensors"
    with pytest.raises(DataNotFoundError, match=f"the executor {needs} .*; say where they are with --model.weights"):
        load_bundle(folder)
    bundle = Models(str(folder), weights=str(published)).load()
    got = flat_arrays("x", bundle.model)
    assert all(np.array_equal(got[name], wanted[name]) for name in wanted)
    shutil.copytree(published, tmp_path / "other")
    save_hf(Decoder(bundle.model.decoder.config, rngs=nnx.Rngs(9)), tmp_path / "other" / "compiler")
    with pytest.raises(CheckpointError, match=r"the compiler needs .*qwen2\.5-vl-7b.*, got .*other/compiler"):
        load_bundle(folder, weights=str(tmp_path / "other"))


def test_the_command_line_names_a_mesh_and_a_base():
    assert parse(["--weights", "w"])[2] == Models("w")
    given = ["--weights", "w", "--mesh.fsdp", "4", "--model.weights", "b.gguf"]
    assert parse(given)[2] == Models("w", "b.gguf", (-1, 4, 1))
    with pytest.raises(InvalidInputError, match=r"mesh: data 3 x fsdp 5 x tensor 1 does not make 1 devices"):
        Models(str(ROOT / "experiments/weights/alfworld"), mesh=(3, 5, 1)).load()


@pytest.mark.parametrize("folder", sorted((ROOT / "experiments" / "weights").glob("*/")), ids=lambda p: p.name)
def test_committed_weights_load_as_they_lie_in_the_file(folder):
    stored, bundle = load_file(folder / "weights.safetensors"), load_bundle(folder)
    got = flat_arrays("executor", bundle.executor) | flat_arrays("compiler", bundle.model)
    assert got.keys() == stored.keys()
    for name, array in stored.items():
        assert (got[name].dtype, got[name].tobytes()) == (array.dtype, array.tobytes()), name


@pytest.mark.parametrize("name", ["change", "habits", "procedures"])
def test_fields_that_came_later_leave_the_fingerprint_of_a_result(name):
    result = json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text())
    assert load_bundle(ROOT / "experiments" / "weights" / name).config.fingerprint() == result["fingerprint"]


def test_a_file_in_the_place_of_a_folder_and_a_folder_in_the_place_of_a_file(tmp_path):
    shutil.copytree(ROOT / "experiments/weights/alfworld", tmp_path / "w")
    with pytest.raises(CheckpointError, match=r"config\.json: expected a folder with .*; no folder"):
        load_bundle(tmp_path / "w" / "config.json")
    (tmp_path / "w" / "weights.safetensors").unlink()
    (tmp_path / "w" / "weights.safetensors").mkdir()
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is missing"):
        load_bundle(tmp_path / "w")
    with pytest.raises(InvalidInputError, match="expected a file with a memory bank, got a folder"):
        teach_bank(load("grpo_cpu"), tmp_path)
