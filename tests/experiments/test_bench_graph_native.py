"""What the suite `graph` makes of Google Benchmark's JSON: rows, medians over runs, refusals and table."""

from __future__ import annotations

import json

import pytest

from embodied_mem.errors import InvalidInputError
from experiments.benchmarks.graph_native import read, table


def run(name: str, p50: float, bare: float | None = None, **more) -> dict:
    """A benchmark as the program writes it, with a p99 of ten times the median."""
    name = f"{name}/iterations:2000/manual_time"
    entry = {"name": name, "run_name": name, "run_type": "iteration", "p50_us": p50, "p99_us": 10 * p50, "peak_mb": 9.4}
    if bare is not None:
        entry |= {"bare_p50_us": bare, "bare_p99_us": 10 * bare, "ratio": p50 / bare, "visited": 21.0}
    return entry | more


def write(path, *benchmarks) -> object:
    path.write_text(json.dumps({"context": {"library_build_type": "release"}, "benchmarks": benchmarks}))
    return path


def test_rows_are_medians_over_runs(tmp_path):
    files = []
    for i, p50 in enumerate((3.0, 9.0, 4.0)):
        khop = run("khop/nodes:1000/degree:4/hops:2", p50, 2.0, peak_mb=100.0 * p50)
        names = run("update_by_names/nodes:1000/degree:8", 20.0)
        mean = run("khop/nodes:1000/degree:4/hops:2", 99.0, 1.0, run_type="aggregate")
        files.append(write(tmp_path / f"{i}.json", names, khop, mean))
    khop, names = read(files)  # by size and degree, whatever the order in the file
    assert khop == {
        **{"benchmark": "khop", "nodes": 1000, "degree": 4, "hops": 2, "iterations": 2000},
        **{"p50_us": 4.0, "p99_us": 40.0, "bare_p50_us": 2.0, "bare_p99_us": 20.0, "visited": 21.0},
        **{"ratio": 2.0, "ratio_min": 1.5, "ratio_max": 4.5, "peak_mb": 900},
    }
    assert (names["degree"], names["p50_us"]) == (8, 20.0)
    assert not {"ratio", "bare_p50_us"} & names.keys()  # nothing bare does that work

    lines = table([khop, names]).splitlines()
    assert lines[1].split() == ["1000", "4", "2", "khop", "4.00", "40.00", "2.00", "20.00", "2.00", "21.00"]
    assert lines[2].split() == ["1000", "8", "2", "update_by_names", "20.00", "200.00", "-", "-", "-", "-"]


@pytest.mark.parametrize(
    ("benchmark", "message"),
    [
        (
            run("khop/nodes:1000/degree:4/hops:1", 1.0, error_occurred=True, error_message="the two sides differ"),
            "khop/nodes:1000/degree:4/hops:1.* failed: the two sides differ",
        ),
        ({"run_name": "BM_other", "run_type": "iteration"}, "BM_other has no p50_us, p99_us, peak_mb"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, benchmark, message):
    with pytest.raises(InvalidInputError, match=message):
        read([write(tmp_path / "run.json", benchmark)])


def test_broken_and_empty_files_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="no benchmark was run"):
        read([write(tmp_path / "empty.json")])
    for text in ("{", "{}"):
        (tmp_path / "broken.json").write_text(text)
        with pytest.raises(InvalidInputError, match=r"broken.json: expected JSON of Google Benchmark"):
            read([tmp_path / "broken.json"])
