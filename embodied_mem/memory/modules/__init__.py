"""Memories of an agent: notes, steps, episodes and lessons; and what several memories are made of."""
