"""Texts of memory methods reach the executor's rows in training, and never tell of the task that is played."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from embodied_mem.compiler.view import start_view
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.memory import Experiences
from embodied_mem.training.config import DataConfig
from embodied_mem.training.data import executor_batch
from embodied_mem.training.tasks import make_tasks, teach_bank
from embodied_mem.training.teachers.games import Games, RecalledTexts
from experiments.configs import load

METHODS = ("mem0_2", "langmem")


def tiny():
    config = load("baselines")
    world = dataclasses.replace(
        config.world, train="generated", valid="generated", num_train=16, num_valid=2, num_scenes=4, habit=0.8
    )
    return dataclasses.replace(config, world=world, data=dataclasses.replace(config.data, passes=2, methods=METHODS))


@pytest.fixture(scope="module")
def games():
    config = tiny()
    tasks = make_tasks(config)
    return Games(config, tasks, teach_bank(config, "", tasks))


def test_half_of_the_episodes_have_what_a_method_recalled_and_it_reaches_the_batches(games):
    samples = games.lessons().samples
    data = dataclasses.replace(games.config.data, methods=())
    others = dataclasses.replace(games, config=dataclasses.replace(games.config, data=data)).lessons()
    assert [(s.view, s.action, s.compiler_prompt) for s in samples] == [
        (s.view, s.action, s.compiler_prompt) for s in others.samples
    ]  # the play and what the compiler reads are the same
    recalled = [i for i, (one, other) in enumerate(zip(samples, others.samples)) if one.memory != other.memory]
    assert 0.2 < len(recalled) / len(samples) < 0.8
    tokenizer = train_bpe([s.executor_text(memory=True) for s in samples], 400)
    index = next(i for i in recalled if samples[i].memory != "nothing")
    for kind, is_shown in (("static", True), ("none", False)):
        batch = executor_batch(tokenizer, [samples[index]], kind, games.config, np.random.default_rng(0))
        text = tokenizer.decode(batch.tokens[0][batch.mask[0]].tolist())
        assert (samples[index].memory in text) == is_shown


def test_a_method_has_not_observed_the_task_that_is_played(games):
    [episode, *_] = [one for one, _ in games.bank.records]
    alone = Experiences(task_key=games.bank.task_key)
    alone.add(episode)
    found = alone.retrieve(episode.goal, k=4, context=episode.first_observation)
    for bank, told in ((alone, {"nothing"}), (games.bank, None)):
        recall = RecalledTexts(METHODS, bank, seed=0)
        view = start_view(episode.goal, episode.first_observation, found, episode.task_id)
        texts = {recall(view, task, number=0) for task in range(20)} - {found[0].brief()}
        assert texts
        assert told is None or texts == told
        assert all(len(text) <= max(len(found[0].brief()) + 4, len("nothing")) for text in texts)  # equal tokens
        assert recall(view, 3, number=0) == recall(view, 3, number=0)


def test_methods_are_known_names_and_leave_old_fingerprints_alone():
    config = tiny()
    assert config.fingerprint("executor") != dataclasses.replace(config, data=DataConfig()).fingerprint("executor")
    assert "methods" not in dataclasses.replace(config, data=DataConfig()).parts("executor")["data"]
    with pytest.raises(InvalidInputError, match="mem0_9"):
        RecalledTexts(("mem0_9",), Experiences(), seed=0)
