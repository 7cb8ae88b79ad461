"""Pictures as arrays of grey levels, read by Pillow: PNG, and PGM or PPM, text or binary; written as PNG or PGM.

Gamma and transparency in a file are ignored: levels are used as they are stored.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from looptune.core.cache_file import read_file, replace_by
from looptune.core.errors import UsageError

KINDS = "PNG, PGM or PPM"
WRITTEN = (".png", ".pgm")
"""Suffixes of what ``write`` writes."""
_STARTS = (b"\x89PNG\r\n\x1a\n", b"P2", b"P3", b"P5", b"P6")
_FORMATS = ("PNG", "PPM")
_ONE = ((0, 0, 1, 1),)
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Of an interlaced PNG (Adam7): the first column and row of each pass, and the steps to the next."""
_DEEP = 65535
_LARGEST = 2**30
"""Bytes of a picture."""


def is_picture(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of one of KINDS."""
    return start.startswith(_STARTS)


def read(path: Path) -> np.ndarray:
    """Return a picture as float64 [height, width] from 0, black, to 255, white; raises UsageError if there is none.

    Values are whole numbers if the file has 8 bits a sample. A colour becomes its luma 0.299 R + 0.587 G + 0.114 B
    (ITU-R BT.601), rounded to the nearest integer. The first bytes of the file determine its kind, not its name.
    """
    try:
        data = read_file(path, _LARGEST)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if not is_picture(data):
        raise UsageError(f"{path} is not a {KINDS} picture")
    pillow = _pillow()
    try:
        with pillow.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.format == "PNG":
                _whole(data)
            return _levels(image)
    except pillow.UnidentifiedImageError:
        raise UsageError(f"{path} is not a readable picture: its header is damaged") from None
    except (OSError, SyntaxError, ValueError, struct.error, zlib.error, pillow.DecompressionBombError) as error:
        raise UsageError(f"{path} is not a readable picture: {error}") from error


def _levels(image: Any) -> np.ndarray:
    if image.mode.startswith("I"):
        return np.asarray(image, np.float64) * 255 / _DEEP
    # Through RGB, which drops transparency and looks a palette up.
    return np.asarray(image if image.mode == "L" else image.convert("RGB").convert("L"), np.float64)


def _whole(data: bytes) -> None:
    """ValueError where a PNG holds less than its rows, for which Pillow puts zeros."""
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in (_PASSES if interlaced else _ONE)]
    wanted = sum(h * (1 + (w * bits + 7) // 8) for w, h in rows if w > 0 and h > 0)
    packed, at = b"", 8
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        packed += data[at + 8 : at + 8 + length] if data[at + 4 : at + 8] == b"IDAT" else b""
        at += length + 12
    held = len(zlib.decompressobj().decompress(packed, wanted))
    if held < wanted:
        raise ValueError(f"its rows take {wanted:,} bytes, it holds {held:,}")


def write(path: Path, levels: np.ndarray) -> None:
    """Write an image of integers from 0 to 255. The shape is [height, width] or, in colour, [height, width, 3].

    A binary PGM or PPM where the name ends in .pgm, else a PNG. UsageError where it cannot be written.
    """
    assert ((levels >= 0) & (levels <= 255)).all(), f"levels from {levels.min()} to {levels.max()}"
    image = _pillow().fromarray(np.ascontiguousarray(levels, np.uint8))
    try:
        replace_by(path, lambda file: image.save(file, _FORMATS[path.suffix == ".pgm"]))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise UsageError("pictures are read by Pillow: install it with: pip install 'looptune[pictures]'") from None
    return Image
