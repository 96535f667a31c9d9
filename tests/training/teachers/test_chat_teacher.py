"""The chat teacher against scripted answers: what is readable becomes a lesson, what is not is counted."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
from chat_answers import Server, reply

from embodied_mem import registry
from embodied_mem.compiler.brief_state import BriefState, apply_all
from embodied_mem.compiler.executor import Turn
from embodied_mem.compiler.output_grammar import OutputType, parse_output, render_output
from embodied_mem.compiler.view import compile_prompt, start_state, start_view
from embodied_mem.errors import InvalidInputError
from embodied_mem.language import OpenAIChatModel, RecordedChatModel
from embodied_mem.language.chat import ChatReply, UsageMeter
from embodied_mem.training import sft
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import bank_of, make_tasks, teach_bank
from embodied_mem.training.teachers.chat_teacher import (
    MAX_EDITS,
    ChatTeacher,
    TeacherError,
    TeacherStatistics,
    taught_by,
)
from embodied_mem.training.teachers.dagger import acts_on_guidance
from embodied_mem.training.teachers.episodes import play_teacher
from embodied_mem.training.teachers.games import Games
from embodied_mem.worlds.alfworld.tasks import AlfworldTasks
from embodied_mem.worlds.alfworld.wording.follower import Follower
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher, TeacherNoise
from experiments import train
from experiments.configs import cli, load

ROOM = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
    "cabinet 2, a cabinet 1, a fridge 1, and a sinkbasin 1.\n\nYour task is to: put a clean apple in fridge."
)
GOAL = "put a clean apple in fridge."
COMMANDS = AlfworldTasks(load("alfworld").world, 0).commands()


class Scripted:
    """A chat model that gives prepared answers and keeps what it was asked."""

    def __init__(self, *answers: str):
        self.name, self.meter = "scripted", UsageMeter()
        self.answers, self.asked = list(answers), []

    def complete(self, messages, **options):
        self.asked.append((messages, options))
        return ChatReply(self.answers.pop(0))


def answer(output: str, action: str, reference: str = "") -> str:
    """An answer with the parts of an output; a line that is no edit stays."""
    parts = parse_output(output)
    edits = [line for line in output.split("\n")[1:] if not line.startswith(("do: ", "why: "))]
    rest = {"edits": edits, "do": parts.guidance, "why": parts.reason}
    return json.dumps({**rest, "action": action, "reference": reference})


def test_a_chat_teacher_that_says_what_the_rules_say_gives_the_same_lessons():
    rules = RuleTeacher()
    first = rules.begin(GOAL, ROOM, ())
    took = "You arrive at fridge 1. The fridge 1 is closed."
    second = rules.next(first.action, took, first.state)
    model = Scripted(
        *(answer(render_output(lesson.output), lesson.action, lesson.reference) for lesson in (first, second))
    )
    teacher = ChatTeacher(model, COMMANDS)
    assert teacher.begin(GOAL, ROOM, ()) == first
    assert teacher.next(first.action, took, first.state) == second
    assert teacher.statistics == TeacherStatistics(answers=2)
    system, user = model.asked[0][0]
    assert system["role"] == "system"
    assert "room: cabinet 2; fridge 1; sinkbasin 1" in user["content"]
    assert model.asked[0][1]["response_format"]["type"] == "json_schema"


def test_illegal_edits_are_left_out_and_counted():
    model = Scripted(
        answer("hybrid\n+ now: find apple\n- seen: mug 1\n+ nonsense\ndo: find apple in fridge 1", "go to fridge 1")
    )
    teacher = ChatTeacher(model, COMMANDS)
    lesson = teacher.begin(GOAL, ROOM, ())
    assert render_output(lesson.output) == "hybrid\n+ now: find apple\ndo: find apple in fridge 1"
    assert lesson.state.current == "find apple"
    assert teacher.statistics.malformed == 1


@pytest.mark.parametrize("text", ["", "not json", "[]", answer("noaction", "look")[:-1]])
def test_an_unreadable_answer_is_no_guidance(text):
    lesson = ChatTeacher(Scripted(text, text), COMMANDS).begin(GOAL, ROOM, ())
    assert lesson.output.type is OutputType.NOACTION
    assert (lesson.action, lesson.state) == ("look", start_state(GOAL, "cabinet 2; fridge 1; sinkbasin 1"))


def test_an_answer_that_repeats_itself_is_asked_for_once_more_with_the_error_named():
    endless = "brief" + "\n+ now: find apple" * (MAX_EDITS + 1)
    model = Scripted(answer(endless, "look"), answer("brief\n+ now: find apple", "go to fridge 1"))
    teacher = ChatTeacher(model, COMMANDS)
    assert teacher.begin(GOAL, ROOM, ()).state.current == "find apple"
    assert teacher.statistics == TeacherStatistics(answers=1)
    assert f"at most {MAX_EDITS}, not {MAX_EDITS + 1}" in model.asked[1][0][-1]["content"]


def test_a_teacher_that_is_mostly_unreadable_stops():
    statistics = TeacherStatistics()
    for _ in range(19):
        ChatTeacher(Scripted("?", "?"), COMMANDS, statistics).begin(GOAL, ROOM, ())
    with pytest.raises(TeacherError, match="20 of 20 answers"):
        ChatTeacher(Scripted("?", "?"), COMMANDS, statistics).begin(GOAL, ROOM, ())


def test_the_user_message_is_the_compilers_prompt():
    model = Scripted(answer("noaction", "look"))
    teacher = ChatTeacher(model, COMMANDS)
    teacher.begin(GOAL, ROOM, ())
    assert model.asked[0][0][1]["content"] + "\n=" == compile_prompt(teacher._view)


def test_the_worked_outputs_are_legal():
    """Every edit of both is admitted by the Brief State of its example."""
    system = ChatTeacher(Scripted(), COMMANDS)._instruction
    examples = re.findall(r"^goal: .*?(?=^>)|^\{[^\n]*\}$", system.partition("Example: ")[2], re.DOTALL | re.MULTILINE)
    assert len(examples) == 4
    for state, text in zip(examples[::2], examples[1::2]):
        output = parse_output("\n".join(json.loads(text)["edits"]))
        assert output.malformed == 0
        after, refused = apply_all(output.edits, BriefState.parse(state)[0])
        assert refused == 0
        assert after.current == ("put keychain in sidetable" if "now: " in state else "find keychain")


@pytest.mark.parametrize(
    ("world", "says", "not_says"),
    [
        ("alfworld", "move O to P", "slice"),
        ("eb_alfred", "cuts it", "inventory"),
        ("eb_habitat", "move O to P", "clean O"),
    ],
)
def test_each_world_tells_its_commands(world, says, not_says):
    sides = WorldConfig(name=world, train="train", valid="held_out" if world != "alfworld" else "valid_seen")
    source = registry.load(world, "tasks")(sides, 0)
    model = Scripted(answer("noaction", "look"))
    ChatTeacher(model, source.commands()).begin(GOAL, ROOM, ())
    system = model.asked[0][0][0]["content"]
    told = system.partition("in one of these forms:\n")[2].partition('"reference"')[0]
    assert told.startswith("go to P, open P")
    assert says in told
    assert ("clean O with P" in system.partition('"action" is')[0]) == (world != "eb_habitat")
    assert not_says not in told
    older = dataclasses.replace(load("alfworld").world, grammar="0.3")
    assert "put O in/on P" in AlfworldTasks(older, 0).commands()


def test_the_play_is_misled_as_the_worlds_noise_says_and_not_at_all_without():
    text = answer("brief\n+ now: find apple", "go to fridge 1")
    closed, shows = "You arrive at fridge 1. The fridge 1 is closed.", "On the cabinet 1, you see a mug 1."

    def said(noise):
        teacher = ChatTeacher(Scripted(text), COMMANDS, noise=noise)
        lesson = teacher.begin(GOAL, ROOM, ())
        misled = teacher.mislead(lesson, lesson.action, closed, "cabinet 2; fridge 1", np.random.default_rng(0))
        return lesson, misled, teacher.imagined_answer(shows, "apple", np.random.default_rng(0))

    lesson, (misled, action), imagined = said(TeacherNoise())
    assert (action, len(misled.state.locations)) == (lesson.action, 1)
    assert imagined.startswith("On the cabinet 1, you see ")
    assert imagined != shows
    lesson, misled, imagined = said(None)
    assert (misled, imagined) == ((lesson, lesson.action), "")


def config_of(num_train: int = 8):
    like = load("grpo_cpu")
    return dataclasses.replace(like, world=dataclasses.replace(like.world, num_train=num_train, num_valid=1, homes=1))


def taught(config, tasks):
    """A pass over the training games, with detours, imagined answers and a teacher without memory."""
    bank = bank_of(tasks.train, tasks.num_train, tasks.make_teacher, seed=0, each=tasks.each)
    data = play_teacher(
        tasks.train, range(tasks.num_train), bank, tasks.make_teacher,
        top_k=2, detour=0.2, imagined=0.5, seed=1, plain=True, each=tasks.each,
    )  # fmt: skip
    return bank.records, data


def listening(make, said):
    """Teachers by rules; `said` gets what a model would have to answer to each prompt."""

    class Listening:
        def __init__(self, rules):
            self.rules, self.mislead, self.imagined_answer = rules, rules.mislead, rules.imagined_answer

        def begin(self, goal, first_observation, experiences):
            self.view = start_view(goal, first_observation, experiences)
            return self.keep(self.rules.begin(goal, first_observation, experiences))

        def next(self, action, observation, state):
            self.view.turns.append((action, observation))
            self.view.state = state
            return self.keep(self.rules.next(action, observation, state))

        def keep(self, lesson):
            text = answer(render_output(lesson.output), lesson.action, lesson.reference)
            prompt = compile_prompt(self.view).removesuffix("\n=")
            assert said.setdefault(prompt, text) == text
            return lesson

    return lambda task: Listening(make(task))


def test_a_run_taught_by_a_model_that_says_what_the_rules_say_is_the_same_run(tmp_path, monkeypatch):
    """In four threads, behind a server; then again from the recording, and with every answer missing."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    said = {}
    config = config_of()
    tasks = make_tasks(config)
    rules = taught(config, dataclasses.replace(tasks, make_teacher=listening(tasks.make_teacher, said)))
    assert len(rules[1].samples) > 40
    server = Server(lambda body: reply(said.get(body["messages"][1]["content"], "?")))
    path, statistics = tmp_path / "teacher.jsonl", TeacherStatistics()
    try:
        model = RecordedChatModel(OpenAIChatModel(server.url, "wise"), path)
        assert taught(config, taught_by(model, make_tasks(config), statistics, num_threads=4)) == rules
    finally:
        server.close()
    assert (statistics.unreadable, statistics.malformed) == (0, 0)
    assert statistics.answers == model.meter.calls > len(rules[1].samples)
    again = RecordedChatModel(None, path, name="wise")
    assert taught(config, taught_by(again, make_tasks(config), TeacherStatistics(), num_threads=4)) == rules
    with pytest.raises(TeacherError, match="were not the JSON object"):
        taught(config, taught_by(Scripted(*["?"] * 500), make_tasks(config), TeacherStatistics()))


