"""Controls of deliveries: rows, soft tokens on their way, guidance carried out by rule, the teacher's guidance."""

import types

import numpy as np
import pytest

from embodied_mem.agents.deliveries import FOR_THE_REST, CompiledMemory, make_delivery
from embodied_mem.agents.rollout import play
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.compiler.view import start_view
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.controls import Setting, settings_of, under
from embodied_mem.memory import Experiences
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import bank_of, sources_of
from embodied_mem.types import Episode, Step

SPREAD = np.tile(np.float32([-1, 1]), (8, 32))
"""Soft tokens of one row around their mean: float32[8, 64]."""


class Compiler:
    """Writes the same guidance always; its soft tokens count rows and calls."""

    num_soft = 8
    tokenizer = types.SimpleNamespace(cut=lambda text, count: " ".join(text.split()[:count]))

    def __init__(self):
        self.calls = 0

    def compile(self, prompts, keys, soft=True):
        from embodied_mem.compiler.memory_compiler import Compiled

        self.calls += 1
        output, none = CompilerOutput.make("find mug in desk 1", (), "memory 1"), np.zeros(0)
        return [Compiled(output, [], none, none, 10.0 * self.calls + row + SPREAD) for row in range(len(prompts))]


def delivered(soft="intact", hint_tokens=None, rows=3):
    views = [start_view("put a mug in desk.", "You see a desk 1.", []) for _ in range(rows)]
    delivery = CompiledMemory(Compiler(), soft_setting=soft, hint_tokens=hint_tokens)
    delivery.begin(views)
    return delivery.deliver(views, None)


def test_rows_say_what_differs_from_the_first():
    rows = settings_of(
        ("none", "static", "compiled", "compiled_text"), ("committed", "empty"), ("intact", "zero"), (8, 0)
    )
    assert [row.name for row in rows] == [
        "none", "static", "static bank=empty",
        "compiled", "compiled bank=empty", "compiled soft=zero", "compiled hint_tokens=0",
        "compiled_text", "compiled_text hint_tokens=0",
    ]  # fmt: skip
    assert [row.name for row in settings_of(("compiled",), ("empty",), ("zero",))] == ["compiled"]


@pytest.mark.parametrize("wrong", [{"bank": "rich"}, {"soft": "hard"}, {"soft": "zero+noise"}, {"delivery": "mail"}])
def test_a_setting_that_does_not_exist_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="expected one of"):
        Setting(**{"delivery": "compiled", **wrong})


def test_soft_tokens_on_their_way():
    assert [one.soft.mean() for one in delivered()] == [10, 11, 12]
    assert [one.soft.mean() for one in delivered("swapped")] == [11, 12, 10]
    assert not np.any([one.soft for one in delivered("zero")])
    for one, intact in zip(delivered("noise"), delivered()):
        assert abs(one.soft.mean() - intact.soft.mean()) < 0.25
        assert 0.8 < one.soft.std() < 1.2
        assert abs(np.corrcoef(one.soft.ravel(), intact.soft.ravel())[0, 1]) < 0.2
    assert {one.hint for one in delivered("swapped")} == {"find mug in desk 1"}
    only = delivered("only+swapped")
    assert {one.hint for one in only} == {""}
    assert [one.soft.mean() for one in only] == [11, 12, 10]


def test_a_hint_budget_cuts_the_guidance_and_nothing_else():
    assert {one.hint for one in delivered(hint_tokens=2)} == {"find mug"}
    assert {one.hint for one in delivered(hint_tokens=0)} == {""}
    assert {one.record.output.guidance for one in delivered(hint_tokens=0)} == {"find mug in desk 1"}


def test_the_teachers_guidance_carried_out_word_by_word_wins():
    """Both controls at once: what a perfect compiler could reach, and a rule in the executor's place."""
    world = WorldConfig(num_train=64, num_valid=24, num_scenes=4, max_steps=40)
    [source] = sources_of(world, 0)
    training, games = source.sides()
    known = bank_of(source.envs(training, num_envs=32), 64, lambda _: source.teacher(), seed=0)
    vector = source.envs(games, num_envs=len(games))
    executor = source.follower()
    delivery, bank, _ = under(Setting("teacher"), executor, None, known, source=source)
    played = play(vector, executor, delivery, bank, tasks=range(24), seeds=[0] * 24, top_k=4)
    assert sum(trajectory.won for trajectory in played) >= 16
    none, bank, _ = under(Setting("none"), executor, None, known, source=source)
    played = play(vector, executor, none, bank, tasks=range(24), seeds=[0] * 24, top_k=2)
    assert not any(trajectory.won for trajectory in played)


def test_whole_trajectories_leave_room_for_the_rest_of_the_prompt():
    step = Step("You see a desk 1.", "go to desk 1")
    bank = Experiences()
    bank.add_many([Episode(f"t{i}", "put a mug in desk.", (step,) * 4, True, "You won.") for i in range(9)])
    view = start_view("put a mug in desk.", "You see a desk 1.", bank.retrieve("put a mug in desk.", 9))
    executor = types.SimpleNamespace(
        tokenizer=types.SimpleNamespace(encode=str.split), length_buckets=(128, FOR_THE_REST + 100)
    )
    delivery = make_delivery("static_full", executor=executor)
    delivery.begin([view])
    [given, again] = (delivery.deliver([view], None)[0] for _ in range(2))
    assert given is again
    assert 90 < len(given.memory.split()) <= 100
    assert given.memory.startswith("past: put a mug in desk\nYou see a desk 1.\n> go to desk 1\nYou see a desk 1.\n")


def test_what_a_world_does_not_have_is_said():
    with pytest.raises(InvalidInputError, match="expected a teacher"):
        make_delivery("teacher")
    with pytest.raises(InvalidInputError, match="expected an executor"):
        make_delivery("static_full")
    with pytest.raises(InvalidInputError, match="carries out guidance"):
        under(Setting("guidance_only"), None, Compiler(), Experiences())
