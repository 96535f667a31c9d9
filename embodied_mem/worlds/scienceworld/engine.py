"""ScienceWorld in C++; `make` plays admitted tasks by it; `engine.pyi` has its types."""

from embodied_mem.native import part

_native = part("scienceworld")
Task, Env, VectorEnv = _native.Task, _native.Env, _native.VectorEnv
read_task = _native.read_task
