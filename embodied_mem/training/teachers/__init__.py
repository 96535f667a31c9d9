"""Training data: labels of a teacher in its own episodes and in those of the student."""
