"""The table of shardings, spelled out for every family, is the one that was looked at."""

from pathlib import Path

from golden_shardings import lines


def test_every_parameter_goes_where_the_golden_file_says():
    golden = Path(__file__).parents[1] / "golden" / "shardings.txt"
    expected, got = golden.read_text().splitlines(), "\n".join(lines()).splitlines()
    assert got == expected, (
        "if the change is meant: python tests/parallel/golden_shardings.py > tests/golden/shardings.txt"
    )
