"""The programs in examples/, run as a newcomer would; the one with a chat model also against a server of our own."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from chat_answers import Server, reply

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def after(text: str, line: str) -> str:
    """What is printed next after a line."""
    return text.partition(f"{line}\n")[2].partition("\n")[0]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short(path):
    assert len(path.read_text().splitlines()) < 80


def test_a_robot_with_a_detector(tmp_path):
    text = run("household_robot", str(tmp_path))
    assert "Where is the red mug? in sink, 90% sure, seen from (5.0, 1.0, 0.0)" in text
    assert "Where are the keys? last on table, not there any more" in text
    assert "Last seen from near the table: keys, spoon\n" in text
    assert "Seen later than two minutes past eight: red mug\n" in text
    assert "Places of the red mug: red mug is on table (confidence 0.94); red mug is in sink (confidence 0.90)" in text
    assert "Forgotten of the keys: {'spatial.facts': 1" in text
    assert b"keys" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_chat_assistant_without_a_model():
    text = run("chat_assistant")
    assert "ends notes:1: I like oat milk. (no longer, since time 4)" in text
    assert "soy" in after(text, "ann: Which milk do I like?")
    assert "My sister gave me the blue mug" in after(text, "ann: Who gave me the blue mug?")
    assert "7:40" in after(text, "bob: When does my train leave?")
    assert after(text, "bob: Which milk do I like?").strip() == "-> I was not told."


def test_a_chat_assistant_with_a_model():
    """A model that words answers, and writes nothing of use where the memory asks it: rules do."""

    def answers(body):
        first = body["messages"][0]["content"]
        return reply(f"You said: {first.splitlines()[1]}" if first.startswith("You answer the user") else "Hm.")

    server = Server(answers)
    text = run("chat_assistant", "--url", server.url, "--model", "stub")
    server.close()
    assert "You said: I don't like oat milk anymore" in after(text, "ann: Which milk do I like?")
    assert "7:40" in after(text, "bob: When does my train leave?")
    assert after(text, "bob: Which milk do I like?").strip() == "-> I was not told."
    asked = [body["messages"][0]["content"] for _, _, body in server.requests]
    assert any(not one.startswith("You answer the user") for one in asked)
    assert not any("oat" in one for one in asked if "train" in one)  # no user's memory reaches the other one's prompt
