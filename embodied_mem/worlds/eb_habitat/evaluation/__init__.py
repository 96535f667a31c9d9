"""Scores of EB-Habitat on tasks of our own: places that are described by other places."""
