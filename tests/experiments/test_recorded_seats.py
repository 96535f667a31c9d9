"""Each seat filled by Qwen2.5-Coder-0.5B: the recording gives the committed counts and rows again, to the digit."""

from __future__ import annotations

import json
import pathlib
import tarfile

import pytest

from experiments.analyses.seats import COMMANDS, main

RESULT = pathlib.Path(__file__).parents[2] / "experiments/results/seats_qwen05.json"


@pytest.mark.parametrize("seat", json.loads(RESULT.read_text())["seats"])
def test_the_recording_fills_a_seat_again(seat, tmp_path, request, monkeypatch):
    if "memento" in COMMANDS.get(seat, ""):
        monkeypatch.setenv("EMBODIED_MEM_DATA", str(request.getfixturevalue("memento_data").parent))
    with tarfile.open(RESULT.with_suffix(".calls.tar.xz")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path, members=[one for one in archive if one.name.startswith(seat)])
    main(["--model", "qwen2.5-coder-0.5b", "--record", str(tmp_path), "--seats", seat, "--result", str(tmp_path / "r")])
    now, before = (json.loads(path.read_text())["seats"][seat] for path in (tmp_path / "r", RESULT))
    assert now == before
    assert all(calls["calls"] for calls in now["calls"].values())
