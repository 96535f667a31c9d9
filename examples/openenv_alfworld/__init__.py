"""ALFWorld as an OpenEnv environment."""
