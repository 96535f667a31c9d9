"""Order of the samples as a function of (seed, step), and the layout of padded rows by hand."""

import collections
import dataclasses

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.training.config import Config, MemoryConfig, SFTConfig, WorldConfig
from embodied_mem.training.data import Row, batches, pad_rows, reference_ids, spots_of
from embodied_mem.training.sft import weigh_memory
from embodied_mem.training.teachers.episodes import Sample

LENGTHS = np.random.default_rng(3).integers(5, 400, size=103)


def order(**changes):
    arguments = {"lengths": LENGTHS, "batch_size": 8, "seed": 0, "first_step": 0, "num_steps": 40} | changes
    return list(batches(**arguments))


@pytest.mark.parametrize("first", [0, 1, 11, 12, 13, 24, 39, 40])
def test_resumed_order_equals_straight_order(first):
    """12 batches an epoch: 12 and 24 are epoch boundaries."""
    straight, resumed = order(), order(first_step=first)
    assert len(resumed) == 40 - first
    assert all(np.array_equal(a, b) for a, b in zip(straight[first:], resumed))


def test_order_depends_on_the_seed_and_not_on_the_end():
    assert all(np.array_equal(a, b) for a, b in zip(order()[:17], order(num_steps=17), strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(order(), order(seed=1)))
    assert len(order(num_steps=0)) == 0


def test_every_sample_once_an_epoch():
    """96 of 103 samples fill 12 batches of 8; which 7 are left out changes from epoch to epoch."""
    steps = order(num_steps=36)
    epochs = [np.concatenate(steps[i : i + 12]) for i in (0, 12, 24)]
    assert all(len(set(e)) == 96 and set(e) <= set(range(103)) for e in epochs)
    left_out = [frozenset(range(103)) - set(e) for e in epochs]
    assert len(set(left_out)) == 3
    whole = np.concatenate(order(lengths=LENGTHS[:96], num_steps=12))
    assert sorted(whole) == list(range(96))


def test_epochs_say_the_number_of_steps():
    sft = SFTConfig(steps=7, epochs=1.5, batch_size=8)
    assert (sft.of(103).steps, sft.of(3).steps, dataclasses.replace(sft, epochs=0).of(103).steps) == (18, 2, 7)
    with pytest.raises(InvalidInputError, match=r"sft\.epochs: expected 0 but for compiler_sft"):
        Config(world=WorldConfig(num_train=8, num_valid=1), executor_sft=sft)


def test_epochs_differ_and_batches_are_not_sorted():
    steps = order(num_steps=24)
    assert any(not np.array_equal(a, b) for a, b in zip(steps[:12], steps[12:]))
    means = [LENGTHS[s].mean() for s in order(num_steps=12, window=12)]
    assert means != sorted(means)


def test_batches_hold_rows_of_like_length():
    """Within a window of 8 batches rows are sorted, so a batch pads far less than one of random rows."""
    padding = sum((LENGTHS[s].max() - LENGTHS[s]).sum() for s in order(num_steps=12))
    random = np.random.default_rng(0).permutation(103)[:96].reshape(12, 8)
    assert padding < 0.5 * sum((LENGTHS[s].max() - LENGTHS[s]).sum() for s in random)


def test_fewer_samples_than_a_batch():
    (batch,) = order(lengths=[3, 1, 2], num_steps=1)
    assert len(batch) == 8
    assert set(batch) == {0, 1, 2}


def test_layout_of_padded_rows():
    """Prompt 5 6 7, completion 8 9 (9 ends it), suffix 4 4; the last prompt position predicts 8, that of 8 predicts 9.

    learned must not hold position 4, where 9 would predict the suffix, nor position 1, where 6 predicts the prompt.
    """
    batch = pad_rows([Row([5, 6, 7], [8, 9], [4, 4]), Row([5], [9])], pad_id=0, multiple=4)
    t, f = True, False
    np.testing.assert_array_equal(batch.tokens, [[5, 6, 7, 8, 9, 4, 4, 0], [5, 9, 0, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(batch.targets, [[6, 7, 8, 9, 4, 4, 0, 0], [9, 0, 0, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(batch.mask, [[t] * 7 + [f], [t, t] + [f] * 6])
    np.testing.assert_array_equal(batch.learned, [[f, f, t, t, f, f, f, f], [t] + [f] * 7])
    np.testing.assert_array_equal(batch.text, [[f, f, f, t, t, f, f, f], [f, t] + [f] * 6])
    np.testing.assert_array_equal(batch.suffix, [[f] * 5 + [t, t, f], [f] * 8])
    assert batch.tokens.dtype == batch.targets.dtype == np.int32


@pytest.mark.parametrize(
    ("size", "multiple", "length", "width"), [(7, 4, 0, 8), (8, 4, 0, 8), (9, 4, 0, 12), (3, 4, 20, 20)]
)
def test_width_of_padded_rows(size, multiple, length, width):
    assert pad_rows([Row([1] * (size - 1), [2])], 0, multiple, length).tokens.shape == (1, width)


def test_spots_are_the_positions_that_are_learned():
    batch = pad_rows([Row([5, 6, 7], [8, 9], [4, 4]), Row([5], [9]), Row([5], [])], pad_id=0, multiple=8)
    spots = spots_of(batch, 3)
    assert spots.tolist() == [[2, 3, 7], [0, 7, 7], [7, 7, 7]]
    assert np.take_along_axis(batch.learned, spots, 1).sum(1).tolist() == batch.learned.sum(1).tolist()
    assert spots_of(batch, 16).shape == (3, 8)  # never wider than the row


def test_soft_tokens_are_aligned_to_places_of_the_hint_or_to_the_lines_that_do_not_name_its_place():
    memory = "here: mug was in desk 1\nplace 3 tasks ago: mug 2 is on shelf 2\ntold Ann: keys are in desk 12"
    tokenizer = train_bpe([memory], 300)
    view = ("put a mug in bed", "desk 1; shelf 2", ())
    guided = Sample("", "", "", view, memory, "find mug in desk 1", "desk 1; shelf 2", "go to desk 1")
    bare = Sample("", "", "", view, memory, "", "", "look")

    def texts(reference: str, num_soft: int) -> list[str]:
        rows = reference_ids(tokenizer, [guided, bare], MemoryConfig(num_soft=num_soft, soft_reference=reference))
        assert rows.shape == (2, num_soft)
        return [tokenizer.decode(row[row >= 0].tolist()) for row in rows]

    assert texts("hint", 32) == [" desk 1; shelf 2", ""]
    rest = " place 3 tasks ago: mug 2 is on shelf 2; told Ann: keys are in desk 12"
    assert rest.startswith(texts("rest", 4)[0])
    assert texts("rest", 32) == [rest[: len(texts("rest", 32)[0])], ""]
    assert guided.rest == rest.strip()
    with pytest.raises(InvalidInputError, match="soft_reference"):
        MemoryConfig(soft_reference="all")


def test_samples_whose_new_guidance_comes_from_memory_count_more():
    def sample(hint, why, turns=1):
        return Sample(
            "", "", f"experience\ndo: {hint}\nwhy: {why}", ("", "", (("look", ""),) * turns), "", hint, "", ""
        )

    samples = [
        sample("find mug in desk 1", "found there before", turns=0),
        sample("find mug in desk 1", "found there before"),  # goes on
        sample("take mug 1 from desk 1", "seen there"),
        sample("find mug in desk 1", "found there before", turns=0),  # another episode
        sample("find mug in shelf 2", "memory 3"),
        sample("find mug in shelf 4", "not searched yet"),
    ]
    assert weigh_memory(samples, 1) == samples
    counts = collections.Counter(map(id, weigh_memory(samples, 3)))
    assert [counts[id(one)] for one in samples] == [3, 1, 1, 3, 3, 1]
