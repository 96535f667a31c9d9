"""Generated lives: the same from a seed, disjoint sides, winnable within their budgets, and silent about the truth."""

import os
import subprocess
import sys

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.alfworld.engine import Env
from embodied_mem.worlds.alfworld.generator import Generator
from embodied_mem.worlds.alfworld.procedures import HELD_OUT_NAMES, TRAINING_NAMES
from experiments.configs._life import MIX, NUM_TRAINING, SEED
from experiments.life import lives
from experiments.life.lives import (
    CUES,
    SENTENCES,
    LifeMix,
    homes_of,
    make_life,
    read_instruction,
    read_sentence,
)

DIGEST = """
import hashlib
from embodied_mem.worlds.alfworld.generator import Generator
from experiments.life.lives import homes_of, make_life
from experiments.configs._life import MIX
generator = Generator(0, habit=1.0, own_habits=True)
life = make_life(generator, homes_of(generator, 1)[0], MIX, part="train")
print(hashlib.sha256(repr(life).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def held_out():
    generator = Generator(SEED, habit=1.0, own_habits=True)
    return [make_life(generator, home, MIX, part="report") for home in homes_of(generator, 2, NUM_TRAINING)]


def test_a_life_follows_from_its_seed_alone():
    def digest(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, check=True).stdout

    assert digest("1") == digest("2")


def test_shares_are_those_of_the_mix(held_out):
    for life in held_out:
        for cue, share in life.shares().items():
            assert share == pytest.approx(MIX.shares[cue], abs=0.03)


def test_sides_share_no_home_no_sentence_form_and_no_name(held_out):
    for parts in SENTENCES.values():
        forms = [form for some in parts.values() for form in some]
        assert len(set(forms)) == len(forms)
    assert not set(HELD_OUT_NAMES) & set(TRAINING_NAMES)
    assert all(life.home >= NUM_TRAINING for life in held_out)
    forms = [lives._pattern(form.rstrip(".")) for parts in SENTENCES.values() for form in parts["train"]]
    texts = [text for life in held_out for day in life.days for said in day.sayings for text in said if said.text]
    texts += [day.instruction for life in held_out for day in life.days]
    assert not [text for text in texts for form in forms if form.search(text)]
    names = {read_instruction(day.instruction).name for life in held_out for day in life.days} - {""}
    assert names
    assert names <= set(HELD_OUT_NAMES)


def test_each_sentence_is_read_as_it_was_written():
    values = {
        "kind": "mug", "place": "drawer 2", "target": "desk", "who": "sister", "name": "copper round",
        "deed": "clean it and put it in the shelf",
    }  # fmt: skip
    for topic in ("place", "like", "owned", "meant"):
        for form in (form for forms in SENTENCES[topic].values() for form in forms):
            read = read_sentence(f"Actually, that has changed. {form.format(**values)}")
            assert read[0] == topic
            assert read[1] == {name: value for name, value in values.items() if f"{{{name}}}" in form}


def test_what_an_agent_reads_does_not_tell_the_truth(held_out):
    for life in held_out:
        for day in life.days:
            game = day.load()
            first = Env(game).reset()
            assert game.task == day.instruction
            assert not any(cue in game.name for cue in CUES)
            said = read_instruction(day.instruction)
            target = day.truth.task.receptacle_type
            if day.cue in ("liked", "shown", "meant"):
                assert said.task is None
                assert f" {target}" not in day.instruction.replace(said.place, "")
            elif day.cue in ("usual", "moved", "told", "owned"):
                assert said.place == ""
                assert not any(place in day.instruction for place in day.truth.places)
            assert "brother" not in first
            assert "sister" not in first


def test_a_place_is_named_as_the_game_names_it(held_out):
    generator = Generator(SEED, habit=1.0, own_habits=True)
    for life in held_out:
        assert life.days[0].load().receptacles == lives._names(generator.scene(life.home))


def test_a_mix_has_a_share_for_each_cue():
    with pytest.raises(InvalidInputError, match="shares: expected one per cue"):
        LifeMix({"plain": 1.0})
