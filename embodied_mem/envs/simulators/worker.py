"""Runs one of the real simulators in a process and under a Python of its own; `SimulatorProcess` talks to it.

    python worker.py        # stdin: one JSON object per line; stdout: length, JSON object, image

The programs want older Pythons than this package (their authors' environments have 3.9), print what they like, and hold
one graphics context per process. So this file imports nothing of this package, needs Python 3.8 and numpy alone until a
program is opened, and keeps standard output for itself.

Requests: `{"do": "check", "program": path, "options": {...}}`, where the file has a class `PROGRAM`, is answered with
what its `checks` found and starts nothing; `{"do": "open", ...}` with the same; `{"do": "reset", "task": index,
"seed": number}`; `{"do": "step", "action": text}`. An answer is a length (4 bytes, big endian), a JSON object of that
length, and, where its `image` holds a shape, uint8[height, width, 3]. `error` in it is one of missing, data, input,
failed, with `text`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import sys
import traceback
from types import ModuleType
from typing import Any


def module_at(name: str, path: str) -> ModuleType:
    """Return the module of a file, under an importable name."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: expected a file of Python")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = os.path.dirname(os.path.abspath(__file__))  # not on the path: its names are not for programs
tools = module_at("simulator_tools", os.path.join(HERE, "simulator_tools.py"))
module_at("embodiedbench_program", os.path.join(HERE, "embodiedbench_program.py"))


def answer(state: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one request.

    `state` is the program, once it is open.
    """
    try:
        if request["do"] in ("check", "open"):
            kind = module_at("simulator_program", request["program"]).PROGRAM
            if kind.own_folder:
                state["folder"] = tools.OwnFolder()
            checks = kind.checks(**request["options"])
            if request["do"] == "check":
                return {"checks": [check._asdict() for check in checks]}
            warnings = tools.refuse(checks)
            state["program"] = kind(**request["options"])
            return {"goals": state["program"].goals, "warnings": warnings}
        if request["do"] == "reset":
            reply: dict[str, Any] = state["program"].reset(request["task"], request["seed"])
        else:
            reply = state["program"].step(request["action"])
        return reply
    except tools.Refused as error:
        return {"error": error.error, "text": str(error)}
    except Exception:
        return {"error": "failed", "text": traceback.format_exc(limit=-8)}


def main() -> None:
    """Answer requests until standard input ends, then close the program."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the programs print is no answer
    state: dict[str, Any] = {}
    for line in requests:
        reply = answer(state, json.loads(line))
        image = reply.pop("image", None)
        if image is not None:
            reply["image"] = image.shape
        head = json.dumps(reply).encode()
        answers.write(struct.pack(">I", len(head)) + head)
        if image is not None:
            answers.write(image.tobytes())
        answers.flush()
    for part in ("program", "folder"):
        if part in state:
            state[part].close()


if __name__ == "__main__":
    main()
