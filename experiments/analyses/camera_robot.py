"""Lets a robot that only sees go through a drawn home, and asks its memory where things are.

    python experiments/analyses/camera_robot.py --result experiments/results/camera_robot.json
    python experiments/analyses/camera_robot.py --memory home && embodied-mem view home      # its pictures, in a page
    python experiments/analyses/camera_robot.py --server http://localhost:8000/v1 --model qwen2.5-vl-7b-instruct

No answer of the robot has a text: each is one picture of furniture and things with their names. Without --server, a
server in this process answers in OpenAI's protocol. It knows each picture by its hash, so what is measured is memory
and its seams, no model's eyes. With --server a real model looks, plans and criticises, and the same is counted.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.server
import json
import pathlib
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.agents.planner_critic.rules import TextRules
from embodied_mem.agents.robot.perceiver import Perceiver
from embodied_mem.agents.robot.robot import Outcome
from embodied_mem.agents.robot.runner import Limits, Runner
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.language import OpenAIChatModel
from embodied_mem.language.chat import ChatModel
from embodied_mem.language.images import png
from embodied_mem.language.recorded_chat import RecordedChatModel
from embodied_mem.memory import LifelongMemory, Scope

ROOMS = {
    "hall": {"hook": ["keys"], "bench": ["umbrella"]},
    "living room": {"sofa": ["remote"], "shelf": ["vase", "lamp"]},
    "bedroom": {"bed": ["book"], "basket": ["blanket"]},
    "kitchen": {"counter": ["banana"], "table": ["mug", "plate"], "oven": []},
}
GOAL = "Look into every room, then put the banana into the oven."
ROUTE = (
    "navigate_to(hook)", "navigate_to(sofa)", "navigate_to(bed)", "navigate_to(counter)", "pick(banana)",
    "navigate_to(oven)", "open(oven)", "open(oven)", "put(banana, oven)", "close(oven)", "task_complete()",
)  # fmt: skip
INSIDE = ("basket", "oven")
_FONT = """
    25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755 65555 25552 65644 25563 65655 34216
    72222 55557 55552 55775 55255 55222 71247
