"""Checkouts of the simulators' programs made of stand-ins, with the data that must lie beside them.

folder = embodiedbench(tmp_path)        # EmbodiedBench, its habitat-lab and ai2thor
folder = partnr(tmp_path)               # PARTNR, likewise
with screen(environ): ...               # an X server's socket
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pickle
import shutil
import socket
from pathlib import Path

STAND_INS = Path(__file__).parents[1] / "worlds" / "stand_ins"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daa\n"
"""What git leaves where Git LFS was not asked for the file."""

HABITAT = {"habitat/__init__.py": "habitat_lab", "habitat_sim/__init__.py": "habitat_sim"}
EMBODIEDBENCH = {
    "ai2thor.py": "ai2thor",
    "embodiedbench/envs/eb_alfred/EBAlfEnv.py": "eb_alfred",
    "embodiedbench/envs/eb_habitat/EBHabEnv.py": "eb_habitat",
    "embodiedbench/envs/eb_habitat/apartment.py": "apartment",
    "embodiedbench/envs/eb_habitat/lang_dataset.py": "eb_habitat_dataset",
    "embodiedbench/envs/eb_habitat/layers.py": "eb_habitat_layers",
}
NATIVE = {
    "embodiedbench/envs/eb_habitat/apartment.py": "apartment_native",
    "embodiedbench/envs/eb_habitat/cup.py": "apartment",
    "embodiedbench/envs/eb_alfred/EBAlfEnv.py": "eb_alfred_native",
    "embodiedbench/envs/eb_alfred/kitchen.py": "eb_alfred",
}
"""Simulators played by the native worlds."""

OMEGACONF = {"omegaconf.py": "omegaconf_part"}
PARTNR = {
    "habitat_llm/agent/env/__init__.py": "partnr_env",
    "habitat_llm/agent/env/dataset.py": "partnr_dataset",
    "habitat_llm/llm/instruct/utils.py": "partnr_instruct",
    "habitat_llm/planner/planner.py": "partnr_planner",
    "habitat_llm/utils/core.py": "partnr_core",
    "habitat_llm/utils/sim.py": "partnr_sim",
}
"""Where each stand-in lies in the program that it stands for."""

ROBOT = "data/robots/hab_fetch/robots/hab_suction.urdf"
SPOT = "data/robots/hab_spot_arm/urdf/hab_spot_arm.urdf"


def embodiedbench(
    parent: Path, goals: list[str] | None = None, commit: str = "b247936", light: bool = True, native: bool = False
) -> Path:
    """Make EmbodiedBench's checkout.

    Args:
        parent: where.
        goals: instructions of its episodes.
        commit: of the checkout.
        light: with a stand-in for habitat-lab, too.
        native: the native worlds play.
    """
    folder = parent / "EmbodiedBench"
    goals = goals or [f"Move cup {place}." for place in range(6)]
    modules = EMBODIEDBENCH | (NATIVE if native else {})
    _install(folder, modules | (HABITAT if light else {"habitat_sim.py": "habitat_sim"}))
    habitat = folder / "embodiedbench/envs/eb_habitat"
    _file(habitat / "config/task/language_rearrangement.yaml", (STAND_INS / "language_rearrangement.yaml").read_bytes())
    scenes = [f"scene_{place % 2}" for place in range(len(goals))]
    episodes = [
        {"instruction": goal, "scene_id": scene, "episode_id": str(900 + place)}
        | {"start_position": [], "start_rotation": [], "ao_states": {}, "rigid_objs": [], "targets": {}}
        for place, (goal, scene) in enumerate(zip(goals, scenes))
    ]
    content = pickle.dumps({"all_transforms": [], "idx_to_name": {}, "all_eps": episodes})
    for name in ("base", "long_horizon"):
        _file(habitat / f"datasets/{name}.pickle", content)
    for path in (ROBOT, "data/replica_cad/replicaCAD.scene_dataset_config.json", "data/objects/ycb/ycb.json"):
        _file(habitat / path)
    alfred = folder / "embodiedbench/envs/eb_alfred/data"
    _file(alfred / "json_2.1.0/trial/ann_0.json")
    entries = [{"task": f"trial_{place}", "instruction": f"Take apple {place}."} for place in range(3)]
    _file(alfred / "splits/splits.json", json.dumps({"base": entries}).encode())
    (folder / ".git/objects").mkdir(parents=True)
    (folder / ".git/refs").mkdir()
    _file(folder / ".git/HEAD", commit.ljust(40, "0").encode())
    return folder


def partnr(parent: Path, light: bool = True) -> Path:
    """Make PARTNR's checkout, with two episodes that have the fields of MEMENTO's."""
    folder = parent / "partnr-planner"
    _install(folder, PARTNR | (HABITAT | OMEGACONF if light else {"habitat_sim.py": "habitat_sim"}))
    for path in ("data/hssd-hab/hssd.json", "data/objects_ovmm/configs/cup.json", SPOT):
        _file(folder / path)
    episodes = [
        {"episode_id": str(949 + i), "scene_id": "102816756", "instruction": f"Tidy room {i}."}
        | {
            "scene_dataset_config": "data/hssd-hab/hssd.json",
            "additional_obj_config_paths": ["data/objects_ovmm/configs"],
        }
        | {"start_position": [], "start_rotation": [], "ao_states": {}, "rigid_objs": [], "targets": {}}
        | {"original_data_info": {"episode_id": "369"}, "metadata": {"stage": "1"}}
        for i in range(2)
    ]
    _file(folder / "val.json.gz", gzip.compress(json.dumps({"config": None, "episodes": episodes}).encode()))
    return folder


@contextlib.contextmanager
def screen(environ):
    """Listen as an X server does, on a screen that is nobody's, and name it in `environ`; yield its socket's path."""
    number = f"9{os.getpid()}"
    path = Path(f"/tmp/.X11-unix/X{number}")
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        environ.setenv("STAND_IN_DISPLAY", number)
        yield path
    path.unlink(missing_ok=True)


def _install(folder: Path, modules: dict[str, str]) -> None:
    for path, name in modules.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(STAND_INS / f"{name}.py", target)


def _file(path: Path, content: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
