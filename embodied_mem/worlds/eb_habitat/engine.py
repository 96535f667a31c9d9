"""EB-Habitat's native world; `engine.pyi` has its types, `csrc/bindings/eb_habitat.cpp` says what each call does."""

from embodied_mem.native import part

_native = part("eb_habitat")
Scenes, Task, Env, VectorEnv = _native.Scenes, _native.Task, _native.Env, _native.VectorEnv
read_tasks, TARGETS = _native.read_tasks, _native.TARGETS
ACTIONS = _native.ACTIONS
"""The words of the 70 actions; an action's place is its number."""