"""
"""Letters a to z, each as five rows of three dots."""
_GLYPHS = dict(zip("abcdefghijklmnopqrstuvwxyz", _FONT.split()))
_SIZE = 3  # pixels of a dot of a letter


def label(pixels: np.ndarray, text: str, x: int, y: int) -> None:
    """Write a text in small letters."""
    for sign in text:
        for row, bits in enumerate(_GLYPHS.get(sign, "00000")):
            for column in range(3):
                if int(bits) >> (2 - column) & 1:
                    left, top = x + column * _SIZE, y + row * _SIZE
                    pixels[top : top + _SIZE, left : left + _SIZE] = 20
        x += 4 * _SIZE


def color(name: str) -> np.ndarray:
    """Give a thing its light color."""
    return np.frombuffer(hashlib.sha256(name.encode()).digest()[:3], np.uint8) // 2 + 120


class DrawnHome:
    """A robot with one camera in a drawn home; the oven's door is stuck the first time."""

    skills = (
        Skill("navigate_to", ("place",), "Drives to a place, in any room."),
        Skill("pick", ("thing",), "Takes a thing that is near.", ("being near {thing}",)),
        Skill("put", ("thing", "place"), "Puts what is held in or on a place that is near."),
        Skill("open", ("place",), "Opens the door of a place that is near."),
        Skill("close", ("place",), "Closes it."),
        TASK_COMPLETE,
    )

    def __init__(self) -> None:
        self.places = {
            place: (room, list(things)) for room, places in ROOMS.items() for place, things in places.items()
        }
        self.near, self.held, self.is_open, self.num_opened = "hook", "", False, 0
        self.scenes: dict[str, list[list[Any]]] = {}
        self.has_failed = False

    def observe(self) -> Outcome:
        picture = png(self.draw())
        self.scenes[hashlib.sha256(picture).hexdigest()] = self.facts_in_view()
        return Outcome("unknown", "", (picture,))

    def execute(self, skill: str, arguments: dict[str, str]) -> Outcome:
        place, thing = arguments.get("place", ""), arguments.get("thing", "")
        here = self.places[self.near][1]
        if skill == "navigate_to" and place in self.places:
            self.near = place
        elif skill == "pick" and thing in here and not self.held:
            here.remove(thing)
            self.held = thing
        elif skill == "put" and thing == self.held and place == self.near and (place != "oven" or self.is_open):
            here.append(thing)
            self.held = ""
        elif skill in ("open", "close") and place == self.near == "oven":
            self.num_opened += skill == "open"
            self.is_open = skill == "open" and self.num_opened > 1
        return self.observe()

    def cancel(self) -> None:
        pass

    def facts_in_view(self) -> list[list[Any]]:
        """Return what is true of what the picture shows."""
        room = self.places[self.near][0]
        facts = [["agent", "at", room, 0.95], ["agent", "near", self.near, 0.9]]
        for place, (its, things) in self.places.items():
            if its == room:
                facts.append([place, "in", room, 0.9])
                is_shown = place != "oven" or self.is_open
                facts += [[thing, "in" if place in INSIDE else "on", place, 0.9] for thing in things if is_shown]
        if room == "kitchen":
            facts.append(["oven", "is", "open" if self.is_open else "closed", 0.85])
        return [*facts, ["agent", "holds", self.held, 0.9]] if self.held else facts

    def draw(self) -> np.ndarray:
        """Draw the room, and what is held below."""
        pixels = np.full((240, 420, 3), 245, np.uint8)
        room = self.places[self.near][0]
        label(pixels, room, 6, 6)
        for number, (place, (_, things)) in enumerate(
            (place, its) for place, its in self.places.items() if its[0] == room
        ):
            left, is_hidden = 15 + 135 * number, place == "oven" and not self.is_open
            pixels[120:185, left : left + 120] = color(place) if not is_hidden else 150
            label(pixels, place, left + 6, 164)
            for row, thing in enumerate([] if is_hidden else things):
                top = (126 if place in INSIDE else 95) - 28 * row
                pixels[top : top + 25, left + 8 : left + 112] = color(thing)
                label(pixels, thing, left + 12, top + 5)
            if place == self.near:
                pixels[190:194, left : left + 120] = (200, 30, 30)
        if self.held:
            pixels[200:236, 140:280] = color(self.held)
            label(pixels, f"held {self.held}", 146, 210)
        return pixels


class SceneServer:
    """An OpenAI-compatible server that knows the pictures of a home, and the route."""

    def __init__(self, home: DrawnHome):
        self.home, self.num_plans, self.num_views = home, 0, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = outer.answer(body["messages"][0]["content"], body["messages"][1]["content"])
                data = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, system: str, question: Any) -> str:
        """Answer as the seat that is asked."""
        if system.startswith("You are the planner"):
            calls = [command.removesuffix(")").partition("(") for command in ROUTE[8 * self.num_plans :][:8]]
            self.num_plans += 1
            names = {skill.name: skill.arguments for skill in self.home.skills}
            steps = [{"skill": skill, **dict(zip(names[skill], given.split(", ")))} for skill, _, given in calls]
            return json.dumps({"reasoning": "", "done": "", "left": "", "steps": steps})
        if system.startswith("You are the critic"):
            return '{"reason": "", "ok": true}'
        return self.view(question) if system.startswith("You are the eyes") else "where is the banana"

    def view(self, question: Sequence[dict[str, Any]]) -> str:
        """Answer for a picture: with thoughts, a fence, a guess."""
        told = question[0]["text"]
        data = base64.b64decode(question[1]["image_url"]["url"].partition(",")[2])
        facts = self.home.scenes[hashlib.sha256(data).hexdigest()]
        plain = [["next to" if word == "near" else word for word in fact[:3]] for fact in facts]
        names = {fact[0] for fact in plain} - {"agent"} | {fact[2] for fact in plain if fact[1] == "holds"}
        known = [json.loads(line) for line in told.splitlines() if line.startswith("[")]
        over = [one for one in known if one not in plain and (one[:2] == ["agent", "next to"] or one[0] in names)
                and one[2] not in ("oven",)]  # fmt: skip
        action = told.splitlines()[0].removeprefix("Last action: ")
        is_shut = ["oven", "is", "closed"] in plain
        answer = {
            "summary": f"After {action} the robot is near the {facts[1][2]} in the {facts[0][2]}.",
            "facts": [*facts, ["cat", "on", facts[1][2], 0.3]],
            "outcome": "failure" if action.startswith("open") and is_shut else "success",
            "ended": over,
        }
        self.num_views += 1
        text = json.dumps(answer)
        return [text, f"<think>A {facts[0][2]}?</think>{text}", f"```json\n{text}\n```"][self.num_views % 3]


