"""Publishers' files made into what the world reads."""
