"""ScienceWorld's agents by rules, and their scores."""
