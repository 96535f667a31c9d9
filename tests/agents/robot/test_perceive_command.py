"""The command `embodied-mem perceive`: by rules, against a server, with a Qwen2.5-VL in process, with a memory."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from chat_answers import Server, reply

from embodied_mem.agents.robot.perceive import main
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.language.images import png
from embodied_mem.memory import LifelongMemory

FIRST = {
    "summary": "In the kitchen.",
    "facts": [["banana", "on", "counter", 0.9], ["agent", "near", "banana", 0.9], ["cat", "on", "table", 0.2]],
    "outcome": "success",
    "ended": [],
}
SECOND = {
    "summary": "It holds the banana.",
    "facts": [["agent", "holds", "banana", 0.8]],
    "outcome": "success",
    "ended": [["agent", "next to", "banana"]],
}


@pytest.fixture
def picture(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    path = tmp_path / "cam.png"
    path.write_bytes(png(np.full((24, 24, 3), 90, np.uint8)))
    return str(path)


def told(*arguments, status=0) -> str:
    output = io.StringIO()
    assert main(arguments, output=output) == status
    return output.getvalue()


def test_rules_read_a_caption():
    text = told("--caption", "a banana on the kitchen counter, the oven is closed")
    assert "fact:     banana | on | kitchen counter\nfact:     oven | is | closed" in text


def test_a_step_is_kept_in_its_room(tmp_path):
    home = str(tmp_path / "home")
    for place, thing in (("kitchen", "mug"), ("Kitchen", "cup"), ("bath", "comb")):
        told("--caption", f"a {thing} on the shelf", "--memory", home, "--place", place)
    with LifelongMemory.open(home, read_only=True) as memory:
        rooms = {one.name: one.place for one in memory.sightings()}
    assert rooms == {"mug": "kitchen", "cup": "kitchen", "comb": "bath"}
    with LifelongMemory.open(home) as memory:
        memory.end_task(True)
        memory.begin_task("mine", "tidy up", "", place="kitchen")
    with pytest.raises(InvalidInputError, match="--place: expected 'kitchen', that of the running task, got 'bath'"):
        main(["--caption", "a comb on the shelf", "--memory", home, "--place", "bath"])


def test_a_server_sees_and_a_memory_keeps(picture, tmp_path):
    server = Server(*(reply(json.dumps(answer)) for answer in (FIRST, SECOND)))
    options = ("--server", server.url, "--model", "eyes", "--memory", str(tmp_path / "home"), "--keep")
    text = told(picture, "--action", "navigate_to(counter)", *options)
    assert "outcome:  success\nfact:     banana | on | counter (0.90)" in text
    assert "unsure:   cat | on | table (0.20)" in text
    text = told(picture, "--action", "pick(banana)", *options)
    server.close()
    assert "over:     agent | next to | banana" in text
    assert "ended spatial:1: agent is next to banana" in text
    request = server.requests[1][2]
    assert request["messages"][1]["content"][1]["type"] == "image_url"
    assert '["agent", "next to", "banana"]' in request["messages"][1]["content"][0]["text"]
    assert request["response_format"]["json_schema"]["schema"]["properties"].keys() == FIRST.keys()


def test_an_unusable_answer_is_told(picture, capsys):
    server = Server(reply("I cannot see."))
    text = told(picture, "--server", server.url, "--model", "eyes", status=1)
    server.close()
    assert "fact:" not in text
    assert "no usable answer" in capsys.readouterr().err


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("third", [False, True], ids=["Qwen2.5-VL", "Qwen3-VL"])
def test_a_random_qwen_in_this_process_asserts_nothing(third, picture, tmp_path, capsys):
    pytest.importorskip("jax")
    pytest.importorskip("PIL")
    from small_seeing import save_seeing, seeing, tokenizer

    save_seeing(seeing(0, third=third), tmp_path / "qwen")
    tokenizer().save(tmp_path / "qwen" / "tokenizer.json")
    options = ("--folder", str(tmp_path / "qwen"), "--memory", str(tmp_path / "home"), "--max_tokens", "40")
    text = told(picture, *options, status=1)
    assert "fact:" not in text
    assert "views:0: step 1 was seen" in text
    assert "it is no JSON" in capsys.readouterr().err  # it answered: garbage


def test_what_a_model_is_asked_can_be_looked_at(picture):
    text = told(picture, "--action", "open(oven)", "--show_prompt")
    assert "You are the eyes of a household robot" in text
    assert text.endswith("Last action: open(oven)\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "expected pictures, a --caption, or both"),
        (("--caption", "x", "--server", "http://localhost:1/v1"), "expected --model NAME"),
        (("--caption", "x", "--model", "eyes"), "expected --model NAME and --server URL"),
        (("--caption", "x", "--memory", "postgresql://h/m"), "--memory: expected a folder, got the address"),
        (("--caption", "x", "--server", "u", "--folder", "f"), "expected --server or --folder"),
    ],
)
def test_wrong_options_say_what_to_do(arguments, problem):
    with pytest.raises(InvalidInputError, match=problem):
        main(arguments)


def test_a_server_that_is_not_there_and_no_model_at_all_are_told(picture, capsys):
    told(picture, "--server", "http://127.0.0.1:9/v1", "--model", "eyes", status=1)
    assert "ConnectError: All connection attempts failed" in capsys.readouterr().err
    told(picture)
    assert "No model looked at the pictures" in capsys.readouterr().err


def test_a_file_that_is_no_picture_is_named(tmp_path):
    with pytest.raises(DataNotFoundError, match="which is no file"):
        main([str(tmp_path / "nowhere.png")])
    (tmp_path / "a.png").write_text("text")
    with pytest.raises(InvalidInputError, match="PNG or JPEG"):
        main([str(tmp_path / "a.png")])
