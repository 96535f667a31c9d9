"""Encoders of sentences, with published weights."""
