"""Planner and critic by rules, what they believe, and the commands as skills."""
