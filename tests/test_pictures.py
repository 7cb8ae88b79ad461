"""Pictures: PNG, PGM and PPM of every kind give their samples, what is written is read again, mistakes are messages."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from looptune import pictures
from looptune.errors import UsageError
from looptune.pictures import Picture, netpbm, png

RNG = np.random.default_rng(0)
KINDS = [(kind, depth) for kind, depths in png.DEPTHS.items() for depth in depths]


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def file_of(samples: np.ndarray, kind: int, depth: int, interlaced: bool = False, palette: bytes = b"") -> bytes:
    """As the standard says it, byte by byte: the rows of each pass in a way chosen at random."""
    height, width, channels = samples.shape
    passes = png.ADAM7 if interlaced else png.WHOLE
    packed = b"".join(rows_of(samples[y::dy, x::dx], depth, max(1, channels * depth // 8)) for x, y, dx, dy in passes)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    content = zlib.compress(packed)
    parts = chunk(b"PLTE", palette) if palette else b""
    halves = chunk(b"IDAT", content[:7]) + chunk(b"IDAT", content[7:])
    return png.SIGNATURE + chunk(b"IHDR", header) + chunk(b"tEXt", b"by\0hand") + parts + halves + chunk(b"IEND", b"")


def rows_of(samples: np.ndarray, depth: int, step: int) -> bytes:
    if samples.shape[1] == 0:
        return b""
    lines = ["".join(f"{v:0{depth}b}" for v in row.reshape(-1)) for row in samples]
    lines = [line + "0" * (-len(line) % 8) for line in lines]
    whole = [[int(line[k : k + 8], 2) for k in range(0, len(line), 8)] for line in lines]
    found = bytearray()
    for y, row in enumerate(whole):
        way = int(RNG.integers(5))
        found.append(way)
        for k, value in enumerate(row):
            a = row[k - step] if k >= step else 0
            b = whole[y - 1][k] if y else 0
            c = whole[y - 1][k - step] if y and k >= step else 0
            nearest = min((a, b, c), key=lambda n: abs(a + b - c - n))
            found.append((value - (0, a, b, (a + b) // 2, nearest)[way]) % 256)
    return bytes(found)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("kind", "depth"), KINDS)
def test_every_kind_of_png_gives_its_samples(kind: int, depth: int, interlaced: bool) -> None:
    """Whatever the depth, the channels, the order of the pixels and the way each row is stored."""
    for height, width in ((1, 1), (1, 9), (9, 1), (4, 3), (13, 11)):
        samples = RNG.integers(2**depth, size=(height, width, png.CHANNELS[kind]))
        colours = RNG.integers(256, size=(2**depth, 3)).astype(np.uint8) if kind == png.PALETTE else None
        data = file_of(samples, kind, depth, interlaced, b"" if colours is None else colours.tobytes())
        found, white = png.decode(data)
        expected = samples[:, :, : 3 if kind in (2, 6) else 1] if colours is None else colours[samples[:, :, 0]]
        np.testing.assert_array_equal(found, expected)
        assert white == (2**depth - 1 if colours is None else 255)


@pytest.mark.parametrize("kind", [b"2", b"3", b"5", b"6"])
@pytest.mark.parametrize("white", [1, 100, 255, 256, 65535])
def test_every_kind_of_pgm_gives_its_samples(kind: bytes, white: int) -> None:
    """As text and in bytes, with comments in the header, and a picture or more behind it."""
    channels = 1 if kind in b"25" else 3
    samples = RNG.integers(white + 1, size=(4, 3, channels))
    body = " # here\n".join(map(str, samples.reshape(-1))).encode() + b" # the end"
    body = samples.astype(">u2" if white > 255 else np.uint8).tobytes() + b"\nP5" if kind in b"56" else body
    data = b"P" + kind + b"\n# made by hand, 1998\n#\n3 # wide\n4\t%d\n" % white + body
    found, same = netpbm.decode(data)
    np.testing.assert_array_equal(found, samples)
    assert same == white


@pytest.mark.parametrize("white", [1, 3, 15, 255, 65535])
def test_what_is_written_is_read_again(white: int, tmp_path: Path) -> None:
    """Grey and, with 8 bits and 16, colour."""
    for name, shape in (("a.png", (5, 7)), ("a.pgm", (5, 7)), *([("a.png", (5, 7, 3))] if white > 15 else [])):
        samples = RNG.integers(white + 1, size=shape)
        pictures.write(tmp_path / name, samples, white)
        found = pictures.read(tmp_path / name)
        np.testing.assert_array_equal(found.samples.reshape(shape), samples)
        assert found.white == white


def test_another_reader_and_writer_agree() -> None:
    """Pillow reads what is written, writes what is read, and turns colour to the same grey."""
    image = pytest.importorskip("PIL.Image")
    samples = RNG.integers(256, size=(40, 30, 3)).cumsum(axis=1).astype(np.uint8)
    assert np.array_equal(np.asarray(image.open(io.BytesIO(png.encode(samples, 255)))), samples)
    for mode in ("L", "RGB", "P", "1", "RGBA", "LA", "I;16"):
        made = image.fromarray(samples).convert("L" if mode == "I;16" else mode)
        made = image.fromarray(samples[:, :, 0].astype(np.uint16) * 251) if mode == "I;16" else made
        stream = io.BytesIO()
        made.save(stream, "png", optimize=True)
        found = Picture(*png.decode(stream.getvalue()))
        plain = made if mode == "I;16" else made.convert("RGB").convert("L")
        expected = np.asarray(plain).astype(float) * (255 / 65535 if mode == "I;16" else 1)
        np.testing.assert_allclose(found.levels, expected, rtol=1e-12, err_msg=mode)


def test_levels_are_0_to_255_whatever_the_depth() -> None:
    """Black is 0 and white is 255; 8 bits are as they stand; of colours green counts most."""
    samples = np.arange(256).reshape(16, 16, 1)
    np.testing.assert_array_equal(Picture(samples, 255).levels, samples[:, :, 0])
    np.testing.assert_array_equal(Picture(samples.astype(np.uint16) * 257, 65535).levels, samples[:, :, 0])
    np.testing.assert_array_equal(Picture(np.array([[[0], [1]]]), 1).levels, [[0, 255]])
    colours = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]], np.uint8)
    np.testing.assert_array_equal(Picture(colours, 255).levels, [[76, 150, 29, 255]])


GOOD = file_of(np.arange(12).reshape(4, 3, 1), png.GREY, 8)
WRONG = {
    "no picture": (b"\xff\xd8\xff\xe0 JFIF", "is no PNG, PGM or PPM picture"),
    "nothing": (b"", "is no PNG, PGM or PPM picture"),
    "a bitmap": (b"P4 1 1 x", "is no PNG, PGM or PPM picture"),
    "a file cut off": (GOOD[:-9], "it ends before the picture does"),
    "only a signature": (png.SIGNATURE, "it ends before the picture does"),
    "a damaged header": (GOOD[:20] + b"x" + GOOD[21:], "its part IHDR is damaged"),
    "no header": (png.SIGNATURE + chunk(b"IEND", b""), "it does not begin with a header"),
    "an impossible depth": (file_of(np.zeros((1, 1, 3), int), png.COLOUR, 4), "1 x 1 pixels of kind 2, 4 bits"),
    "no pixels": (
        png.SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 2**31, 2**31, 8, 0, 0, 0, 0)) + chunk(b"IEND", b""),
        r"it has 0 bytes of pixels, \d+ are needed",
    ),
    "pixels that are not compressed": (
        png.SIGNATURE
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", b"abcd")
        + chunk(b"IEND", b""),
        "its pixels are damaged",
    ),
    "an unknown way": (
        png.SIGNATURE
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(b"\x05\x00"))
        + chunk(b"IEND", b""),
        "a row is stored in the way 5, of 0 to 4",
    ),
    "a colour beyond the palette": (
        file_of(np.full((1, 1, 1), 2), png.PALETTE, 8, palette=b"abcdef"),
        "a pixel has the colour 2 of a palette of 2",
    ),
    "half a header": (b"P5 3 4", "it does not begin with its kind, width, height"),
    "no width": (b"P5 0 4 255\n", "0 x 4 pixels, white is 255"),
    "no white": (b"P5 1 1 70000\nxx", "1 x 1 pixels, white is 70000"),
    "too few bytes": (b"P5 3 4 255\n12345", "it has 5 samples, 12 are needed"),
    "too few numbers": (b"P2 3 4 255\n1 2 3", "it has 3 samples, 12 are needed"),
    "a word": (b"P2 2 1 255\n1 two", "'two' is no level"),
    "whiter than white": (b"P2 2 1 9\n1 10", "it has 10 where white is 9"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_picture_is_one_message(case: str, tmp_path: Path) -> None:
    """Whatever is wrong with a file, the message names it and says what."""
    content, message = WRONG[case]
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(UsageError, match=rf"(?s)a\.png.*{message}"):
        pictures.read(tmp_path / "a.png")


def test_damage_anywhere_is_noticed() -> None:
    """A file that is cut off at any byte, or has any one byte changed, is a mistake that is said."""
    for at in range(len(png.SIGNATURE), len(GOOD)):
        for damaged in (GOOD[:at], GOOD[:at] + bytes([GOOD[at] ^ 0x20]) + GOOD[at + 1 :]):
            with pytest.raises(ValueError, match=r"ends|damaged|begin"):
                png.decode(damaged)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    """No such file, a folder."""
    with pytest.raises(UsageError, match="no such file"):
        pictures.read(tmp_path / "none.png")
    with pytest.raises(UsageError, match="cannot read"):
        pictures.read(tmp_path)
    with pytest.raises(UsageError, match="cannot write"):
        pictures.write(tmp_path, np.zeros((1, 1), int), 255)
