"""Input made from real seeds by edits: for the native readers under sanitizers, and for those written in Python.

The native readers are asked by the program `mutate` (csrc/attacks), which is built under build/attacks the first time.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import Experiences, LifelongMemory

from . import ROOT, Counts
from .flips import QUESTIONS, SEEDS, bank_file, gguf_file, read_gguf, recording, refused, replay

TRIES = 60
NATIVE_READERS = ("json", "sexpr", "problem", "game", "eb_alfred", "eb_habitat", "memento", "graph", "vectors")
NATIVE_TRIES = {"game": 700, "eb_alfred": 1500}
"""Inputs of one case, where they are fewer than 3,000: so many take a second or two."""
BUILD = ROOT / "build" / "attacks"


def build() -> pathlib.Path:
    """Build `mutate` with AddressSanitizer and UBSan unless newer than its sources."""
    target = BUILD / "mutate"
    options = ["-DEMBODIED_MEM_BINDINGS=OFF", "-DEMBODIED_MEM_ATTACKS=ON", "-DEMBODIED_MEM_SANITIZE=ON"]
    for command in (
        ["cmake", "-S", str(ROOT), "-B", str(BUILD), *options],
        ["cmake", "--build", str(BUILD), "--target", "mutate", "--parallel", str(os.cpu_count() or 1)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {(done.stdout + done.stderr)[-2000:]}")
    return target


@functools.cache
def _seeds() -> pathlib.Path:
    """Return the seeds, and with them a whole game.

    The package alfworld brings its domain and grammar.
    """
    from embodied_mem.worlds.alfworld.generator import generate, write

    folder = pathlib.Path(tempfile.mkdtemp(prefix="seeds-"))
    shutil.copytree(SEEDS, folder, dirs_exist_ok=True)
    (game,) = write(generate(1, 0, 4), folder)
    shutil.copy(game, folder / "game.tw-pddl")
    return folder


def mutate_native(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return hundreds to thousands of inputs for one native reader."""
    reader, seed = rng.choice(NATIVE_READERS), rng.randrange(1 << 32)
    count = NATIVE_TRIES.get(reader, 3000)
    state = folder / "state"
    command = [str(BUILD / "mutate"), reader, str(_seeds()), "0", str(count), str(seed)]
    environment = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run([*command, str(state)], capture_output=True, text=True, timeout=150, env=environment)
    if done.returncode != 0:
        (number,) = struct.unpack("<Q", state.read_bytes())
        (folder / "command.txt").write_text(f"mutate {reader} SEEDS {number} 1 {seed}\n")
        (folder / "output.txt").write_text(done.stderr)
        raise AssertionError(f"mutate {reader} SEEDS {number} 1 {seed}: {done.stderr.strip()[:400]}")
    _, num_read, _, num_refused = done.stdout.split()
    return Counts(int(num_read) + int(num_refused), int(num_refused))


def mutated(rng: random.Random, data: bytes, tokens: tuple[bytes, ...]) -> bytes:
    """Return other bytes by one to four edits.

    The edits are flips, deletions, copies from elsewhere, tokens, cuts.
    """
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[at : at + rng.randrange(1, 40)]
        elif kind == 2:
            source = rng.randrange(len(changed) + 1)
            changed[at:at] = changed[source : source + rng.randrange(1, 60)]
        elif kind == 3:
            changed[at:at] = rng.choice(tokens)
        elif kind in (4, 5):
            token = rng.choice(tokens)
            changed[at : at + len(token)] = token
        elif rng.randrange(6) == 0:
            del changed[at:]
    return bytes(changed)


_WORDS = (
    b'{ } [ ] " , : null true -1 1e999 1e400 NaN Infinity 18446744073709551616 "\\ud800" \\u0000 \\ "n":0 {} [] "" '
    b"\xff \xc0\x80 \n"
)
_JSON = (*_WORDS.split(b" "), b"[" * 5000, b"9" * 5000, b'{"a":' * 2000)
_BYTES = (
    b"\0" * 4, b"\0" * 8, b"\xff" * 4, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\x09\0\0\0", b"\x08\0\0\0",
    b"\0\0\0\0\0\0\0\x80", b"\0\0\xc0\x7f", b"\x01\0\0\0\0\0\0\0",
)  # fmt: skip


