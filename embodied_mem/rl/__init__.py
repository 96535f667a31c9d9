"""Reinforcement learning as pure functions of arrays: advantages and losses."""
