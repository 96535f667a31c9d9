"""The two stages with agents that only repeat what they remember: what is given, counted, compared, printed."""

import dataclasses
import json

import memento_house
import numpy as np
import pytest

from embodied_mem.errors import GameFileError, InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.worlds.memento import generator as generator
from embodied_mem.worlds.memento.agent.react import Reply
from embodied_mem.worlds.memento.data import load_records, load_tasks, tasks_of
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep
from experiments import evaluate
from experiments.configs import load
from experiments.solvers.memento.protocol import (
    ALL_HOUSES,
    Given,
    Recall,
    beside,
    build_profiles,
    missing_rates,
    play_stage,
    published_scores,
    recall,
    summary,
)
from experiments.solvers.memento.retrieval import TraceMemory


class Repeater:
    """Plays the actions of its first memory; says Done where it has none left."""

    def begin(self, instruction, observation, memories=(), profile=None):
        assert observation.startswith(f"Task: {instruction}\n\nFurniture:")
        self.actions = [step.action for step in memories[0].steps] if memories else []
        self.seen = []

    def act(self, observation):
        self.seen.append(observation)
        return Reply("as then", self.actions.pop(0) if self.actions else "Done[]")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = memento_house.write_household(tmp_path_factory.mktemp("house"))
    generator.write(generator.generate(folder, 12, seed=2), folder, folder)
    return folder


@pytest.fixture(scope="module")
def solved(root):
    """Traces of the scripted solutions, by acquisition episode."""
    traces = {}
    for record, task in zip(load_records("acquisition", root), load_tasks("acquisition", root)):
        steps = tuple(TraceStep("", action, "Result: ") for action in generator.solution(task))
        traces[record["episode_id"]] = Trace(record["episode_id"], "small", record["instruction"], steps)
    return traces


@pytest.fixture(scope="module")
def acquired(root, solved):
    records = load_records("acquisition", root)
    runs = play_stage(
        load_tasks("acquisition", root), records, Repeater, lambda r: Given((solved[r["episode_id"]],)), num_envs=5
    )
    return {run.episode_id: run for run in runs}


def test_acquisition_keeps_instruction_thoughts_actions_and_answers(root, acquired):
    records = load_records("acquisition", root)
    assert list(acquired) == [record["episode_id"] for record in records]
    assert sum(run.won for run in acquired.values()) >= 10  # the world's chance is another one than the script's
    run = next(run for run in acquired.values() if run.won)
    assert run.progress == 1.0
    assert run.sim_steps > 0
    assert run.trace.instruction == run.record["instruction"]
    assert run.cycles == len(run.trace.steps)
    assert run.trace.steps[-1].action == "Done[]"
    assert run.trace.steps[0].thought == "as then"
    assert run.trace.steps[0].observation.startswith("Result: ")


def test_utilisation_by_repeating_the_memory_that_ranks_first(root, acquired):
    memory = TraceMemory([run.trace for run in acquired.values()])
    records = load_records("single", root)
    runs = play_stage(load_tasks("single", root), records, Repeater, recall(memory, Recall(k=1)))
    row = summary(runs, acquired)
    assert row["sr"] >= 0.75
    assert row["delta_sr"][0] == pytest.approx(row["sr"] - np.mean([r.won for r in acquired.values()]))
    assert row["delta_sr"][1] <= row["delta_sr"][0] <= row["delta_sr"][2]


def test_a_needed_memory_replaces_a_hit_only_where_it_is_guaranteed(root, solved):
    wanted = load_records("joint", root)[0]
    memory = TraceMemory(solved.values())
    needed = set(wanted["metadata"]["related_episode_id"])
    question = {**wanted, "instruction": "zzz"}  # nothing to find them by
    free = recall(memory, Recall(k=2, guaranteed=False))(question)
    sure = recall(memory, Recall(k=2, guaranteed=True))(question)
    assert free.missing
    assert sure.missing
    assert {trace.episode_id for trace in sure.memories} == needed
    assert len(free.memories) == len(sure.memories) == 2
    assert {trace.episode_id for trace in recall(memory, Recall(k=1))(question).memories} >= needed


def test_a_run_at_the_limit_counts_the_call_that_is_not_played(root):
    records = load_records("acquisition", root)[:1]

    class Waiting(Repeater):
        def act(self, observation):
            return Reply("", "Wait[]")

    run = play_stage(tasks_of(records, root), records, Waiting, lambda record: Given(), max_steps=3)[0]
    assert (run.cycles, len(run.trace.steps), run.won) == (4, 3, False)


def test_profiles_are_told_the_instructions_of_their_own_house(root):
    records = load_records("acquisition", root)
    profiles = build_profiles(
        [*records, {**records[0], "scene_id": "other", "instruction": "I like my tea in the hall."}]
    )
    assert set(profiles) == {"small", "other"}
    known = [node for node in profiles["small"].nodes() if node["type"] == "knowledge"]
    assert len(known) >= len(records) // 2


