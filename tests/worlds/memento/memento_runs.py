"""Reads the recorded runs of MEMENTO: actions, answers, observation lines, scores, poses."""

from __future__ import annotations

import csv
import dataclasses
import json
import pathlib
import re

MODELS = (
    "claude-3.5-sonnet",
    "gpt-4o",
    "llama-3.1-70b-instruct",
    "llama-3.1-8b-instruct",
    "qwen-2.5-72b-instruct",
    "qwen-2.5-7b-instruct",
)
_TAGS = re.compile(r"<\|[^|]*\|>(user|assistant)?")
_ANSWER = re.compile(r"Result: ?(.*?)\nObjects: ?(No objects found yet|(?:\w+_\d+: [^\n]*\n?)+)", re.DOTALL)
_ACTION = re.compile(r"(\w+)\[(.*?)\]")


@dataclasses.dataclass
class Turn:
    """One action and what was recorded of it; None where nothing was."""

    action: str
    response: str | None
    objects: str | None
    score: float | None = None
    room: str | None = None
    position: list[float] | None = None
    sim_steps: int | None = None


@dataclasses.dataclass
class Run:
    """One recorded run and its final score."""

    model: str
    episode_id: str
    turns: list[Turn]
    percent_complete: float
    success: bool
    start: tuple[str, list[float]] | None = None


def gold_runs(folder: pathlib.Path) -> list[Run]:
    runs = []
    for path in sorted((folder / "gold").glob("*.json"), key=lambda p: int(p.stem)):
        data = json.loads(path.read_text())
        turns = [
            Turn(
                f"{step['action'][0]}[{step['action'][1] or ''}]",
                step.get("response"),
                step.get("objects_observed"),
                step["percent_complete"],
                step["agent_room"],
                step["agent_position"],
                step["sim_step_count"],
            )
            for step in data["steps"]
        ]
        start = (data["agent_start"]["room"], data["agent_start"]["position"])
        final = data["final"]
        runs.append(Run("gold", path.stem, turns, final["percent_complete"], final["success"] == 1, start))
    return runs


def text_places(folder: pathlib.Path) -> dict[str, dict[str, str]]:
    """Where the observations of gold episodes place unmoved objects, if elsewhere than on their first piece."""
    places: dict[str, dict[str, str]] = {}
    for path in (folder / "gold").glob("*.json"):
        for entry in json.loads(path.read_text())["objects"]:
            if entry["text_place"] not in (None, entry["initial"]["furniture"]):
                places.setdefault(path.stem, {})[entry["name"]] = entry["text_place"]
    return places


def parse_trace(text: str) -> list[Turn]:
    turns: list[Turn] = []
    parts = _TAGS.sub("", text).split("Assigned!")
    for i, part in enumerate(parts):
        if turns and (answer := _ANSWER.search(part)):
            turns[-1].response, turns[-1].objects = answer[1].strip(), answer[2].strip()
            part = part[answer.end() :]
        if i + 1 < len(parts):
            line = part.strip().rpartition("\n")[2]
            found = _ACTION.findall(line)
            turns.append(Turn(f"{found[-1][0]}[{found[-1][1]}]" if found else line, None, None))
    return turns


def model_runs(data: pathlib.Path, folder: pathlib.Path) -> list[Run]:
    runs = []
    with open(data / "results" / "acquisition_trace_results.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["model"] in MODELS:
                trace = folder / "traces" / row["model"] / f"{row['episode_id']}.txt"
                turns = parse_trace(trace.read_text(encoding="utf-8"))
                score = float(row["percent_complete"])
                runs.append(Run(row["model"], row["episode_id"], turns, score, row["success"] == "1"))
    return runs


def revealed(objects: str | None, before: list[str]) -> list[str]:
    """Names in an observation's lines that were not seen before, in order."""
    if not objects or objects == "No objects found yet":
        return []
    names = [line.partition(":")[0].strip() for line in objects.split("\n")]
    return [name for name in names if name not in before]
