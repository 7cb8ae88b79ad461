"""PGM and PPM, grey and colour, as text (P2, P3) or binary (P5, P6), up to 16 bits a sample."""

from __future__ import annotations

import re

import numpy as np

KINDS = (b"P2", b"P3", b"P5", b"P6")
_HEADER = re.compile(rb"P([2356])" + rb"(?:\s|#[^\n]*\n)+(\d+)" * 3 + rb"(?:\s|#[^\n]*\n)")
"""Kind, width, height and the value of white, between which there may be comments; one white space ends it."""


def decode(data: bytes) -> tuple[np.ndarray, int]:
    """Samples [height, width, 1 or 3] and the value of white; ValueError saying what is wrong with the file."""
    header = _HEADER.match(data)
    if header is None:
        raise ValueError("it does not begin with its kind, width, height and value of white")
    kind, width, height, white = (int(number) for number in header.groups())
    if width == 0 or height == 0 or not 0 < white < 2**16:
        raise ValueError(f"the header says {width} x {height} pixels, white is {white}")
    shape = (height, width, 1 if kind in (2, 5) else 3)
    samples = (_numbers if kind < 5 else _bytes)(data[header.end() :], shape[0] * shape[1] * shape[2], white)
    if samples.max() > white:
        raise ValueError(f"it has {samples.max()} where white is {white}")
    return samples.reshape(shape), white


def encode(samples: np.ndarray, white: int) -> bytes:
    """A binary PGM of integers [height, width] from 0 to ``white``."""
    assert ((samples >= 0) & (samples <= white)).all(), f"samples from {samples.min()} to {samples.max()}"
    height, width = samples.shape
    return b"P5\n%d %d\n%d\n" % (width, height, white) + samples.astype(_sample(white)).tobytes()


def _numbers(text: bytes, count: int, white: int) -> np.ndarray:
    words = re.sub(rb"#[^\n]*", b"", text).split()[:count]
    wrong = next((word for word in words if not word.isdigit() or len(word) > 9), None)
    if wrong is not None:
        raise ValueError(f"{wrong[:20].decode('ascii', 'replace')!r} is no level")
    return _enough(np.array([int(word) for word in words], np.int64), count)


def _bytes(content: bytes, count: int, white: int) -> np.ndarray:
    sample = _sample(white)
    return _enough(np.frombuffer(content[: len(content) // sample.itemsize * sample.itemsize], sample)[:count], count)


def _sample(white: int) -> np.dtype:
    return np.dtype(np.uint8 if white < 256 else ">u2")


def _enough(samples: np.ndarray, count: int) -> np.ndarray:
    if len(samples) < count:
        raise ValueError(f"it has {len(samples)} samples, {count} are needed")
    return samples