def score(home: DrawnHome, memory: LifelongMemory) -> dict[str, Any]:
    """Compare what the memory believes with the home as it is."""
    truth = {(place, "in", room) for place, (room, _) in home.places.items()}
    for place, (_, things) in home.places.items():
        truth |= {(thing, "in" if place in INSIDE else "on", place) for thing in things}
    truth |= {("agent", "at", home.places[home.near][0]), ("agent", "next to", home.near)}
    truth |= {("oven", "is", "open" if home.is_open else "closed")}
    facts = {one.fact for one in memory.get_all("spatial") if one.ended is None and one.fact is not None}
    rows = []
    for place, (_, things) in home.places.items():
        for thing in things:
            places = memory.sightings(thing)
            answer = memory.retrieve(f"where is the {thing}?", k=3).render()
            rows.append({
                "thing": thing, "place": place, "sighted": places[0].receptacle if places else "",
                "has_picture": bool(places and places[0].view and places[0].view.images),
                "is_retrieved": any(thing in line and place in line for line in answer.splitlines()),
            })  # fmt: skip
    return {
        "facts": len(facts), "facts_right": len(facts & truth), "facts_true": len(truth),
        "wrong": sorted(map(list, facts - truth)), "missing": sorted(map(list, truth - facts)),
        "questions": len(rows), "sighted_right": sum(row["sighted"] == row["place"] for row in rows),
        "retrieved_right": sum(row["is_retrieved"] for row in rows),
        "with_picture": sum(row["has_picture"] for row in rows), "rows": rows,
    }  # fmt: skip


def play(model: ChatModel, home: DrawnHome, folder: pathlib.Path, *, is_blind: bool = False) -> dict[str, Any]:
    """Run the task; what it came to."""
    eyes = Perceiver(None if is_blind else model)
    with LifelongMemory.open(folder, Scope(robot="camera"), perceiver=eyes) as memory:
        parts = chat_parts(model, home.skills)
        agent = PlannerCriticAgent(memory=memory, rules=TextRules(keep_images=True), **parts)
        task = Runner(home, Limits(max_steps=15, timeout_s=600)).run(agent, GOAL, "drawn home")
        report = score(home, memory)
    views, unusable = (0, 0) if eyes.writer is None else (eyes.writer.calls, eyes.writer.fallbacks)
    return {
        **report, "ended": task.ended, "steps": [step.command for step in task.steps], "views": views,
        "unusable": unusable, "is_banana_in_oven": "banana" in home.places["oven"][1],
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, score, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="an OpenAI-compatible vision server; default: one that knows the pictures")
    parser.add_argument("--model", default="drawn-home", help="as the server names it")
    parser.add_argument("--record", type=pathlib.Path, help="file of the model's answers, read where it has them")
    parser.add_argument("--blind", action="store_true", help="a control: the model never sees for the memory")
    parser.add_argument("--memory", type=pathlib.Path, help="folder that keeps the memory")
    parser.add_argument("--result", type=output_file, help="JSON to write")
    options = parser.parse_args(arguments)
    home = DrawnHome()
    server = None if options.server else SceneServer(home)
    model: ChatModel = OpenAIChatModel(options.server or server.url, options.model)  # type: ignore[union-attr]
    if options.record:
        model = RecordedChatModel(model, options.record)
    with tempfile.TemporaryDirectory() as folder:
        report = play(model, home, options.memory or pathlib.Path(folder) / "memory", is_blind=options.blind)
    if server is not None:
        server.close()
    if options.result:
        write_result(options.result, {**report, **manifest(model=model.name)})
    print(json.dumps({name: value for name, value in report.items() if name not in ("rows", "steps")}))


if __name__ == "__main__":
    run(main)
