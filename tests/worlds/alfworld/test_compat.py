"""The original's classes on our engine: batches against the original package, its own evaluation code, configs."""

from __future__ import annotations

import copy
import importlib.util
import json
import pathlib
import random
import types

import numpy as np
import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.worlds.alfworld.compat import AlfredTWEnv, get_environment, renumbered
from embodied_mem.worlds.alfworld.engine import Env, Game
from embodied_mem.worlds.alfworld.env import TASK_TYPES
from experiments.analyses import alfworld_original

LIMIT = 6


@pytest.fixture(scope="module")
def folder(alfworld_data, tmp_path_factory) -> pathlib.Path:
    """One game of each task type, as the original stores them: `traj_data.json` beside the game."""
    root = tmp_path_factory.mktemp("compat")
    for task_type in TASK_TYPES:
        path = min(alfworld_data.glob(f"valid_seen/{task_type}-*/*/game.tw-pddl"), key=lambda p: p.stat().st_size)
        trial = root / path.parts[-3] / path.parts[-2]
        trial.mkdir(parents=True)
        (trial / path.name).symlink_to(path)
        kind, thing, _, place, _ = path.parts[-3].split("-")
        lamp = kind.startswith("look")
        names = {"object_target": thing, "parent_target": "" if lamp else place, "toggle_target": place if lamp else ""}
        (trial / "traj_data.json").write_text(json.dumps({"task_type": kind, "pddl_params": names}))
    return root


@pytest.fixture
def config(folder) -> dict:
    dataset = dict.fromkeys(("data_path", "eval_id_data_path", "eval_ood_data_path"), str(folder))
    training = {"training": {"max_nb_steps_per_episode": LIMIT}}
    return {
        "dataset": {**dataset, "num_train_games": -1, "num_eval_games": -1},
        "env": {
            "goal_desc_human_anns_prob": 0,
            "task_types": [1, 2, 3, 4, 5, 6],
            "domain_randomization": False,
            "expert_type": "handcoded",
        },
        "general": {"training_method": "dqn"},
        "rl": training,
        "dagger": training,
    }


def _original():
    return pytest.importorskip(
        "alfworld.agents.environment.alfred_tw_env", reason='needs pip install "embodied_mem[envs]"'
    ).AlfredTWEnv


def _walkthroughs(folder):
    return {str(path): Game.load(str(path)).walkthrough for path in folder.rglob("*.tw-pddl")}


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("batch_size", [1, 3])  # in this process; a process each
def test_batches_are_the_originals(folder, config, batch_size):
    """Same games in the same order, texts, scores, dones, infos and their types, to the limit and beyond."""
    commands_of = _walkthroughs(folder)
    rng = random.Random(0)
    with alfworld_original.memoised():  # before the processes start
        theirs = _original()(config, "train").init_env(batch_size)
        ours = AlfredTWEnv(config, "train").init_env(batch_size)
        num_won = 0
        for seed in (None, 7) if batch_size > 1 else (None,):
            if seed is not None:
                assert ours.seed(seed) == theirs.seed(seed)
            observations, infos = theirs.reset()
            assert (observations, infos) == ours.reset()
            walks = [list(commands_of[file]) for file in infos["extra.gamefile"]]
            for step in range(LIMIT + 2):
                commands = [
                    walk.pop(0) if walk and i != step % 3 else rng.choice([*admissible, "  look\n", "xyzzy"])
                    for i, (walk, admissible) in enumerate(zip(walks, infos["admissible_commands"]))
                ]
                answer = theirs.step(commands)
                again = ours.step(commands)
                assert answer == again
                assert _types(answer) == _types(again)
                infos = answer[-1]
            assert all(answer[2])
            num_won += sum(answer[1])
        theirs.close()
    if batch_size > 1:
        assert num_won


def _types(value):
    """Return the types of a value and of what is in it, as a text."""
    if isinstance(value, dict):
        return str({key: _types(value[key]) for key in sorted(value)})
    of_parts = {_types(part) for part in value} if isinstance(value, list | tuple) else ""
    return f"{type(value).__name__}{sorted(of_parts)}"


