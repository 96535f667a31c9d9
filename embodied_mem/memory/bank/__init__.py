"""Successful episodes with the reasons for their success, found by goal."""
