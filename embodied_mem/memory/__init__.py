"""What is remembered: successful episodes with rationales, found by goal.

    from embodied_mem.memory import MemoryBank
    bank = MemoryBank()
    bank.add(episode)
    bank.retrieve(goal, top_k=2, context=first_observation)[0].render()

Numpy only.
"""

from .bank import Experience, MemoryBank, trial_key
from .lexical import Embedder, LexicalEmbedder
from .rationale import goal_object, key_actions, rationale_for, room_text

__all__ = [
    "Embedder",
    "Experience",
    "LexicalEmbedder",
    "MemoryBank",
    "goal_object",
    "key_actions",
    "rationale_for",
    "room_text",
    "trial_key",
]
