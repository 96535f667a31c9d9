"""Checkpoints: what is restored equals what was saved, faults leave the previous one valid, mismatches are named."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.parallel.checkpoints import Checkpoints


class _Pair(NamedTuple):
    first: object
    second: object


def _state(seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    return {
        "params": {"w": jnp.asarray(rng.normal(size=(4, 3)), jnp.float32), "b": jnp.ones(3, jnp.bfloat16)},
        "optimizer": _Pair(jnp.int32(7), (jnp.zeros((2, 2)),)),
        "key": jax.random.key(seed),
        "keys": jax.random.split(jax.random.key(seed, impl="rbg"), 3),
        "order": rng.permutation(10),
    }


def _save(directory, step, arrays, metadata=None, **options) -> None:
    checkpoints = Checkpoints(directory, **options)
    checkpoints.save(step, arrays, metadata)
    checkpoints.wait()


def _abstract(tree):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def _assert_same(actual, expected) -> None:
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected)):
        assert a.dtype == b.dtype
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("make_like", [_abstract, lambda tree: _state(seed=5)], ids=["abstract", "concrete"])
def test_restored_equals_saved(tmp_path, make_like):
    state, metadata = _state(), {"position": 17, "rates": [0.1, 1e-7]}
    _save(tmp_path / "c", 3, state, metadata)
    step, arrays, read = Checkpoints(tmp_path / "c").restore(like=make_like(state))
    assert (step, read) == (3, metadata)
    _assert_same(arrays, state)
    # The restored keys draw what the saved ones would have drawn.
    assert jax.random.normal(arrays["key"]) == jax.random.normal(state["key"])
    assert jax.random.normal(arrays["keys"][2]) == jax.random.normal(state["keys"][2])


def test_newest_are_kept_and_old_steps_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path / "c", max_to_keep=2)
    assert checkpoints.latest() is None
    assert not (tmp_path / "c").exists()
    for step in (1, 5, 9):
        checkpoints.save(step, {"x": jnp.full(2, step)})
    assert checkpoints.steps() == [5, 9]
    assert checkpoints.restore(5, like={"x": jnp.zeros(2, jnp.int32)}).arrays["x"][0] == 5
    checkpoints.wait()
    with pytest.raises(CheckpointError, match=r"cannot save step 9, the newest checkpoint is of step 9"):
        checkpoints.save(9, {"x": jnp.zeros(2)})
    with pytest.raises(CheckpointError, match=r"no checkpoint of step 1 here; steps on disk: \[5, 9\]"):
        checkpoints.restore(1, like={"x": jnp.zeros(2)})
    with pytest.raises(CheckpointError, match="no checkpoint here"):
        Checkpoints(tmp_path / "empty").restore(like={})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["params"].pop("w"), r"params\.w is only in the checkpoint"),
        (lambda s: s["params"].update(v=jnp.ones(1)), r"params\.v is not in the checkpoint"),
        (lambda s: s["params"].update(w=jnp.ones((3, 4))), r"params\.w: checkpoint has \[\[4, 3\], 'float32'\]"),
        (lambda s: s["params"].update(b=jnp.ones(3)), r"params\.b: checkpoint has \[\[3\], 'bfloat16'\]"),
        (lambda s: s.update(key=jax.random.key(0, impl="rbg")), r"key: .*threefry2x32.*this run has .*rbg"),
        (lambda s: s.update(key=jax.random.key_data(s["key"])), r"key: .*threefry2x32.*this run has .*uint32"),
    ],
    ids=["missing", "added", "shape", "dtype", "key_impl", "key_as_data"],
)
def test_another_state_is_refused_by_name(tmp_path, change, message):
    _save(tmp_path, 0, _state())
    like = _state()
    change(like)
    with pytest.raises(CheckpointError, match=message):
        Checkpoints(tmp_path).restore(like=like)


def test_another_configuration_is_refused_by_name(tmp_path):
    config = {"model": {"width": 64, "layers": (1, 2)}, "rate": 0.1}
    _save(tmp_path, 0, {"x": jnp.ones(1)}, config=config)
    Checkpoints(tmp_path, config=config).restore(like={"x": jnp.ones(1)})
    other = {"model": {"width": 32, "layers": (1, 2)}, "rate": 0.1}
    with pytest.raises(CheckpointError, match=r"model\.width: checkpoint has 64, this run has 32\. Use"):
        Checkpoints(tmp_path, config=other).restore(like={"x": jnp.ones(1)})


@pytest.mark.parametrize(
    ("arrays", "metadata", "message"),
    [
        ({"x": 3}, {}, "leaf 'x' is int, expected an array"),
        ({"a.b": jnp.ones(1), "a": {"b": jnp.ones(1)}}, {}, r"two leaves have the path 'a\.b'"),
        ({"x": jnp.ones(1)}, {"f": object()}, "metadata: expected JSON values"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(tmp_path, arrays, metadata, message):
    with pytest.raises(InvalidInputError, match=message):
        Checkpoints(tmp_path / "c").save(0, arrays, metadata)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_damage_is_reported_and_the_older_step_still_reads(tmp_path, damage):
    checkpoints = Checkpoints(tmp_path)
    like = {"x": jnp.zeros(5000)}
    for step in (1, 2):
        checkpoints.save(step, {"x": jnp.asarray(np.random.default_rng(step).normal(size=5000), jnp.float32)})
    checkpoints.wait()
    largest = max((p for p in (tmp_path / "2").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    content = bytearray(largest.read_bytes())
    assert len(content) > 10_000  # it is the file of the array
    content[len(content) // 2] ^= 0xFF
    largest.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    with pytest.raises(CheckpointError, match=r"step 2: damaged, .*delete .*2 to continue from an older step"):
        Checkpoints(tmp_path).restore(like=like)
    assert Checkpoints(tmp_path).restore(1, like=like).step == 1


def test_a_record_with_any_bit_flipped_is_damaged(tmp_path):
    """The record is JSON: a flip may leave it readable, with a key or a value of another name."""
    checkpoints = Checkpoints(tmp_path, config={"fingerprint": "abc"})
    state = {"x": jnp.arange(3.0)}
    checkpoints.save(1, state, {"position": 17})
    checkpoints.wait()
    path = tmp_path / "1" / "record" / "metadata"
    whole = path.read_bytes()
    names = (b"structure", b"config", b"position", b"float32", b"sums", b"crc32")
    for place in (*map(whole.index, names), 0, len(whole) - 1):
        content = bytearray(whole)
        content[place] ^= 1
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=f"{re.escape(str(tmp_path))} step 1: (damaged|holds another)"):
            Checkpoints(tmp_path, config={"fingerprint": "abc"}).restore(like=state)


_WRITER = """
import sys
import numpy as np
from embodied_mem.parallel.checkpoints import Checkpoints
checkpoints = Checkpoints(sys.argv[1])
step = checkpoints.latest() or 0
while True:
    step += 1
    arrays = {f"layer{i}": np.full((64, 1000), step * 100 + i, np.float32) for i in range(8)}
    print("begin", step, flush=True)
    checkpoints.save(step, arrays, {"step": step})
    checkpoints.wait()
    print("saved", step, flush=True)
