"""The name by which verifiers finds the worlds: its plugins are top-level modules. See embodied_mem/serve/verifiers.py.

vf-eval embodied_mem_verifiers --env.taskset.world alfworld
"""

from embodied_mem.serve.verifiers import WorldEnv, WorldTaskset

__all__ = ["WorldEnv", "WorldTaskset"]
