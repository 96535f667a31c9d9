"""Official pickles: every episode at hand survives the way there and back, and nothing in a pickle is ever run."""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
import random

import numpy as np
import pytest
from eb_habitat_home import official_pickle
from mutations import mutated

from embodied_mem.envs.data_files import read_bytes
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.eb_habitat.conversion import episode_pickle
from embodied_mem.worlds.eb_habitat.conversion.episode_pickle import load_pickle
from embodied_mem.worlds.eb_habitat.data import load_records, load_tasks

CONVERTED = ("id", "index", "scene", "scene_id", "instruction", "initial_articulated", "goal", "objects")
NUM_MUTATED = 3000


@pytest.mark.parametrize("subset", ["base", "common_sense", "long_horizon", "train_validation"])
def test_a_pickle_of_the_episodes_equals_their_json(eb_habitat_data, tmp_path, subset):
    records = load_records(subset, eb_habitat_data)
    domain = read_bytes(eb_habitat_data / "domain.json.xz")
    (tmp_path / f"{subset}.pickle").write_bytes(official_pickle(records, json.loads(domain)["asset_to_category"]))
    with pytest.raises(DataNotFoundError, match=r"expected domain\.json"):
        load_records(subset, tmp_path)
    (tmp_path / "domain.json").write_bytes(domain)
    for mine, theirs in zip(load_records(subset, tmp_path), records, strict=True):
        assert {key: mine[key] for key in CONVERTED} == {key: theirs[key] for key in CONVERTED}
        assert [sorted(x) for x in mine["subgoals_symbolic"]] == [sorted(x) for x in theirs["subgoals_symbolic"]]
    for mine, theirs in zip(load_tasks(subset, tmp_path), load_tasks(subset, eb_habitat_data), strict=True):
        assert (mine.name, mine.task, mine.goal) == (theirs.name, theirs.task, theirs.goal)
        assert [sorted(subgoal) for subgoal in mine.subgoals] == [sorted(subgoal) for subgoal in theirs.subgoals]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_of_numbers_come_back_equal(protocol):
    arrays = [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(6, dtype="i4").reshape(2, 3)),
        np.array([True, False]),
        np.array(3.5, dtype=">f4"),
        np.zeros((0, 4)),
    ]
    value = {"a": arrays, "n": [np.float32(2.5), np.int64(-3), 10**20, None, "ü", (1, {2: 3})], "same": arrays[0]}
    loaded = load_pickle(pickle.dumps(value, protocol), "arrays")
    for mine, theirs in zip(loaded["a"], pickle.loads(pickle.dumps(arrays, protocol)), strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert (mine == theirs).all()
    assert loaded["n"] == value["n"]
    assert (loaded["same"] == arrays[0]).all()


class Hostile:
    """Runs a command on ordinary unpickling."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_hostile_pickle_is_refused_and_nothing_runs(tmp_path, protocol):
    mark = tmp_path / "mark"
    hostile = pickle.dumps({"all_eps": [Hostile(os.mkdir, str(mark))]}, protocol)
    pickle.loads(hostile)
    assert mark.is_dir(), "the pickle is not hostile"
    mark.rmdir()
    with pytest.raises(GameFileError, match=r"bad\.pickle: \w+\.mkdir is not admitted; an episode file holds"):
        load_pickle(hostile, "bad.pickle")
    assert not mark.exists()
    for function, arguments in (
        (eval, ("1",)),
        (getattr, (str, "upper")),
        (np.load, ("x",)),
        (collections.deque, ((),)),
    ):
        with pytest.raises(GameFileError, match="is not admitted"):
            load_pickle(pickle.dumps(Hostile(function, *arguments), protocol), "bad.pickle")


def _cyclic(key, width):
    value = {"expr_type": "AND"}
    value[key] = [value] * width
    return value


def _wide():
    value = [0]
    for _ in range(60):
        value = [value, value]
    return value


def test_other_pickles_are_refused_with_the_reason(monkeypatch):
    def refusal(content):
        with pytest.raises(GameFileError) as caught:
            load_pickle(content, "bad")
        assert str(caught.value).startswith("bad: ")
        return str(caught.value)

    assert "not admitted" in refusal(b"\x80\x04N)\x81.")  # NEWOBJ
    for damaged in (b"", b"\xff", b"\x80\x04]", b"\x80\x05\x96" + b"\xff" * 8 + b"."):  # the last: 2**64 bytes
        refusal(damaged)
    assert "bytes after the end" in refusal(pickle.dumps([], 2) + b".")
    assert load_pickle(pickle.dumps(_wide(), 4), "shared lists")  # 2**60 entries if each were read as often as named
    shared = 0
    for _ in range(60):
        shared = (shared, shared)
    for protocol in (0, 2, 4):  # hashing it would take 2**60 steps, and so would its repr
        for value in ({"a": [shared]}, [shared]):
            assert load_pickle(pickle.dumps(value, protocol), "shared tuples")
    assert "a key of type tuple" in refusal(b"\x80\x02}" + pickle.dumps(shared, 2)[2:-1] + b"K\x01s.")
    assert "a key of type tuple" in refusal(b"\x80\x02}(" + pickle.dumps(shared, 2)[2:-1] + b"K\x01u.")
    assert "a key of type tuple" in refusal(b"\x80\x04\x8f(" + pickle.dumps(shared, 2)[2:-1] + b"\x90.")
    assert "arrays of list are not admitted" in refusal(b"cnumpy\ndtype\n(" + pickle.dumps(_wide(), 2)[2:-1] + b"tR.")
    assert load_pickle(b"\x80\x02]r\xff\xff\xff\xff.", "a high number in the memo") == []
    assert "only of numbers" in refusal(pickle.dumps(np.array([{}]), 4))
    assert "only of numbers" in refusal(pickle.dumps(np.zeros(2, [("a", "f8")]), 4))
    good = pickle.dumps(np.zeros((2, 2)), 2)
    assert "with 32 bytes" in refusal(good.replace(b"K\x02K\x02\x86", b"K\x02K\x09\x86"))
    assert "a state for function is not admitted" in refusal(b"cnumpy\ndtype\n}b.")
    stream = io.BytesIO()
    persistent = pickle.Pickler(stream)
    persistent.persistent_id = lambda value: "id"
    persistent.dump([1])
    assert "BINPERSID is not admitted" in refusal(stream.getvalue())
    monkeypatch.setattr(episode_pickle, "_MAX_OPCODES", 1000)
    assert "more than 1000" in refusal(b"\x80\x02" + b"}" * 1000 + b".")


def test_mutated_pickles_are_loaded_or_refused():
    rng = random.Random(2)
    original = pickle.dumps({"names": {0: "a", 1: "b"}, "arrays": [np.eye(3)] * 2, "texts": ["x(y)", ("z",)]}, 4)
    loaded = refused = 0
    for i in range(NUM_MUTATED):
        try:
            load_pickle(mutated(original, rng, longest=8), f"mutated {i}")
            loaded += 1
        except GameFileError as error:
            refused += str(error).startswith(f"mutated {i}: ")
    assert loaded > NUM_MUTATED / 50
    assert refused > NUM_MUTATED / 4
    assert loaded + refused == NUM_MUTATED


def test_an_entry_of_another_form_is_named(eb_habitat_data, tmp_path):
    records = load_records("base", eb_habitat_data)[:2]
    domain = json.loads(read_bytes(eb_habitat_data / "domain.json.xz"))
    (tmp_path / "domain.json").write_text(json.dumps(domain))
    good = official_pickle(records, domain["asset_to_category"])
    for changes, message in (
        ({"subgoals": ["on_top"]}, r"all_eps\[1\]: expected predicate\(arguments\)"),
        ({"ao_states": {0: {2: 1.0}}}, r"all_eps\[1\]: .*expected all joints closed"),
        ({"start_preds": ["warm(x)"]}, r"start_preds: expected doors and drawers, got warm"),
        ({"instruction": b"x"}, r"all_eps\[1\]: "),
        ({"goal_preds": None}, r"all_eps\[1\]: TypeError"),
        ({"goal_preds": _cyclic("sub_exprs", 1)}, r"all_eps\[1\]: a goal nested deeper than 64"),
        ({"goal_preds": _cyclic("sub_exprs", 3)}, r"all_eps\[1\]: a goal nested deeper than 64"),
        ({"rigid_objs": np.zeros((1, 2), int)}, r"all_eps\[1\]: "),
    ):
        content = pickle.loads(good)
        content["all_eps"][1] |= changes
        (tmp_path / "base.pickle").write_bytes(pickle.dumps(content))
        with pytest.raises(GameFileError, match=rf"base\.pickle: .*{message}"):
            load_records("base", tmp_path)
    (tmp_path / "base.pickle").write_bytes(pickle.dumps([]))
    with pytest.raises(GameFileError, match=r"base\.pickle: the pickle: TypeError"):
        load_records("base", tmp_path)
