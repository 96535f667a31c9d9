"""Builds the extension `embodied_mem._native` with CMake; everything else is declared in pyproject.toml."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class CMakeBuild(build_ext):
    """Runs CMake for the one extension and puts the library where setuptools wants it."""

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        build = Path(self.build_temp).resolve()
        build.mkdir(parents=True, exist_ok=True)
        import pybind11

        configure = [
            "cmake",
            *["-S", str(ROOT), "-B", str(build)],
            *(["-G", "Ninja"] if shutil.which("ninja") else []),
            f"-DCMAKE_BUILD_TYPE={os.environ.get('EMBODIED_MEM_BUILD_TYPE', 'Release')}",
            f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={target.parent}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
            f"-DEMBODIED_MEM_WERROR={os.environ.get('EMBODIED_MEM_WERROR', 'OFF')}",
        ]
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1)], check=True)


setup(ext_modules=[Extension("embodied_mem._native", sources=[])], cmdclass={"build_ext": CMakeBuild})
