"""The knowledge graph: facts with times and sources, their conflicts, their audit."""
