"""Pictures as parts of chat messages, and what stands for them in recordings.

    content("What is on the desk?", [pixels])     # a list of parts: the text, then each picture as a data URL
    without_images(messages)                      # the same messages with hashes instead of pictures

A picture is uint8[height, width, 3], or the bytes of a PNG or JPEG file. A model in this process reads them with
`said_parts` and `pixels`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInputError, MissingDependencyError
from ..types import Observation
from .chat import Message

Picture = np.ndarray | bytes
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_HASHED = "sha256:"


def png(pixels: np.ndarray) -> bytes:
    """Return a PNG file of uint8[height, width, 3].

    The same pixels give the same bytes.

    Raises:
        InvalidInputError: another shape or type.
    """
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        got = f"{pixels.dtype}{list(pixels.shape)}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise InvalidInputError(f"image: expected uint8[height, width, 3], or the bytes of a PNG or JPEG, got {got}")
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row begins with its filter, none
    rows[:, 1:] = pixels.reshape(height, 3 * width)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # eight bits of red, green and blue
    return _PNG + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b"")


def observation(text: str, info: Mapping[str, Any], row: int) -> Observation:
    """Return what a row of a vector environment sees: text and pictures.

    Raises:
        InvalidInputError: what stands there is no picture.
    """
    shown = info["images"][row] if "images" in info else None
    if shown is None:
        return Observation(text)
    pictures = (shown,) if isinstance(shown, np.ndarray | bytes) else tuple(shown)
    return Observation(text, tuple(one if isinstance(one, bytes) else png(one) for one in pictures))


class ImagePool:
    """The pictures of a file of records: each is named by its SHA-256 and written once, where it is first named."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def stored(self, images: Sequence[Sequence[bytes]]) -> dict[str, Any]:
        """Return a record's pictures as JSON.

        {"images": names, "image_files": those not yet written, in base64}; nothing where it has none.
        """
        if not any(images):
            return {}
        names, new = [], {}
        for several in images:
            names.append([hashlib.sha256(image).hexdigest() for image in several])
            for name, image in zip(names[-1], several):
                if name not in self._known:
                    self._known[name], new[name] = image, base64.b64encode(image).decode()
        return {"images": names} | ({"image_files": new} if new else {})

    def read(self, record: Mapping[str, Any], count: int) -> list[tuple[bytes, ...]]:
        """Return the pictures of a record, in `count` groups.

        They are empty where it has none.

        Raises:
            InvalidInputError: another number of groups, a picture that no record holds, or one of another hash.
        """
        for name, text in record.get("image_files", {}).items():
            image = base64.b64decode(text, validate=True)
            if hashlib.sha256(image).hexdigest() != name:
                raise InvalidInputError(f"image_files: expected a picture with SHA-256 {name}, got another")
            self._known[name] = image
        groups = record.get("images", [()] * count)
        if len(groups) != count or not {name for group in groups for name in group} <= self._known.keys():
            raise InvalidInputError(f"images: expected {count} lists of names of pictures in the file, got others")
        return [tuple(self._known[name] for name in group) for group in groups]


def content(text: str, images: Sequence[Picture] = ()) -> str | list[dict[str, object]]:
    """Return a message's content: the text, or text and pictures.

    With pictures, it has OpenAI's content parts, the text first.

    Raises:
        InvalidInputError: something that is no picture.
    """
    if not images:
        return text
    parts: list[dict[str, object]] = [{"type": "text", "text": text}]
    for image in images:
        data = image if isinstance(image, bytes) else png(image)
        kind = "png" if data.startswith(_PNG) else "jpeg" if data.startswith(_JPEG) else ""
        if not kind:
            raise InvalidInputError("image: expected the bytes of a PNG or JPEG file, got others")
        url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def texts_and_images(messages: Sequence[Message]) -> tuple[list[str], int]:
    """Return (the texts, the number of pictures) of messages."""
    texts, count = [], 0
    for message in messages:
        said = message.get("content", "")
        for part in said if isinstance(said, list) else [{"text": said}]:
            is_image = isinstance(part, dict) and part.get("type") == "image_url"
            count += is_image
            texts += [] if is_image else [str(part.get("text", "")) if isinstance(part, dict) else str(part)]
    return texts, count


def said_parts(said: object, where: str) -> list[str | bytes]:
    """Return texts and pictures of a message's content, in order.

    Texts that follow each other are one.

    Args:
        said: the content, as `content` makes it.
        where: of it, for errors.

    Raises:
        InvalidInputError: something else; also the address of a picture elsewhere, which nobody fetches.
    """
    if isinstance(said, str):
        return [said]
    if not isinstance(said, list):
        raise InvalidInputError(f"{where}: expected a text, or parts of a text, got {type(said).__name__}")
    parts: list[str | bytes] = []
    for number, part in enumerate(said):
        kind = part.get("type") if isinstance(part, dict) else None
        value = part.get(kind) if isinstance(part, dict) and kind in ("text", "image_url") else None
        url = value.get("url") if isinstance(value, dict) else None
        if kind == "text" and isinstance(value, str):
            if parts and isinstance(before := parts[-1], str):
                parts[-1] = before + value
            else:
                parts.append(value)
            continue
        _, found, data = url.partition(";base64,") if isinstance(url, str) and url.startswith("data:") else ("", "", "")
        if not found:
            raise InvalidInputError(
                f"{where}, part {number}: expected a text, or a picture as a data URL, got {str(part)[:120]}"
            )
        try:
            parts.append(base64.b64decode(data, validate=True))
        except binascii.Error as error:
            raise InvalidInputError(f"{where}, part {number}: expected a picture in base64: {error}") from error
    return parts


def pixels(data: bytes) -> np.ndarray:
    """uint8[height, width, 3] of a file.

    Raises:
        InvalidInputError: it is no picture.
        MissingDependencyError: without the package `pillow`.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "the package `pillow` is not installed; install it with: pip install pillow"
        ) from error
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as opened:
            return np.asarray(opened.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InvalidInputError(f"image: expected the bytes of a PNG or JPEG file: {error}") from error


def without_images(messages: Sequence[Message]) -> list[Message]:
    """Replace each picture in messages by `sha256:...`.

    Other messages are as they were.
    """
    return [
        {**message, "content": [_hashed(part) for part in said]}
        if isinstance(message, dict) and isinstance(said := message.get("content"), list)
        else message
        for message in messages
    ]


def _hashed(part: object) -> object:
    place = part.get("image_url") if isinstance(part, dict) else None
    url = place.get("url") if isinstance(place, dict) else None
    if not (isinstance(part, dict) and isinstance(place, dict) and isinstance(url, str) and url.startswith("data:")):
        return part
    return {**part, "image_url": {**place, "url": _HASHED + hashlib.sha256(url.encode()).hexdigest()}}
