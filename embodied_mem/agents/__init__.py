"""Policies that act: agents by text, executors with memory delivered to them, and the loops that play episodes.

    from embodied_mem.agents.agent import Agent
    from embodied_mem.agents.deliveries import make_delivery
    from embodied_mem.agents.rollout import play, rollout

Import from the modules; the package itself imports nothing.
"""
