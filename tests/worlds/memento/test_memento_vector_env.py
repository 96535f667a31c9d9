"""The household vector env beside the conformance suite: invariants, scores, recorded answers, bad files."""

from __future__ import annotations

import gzip
import json
import random

import memento_house
import pytest
from mutations import mutated

import embodied_mem
from embodied_mem.envs.data_files import installed
from embodied_mem.errors import DataNotFoundError, GameFileError, InvalidInputError
from embodied_mem.worlds.memento.data import Houses, load_captions, load_records, load_tasks, read_tasks
from embodied_mem.worlds.memento.env import Env

NUM_MUTATED_FILES = 3_000
_PLACES = ("table_4", "cabinet_5", "bed_6", "chest_of_drawers_7", "floor_kitchen_1", "floor_bedroom_1")
_THINGS = ("cup_0", "book_1", "vase_2")
_ROOMS = ("kitchen_1", "bedroom_1", "porch_1")


@pytest.fixture
def data(tmp_path):
    goal = [memento_house.on_top("Vase_:0000", "table_4")]
    other = memento_house.episode(episode_id="2", instruction="Vase.", evaluation_propositions=goal)
    other |= {"evaluation_proposition_dependencies": [], "evaluation_constraints": []}
    return memento_house.write_data(tmp_path, memento_house.EPISODE, other)


def make(data, **options):
    return embodied_mem.envs.make("memento", tasks="acquisition", data=data, **options)


