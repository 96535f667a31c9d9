"""Things placed by two prompts of the perceiver: the recordings give the committed counts again."""

from __future__ import annotations

import gzip
import json
import pathlib
import tarfile

from experiments.analyses.placed_things import main

RESULTS = pathlib.Path(__file__).parents[2] / "experiments" / "results"


def test_the_recordings_give_the_counts_again(tmp_path):
    before, after, result = tmp_path / "before.jsonl", tmp_path / "after.jsonl", tmp_path / "now.json"
    before.write_bytes(gzip.decompress((RESULTS / "perceiver_prompts.calls.jsonl.gz").read_bytes()))
    with tarfile.open(RESULTS / "seats_qwen05.calls.tar.xz") as archive:
        after.write_bytes(archive.extractfile("perceiver.jsonl").read())
    main(["--before", str(before), "--after", str(after), "--result", str(result)])
    now, kept = json.loads(result.read_text()), json.loads((RESULTS / "perceiver_prompts.json").read_text())
    assert [now[name] for name in ("before", "after")] == [kept[name] for name in ("before", "after")]
    assert now["before"]["placed"] < now["after"]["placed"] <= now["after"]["things"]
