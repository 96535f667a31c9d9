"""One HTML file from a trace or from a memory folder: open it in a browser, it needs no network.

    embodied-mem demo --trace demo.jsonl && embodied-mem view demo.jsonl             # writes demo.html
    embodied-mem evaluate --deliveries compiled --num_tasks 8 --trace compiled.jsonl && embodied-mem view compiled.jsonl
    embodied-mem view memory/ann --out ann.html

A trace is shown step by step (arrow keys; up and down change the episode); `demo.html#2.5` is the fifth step of the
second episode. Of a memory folder there are the graph by rooms with a slider over its times, a bar for as long as each
entry was so, and what an entry said before. The folder is only read.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import math
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.language.images import png
from embodied_mem.memory.folder_events import folder_scope, is_store_folder
from embodied_mem.memory.graph import Scope
from embodied_mem.memory.lifelong import SERVER_ADDRESSES, LifelongMemory
from embodied_mem.memory.record import Record
from embodied_mem.viewer.page import page

MAX_PICTURE_BYTES = 1 << 26
"""Most bytes of all pictures in a page."""


def trace_data(path: pathlib.Path) -> dict[str, Any]:
    """Read what the page shows of a trace.

    Raises InvalidInputError for a line that is no episode.
    """
    episodes = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                episode = json.loads(line)
                if not isinstance(episode["goal"], str) or not isinstance(episode["steps"], list):
                    raise TypeError
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInputError(
                    f"view: {path}, line {number}: expected an episode of --trace, got {line[:60]!r}"
                ) from error
            episodes.append(episode)
    if not episodes:
        raise InvalidInputError(f"view: {path}: expected at least one episode, got none")
    return {"kind": "trace", "episodes": episodes}


def memory_data(memory: LifelongMemory) -> dict[str, Any]:
    """Collect every entry of a memory with its earlier texts."""
    rows, left = [], MAX_PICTURE_BYTES
    for one in memory.get_all():
        row = _row(one) | {"was": _was(memory, one)}
        if urls := [url for image in one.images if len(url := picture_url(image)) <= left and url]:
            row["pictures"] = urls
            left -= sum(map(len, urls))
        rows.append(row)
    return {"kind": "memory", "entries": rows}


def picture_url(image: Mapping[str, Any]) -> str:
    """Return a stored image as a data URL.

    "" if its bytes are nowhere, or are no PNG or JPEG.
    The file of a path counts only while it has the hash that memory keeps.
    """
    data = base64.b64decode(image["data"]) if "data" in image else b""
    shape = image.get("shape", ())
    if len(shape) == 3 and shape[2] == 3 and len(data) == math.prod(shape):  # pixels, not a file
        data = png(np.frombuffer(data, np.uint8).reshape(shape))
    if not data and "path" in image:
        try:
            data = pathlib.Path(image["path"]).read_bytes()
        except (OSError, ValueError):
            return ""
        data = data if hashlib.sha256(data).hexdigest() == image["hash"] else b""
    kind = "png" if data.startswith(b"\x89PNG\r\n\x1a\n") else "jpeg" if data.startswith(b"\xff\xd8\xff") else ""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}" if kind else ""


def _was(memory: LifelongMemory, entry: Record) -> list[dict[str, Any]]:
    return [_row(old) for old in memory.history(entry.id)[:-1]]


def _row(entry: Record) -> dict[str, Any]:
    fact = entry.data.get("nodes")
    return {
        "id": entry.id, "module": entry.module, "text": entry.text, "from": entry.valid_from, "until": entry.ended,
        "trust": entry.trust, "sources": entry.sources, "fact": fact,
        "clock": entry.data.get("clock") if entry.module == "views" else None,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None, prog: str = "embodied-mem view", output: TextIO | None = None) -> int:
    """Run the command and return the exit status.

    Raises:
        DataNotFoundError: there is neither such a file nor such a folder.
        StorageError, InvalidInputError: as `LifelongMemory.open` and `trace_data`.
    """
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", help="a file of --trace, a memory's folder, or the address of a server")
    parser.add_argument("--out", type=pathlib.Path, help="default: the path's name with .html, in the present folder")
    for field in ("user", "robot", "environment"):
        parser.add_argument(f"--{field}", help="of the memory's scope; default: what the folder says")
    options = parser.parse_args(None if arguments is None else list(arguments))
    path, is_server = pathlib.Path(options.path), options.path.startswith(SERVER_ADDRESSES)
    if is_server or is_store_folder(path):
        fields = {name: getattr(options, name) for name in ("user", "robot", "environment")}
        given = {name: value for name, value in fields.items() if value is not None}
        scope = Scope(**given) if is_server else folder_scope(path, **given)
        with LifelongMemory.open(options.path, scope, read_only=True) as memory:
            data = memory_data(memory)
    elif path.is_file():
        data = trace_data(path)
    else:
        raise DataNotFoundError(f"view: expected a trace or a memory's folder, got {str(path)!r}, which is neither")
    out = options.out or pathlib.Path(f"{path.resolve().stem}.html")
    try:
        out.write_text(page(data, path.resolve().name), "utf-8")
    except OSError as error:
        raise InvalidInputError(f"view: --out: expected a file that can be written, got {error}") from error
    count = len(data.get("episodes") or data.get("entries", ()))
    print(f"{out}: {count} {'episodes' if data['kind'] == 'trace' else 'entries'}", file=output or sys.stdout)
    return 0
