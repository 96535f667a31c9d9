"""A local folder that fsspec and `etils.epath` take for `gs://`.

serve(folder)       # gs://bucket/run is folder/bucket/run
"""

from __future__ import annotations

import os
import pathlib

import fsspec
from etils.epath import backend
from fsspec.implementations.local import LocalFileSystem


def serve(folder: pathlib.Path) -> None:
    class Buckets(LocalFileSystem):
        protocol = ("gs", "gcs")

        def __init__(self, **options):
            super().__init__(auto_mkdir=True)

        @classmethod
        def _strip_protocol(cls, path):
            path = os.fspath(path)
            return str(folder / path.removeprefix("gs://")) if path.startswith("gs://") else path

    for name in ("gs", "gcs"):
        fsspec.register_implementation(name, Buckets, clobber=True)
    Buckets.clear_instance_cache()
    backend.fsspec_backend._get_filesystem.cache_clear()
