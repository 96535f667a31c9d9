"""Policies that act: an executor with a way of delivering memory to it, and the loop that plays episodes.

    from embodied_mem.agents.deliveries import make_delivery
    from embodied_mem.agents.player import play

Import from the modules; the package itself imports nothing.
"""
