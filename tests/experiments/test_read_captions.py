"""Ten captions read by Qwen2.5-Coder-0.5B: the recording gives the committed result again, to the digit."""

from __future__ import annotations

import gzip
import json
import pathlib

from experiments.analyses.read_captions import main

RESULTS = pathlib.Path(__file__).parents[2] / "experiments" / "results"


def test_the_recording_gives_the_result_again(tmp_path):
    calls, result = tmp_path / "calls.jsonl", tmp_path / "now.json"
    calls.write_bytes(gzip.decompress((RESULTS / "captions_qwen05.calls.jsonl.gz").read_bytes()))
    main(["--model", "qwen2.5-coder-0.5b", "--record", str(calls), "--result", str(result)])
    now, kept = json.loads(result.read_text()), json.loads((RESULTS / "captions_qwen05.json").read_text())
    assert {name: now[name] for name in ("model", "rules")} == {name: kept[name] for name in ("model", "rules")}
