"""Rules for any robot or world whose texts memory reads as they are: the ones an agent has that brings none.

    agent = PlannerCriticAgent(planner=ChatPlanner(chat, robot.skills), critic=ChatCritic(chat))

What no rule of memory reads stays a note and is found by its words; beliefs then say nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from embodied_mem.agents.planner_critic.beliefs import Beliefs, WorkingMemory
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.readers import DEFAULT, Reader


class TextRules:
    """Texts go to memory as they are.

    Args:
        reader: of the texts, that of the memory.
    """

    def __init__(self, reader: Reader = DEFAULT):
        self._reader = reader

    def begin(
        self, memory: LifelongMemory, task_id: str, goal: str, observation: str, commands: Sequence[str]
    ) -> WorkingMemory:
        memory.begin_task(task_id, goal, observation)
        return WorkingMemory(goal, observation, (), [], began=memory.time, recent=[observation])

    def note(self, memory: LifelongMemory, working: WorkingMemory, step: PlanStep, observation: str) -> None:
        if working.failed(self._reader.read(observation).refused):
            working.refuse(step.command)
        working.keep(observation)
        memory.observe(step.command, observation, outcome=working.status, images=working.images)

    def beliefs(self, memory: LifelongMemory, working: WorkingMemory) -> Beliefs:
        """Implement `WorldRules.beliefs`: what the last answers say, and what spatial memory knows of the agent."""
        now = Beliefs(refused=working.refused)
        for text in working.recent:
            now.note(self._reader.read(text))
        if (spatial := memory.spatial) is not None:
            now.at, now.held = spatial.position(), next(iter(spatial.held()), "")
        return now
