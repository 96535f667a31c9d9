"""Traces: an instruction and its <Thought, Action, Observation> triples, an agent's memory of a household task.

    step = TraceStep(thought="The kitchen is unexplored.", action="Explore[kitchen_1]", observation="Result: ...")
    trace = Trace("952", "102816756", "Bring the mug ... It is my favourite.", steps=(step,))
    trace.render()                                                        # the text of MEMENTO's prompts
    parse_action("Pick[cup_0]")                                           # ("Pick", ["cup_0"])
    parse_objects("Result: ...\\nObjects: cup_0: table_4 in kitchen_1")   # {"cup_0": ("table_4", "kitchen_1")}

A memory comes in one of these forms: full (every step; gold is the same of a reference trajectory), summarised (no
steps, `note` says in sentences what was done), instruction only (neither). Whether the task was fulfilled is not in it:
that is the evaluator's verdict, which an agent is not told.

Source: MEMENTO C.1 (episodic memory) and 6.1 (formats).
"""

from __future__ import annotations

import dataclasses
import hashlib
import re

HELD = "held"
"""The place of what is in the hand."""

_ACTION = re.compile(r"(\w+)\s*\[(.*)\]\s*\Z", re.DOTALL)
_OBJECT_LINE = re.compile(r"([^:]+): (?:(?P<place>\w+) in (?P<room>\w+)|held by the agent)\Z")
_DESCRIPTION = re.compile(r"The description of the object '(?P<name>[^'\n]+)' is:\s*\n(?P<text>.*)", re.DOTALL)


def parse_action(action: str) -> tuple[str, list[str]]:
    """Parse a last line's call into name, perhaps empty, and arguments."""
    found = _ACTION.match(action.strip().rpartition("\n")[2].strip())
    if not found:
        return "", []
    return found[1], [part.strip() for part in found[2].split(",")] if found[2].strip() else []


def succeeded(observation: str) -> bool:
    """Tell whether an observation says that the action was carried out."""
    return parse_result(observation).startswith("Successful")


def parse_objects(observation: str) -> dict[str, tuple[str, str]]:
    """Parse object lines into {name: (place, room)}, held ones (`HELD`, "")."""
    found = {}
    _, _, text = observation.rpartition("Objects:")
    for line in text.splitlines():
        if match := _OBJECT_LINE.match(line.strip()):
            found[match[1]] = (match["place"] or HELD, match["room"] or "")
    return found


def parse_result(observation: str) -> str:
    """Return the answer in an observation, without the object lines."""
    text = observation.partition("Result:")[2] or observation
    return text.rpartition("\nObjects:")[0].strip() if "\nObjects:" in text else text.strip()


def parse_description(observation: str) -> tuple[str, str] | None:
    """(name, caption) where an observation describes an object that has a caption."""
    found = _DESCRIPTION.search(parse_result(observation))
    if found is None or found["text"].strip().lower() in ("", "nan", "none"):
        return None
    return found["name"], found["text"].strip()


@dataclasses.dataclass(frozen=True)
class TraceStep:
    """One turn.

    Attributes:
        thought: why; may be empty.
        action: the call, e.g. `Explore[kitchen_1]`.
        observation: what the world answered, as it gave it: `Result: ...` and `Objects: ...`.
    """

    thought: str
    action: str
    observation: str


@dataclasses.dataclass(frozen=True)
class Trace:
    """One remembered task.

    Attributes:
        episode_id: the episode that was played.
        scene_id: the house it was played in.
        instruction: what the user said, in full.
        steps: the turns in order; empty where the format under test leaves them out.
        note: what a summary says in place of the steps; empty otherwise.
    """

    episode_id: str
    scene_id: str
    instruction: str
    steps: tuple[TraceStep, ...] = ()
    note: str = ""

    def render(self) -> str:
        """Write the memory for a prompt: task, then note or turns."""
        parts = [f"Task: {self.instruction}"]
        if self.note:
            parts.append(self.note)
        for step in self.steps:
            thought = f"Thought: {step.thought}\n" if step.thought else ""
            parts.append(f"{thought}{step.action}\n{step.observation}")
        return "\n\n".join(parts)


def drawn(asked: str, name: str) -> int:
    """Hash an instruction to [0, 2**48) for ties, stable over processes.

    In MEMENTO's episodes the requested object is listed first, and `cup_0` is nearly always the right cup, so taking
    the first of equals would give the answer away.
    """
    return int.from_bytes(hashlib.blake2b(f"{asked}\0{name}".encode(), digest_size=6).digest(), "big")
