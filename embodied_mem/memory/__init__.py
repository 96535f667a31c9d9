"""Memory: episodes, facts with their times, regularities, user profiles; and their storage.

    from embodied_mem.memory import LifelongMemory
    memory = LifelongMemory()                                # spatial, temporal, episodic, semantic, user profile
    memory.begin_task(task_id, goal, observation)
    memory.observe(action, observation)
    memory.retrieve(budget_tokens=200).render()

    from embodied_mem.memory import KnowledgeGraph, Triple
    graph = KnowledgeGraph()
    graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

    from embodied_mem.memory import Experiences              # successful episodes with rationales, found by goal
    bank = Experiences()
    bank.add(episode)
    bank.retrieve(goal, k=2, context=first_observation)[0].render()

    from embodied_mem.memory import VectorIndex
    index = VectorIndex(dim=384)
    index.add(ids, vectors)
    ids, scores = index.search(queries, 5)

Numpy only.
"""

from .async_memory import AsyncLifelongMemory
from .bank import Experience, Experiences
from .chat_writer import ChatWriter
from .embedders import Embedder, LexicalEmbedder, StaticEmbedder
from .graph import KnowledgeGraph, NewFact, NewNode, Scope, Triple
from .images import Image
from .lifelong import LifelongMemory
from .observation import Outcome
from .recollection import Recollection, WriteReceipt
from .record import Record, Source
from .relations import HOUSEHOLD, Relation, Relations
from .store import MemoryStore
from .stored_modules import Selector
from .vectors import VectorIndex

__all__ = [
    "HOUSEHOLD",
    "AsyncLifelongMemory",
    "ChatWriter",
    "Embedder",
    "Experience",
    "Experiences",
    "Image",
    "KnowledgeGraph",
    "LexicalEmbedder",
    "LifelongMemory",
    "MemoryStore",
    "NewFact",
    "NewNode",
    "Outcome",
    "Recollection",
    "Record",
    "Relation",
    "Relations",
    "Scope",
    "Selector",
    "Source",
    "StaticEmbedder",
    "Triple",
    "VectorIndex",
    "WriteReceipt",
]
