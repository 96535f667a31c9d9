"""A whole run on drawn pictures by the paper's configuration, with small random models that see in both seats; and the
drawn pictures themselves."""

import json

import jax
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file
from small_seeing import save_seeing, seeing, tokenizer

from embodied_mem import envs
from embodied_mem.envs.drawn_env import SIDE, DrawnEnvs, colour, drawn, names_in
from embodied_mem.memory import Experiences
from embodied_mem.models.formats.peft import load_peft, save_peft
from embodied_mem.models.lora import LoraParam
from embodied_mem.models.vision.qwen_vl import load_qwen_vl
from embodied_mem.training import grpo
from embodied_mem.training.bundle import load_bundle
from embodied_mem.worlds.alfworld.generator import generate
from experiments import train

FIELDS = {
    "world.train": "generated", "world.valid": "generated", "world.num_train": 2, "world.num_valid": 1,
    "world.num_scenes": 1, "world.max_steps": 2, "memory.top_k": 1, "memory.num_soft": 4,
    "model.max_compiler_tokens": 4, "model.max_action_tokens": 3, "model.image_side": 24,
    "compiler_sft.steps": 1, "grpo.steps": 1, "grpo.num_tasks": 1, "grpo.group_size": 2, "grpo.max_steps": 1,
    "grpo.microbatch": 2, "evaluation.tasks": "", "evaluation.seeds": 0, "evaluation.deliveries": "compiled",
    "mesh.data": 1, "mesh.tensor": 1,
}  # fmt: skip


@pytest.fixture
def published(tmp_path):
    """Qwen3-VL in both seats; test_image_steps.py has Qwen2.5-VL."""
    for seed, role in enumerate(("compiler", "executor")):
        save_seeing(seeing(seed, layers=1, third=True), tmp_path / "weights" / role)
        tokenizer().save(tmp_path / "weights" / role / "tokenizer.json")
    return tmp_path / "weights"


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
def test_the_paper_s_configuration_with_pictures(published, tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "advantages_of", lambda trajectories, size: (np.float32([1, -1]), 0))
    run = tmp_path / "run"
    train.main(
        [
            "--config=grpo_tpu", "--world.drawn", "--model.executor", "qwen2.5-vl-32b", "--model.images", "2",
            f"--model.weights={published}", f"--run_dir={run}", "--unchecked",
            *(f"--{field}={value}" for field, value in FIELDS.items()),
        ]
    )  # fmt: skip
    shown = [experience for experience in Experiences.load(run / "bank.jsonl.gz").retrieve("find", k=9)]
    assert shown
    assert all(len(step.images) == 1 for experience in shown for step in experience.episode.steps)
    trained, played = (
        json.loads((run / stage / "metrics.jsonl").read_text().splitlines()[-1]) for stage in ("compiler", "grpo")
    )
    assert trained["perceptual"] > 0
    assert played["log_prob_gap"] < 1e-3
    bundle = load_bundle(run / "weights")
    assert bundle.executor.config.vision is not None
    first = load_qwen_vl(published / "compiler").vision
    np.testing.assert_array_equal(bundle.model.decoder.vision.patch[...], first.patch[...])  # as they were
    assert not [name for name in load_file(run / "weights" / "weights.safetensors") if "vision" in name]
    # What was trained, as PEFT's folder beside the published one.
    save_peft(bundle.model.decoder, tmp_path / "adapter", base=str(published / "compiler"))
    again = load_peft(load_qwen_vl(published / "compiler"), tmp_path / "adapter")
    trained, came_back = (nnx.state(one, LoraParam) for one in (bundle.model.decoder, again))
    jax.tree.map(np.testing.assert_array_equal, came_back, trained)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(trained))


def test_pictures_are_drawn_of_what_the_texts_say():
    games = [game.load() for game in generate(2, seed=0, num_scenes=1)]
    rooms = envs.make("alfworld", tasks=games, num_envs=2, seed=0, max_steps=5)
    seen = DrawnEnvs(rooms)
    texts, info = seen.reset(options={"task_indices": np.array([0, 1])})
    places = names_in(texts[0])
    np.testing.assert_array_equal(info["images"][0], drawn(places, "", []))
    cell = SIDE // 8
    for number, place in enumerate(places[:8]):
        np.testing.assert_array_equal(info["images"][0][cell // 2, number * cell + cell // 2], colour(place))
    texts, *_, info = seen.step([f"go to {places[1]}", "look"])
    assert (info["images"][0][1, cell + 1] == 255).all()  # there is the robot now
    things = [name for name in names_in(texts[0]) if name not in places]
    np.testing.assert_array_equal(info["images"][0], drawn(places, places[1], things))
    _, *_, later = seen.step(["inventory", "look"])
    assert (later["images"][0][1, cell + 1] == 255).all()
    assert colour("mug 1").tolist() == colour("mug 2").tolist() != colour("desk 1").tolist()
