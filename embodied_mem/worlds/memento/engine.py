"""MEMENTO's native world; `engine.pyi` has its types, `csrc/bindings/memento.cpp` says what each call does."""

from embodied_mem.native import part

_native = part("memento")
Houses, Task, Env, VectorEnv, read_tasks = (
    _native.Houses, _native.Task, _native.Env, _native.VectorEnv, _native.read_tasks,
)  # fmt: skip
