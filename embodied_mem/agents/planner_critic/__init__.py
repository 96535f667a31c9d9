"""An agent that plans, acts, and lets a critic judge each step against what it remembers.

    from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent

Import from the modules; the package itself imports nothing.
"""
