"""Replies in tags: prompts with verl-agent's fields, a folder's chat template, a game that a server wins."""

from __future__ import annotations

import json
import re

import pytest
from chat_answers import Server, reply
from flax import nnx

from embodied_mem import envs
from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.rollout import play
from embodied_mem.compiler.think_action import ThinkAction, ThinkActionFormat, ThinkActionServer
from embodied_mem.errors import InvalidInputError
from embodied_mem.language import OpenAIChatModel
from embodied_mem.memory import Experiences
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import save_hf
from embodied_mem.worlds.alfworld.benchmark import AlfworldConfig, think_action, thinking_executor
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan

FIRST = "-= Welcome =-\n\nYou see a desk 1.\n\nYour task is to: put a mug on the desk."
TURNS = [("look", "Nothing."), ("go to desk 1", "You arrive."), ("help", "No.")]
FILE = "{current_observation}|{admissible_actions}\n---\n{task_description}|{step_count}|{history_length}|"
FILE += "{action_history}|{current_step}|{current_observation}|{admissible_actions}|{memory}\n"


@pytest.fixture
def scheme(tmp_path):
    (tmp_path / "prompts.txt").write_text(FILE)
    return ThinkAction.of_file(tmp_path / "prompts.txt", history=2)


def test_fields_are_written_as_verl_agent_writes_them(scheme):
    assert scheme.prompt(FIRST, [], ["look", "help"]) == f"{FIRST}|'look'"
    history = "[Observation 2: 'Nothing.', Action 2: 'go to desk 1']\n[Observation 3: 'You arrive.', Action 3: 'help']"
    expected = f"put a mug on the desk.|3|2|{history}|4|No.|'look'\n 'inventory'|\nWhat you remember:\nhere: mug"
    assert scheme.prompt(FIRST, TURNS, ["look", "inventory"], "here: mug") == expected


def test_our_sentences_ask_for_both_tags_and_hold_every_field():
    first, later = ThinkAction().prompt(FIRST, [], ["look"]), ThinkAction().prompt(FIRST, TURNS, ["look"], "a line")
    for prompt in (first, later):
        assert all(tag in prompt for tag in ("<think>", "</think>", "<action>", "</action>", "['look']"))
    assert "Action 1" not in later
    assert "a line" in later
    assert ThinkAction(history=0).prompt(FIRST, TURNS, ["look"]).count("[") == 1  # the actions alone


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("<think>the mug</think>\n<action> Go to  Desk 1 </action>", "go to desk 1"),
        ("<action>look</action><action>inventory</action>", "look"),
        ("look", ""),
        ("<think>a</think><action>look", ""),
        ("</action><action>", ""),
    ],
)
def test_a_reply_without_its_tags_is_no_command(said, command):
    assert ThinkAction.command(said) == command


def test_wrong_templates_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="first: expected current_observation"):
        ThinkAction(first="{task}")
    with pytest.raises(InvalidInputError, match="later: expected a template"):
        ThinkAction(later="{current_observation")
    (tmp_path / "one.txt").write_text("{current_observation}")
    with pytest.raises(InvalidInputError, match="a line ---"):
        ThinkAction.of_file(tmp_path / "one.txt")
    with pytest.raises(InvalidInputError, match="history"):
        ThinkAction(history=-1)


CHATML = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
    "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random model with a tokenizer of its own and a chat template with a system message."""
    import tokenizers

    folder = tmp_path_factory.mktemp("published")
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    raw.train_from_iterator([FIRST], trainer)
    raw.save(str(folder / "tokenizer.json"))
    shape = DecoderConfig(
        vocab_size=raw.get_vocab_size(), width=16, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8, mlp_width=32,
        max_length=2048,
    )  # fmt: skip
    save_hf(Decoder(shape, rngs=nnx.Rngs(0)), folder)
    return folder


def test_a_folders_own_chat_template_stands_around_the_prompt(folder, tmp_path):
    pytest.importorskip("jinja2")
    from embodied_mem.training.models import published_tokenizer

    tokenizer = published_tokenizer(folder)
    text = "Act. <|im_end|>"  # an observation cannot end the message
    (family,) = ThinkActionFormat(tokenizer, tmp_path).prompts([text])
    assert tokenizer.decode(family) == f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    for name, content in (("chat_template.jinja", CHATML), ("tokenizer_config.json", None)):
        (tmp_path / name).write_text(content or json.dumps({"chat_template": CHATML, "eos_token": "<|im_end|>"}))
        told = ThinkActionFormat(tokenizer, tmp_path)
        (ids,) = told.prompts([text])
        assert tokenizer.decode(ids) == (
            f"<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        )
        assert ids.count(tokenizer.id_of("<|im_end|>")) == 2
        assert tokenizer.id_of("<|im_end|>") in told.ends
        (tmp_path / name).unlink()
    (tmp_path / "chat_template.jinja").write_text("{{ raise_exception('no') }}")
    with pytest.raises(InvalidInputError, match="refuses a user's message: no"):
        ThinkActionFormat(tokenizer, tmp_path)


@pytest.mark.usefixtures("unoptimised")
def test_a_small_random_folder_plays(folder):
    config = AlfworldConfig(executor=str(folder), format="think_action", deliveries=("none",), reply_tokens=8)
    executor = thinking_executor(folder, 1.0, config.reply_tokens, 2)
    worlds = envs.make("alfworld", tasks=[game.load() for game in generate(2, seed=1)], num_envs=2, max_steps=2)
    played = play(
        worlds, executor, make_delivery("none"), Experiences(), tasks=[0, 1], seeds=[0, 0], top_k=0,
        scheme=think_action(config),
    )  # fmt: skip
    assert [[step.action for step in one.episode.steps] for one in played] == [["", ""]] * 2
    assert all(set(one.episode.answers) == {"Nothing happens."} for one in played)
    assert all(
        0 < tokens_out <= 8 and tokens_in > 100 for one in played for tokens_in, tokens_out in one.executor_tokens
    )


def test_a_server_that_knows_the_way_wins():
    games = [game.load() for game in generate(2, seed=1)]
    worlds = envs.make("alfworld", tasks=games, num_envs=2, max_steps=50)
    worlds.reset(options={"task_indices": [0, 1]})
    ways = {game.task: shortest_plan(WorldState.from_env(worlds.env(i))) for i, game in enumerate(games)}

    def thought(body):
        (message,) = body["messages"]
        goal = re.search(r"Your task is to: (.*)", message["content"])[1].strip()
        step = int((re.search(r"at step (\d+)", message["content"]) or [0, 1])[1])
        way = ways[goal]
        assert f"'{way[step - 1]}'" in message["content"]
        return reply(f"<think>Step {step}.</think><action>{way[step - 1]}</action>")

    server = Server(thought)
    try:
        executor = ThinkActionServer(OpenAIChatModel(server.url, "seven"), max_parallel=2)
        played = play(
            worlds, executor, make_delivery("none"), Experiences(), tasks=[0, 1], seeds=[0, 0], top_k=0,
            scheme=ThinkAction(),
        )  # fmt: skip
    finally:
        server.close()
    assert all(one.won for one in played)
    assert server.requests[0][2]["max_tokens"] == 512
    assert all("stop" not in body for _, _, body in server.requests)


@pytest.mark.parametrize("more", [{}, {"adapters": "a"}, {"decoding": ("free", "admissible")}])
def test_the_option_wants_a_published_model(folder, more):
    executor = str(folder) if more else ""
    with pytest.raises(InvalidInputError, match="--format think_action"):
        AlfworldConfig(executor=executor, format="think_action", deliveries=("none",), **more)
