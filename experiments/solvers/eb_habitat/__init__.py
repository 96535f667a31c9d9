"""EB-Habitat's agent by rules, its reading of instructions, and its scores."""
