"""Loading ALFWorld games: every official file, what is refused and how, and mutated files."""

from __future__ import annotations

import json
import pathlib
import random
import resource
import time

import pytest
from mutations import mutated

from embodied_mem.errors import GameFileError
from embodied_mem.worlds.alfworld.env import TASK_TYPES, Env, Game

NUM_MUTATED_FILES = 5_000


@pytest.fixture(scope="module")
def game_file(alfworld_data) -> pathlib.Path:
    return sorted(alfworld_data.glob("valid_seen/pick_cool*/*/game.tw-pddl"))[0]


def _refusal(content: bytes, name: str = "some/game.tw-pddl") -> str:
    with pytest.raises(GameFileError) as caught:
        Game.from_text(content, name)
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    return message


def test_every_official_game_loads(alfworld_data):
    files = sorted(alfworld_data.glob("*/*/*/game.tw-pddl"))
    assert len(files) == 3693
    counts = dict.fromkeys(TASK_TYPES, 0)
    for path in files:
        game = Game.load(str(path))
        task_type = path.parts[-3].split("-")[0]
        assert game.goal["task_type"] == task_type
        target = path.parts[-3].split("-")[1].lower() + "type"
        assert game.goal["object_type"] == target
        counts[task_type] += 1
    assert counts == {
        "pick_and_place_simple": 825,
        "look_at_obj_in_light": 321,
        "pick_clean_then_place_in_recep": 677,
        "pick_heat_then_place_in_recep": 475,
        "pick_cool_then_place_in_recep": 558,
        "pick_two_obj_and_place": 837,
    }


def test_walkthroughs_win(alfworld_data):
    for path in sorted(alfworld_data.glob("valid_seen/*/*/game.tw-pddl")):
        env = Env(Game.load(str(path)))
        progress = [env.progress]
        for command in env.game.walkthrough:
            assert not env.won
            assert command in env.admissible_commands
            env.step(command)
            progress.append(env.progress)
        assert env.won
        assert progress[-1] == 1.0
        assert all(p < 1.0 for p in progress[:-1])


def test_a_game_without_domain_and_grammar_plays_the_same(game_file):
    data = json.loads(game_file.read_text())
    whole = Game.load(str(game_file))
    bare = Game.from_problem(data["pddl_problem"], whole.task, "bare")
    one, other = Env(whole), Env(bare)
    assert one.observation == other.observation
    rng = random.Random(0)
    for _ in range(200):
        command = rng.choice(one.admissible_commands)
        assert one.step(command) == other.step(command)
        assert one.admissible_commands == other.admissible_commands
        assert one.state() == other.state()


def test_refusals_name_file_position_and_reason(game_file):
    data = json.loads(game_file.read_text())

    def changed(**parts):
        return json.dumps({**data, **parts}).encode()

    assert "line 1, column 1: the text ends" in _refusal(b"")
    assert "not JSON" in _refusal(b"PK\x03\x04")
    assert "not valid UTF-8" in _refusal(b'{"pddl_domain": "\xff"}')
    assert "truncated" in _refusal(game_file.read_bytes()[:50_000])
    assert "expected a JSON object, got an array" in _refusal(b"[]")
    for part in ("pddl_domain", "grammar", "pddl_problem"):
        without = {name: text for name, text in data.items() if name != part}
        assert f"'{part}' is missing" in _refusal(json.dumps(without).encode())
        assert f"expected a string as '{part}', got null" in _refusal(changed(**{part: None}))
    domain, grammar, problem = data["pddl_domain"], data["grammar"], data["pddl_problem"]
    message = _refusal(changed(pddl_domain=domain.replace("(not (holdsAny ?a))  ; agent's", "; agent's")))
    assert "in pddl_domain, line " in message
    assert "'action pickupobject' is not that of any known release" in message
    message = _refusal(changed(grammar=grammar.replace("You open the", "You swing open the")))
    assert "in grammar, line 1," in message
    message = _refusal(changed(grammar=grammar.replace("You turn on", "You switch on")))
    assert "'action ToggleObject' is not that of any known release" in message
    assert 'after "Your task is to: "' in _refusal(changed(grammar="action look {}"))
    assert "the goal is empty" in _refusal(changed(pddl_problem=problem[: problem.index("(:goal")] + "(:goal (and)))"))
    assert "no part (:init" in _refusal(
        changed(pddl_problem="(define (problem x) (:domain alfred) (:objects a - agent) (:goal (and)))")
    )
    line = problem[: problem.index("(inReceptacle")].count("\n") + 1
    message = _refusal(changed(pddl_problem=problem.replace("(inReceptacle", "(inReceptakel", 1)))
    assert f"in pddl_problem, line {line}, " in message
    assert "unknown predicate 'inreceptakel'" in message


def test_comments_and_case_do_not_make_another_domain(game_file):
    data = json.loads(game_file.read_text())
    data["pddl_domain"] = "; a comment\n" + data["pddl_domain"].replace("holdsAny", "HOLDSANY").replace("\n", "\n  ")
    assert Game.from_text(json.dumps(data).encode(), "same").goal == Game.load(str(game_file)).goal


def test_huge_and_missing_files(tmp_path):
    noise = tmp_path / "noise.tw-pddl"
    noise.write_bytes(random.Random(0).randbytes(10_000_000))
    nested = tmp_path / "nested.tw-pddl"
    nested.write_bytes(b'{"a":' * 2_000_000)
    brackets = tmp_path / "brackets.tw-pddl"
    brackets.write_text(json.dumps({"pddl_domain": "(" * 3_000_000, "grammar": "", "pddl_problem": ""}))
    start = time.monotonic()
    for path in (noise, nested, brackets, tmp_path, tmp_path / "absent.tw-pddl"):
        with pytest.raises(GameFileError, match=str(path)):
            Game.load(str(path))
    assert time.monotonic() - start < 30, "a refusal must not hang"


def test_mutated_files_are_refused_or_played(game_file):
    """Truncated, cut, doubled, overwritten and noisy copies: each is a game that can be played or a GameFileError."""
    rng = random.Random(20)
    small = sorted(game_file.parents[2].glob("*/*/game.tw-pddl"), key=lambda path: path.stat().st_size)[0]
    original = small.read_bytes()
    start_of_problem = original.index(b'"pddl_problem"')
    words = [*map(str.encode, '()"\\{}-?;\x00'), b"\xff", b"9" * 400, b"(and )", b"\\u0000", b"exists"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    games = refused = 0
    for i in range(NUM_MUTATED_FILES):
        # Most edits go to the problem: it is read last and has the most meanings.
        start = start_of_problem if rng.random() < 0.8 else 0
        content = original[:start] + mutated(original[start:], rng, words, longest=200)
        if rng.random() < 0.1:
            content = content[: rng.randrange(len(content))]
        try:
            env = Env(Game.from_text(content, f"mutated {i}"))
        except GameFileError as error:
            refused += str(error).startswith(f"mutated {i}: ")
        else:
            games += 1
            if games % 20 == 0:
                assert env.step(env.admissible_commands[0]) != "Nothing happens."
    assert games > NUM_MUTATED_FILES / 40
    assert games + refused == NUM_MUTATED_FILES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 200_000, "loading leaks memory"
