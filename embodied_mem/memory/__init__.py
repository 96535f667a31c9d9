"""What is remembered: successful episodes with rationales, found by goal, and a graph of facts with their times.

    from embodied_mem.memory import MemoryBank
    bank = MemoryBank()
    bank.add(episode)
    bank.retrieve(goal, top_k=2, context=first_observation)[0].render()

    from embodied_mem.memory import KnowledgeGraph, Triple
    graph = KnowledgeGraph()
    graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

    from embodied_mem.memory import LifelongMemory
    memory = LifelongMemory()                                # spatial, temporal, episodic, semantic, user profile
    memory.begin_task(task_id, goal, observation)
    memory.observe(action, observation)
    memory.retrieve(budget_tokens=200).render()

Numpy only.
"""

from .bank import Experience, MemoryBank, trial_key
from .chat_writing import ChatWriter
from .episodic import EpisodicMemory
from .graph import HOUSEHOLD_RULES, ConflictRule, KnowledgeGraph, NewFact, NewNode, Scope, Triple
from .lexical import Embedder, LexicalEmbedder
from .lifelong import LifelongMemory
from .profile import UserProfile
from .rationale import goal_object, key_actions, rationale_for, room_text
from .recollection import Item, Recollection
from .semantic import SemanticMemory
from .spatial import Sighting, SpatialMemory
from .temporal import TemporalMemory

__all__ = [
    "HOUSEHOLD_RULES",
    "ChatWriter",
    "ConflictRule",
    "Embedder",
    "EpisodicMemory",
    "Experience",
    "Item",
    "KnowledgeGraph",
    "LexicalEmbedder",
    "LifelongMemory",
    "MemoryBank",
    "NewFact",
    "NewNode",
    "Recollection",
    "Scope",
    "SemanticMemory",
    "Sighting",
    "SpatialMemory",
    "TemporalMemory",
    "Triple",
    "UserProfile",
    "goal_object",
    "key_actions",
    "rationale_for",
    "room_text",
    "trial_key",
]
