"""One folder per benchmark world. Everything outside this folder knows no benchmark.

A world is found by name (`embodied_mem.registry`); its folder's `__init__` holds its card.
"""
