"""The services of examples/fleet without Docker: their command serves users whose memories are in PostgreSQL."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from experiments.attacks.cluster import Cluster, programs

yaml = pytest.importorskip("yaml")
pytest.importorskip("mcp", reason='pip install "embodied_mem[mcp]"')
psycopg = pytest.importorskip("psycopg", reason='pip install "embodied-mem[postgres]"')
SERVICES = yaml.safe_load((Path(__file__).parents[2] / "examples/fleet/compose.yaml").read_text())["services"]


@pytest.mark.skipif(programs() is None, reason="no PostgreSQL server: apt-get install postgresql")
def test_the_command_serves_says_that_it_is_well_and_stops_when_asked(tmp_path):
    (tmp_path / "tokens.json").write_text(json.dumps({"a token of 16 characters": "ann"}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = SERVICES["database"]["environment"]
    user, name = environment["POSTGRES_USER"], environment["POSTGRES_DB"]
    with Cluster() as cluster:
        with psycopg.connect(cluster.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {user} SUPERUSER LOGIN")
            connection.execute(f"CREATE DATABASE {name} OWNER {user}")
        host = cluster.url.partition("host=")[2]
        _, *probe = SERVICES["database"]["healthcheck"]["test"]
        subprocess.run([programs() / probe[0], *probe[1:], f"--host={host}"], check=True)
        here = {
            "postgresql://robots@database/memory": f"postgresql://{user}@/{name}?host={host}",
            "/run/secrets/tokens": str(tmp_path / "tokens.json"),
            "0.0.0.0": "127.0.0.1",
            "8000": port,
        }
        program, *arguments = (here.get(word, word) for word in SERVICES["memory"]["command"])
        assert program == "embodied-mem"
        process = subprocess.Popen([sys.executable, "-m", "embodied_mem.cli", *arguments], env=os.environ)
        try:
            [probe] = [word for word in SERVICES["memory"]["healthcheck"]["test"] if "urlopen" in word]
            url = f"http://127.0.0.1:{port}/health"
            until = time.monotonic() + 60
            while True:
                try:
                    assert urllib.request.urlopen(url).read() == b"ok\n"
                    break
                except OSError:
                    assert time.monotonic() < until
                    assert process.poll() is None
                    time.sleep(0.1)
            subprocess.run([sys.executable, "-c", probe.replace("8000", port)], check=True)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) in (0, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
