"""Damage in every kind of file: it opens as it was, or is refused with an error of the library.

Flipped bits above all, zeroed blocks and cuts as well. A file with checksums must never give another content without
saying so; one without (games, worlds, GGUF) may, but nothing but an `EmbodiedMemError` may leave the reader.
"""

from __future__ import annotations

import functools
import json
import lzma
import pathlib
import random
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import Experiences, KnowledgeGraph, MemoryStore, Triple, VectorIndex
from embodied_mem.types import Episode, Step

from . import Counts
from .notes_module import Notes

SEEDS = pathlib.Path(__file__).parent / "seeds"
TRIES = 40  # damages in one case


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Change bytes: mostly one to three bits, at the same length."""
    changed = bytearray(data)
    kind = rng.randrange(10)
    at = rng.randrange(len(changed))
    if kind == 0:
        del changed[at:]
    elif kind == 1:
        changed[at : at + rng.randrange(1, 64)] = bytes(min(rng.randrange(1, 64), len(changed) - at))
    elif kind == 2:
        changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    else:
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def refused(call: Callable[[], Any]) -> tuple[bool, Any]:
    """Return (whether the library refused the call, what it returned).

    It refuses with an error of its own; anything else is raised.
    """
    try:
        return False, call()
    except EmbodiedMemError:
        return True, None


def flip(
    rng: random.Random,
    path: pathlib.Path,
    data: bytes,
    read: Callable[[], Any],
    *,
    checksums: bool,
    damage: Callable[[random.Random, bytes], bytes] = damaged,
    tries: int = TRIES,
) -> Counts:
    """Damage the file at `path` again and again.

    `read` gives what it holds, comparable.
    """
    path.write_bytes(data)
    expected = read()
    landed = 0
    for _ in range(tries):
        other = damage(rng, data)
        path.write_bytes(other)
        was_refused, found = refused(read)
        landed += other != data
        if checksums and not was_refused:
            assert found == expected, f"other content without a word: {str(found)[:100]} for {str(expected)[:100]}"
    return Counts(tries, landed)


@functools.cache
def store_files(is_closed: bool = True) -> dict[str, bytes]:
    """Make a snapshot and events after it.

    The events are partly in the WAL unless the store is closed.
    """
    folder = pathlib.Path(tempfile.mkdtemp())
    for first, last in ((0, 16), (16, 24)):
        with MemoryStore(folder, {"notes": Notes()}, fsync="never") as store:
            for i in range(first, last):
                store.record("notes", {"user": "ann", "text": f"note {i}"})
                if i == 9:
                    store.snapshot()
            files = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
    if is_closed:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    return files


def _store(folder: pathlib.Path, is_closed: bool) -> pathlib.Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in store_files(is_closed).items():
        (folder / name).write_bytes(data)
    return folder


def _read_store(folder: pathlib.Path, read_only: bool, repair: bool = False) -> tuple[list[str], bool]:
    """Return (the notes, whether opening said that something was wrong)."""
    notes = Notes()
    with MemoryStore(folder, {"notes": notes}, fsync="never", read_only=read_only, repair=repair) as store:
        report = store.report
    return [row[3] for row in notes.rows], bool(report.damage)


def _damaged_store(
    rng: random.Random, folder: pathlib.Path, damage: Callable[[random.Random, pathlib.Path], object], is_closed: bool
) -> Counts:
    """Open stores after `damage`."""
    expected, said = _read_store(_store(folder / "store", is_closed), True)
    assert (len(expected), said) == (24, False)
    for _ in range(TRIES // 2):
        damage(rng, _store(folder / "store", is_closed))
        for read_only in (True, False):
            was_refused, found = refused(lambda read_only=read_only: _read_store(folder / "store", read_only))
            if was_refused:
                continue
            texts, said = found
            assert texts == expected[: len(texts)], f"other notes: {texts}"
            if not read_only:
                again, _ = _read_store(folder / "store", True)
                assert again == texts, f"{len(texts) - len(again)} notes are gone when it is opened again"
            assert said or texts == expected, f"{len(expected) - len(texts)} of the last notes are gone without a word"
        was_refused, found = refused(lambda: _read_store(folder / "store", False, repair=True))
        if not was_refused:
            assert found[0] == expected[: len(found[0])], f"other notes after a repair: {found[0]}"
            assert _read_store(folder / "store", False)[0] == found[0], "what was repaired does not open"
    return Counts(TRIES // 2, TRIES // 2)


def flip_log(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Damage or remove the file of events or its WAL."""
    is_closed = rng.random() < 0.5

    def damage(rng: random.Random, store: pathlib.Path) -> None:
        path = store / ("memory.db" if is_closed or rng.random() < 0.3 else "memory.db-wal")
        data = path.read_bytes()
        if path.suffix == ".db" and rng.randrange(8) == 0:
            path.unlink()
        else:
            # What a killed writer wrote to a WAL that was cut between two frames, nobody misses.
            while len(other := damaged(rng, data)) < len(data) and (len(other) - 32) % 4120 * len(other) == 0:
                pass
            path.write_bytes(other)

    return _damaged_store(rng, folder, damage, is_closed)


