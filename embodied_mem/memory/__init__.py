"""What is remembered: episodes with rationales, found by goal; a graph of facts with their times; vectors by id.

    from embodied_mem.memory import MemoryBank
    bank = MemoryBank()
    bank.add(episode)
    bank.retrieve(goal, top_k=2, context=first_observation)[0].render()

    from embodied_mem.memory import KnowledgeGraph, Triple
    graph = KnowledgeGraph()
    graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

    from embodied_mem.memory import VectorIndex
    index = VectorIndex(dim=384)
    index.add(ids, vectors)
    index.search(queries, k=10)

Numpy only.
"""

from .bank import Experience, MemoryBank, trial_key
from .graph import HOUSEHOLD_RULES, ConflictRule, KnowledgeGraph, NewFact, NewNode, Scope, Triple
from .lexical import Embedder, LexicalEmbedder
from .rationale import goal_object, key_actions, rationale_for, room_text
from .vectors import VectorIndex

__all__ = [
    "HOUSEHOLD_RULES",
    "ConflictRule",
    "Embedder",
    "Experience",
    "KnowledgeGraph",
    "LexicalEmbedder",
    "MemoryBank",
    "NewFact",
    "NewNode",
    "Scope",
    "Triple",
    "VectorIndex",
    "goal_object",
    "key_actions",
    "rationale_for",
    "room_text",
    "trial_key",
]
