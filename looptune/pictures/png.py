"""PNG (ISO/IEC 15948, third edition): every bit depth, palettes, interlacing; transparency is dropped.

Each row is stored less a guess from the byte before (a), the byte above (b) and the one before that (c), in one of five
ways that the row names. A pixel needs its left and upper neighbours, so pixels on one antidiagonal are independent, and
are decoded at once, whatever their rows' ways are.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, COLOUR, PALETTE = 0, 2, 3
CHANNELS = {GREY: 1, COLOUR: 3, PALETTE: 1, 4: 2, 6: 4}
DEPTHS = {GREY: (1, 2, 4, 8, 16), COLOUR: (8, 16), PALETTE: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
"""Bits a sample, by the kind of picture; 4 and 6 are grey and colour with an alpha channel behind it."""
WHOLE = ((0, 0, 1, 1),)
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""First column and row of each pass over the picture, and its steps between columns and between rows."""


def decode(data: bytes) -> tuple[np.ndarray, int]:
    """Samples [height, width, 1 or 3] and the value of white; ValueError saying what is wrong with the file."""
    parts = list(_chunks(data))
    held = dict(reversed(parts))
    if not parts or parts[0][0] != b"IHDR" or len(held[b"IHDR"]) != 13:
        raise ValueError("it does not begin with a header")
    width, height, depth, kind, *methods = struct.unpack(">IIBBBBB", held[b"IHDR"])
    if width == 0 or height == 0 or depth not in DEPTHS.get(kind, ()) or methods[:2] != [0, 0] or methods[2] > 1:
        raise ValueError(f"the header says {width} x {height} pixels of kind {kind}, {depth} bits, {methods}")
    passes = [(x, y, dx, dy) for x, y, dx, dy in (ADAM7 if methods[2] else WHOLE) if x < width and y < height]
    sizes = [(-(-(height - y) // dy), -(-(width - x) // dx)) for x, y, dx, dy in passes]
    channels = CHANNELS[kind]
    lengths = [rows * (1 + (columns * channels * depth + 7) // 8) for rows, columns in sizes]
    packed = b"".join(content for name, content in parts if name == b"IDAT")
    raw = np.frombuffer(_inflated(packed, sum(lengths)), np.uint8)
    samples = np.empty((height, width, channels), np.uint16 if depth == 16 else np.uint8)
    ends = np.cumsum(lengths)
    for (x, y, dx, dy), size, length, end in zip(passes, sizes, lengths, ends, strict=True):
        samples[y::dy, x::dx] = _pass(raw[end - length : end], size, depth, channels)
    if kind == PALETTE:
        return _coloured(samples[:, :, 0], held.get(b"PLTE", b"")), 255
    return samples[:, :, : 3 if channels > 2 else 1], 2**depth - 1


def encode(samples: np.ndarray, white: int) -> bytes:
    """A file of integers [height, width] or [height, width, 3] from 0 to ``white``, which is 2**bits - 1."""
    depth = white.bit_length()
    kind = COLOUR if samples.ndim == 3 else GREY
    assert white in (2**bits - 1 for bits in DEPTHS[kind]), f"{white} is white in no PNG"
    assert ((samples >= 0) & (samples <= white)).all(), f"samples from {samples.min()} to {samples.max()}"
    height, width = samples.shape[:2]
    if depth < 8:
        bits = (samples[:, :, None] >> np.arange(depth - 1, -1, -1)) & 1
        rows = np.packbits(bits.astype(np.uint8).reshape(height, -1), axis=1)
    else:
        rows = samples.astype(">u2" if depth == 16 else np.uint8).reshape(height, -1).view(np.uint8)
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(unfiltered.tobytes(), 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents up to the end of the picture."""
    at, name = len(SIGNATURE), b""
    while name != b"IEND":
        length = int.from_bytes(data[at : at + 4])
        name, content, check = data[at + 4 : at + 8], data[at + 8 : at + 8 + length], data[at + 8 + length :][:4]
        if len(check) < 4:
            raise ValueError("it ends before the picture does")
        if zlib.crc32(name + content) != int.from_bytes(check):
            raise ValueError(f"its part {name.decode('ascii', 'replace')} is damaged")
        yield name, content
        at += 12 + length


def _inflated(packed: bytes, size: int) -> bytes:
    """``size`` bytes and no more, however many ``packed`` would make."""
    try:
        found = zlib.decompressobj().decompress(packed, size)
    except zlib.error as error:
        raise ValueError(f"its pixels are damaged: {error}") from error
    if len(found) < size:
        raise ValueError(f"it has {len(found)} bytes of pixels, {size} are needed")
    return found


def _pass(raw: np.ndarray, size: tuple[int, int], depth: int, channels: int) -> np.ndarray:
    """Samples [rows, columns, channels] of one pass."""
    rows, columns = size
    lines = raw.reshape(rows, -1)
    flat = _unfiltered(lines[:, 0], lines[:, 1:], max(1, channels * depth // 8))
    if depth == 16:
        return flat.view(">u2").reshape(rows, columns, channels)
    if depth == 8:
        return flat.reshape(rows, columns, channels)
    bits = np.unpackbits(flat, axis=1)[:, : columns * depth].reshape(rows, columns, depth)
    found = bits @ (1 << np.arange(depth - 1, -1, -1, dtype=np.uint8))
    return found.reshape(rows, columns, channels)


def _unfiltered(ways: np.ndarray, lines: np.ndarray, step: int) -> np.ndarray:
    """Bytes [rows, bytes] of rows that are stored in these ways; ``step``: bytes of a pixel."""
    if ways.max() > 4:
        raise ValueError(f"a row is stored in the way {ways.max()}, of 0 to 4")
    rows, columns = lines.shape[0], lines.shape[1] // step
    around = np.zeros((rows + 1, columns + 1, step), np.uint8)
    around[1:, 1:] = lines.reshape(rows, columns, step)
    flat = around.reshape(-1, step)
    for diagonal in range(2, rows + columns + 1) if ways.any() else ():
        first, last = max(1, diagonal - columns), min(rows, diagonal - 1)
        start, stop = first * columns + diagonal, last * columns + diagonal + 1
        near = (flat[start - back : stop - back : columns].astype(np.int16) for back in (1, columns + 1, columns + 2))
        flat[start:stop:columns] += _guess(ways[first - 1 : last, None], *near)
    return np.ascontiguousarray(around[1:, 1:]).reshape(rows, -1)


def _guess(ways: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Zero, a, b, their mean, or (Paeth) the one of the three that is nearest to a + b - c, a before b before c."""
    to_a, to_b, to_c = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    paeth = np.where((to_a <= to_b) & (to_a <= to_c), a, np.where(to_b <= to_c, b, c))
    return np.choose(ways, (np.zeros_like(a), a, b, (a + b) // 2, paeth)).astype(np.uint8)


def _coloured(indices: np.ndarray, palette: bytes) -> np.ndarray:
    colours = np.frombuffer(palette[: len(palette) // 3 * 3], np.uint8).reshape(-1, 3)
    if indices.max() >= len(colours):
        raise ValueError(f"a pixel has the colour {indices.max()} of a palette of {len(colours)}")
    return colours[indices]
