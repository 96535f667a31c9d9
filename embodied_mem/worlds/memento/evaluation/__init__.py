"""MEMENTO's two-stage protocol, its tables and the numbers its paper reports."""