def random_action(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return f"Explore[{rng.choice(_ROOMS)}]"
    if kind == 1:
        return f"Pick[{rng.choice(_THINGS)}]"
    if kind == 2:
        near = rng.choice(("None, None", f"next_to, {rng.choice(_THINGS)}"))
        return f"Place[{rng.choice(_THINGS)}, {rng.choice(('on', 'within'))}, {rng.choice(_PLACES)}, {near}]"
    if kind == 3:
        return rng.choice((f"Open[{rng.choice(_PLACES)}]", "Wait[]", "hm", "Drop[x]", "FindObjectTool[cups]"))
    return f"Navigate[{rng.choice(_PLACES + _THINGS + _ROOMS)}]"


def test_invariants_of_random_play(data):
    """Nothing is in two places, what is shown is where it is, scores stay in range, the past is never unseen."""
    envs = make(data, num_envs=4, max_steps=None, seed=0)
    envs.reset()
    rng = random.Random(5)
    before = [[] for _ in range(4)]
    for _ in range(500):
        observations, rewards, _, _, info = envs.step([random_action(rng) for _ in range(4)])
        for i in range(4):
            if envs.env(i).ended:
                continue
            state = envs.env(i).state()
            lines = observations[i].partition("\nObjects: ")[2].split("\n")
            held = [name for name, entry in state["objects"].items() if entry["held"]]
            assert held == ([state["holding"]] if state["holding"] else [])
            shown = [] if lines == ["No objects found yet"] else [line.partition(": ")[0] for line in lines]
            assert shown[: len(before[i])] == before[i]
            assert set(shown) == {name for name, entry in state["objects"].items() if entry["known"]}
            before[i] = shown
            for line in lines if shown else []:
                name, _, where = line.partition(": ")
                entry = state["objects"][name]
                assert where == ("held by the agent" if entry["held"] else f"{entry['place']} in {entry['room']}")
            assert 0 <= info["progress"][i] <= 1
            assert (info["progress"][i] == 1) == info["won"][i] == (rewards[i] == 1)


def test_constraints_and_dependencies(tmp_path):
    """Vase first, then cup; the derivation is in the comments."""
    goal = [memento_house.on_top("Vase_:0000", "bed_6"), memento_house.on_top("Cup_:0000", "bed_6")]
    terminal = {"type": "TerminalSatisfactionConstraint", "args": {"proposition_indices": [1]}}
    order = {"type": "TemporalConstraint", "args": {"dag_edges": [[0, 1]], "n_propositions": 2}}
    need = [
        {"proposition_indices": [1], "depends_on": [0], "relation_type": kind, "dependency_mode": "any"}
        for kind in ("after_satisfied", "while_satisfied")
    ]
    bare = memento_house.episode(evaluation_propositions=goal, evaluation_proposition_dependencies=[])
    episodes = [
        bare | {"episode_id": "order", "evaluation_constraints": [order]},
        bare | {"episode_id": "terminal", "evaluation_constraints": [terminal]},
        bare | {"episode_id": "after", "evaluation_constraints": [], "evaluation_proposition_dependencies": need[:1]},
        bare | {"episode_id": "while", "evaluation_constraints": [], "evaluation_proposition_dependencies": need[1:]},
    ]
    tasks = load_tasks("acquisition", memento_house.write_data(tmp_path, *episodes))
    envs = embodied_mem.envs.make("memento", tasks=tasks, num_envs=4)

    def scores(*moves):
        envs.reset(options={"task_indices": [0, 1, 2, 3]})
        for thing, place in moves:
            for action in (f"Pick[{thing}]", f"Place[{thing}, on, {place}, None, None]"):
                info = envs.step([action] * 4, [{"response": "Successful execution!"}] * 4)[-1]
        return info["progress"].tolist()

    # In order: all count.
    assert scores(("vase_2", "bed_6"), ("cup_0", "bed_6")) == [1, 1, 1, 1]
    # Cup first: its first time is before the vase's, which cannot be made good; a dependency can, by looking again.
    assert scores(("cup_0", "bed_6"), ("vase_2", "bed_6")) == [0.5, 1, 1, 1]
    # The vase leaves before the cup comes: that stays satisfied, being not terminal; `while` asks for the last state.
    gone = (("vase_2", "bed_6"), ("vase_2", "table_4"), ("cup_0", "bed_6"))
    assert scores(*gone) == [1, 1, 1, 0.5]
    # The cup leaves at last: only the terminal constraint minds.
    assert scores(("vase_2", "bed_6"), ("cup_0", "bed_6"), ("cup_0", "table_4")) == [1, 0.5, 1, 1]


def test_errors_of_the_caller(data, tmp_path, monkeypatch):
    envs = make(data, num_envs=2)
    envs.reset()
    state = envs.env(0).state()
    with pytest.raises(InvalidInputError, match="one entry for each of 2 envs, got 1"):
        envs.step(["Wait[]"] * 2, [None])
    with pytest.raises(InvalidInputError, match="expected response, position, room or revealed, got 'answer'"):
        envs.step(["Wait[]"] * 2, [{"answer": ""}, None])
    for recorded, message in (
        (5, "expected a list, one entry per env, got int"),
        ([None, 5], r"recorded\[1\]: expected None or a dict, got int"),
        ([{"response": 5}, None], r"recorded\[0\]: .* got 'response': 5"),
        ([{5: "text"}, None], r"recorded\[0\]: .* got 5: 'text'"),
        ([{"position": [1, 2]}, None], "position as 3 numbers"),
        ([{"position": "abc"}, None], "position as 3 numbers"),
        ([{"revealed": "cup_0"}, None], "revealed as a list of str"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            envs.step(["Wait[]"] * 2, recorded)
    assert envs.env(0).state() == state
    assert "SyntaxError in Action" in envs.step(["\ud800", ""])[0][0]
    monkeypatch.delenv("EMBODIED_MEM_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match="EMBODIED_MEM_DATA/memento"):
        embodied_mem.envs.make("memento", tasks="single")
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path / "none"))
    assert installed("memento") is None
    with pytest.raises(DataNotFoundError, match="expected one of acquisition, single, joint"):
        embodied_mem.envs.make("memento", tasks="acquistion")
    with pytest.raises(DataNotFoundError, match="'single' is not installed"):
        embodied_mem.envs.make("memento", tasks="single", data=data)


def test_bad_files_are_refused_with_file_place_and_reason(data):
    file = data / "episodes" / "memory_acquisition_stage.json"

    def refusal(**changes):
        file.write_text(json.dumps({"episodes": [memento_house.episode(**changes)]}))
        with pytest.raises(GameFileError) as caught:
            load_tasks("acquisition", data)
        message = str(caught.value)
        assert message.startswith(f"{file}: line 1, column "), message
        return message

    assert "no house for the scene 'other'" in refusal(scene_id="other")
    assert "has no receptacle 'x|y'" in refusal(name_to_receptacle={"Cup_:0000": "x|y", "a": "", "b": ""})
    assert "name_to_receptacle has 3 objects, rigid_objs 0" in refusal(rigid_objs=[])
    assert "expected 1 to 64 evaluation_propositions, got 0" in refusal(evaluation_propositions=[])
    assert "unknown handle 'Spoon_:0000' in 'object_handles'" in refusal(
        evaluation_propositions=[memento_house.on_top("Spoon_:0000", "bed_6")]
    )
    circle = {"type": "TemporalConstraint", "args": {"dag_edges": [[0, 1], [1, 0]]}}
    assert "dag_edges has a circle" in refusal(evaluation_constraints=[circle])
    assert "whole number below 3, got '3'" in refusal(
        evaluation_constraints=[{"type": "TerminalSatisfactionConstraint", "args": {"proposition_indices": [3]}}]
    )
    assert "unknown type 'Magic'" in refusal(evaluation_constraints=[{"type": "Magic", "args": {}}])
    assert "'instruction': expected a string, got null" in refusal(instruction=None)
    (data / "captions.json").write_text('{"Cup": {"caption": 1}}')
    with pytest.raises(GameFileError, match=r"captions\.json: 'Cup': expected a category"):
        load_captions(data)
    memento_house.write_data(data)
    (data / "scenes.json").write_text('{"small": {"rooms": []}}')
    with pytest.raises(GameFileError, match=r"scenes\.json: line 1, column 11: the member 'floors' is missing"):
        load_tasks("acquisition", data)
    packed = data / "cut.json.gz"
    packed.write_bytes(gzip.compress(b'{"episodes": []}')[:-9])
    memento_house.write_data(data)
    with pytest.raises(GameFileError, match=r"cut\.json\.gz: cannot be unpacked"):
        load_tasks(packed)
    with pytest.raises(GameFileError, match=r"cut\.json\.gz"):
        load_records(packed)
    assert [record["episode_id"] for record in load_records("acquisition", data)] == ["1"]


def test_mutated_files_are_refused_or_played():
    """Cut, doubled, overwritten copies of the house and the episode: each is a task that can be played or refused."""
    rng = random.Random(3)
    labels = [(template, entry["category"], entry["caption"]) for template, entry in memento_house.CAPTIONS.items()]
    originals = [json.dumps(memento_house.SCENES).encode(), json.dumps({"episodes": [memento_house.EPISODE]}).encode()]
    words = [*map(str.encode, '{}[]",'), b"-1", b"1e9", b"null", b"\xff", b"table_4", b"kitchen_1", b"99", b'""']
    played = refused = 0
    for i in range(NUM_MUTATED_FILES):
        files, which = list(originals), rng.randrange(2)
        files[which] = mutated(files[which], rng, words)
        try:
            houses = Houses.from_text(files[0], f"houses {i}")
            tasks = read_tasks(files[1], f"tasks {i}", houses, labels, {})
        except GameFileError as error:
            refused += str(error).startswith((f"houses {i}: line", f"tasks {i}: line"))
            continue
        played += 1
        for task in tasks:
            env = Env(task, i)
            for action in ("Explore[kitchen_1]", "Pick[cup_0]", "Place[cup_0, on, bed_6, None, None]", "Done[]"):
                env.step(action)
            assert 0 <= env.progress <= 1
    assert played > NUM_MUTATED_FILES / 20
    assert refused > NUM_MUTATED_FILES / 2
    assert played + refused == NUM_MUTATED_FILES
