"""Attacks on the library: kills, damaged files, full disks, mutated input, many threads, hostile servers.

    outcome = attack("kill_write", seed=0, cases=10, folder=scratch)      # in a process of its own
    assert outcome.landed and not outcome.faults

An attack is a function of (random numbers, an empty folder) that makes one case, returns `Counts` and raises what it
found wrong. `ATTACKS` names them all; `experiments/faults.py` runs them for hours, `tests/faults` for seconds. Case i
of seed s of an attack is always the same input, so that it can be given again; only kills and threads depend on the
clock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple

from .planted import preloaded

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60
"""A case that takes longer hangs."""

ATTACKS = {
    "kill_write": "kills", "kill_snapshot": "kills", "kill_forget": "kills", "kill_open": "kills",
    "kill_vectors": "kills", "kill_threads": "kills", "kill_files": "kills", "kill_lock": "kills",
    "power_loss": "kills",
    "flip_log": "flips", "flip_snapshot": "flips", "flip_graph": "flips", "flip_vectors": "flips",
    "flip_recording": "flips", "flip_bank": "flips", "flip_game": "flips", "flip_worlds": "flips",
    "flip_gguf": "flips", "flip_safetensors": "flip_weights", "flip_bundle": "flip_weights",
    "flip_checkpoint": "flip_weights",
    "mutate_native": "mutations", "mutate_gguf": "mutations", "mutate_recording": "mutations",
    "mutate_bank": "mutations", "mutate_state": "mutations", "mutate_answer": "mutations",
    "full_disk": "disk", "threads_store": "threads", "threads_memory": "threads", "threads_graph": "threads",
    "threads_vectors": "threads", "threads_envs": "threads",
    "fork": "forks", "server": "server", "scopes": "scopes", "kill_mcp": "doors", "kill_langgraph": "doors",
    "doors": "doors",
}  # fmt: skip
"""Name -> module of this package that has a function of that name."""


class Counts(NamedTuple):
    """Counts of a case: tries, and of them those whose fault is known to have landed."""

    tries: int
    landed: int


@dataclasses.dataclass
class Outcome:
    """Results of the cases of an attack.

    Attributes:
        faults: each {"case", "seen", "folder"}; the folder holds the input that failed.
        cases: how many were made.
        seconds: that they took.
    """

    tries: int = 0
    landed: int = 0
    cases: int = 0
    seconds: float = 0.0
    faults: list[dict] = dataclasses.field(default_factory=list)


def attack(
    name: str,
    seed: int,
    *,
    first: int = 0,
    cases: int = 1 << 60,
    seconds: float = 1e9,
    keep: pathlib.Path | None = None,
    planted: str = "",
) -> Outcome:
    """Run cases `first`, `first` + 1, ... in another process.

    Where a case ends or hangs that process, another one goes on.

    Args:
        name: of `ATTACKS`.
        cases, seconds: it stops at whichever comes first; one case is made in any event.
        keep: folder that gets the inputs of faults; None: nobody keeps them.
        planted: a fault of `planted.PLANTED` that the attack must find.
    """
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="attack-", dir=_memory_disk()))
    total = Outcome()
    try:
        while True:
            part = _process(
                name, seed, first + total.cases, cases - total.cases, seconds - total.seconds, scratch, planted
            )
            for fault in part.faults:
                fault["folder"] = _kept(keep, name, seed, fault, scratch)
            total = Outcome(
                total.tries + part.tries, total.landed + part.landed, total.cases + part.cases,
                total.seconds + part.seconds, total.faults + part.faults,
            )  # fmt: skip
            if total.cases >= cases or total.seconds >= seconds:
                return total
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _process(
    name: str, seed: int, first: int, cases: int, seconds: float, scratch: pathlib.Path, planted: str
) -> Outcome:
    """Count what one process got done.

    It tells after each case, so a crash costs no count.
    """
    command = [sys.executable, "-m", "experiments.attacks", name, str(seed), str(first), str(cases), str(seconds)]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "EMBODIED_MEM_PLANTED": planted}
    if planted or name == "power_loss":
        environment["LD_PRELOAD"] = str(preloaded())
    errors = open(scratch / "stderr", "w+")  # noqa: SIM115  closed below
    process = subprocess.Popen(
        [*command, str(scratch)],
        stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment, start_new_session=True,
    )  # fmt: skip
    outcome, hangs = Outcome(), False
    try:
        while True:
            line = _line(process)
            if line is None:
                hangs = True
                break
            if not line:
                break
            told = json.loads(line)
            if "seen" in told:
                outcome.faults.append({"case": told["case"], "seen": told["seen"]})
            outcome.tries += told["tries"]
            outcome.landed += told["landed"]
            outcome.cases += 1
            outcome.seconds = told["seconds"]
            if "seen" in told:
                break  # what it has forked may hold the pipe open
    finally:
        if outcome.faults:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)  # it ends by itself
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and what a case has left
        code = process.wait()
        process.stdout.close()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or [""])[-1]
        errors.close()
    if hangs or code != 0:
        seen = f"no end in {PATIENCE_S} s" if hangs else f"the process ended with {code}: {last}"
        outcome.faults.append({"case": first + outcome.cases, "seen": seen})
        outcome.cases += 1
        outcome.tries += 1
        outcome.landed += 1
        outcome.seconds += PATIENCE_S if hangs else 1.0
    return outcome


def _line(process: subprocess.Popen) -> str | None:
    """Return the next line, "" at its end, None after a time-out."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if selector.select(PATIENCE_S) else None


def _kept(keep: pathlib.Path | None, name: str, seed: int, fault: dict, scratch: pathlib.Path) -> str:
    """Return the path of the copied input of a fault."""
    source = scratch / f"case-{fault['case']}"
    if keep is None:
        return ""
    target = keep / f"{name}-{seed}-{fault['case']}"
    shutil.rmtree(target, ignore_errors=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    target.mkdir(parents=True, exist_ok=True)
    case = {"attack": name, "seed": seed, "case": fault["case"], "seen": fault["seen"]}
    (target / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    shutil.rmtree(source, ignore_errors=True)
    return target.name


def _memory_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
