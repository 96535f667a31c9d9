"""Training data of ScienceWorld from a house that answers as the simulator does, and playing as the teacher says."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from embodied_mem.agents.deliveries import CompiledMemory, make_delivery
from embodied_mem.agents.rollout import play
from embodied_mem.compiler.brief_state import BriefState, apply_all
from embodied_mem.compiler.executor import Turn
from embodied_mem.compiler.memory_compiler import Compiled
from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.compiler.prompts import Shown
from embodied_mem.training import bundle, sft
from embodied_mem.worlds.scienceworld import jvm as scienceworld_jvm
from experiments import train
from experiments.solvers.scienceworld.narration import BriefScienceWorld, Outcome, PathBank, experience_of
from experiments.solvers.scienceworld.recordings import Recording, bisected, record, record_all, training_pairs
from experiments.solvers.scienceworld.samples import align, positions, samples_of, solution_of

pytestmark = pytest.mark.slow

THINGS = ("spoon", "fork", "knife", "bowl")
SOLUTION = ("open door to kitchen", "go to kitchen", "open drawer", "pick up {}", "focus on {}")


class House:
    """Two rooms; in the kitchen a drawer, closed, with the thing of the variation. Speaks like `Simulator`."""

    def __init__(self, *, answers_within_s: float = 60.0):
        self.answers_within_s = answers_within_s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def load(self, game: str, variation: int) -> None:
        self.thing = THINGS[variation]
        self.goal = f"Your task is to find the {self.thing}. First, focus on the {self.thing}."
        self.room, self.open, self.door, self.held = "hallway", False, False, False
        self.first_text = self.look()

    def gold_path(self, game: str, variation: int) -> list[str]:
        self.load(game, variation)
        return [command.format(self.thing) for command in SOLUTION]

    def look(self) -> str:
        other = {"hallway": "kitchen", "kitchen": "hallway"}[self.room]
        inside = f"open. In the drawer is: a {self.thing}." if self.open and not self.held else "closed."
        things = f"\ta drawer. The drawer door is {inside}\n" if self.room == "kitchen" else ""
        state = "open" if self.door else "closed"
        return (
            f"This room is called the {self.room}. In it, you see: \n{things}You also see:\n"
            f"\tA door to the {other} (that is {state})"
        )

    def step(self, command: str) -> tuple[str, int, bool]:
        if command == "look around":
            return self.look(), 0, False
        if re.fullmatch("open door to (kitchen|hallway)", command) and command.split()[-1] != self.room:
            self.door = True
            return "The door is now open.", 0, False
        if (found := re.fullmatch("go to (kitchen|hallway)", command)) and found[1] != self.room:
            if not self.door:
                return "The door is not open.", 0, False
            self.room = found[1]
            return f"You move to the {self.room}.", 0, False
        if command == "open drawer" and self.room == "kitchen":
            self.open = True
            return "The drawer is now open.", 0, False
        if command == f"pick up {self.thing}" and self.room == "kitchen" and self.open:
            self.held = True
            return f"You move the {self.thing} to the inventory.", 50, False
        if command == f"focus on {self.thing}" and self.held:
            return f"You focus on the {self.thing}.", 100, True
        return "No known action matches that input.", 0, False

    def subgoals(self) -> tuple[int, int]:
        return int(self.held), 2


def recorded(variation: int, detour: float) -> Recording:
    return record(House(), "find", variation, detour, np.random.default_rng(variation))


def test_a_recording_without_detours_is_the_solution_with_a_look_around_where_something_is_done():
    recording = recorded(0, 0.0)
    assert [step.command for step in recording.steps] == [
        "open door to kitchen", "go to kitchen", "look around", "open drawer", "pick up spoon", "focus on spoon",
    ]  # fmt: skip
    assert all(step.command == step.label for step in recording.steps)
    assert recording.score == 100


def test_detours_are_labelled_with_the_teachers_command_and_the_episode_is_still_won():
    walks = early = 0
    for seed in range(20):
        recording = record(House(), "find", 1, 0.5, np.random.default_rng(seed))
        assert recording.score == 100
        for before, step in zip(recording.steps, recording.steps[1:]):
            if before.command == "go to hallway" and before.label != "go to hallway":
                walks += 1
                assert (step.command, step.label) == ("go to kitchen", "go to kitchen")
        early += sum("No known action" in step.answer for step in recording.steps)
        assert not any("No known action" in answer for answer in solution_of(recording).answers)
    assert walks > 3
    assert early > 3


def test_recordings_are_kept_and_a_cut_line_is_recorded_again(tmp_path, monkeypatch):
    made = []

    class Counted(House):
        def gold_path(self, game, variation):
            made.append(variation)
            return super().gold_path(game, variation)

    monkeypatch.setattr(scienceworld_jvm, "Simulator", Counted)
    pairs, file = [("find", i) for i in range(3)], tmp_path / "recordings.jsonl"
    first = record_all(pairs, file, detour=0.3, seed=0)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:2]) + lines[2][:40])
    assert record_all(pairs, file, detour=0.3, seed=0) == first
    assert made == [0, 1, 2, 2]
    assert len([line for line in file.read_text().splitlines() if line.endswith("}")]) == 3
    json.loads(file.read_text().splitlines()[-1])


def test_commands_are_aligned_in_order_by_verb_and_words():
    theirs = ["pick up green wire", "focus on water", "wait", "pick up cup"]
    ours = ["pick up blue wire", "wait", "focus on lead", "pick up cup"]
    assert align(ours, theirs) == {0: 0, 1: 2, 3: 3}  # the equal one wins
    assert align([], theirs) == {} == align(theirs, [])


def test_now_is_the_line_that_is_worked_towards():
    played, other = recorded(0, 0.0), solution_of(recorded(1, 0.0))
    memory = experience_of(other, played.goal)
    assert [line.command for line in memory.lines] == ["open drawer", "pick up spoon", "focus on spoon"]
    assert positions(played, memory.lines) == [0, 0, 0, 0, 1, 2]
    again = dataclasses.replace(played, steps=(*played.steps[:4], *[played.steps[4]] * 3, played.steps[5]))
    assert positions(again, memory.lines) == [0, 0, 0, 0, 1, 1, 1, 2]


def test_the_brief_state_of_a_sample_is_what_the_outputs_before_made_of_it():
    samples = samples_of([recorded(i, 0.3) for i in range(4)], draws=9, seed=0)
    assert samples == samples_of([recorded(i, 0.3) for i in range(4)], draws=9, seed=0)
    misled = right = 0
    for sample in samples:
        text = sample.compiler_prompt.partition("goal: ")[2].partition("\n> ")[0]
        state, errors = BriefState.parse("goal: " + text)
        output = parse_output(sample.output)
        after, refused = apply_all(output.edits, state)
        assert (errors, refused, output.well_formed, output.guidance) == (0, 0, True, sample.action)
        assert f"\n{after.current}" in sample.memory  # a line of the memory
        number, _, command = after.current.partition(" ")
        right += sample.action == command
        misled += bool(state.current) and int(state.current.split()[0]) > int(number)
    assert misled > 0  # a false belief further on was taken back
    assert right > len(samples) / 3
    assert samples_of([recorded(0, 0.0)], draws=1, seed=0) == []  # there is no memory but its own


class Worlds:
    """The vector API over houses."""

    max_steps = 12

    def __init__(self, variations):
        self.variations, self.num_envs = variations, len(variations)
        self.houses = [House() for _ in variations]

    def reset(self, *, options):
        for house, index in zip(self.houses, options["task_indices"]):
            house.load("find", self.variations[index])
        self.done, self.count = [False] * self.num_envs, 0
        info = self._info([0] * self.num_envs)
        return [f"{house.first_text}\n\n{house.goal}" for house in self.houses], info

    def step(self, commands):
        self.count += 1
        rows = [house.step(command) for house, command in zip(self.houses, commands)]
        ended = np.array([over for _, _, over in rows])
        cut = np.full(self.num_envs, self.count == self.max_steps)
        return [text for text, _, _ in rows], None, ended, cut, self._info([score for _, score, _ in rows])

    def subgoals(self, index):
        return self.houses[index].subgoals()

    def _info(self, scores):
        scores = np.array(scores)
        return {
            "goal": [house.goal for house in self.houses],
            "task_id": [f"find/{variation}" for variation in self.variations],
            "won": scores == 100, "progress": scores / 100, "score": scores,
            "crashed": np.zeros(self.num_envs, bool),
        }  # fmt: skip


class Obedient:
    """An executor that does what the hint says, and looks around without one."""

    def act(self, prompts, keys, soft=None):
        hints = [re.findall(r"^hint: (.*)$", prompt, re.MULTILINE) for prompt in prompts]
        return Turn([hint[-1] if hint else "look around" for hint in hints], [0] * len(prompts), [0] * len(prompts))


class Taught:
    """A compiler that has learned the samples by heart."""

    num_soft = 0

    def __init__(self, samples):
        self.known = {sample.compiler_prompt: sample.output for sample in samples}

    def compile(self, prompts, keys, soft=True):
        none = np.zeros(0)
        return [Compiled(parse_output(self.known[prompt]), [], none, none) for prompt in prompts]


@pytest.mark.parametrize("name", ["none", "compiled"])
def test_what_is_taught_is_what_is_asked_when_playing(name, monkeypatch):
    monkeypatch.setattr("experiments.solvers.scienceworld.samples.FALSE_NOW", 0.0)
    recordings = [recorded(0, 0.0), recorded(1, 0.0)]
    compiler = Taught(samples_of(recordings, draws=1, seed=0))
    delivery = CompiledMemory(compiler) if name == "compiled" else make_delivery(name)
    world = BriefScienceWorld(Worlds([0, 1]))
    bank = PathBank([solution_of(recording) for recording in recordings])
    trajectories = play(world, Obedient(), delivery, bank, tasks=range(2), seeds=[0, 0], top_k=1, shown=Shown(1))
    assert [t.won for t in trajectories] == [name == "compiled"] * 2
    lost, won = Outcome(0, 0, 0.0, 12, 0), Outcome(1, 100, 1.0, 6, 0)
    assert world.outcomes == [won if name == "compiled" else lost] * 2


def test_one_command_trains_on_recordings_and_plays_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scienceworld_jvm, "Simulator", House)
    monkeypatch.setattr(scienceworld_jvm, "official_variations", lambda split: [("find", i) for i in range(4)])
    given = {}
    monkeypatch.setattr(sft, "train_executor", lambda run, samples: "executor")
    monkeypatch.setattr(sft, "train_compiler", lambda run, samples, executor: given.update(s=samples))
    monkeypatch.setattr(bundle, "save_bundle", lambda folder, *parts: given.update(folder=folder, executor=parts[2]))
    arguments = ["--config=scienceworld", "--run_dir", str(tmp_path), "--world.num_train", "4"]
    arguments += ["--grpo.num_tasks", "4", "--model.vocab_size", "300"]
    assert train.main(arguments)["samples"] == len(given["s"]) > 12
    recordings = record_all(training_pairs(4), tmp_path / "recordings.jsonl", detour=0.12, seed=0)
    assert given == {
        "s": samples_of(recordings, draws=3, seed=0),
        "folder": tmp_path / "weights",
        "executor": "executor",
    }
    out = capsys.readouterr().out
    assert "recordings: 4 of 4 training variations reached the whole score" in out
    assert f"--config=scienceworld --agents --deliveries none static compiled --weights {tmp_path}/weights" in out
    with pytest.raises(SystemExit, match="2"):
        train.main([*arguments, "--grpo.steps", "1"])
    assert "data.banks: expected none with scienceworld, which is recorded" in capsys.readouterr().err


def test_every_beginning_is_spread():
    assert bisected(range(8)) == [0, 4, 2, 6, 1, 5, 3, 7]
    assert sorted(bisected(range(5))) == list(range(5))
    assert bisected([7]) == [7]
