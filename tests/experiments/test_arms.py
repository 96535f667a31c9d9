"""The arms of a study: how each is trained, how long the supervised one, and what its numbers are compared with."""

import dataclasses

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult
from embodied_mem.evaluation.score import Score
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.training.bundle import Bundle
from embodied_mem.training.config import MemoryConfig
from embodied_mem.training.tasks import make_tasks
from embodied_mem.training.teachers.episodes import Sample
from embodied_mem.worlds.alfworld.tasks import AlfworldTasks
from experiments.analyses import arms
from experiments.configs import load

ROOT = arms.pathlib.Path(__file__).parents[2]


def test_each_arm_differs_from_the_run_in_one_part():
    base = dataclasses.replace(load("habits"), grpo=dataclasses.replace(load("habits").grpo, steps=9))
    plain = dataclasses.asdict(dataclasses.replace(base, seed=4))
    changed = {}
    for arm in arms.ARMS:
        given = dataclasses.asdict(arms.config_of(arm, 4, base, 33))
        changed[arm] = {part for part in plain if given[part] != plain[part]}
    assert (changed.pop("grpo"), changed.pop("shuffled"), changed.pop("again")) == (set(), {"grpo"}, {"grpo"})
    assert changed.pop("commands") == {"grpo", "data", "memory", "compiler_sft"}
    assert all(len(parts - {"grpo"}) == 1 for parts in changed.values())  # without updates
    played = {arm: arms.rows_of(arm, 0)[0].delivery for arm in ("no_brief", "soft_4", "own_none", "commands")}
    assert list(played.values()) == ["compiled_no_brief", "compiled", "none", "guidance_only"]


def test_steps_with_as_many_tokens():
    """Rows of 6 + 3 letters, their end and 4 soft tokens are 14 tokens, 32 of them 448: 1,000 take three steps."""
    tokenizer = train_bpe(["abcdef"], 261)
    config = dataclasses.replace(load("habits"), memory=MemoryConfig(num_soft=4))
    sample = Sample("abcdef", "", "abc", ("", "", ()), "", "", "", "")
    assert len(tokenizer.encode("abcdef")) == 6
    assert arms.steps_of(1000, [sample] * 5, tokenizer, config) == 3
    assert arms.steps_of(896, [sample], tokenizer, config) == 2


def scored(*won):
    return Score("", [EpisodeResult("", f"t{i}", bool(one), one, 1) for i, one in enumerate(won)], 1)


def test_arms_are_compared_seed_by_seed_on_the_same_tasks():
    scores = {"none": scored(0, 0, 0, 0), "before": scored(1, 0, 0, 0)}
    scores |= {"grpo 0": scored(1, 1, 1, 0), "grpo 1": scored(1, 1, 0, 0)}
    scores |= {"shuffled 0": scored(1, 0, 0, 0), "shuffled 1": scored(1, 1, 0, 1)}
    result = arms.summary(scores, ["grpo", "shuffled"], [0, 1])
    assert result["grpo"]["success_per_seed"] == [0.75, 0.5]
    assert result["grpo"]["success"] == 0.625
    assert result["grpo"]["spread_of_seeds"] == pytest.approx(0.25 / 2**0.5)
    means = {other: values[0] for other, values in result["grpo"]["difference_to"].items()}
    assert means == {"none": 0.625, "before": 0.375, "shuffled": 0.125}
    mean, low, high = result["grpo"]["difference_to"]["before"]
    assert 0 <= low < mean < high <= 1


def test_commands_of_a_world_without_rules_are_refused_at_once(tmp_path, monkeypatch):
    command = ["--run", str(ROOT / "experiments" / "weights" / "habits"), "--out", str(tmp_path / "x.json")]
    assert arms.parse([*command, "--arms", "commands"])[0].arms == ["commands"]
    monkeypatch.delattr(AlfworldTasks, "follower")
    with pytest.raises(InvalidInputError, match="--arms commands: expected one world"):
        arms.parse([*command, "--arms", "commands"])


def test_settings_are_chosen_in_homes_that_are_neither_trained_in_nor_published(tmp_path):
    base = load("habits")
    world = dataclasses.replace(base.world, num_train=8, num_valid=8, num_scenes=4, homes=2)
    grpo = dataclasses.replace(base.grpo, num_tasks=2, group_size=2)
    evaluation = dataclasses.replace(base.evaluation, batch_size=8)
    config = dataclasses.replace(base, world=world, grpo=grpo, evaluation=evaluation)
    bundle = Bundle(config, None, None, None)

    def seen(envs):
        texts, _ = envs.reset(seed=0)
        return {envs.task_id(number): text for number, text in enumerate(texts[: envs.num_tasks])}

    own, other = arms.Study(bundle, tmp_path, tmp_path / "bank"), arms.Study(bundle, tmp_path, tmp_path / "bank", 1000)
    assert seen(own.scored.valid) == seen(own.tasks.valid)
    assert seen(other.scored.valid) == seen(make_tasks(dataclasses.replace(config, seed=1000)).valid)
    assert not seen(other.scored.valid).keys() & (seen(own.tasks.valid).keys() | seen(own.tasks.train).keys())
    assert len(other.scored_with) == 50  # 25 games of each of the two homes
    assert other.scored_with.records[0][0] != own.scored_with.records[0][0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--arms", "grpo"], "grpo.steps: expected the updates"),
        (["--arms", "sft"], "expected grpo too"),
        (["--arms", "no_bank", "--memory.top-k", "3"], "settings of grpo and evaluation only"),
        (["--arms", "no_bank", "--homes", "0"], "a seed other than 0"),
    ],
)
def test_what_is_refused(given, message, tmp_path):
    command = ["--run", str(ROOT / "experiments" / "weights" / "habits"), "--out", str(tmp_path / "x.json")]
    with pytest.raises(InvalidInputError, match=message):
        arms.parse([*command, *given])
