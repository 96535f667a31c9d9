"""Memory: episodes, facts with their times, regularities, user profiles; and their storage.

    from embodied_mem.memory import LifelongMemory
    memory = LifelongMemory()                                # spatial, temporal, episodic, semantic, user profile
    memory.begin_task(task_id, goal, observation)
    memory.observe(action, observation)
    memory.retrieve(budget_tokens=200).render()

    from embodied_mem.memory import KnowledgeGraph, Triple
    graph = KnowledgeGraph()
    graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

    from embodied_mem.memory import MemoryBank               # successful episodes with rationales, found by goal
    bank = MemoryBank()
    bank.add(episode)
    bank.retrieve(goal, k=2, context=first_observation)[0].render()

    from embodied_mem.memory import VectorIndex
    index = VectorIndex(dim=384)
    index.add(ids, vectors)
    ids, scores = index.search(queries, 5)

Numpy only.
"""

from .async_memory import AsyncLifelongMemory
from .bank import Experience, MemoryBank, key_actions, rationale_for
from .chat_writer import ChatWriter
from .conflicts import Audit, ChatResolver, ConflictReview, audit
from .embedders import Embedder, LexicalEmbedder, StaticEmbedder
from .episodic import EpisodicMemory
from .graph import ConflictRule, KnowledgeGraph, NewFact, NewNode, Scope, Triple
from .images import Image
from .lifelong import LifelongMemory
from .notes import NoteMemory
from .observation import Outcome
from .profile import UserProfile
from .receipts import WriteReceipt
from .recollection import Recollection
from .record import Record, Source
from .relations import HOUSEHOLD, HOUSEHOLD_RELATIONS, HOUSEHOLD_RULES, Relation, Relations
from .semantic import SemanticMemory
from .spatial import Sighting, SpatialMemory
from .store import MemoryModule, MemoryStore, Receipt, Selector
from .temporal import TemporalMemory
from .vectors import VectorIndex
from .views import ViewMemory

__all__ = [
    "HOUSEHOLD",
    "HOUSEHOLD_RELATIONS",
    "HOUSEHOLD_RULES",
    "AsyncLifelongMemory",
    "Audit",
    "ChatResolver",
    "ChatWriter",
    "ConflictReview",
    "ConflictRule",
    "Embedder",
    "EpisodicMemory",
    "Experience",
    "Image",
    "KnowledgeGraph",
    "LexicalEmbedder",
    "LifelongMemory",
    "MemoryBank",
    "MemoryModule",
    "MemoryStore",
    "NewFact",
    "NewNode",
    "NoteMemory",
    "Outcome",
    "Receipt",
    "Recollection",
    "Record",
    "Relation",
    "Relations",
    "Scope",
    "Selector",
    "SemanticMemory",
    "Sighting",
    "Source",
    "SpatialMemory",
    "StaticEmbedder",
    "TemporalMemory",
    "Triple",
    "UserProfile",
    "VectorIndex",
    "ViewMemory",
    "WriteReceipt",
    "audit",
    "key_actions",
    "rationale_for",
]
