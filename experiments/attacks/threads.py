"""Many threads on one store, memory, graph, index or set of environments, with invariants checked meanwhile."""

from __future__ import annotations

import pathlib
import random
import threading
from collections.abc import Callable, Sequence

import numpy as np

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import KnowledgeGraph, LifelongMemory, MemoryStore, Triple, VectorIndex

from . import Counts
from .notes_module import Notes

PATIENCE_S = 50


def storm(works: Sequence[Callable[[random.Random], object]], rng: random.Random, rounds: int) -> Counts:
    """Run each work in a thread of its own, `rounds` times.

    All begin at once; what one raises is raised here.
    """
    barrier, problems, refused = threading.Barrier(len(works)), [], [0]

    def run(work: Callable[[random.Random], object], seed: int) -> None:
        own = random.Random(seed)
        barrier.wait()
        for _ in range(rounds):
            try:
                work(own)
            except EmbodiedMemError:
                refused[0] += 1
            except BaseException as error:
                problems.append(error)
                return

    threads = [threading.Thread(target=run, args=(work, rng.randrange(1 << 30)), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "a thread hangs"
    if problems:
        raise problems[0]
    return Counts(len(works) * rounds, len(works) * rounds - refused[0])


def threads_store(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Write, snapshot, forget and read one folder from several threads.

    Each acknowledged event is there once, in order.
    """
    options = {"fsync": rng.choice(["never", "interval", "always"]), "snapshot_bytes": 4000}
    acknowledged: list[list[str]] = [[] for _ in range(4)]

    def write(number: int) -> Callable[[random.Random], object]:
        def work(_: random.Random) -> None:
            text = f"{number} {len(acknowledged[number])}"
            store.record("notes", {"user": f"user {number}", "text": text})
            acknowledged[number].append(text)

        return work

    def read(_: random.Random) -> None:
        notes = Notes()
        with MemoryStore(folder / "s", {"notes": notes}, read_only=True):
            for number in range(4):
                mine = [row[3] for row in notes.rows if row[0] == f"user {number}"]
                assert mine == [f"{number} {i}" for i in range(len(mine))], f"writer {number}'s events: {mine}"

    def forget(own: random.Random) -> None:
        store.forget(user="nobody") if own.random() < 0.5 else store.snapshot()

    with MemoryStore(folder / "s", {"notes": Notes()}, **options) as store:
        counts = storm([*map(write, range(4)), read, read, forget], rng, 25)
    notes = Notes()
    with MemoryStore(folder / "s", {"notes": notes}) as store:
        for number, texts in enumerate(acknowledged):
            assert [row[3] for row in notes.rows if row[0] == f"user {number}"] == texts, f"of writer {number}"
            assert len(texts) == 25
    return counts


def threads_memory(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Use a kept memory from threads that tell, ask and explain.

    They look into its forks, too. Afterwards it opens as it was.
    """
    with LifelongMemory.open(folder / "m", fsync="never") as memory:
        memory.begin_task("t", "put a mug in desk.", "You see a desk 1, and a shelf 1.")
        told = [0]

        def tell(own: random.Random) -> None:
            memory.tell(f"I like the mug number {own.randrange(1000)}.")
            told[0] += 1

        def ask(_: random.Random) -> None:
            memory.retrieve("which mug does ann like?", 300).render()

        def snapshot(_: random.Random) -> None:
            memory.store.snapshot()

        counts = storm([tell, tell, ask, ask, snapshot], rng, 12)
        events, text = memory.store.last_event, memory.retrieve("which mug?", 3000).render()
    with LifelongMemory.open(folder / "m") as memory:
        assert memory.store.last_event == events == 25, f"expected 25 events, got {memory.store.last_event}"
        assert memory.retrieve("which mug?", 3000).render() == text, "it remembers other things when it is opened again"
    return counts


def threads_graph(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Write and read a graph from several threads.

    A snapshot never changes, a thing is in one place at a time.
    """
    from embodied_mem.memory.relations import HOUSEHOLD_RULES

    graph = KnowledgeGraph(rules=HOUSEHOLD_RULES)
    clock = iter(range(1, 1 << 30))

    def write(own: random.Random) -> None:
        graph.update([Triple(f"thing {own.randrange(5)}", "in", f"place {own.randrange(4)}", valid_at=next(clock))])

    def read(_: random.Random) -> None:
        with graph.snapshot() as view:
            first = view.to_bytes("") if hasattr(view, "to_bytes") else view.facts().tolist()
            for number in range(5):
                node = view.find(f"thing {number}")
                if node is not None:
                    places = [f for f in view.facts_of(node, "out") if view.fact(f).invalid_at is None]
                    assert len(places) <= 1, f"thing {number} is in {len(places)} places"
            assert first == (view.to_bytes("") if hasattr(view, "to_bytes") else view.facts().tolist())

    def fork(_: random.Random) -> None:
        other = graph.fork()
        before = other.to_bytes()
        other.update([Triple("only here", "in", "the fork", valid_at=1)])
        assert before != other.to_bytes()
        with graph.snapshot() as view:
            assert view.find("only here") is None, "what a fork learned is in the graph"

    def forget(own: random.Random) -> None:
        with graph.snapshot() as view:
            node = view.find(f"thing {own.randrange(5)}")
        if node is not None:
            graph.forget(nodes=[node])

    counts = storm([write, write, read, read, fork, forget], rng, 40)
    assert KnowledgeGraph.from_bytes(graph.to_bytes()).to_bytes() == graph.to_bytes()
    return counts


def threads_vectors(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Add, remove, search and save vectors from several threads.

    They save to one path. Answers are there, the file is always whole.
    """
    kind = rng.choice(["exact", "hnsw"])
    index = VectorIndex(16, kind=kind)
    rows = np.random.default_rng(rng.randrange(1 << 30)).normal(size=(600, 16)).astype(np.float32)
    index.add(np.arange(300), rows[:300])
    path = folder / "v.idx"
    index.save(path)
    others = [VectorIndex(64, kind="exact") for _ in range(2)]
    for size, other in enumerate(others, 2000):
        other.add(np.arange(size), np.random.default_rng(size).normal(size=(size, 64)))

    def add(own: random.Random) -> None:
        first = own.randrange(300, 590)
        index.add(np.arange(first, first + 10), rows[first : first + 10])

    def remove(own: random.Random) -> None:
        index.remove([own.randrange(300, 600)])

    def search(own: random.Random) -> None:
        number = own.randrange(300)
        ids, scores = index.search(rows[number], 3)
        assert kind == "hnsw" or ids[0] == number, f"the vector {number} itself is not found: {ids}"
        assert np.all(np.diff(scores[ids >= 0]) <= 0), f"scores are not in order: {scores}"

    def save(own: random.Random) -> None:
        own.choice([index, *others]).save(path)

    def load(_: random.Random) -> None:
        try:
            found = VectorIndex.load(path)
        except EmbodiedMemError as error:
            raise AssertionError(f"the file is not whole: {error}") from error
        assert set(range(300)) <= set(found.ids.tolist()), "the file lacks vectors that were always there"

    counts = storm([add, remove, search, save, save, save, load], rng, 12)
    load(rng)
    assert [item.name for item in folder.iterdir()] == ["v.idx"], "files are left behind"
    return counts


def threads_envs(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Step sets of environments from many threads.

    Each set has threads of its own, and says what one alone says.
    """
    from embodied_mem.worlds.alfworld.env import AlfworldVectorEnv, Game

    problem = (pathlib.Path(__file__).parent / "seeds" / "kitchen.pddl").read_text()
    game = Game.from_problem(problem, "cool some apple and put it in countertop.", "kitchen")
    actions = [
        rng.choice(["look", "go to cabinet 1", "go to fridge 1", "open fridge 1", "inventory"]) for _ in range(12)
    ]

    def play(num_threads: int) -> list:
        envs = AlfworldVectorEnv([game], num_envs=8, num_threads=num_threads)
        try:
            seen = [list(envs.reset()[0])]
            for action in actions:
                seen.append(list(envs.step([action] * 8)[0]))
        finally:
            envs.close()
        return seen

    expected = play(1)

    def work(own: random.Random) -> None:
        assert play(own.choice([2, 3, 4])) == expected, "threads say other things than one alone"

    shared = AlfworldVectorEnv([game], num_envs=8, num_threads=3)
    shared.reset()

    def together(own: random.Random) -> None:
        shared.step([own.choice(actions)] * 8) if own.random() < 0.8 else shared.reset()

    counts = storm([work, work, together, together, together], rng, 6)
    shared.close()
    return counts
