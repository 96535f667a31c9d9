"""Search by vectors and by words."""
