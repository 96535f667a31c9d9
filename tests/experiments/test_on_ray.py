"""A cluster of four nodes plays what one process plays, to the digit, also when a node dies on the way."""

import contextlib
import gzip
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.parallel import resume
from embodied_mem.parallel.on_ray import STARTER, SharedRows, hosts
from embodied_mem.training import sft
from experiments import train

ROOT = pathlib.Path(__file__).parents[2]
WEIGHTS = ROOT / "experiments" / "weights" / "procedures"
COMMAND = (
    sys.executable, "experiments/evaluate.py", "--config=alfworld", "--weights", str(WEIGHTS), "--tasks", "generated",
    "--num_tasks", "12", "--batch_size", "2", "--max_steps", "5", "--deliveries", "none",
)  # fmt: skip
BATCHES = [[("none", "0", "0"), ("none", "0", "1")], [("none", "0", "2")]]


def test_a_board_gives_each_batch_once_and_again_when_its_player_is_lost():
    board = SharedRows()
    board.begin("a")
    board.begin("b")
    assert board.claim(STARTER, "x", BATCHES) == -1
    assert board.claim("a", "x", BATCHES) == 0
    assert board.claim("b", "x", BATCHES) == 1
    board.put("b", "x", [(BATCHES[1][0], [1])])
    assert board.claim("b", "x", BATCHES) == -1
    board.end("a")
    assert board.claim("b", "x", BATCHES) == 0
    board.end("b")
    assert board.claim(STARTER, "x", BATCHES) == 0
    board.put(STARTER, "x", [(key, [0]) for key in BATCHES[0]])
    assert board.claim("b", "x", BATCHES) is None
    assert [key for key, _ in board.rows("b", "x", 1)] == BATCHES[0]
    assert board.claim("a", "another comparison", BATCHES) == 0


@contextlib.contextmanager
def cluster_of(num_nodes: int):
    pytest.importorskip("ray", reason="pip install 'embodied_mem[ray]'")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        yield cluster, [cluster.add_node(num_cpus=1) for _ in range(num_nodes - 1)]
    finally:
        cluster.shutdown()


def test_no_cluster_is_said_at_once():
    pytest.importorskip("ray", reason="pip install 'embodied_mem[ray]'")
    for address in ("127.0.0.1:1", "127.0.0.1:port"):
        with pytest.raises(InvalidInputError, match=r"--ray: expected a cluster at .*ray start --head"):
            hosts(address, print).__enter__()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_host_that_fails_gives_its_batches_back(capsys, is_killed):
    def failing(result):
        assert resume.board.claim("x", BATCHES) == 0
        if is_killed:
            os._exit(1)
        raise OSError("no weights on this host")

    with cluster_of(1) as (cluster, _), hosts(cluster.address, failing):
        resume.board.put("x", [(BATCHES[1][0], [0])])
        while (batch := resume.board.claim("x", BATCHES)) == -1:
            time.sleep(0.1)
    assert batch == 0
    said = capsys.readouterr().err
    assert "lost: host" in said
    assert is_killed or "no weights on this host); others play its episodes" in said


def episodes_of(path: pathlib.Path):
    """The episodes without what was measured by a clock."""
    table = json.loads(path.read_text())["episodes"]
    names = [
        name for name in table["columns"] if name not in ("milliseconds", "prefill_ms", "decode_ms", "compiler_ms")
    ]
    return [[row[table["columns"].index(name)] for name in names] for row in table["rows"]]


def test_four_nodes_one_killed_score_as_one_process(tmp_path):
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    subprocess.run([*COMMAND, "--result", str(alone)], cwd=ROOT, env=environment, check=True, capture_output=True)
    with cluster_of(4) as (cluster, nodes):
        run = subprocess.Popen(
            [*COMMAND, "--result", str(together), "--ray", cluster.address],
            cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        kept = pathlib.Path(f"{together}.episodes.jsonl")
        while run.poll() is None and not (kept.exists() and len(kept.read_text().splitlines()) > 1):
            time.sleep(0.1)
        cluster.remove_node(nodes[0], allow_graceful=False)
        _, errors = run.communicate(timeout=600)
    assert run.returncode == 0, errors[-2000:]  # a host that was killed after its last batch is missed by nobody
    assert episodes_of(together) == episodes_of(alone)


class Enough(Exception):
    """The samples are there."""


def test_four_nodes_one_killed_teach_as_one_process(tmp_path, monkeypatch):
    given, arguments = [], ["--config=grpo_cpu", "--world.num_train", "32", "--model.vocab_size", "300"]

    def take(run, samples):
        given.append(samples)
        raise Enough

    monkeypatch.setattr(sft, "train_executor", take)

    def run(name: str, *more: str) -> bytes:
        with pytest.raises(Enough):
            train.main([*arguments, "--run_dir", str(tmp_path / name), *more])
        return gzip.decompress((tmp_path / name / "bank.jsonl.gz").read_bytes())

    def kill(cluster, node) -> None:
        while not (resume.board and resume.board.rows(json.dumps({"teacher": "lessons"}), 0)):
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)

    banks = [run("alone")]
    with cluster_of(4) as (cluster, nodes):
        killer = threading.Thread(target=kill, args=(cluster, nodes[0]))
        killer.start()
        banks.append(run("together", "--ray", cluster.address))
        killer.join()
    banks.append(run("together"))  # goes on without a cluster
    assert len(given[0]) > 500
    assert given[0] == given[1] == given[2]
    assert banks[0] == banks[1] == banks[2]