def _read_mutated(path: pathlib.Path, make: Callable[[], bytes], read: Callable[[], object]) -> Counts:
    """Read many files that `make` gives."""
    landed = 0
    for _ in range(TRIES):
        path.write_bytes(make())
        landed += refused(read)[0]
    return Counts(TRIES, landed)


def mutate_gguf(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Heads of GGUF files."""
    path, data = folder / "model.gguf", gguf_file()
    head = data.index(b"<s>") + 2000
    return _read_mutated(path, lambda: mutated(rng, data[:head], _BYTES) + data[head:], lambda: read_gguf(path))


def mutate_recording(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Recorded answers."""
    path = folder / "calls.jsonl"
    read = lambda: [replay(path, question) for question in QUESTIONS]  # noqa: E731
    return _read_mutated(path, lambda: mutated(rng, recording(), _JSON), read)


def mutate_bank(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Read mutated memory banks with a checksum that holds.

    So what is behind the checksum is asked.
    """
    path = folder / "bank.jsonl"
    head, _, body = bank_file("bank.jsonl").partition(b"\n")

    def make() -> bytes:
        other = mutated(rng, body, _JSON)
        described = json.loads(head) | {"bytes": len(other), "sha256": hashlib.sha256(other).hexdigest()}
        return json.dumps(described | {"records": other.count(b"\n")}).encode() + b"\n" + other

    return _read_mutated(path, make, lambda: Experiences.load(path).retrieve("put a mug in desk."))


@functools.cache
def _state() -> bytes:
    memory = LifelongMemory()
    memory.tell("I like my tea in the blue mug.")
    memory.begin_task("task 0", "put a mug in desk.", "You see a desk 1, and a shelf 1.")
    memory.observe("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a mug 1.")
    memory.end_task(True)
    memory.begin_task("task 1", "put an apple in desk.", "You see a desk 1, and a shelf 1.")
    return memory.state()


def mutate_state(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Restore mutated states of a memory of five modules.

    A state is refused, or gives a memory that can be used.
    """
    path = folder / "state"

    def read() -> None:
        memory = LifelongMemory()
        memory.restore(path.read_bytes())
        try:
            memory.retrieve("where is the mug?", 200).render()
            memory.tell("I like soup.")
        except EmbodiedMemError as error:
            raise AssertionError(f"a memory that was restored cannot be used: {error}") from error

    return _read_mutated(path, lambda: mutated(rng, _state(), _JSON if rng.random() < 0.7 else _BYTES), read)


def mutate_answer(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Read mutated answers of a chat model.

    They are read in time linear in their length, or refused.
    """
    from embodied_mem.language.json_answers import read_json

    seed = b'```json\n{"place": "fridge 1", "why": ["cold", 3, null]}\n```'
    worst = [text * 5000 for text in ("```", "```json\n", "\\\\")] + [text * 20_000 for text in '`{"']
    worst.append("```json" + "\n" * 5000)
    schema = {"type": "object", "properties": {"place": {"type": "string"}}}
    landed = 0
    for number in range(TRIES):
        text = mutated(rng, seed, _JSON).decode("utf-8", "surrogateescape")
        if number % 10 == 0:
            text = rng.choice(worst) + rng.choice([text, "x", ""])
        (folder / "answer").write_text(text, "utf-8", "surrogateescape")
        began = time.process_time()
        try:
            landed += read_json(text, schema)[0] is None
        except EmbodiedMemError:
            landed += 1
        assert time.process_time() - began < 5, f"{time.process_time() - began:.0f} s for {len(text)} characters"
    return Counts(TRIES, landed)
