"""MEMENTO's agent by rules, its two-stage protocol, tables, and the paper's numbers."""
