"""Agents for ScienceWorld without a language model: one without memory, one that repeats, one that criticises.

    agent = AGENTS["planner_critic"](memories)
    rollout(envs, [agent], [[0]])              # or by hand, command by command:
    player = agent.play(goal, first_text)
    command = next(player)
    command = player.send(answer)              # StopIteration: the agent has nothing more to do

- `none` walks through the rooms and does what the description says of things that it sees.
- `static` repeats the path of the most similar training task, its names replaced by ours, whatever the answers are.
- `planner_critic` takes the same path for a plan: see `planner`.
- `planner_critic_own` is the same with paths that it found itself, and those that failed: see `agent.goal_words`.
- `planner_critic_no_memory` is that one with nothing remembered: what its rules do by the words of the description.

They read goal and answers, and neither score nor list of commands nor the name of the task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

from embodied_mem.agents.agent import CommandGenerator

from .goal_words import GoalPlayer
from .gold_paths import DOOR, MOVED, Memories, adapt, room_of, substitutions
from .planner import PlannerCritic

Player = Generator[str, str, None]
_FOCUS = re.compile(r"focus on (?:the |a )?([A-Za-z' -]{1,100}?)(?= and\b|[.,]|$)", re.IGNORECASE)
_SUBSTANCE = re.compile(r"to (?:boil|melt|freeze|change the state of matter of) ([a-z ]{1,80})\.")
_BOX = re.compile(r"(?:move|place) it (?:to|in) the ([a-z]+ box)")
_CALLED = {"substance", "thing", "seed"}
"""Words that stand for a thing and do not name it."""


class Explorer(CommandGenerator):
    """Goes through all rooms, depth first, and focuses on what the description names, in its order.

    What is to be put into a box is picked up once it was focused on; of several boxes it takes the first that is named.
    """

    def __init__(self, memories: Memories):
        """Make one; it remembers nothing, whatever it is given."""

    def play(self, goal: str, text: str) -> Player:
        wanted = [name for name in _FOCUS.findall(goal) if name.lower() not in _CALLED]
        if found := _SUBSTANCE.search(goal):
            wanted.insert(0, found[1])
        carried, box = "", _BOX.search(goal)
        here = room_of(text)
        visited, way = {here}, list[str]()
        while True:
            while wanted and wanted[0].lower() in text.lower():
                name = wanted.pop(0)
                yield f"focus on {name}"
                if box and not wanted:
                    yield f"pick up {name}"
                    carried = name
            if carried and box and box[1] in text:
                yield f"move {carried} to {box[1]}"
                carried = ""
            room = next((door for door, _ in DOOR.findall(text) if door not in visited), "")
            if not room:
                if not way:
                    return
                room = way.pop()
            else:
                way.append(here)
            yield f"open door to {room}"
            if not MOVED.match((yield f"go to {room}")):
                visited.add(room)
                if way:
                    way.pop()
                continue
            here = room
            visited.add(here)
            text = yield "look around"


class Repeater(CommandGenerator):
    """Gives the commands of the most similar training task, names replaced, one after the other."""

    def __init__(self, memories: Memories):
        """Make one that repeats these."""
        self._memories = memories

    def play(self, goal: str, text: str) -> Player:
        self._following = ""
        for memory in self._memories.retrieve(goal)[:1]:
            self._following = memory.title
            replaced = substitutions(memory.goal, goal)
            for command in memory.commands:
                yield adapt(command, replaced)

    def explained(self) -> dict[str, object]:
        return {"following": self._following}


OWN = "planner_critic_own"
"""The agent whose memory is its own episodes on training variations."""
NO_MEMORY = "planner_critic_no_memory"
"""Its control: nothing is remembered."""
AGENTS: dict[str, Callable[[Memories], CommandGenerator]] = {
    "none": Explorer,
    "static": Repeater,
    "planner_critic": PlannerCritic,
    OWN: GoalPlayer,
    NO_MEMORY: GoalPlayer,
}
