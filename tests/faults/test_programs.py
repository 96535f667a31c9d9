"""Faults that were found by attack do not come back: each program of `programs.py` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from programs import PROGRAMS

PATIENCE_S = 60


@pytest.mark.parametrize("name", [program.__name__ for program in PROGRAMS])
def test_no_fault(name):
    command = [sys.executable, str(Path(__file__).parent / "programs.py"), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-2000:]