@pytest.mark.parametrize("train_eval", ["train", "eval_in_distribution", "eval_out_of_distribution"])
def test_games_are_chosen_as_the_original_chooses_them(config, train_eval):
    config["env"]["task_types"] = [2, 4, 5, 6]
    config["dataset"] |= {"num_train_games": 3, "num_eval_games": 2}
    theirs, ours = _original()(config, train_eval), AlfredTWEnv(config, train_eval)
    assert ours.game_files == theirs.game_files
    assert ours.num_games == theirs.num_games == (3 if train_eval == "train" else 2)


def test_unsolvable_games_and_folders_without_a_game_are_left_out(config, folder, tmp_path):
    for i, (name, solvable) in enumerate([("pick_two_obj_and_place-A", True), ("pick_two_obj_and_place-B", False),
                                          ("pick_two_obj_and_place-C", None), ("pick_Sliced-D", True)]):  # fmt: skip
        (tmp_path / name / f"trial_{i}").mkdir(parents=True)
        data = {"pddl_problem": 'not "solvable": true', **({} if solvable is None else {"solvable": solvable})}
        (tmp_path / name / f"trial_{i}" / "game.tw-pddl").write_text(json.dumps(data))
    config["dataset"]["data_path"] = str(tmp_path)
    assert [pathlib.Path(file).parts[-3] for file in AlfredTWEnv(config).game_files] == ["pick_two_obj_and_place-A"]


class _Agent:
    """What the original's evaluation asks of an agent; the text's length says which command it takes."""

    action_space, report_frequency, max_nb_steps_per_episode = "admissible", 0, LIMIT

    def __init__(self):
        pool: list[list[str]] = []
        self.observation_pool = types.SimpleNamespace(
            push_first_sight=lambda texts: pool.clear(), push_batch=pool.append, get=lambda: pool[-1]
        )

    def eval(self):
        pass

    def init(self, batch_size):
        pass

    def finish_of_episode(self, episode_no, batch_size):
        pass

    def get_task_and_obs(self, texts):
        return [text.partition("Your task is to: ")[2] for text in texts], texts

    def preprocess_task(self, texts):
        return texts

    preprocess_observation = preprocess_action_candidates = preprocess_task

    def admissible_commands_act_greedy(self, texts, tasks, candidates, dynamics):
        chosen = [commands[(len(text) * 7) % len(commands)] for text, commands in zip(texts, candidates)]
        return chosen, None, None


@pytest.mark.slow
@pytest.mark.parity
def test_the_originals_own_evaluation_gives_the_same(config):
    """`evaluate_dqn` of the package, read from its file: its folder's `__init__` imports the part with vision."""
    pytest.importorskip("torch", reason="the original's evaluation imports torch: pip install torch")
    folder = pathlib.Path(_original().__init__.__code__.co_filename).parents[1]
    spec = importlib.util.spec_from_file_location("evaluate_dqn", folder / "eval" / "evaluate_dqn.py")
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    with alfworld_original.memoised():
        theirs, ours = (
            code.evaluate_dqn(cls(config, "eval_in_distribution").init_env(2), _Agent(), 2)
            for cls in (_original(), get_environment("AlfredTWEnv"))
        )
    assert ours == theirs
    assert theirs["average_steps"] > 1


@pytest.mark.parametrize("expert_type", ["handcoded", "planner"])
def test_experts_win_every_game(config, expert_type):
    """Whoever plays the first command of each plan wins; the plan is there in training with dagger, else not."""
    config["general"]["training_method"] = "dagger"
    config["env"]["expert_type"] = expert_type
    config["dagger"] = {"training": {"max_nb_steps_per_episode": 60}}
    envs = get_environment("AlfredTWEnv")(config).init_env(len(TASK_TYPES))
    _, infos = envs.reset()
    for step in range(60):
        plans = infos["extra.expert_plan"]
        commands = [plan[0] if plan else "look" for plan in plans]
        assert all(command in possible for command, possible in zip(commands, infos["admissible_commands"]))
        if step in (1, 2):  # others than the expert's
            commands = [possible[step] for possible in infos["admissible_commands"]]
        _, scores, dones, infos = envs.step(commands)
        if all(dones):
            break
    assert scores == (1,) * len(TASK_TYPES)
    assert "extra.expert_plan" not in AlfredTWEnv(config, "eval_in_distribution").init_env(1).reset()[1]


