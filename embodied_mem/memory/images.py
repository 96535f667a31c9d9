"""Images as memory keeps them: a hash, a path, a size and the caller's labels; pixels only where the caller says so.

image_record("frames/17.png")                                   # the file is read once, for its hash
image_record(Image(frame, labels={"camera": "head"}))           # an array: its hash and shape
image_record(Image(path="frames/17.png", hash="9f86..."))       # nothing is read
image_record(Image(jpeg, keep=True))                            # bytes stay in the events, until they are forgotten
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInputError
from .arguments import checked_flag, checked_text, shown
from .events import Value
from .notes import checked_labels

_MAX_KEPT_BYTES = 1 << 22
_FILES = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"


class Image(NamedTuple):
    """An image.

    Attributes:
        data: an encoded file as bytes, or pixels as an array; None for the file of `path`.
        path: where the caller keeps it; empty if nowhere.
        hash: SHA-256 in hexadecimal digits; empty to take that of the data or the file.
        labels: the caller's own.
        keep: whether the bytes themselves go into the events and the state, 4 MiB at most.
    """

    data: bytes | np.ndarray | None = None
    path: str | os.PathLike[str] = ""
    hash: str = ""
    labels: Mapping[str, Value] | None = None
    keep: bool = False


def image_record(image: Any) -> dict[str, Any]:
    """Return the JSON form of an image, bytes, array or path.

    Raises:
        InvalidInputError: what is no image, or a file that cannot be read.
    """
    if isinstance(image, (str, os.PathLike)):
        image = Image(path=image)
    elif isinstance(image, (bytes, np.ndarray)):
        image = Image(image)
    if not isinstance(image, Image) or not isinstance(image.path, (str, os.PathLike)):
        raise InvalidInputError(f"images: expected an Image, bytes, an array or the path of a file, got {shown(image)}")
    path = checked_text("images: path", os.fspath(image.path))
    data, shape = image.data, None
    if data is not None and not isinstance(data, (bytes, np.ndarray)):
        raise InvalidInputError(f"images: data: expected bytes, an array or None, got {shown(data)}")
    if isinstance(data, np.ndarray):
        shape, kind = list(data.shape), f"{data.dtype.str} {data.shape} "
        data = np.ascontiguousarray(data).tobytes()
        digest = hashlib.sha256(kind.encode() + data).hexdigest()
    elif data is None and (not image.hash or image.keep):
        try:
            data = pathlib.Path(path).read_bytes()
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"images: expected data, a file that can be read, or its hash, got {shown(path)}: {error}"
            ) from error
    if shape is None:
        digest = hashlib.sha256(data).hexdigest() if data is not None else ""
    record: dict[str, Any] = {"hash": checked_text("images: hash", image.hash) or digest}
    if path:
        record["path"] = path
    if data is not None:
        record["bytes"] = len(data)
    if shape is not None:
        record["shape"] = shape
    if labels := checked_labels(image.labels):
        record["labels"] = labels
    if checked_flag("images: keep", image.keep):
        if data is None or len(data) > _MAX_KEPT_BYTES:
            raise InvalidInputError(f"images: keep: expected at most {_MAX_KEPT_BYTES} bytes, got {len(data or b'')}")
        record["data"] = base64.b64encode(data).decode()
    return record


def pictures_of(images: Iterable[Any]) -> list[bytes | np.ndarray]:
    """Return the images that a model can see, as `language.images` takes them."""
    pictures: list[Any] = []
    for image in images:
        if isinstance(image, (str, os.PathLike)):
            image = Image(path=image)
        data = image.data if isinstance(image, Image) else image
        if data is None and isinstance(image, Image) and image.path:
            try:
                data = pathlib.Path(image.path).read_bytes()
            except (OSError, ValueError):
                continue  # a path that only names where the picture was
        if isinstance(data, np.ndarray):
            is_shown = data.dtype == np.uint8 and data.shape[2:] == (3,)
        else:
            is_shown = isinstance(data, bytes) and data.startswith(_FILES)
        if is_shown:
            pictures.append(data)
    return pictures


def image_text(record: Mapping[str, Any]) -> str:
    """Describe the image briefly: hash prefix, path, labels."""
    rest = [str(record["path"])] if "path" in record else []
    rest += [f"{name} {value}" for name, value in record.get("labels", {}).items()]
    return f"image {record['hash'][:12]}" + (f" ({', '.join(rest)})" if rest else "")
