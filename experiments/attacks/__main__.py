"""One process of an attack: `python -m experiments.attacks NAME SEED FIRST CASES SECONDS FOLDER`.

Tells a line of JSON after each case. The folder of a case that failed stays, all others are removed.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import random
import shutil
import sys
import time
import traceback

from . import ATTACKS, Counts
from .planted import plant


def main() -> None:
    """Make the cases."""
    name, seed, first, cases, seconds, scratch = sys.argv[1:]
    function = getattr(importlib.import_module(f"{__package__}.{ATTACKS[name]}"), name)
    plant(os.environ.get("EMBODIED_MEM_PLANTED", ""))
    out = os.dup(1)
    os.dup2(2, 1)  # what the library prints is not told
    began = time.monotonic()
    for case in range(int(first), int(first) + int(cases)):
        folder = pathlib.Path(scratch) / f"case-{case}"
        folder.mkdir()
        told: dict = {"case": case}
        try:
            counts = function(random.Random(f"{name} {seed} {case}"), folder)
            shutil.rmtree(folder)
        except Exception as error:
            counts = Counts(1, 1)
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{pathlib.Path(where.filename).name}:{where.lineno}"
            told["seen"] = f"{type(error).__name__} at {place}: {error}"[:600]
            (folder / "traceback.txt").write_text(traceback.format_exc())
        told |= {"tries": counts.tries, "landed": counts.landed, "seconds": time.monotonic() - began}
        os.write(out, (json.dumps(told) + "\n").encode())
        if told["seconds"] >= float(seconds) or "seen" in told:
            break  # what a failed case has left behind would be found by the next ones


if __name__ == "__main__":
    main()
