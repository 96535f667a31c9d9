"""Short versions of the attacks of experiments/faults.py: nothing is lost, no error but ours, nothing hangs."""

from __future__ import annotations

import json
import random
import stat
import struct

import pytest

from experiments import faults
from experiments.attacks import ATTACKS, Counts, attack, mutations

CASES = {
    "kill_write": 6, "kill_snapshot": 4, "kill_forget": 4, "kill_open": 5, "kill_vectors": 3,
    "flip_log": 12, "flip_snapshot": 6, "flip_graph": 4, "flip_vectors": 4, "flip_recording": 5, "flip_bank": 5,
    "flip_game": 4, "flip_worlds": 10, "flip_gguf": 3, "flip_safetensors": 2, "flip_bundle": 3, "flip_checkpoint": 2,
    "mutate_gguf": 3, "mutate_recording": 4, "mutate_bank": 4, "mutate_state": 6, "mutate_answer": 4,
    "full_disk": 6, "threads_store": 4, "threads_memory": 3, "threads_graph": 4, "threads_vectors": 6,
    "threads_envs": 3, "fork": 8, "server": 6, "scopes": 4, "kill_threads": 4, "kill_files": 4, "kill_lock": 4,
    "power_loss": 6, "kill_mcp": 2, "kill_langgraph": 4, "doors": 4,
}  # fmt: skip
"""Cases of each; the native program has its short version in ctest (`EMBODIED_MEM_ATTACKS`)."""


DOORS = ("kill_mcp", "kill_langgraph", "doors")


@pytest.mark.parametrize("name", CASES)
def test_attack(name, tmp_path):
    if name in DOORS:
        pytest.importorskip("mcp_types", reason='pip install "embodied_mem[mcp]"')
        pytest.importorskip("langgraph.store", reason='pip install "embodied_mem[langgraph]"')
    outcome = attack(name, seed=1, cases=CASES[name], keep=tmp_path)
    assert [fault["seen"] for fault in outcome.faults] == []
    assert outcome.cases == CASES[name]
    assert outcome.landed >= outcome.tries / 4  # the faults struck


def test_every_attack_has_its_short_version():
    assert set(ATTACKS) - set(CASES) == {"mutate_native"}


def test_a_crash_of_the_native_program_is_told_with_what_makes_it_again(tmp_path, monkeypatch):
    program = tmp_path / "mutate"
    program.write_text(
        '#!/bin/sh\nprintf "\\007\\0\\0\\0\\0\\0\\0\\0" > "$6"\necho "runtime error: here" >&2\nexit 1\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(mutations, "BUILD", tmp_path)
    monkeypatch.setattr(mutations, "_seeds", lambda: tmp_path)
    with pytest.raises(AssertionError, match=r"mutate \w+ SEEDS 7 1 \d+: runtime error: here"):
        mutations.mutate_native(random.Random(0), tmp_path)
    assert (tmp_path / "command.txt").read_text().split()[3] == "7"
    assert struct.unpack("<Q", (tmp_path / "state").read_bytes()) == (7,)


BAD = """
import os, time
from . import Counts

def raises(rng, folder):
    (folder / "input").write_text("the input")
    if rng.random() < 0.5:
        raise KeyError("raw")
    return Counts(3, 2)

def crashes(rng, folder):
    (folder / "input").write_text("the input")
    os.kill(os.getpid(), 11)
"""


@pytest.fixture
def bad_attacks(tmp_path, monkeypatch):
    """Attacks that find something, as a module of the package for this test alone."""
    from experiments import attacks

    module = tmp_path / "path" / "sitecustomize.py"
    module.parent.mkdir()
    (module.parent / "bad_attacks.py").write_text(BAD)
    module.write_text(
        "import experiments.attacks as a, pathlib\n"
        "a.__path__.append(str(pathlib.Path(__file__).parent))\n"
        "a.ATTACKS |= {'raises': 'bad_attacks', 'crashes': 'bad_attacks'}\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{module.parent}:{attacks.ROOT}")
    monkeypatch.setattr(attacks, "ATTACKS", {**ATTACKS, "raises": "bad_attacks", "crashes": "bad_attacks"})
    return attacks


def test_what_an_attack_finds_is_counted_and_kept(bad_attacks, tmp_path):
    outcome = attack("raises", seed=5, cases=20, keep=tmp_path / "kept")
    found = [fault["case"] for fault in outcome.faults]
    assert found == [i for i in range(20) if random.Random(f"raises 5 {i}").random() < 0.5]
    assert (outcome.cases, outcome.tries) == (20, 3 * 20 - 2 * len(found))
    folder = tmp_path / "kept" / outcome.faults[0]["folder"]
    assert (folder / "input").read_text() == "the input"
    assert json.loads((folder / "case.json").read_text())["attack"] == "raises"
    again = attack("raises", seed=5, first=found[3], cases=1)
    assert len(again.faults) == 1


def test_a_process_that_dies_is_a_fault_and_the_next_case_is_made(bad_attacks, tmp_path):
    outcome = attack("crashes", seed=0, cases=3, keep=tmp_path)
    assert [fault["case"] for fault in outcome.faults] == [0, 1, 2]
    assert "ended with -11" in outcome.faults[0]["seen"]
    assert (tmp_path / outcome.faults[2]["folder"] / "input").exists()


def test_a_campaign_goes_on_and_ends_with_the_number_of_faults(tmp_path, monkeypatch, capsys):
    made = []

    def attack(name, seed, first, seconds, keep):
        made.append((name, first))
        if len(made) == 5:
            raise KeyboardInterrupt  # it is killed
        found = [{"case": first, "seen": "x", "folder": "f"}] if name == "scopes" and first == 0 else []
        return faults.Outcome(10, 5, 2, 3.0, found)

    clock = iter(range(0, 1 << 30, 2))
    monkeypatch.setattr(faults, "attack", attack)
    monkeypatch.setattr(faults.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.argv", [
        "faults.py", "--hours", "0.01", "--attacks", "kill_open", "scopes", "--run_dir", str(tmp_path), "--output",
        str(tmp_path / "out.json"),
    ])  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        faults.main()
    assert faults.main() == 1
    assert made[4] == made[5]  # the turn that was lost is made again
    result = json.loads((tmp_path / "out.json").read_text())
    kills, scopes = result["attacks"]["kill_open"], result["attacks"]["scopes"]
    assert len(made) - 1 == kills["tries"] / 10 + scopes["tries"] / 10
    assert abs(kills["cases"] / faults.WEIGHTS["kill_open"] - scopes["cases"]) <= 2
    assert (result["seed"], len(scopes["faults"]), len(result["commit"])) == (0, 1, 40)
    assert "| scopes |" in capsys.readouterr().out


def test_table():
    attacks = {"a": {"tries": 12000, "landed": 7, "faults": []}, "b": {"tries": 1, "landed": 1, "faults": [{}]}}
    assert faults.table_of_faults(attacks).splitlines()[2:] == [
        "| a | 12,000 | 7 | 0 |", "| b | 1 | 1 | 1 |", "| all | 12,001 | 8 | 1 |",
    ]  # fmt: skip
    assert Counts(1, 2) == (1, 2)
