"""Spatial memory: a graph of places and states, and the rules that keep it."""
