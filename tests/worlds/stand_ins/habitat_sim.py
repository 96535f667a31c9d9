"""Stand-in for habitat_sim, so that habitat-lab can be imported without it: every name in it is there and does nothing.

So are those of what comes with it or is large (magnum, corrade, cv2, imageio). A part that is played with has a
stand-in of its own, `apartment.py`.
"""

import importlib.abc
import importlib.machinery
import sys
import types

import numpy as np

__version__ = "0.3.3"


class _Names(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Names(name, (_Nothing,), {})


class _Nothing(metaclass=_Names):
    def __init__(self, *arguments, **options):
        pass

    def __call__(self, *arguments, **options):
        return _Nothing()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


class _Module(types.ModuleType):
    __path__ = []  # noqa: RUF012

    def __getattr__(self, name):
        return getattr(_Nothing, name)

    def imread(self, *arguments, **options):
        return np.zeros((2, 2, 4), np.uint8)

    def applyColorMap(self, values, *arguments):
        return np.zeros((values.size, 1, 3), np.uint8)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("habitat_sim", "magnum", "corrade", "cv2", "imageio"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


__path__ = []


def __getattr__(name):
    return getattr(_Nothing, name)


sys.meta_path.insert(0, _Finder())
