"""What an agent remembers of a household task: the instruction and <Thought, Action, Observation> triples.

    step = TraceStep(thought="The kitchen is unexplored.", action="Explore[kitchen_1]", observation="Result: ...")
    trace = Trace("952", "102816756", "Bring the mug ... It is my favourite.", steps=(step,))
    trace.render()                       # the text of MEMENTO's prompts

A memory comes in one of these forms, all of them a `Trace`:

- full: every step the agent took; gold is the same with the steps of a reference trajectory;
- summarised: no steps, `note` says in sentences what was done;
- instruction only: no steps and no note.

Whether the task was fulfilled is not in it: that is the evaluator's verdict, which an agent is not told.

Source: MEMENTO C.1 (episodic memory) and 6.1 (formats).
"""

from __future__ import annotations

import dataclasses


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
        """The memory as text of a prompt: task, then a note or the turns."""
        parts = [f"Task: {self.instruction}"]
        if self.note:
            parts.append(self.note)
        for step in self.steps:
            thought = f"Thought: {step.thought}\n" if step.thought else ""
            parts.append(f"{thought}{step.action}\n{step.observation}")
        return "\n\n".join(parts)
