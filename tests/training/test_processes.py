"""The pod's configuration, on folders under its models' names, on eight simulated devices, of one process and of two; a
killed process, and a restart."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx
from quick_programs import flags
from small_seeing import save_seeing, seeing, tokenizer

from embodied_mem import envs
from embodied_mem.models.formats.peft import load_peft, save_peft
from embodied_mem.models.lora import LoraParam
from embodied_mem.models.vision.qwen_vl import load_qwen_vl
from embodied_mem.parallel import processes
from embodied_mem.training.bundle import load_bundle
from embodied_mem.training.loop import read_metrics

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("small_pod_run.py")
# jax's transport greets with one line per device. Its threads write them in pieces, so lines run into each other.
GLOO = re.compile(r"\[Gloo\] Rank | is connected to | peer ranks\. |Expected number of connected peer ranks is : ")
HANGS = 240
"""Seconds after which a process that still runs writes down where its threads stand."""
SPEED = {"step_s", "rollout_s", "tokens_per_s", "peak_memory_bytes"}


def start(folder: Path, count: int) -> list[subprocess.Popen]:
    """The processes of one run over eight devices."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    started = []
    for index in range(count):
        environment = on_devices(folder, 8 // count)
        if count > 1:
            environment |= {
                "JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": str(count), "JAX_PROCESS_ID": str(index),
            }  # fmt: skip
        command = [sys.executable, str(SCRIPT), str(folder), str(folder.parent / "weights"), str(HANGS)]
        with open(said(folder, index), "w") as out, open(said(folder, index, "err"), "w") as errors:
            started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=errors))
    return started


