"""What the planner-critic of ScienceWorld is made of, and the agent that plays by the words of a goal."""
