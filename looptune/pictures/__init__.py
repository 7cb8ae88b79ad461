"""Pictures as arrays of grey levels: PNG, and PGM or PPM, text or binary; written as PNG or PGM.

    file ─ read ─▶ Picture: samples as the file has them ─ grey ─▶ one channel ─ levels ─▶ 0 is black, 255 is white

What the file says of gamma and transparency is left out: levels are compared and computed with as they were stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from looptune.errors import UsageError
from looptune.pictures import netpbm, png

KINDS = "PNG, PGM or PPM"
WRITTEN = (".png", ".pgm")
"""Suffixes of what ``write`` writes."""


@dataclass(frozen=True, slots=True)
class Picture:
    """``samples``: integers [height, width, 1 for grey or 3 for red, green, blue], from 0 to ``white``."""

    samples: np.ndarray
    white: int

    @property
    def grey(self) -> np.ndarray:
        """Integers [height, width] from 0 to ``white``.

        Of a colour its luma 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601) to the nearest integer, with weights in 1/65536.
        """
        if self.samples.shape[2] == 1:
            return self.samples[:, :, 0]
        weighed = self.samples.astype(np.int64) @ np.array([19595, 38470, 7471])
        return (weighed + 2**15) >> 16

    @property
    def levels(self) -> np.ndarray:
        """float64 [height, width] from 0, black, to 255, white: whole numbers where the file has 8 bits a sample."""
        return self.grey.astype(np.float64) * 255 / self.white


def is_picture(start: bytes) -> bool:
    """Whether a file that begins like this is said to be one of KINDS."""
    return start.startswith((png.SIGNATURE, *netpbm.KINDS))


def read(path: Path) -> Picture:
    """The picture in a file, by what the file holds and not by its name; UsageError where there is none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if not is_picture(data):
        raise UsageError(f"{path} is no {KINDS} picture")
    decode = png.decode if data.startswith(png.SIGNATURE) else netpbm.decode
    try:
        return Picture(*decode(data))
    except ValueError as error:
        raise UsageError(f"{path} is no picture that can be read: {error}") from error


def write(path: Path, samples: np.ndarray, white: int) -> None:
    """A picture of integers from 0 to ``white``; UsageError where it cannot be written.

    A name in ``.pgm`` is a binary PGM of [height, width], any other a PNG of [height, width] or [height, width, 3], of
    which white is 1, 3, 15, 255 or 65535.
    """
    encode = netpbm.encode if path.suffix == ".pgm" else png.encode
    try:
        path.write_bytes(encode(samples, white))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
