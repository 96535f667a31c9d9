"""The user profile: what users say about themselves as a graph, by rules or by a chat model."""
