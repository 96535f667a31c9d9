"""Options of the commands that serve a world."""

from __future__ import annotations

import argparse
import json
from typing import Any


def json_object(text: str) -> dict[str, Any]:
    """Read a JSON object of options without the number of envs."""
    options = json.loads(text)
    if not isinstance(options, dict) or "num_envs" in options:
        raise argparse.ArgumentTypeError(f"expected a JSON object of the world's options, without num_envs; got {text}")
    return options


def world_parser(prog: str, description: str | None, port: int) -> argparse.ArgumentParser:
    """Make a parser of a world and where it is served."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("world", help="its name, such as alfworld")
    parser.add_argument("--options", type=json_object, default={}, help="of the world's class, as a JSON object")
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine alone")
    parser.add_argument("--port", type=int, default=port, help=f"default: {port}")
    return parser
