"""The vector index against numpy: answers, ties, filters, removal, files, threads; recall of the approximate kinds."""

from __future__ import annotations

import struct
import threading

import numpy as np
import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError, StorageError
from embodied_mem.memory import VectorIndex
from embodied_mem.memory.vectors import AUTO_LIMIT

KINDS = ("exact", "hnsw")
SURE = {"ef_search": 200}


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def brute_force(ids, rows, queries, k, metric="cosine"):
    """int64[B, k] by scores in double precision, equal ones by id."""
    ids, rows, queries = np.asarray(ids), rows.astype(np.float64), queries.astype(np.float64)
    if metric == "cosine":
        rows, queries = unit(rows), unit(queries)
    scores = queries @ rows.T
    order = np.stack([np.lexsort((ids, -row)) for row in scores])[:, :k]
    return ids[order], np.take_along_axis(scores, order, 1)


def normal(count: int, dim: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)


def clustered(count: int, dim: int, seed: int, num_clusters: int = 50, spread: float = 0.35) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(1234).standard_normal((num_clusters, dim), dtype=np.float32)
    noise = rng.standard_normal((count, dim), dtype=np.float32)
    return centers[rng.integers(num_clusters, size=count)] + spread * noise


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), truth.tolist())]))


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
@pytest.mark.parametrize("dim", [1, 7, 16, 50, 384])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_exact_answers_as_numpy(metric, dim, count):
    rows, queries = normal(count, dim, 1), normal(13, dim, 2)
    ids = np.random.default_rng(3).permutation(10 * count)[:count]
    index = VectorIndex(dim, metric=metric, kind="exact")
    index.add(ids, rows)
    found, scores = index.search(queries, k=10)
    truth, expected = brute_force(ids, rows, queries, 10, metric)
    width = truth.shape[1]
    np.testing.assert_allclose(scores[:, :width], expected, rtol=2e-5, atol=2e-5)
    assert (found[:, width:] == -1).all()
    assert np.isneginf(scores[:, width:]).all()
    differ = found[:, :width] != truth  # only where double precision can tell scores apart that float32 cannot
    assert differ.mean() < 0.01 or dim == 1
    np.testing.assert_array_equal(np.diff(scores[:, :width], axis=1) <= 0, True)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_scores_are_ordered_by_id(kind):
    rows = np.repeat(np.eye(4, dtype=np.float32), 25, axis=0)  # whole numbers: scores are exact, ties are ties
    ids = np.random.default_rng(0).permutation(100)
    index = VectorIndex(4, metric="inner_product", kind=kind)
    index.add(ids, rows)
    queries = np.array([[3, 2, 1, 0], [0, 0, 1, 0], [1, 1, 1, 1]], np.float32)
    found, scores = index.search(queries, k=40, **SURE)
    truth, expected = brute_force(ids, rows, queries, 40, "inner_product")
    np.testing.assert_array_equal(scores, expected)
    if kind != "hnsw":
        np.testing.assert_array_equal(found, truth)
        return
    # Built by several threads, it may not reach one of so many equal rows; what it finds is in order all the same.
    order = np.lexsort((found, -scores), axis=1)
    np.testing.assert_array_equal(order, np.broadcast_to(np.arange(40), order.shape))
    assert recall(found, truth) > 0.9


def test_answers_are_the_same_in_any_batch_and_with_any_number_of_threads():
    rows, queries = normal(3000, 384, 4), normal(40, 384, 5)
    index = VectorIndex(384, kind="exact")
    index.add(np.arange(3000), rows)
    found, scores = index.search(queries, k=20, num_threads=1)
    for num_threads in (2, 5):
        again, scores_again = index.search(queries, k=20, num_threads=num_threads)
        np.testing.assert_array_equal(found, again)
        np.testing.assert_array_equal(scores, scores_again)
    for query, row, row_scores in zip(queries, found, scores):
        single, single_scores = index.search(query, k=20)
        np.testing.assert_array_equal(single, row)
        np.testing.assert_array_equal(single_scores, row_scores)


