"""EB-ALFRED's native world; `engine.pyi` has its types, `csrc/bindings/eb_alfred.cpp` says what each call does."""

from embodied_mem.native import part

_native = part("eb_alfred")
Catalog, Task, Env, VectorEnv = _native.Catalog, _native.Task, _native.Env, _native.VectorEnv
