"""A person who acts in MEMENTO at the terminal and is shown the memories that agents are given.

    HumanAgent().begin(instruction, observation, memories)

Source: MEMENTO E.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from embodied_mem.memory.profile import UserProfile
from embodied_mem.worlds.memento.agent.react import Reply
from embodied_mem.worlds.memento.traces.trace import Trace


class HumanAgent:
    """Reads actions from standard input; its end ends the task."""

    def begin(
        self, instruction: str, observation: str, memories: Sequence[Trace] = (), profile: UserProfile | None = None
    ) -> None:
        for number, memory in enumerate(memories, 1):
            print(f"--- memory {number} of {len(memories)}\n{memory.render()}\n")
        facts = profile.recall(instruction, 5) if profile is not None else ()
        print(*(f"known of the user: {item.text}" for item in facts), sep="\n")

    def act(self, observation: str) -> Reply:
        """Show an observation and read the next action."""
        print(f"\n{observation}")
        try:
            return Reply("", input("action, such as Explore[kitchen_1], or Done[]: ").strip())
        except EOFError:
            return Reply("", "Done[]")
