"""What is remembered: successful episodes with rationales, found by goal, and a graph of facts with their times.

    from embodied_mem.memory import MemoryBank
    bank = MemoryBank()
    bank.add(episode)
    bank.retrieve(goal, top_k=2, context=first_observation)[0].render()

    from embodied_mem.memory import KnowledgeGraph, Triple
    graph = KnowledgeGraph()
    graph.update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

    from embodied_mem.memory import DurableGraph, GraphModule, MemoryStore
    with MemoryStore("memory/ann", {"graph": (module := GraphModule())}) as store:
        DurableGraph(store, module).update([Triple("apple 1", "in", "fridge 1", valid_at=3)])

Numpy only.
"""

from .audit import Audit
from .bank import Experience, MemoryBank, trial_key
from .durable_graph import DurableGraph, GraphModule
from .facts import HOUSEHOLD_RULES, ConflictRule, NewFact, NewNode, Scope, Triple
from .graph import KnowledgeGraph
from .lexical import Embedder, LexicalEmbedder
from .rationale import goal_object, key_actions, rationale_for, room_text
from .store import MemoryStore, Receipt, Selector, StoreModule

__all__ = [
    "HOUSEHOLD_RULES",
    "Audit",
    "ConflictRule",
    "DurableGraph",
    "Embedder",
    "Experience",
    "GraphModule",
    "KnowledgeGraph",
    "LexicalEmbedder",
    "MemoryBank",
    "MemoryStore",
    "NewFact",
    "NewNode",
    "Receipt",
    "Scope",
    "Selector",
    "StoreModule",
    "Triple",
    "goal_object",
    "key_actions",
    "rationale_for",
    "room_text",
    "trial_key",
]
