"""Doors for verl-agent and RAGEN: what their managers call, against envs of one game of the compat class."""

from __future__ import annotations

import pickle
import shutil

import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.serve.ragen import AlfredEnvConfig, AlfredTXTEnv
from embodied_mem.serve.verl_agent import build_alfworld_envs
from embodied_mem.worlds.alfworld import compat
from embodied_mem.worlds.alfworld import env as alfworld
from embodied_mem.worlds.alfworld.compat import AlfredTWEnv, BatchEnv
from embodied_mem.worlds.alfworld.engine import Game
from embodied_mem.worlds.alfworld.generator import generate, write

yaml = pytest.importorskip("yaml")
LIMIT = 6


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("games")
    write(generate(num_games=5, seed=0), folder)
    training = {"training": {"max_nb_steps_per_episode": LIMIT}}
    splits = dict.fromkeys(("data_path", "eval_id_data_path", "eval_ood_data_path"), str(folder))
    return {
        "dataset": {**splits, "num_train_games": -1, "num_eval_games": -1},
        "env": {
            "type": "AlfredTWEnv",
            "task_types": [1, 2, 3, 4, 5, 6],
            "domain_randomization": False,
            "expert_type": "handcoded",
        },
        "general": {"training_method": "dqn"},
        "rl": training,
        "dagger": training,
    }


@pytest.fixture
def make(config, tmp_path):
    def build(change=lambda config: config, **arguments):
        path = tmp_path / "config_tw.yaml"
        path.write_text(yaml.safe_dump(change(config)))
        return build_alfworld_envs(str(path), **{"seed": 3, "env_num": 2, "group_n": 3, **arguments})

    return build


