"""Recorded runs of earlier episodes as the benchmark's memory: read, written in its formats, retrieved."""
