"""Qwen2.5-VL and Qwen3-VL: their vision tower, and a decoder that reads images."""
