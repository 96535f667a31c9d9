"""An agent for MEMENTO by rules: reads the instruction, recalls, searches, plans."""