@pytest.mark.parametrize("kind", KINDS)
def test_changes_are_followed(kind):
    """Rounds of adding, replacing and removing; a dict of rows is the truth."""
    rng, truth = np.random.default_rng(6), {}
    index = VectorIndex(24, kind=kind, ef_construction=100)
    for round_ in range(8):
        count = int(rng.integers(1, 200))
        ids, rows = rng.permutation(500)[:count], normal(count, 24, 50 + round_)
        index.add(ids, rows)
        truth.update(zip(ids.tolist(), rows))
        removed = [i for i in truth if rng.random() < 0.3]
        index.remove(removed)
        truth = {i: row for i, row in truth.items() if i not in removed}
        assert len(index) == len(truth)
        np.testing.assert_array_equal(index.ids, sorted(truth))
        queries, matrix = normal(20, 24, 90 + round_), np.stack(list(truth.values()))
        expected, _ = brute_force(list(truth), matrix, queries, 5)
        found, _ = index.search(queries, k=5, **SURE)
        assert recall(found, expected) >= (1.0 if kind == "exact" else 0.97)
        some = next(iter(truth))
        np.testing.assert_allclose(index.vector(some), unit(truth[some]), atol=1e-6)
        assert some in index
        assert not set(found.ravel().tolist()) & set(removed)
    with pytest.raises(InvalidInputError, match="no vector 501 in the index; nothing was removed"):
        index.remove([next(iter(truth)), 501])
    assert len(index) == len(truth)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9])
def test_filters(kind, share):
    count = 4000
    rows, queries = clustered(count, 32, 7), clustered(30, 32, 8)
    index = VectorIndex(32, kind=kind)
    index.add(np.arange(count), rows)
    mask = np.random.default_rng(9).random(count) < share
    allowed = np.flatnonzero(mask)
    found, _ = index.search(queries, k=10, allowed=mask, **SURE)
    np.testing.assert_array_equal(found, index.search(queries, k=10, allowed=[*allowed, 10**9], **SURE)[0])
    if share == 0:
        assert (found == -1).all()
        return
    assert set(found.ravel().tolist()) <= set(allowed.tolist())
    assert recall(found, brute_force(allowed, rows[mask], queries, 10)[0]) >= (0.999 if kind == "exact" else 0.97)


@pytest.mark.parametrize(("make", "at_least"), [(normal, 0.90), (clustered, 0.95)], ids=["random", "clustered"])
def test_recall_of_the_graph(make, at_least, record_property):
    rows, queries = make(5000, 64, 10), make(100, 64, 11)
    exact, graph = VectorIndex(64, kind="exact"), VectorIndex(64, kind="hnsw")
    for index in (exact, graph):
        index.add(np.arange(5000), rows, num_threads=1)
    truth, _ = exact.search(queries, k=10)
    by_ef = {ef: recall(graph.search(queries, k=10, ef_search=ef)[0], truth) for ef in (10, 64, 256)}
    record_property("recall_at_10", by_ef)
    print(by_ef)
    assert by_ef[10] <= by_ef[64] <= by_ef[256]
    assert by_ef[64] >= at_least
    assert by_ef[256] >= 0.99