def flip_snapshot(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Damage the snapshot of a store, or its lock."""
    name = rng.choice(["*.bin", "*.bin", "LOCK"])

    def damage(rng: random.Random, store: pathlib.Path) -> None:
        (path,) = store.glob(name)
        path.write_bytes(damaged(rng, path.read_bytes()))

    return _damaged_store(rng, folder, damage, True)


def flip_graph(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return the bytes of a knowledge graph."""
    graph = KnowledgeGraph()
    graph.update([Triple(f"thing {i % 7}", "in", f"place {i % 3}", valid_at=i, source=i % 4) for i in range(40)])
    path = folder / "graph"
    read = lambda: KnowledgeGraph.from_bytes(path.read_bytes()).to_bytes()  # noqa: E731
    return flip(rng, path, graph.to_bytes(), read, checksums=True, tries=10 * TRIES)


def made(write: Callable[[pathlib.Path], object]) -> dict[str, bytes]:
    """Return the files that `write` makes in a folder, by path."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@functools.cache
def _index_file(kind: str) -> bytes:
    index = VectorIndex(8, kind=kind)
    index.add(np.arange(60) * 2, np.random.default_rng(1).normal(size=(60, 8)), num_threads=1)
    return made(lambda folder: index.save(folder / "v"))["v"]


def flip_vectors(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return the file of a vector index of each kind."""
    path = folder / "v.idx"

    def read() -> tuple:
        index = VectorIndex.load(path)
        ids, scores = index.search(np.eye(8, dtype=np.float32), 3, num_threads=1)
        return index.kind, index.metric, index.ids.tolist(), ids.tolist(), scores.tolist()

    return flip(rng, path, _index_file(rng.choice(["exact", "hnsw"])), read, checksums=True, tries=5 * TRIES)


def flip_recording(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Recorded answers of a chat model."""
    path, data = folder / "calls.jsonl", recording()

    def read() -> list:
        return [replay(path, question) for question in QUESTIONS]

    return flip(rng, path, data, read, checksums=True)


QUESTIONS = ("where is the apple?", "and the m\u00fcg? \U0001f600", "what now?")


def replay(path: pathlib.Path, question: str) -> Any:
    """Return the recorded answer."""
    from embodied_mem.language import RecordedChatModel

    return RecordedChatModel(None, path, "m").complete([{"role": "user", "content": question}])


@functools.cache
def recording() -> bytes:
    """Return a file of recorded answers."""
    from embodied_mem.language import ChatReply, RecordedChatModel, Usage, UsageMeter

    class Model:
        name, meter = "m", UsageMeter()

        def complete(self, messages: list, **_: Any) -> ChatReply:
            text = f"answer to {messages[-1]['content']}"
            return ChatReply(text, Usage(12, 7), "stop", (text[:5], text[5:]))

    def write(folder: pathlib.Path) -> None:
        model = RecordedChatModel(Model(), folder / "r")
        for question in QUESTIONS:
            model.complete([{"role": "user", "content": question}])

    return made(write)["r"]


@functools.cache
def bank_file(name: str) -> bytes:
    """Return a memory bank.

    A name that ends in .gz gives a packed one.
    """
    bank = Experiences()
    for thing in ("mug", "apple", "vase"):
        steps = (Step("You see a desk 1.", f"take {thing} 1"), Step(f"You hold the {thing} 1.", "put it in desk 1"))
        bank.add(Episode(f"game {thing}", f"put a {thing} in desk.", steps, True, "You win."))
    return made(lambda folder: bank.save(folder / name))[name]


def flip_bank(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return a memory bank, packed and not."""
    path = folder / rng.choice(["bank.jsonl", "bank.jsonl.gz"])

    def read() -> tuple:
        bank = Experiences.load(path)
        return bank.records, bank.context_weight, bank.object_weight

    return flip(rng, path, bank_file(path.name), read, checksums=True)


@functools.cache
def _game() -> bytes:
    """Return a generated game; domain and grammar come with the package alfworld."""
    from embodied_mem.worlds.alfworld.generator import generate, write

    return next(iter(made(lambda folder: write(generate(1, 0, 4), folder)).values()))


def flip_game(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return a game of ALFWorld, played where it is read."""
    from embodied_mem.worlds.alfworld.env import Env, Game

    path = folder / "game.tw-pddl"

    def read() -> None:
        env = Env(Game.load(str(path)))
        env.reset()
        for action in ("look", "inventory", "go to desk 1"):
            env.step(action)

    return flip(rng, path, _game(), read, checksums=False)


def flip_worlds(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Data of EB-ALFRED, EB-Habitat and MEMENTO, packed and not."""
    from embodied_mem.worlds.eb_alfred import env as eb_alfred
    from embodied_mem.worlds.eb_habitat import data as eb_habitat_data
    from embodied_mem.worlds.memento import data as memento_data

    for name in ("eb_alfred_floorplans", "eb_habitat_scenes", "memento_scenes"):
        (folder / name).mkdir()
    shutil.copy(SEEDS / "eb_alfred_floorplans.json", folder / "eb_alfred_floorplans" / "floorplans.json")
    shutil.copy(SEEDS / "eb_habitat_scenes.json", folder / "eb_habitat_scenes" / "scenes.json")
    shutil.copy(SEEDS / "eb_habitat_episodes.json", folder / "eb_habitat_scenes" / "e.json")
    shutil.copy(SEEDS / "memento_scenes.json", folder / "memento_scenes" / "scenes.json")
    shutil.copy(SEEDS / "memento_episodes.json", folder / "memento_scenes" / "e.json")
    captions = {name: {"category": name.lower(), "caption": None} for name in ("Cup", "Book")}
    (folder / "memento_scenes" / "captions.json").write_text(json.dumps(captions))

    def eb_alfred_task() -> Any:
        catalog = eb_alfred.load_catalog(folder / "eb_alfred_floorplans")
        trial = (SEEDS / "eb_alfred_trial.json").read_bytes()
        return eb_alfred.Task.from_text(trial, "trial", catalog, "kitchen", "kitchen")

    def eb_habitat_tasks() -> Any:
        return eb_habitat_data.load_tasks(folder / "eb_habitat_scenes" / "e.json")

    def packed() -> Any:
        return eb_habitat_data.load_tasks(folder / "eb_habitat_scenes" / "e.json.xz")

    def memento_tasks() -> Any:
        return memento_data.load_tasks(folder / "memento_scenes" / "e.json")

    xz = folder / "eb_habitat_scenes" / "e.json.xz"
    path, read = rng.choice(
        [
            (folder / "eb_alfred_floorplans" / "floorplans.json", eb_alfred_task),
            (folder / "eb_habitat_scenes" / "scenes.json", eb_habitat_tasks),
            (folder / "eb_habitat_scenes" / "e.json", eb_habitat_tasks),
            (xz, packed),
            (folder / "memento_scenes" / "scenes.json", memento_tasks),
            (folder / "memento_scenes" / "e.json", memento_tasks),
            (folder / "memento_scenes" / "captions.json", memento_tasks),
        ]
    )
    if path == xz:
        xz.write_bytes(lzma.compress((SEEDS / "eb_habitat_episodes.json").read_bytes()))
    return flip(rng, path, path.read_bytes(), lambda: read() and None, checksums=False)


@functools.cache
def gguf_file() -> bytes:
    """Return a small model as a GGUF file, with a tokenizer."""
    import gguf

    with tempfile.TemporaryDirectory() as folder:
        writer = gguf.GGUFWriter(f"{folder}/g", "llama")
        writer.add_block_count(1)
        writer.add_context_length(64)
        writer.add_embedding_length(32)
        writer.add_feed_forward_length(32)
        writer.add_head_count(2)
        writer.add_head_count_kv(1)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("smollm")
        writer.add_token_list([chr(97 + i) for i in range(20)] + ["ab", "<s>"])
        writer.add_token_types([1] * 21 + [3])
        writer.add_token_merges(["a b"])
        rows = np.random.default_rng(0).normal(size=(22, 32)).astype(np.float32)
        writer.add_tensor("token_embd.weight", rows)
        writer.add_tensor("blk.0.ffn_up.weight", rows.astype(np.float16))
        blocks = gguf.quants.quantize(rows, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor("blk.0.ffn_down.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return pathlib.Path(f"{folder}/g").read_bytes()


def read_gguf(path: pathlib.Path) -> None:
    """Read all of a GGUF file: tensors, configuration and tokenizer."""
    from embodied_mem.language.pretrained import PretrainedTokenizer
    from embodied_mem.models.formats.gguf import GGUFFile, config_from_gguf

    file = GGUFFile(path)
    for tensor in file.tensors.values():
        tensor.read(tuple(slice(0, size) for size in tensor.shape))
    config_from_gguf(file)
    PretrainedTokenizer.from_gguf(file.metadata)


def flip_gguf(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return a GGUF file."""
    path = folder / "model.gguf"
    return flip(rng, path, gguf_file(), lambda: read_gguf(path), checksums=False)
