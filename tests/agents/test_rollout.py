"""Playing native games with a scripted executor: rows, deliveries, prompts, placeholders, no leaks."""

import functools
import warnings
from zlib import crc32

import jax
import numpy as np
import pytest
from flax import nnx
from scripted_play import PAIRS, Scripted, ScriptedCompiler, random_compiler, refilled, world

from embodied_mem.agents.deliveries import CompiledMemory, make_delivery
from embodied_mem.agents.rollout import play, row_keys
from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.executor_format import encode_prompts
from embodied_mem.compiler.memory_compiler import MemoryCompiler, buckets_within, fit
from embodied_mem.compiler.prompts import Shown, executor_prompt, split_soft
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.memory import Experiences, LifelongMemory
from embodied_mem.memory.pool import Reading
from embodied_mem.models import prompt_cache
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.generator import generate

pytestmark = pytest.mark.usefixtures("unoptimised")

SOFT = "<soft>"


def what(trajectory):
    hints = [(d.hint, None if d.soft is None else d.soft.tolist()) for d in trajectory.delivered]
    return trajectory.task, trajectory.seed, trajectory.episode, trajectory.progress, hints


@pytest.mark.parametrize("name", ["none", "compiled"])
def test_rows_do_not_depend_on_neighbours_or_order(name):
    def played(pairs, num_envs=8):
        trajectories = play(
            world(num_envs), Scripted(), make_delivery(name, random_compiler()), Experiences(),
            tasks=[t for t, _ in pairs], seeds=[s for _, s in pairs], top_k=2,
        )  # fmt: skip
        return [what(t) for t in trajectories]

    pairs = [(0, 0), (3, 0), (3, 1), (5, 9), (7, 0)]
    together = played(pairs)
    assert played(pairs[::-1]) == together[::-1]
    assert played(pairs[2:3], num_envs=1) + played(pairs[3:4], num_envs=3) == together[2:4]
    assert together[1][2].task_id == together[2][2].task_id
    assert together[1][2].steps != together[2][2].steps, "another seed, other actions"
    assert len({t[2].task_id for t in together}) == 4
    twice = played([(3, 1), (3, 1)])
    assert twice[0] == twice[1] == together[2]


class Winner(Scripted):
    """Wins game 0 and plays all others at random."""

    def act(self, prompts, keys, soft):
        turn = super().act(prompts, keys, soft)
        walkthrough = generate(1, seed=0, num_scenes=12)[0].walkthrough
        for i, prompt in enumerate(prompts):
            if prompt.startswith("task: put a pencil in shelf\n"):
                turn.actions[i] = walkthrough[len(self.prompts) - 1]
        return turn


def test_a_row_keeps_its_keys_when_another_leaves():
    def played(pairs):
        trajectories = play(
            world(4, max_steps=12), Winner(), make_delivery("none"), Experiences(),
            tasks=[t for t, _ in pairs], seeds=[s for _, s in pairs], top_k=2,
        )  # fmt: skip
        return [what(t) for t in trajectories]

    won, left = played([(0, 0), (3, 1)])
    assert len(won[2].steps) < len(left[2].steps) == 12
    assert played([(3, 1)]) == [left]


@pytest.mark.parametrize("name", ["none", "static", "compiled", "lifelong_compiled"])
def test_the_next_episode_takes_the_place_of_one_that_is_over_and_is_as_in_a_row_of_its_own(name):
    def played(num_envs):
        executor, compiler = Scripted(), ScriptedCompiler(lambda *read: f"experience\ndo: {crc32(repr(read).encode())}")
        reading = Reading(kinds=("experience", "place"))
        delivery = make_delivery(name, compiler, memory=LifelongMemory(), reading=reading)
        ending, trajectories = refilled(num_envs, executor, delivery, PAST)
        assert [len(t.episode.steps) for t in trajectories] == [1 + task % 3 for task, _ in PAIRS]
        return ending, [len(prompts) for prompts in executor.prompts], [what(t) for t in trajectories]

    _, running, straight = played(8)
    assert running == [8, 5, 3]
    ending, running, together = played(3)
    assert together == straight
    # Batches of three that wait for their last one would take 3 + 3 + 2 steps.
    assert (running, ending.resets) == ([3, 3, 3, 3, 3, 1], 4)
    assert played(1)[2] == straight


