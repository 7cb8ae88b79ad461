"""Pictures as arrays of grey levels, by Pillow: PNG, and PGM or PPM, text or binary; written as PNG or PGM.

What a file says of gamma and transparency is left out: levels are compared and computed with as they were stored.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from looptune.errors import UsageError

KINDS = "PNG, PGM or PPM"
WRITTEN = (".png", ".pgm")
"""Suffixes of what ``write`` writes."""
_STARTS = (b"\x89PNG\r\n\x1a\n", b"P2", b"P3", b"P5", b"P6")
_FORMATS = ("PNG", "PPM")
_DEEP = 65535


def is_picture(start: bytes) -> bool:
    """Whether a file that begins like this is said to be one of KINDS."""
    return start.startswith(_STARTS)


def read(path: Path) -> np.ndarray:
    """float64 [height, width] from 0, black, to 255, white: whole numbers where the file has 8 bits a sample.

    Of a colour its luma 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601) to the nearest integer. What a file is its first
    bytes say, and not its name. UsageError where there is no such picture.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if not is_picture(data):
        raise UsageError(f"{path} is no {KINDS} picture")
    pillow = _pillow()
    try:
        with pillow.open(io.BytesIO(data), formats=_FORMATS) as image:
            return _levels(image)
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        raise UsageError(f"{path} is no picture that can be read: {error}") from error


def _levels(image: Any) -> np.ndarray:
    if image.mode.startswith("I"):
        return np.asarray(image, np.float64) * 255 / _DEEP
    # Through RGB, which drops transparency and looks a palette up.
    return np.asarray(image if image.mode == "L" else image.convert("RGB").convert("L"), np.float64)


def write(path: Path, levels: np.ndarray) -> None:
    """A picture of integers from 0 to 255, [height, width] or, of colours, [height, width, 3]: a binary PGM or PPM
    where the name ends in .pgm, else a PNG. UsageError where it cannot be written."""
    assert ((levels >= 0) & (levels <= 255)).all(), f"levels from {levels.min()} to {levels.max()}"
    image = _pillow().fromarray(np.ascontiguousarray(levels, np.uint8))
    try:
        image.save(path, _FORMATS[path.suffix == ".pgm"])
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise UsageError("pictures are read by Pillow: install it with: pip install 'looptune[pictures]'") from None
    return Image
