"""A memory folder in the terminal: what it holds, what fits a question, what is to be forgotten, all of it as JSON.

    embodied-mem memory show memory/ann                            # --module notes, --all: past entries too
    embodied-mem memory search memory/ann "where is the mug"
    embodied-mem memory forget memory/ann --object "mug 1"         # from every file
    embodied-mem memory export memory/ann > ann.jsonl
    embodied-mem memory import postgresql://host/memory < ann.jsonl
    embodied-mem memory replay memory/ann --to 120 --hash          # SHA-256 of the state after event 120

The scope is read from the folder, or from what is imported; where --user, --robot or --environment is given, another
one is refused. On a server they name the scope. `show`, `search`, `export` and `replay` change nothing and may run
beside the program that writes.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from typing import TextIO

from embodied_mem.errors import DataNotFoundError
from embodied_mem.memory.export import exported_scope
from embodied_mem.memory.folder_events import folder_scope, is_store_folder
from embodied_mem.memory.graph import Scope
from embodied_mem.memory.lifelong import SERVER_ADDRESSES, LifelongMemory
from embodied_mem.memory.record import Record


def line_of(entry: Record) -> str:
    """Format an entry as one line: id, times, text."""
    ended = "" if entry.ended is None else f"   (until {entry.ended})"
    return f"{entry.id:14} {entry.valid_from:>6}  {entry.text}{ended}"


def main(
    arguments: Sequence[str] | None = None, prog: str = "embodied-mem memory", output: TextIO | None = None
) -> int:
    """Run the command and return the exit status.

    Raises:
        DataNotFoundError: there is no such folder, or no memory in it.
        StorageError, InvalidInputError: as `LifelongMemory.open` and `forget`.
    """
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name, about in (
        ("show", "entries, oldest first"),
        ("search", "what fits a question, by relevance"),
        ("forget", "removes an object, a user or an episode from every module and file"),
        ("export", "all as JSON lines"),
        ("import", "makes an empty memory of what export wrote, from the standard input"),
        ("replay", "entries at an earlier moment, or a hash of all"),
    ):
        one = actions.add_parser(name, help=about, description=about)
        one.add_argument("directory", help="the memory's folder, or the address of a server")
        for field in ("user", "robot", "environment"):
            one.add_argument(f"--{field}", help="of its scope; default: what the folder says")
        if name == "show":
            one.add_argument("--module", help="of this memory alone: spatial, temporal, notes, profile, ...")
            one.add_argument("--all", action="store_true", help="what is no longer so, too")
        if name == "search":
            one.add_argument("query", help="a question or words")
            one.add_argument("--budget_tokens", type=int, default=300, help="of the answer; default: 300")
        if name == "replay":
            one.add_argument("--to", type=int, help="number of an event after the snapshot; default: the last one")
            one.add_argument("--hash", action="store_true", help="SHA-256 of the state alone; equal states are equal")
        if name == "forget":
            what = one.add_mutually_exclusive_group(required=True)
            what.add_argument("--object", help='such as "mug 1"')
            what.add_argument("--forget_user", metavar="USER", help="what a user said; of the scope's, the profile too")
            what.add_argument("--episode", type=int, help="its number")
            what.add_argument("--everything", action="store_true", default=None, help="all that the folder holds")
    options = parser.parse_args(None if arguments is None else list(arguments))
    output = output or sys.stdout
    place, fields = options.directory, {name: getattr(options, name) for name in ("user", "robot", "environment")}
    given_fields = {name: value for name, value in fields.items() if value is not None}
    is_server = place.startswith(SERVER_ADDRESSES)
    is_import = options.action == "import"
    text = sys.stdin.read() if is_import else ""
    if not is_import and not is_server and not is_store_folder(place):
        raise DataNotFoundError(f"memory: expected a memory's folder, got {place!r}, which is none")
    if is_import and not given_fields:
        scope = exported_scope(text)
    else:
        scope = Scope(**given_fields) if is_server else folder_scope(place, **given_fields)
    read_only, to = not is_import and options.action != "forget", getattr(options, "to", None)
    if is_import:
        LifelongMemory(scope).import_(text)  # so that a text that cannot be read makes no folder
    with LifelongMemory.open(place, scope, read_only=read_only, to=to) as memory:
        if options.action == "replay" and options.hash:
            print(hashlib.sha256(memory.state()).hexdigest(), file=output)
        elif is_import:
            print(f"{memory.import_(text)} entries", file=output)
        elif options.action in ("show", "replay"):
            of, is_all = getattr(options, "module", None), getattr(options, "all", False)
            entries = [one for one in memory.get_all(of) if is_all or one.ended is None]
            print("\n".join([*map(line_of, entries), f"{len(entries)} entries"]), file=output)
        elif options.action == "search":
            found = memory.retrieve(options.query, options.budget_tokens).render()
            print(found or "nothing that fits", file=output)
        elif options.action == "export":
            output.write(memory.export())
        else:
            removed = memory.forget(
                object=options.object,
                user=options.forget_user,
                episode=options.episode,
                everything=options.everything,
            )
            counts = [f"{name:20} {count:>6} removed" for name, count in removed.items() if count]
            print("\n".join(counts or ["nothing removed"]), file=output)
            for entry in removed.similar:
                print(f"{entry.id:14} looks like it: {entry.text}", file=output)
    return 0