def test_refilled_rows_sample_the_same_tokens_in_one_program_per_shape():
    tokenizer = train_bpe(["goal: put a mug in shelf 1 > go to desk 1 brief noaction do: why: searched"] * 2, 300)
    shape = {"width": 16, "num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "head_dim": 8, "mlp_width": 16}
    decoder = Decoder(DecoderConfig(vocab_size=tokenizer.vocab_size, max_length=1024, **shape), rngs=nnx.Rngs(0))
    soft_mem = SoftMem(SoftMemConfig(4, embedding_std=0.02), compiler_width=16, executor_width=16, rngs=nnx.Rngs(1))

    def played(num_envs):
        compiler = MemoryCompiler(
            decoder, soft_mem, tokenizer, max_tokens=6, temperature=1.2, length_buckets=(896,), batch_buckets=(8,)
        )
        traced = prompt_cache._write._cache_size()
        _, trajectories = refilled(num_envs, Scripted(), make_delivery("compiled", compiler), PAST)
        return [t.delivered for t in trajectories], prompt_cache._write._cache_size() - traced

    (straight, traced), (together, traced_again) = played(8), played(3)
    assert (traced, traced_again) == (1, 0)
    for one, other in zip(straight, together, strict=True):
        for expected, got in zip(one, other, strict=True):
            np.testing.assert_array_equal(got.record.tokens, expected.record.tokens)
            for name in ("log_probs", "soft", "soft_log_density"):  # what is kept of another prompt rounds differently
                np.testing.assert_allclose(getattr(got.record, name), getattr(expected.record, name), atol=2e-6)


def test_every_seed_and_task_has_its_own_key():
    pairs = [(seed, task) for seed in range(5) for task in range(5)]
    keys = np.asarray(jax.random.key_data(row_keys([s for s, _ in pairs], [t for _, t in pairs])))
    assert len({tuple(key) for key in keys}) == 25


def test_trajectory_is_what_the_world_said():
    """Replaying the actions in a world of its own gives the same observations, end and progress."""
    (trajectory,) = play(
        world(2, max_steps=5), Scripted(), make_delivery("none"), Experiences(), tasks=[4], seeds=[3], top_k=1
    )
    replay = world(1, max_steps=5)
    observations, info = replay.reset(options={"task_indices": [4]})
    progress = [info["progress"][0]]
    for step in trajectory.episode.steps:
        assert step.observation == observations[0]
        observations, _, terminated, truncated, info = replay.step([step.action])
        progress.append(info["progress"][0])
    assert trajectory.episode.final_observation == observations[0]
    assert bool(terminated[0] or truncated[0])
    assert (trajectory.won, trajectory.progress) == (bool(info["won"][0]), max(progress))
    assert len(trajectory.delivered) == len(trajectory.executor_tokens) == len(trajectory.episode.steps) == 5


def test_won_rows_leave_the_batch():
    """Game 0 is won by a script; the other row plays on alone."""
    script = ["go to drawer 1", "open drawer 1", "look", "look", "look"]
    walkthrough = list(generate(1, seed=0, num_scenes=12)[0].walkthrough)
    executor = Scripted([*walkthrough, *script])
    done = []
    trajectories = play(
        world(2, max_steps=len(walkthrough) + 2), executor, make_delivery("none"), Experiences(),
        tasks=[0, 1], seeds=[0, 0], top_k=1, on_step=lambda running, won: done.append((running, won)),
    )  # fmt: skip
    assert [t.won for t in trajectories] == [True, False]
    assert [len(t.episode.steps) for t in trajectories] == [len(walkthrough), len(walkthrough) + 2]
    assert trajectories[0].progress == 1.0
    assert [len(p) for p in executor.prompts] == [2] * len(walkthrough) + [1, 1]
    assert done[len(walkthrough) - 1 :] == [(1, 1), (1, 1), (0, 1)]


def test_stops_at_the_callers_limit():
    (trajectory,) = play(
        world(1), Scripted(), make_delivery("none"), Experiences(), tasks=[0], seeds=[0], top_k=1, max_steps=2
    )
    assert len(trajectory.episode.steps) == 2
    assert not trajectory.won


def bank(*entries):
    """A bank of (task id, goal, rationale) in a room of its own."""
    filled = Experiences()
    for task_id, goal, rationale in entries:
        room = (
            f"You are in the middle of a room. Looking quickly around you, you see a desk 1.\n\nYour task is to: {goal}"
        )
        filled.add(Episode(task_id, goal, (Step(room, "look"),), True, "You won."), rationale)
    return filled


ROOM = "room: bed 1; desk 1; drawer 6; dresser 1; garbagecan 1; shelf 1; sidetable 1"
PAST = bank(("a/trial_T1", "put a pencil in shelf.", "pencil 1 was in desk 1; placed in shelf 1; 4 steps"))


def prompts_of(name, text=lambda *_: "noaction", steps=("go to desk 1", "examine desk 1", "inventory"), full_turns=1):
    executor, compiler = Scripted(steps), ScriptedCompiler(text)
    play(
        world(1), executor, make_delivery(name, compiler), PAST,
        tasks=[0], seeds=[0], top_k=2, shown=Shown(full_turns), max_steps=len(steps),
    )  # fmt: skip
    return [p[0] for p in executor.prompts], [p[0] for p in compiler.prompts], executor


def test_prompt_without_memory():
    prompts, compiled, executor = prompts_of("none")
    assert prompts[0] == f"task: put a pencil in shelf\n{ROOM}\n>"
    assert prompts[2].startswith(
        f"task: put a pencil in shelf\n{ROOM}\ndid: go to desk 1\n> examine desk 1\nOn the desk 1"
    )
    assert prompts[2].endswith(".\nat: desk 1\n>")
    assert compiled == []
    assert executor.soft == [[None]] * 3


def test_prompt_of_static_injection():
    """The same experiences at every step, and nothing else than without memory."""
    prompts, compiled, _ = prompts_of("static")
    memory = "memory:\nelsewhere: pencil was in desk 1; placed in shelf 1"
    assert prompts[0] == f"task: put a pencil in shelf\n{ROOM}\n{memory}\n>"
    assert [p.replace(f"{memory}\n", "") for p in prompts] == prompts_of("none")[0]
    assert compiled == []


GUIDE = "hybrid\n+ now: find pencil\ndo: find pencil in desk 1\nwhy: it was there"


def test_prompts_of_compiled_memory():
    prompts, compiled, executor = prompts_of(
        "compiled", lambda prompt, _: GUIDE if "now:" not in prompt else "noaction"
    )
    assert prompts[0] == f"task: put a pencil in shelf\n{ROOM}\nhint: find pencil in desk 1\n{SOFT * 4}\n>"
    assert prompts[1:] == prompts_of("none")[0][1:], "NOACTION gives nothing, not even soft tokens"
    assert [s[0] is None for s in executor.soft] == [False, True, True]
    memory = "memory:\nelsewhere: pencil was in desk 1; placed in shelf 1"
    room = "bed 1; desk 1; drawer 6; dresser 1; garbagecan 1; shelf 1; sidetable 1"
    left = "left: bed 1; desk 1; drawer 1; dresser 1; garbagecan 1; shelf 1; sidetable 1"
    assert compiled[0] == f"{memory}\ngoal: put a pencil in shelf\nroom: {room}\n> \n\n{left}\nput a pencil in shelf\n="
    memory, left = memory.replace("desk 1;", "desk 1 x;"), left.replace("desk 1; ", "")
    assert compiled[1].startswith(
        f"{memory}\ngoal: put a pencil in shelf\nnow: find pencil\nroom: {room}\n> go to desk 1\nYou arrive at desk 1."
    )
    assert compiled[1].endswith(f".\n{left}\nfind pencil\n=")


def test_prompts_of_the_ablations():
    prompts, compiled, executor = prompts_of("compiled_text", lambda *_: GUIDE)
    assert prompts[0] == f"task: put a pencil in shelf\n{ROOM}\nhint: find pencil in desk 1\n>"
    assert executor.soft == [[None]] * 3
    prompts, compiled, _ = prompts_of("compiled_no_brief", lambda *_: GUIDE)
    assert SOFT * 4 in prompts[0]
    assert f"\ngoal: put a pencil in shelf\n{ROOM}\ndid: go to desk 1\n> go to desk 1\n" in compiled[1]
    assert not any("find pencil" in p for p in compiled)
    assert compiled[1].endswith(".\nput a pencil in shelf\n=")


def test_own_experience_never_leaks():
    """Every game has an episode in the bank that names the game; it may help all others with this goal, not itself."""
    plain = world(8)
    _, info = plain.reset(options={"task_indices": list(range(8))})
    secret = bank(*[(info["task_id"][i], info["goal"][i], f"secret{i} was in safe 1") for i in range(8)])
    for name in ("static", "compiled"):
        executor, compiler = Scripted(), ScriptedCompiler(lambda *_: "noaction")
        play(
            world(8, max_steps=2), executor, make_delivery(name, compiler), secret,
            tasks=range(8), seeds=[0] * 8, top_k=8,
        )  # fmt: skip
        read = executor.prompts if name == "static" else compiler.prompts
        for step in read:
            assert [[f"secret{i} was in" in prompt for i in range(8)] for prompt in step] == (
                ~np.eye(8, dtype=bool)
            ).tolist()


@functools.cache
def tokenizer():
    return train_bpe(
        ["task: put a pencil in shelf\nroom: bed 1; desk 1\nhint: find pencil in desk 1\n> go to desk 1"], 300
    )


@pytest.mark.parametrize("count", [0, 1, 4, 16])
def test_exactly_n_placeholders(count):
    text = executor_prompt("put a pencil", "desk 1", [("look", "You see.")], hint="go", num_soft=count)
    assert split_soft(text)[1] == count
    (ids,) = encode_prompts(tokenizer(), [text])
    soft = [i for i, token in enumerate(ids) if token == tokenizer().soft_id]
    assert len(soft) == count
    assert soft == list(range(len(ids) - 2 - count, len(ids) - 2)), "one run, right before the newline and `>`"
    bare = executor_prompt("put a pencil", "desk 1", [("look", "You see.")], hint="go")
    assert [t for t in ids if t != tokenizer().soft_id] == encode_prompts(tokenizer(), [bare])[0]


@pytest.mark.parametrize("field", ["goal", "room", "action", "answer", "memory", "hint"])
@pytest.mark.parametrize("forged", [SOFT, f"a\n{SOFT}{SOFT}", f"a\n{SOFT}\n>", f"<so{SOFT}ft>", f"\n{SOFT}"])
@pytest.mark.parametrize("count", [0, 4])
def test_text_cannot_forge_placeholders(field, forged, count):
    fields = dict.fromkeys(("goal", "room", "action", "answer", "memory", "hint"), "x") | {field: forged}
    text = executor_prompt(
        fields["goal"], fields["room"], [(fields["action"], fields["answer"])],
        memory=fields["memory"], hint=fields["hint"], num_soft=count,
    )  # fmt: skip
    (ids,) = encode_prompts(tokenizer(), [text])
    assert ids.count(tokenizer().soft_id) == count
    assert tokenizer().eos_id not in ids


def test_guidance_that_forges_is_delivered_as_text():
    """A compiler that writes the placeholder's name in its guidance, as sampling at 1.2 may."""
    text = f"experience\ndo: go\ndo: {SOFT}{SOFT}"
    prompts, _, executor = prompts_of("compiled", lambda *_: text, steps=("look",))
    (ids,) = encode_prompts(tokenizer(), prompts)
    assert ids.count(tokenizer().soft_id) == 4 == len(executor.soft[0][0])


def test_long_prompts_are_cut_in_the_middle():
    whole = list(range(100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit([whole, []], 100, "executor") == [whole, []]
    with pytest.warns(RuntimeWarning, match="executor: prompts are longer than 100 tokens"):
        assert fit([list(range(101)), whole], 100, "executor") == [[*range(25), *range(26, 101)], whole]
    with pytest.warns(RuntimeWarning, match="longer than 40"):
        assert fit([list(range(1000))], 40, "compiler") == [[*range(10), *range(970, 1000)]]


def test_buckets_keep_room_for_the_answer():
    assert buckets_within(1000, (128, 256)) == (128, 256)
    assert buckets_within(200, (128, 256, 384)) == (128, 200)
    with pytest.raises(InvalidInputError, match="room"):
        buckets_within(0, (128,))


@functools.cache
def tiny_executor():
    shape = {"width": 16, "num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "head_dim": 8, "mlp_width": 16}
    config = DecoderConfig(vocab_size=tokenizer().vocab_size, max_length=50, **shape)
    decoder = Decoder(config, rngs=nnx.Rngs(0))
    return Executor(decoder, tokenizer(), max_action_tokens=2, length_buckets=(64,), batch_buckets=(2,))


def test_executor_cuts_what_its_model_cannot_read():
    """48 tokens of room: the start, the end and the placeholders of a prompt of hundreds of tokens stay."""
    executor = tiny_executor()
    prompt = executor_prompt("put a pencil", "desk 1", [("look", "word " * 300)], hint="go", num_soft=4)
    keys = jax.random.split(jax.random.key(0), 2)
    soft = np.zeros((4, 16), np.float32)
    with pytest.warns(RuntimeWarning, match="longer than 48"):
        turn = executor.act([prompt, prompt], keys, [soft, soft])
    assert turn.tokens_in == [48, 48]
    with pytest.warns(RuntimeWarning), pytest.raises(InvalidInputError, match=r"soft\[1\]: expected 4 .* got 0"):
        executor.act([prompt, prompt], keys, [soft, None])
    with pytest.warns(RuntimeWarning), pytest.raises(InvalidInputError, match=r"soft\[0\]: expected 0 .* got 4"):
        executor.act([prompt.replace(SOFT, "")], keys, [soft])


def test_a_constrained_executor_gives_commands_that_the_world_admits():
    tokenizer = train_bpe(["task: put a mug in shelf 1 > go to desk 1 take examine"], 300)
    shape = {"width": 16, "num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "head_dim": 8, "mlp_width": 16}
    decoder = Decoder(DecoderConfig(vocab_size=tokenizer.vocab_size, max_length=1024, **shape), rngs=nnx.Rngs(0))
    executor = Executor(
        decoder, tokenizer, max_action_tokens=40, temperature=2.0, length_buckets=(896,), batch_buckets=(4,)
    )
    settings = {"tasks": range(4), "seeds": [0] * 4, "top_k": 1, "max_steps": 3}
    made = make_delivery("none", None)
    played = play(world(4), executor, made, Experiences(), constrained=True, **settings)
    answers = [step.observation for t in played for step in t.episode.steps[1:]]
    assert answers
    assert not any("Nothing happens" in answer for answer in answers)
    assert len({step.action for t in played for step in t.episode.steps}) > 6
    with pytest.raises(InvalidInputError, match=r"choices: expected commands of at most 3 tokens, got '.+' with \d+"):
        Executor(decoder, tokenizer, max_action_tokens=3, length_buckets=(896,), batch_buckets=(1,)).act(
            ["task: a\n>"], jax.random.split(jax.random.key(0), 1), None, [["examine shelf 1"]]
        )

    class Silent:
        """A world that says nothing of what it admits."""

        num_envs, max_steps = 1, 3

        def reset(self, *, options):
            return ["A room."], {"goal": ["g"], "task_id": ["t"], "progress": [0.0]}

    with pytest.raises(InvalidInputError, match="expected a world that lists its admissible commands"):
        play(Silent(), executor, made, Experiences(), tasks=[0], seeds=[0], top_k=1, constrained=True)


def test_compiled_memory_without_soft_tokens_in_the_model():
    compiler = ScriptedCompiler(lambda *_: GUIDE)
    compiler.num_soft = 0
    assert CompiledMemory(compiler)._soft is False
