"""Qwen2.5-VL: its vision tower, and a decoder that reads images."""