@pytest.mark.parametrize("is_train", [True, False])
def test_it_answers_as_a_process_per_env_does(config, make, is_train):
    """Each env of the original is a batch of one with the seed `seed + i // group_n`."""
    envs = make(resources_per_worker={"num_cpus": 0.1}, is_train=is_train)
    assert (envs.num_processes, envs.group_n, envs.multi_modal) == (6, 3, False)
    split = "train" if is_train else "eval_in_distribution"
    workers = [AlfredTWEnv(config, split).init_env(batch_size=1) for _ in range(6)]
    for i, worker in enumerate(workers):
        worker.seed(3 + i // 3)
    for _ in range(3):
        texts, images, infos = envs.reset()
        theirs = [worker.reset() for worker in workers]
        assert images is None
        assert texts == [observations[0] for observations, _ in theirs]
        assert [info["extra.gamefile"] for info in infos] == [info["extra.gamefile"][0] for _, info in theirs]
        assert len({info["extra.gamefile"] for info in infos[:3]}) == 1  # a group plays one game
        for step in range(LIMIT + 2):
            commands = [
                "fly away" if (i + step) % 4 == 0 else admissible[(5 * i + step) % len(admissible)]
                for i, admissible in enumerate(envs.get_admissible_commands)
            ]
            texts, images, rewards, dones, infos = envs.step(commands)
            theirs = [worker.step([command]) for worker, command in zip(workers, commands)]
            assert images is None
            assert texts == [answer[0][0] for answer in theirs] == [info["observation_text"] for info in infos]
            assert dones == [answer[2][0] for answer in theirs]
            assert rewards == [10.0 * answer[3]["won"][0] for answer in theirs]
            assert [info["won"] for info in infos] == [answer[3]["won"][0] for answer in theirs]
            assert envs.get_admissible_commands == [answer[3]["admissible_commands"][0] for answer in theirs]
        assert all(dones)
    envs.close(timeout_s=5)


def test_a_command_that_is_none_is_answered_and_a_won_game_pays_ten(config, make, tmp_path):
    longer = {**config, "rl": {"training": {"max_nb_steps_per_episode": 50}}}
    envs = make(lambda config: longer, env_num=1, group_n=1)
    _, _, infos = envs.reset()
    walkthrough = Game.load(infos[0]["extra.gamefile"]).walkthrough
    assert envs.step(["fly away"])[0] == ["Nothing happens."]
    paid = [(rewards[0], dones[0]) for _, _, rewards, dones, _ in (envs.step([one]) for one in walkthrough)]
    assert paid == [(0.0, False)] * (len(walkthrough) - 1) + [(10.0, True)]
    assert envs.step(["look"])[2:4] == ([10.0], [True])  # a finished game repeats its answer
    ragen = AlfredTXTEnv(AlfredEnvConfig(config_file=str(tmp_path / "config_tw.yaml"), score=3.0))
    ragen.reset(seed=ragen.game_files.index(infos[0]["extra.gamefile"]))
    assert [ragen.step(one)[1] for one in walkthrough][-2:] == [0.0, 3.0]


@pytest.mark.parametrize("randomized", [False, True])
def test_pickled_envs_go_on_with_their_next_games(config, make, randomized):
    envs = make(lambda config: {**config, "env": {**config["env"], "domain_randomization": randomized}})
    envs.reset()
    copy = pickle.loads(pickle.dumps(envs))
    with pytest.raises(InvalidInputError, match="reset"):
        copy.step(["look"] * 6)
    for _ in range(6):  # more than the five games: into the second shuffle
        ours, theirs = ([info["extra.gamefile"] for info in one.reset()[2]] for one in (envs, copy))
        assert ours == theirs
    if not randomized:
        commands = [admissible[-1] for admissible in envs.get_admissible_commands]
        assert envs.step(commands) == copy.step(commands)


def test_envs_of_one_process_load_a_game_once(make, monkeypatch):
    loads = []
    counting = {"load": lambda path: loads.append(path) or Game.load(path)}
    monkeypatch.setattr(alfworld, "Game", type("Counting", (), counting))
    alfworld._game_of.cache_clear()
    files = {info["extra.gamefile"] for _ in range(2) for info in make(env_num=5, group_n=1).reset()[2]}
    assert sorted(loads) == sorted(files)


def test_one_text_is_no_batch_of_commands(make):
    envs = make()
    envs.reset()
    for wrong in ("look!!", None, ["look"], [1] * 6):
        with pytest.raises(InvalidInputError):
            envs.step(wrong)


def test_no_expert_advises_under_dagger(make):
    envs = make(lambda config: {**config, "general": {"training_method": "dagger"}})
    assert "extra.expert_plan" not in envs.reset()[2][0]


def test_sorted_games_are_the_same_wherever_the_folder_lies(config, make, tmp_path, capsys, monkeypatch):
    sort = {"env_kwargs": {"order": "sorted"}, "env_num": 4, "group_n": 1}
    envs = make(**sort)
    assert f"5 games of train, list {envs.games_hash[:16]}" in capsys.readouterr().err
    games = [info["extra.gamefile"] for info in envs.reset()[2]]
    copy = tmp_path / "elsewhere"
    shutil.copytree(config["dataset"]["data_path"], copy)
    elsewhere = {**config, "dataset": {**config["dataset"], "data_path": str(copy)}}
    walk = compat.walk
    monkeypatch.setattr(compat, "walk", lambda folder: reversed(list(walk(folder))))  # as another file system may
    again = make(lambda config: elsewhere, **sort)
    assert again.games_hash == envs.games_hash != make(lambda config: elsewhere).games_hash
    assert [info["extra.gamefile"] for info in again.reset()[2]] == [
        file.replace(config["dataset"]["data_path"], str(copy)) for file in games
    ]


def test_older_copies_pass_the_split_without_resources(make, tmp_path, capsys):
    """Before `resources_per_worker` there were (..., group_n, is_train, env_kwargs), by position, too."""
    make()
    for more in ((False,), (False, {"eval_dataset": "eval_out_of_distribution"}), (True, {"task_types": None})):
        build_alfworld_envs(str(tmp_path / "config_tw.yaml"), 3, 1, 1, *more)
    splits = [line.split()[3].strip(",") for line in capsys.readouterr().err.splitlines()]
    assert splits == ["train", "eval_in_distribution", "eval_out_of_distribution", "train"]


def of_dataset(**fields):
    return lambda config: {**config, "dataset": {**config["dataset"], **fields}}


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        (lambda config: {**config, "env": {"type": "AlfredThorEnv"}}, {}, "AlfredTWEnv"),
        (lambda config: config, {"env_kwargs": {"eval_datset": "eval_out_of_distribution"}}, "got eval_datset"),
        (lambda config: {"dataset": {}}, {}, "env.type"),
        (lambda config: config, {"group_n": 0}, "group_n"),
        (lambda config: config, {"env_num": "2"}, "env_num"),
        (lambda config: config, {"seed": -1}, "seed"),
        (lambda config: config, {"seed": 2**32 - 1}, "seed: expected 0 to 4294967295, got 4294967296"),
        (lambda config: config, {"is_train": "no"}, "is_train"),
        (lambda config: config, {"env_kwargs": "eval_dataset"}, "env_kwargs: expected a mapping"),
        (lambda config: config, {"is_train": False, "env_kwargs": {"eval_dataset": ["x"]}}, "train_eval"),
        (of_dataset(data_path=""), {}, "data_path: expected a folder"),
        (of_dataset(data_path=None), {}, "data_path: expected a folder"),
        (of_dataset(num_train_games=1.5), {}, "num_train_games: expected a whole number"),
        (lambda config: {**config, "env": {**config["env"], "task_types": "1,2"}}, {}, "task_types: expected some"),
        (lambda config: {**config, "env": ["type"]}, {}, "env.type"),
        (lambda config: config, {"env_kwargs": {"order": "random"}}, "walk or sorted"),
        (lambda config: config, {"is_train": False, "env_kwargs": {"eval_dataset": "test"}}, "train_eval"),
    ],
)
def test_what_cannot_be_played_is_refused(make, change, arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        make(change, **arguments)


@pytest.mark.parametrize("path", [None, 3, b"config.yaml", "nested.yaml"])
def test_what_is_no_configuration_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nested.yaml").write_text("[" * 100_000)
    with pytest.raises(InvalidInputError, match="alf_config_path"):
        build_alfworld_envs(path, seed=0, env_num=1, group_n=1)


def test_a_missing_configuration_is_named(tmp_path):
    with pytest.raises(DataNotFoundError, match="missing"):
        build_alfworld_envs(str(tmp_path / "missing.yaml"), seed=0, env_num=1, group_n=1)


@pytest.mark.parametrize("mode", ["train", "val", "test"])
def test_ragen_plays_the_game_of_a_seed(config, tmp_path, mode):
    path = tmp_path / "alfworld_config.yaml"
    path.write_text(yaml.safe_dump(config))
    env = AlfredTXTEnv(AlfredEnvConfig(config_file=str(path)))
    files = AlfredTWEnv(config).game_files
    for seed in (2, 7):
        text = env.reset(seed=seed, mode=mode)
        assert env.current_game_file == files[seed % 5]
        theirs = BatchEnv([files[seed % 5]], 1, LIMIT)
        texts, infos = theirs.reset()
        assert text == f"{texts[0]}\n\nAdmissible actions: [{', '.join(infos['admissible_commands'][0])}]"
        for step in range(LIMIT):
            action = "fly away" if step % 2 else env.available_actions[step]
            text, reward, done, info = env.step(action)
            texts, _, dones, infos = theirs.step([action])
            assert text.startswith(texts[0])
            assert env.render() == text
            assert (reward, done) == (10.0 * infos["won"][0], dones[0])
            assert info == {"action_is_effective": True, "action_is_valid": step % 2 == 0, "success": infos["won"][0]}
        assert done
    env.close()


def test_ragen_refuses_what_it_cannot_play(config, tmp_path):
    path = tmp_path / "alfworld_config.yaml"
    path.write_text(yaml.safe_dump(config))
    settings = AlfredEnvConfig(config_file=str(path))
    with pytest.raises(InvalidInputError, match="reset"):
        AlfredTXTEnv(settings).step("look")
    with pytest.raises(InvalidInputError, match="seed"):
        AlfredTXTEnv(settings, mode="test").reset()
    with pytest.raises(InvalidInputError, match="mode"):
        AlfredTXTEnv(settings, mode="dev")
    with pytest.raises(InvalidInputError, match="render_mode"):
        AlfredTXTEnv(AlfredEnvConfig(config_file=str(path), render_mode="rgb"))
    with pytest.raises(InvalidInputError, match="score: expected a number, got 'ten'"):
        AlfredTXTEnv(AlfredEnvConfig(config_file=str(path), score="ten"))
    with pytest.raises(InvalidInputError, match="config: expected an AlfredEnvConfig"):
        AlfredTXTEnv(str(path))
    with pytest.raises(InvalidInputError, match="config_file"):
        AlfredTXTEnv(AlfredEnvConfig(config_file=None))
