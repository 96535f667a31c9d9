"""Agents by rules that plan by a benchmark's own words, a folder each, with the scores of that benchmark."""
