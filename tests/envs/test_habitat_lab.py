"""The adapter to EB-Habitat on the real habitat-lab 0.3.0: its configurations, episode classes, iterator and layers of
envs, under Python 3.9. Only the simulator and EmbodiedBench's task are stand-ins.

It runs where HABITAT_LAB_PYTHON names an interpreter that has it, made by (about a minute; habitat-lab 0.3.0 does not
load under Python 3.11):

    python3.9 -m venv lab && lab/bin/pip install --no-deps habitat-lab==0.3.20231024 "numpy<1.27" hydra-core omegaconf \
        antlr4-python3-runtime==4.9.3 PyYAML attrs tqdm packaging "gym<0.23.1" cloudpickle gym_notices \
        importlib_metadata zipp numpy-quaternion numba llvmlite scipy
"""

from __future__ import annotations

import os
import subprocess

import pytest
import simulator_checkouts

from embodied_mem.envs import make

PYTHON = os.environ.get("HABITAT_LAB_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="HABITAT_LAB_PYTHON is not set; see the head of this file")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    return simulator_checkouts.embodiedbench(tmp_path, light=False)


def test_places_seeds_limits_and_the_device(folder):
    envs = make("eb_habitat", backend="embodiedbench", folder=folder, python=PYTHON, resolution=8, max_steps=40, gpu=-1)
    try:
        starts = []
        for place in (0, 3, 5, 3):
            _, info = envs.reset(options={"task_indices": [place]})
            assert list(info["goal"]) == [f"Move cup {place}."]
            starts.append(info["images"][0][0, 0, 0])
        assert starts[1] == starts[3] != starts[0]
        for step in range(1, 31):
            _, _, terminations, truncations, info = envs.step(["navigate to the sofa"])
            assert (terminations[0], truncations[0]) == (False, step == 30)
        assert info["cut_by_program"][0]
        envs.reset(options={"task_indices": [2]})
        _, rewards, terminations, _, info = envs.step(["place at the sofa"])
        assert (rewards[0], terminations[0]) == (1, True)
        assert info["program_reward"][0] == pytest.approx(0.25 + 2.5 - 0.01)  # habitat-lab's own for success and a step
        assert "gpu -1" in envs.simulators[0]._end()
    finally:
        envs.close()


_MEMENTO = """
import gzip, json, sys, types
sys.path[:0] = sys.argv[1:4]
import habitat
sys.modules["simulator_tools"] = types.ModuleType("simulator_tools")
for name in ("Check", "Refused", "imported", "present", "rendering", "rgb", "seed_all"):
    setattr(sys.modules["simulator_tools"], name, None)
import simulator_program
from habitat_llm.agent.env.dataset import CollaborationDatasetV0, CollaborationEpisode
from habitat.datasets.rearrange.rearrange_dataset import RearrangeEpisode
assert issubclass(CollaborationEpisode, RearrangeEpisode) and habitat.__version__ == "0.3.0"
text = gzip.open(sys.argv[4], "rt").read()
for kind in (CollaborationDatasetV0, simulator_program.readable(CollaborationDatasetV0)):
    dataset = kind.__new__(kind)
    dataset.episodes = []
    try:
        dataset.from_json(text)
        print([episode.instruction for episode in dataset.episodes])
    except TypeError as error:
        print("TypeError", error)
"""


def test_mementos_episodes_are_loaded_by_the_real_class(tmp_path):
    folder = simulator_checkouts.partnr(tmp_path, light=False)
    program = os.path.dirname(make.__globals__["__file__"]) + "/../worlds/memento"
    command = [PYTHON, "-c", _MEMENTO, str(folder), program, "", str(folder / "val.json.gz")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert run.returncode == 0, run.stderr
    as_it_is, stripped = run.stdout.splitlines()[-2:]
    assert "TypeError" in as_it_is
    assert "original_data_info" in as_it_is
    assert stripped == "['Tidy room 0.', 'Tidy room 1.']"