"""


def test_kill_while_writing_leaves_a_valid_checkpoint(tmp_path):
    """Kills a writer inside a write, three times in a row; each restart continues from what is valid."""
    rng, landed = random.Random(0), 0
    like = {f"layer{i}": np.zeros((64, 1000), np.float32) for i in range(8)}
    acknowledged = 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=os.environ.copy()
        )
        target = acknowledged + rng.randint(1, 3)
        for line in process.stdout:
            if line.split() == ["begin", str(target)]:
                break
        deadline = time.monotonic() + 20
        while not any(tmp_path.glob("*tmp*")) and time.monotonic() < deadline:
            pass  # the write has not reached the disk yet
        time.sleep(rng.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split("\n")
        assert process.returncode == -signal.SIGKILL
        unfinished = list(tmp_path.glob("*tmp*"))
        landed += bool(unfinished)
        acknowledged = max([target - 1, *(int(line.split()[1]) for line in rest if line.startswith("saved"))])
        begun = max([target, *(int(line.split()[1]) for line in rest if line.startswith("begin"))])

        latest = Checkpoints(tmp_path).latest()
        if latest is None:
            assert acknowledged == 0
            continue
        assert acknowledged <= latest <= begun
        step, arrays, metadata = Checkpoints(tmp_path).restore(like=like)
        assert metadata == {"step": step}
        for i in range(8):
            np.testing.assert_array_equal(arrays[f"layer{i}"], step * 100 + i)
        assert list(tmp_path.glob("*tmp*")) == unfinished, "a reader must not clean up beside a writer"
        acknowledged = latest
    assert landed >= 2, f"only {landed} of 3 kills hit a write in progress; this test has shown nothing"
    _save(tmp_path, acknowledged + 100, {"x": np.zeros(1)})
    assert not list(tmp_path.glob("*tmp*")), "the next writer removes what the killed one left"


def test_import_is_lazy():
    code = "import sys, embodied_mem.parallel.checkpoints; assert not {'jax', 'orbax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_saved_may_be_donated_and_changed_at_once(tmp_path):
    """The next step is given the saved arrays to use up while they are written; 40 MB take longer than that."""
    checkpoints = Checkpoints(tmp_path)
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x, order = jnp.arange(1e7, dtype=jnp.float32), np.arange(5)
    for number in (1, 2, 3):
        checkpoints.save(number, {"x": x, "order": order})
        x, order[:] = step(x), -1
        jax.block_until_ready(x)
        got = checkpoints.restore(number, like={"x": jnp.zeros(10**7), "order": np.zeros(5, int)}).arrays
        np.testing.assert_array_equal(got["x"][:3], np.arange(3) + number - 1)
        np.testing.assert_array_equal(got["order"], np.arange(5))
        order[:] = np.arange(5)


def test_a_step_goes_on_while_its_checkpoint_is_written(tmp_path, monkeypatch):
    """The write is held up: `save` returns all the same, and `wait` does not."""
    import threading

    import orbax.checkpoint as ocp

    go_on, began = threading.Event(), threading.Event()
    written = ocp.type_handlers.ArrayHandler.serialize

    async def held_up(self, *arguments, **keywords):
        began.set()
        return await written(self, *arguments, **keywords)

    monkeypatch.setattr(ocp.type_handlers.ArrayHandler, "serialize", held_up)
    finalize = ocp.StandardCheckpointHandler.finalize

    def late(self, directory):
        go_on.wait(30)
        return finalize(self, directory)

    monkeypatch.setattr(ocp.StandardCheckpointHandler, "finalize", late)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"x": jnp.ones(3)})
    assert began.is_set()
    assert Checkpoints(tmp_path).steps() == [], "on disk before it was allowed to be"
    go_on.set()
    checkpoints.wait()
    assert Checkpoints(tmp_path).steps() == [1]


def test_sums_of_bits_see_every_flip_and_no_split():
    from embodied_mem.parallel.checkpoints import _bit_sums

    random = np.random.default_rng(0)
    for dtype in (np.float32, np.int8, np.uint16, np.int64, bool, jnp.bfloat16):
        array = (random.normal(size=(3, 5, 2)) * 10).astype(dtype)
        expected = _bit_sums({"x": array})["x"]
        if dtype is not np.int64:  # jax would narrow it
            assert _bit_sums({"x": jnp.asarray(array)})["x"] == expected
        for place in range(array.nbytes * 8):
            flipped = np.frombuffer(array.tobytes(), np.uint8).copy()
            flipped[place // 8] ^= 1 << place % 8
            assert _bit_sums({"x": flipped.view(array.dtype).reshape(array.shape)})["x"] != expected
