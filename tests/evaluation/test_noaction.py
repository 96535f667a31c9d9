"""Steps without guidance: how many there are, whether the teacher says nothing either, and what they save."""

import numpy as np
import pytest

from embodied_mem import envs
from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.rollout import play
from embodied_mem.compiler.executor import Turn
from embodied_mem.compiler.memory_compiler import Compiled
from embodied_mem.compiler.output_grammar import parse_output
from embodied_mem.evaluation.score import COUNTS, withheld_in, withheld_row
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.memory import Experiences
from embodied_mem.training.tasks import bank_of
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher

STEPS = 4


def teacher():
    return RuleTeacher(statistics_order)


class Looks:
    """An executor that looks around."""

    def act(self, prompts, keys, soft):
        return Turn(["look"] * len(prompts), [9] * len(prompts), [1] * len(prompts))


class Says:
    """A compiler that writes these texts, one a step, with two soft tokens."""

    num_soft = 2

    def __init__(self, *texts):
        self.texts = list(texts)

    def compile(self, prompts, keys, *, soft=True):
        output, none = parse_output(self.texts.pop(0)), np.zeros(0)
        return [Compiled(output, [], none, none, np.zeros((2, 3), np.float32)) for _ in prompts]


class Whole:
    """A bank that also gives what is known of the very task."""

    def __init__(self, bank):
        self._bank = bank

    def retrieve(self, goal, k, context, exclude_task_ids):
        return self._bank.retrieve(goal, k, context)


@pytest.fixture(scope="module")
def known() -> tuple[list, Experiences]:
    games = [game.load() for game in generate(12, seed=3, num_scenes=1)]
    return games, bank_of(
        envs.make("alfworld", tasks=games, num_envs=12, max_steps=50), 12, lambda _: teacher(), seed=0
    )


def played(games, bank, *texts):
    [trajectory] = play(
        envs.make("alfworld", tasks=games, num_envs=1, max_steps=STEPS), Looks(),
        make_delivery("compiled", Says(*texts)), bank, tasks=[0], seeds=[0], top_k=4,
    )  # fmt: skip
    return trajectory


GUIDED, SILENT, EDITS = "experience\ndo: find mug in desk 1", "noaction", "brief\n+ searched: desk 1"


def test_without_memory_silence_is_right_until_something_was_searched(known):
    """The teacher says nothing while nobody has searched; then it has the places that are left to say."""
    trajectory = played(known[0], Experiences(), SILENT, GUIDED, EDITS, SILENT)
    counts = withheld_in(trajectory, teacher)
    assert [*counts.values()][:5] == [4, 3, 4, 3, 2]  # the third edits the Brief State, so the fourth is due
    assert withheld_row(counts)["noaction_precision"] == withheld_row(counts)["noaction_recall"] == 2 / 3


def test_with_memory_of_this_room_silence_is_wrong(known):
    counts = withheld_in(played(known[0], Whole(known[1]), *[SILENT] * 4), teacher)
    assert (counts["withheld"], counts["nothing_due"], counts["rightly"]) == (4, 0, 0)
    assert withheld_row(counts)["noaction_precision"] == 0


def test_tokens_saved_are_those_of_the_guided_steps(known):
    tokenizer = train_bpe(["hint: find mug in desk 1"], 300)
    trajectory = played(known[0], Experiences(), GUIDED, SILENT, GUIDED, GUIDED)
    counts = withheld_in(trajectory, None, tokenizer)
    each = len(tokenizer.encode("\nhint: find mug in desk 1")) + 2
    assert [*counts.values()] == [4, 1, 0, 0, 0, 3 * each]
    row = withheld_row(counts)
    assert (row["noaction"], row["noaction_tokens_saved"]) == (0.25, each / 4)
    assert row["noaction_precision"] is row["noaction_recall"] is None


def test_what_has_no_compiler_says_nothing(known):
    assert withheld_row(dict.fromkeys(COUNTS, 0))["noaction"] == 0
