"""The memories of one agent: spatial, temporal, episodic, semantic, and the user's profile."""