@pytest.mark.slow
@pytest.mark.parity
def test_the_originals_expert_plan_has_the_same_type(config):
    """The plan is not compared: the original's follows rules of thumb that fail in some games, ours fails in none."""
    config["general"]["training_method"] = "dagger"
    with alfworld_original.memoised():
        theirs, ours = (cls(config).init_env(1) for cls in (_original(), AlfredTWEnv))
        for envs in (theirs, ours):
            _, infos = envs.reset()
            assert _types(infos["extra.expert_plan"]) == _types([["look"]])
            _, _, _, infos = envs.step(["look"])
            assert _types(infos["extra.expert_plan"]) == _types([["look"]])


def test_numbers_are_dealt_anew_and_the_game_stays_the_game(config, folder):
    path = str(next(folder.glob("pick_two*/*/game.tw-pddl")))
    before, after = Env(Game.load(path)), Env(renumbered(path, random.Random(1)))
    for kind in ("objects", "receptacles"):
        one, other = before.state()[kind], after.state()[kind]
        assert sorted(one) == sorted(other)
        assert one != other
        assert sorted(thing["type"] for thing in one.values()) == sorted(thing["type"] for thing in other.values())
    assert before.game.task == after.game.task
    config["env"]["domain_randomization"] = True
    config["general"]["training_method"] = "dagger"
    config["dagger"] = {"training": {"max_nb_steps_per_episode": 60}}
    random.seed(3)
    envs = AlfredTWEnv(config).init_env(3)
    starts = [envs.reset() for _ in range(3)]
    assert any(a != b for a, b in zip(starts[0][0], starts[2][0]))
    infos, dones = starts[2][1], (False,)
    while not all(dones):
        _, scores, dones, infos = envs.step([plan[0] for plan in infos["extra.expert_plan"]])
    assert scores == (1, 1, 1)


def test_wrong_configs_and_calls_are_refused_by_name(config, tmp_path):
    def changed(path, value):
        new = copy.deepcopy(config)
        *above, last = path.split(".")
        part = new
        for name in above:
            part = part[name]
        part.pop(last) if value is None else part.update({last: value})
        return new

    for path in ("dataset.data_path", "dataset.num_train_games", "env.task_types", "env.domain_randomization",
                 "general.training_method", "rl.training.max_nb_steps_per_episode"):  # fmt: skip
        with pytest.raises(InvalidInputError, match=path.replace(".", r"\.") + " is missing"):
            AlfredTWEnv(changed(path, None)).init_env(1)
    with pytest.raises(InvalidInputError, match=r"env\.task_types"):
        AlfredTWEnv(changed("env.task_types", []))
    with pytest.raises(DataNotFoundError, match=r"dataset\.data_path: no solvable game"):
        AlfredTWEnv(changed("dataset.data_path", str(tmp_path)))
    with pytest.raises(InvalidInputError, match=r"expected dqn or dagger, got 'ppo'"):
        AlfredTWEnv(changed("general.training_method", "ppo")).init_env(1)
    dagger = changed("general.training_method", "dagger")
    dagger["env"]["expert_type"] = "oracle"
    with pytest.raises(InvalidInputError, match="expert_type: expected one of handcoded, planner, got 'oracle'"):
        AlfredTWEnv(dagger).init_env(1)
    with pytest.raises(InvalidInputError, match="train_eval: expected one of train"):
        AlfredTWEnv(config, "test")
    with pytest.raises(InvalidInputError, match="AlfredThorEnv and AlfredHybrid play in AI2-THOR"):
        get_environment("AlfredThorEnv")
    envs = AlfredTWEnv(config).init_env(2)
    for commands in (["look", "look"], "look", np.array(["look", "look"])):
        with pytest.raises(InvalidInputError, match=r"commands: expected a list|reset"):
            envs.step(commands)
    envs.reset()
    with pytest.raises(InvalidInputError):
        envs.step(["look"])


def test_the_pool_goes_on_and_games_can_be_skipped(config):
    envs = AlfredTWEnv(config).init_env(4)
    files = [file for _ in range(3) for file in envs.reset()[1]["extra.gamefile"]]
    assert sorted(files[:6]) == sorted(files[6:]) == sorted(envs.gamefiles)
    envs.seed(1234)
    envs.skip(2)
    assert envs.reset()[1]["extra.gamefile"] == files[2:6]
    envs.close()
