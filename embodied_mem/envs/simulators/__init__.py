"""Worlds that a real simulator plays, in a process and a Python of its own."""
