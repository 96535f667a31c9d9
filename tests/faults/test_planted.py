"""Each planted fault is found by its attack, which finds nothing without it (test_attacks.py)."""

from __future__ import annotations

import pytest

from experiments.attacks import ATTACKS, attack
from experiments.attacks.planted import PLANTED

pytestmark = pytest.mark.slow
DOORS = ("kill_mcp", "kill_langgraph", "doors")


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_fault_is_found(planted):
    assert PLANTED[planted] in ATTACKS
    if PLANTED[planted] in DOORS:
        pytest.importorskip("mcp_types", reason='pip install "embodied_mem[mcp]"')
        pytest.importorskip("langgraph.store", reason='pip install "embodied_mem[langgraph]"')
    for case in range(16):
        if attack(PLANTED[planted], seed=1, first=case, cases=1, planted=planted).faults:
            return
    pytest.fail(f"{PLANTED[planted]} does not find the planted fault {planted!r} in sixteen cases")
