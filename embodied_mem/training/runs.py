"""The folder of a run: it belongs to one configuration.

claim_run(run_dir, config)
"""

from __future__ import annotations

import json
import os
import pathlib

from embodied_mem.errors import CheckpointError
from embodied_mem.training.config import STAGES, Config

_MADE = ("checkpoints", "episodes_0.jsonl.gz")
"""What a stage that has begun has in its folder; the correction plays its episodes before it trains."""


def claim_run(run_dir: str | os.PathLike, config: Config) -> None:
    """Makes the folder and writes `config.json` into it, once it is sure that what lies there fits the configuration.

    Stages that have not begun may be configured anew: a finished executor can be kept for another compiler.

    Raises:
        CheckpointError: something there was made under other settings; the message names each with both values.
    """
    run_dir = pathlib.Path(run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    path = run_dir / "config.json"
    begun = [stage for stage in STAGES if any((run_dir / stage / made).exists() for made in _MADE)]
    if path.exists() and (begun or any(run_dir.glob("bank.*")) or any(run_dir.glob("tokenizer.*"))):
        try:
            saved = json.loads(path.read_text())
        except ValueError as error:
            raise CheckpointError(f"{path}: expected JSON: {error}; delete {run_dir} or use another folder") from error
        stage = begun[-1] if begun else "data"
        changed = list(_changes(saved, json.loads(json.dumps(config.parts(stage))), ""))
        if changed:
            raise CheckpointError(
                f"{run_dir}: its {stage} was made under another configuration: {'; '.join(changed)}. "
                "Use the configuration that it was made with, or another --run_dir"
            )
    temporary = run_dir / ".config.json.part"
    temporary.write_text(config.to_json() + "\n")
    os.replace(temporary, path)


def _changes(saved: object, wanted: object, name: str):
    if isinstance(wanted, dict) and isinstance(saved, dict):
        for key, value in wanted.items():
            yield from _changes(saved.get(key, "nothing"), value, f"{name}.{key}" if name else key)
    elif saved != wanted:
        yield f"{name}: was {saved}, now {wanted}"