def test_removal_costs_little_recall():
    """Two thirds of the vectors go, in steps; the index is compared with one that never held them."""
    rows, queries = clustered(6000, 32, 12), clustered(100, 32, 13)
    index = VectorIndex(32, kind="hnsw")
    index.add(np.arange(6000), rows)
    left = np.arange(6000)
    for step in range(11):
        removed = np.random.default_rng(step).permutation(left)[: len(left) // 10]
        index.remove(removed)
        left = np.setdiff1d(left, removed)
    truth, _ = brute_force(left, rows[left], queries, 10)
    fresh = VectorIndex(32, kind="hnsw")
    fresh.add(left, rows[left])
    after = recall(index.search(queries, k=10, ef_search=64)[0], truth)
    assert after >= recall(fresh.search(queries, k=10, ef_search=64)[0], truth) - 0.03
    assert after >= 0.93


def test_graph_of_one_thread_is_the_same_every_time(tmp_path):
    rows = normal(1500, 16, 14)

    def saved(num_threads: int, name: str) -> bytes:
        index = VectorIndex(16, kind="hnsw")
        index.add(np.arange(1500), rows, num_threads=num_threads)
        index.save(tmp_path / name)
        return (tmp_path / name).read_bytes()

    assert saved(1, "a") == saved(1, "b")
    several = VectorIndex(16, kind="hnsw")
    several.add(np.arange(1500), rows, num_threads=4)
    truth, _ = brute_force(np.arange(1500), rows, rows[:50], 10)
    assert recall(several.search(rows[:50], k=10)[0], truth) >= 0.95


def test_auto_changes_its_kind_at_the_limit():
    rows = normal(AUTO_LIMIT + 1, 4, 15)
    index = VectorIndex(4, connectivity=4, ef_construction=8)
    index.add(np.arange(AUTO_LIMIT), rows[:-1])
    assert index.kind == "exact"
    index.add([AUTO_LIMIT], rows[-1:])
    assert index.kind == "hnsw"
    assert len(index) == AUTO_LIMIT + 1
    assert index.search(rows[-1], k=1)[0][0] == AUTO_LIMIT


def small(kind: str, tmp_path, count: int = 12) -> tuple[VectorIndex, bytes]:
    index = VectorIndex(3, kind=kind, connectivity=2)
    index.add(np.arange(count) * 7, normal(count, 3, 16))
    index.save(tmp_path / "index")
    return index, (tmp_path / "index").read_bytes()


@pytest.mark.parametrize("kind", [*KINDS, "auto"])
def test_a_loaded_index_is_the_one_saved(kind, tmp_path):
    index = VectorIndex(48, metric="inner_product", kind=kind)
    rows, queries = normal(900, 48, 17), normal(10, 48, 18)
    index.add(np.arange(900), rows, num_threads=1)
    index.remove(np.arange(0, 900, 50))
    index.save(tmp_path / "index")
    loaded = VectorIndex.load(tmp_path / "index")
    assert repr(loaded) == repr(index)
    for side in (index, loaded):  # also after the same changes
        side.add(np.arange(2000, 2100), normal(100, 48, 19), num_threads=1)
        side.remove([1, 2, 3])
    for a, b in zip(index.search(queries, k=12), loaded.search(queries, k=12)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(index.ids, loaded.ids)
    loaded.save(tmp_path / "second")
    index.save(tmp_path / "index")
    assert (tmp_path / "index").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_file_is_loaded(kind, tmp_path):
    _, good = small(kind, tmp_path)
    path = tmp_path / "damaged"
    path.write_bytes(good)
    VectorIndex.load(path)
    for i in range(len(good)):
        for damaged in (good[:i], good[:i] + bytes([good[i] ^ 1 << i % 8]) + good[i + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(StorageError, match="cannot be read as a vector index"):
                VectorIndex.load(path)
    path.write_bytes(good[:8] + struct.pack("<I", 9) + good[12:])
    with pytest.raises(StorageError, match="its format is version 9, this release reads 1"):
        VectorIndex.load(path)
    with pytest.raises(DataNotFoundError, match="there is no such file"):
        VectorIndex.load(tmp_path / "nothing")


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_removed_or_replaced_is_in_no_byte_of_the_file(kind, tmp_path):
    rows = normal(100, 8, 20)
    index = VectorIndex(8, metric="inner_product", kind=kind)
    index.add(np.arange(100), rows)
    index.save(tmp_path / "before")
    index.remove([40])
    index.add([41], -rows[41:42])
    assert index.num_removed == (2 if kind == "hnsw" else 0)
    index.save(tmp_path / "after")
    before, after = (tmp_path / "before").read_bytes(), (tmp_path / "after").read_bytes()
    for i in (39, 40, 41):
        assert rows[i].tobytes() in before
        assert (rows[i].tobytes() in after) == (i == 39)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    assert index.num_removed == 0


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_do(kind):
    index = VectorIndex(3, kind=kind)
    index.add([], np.zeros((0, 3)))
    index.remove([])
    found, scores = index.search(np.zeros((0, 3)), 4)
    assert found.shape == scores.shape == (0, 4)
    assert (index.search(np.ones(3), 2)[0] == -1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_readers_beside_a_writer(kind):
    """Answers are whole: in order, of ids that were there; what never changes is found at any time."""
    rows = normal(800, 16, 21)
    index = VectorIndex(16, kind=kind)
    index.add(np.arange(400), rows[:400])
    wrong, stop = [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            found, scores = index.search(rows[:20], k=5)
            if (found[:, 0] != np.arange(20)).any() or (np.diff(scores, axis=1) > 0).any():
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        index.add(np.arange(400, 800), rows[400:])
        index.remove(np.arange(400, 800))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(index) == 400
