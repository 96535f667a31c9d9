"""Files for cluster managers: valid for their programs, and each command is one that `train.py` takes."""

from __future__ import annotations

import importlib.util
import math
import pathlib
import re
import shlex
import subprocess
from typing import Any

import pytest

from experiments.configs import cli

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "clusters"
SBATCH = {
    "job-name": r".+", "nodes": r"\d+", "ntasks-per-node": r"\d+", "gpus-per-node": r"\d+", "cpus-per-task": r"\d+",
    "time": r"\d+:\d\d:\d\d", "signal": r"TERM@\d+", "requeue": r"", "open-mode": r"append",
}  # fmt: skip


def yaml_of(name: str) -> dict[str, Any]:
    return pytest.importorskip("yaml").safe_load((FOLDER / name).read_text())


def config_of(text: str):
    """The configuration of the one training command in a script; unknown flags end the test."""
    [command] = re.findall(r"python experiments/train\.py (.*)", text.replace("\\\n", " "))
    options, config = cli(shlex.split(command), "")
    assert options.run_dir.startswith("/shared/")
    assert config.model.weights.startswith("/shared/")
    return config


def devices(config) -> int:
    return math.prod((config.mesh.data, config.mesh.fsdp, config.mesh.tensor))


def check_script(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_slurm():
    text = (FOLDER / "slurm.sh").read_text()
    check_script(text)
    head, _, rest = text.partition("\nsrun ")
    assert "#SBATCH" not in rest, "Slurm reads them above the first command"
    given = dict(re.findall(r"^#SBATCH --([a-z-]+)=?(\S*)$", head, re.MULTILINE))
    assert len(given) == head.count("#SBATCH")
    assert all(re.fullmatch(SBATCH[name], value) for name, value in given.items())
    assert given["ntasks-per-node"] == given["gpus-per-node"]
    assert devices(config_of(text)) == int(given["nodes"]) * int(given["ntasks-per-node"])


def test_jobset():
    whole = yaml_of("jobset.yaml")
    [part] = whole["spec"]["replicatedJobs"]
    job = part["template"]["spec"]
    [container] = job["template"]["spec"]["containers"]
    shell, script = container["command"][:2], container["command"][2]
    assert shell == ["sh", "-c"]
    check_script(script)
    assert devices(config_of(script)) == job["parallelism"] * container["resources"]["limits"]["google.com/tpu"]
    assert job["completions"] == job["parallelism"]
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    validate.validate(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": whole["metadata"]} | part["template"], "1.31", strict=True
    )
    crd = pytest.importorskip(
        "kubeflow_trainer_api.models.jobset_v1alpha2_job_set", reason="pip install kubeflow-trainer-api"
    )
    assert crd.JobsetV1alpha2JobSet.from_dict(whole).to_dict() == whole  # unknown fields would be dropped
    assert (whole["apiVersion"], whole["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")


def test_skypilot():
    task = yaml_of("skypilot.yaml")
    for name in ("setup", "run"):
        check_script(task[name])
    assert devices(config_of(task["run"])) == task["num_nodes"] * int(task["resources"]["accelerators"].split(":")[1])
    if importlib.util.find_spec("sky") is None:
        pytest.skip("pip install skypilot")
    from sky.utils import schemas

    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(task, schemas.get_task_schema())
    jsonschema.validate(task["resources"], schemas.get_resources_schema())
