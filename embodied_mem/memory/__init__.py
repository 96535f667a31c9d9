"""What is remembered: episodes, facts with their times, regularities, what a user lets know; and how it is kept.

    from embodied_mem.memory import LifelongMemory
    memory = LifelongMemory()                                # spatial, temporal, episodic, semantic, user profile
    memory.begin_task(task_id, goal, observation)
    memory.observe(action, observation)
    memory.retrieve(budget_tokens=200).render()

    from embodied_mem.memory import KnowledgeGraph, Triple
    graph = KnowledgeGraph()
    graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

    from embodied_mem.memory import DurableGraph, GraphModule, MemoryStore
    with MemoryStore("memory/ann", {"graph": (module := GraphModule())}) as store:
        DurableGraph(store, module).update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

    from embodied_mem.memory import MemoryBank               # successful episodes with rationales, found by goal
    bank = MemoryBank()
    bank.add(episode)
    bank.retrieve(goal, top_k=2, context=first_observation)[0].render()

    from embodied_mem.memory import VectorIndex
    index = VectorIndex(dim=384)
    index.add(ids, vectors)
    ids, scores = index.search(queries, 5)

Numpy only.
"""

from .audit import Audit
from .bank import Experience, MemoryBank, trial_key
from .chat_writing import ChatWriter
from .conflicts import ChatResolver, ConflictReview
from .durable import MemoryModule, Selector
from .durable_graph import DurableGraph, GraphModule
from .episodic import EpisodicMemory
from .facts import HOUSEHOLD_RULES, ConflictRule, NewFact, NewNode, Scope, Triple
from .graph import KnowledgeGraph
from .lexical import Embedder, LexicalEmbedder
from .lifelong import LifelongMemory
from .profile import UserProfile
from .rationale import goal_object, key_actions, rationale_for, room_text
from .recollection import Item, Recollection
from .semantic import SemanticMemory
from .spatial import Sighting, SpatialMemory
from .store import MemoryStore, Receipt
from .temporal import TemporalMemory
from .vectors import VectorIndex

__all__ = [
    "HOUSEHOLD_RULES",
    "Audit",
    "ChatResolver",
    "ChatWriter",
    "ConflictReview",
    "ConflictRule",
    "DurableGraph",
    "Embedder",
    "EpisodicMemory",
    "Experience",
    "GraphModule",
    "Item",
    "KnowledgeGraph",
    "LexicalEmbedder",
    "LifelongMemory",
    "MemoryBank",
    "MemoryModule",
    "MemoryStore",
    "NewFact",
    "NewNode",
    "Receipt",
    "Recollection",
    "Scope",
    "Selector",
    "SemanticMemory",
    "Sighting",
    "SpatialMemory",
    "TemporalMemory",
    "Triple",
    "UserProfile",
    "VectorIndex",
    "goal_object",
    "key_actions",
    "rationale_for",
    "room_text",
    "trial_key",
]
