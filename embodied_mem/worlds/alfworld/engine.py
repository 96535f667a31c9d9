"""ALFWorld's native engine; `engine.pyi` has its types, `csrc/bindings/alfworld.cpp` says what each call does."""

from embodied_mem.native import part

_native = part("alfworld")
Game, Env, VectorEnv = _native.Game, _native.Env, _native.VectorEnv