def test_missing_rates_count_a_task_once_all_its_memories_are_found(root, solved):
    memory = TraceMemory(solved.values())
    records = load_records("joint", root)
    assert missing_rates(memory, records, "hybrid", 1)["all"] == 1.0  # one memory cannot be two
    assert missing_rates(memory, records, "hybrid", len(solved))["all"] == 0.0
    joined = TraceMemory([dataclasses.replace(trace, scene_id=ALL_HOUSES) for trace in solved.values()])
    assert missing_rates(joined, records, "hybrid", len(solved), all_houses=True)["all"] == 0.0
    assert missing_rates(memory, records, "hybrid", len(solved), all_houses=True)["all"] == 1.0  # of no scene at hand


def test_records_of_other_episodes_are_refused(root):
    with pytest.raises(InvalidInputError, match="same episodes in the same order"):
        play_stage(load_tasks("single", root), load_records("acquisition", root), Repeater, lambda record: Given())
    with pytest.raises(InvalidInputError, match=r"recall.k: expected >= 1"):
        Recall(k=0)


def test_the_command_plays_all_stages_and_ends_with_one_json_line(root, tmp_path, capsys):
    file = tmp_path / "memento.json"
    arguments = ["--config=memento", "--data", str(root), "--embedder", "lexical", "--triples_per_scene", "2"]
    tables = ["retrieval", "profile", "variants", "captions", "joined", "encoders"]
    trace = tmp_path / "trace.jsonl"
    evaluate.main([*arguments, "--result", str(file), "--tables", *tables, "--trace", str(trace), "--json"])
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    stages = ("acquisition", "single", "joint", "joint3")
    assert set(line) == {f"{s}_{m}" for s in stages for m in ("sr", "pc")} | {"missing_at_3", "missing_at_5"}
    assert line["acquisition_sr"] >= 50
    report = json.loads(file.read_text())
    assert report["line"] == line
    assert set(report["retrieval"]) >= {"similarity", "hybrid"}
    text = file.with_suffix(".md").read_text()
    assert "| hybrid | 3 |" in text
    assert "neither, single" in text
    assert set(report["captions"]) >= {"verbatim", "another's now", "now, blind"}
    assert "hybrid, noise 0.5, k 1" in text
    episodes = episodes_of(report)
    written = [json.loads(one) for one in trace.read_text().splitlines()]
    assert sorted((one["agent"], len(one["steps"])) for one in written) == sorted((e.subset, e.steps) for e in episodes)
    assert all(bool(one.get("experiences")) == (one["agent"] != "acquisition") for one in written)
    assert any(step["thought"] for one in written for step in one["steps"])


def test_what_is_asked_wrongly_is_named(root):
    with pytest.raises(InvalidInputError, match="memento trains nothing; run: python"):
        load("memento")
    for option, value, message in (
        ("embedder", "magic", "embedder: expected one of auto, minilm, lexical or a folder, got 'magic'"),
        ("strategy", "magic", "strategy: expected one of similarity, .*, got 'magic'"),
        ("k", "0", "k: expected >= 1, got 0"),
        ("max_steps", "0", "max_steps: expected >= 1, got 0"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            evaluate.main(["--config=memento", "--data", str(root), f"--{option}", value])


def test_a_stage_without_episodes_or_without_what_it_needs_is_named(tmp_path):
    folder = memento_house.write_household(tmp_path)
    stages = generator.generate(folder, 2, seed=2)
    arguments = ["--config=memento", "--data", str(folder), "--embedder", "lexical", "--tables"]
    generator.write(stages | {"single": []}, folder, folder)
    with pytest.raises(InvalidInputError, match="stage single: expected at least one episode, got none"):
        evaluate.main(arguments)
    generator.write(stages | {"acquisition": stages["acquisition"][:1]}, folder, folder)
    with pytest.raises(
        InvalidInputError, match=f"expected acquisition episode {generator.FIRST_ID + 1}, which it needs"
    ):
        evaluate.main(arguments)


HEADER = "experiment,model,setting,stage,episode_id,scene_id,type,subtype,percent_complete,success\n"


def test_published_scores_are_compared_on_the_episodes_that_both_have(acquired, tmp_path):
    first, second, *_ = (run for run in acquired.values() if run.won)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "per_episode.csv").write_text(
        HEADER
        + f"main_table,gpt-4o,acquisition,,{first.episode_id},,,,0.5,0\n"
        + f"main_table,gpt-4o,acquisition,,{second.episode_id},,,,1.0,1\n"
        + f"top_k,gpt-4o,acquisition,,{first.episode_id},,,,1.0,1\n"  # another experiment
        + "main_table,gpt-4o,acquisition,,elsewhere,,,,0.0,0\n"  # an episode that was not played
    )
    row = beside(list(acquired.values()), published_scores(tmp_path)["acquisition"]["gpt-4o"])
    assert (row["episodes"], row["sr"], row["pc"], row["our_sr"], row["our_pc"]) == (2, 0.5, 0.75, 1.0, 1.0)
    assert row["difference"][0] == 0.5
    assert beside([], {}) == {}
    assert published_scores(tmp_path / "results") == {}
    (tmp_path / "results" / "per_episode.csv").write_text("experiment,model\nmain_table,gpt-4o\n")
    with pytest.raises(GameFileError, match=r"per_episode\.csv: expected experiment"):
        published_scores(tmp_path)