class Slow:
    """An executor that looks first, goes somewhere or carries guidance out, and wins no game with a mug."""

    def act(self, prompts, keys, soft=None, choices=None, pictures=None):
        return Turn(list(map(self.command, prompts)), [1] * len(prompts), [1] * len(prompts))

    def command(self, prompt):
        if "> " not in prompt or "mug" in prompt.partition("\n")[0]:
            return "look"
        places = re.search("^room: (.*)$", prompt, re.MULTILINE)[1].split("; ")
        return Follower().act([prompt], None).actions[0] if "hint: " in prompt else f"go to {places[0]}"


class Sampled(Exception):
    """Ends a run when its samples are there."""


def samples_of(arguments, monkeypatch):
    """The samples that `train.py` trains its executor on."""

    def stop(run, samples):
        raise Sampled(samples)

    monkeypatch.setattr(sft, "train_executor", stop)
    with pytest.raises(Sampled) as ended:
        train.main(arguments)
    return ended.value.args[0]


def test_a_run_learns_what_an_executor_won_by_the_teachers_guidance(tmp_path, monkeypatch):
    """The command of both models; games that the executor loses teach nothing, and its own commands are the labels."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    fields = ["--world.num-train", "8", "--world.num-valid", "1", "--world.homes", "1", "--data.passes", "1"]
    record = str(tmp_path / "teacher.jsonl")
    models = ["--teacher", "chat", "--teacher_model", "wise", "--teacher_executor", "small", "--teacher_record", record]
    _, config = cli([*fields, *models], "")
    said, tasks = {}, make_tasks(config)
    act = acts_on_guidance(Slow(), config)
    tasks = dataclasses.replace(tasks, make_teacher=listening(tasks.make_teacher, said), act=act)
    bank = teach_bank(config, "", tasks)
    expected = Games(config, tasks, bank).lessons()

    def answered(body):
        asked = body["messages"][-1]["content"]
        if body["model"] == "wise":
            return reply(said.get(asked, "?"))
        assert body["stop"] == ["\n"]
        return reply(Slow().act([asked], None).actions[0])

    server = Server(answered)
    command = [*fields, *models, "--unchecked"]
    try:
        asking = [*command, "--teacher_server", server.url, "--run_dir", str(tmp_path / "one")]
        samples = samples_of(asking, monkeypatch)
    finally:
        server.close()
    assert samples == expected.samples
    assert samples_of([*command, "--run_dir", str(tmp_path / "two")], monkeypatch) == samples
    assert not [sample for sample in samples if "mug" in sample.view[0]]
    assert {sample.action for sample in samples if not sample.view[2]} == {"look"}
    assert not [episode for episode, _ in bank.records if "mug" in episode.goal]
    assert 0 < expected.num_lost < 8 > len(bank) > 0


def test_the_command_line_names_the_teacher():
    plain = load("grpo_cpu")
    options, config = cli(["--teacher", "chat", "--teacher_model", "wise", "--teacher_record", "x.jsonl"], "")
    assert (options.teacher_record, config.data.teacher) == ("x.jsonl", "wise")
    assert config.fingerprint() != plain.fingerprint()
    for wrong in (["--teacher", "chat"], ["--teacher_model", "wise"]):
        with pytest.raises(InvalidInputError, match="--teacher: expected chat with --teacher_model"):
            cli(wrong, "")
