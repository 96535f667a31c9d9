"""Pictures in messages: as files, as content parts, as hashes in recordings, and through agents to a model."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import pytest

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.agents.robot.robot import Outcome
from embodied_mem.agents.robot.runner import Limits, Runner
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill
from embodied_mem.errors import InvalidInputError
from embodied_mem.language import ChatError, ChatReply, RecordedChatModel
from embodied_mem.language.chat import UsageMeter
from embodied_mem.language.images import content, pixels, png, said_parts, texts_and_images, without_images

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


def test_a_png_holds_the_pixels():
    """Read chunk by chunk as the format says, and by matplotlib where it is installed."""
    data = png(PIXELS)
    at, chunks = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        chunks[kind], at = body, at + 12 + size
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (7, 5)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(5, 22)
    assert (rows[:, 0] == 0).all()
    assert (rows[:, 1:].reshape(5, 7, 3) == PIXELS).all()
    pyplot = pytest.importorskip("matplotlib.image")
    import io

    assert (np.round(255 * pyplot.imread(io.BytesIO(data))) == PIXELS).all()


def test_content_parts():
    assert content("where?") == "where?"
    text, first, second = content("where?", [PIXELS, b"\xff\xd8\xff jpeg"])
    assert text == {"type": "text", "text": "where?"}
    url = first["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/png;base64,")) == png(PIXELS)
    assert second["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert texts_and_images([{"content": "a"}, {"content": [text, first, second]}]) == (["a", "where?"], 2)


@pytest.mark.parametrize("wrong", [b"GIF89a", PIXELS / 255, PIXELS[:, :, 0], "picture.png"])
def test_what_is_no_picture_is_refused(wrong):
    with pytest.raises(InvalidInputError, match=r"image: expected .*, got "):
        content("where?", [wrong])


def test_parts_are_read_back():
    pytest.importorskip("PIL", reason="pip install pillow")
    one, two = said_parts(content("where?", [PIXELS]), "here")
    assert one == "where?"
    assert (pixels(two) == PIXELS).all()
    assert said_parts("where?", "here") == ["where?"]
    text = {"type": "text", "text": "a"}
    assert said_parts([text, text], "here") == ["aa"]
    with pytest.raises(InvalidInputError, match="expected the bytes of a PNG or JPEG file"):
        pixels(b"GIF89a")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "here: expected a text, or parts"),
        ([{"type": "image_url", "image_url": {"url": "http://x/y.png"}}], "here, part 0: expected .* data URL"),
        ([{"type": "text", "text": "a"}, {"type": "audio"}], "here, part 1: expected a text, or a picture"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}], "part 0: .* base64"),
    ],
)
def test_other_parts_are_refused(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        said_parts(wrong, "here")


class Eye:
    """Says how many pictures it was shown, or plans."""

    name = "eye"

    def __init__(self):
        self.meter, self.shown = UsageMeter(), []

    def complete(self, messages, *, response_format=None, **settings):
        _, count = texts_and_images(messages)
        name = response_format["json_schema"]["name"] if response_format else "line"
        self.shown.append((name, count))
        steps = '[{"skill": "look_at", "thing": "cup"}, {"skill": "task_complete"}]'
        plan = f'{{"reasoning": "", "done": "", "left": "", "steps": {steps}}}'
        return ChatReply({"plan": plan, "verdict": '{"ok": true, "reason": ""}'}.get(name, "it looked"))


def test_a_recording_holds_a_hash_and_knows_the_picture_again(tmp_path):
    path, model = tmp_path / "calls.jsonl", Eye()
    messages = [{"role": "user", "content": content("where?", [PIXELS])}]
    recorded = RecordedChatModel(model, path)
    recorded.complete(messages)
    assert "base64" not in path.read_text()
    assert path.read_text().count("sha256:") == 1
    replay = RecordedChatModel(None, path, name="eye")
    assert replay.complete(messages).text == "it looked"
    with pytest.raises(ChatError, match="was not recorded"):
        replay.complete([{"role": "user", "content": content("where?", [PIXELS[::-1].copy()])}])
    plain = [{"role": "user", "content": "data:image/png;base64,AAAA"}]
    assert without_images(plain) == plain  # old recordings are found: only pictures are replaced


class Camera:
    """A robot that looks."""

    skills = (Skill("look_at", ("thing",)), TASK_COMPLETE)

    def observe(self):
        return Outcome("success", "A room.", (PIXELS,))

    def execute(self, skill, arguments):
        return Outcome("success", f"A {arguments['thing']}.", (PIXELS, PIXELS))

    def cancel(self):
        pass


def test_summariser_planner_and_critic_see_what_the_cameras_show():
    model, robot = Eye(), Camera()
    run = Runner(robot, Limits()).run(PlannerCriticAgent(**chat_parts(model, robot.skills)), "find a cup")
    assert (run.ended, [step.command for step in run.steps]) == ("agent", ["look_at(cup)"])
    assert model.shown[0] == ("plan", 1)
    assert sorted(model.shown[1:3]) == [("line", 2), ("line", 2)]
    assert model.shown[3:] == [("verdict", 2)]
