"""Bodies: what a robot can do, how a task is run on one, and a simulated one whose skills fail.

    from embodied_mem.agents.robot.runner import Runner

Import from the modules; the package itself imports nothing.
"""
