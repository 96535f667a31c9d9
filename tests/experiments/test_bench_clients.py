"""Clients over HTTP load a served memory on both engines; it stops under load and keeps what it answered.

The limit of one user's calls is tested in test_mcp.py.
"""

import pytest

pytest.importorskip("mcp_types", reason='pip install "embodied_mem[mcp]"')
from embodied_mem.memory import LifelongMemory
from experiments.attacks.cluster import Cluster, programs
from experiments.benchmarks import clients


@pytest.fixture(params=["folder", "server"])
def place(request, tmp_path):
    if request.param == "folder":
        yield str(tmp_path)
        return
    pytest.importorskip("psycopg", reason='pip install "embodied-mem[postgres]"')
    if programs() is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    with Cluster() as cluster:
        yield cluster.url


def test_ten_clients_are_answered_and_a_stop_under_load_loses_nothing(place, monkeypatch):
    result = clients.measure(place, clients=10, seconds=3, pause=0.2, seed=0)
    assert (result["errors"], result["hung"], result["lost"]) == ([], 0, [])
    assert result["events_per_s"] > 0
    # What is not on the disk is found.
    monkeypatch.setattr(LifelongMemory, "get_all", lambda memory: [])
    load = clients._Load("", {}, None, None)
    load._texts["user1"] = {"word00000x": "kept", "word00001x": "gone"}
    assert load.losses(place) == ["user1: word00000x is kept"]