def on_devices(folder: Path, count: int) -> dict[str, str]:
    """The environment of a process with so many simulated devices."""
    return {
        **os.environ, "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={count} {flags()}",
        "JAX_COMPILATION_CACHE_DIR": str(folder.parent / f"cache{8 // count}"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip


def said(folder: Path, index: int, kind: str = "out") -> Path:
    """The file with what a process printed last time."""
    return folder.with_name(f"{folder.name}.{index}.{kind}")


def finish(folder: Path, count: int) -> list[str]:
    """What each process printed in a run that ended well.

    Two processes of jax on simulated devices have once waited for each other without end (in CI). Such a run says where
    it stands, is killed, and is started again once: the same command goes on.
    """
    processes = start(folder, count)
    if not ended(processes):
        stacks = "\n".join(said(folder, i, "err").read_text()[-6000:] for i in range(count))
        warnings.warn(f"{folder.name}: the processes hung and were started again\n{stacks}", stacklevel=2)
        processes = start(folder, count)
        assert ended(processes), "hung twice"
    codes = [process.returncode for process in processes]
    assert codes == [0] * count, "\n".join(said(folder, i, "err").read_text()[-3000:] for i in range(count))
    return [GLOO.sub("", said(folder, i).read_text()) for i in range(count)]


def ended(processes: list[subprocess.Popen]) -> bool:
    """Whether they ended in time; else they are killed, when all of their threads have been written down.

    One that waits for a partner which is gone is a fault of ours: it should have ended.
    """
    try:
        for process in processes:
            process.wait(timeout=HANGS + 60)
    except subprocess.TimeoutExpired:
        codes = [process.poll() for process in processes]
        for process in processes:
            process.kill()
            process.wait()
        assert codes == [None] * len(processes), f"some ended, the others went on: {codes}"
        return False
    return True


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("pod") / "one"
    for seed, role in enumerate(("compiler", "executor")):
        save_seeing(seeing(seed, layers=1), folder.parent / "weights" / role)
        tokenizer().save(folder.parent / "weights" / role / "tokenizer.json")
    (output,) = finish(folder, 1)
    assert "8 x cpu, 1 processes" in output
    return folder, json.loads(output.splitlines()[-1])


def test_the_pods_configuration_runs_on_eight_simulated_devices(one):
    folder, line = one
    assert line["deliveries"]["compiled"]["steps"] == 1
    for stage in ("compiler", "grpo"):
        metrics = read_metrics(folder / stage)
        assert [m["step"] for m in metrics] == [0, 1]
        assert all(m["peak_memory_bytes"] > 1e7 for m in metrics)
        assert all(m["tokens_per_s"] > 0 and m["grad_norm"] > 0 for m in metrics)


def test_two_processes_lose_one_and_end_with_the_numbers_of_one_and_the_run_is_exported(one):
    folder = one[0].with_name("two")
    first, second = start(folder, 2)
    deadline = time.monotonic() + 600
    while "compiler trained on the teacher's outputs" not in said(folder, 0).read_text():
        assert (first.poll(), second.poll()) == (None, None), said(folder, 0, "err").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert (folder / "compiler" / "checkpoints" / "2").is_dir()
    second.send_signal(signal.SIGKILL)  # in its first episodes
    codes = first.wait(timeout=300), second.wait(timeout=60)
    errors = said(folder, 0, "err").read_text()
    # It notices at the next exchange, or jax does by the heartbeat and aborts the process.
    assert codes in [(1, -signal.SIGKILL), (-signal.SIGABRT, -signal.SIGKILL)], errors[-3000:]
    assert ("give the same command again in all of " if codes[0] == 1 else "another task died") in errors
    assert not (folder / "report").exists()

    outputs = finish(folder, 2)
    assert "8 x cpu, 2 processes" in outputs[0]
    assert re.sub(r"[\d\s]", "", outputs[1]) == "", "only the first process speaks"
    for stage in ("compiler", "grpo"):
        for got, expected in zip(read_metrics(folder / stage), read_metrics(one[0] / stage), strict=True):
            assert set(got) == set(expected)
            for name in set(expected) - SPEED:
                np.testing.assert_allclose(got[name], expected[name], rtol=2e-4, atol=1e-5, err_msg=f"{stage} {name}")
    got, expected = (json.loads((f / "report" / "report.json").read_text()) for f in (folder, one[0]))
    for name in ("success", "steps", "tokens_per_step"):
        assert got["deliveries"]["compiled"][name] == expected["deliveries"]["compiled"][name]

    trained = load_bundle(folder / "weights").model.decoder
    save_peft(trained, folder / "adapter")  # PEFT's folder; its base sees, and it has no tower
    again = load_peft(load_qwen_vl(folder.parent / "weights" / "compiler"), folder / "adapter")
    came_back, adapters = (nnx.state(one, LoraParam) for one in (again, trained))
    jax.tree.map(np.testing.assert_array_equal, came_back, adapters)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(adapters))


def test_shared_environments_are_those_of_the_processes_one_behind_the_other(monkeypatch):
    """Two processes are played here, one after the other, each with two of four rows."""

    def make(num_envs):
        from embodied_mem.worlds.alfworld.generator import generate

        games = [game.load() for game in generate(3, seed=0, num_scenes=2)]
        return envs.make("alfworld", tasks=games, num_envs=num_envs, seed=0, max_steps=2)

    whole = make(4)
    told: dict[int, list] = {0: [], 1: []}
    tasks, mask = np.asarray([2, 0, 1, 1]), np.array([False, True, False, True])
    actions = [["look", "inventory", "examine everything", "look"], ["inventory"] * 4]

    def played(index, gather) -> list:
        monkeypatch.setattr(jax, "process_count", lambda: 2)
        monkeypatch.setattr(jax, "process_index", lambda: index)
        monkeypatch.setattr(processes, "gather_json", gather)
        shared = processes.SharedEnvs(make(2))
        assert (shared.num_envs, shared.max_steps) == (4, 2)
        answers = [shared.reset(options={"task_indices": tasks})]
        answers += [shared.step(commands) for commands in actions]
        return [*answers, shared.reset(options={"task_indices": tasks[::-1], "reset_mask": mask})]

    def note(index):
        def gather(value):
            json.dumps(value)  # it is what travels
            told[index].append(value)
            return [value, value]

        return gather

    for index in (0, 1):
        played(index, note(index))
    said = [iter(zip(told[0], told[1], strict=True)) for _ in range(2)]
    answers = [played(index, lambda value, index=index: list(next(said[index]))) for index in (0, 1)]
    observations, info = whole.reset(options={"task_indices": tasks})
    for each in answers:
        assert list(each[0][0]) == list(observations)
        assert {name: list(rows) for name, rows in each[0][1].items()} == {
            name: list(info[name]) for name in each[0][1]
        }
    for number, commands in enumerate(actions, 1):
        expected = whole.step(commands)
        for each in answers:
            for got, wanted in zip(each[number][:4], expected[:4]):
                assert list(got) == list(wanted)
            assert list(each[number][4]["won"]) == list(expected[4]["won"])
    assert expected[3].all(), "truncated at the second step"
    observations, info = whole.reset(options={"task_indices": tasks[::-1], "reset_mask": mask})
    for each in answers:
        assert (list(each[-1][0]), each[-1][1]["task_id"]) == (list(observations), list(info["task_id"]))
