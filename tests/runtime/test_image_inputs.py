"""Pictures as inputs: what parameters they fill, which sizes follow from them, and what is said of every mistake."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.runtime import images
from looptune.runtime.inputs import from_files
from looptune.tune.session import dump
from tests.helpers.command_line import looptune

DIFFERENCE = """void difference(int h, int w, TYPE a[h][w], TYPE b[h][w], float c[h][w]) {
  for (int i = 0; i < h; i++) for (int j = 0; j < w; j++) c[i][j] = a[i][j] - b[i][j];
}
#ifdef CALLED
int main(void) { static TYPE x[9][8]; static float c[9][8]; difference(9, 8, x, x, c); }
#endif
"""
LEVELS = np.arange(12).reshape(3, 4) * 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two pictures of 4 x 3, one of them in colour, one of another size, a file by names and a file of one array."""
    monkeypatch.chdir(tmp_path)
    images.write(Path("a.png"), LEVELS)
    Path("b.ppm").write_bytes(b"P6 4 3 255\n" + np.repeat(LEVELS[::-1], 3).astype(np.uint8).tobytes())
    images.write(Path("other.png"), LEVELS[:, :3])
    Image.fromarray((LEVELS * 257 + 100).astype(np.uint16)).save("deep.png")
    np.savez("named.npz", b=np.ones((3, 4), np.float32), w=4)
    np.save("b.npy", np.full((3, 4), 2, np.float32))
    Path("photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF")
    return tmp_path


def arrays_of(*data: str, text: str = DIFFERENCE, dtype: str = "float", **defines: Any) -> dict[str, np.ndarray]:
    unit = load(text, defines={"TYPE": dtype, **defines})
    made = from_files(data, unit, Path("cache"))
    return {**made.arrays(unit.codelet, 0), **{name: np.asarray(v) for name, v in made.values.items()}}


@pytest.mark.parametrize("dtype", ["float", "double", "int", "unsigned char", "long"])
def test_a_picture_fills_an_array_of_any_type(folder: Path, dtype: str) -> None:
    """Grey levels from 0 to 255, rows from the top; colour is turned to grey; the sizes are those of the picture."""
    found = arrays_of("a=a.png", "b=b.ppm", dtype=dtype)
    np.testing.assert_array_equal(found["a"], LEVELS)
    np.testing.assert_array_equal(found["b"], LEVELS[::-1])
    assert (found["h"], found["w"], found["c"].shape) == (3, 4, (3, 4))
    c_types = {"float": "float32", "double": "float64", "int": "int32", "unsigned char": "uint8", "long": "int64"}
    assert found["a"].dtype == c_types[dtype]


def test_deeper_pictures_have_parts_of_levels(folder: Path) -> None:
    """16 bits are 0 to 255 too: exactly in a float, to the nearest in an integer."""
    np.testing.assert_allclose(arrays_of("a=deep.png", "b=a.png")["a"], LEVELS + 100 / 257, rtol=1e-6)
    np.testing.assert_array_equal(arrays_of("a=deep.png", "b=a.png", dtype="int")["a"], LEVELS)


def test_pictures_go_with_other_files(folder: Path) -> None:
    """Names from .npz and .npy files fill the rest."""
    assert arrays_of("named.npz", "a=a.png")["b"].tolist() == [[1.0] * 4] * 3
    assert arrays_of("a=a.png", "b=b.npy")["b"].tolist() == [[2.0] * 4] * 3


def test_flat_arrays_and_borders_are_filled_too(folder: Path) -> None:
    """An array of one dimension takes the rows one after the other; an extent may be a size and a constant."""
    flat = "void f(int h, int w, float *a, float b[h * w]) { for (int i = 0; i < h * w; i++) b[i] = a[i]; }\n"
    np.testing.assert_array_equal(arrays_of("a=a.png", text=flat, h=3, w=4)["a"], LEVELS.reshape(-1))
    border = """void f(int h, int w, int a[h + 2][2 + w], int b[h][w - 1]) {
      for (int i = 0; i < h; i++) for (int j = 0; j < w - 1; j++) b[i][j] = a[i + 1][j + 1]; }
    """
    found = arrays_of("a=a.png", text=border)
    assert (found["h"], found["w"], found["b"].shape) == (1, 2, (1, 1))


def test_a_picture_is_not_taken_for_a_smaller_one(folder: Path) -> None:
    """Where no extent says the sizes, and those at hand reach a part of the picture; a row or so less is a stencil."""
    flat = "void f(int h, int w, float *a) { for (int i = 1; i < h * w - 1; i++) a[i - 1] = a[i]; }\n"
    assert arrays_of("a=a.png", text=flat, h=3, w=4)["a"].shape == (12,)
    with pytest.raises(UsageError, match=r"a\.png has 12 pixels for a, the loops reach 5: give its sizes with -D"):
        arrays_of("a=a.png", text=flat, h=2, w=3)


def test_sizes_of_the_program_give_way_and_given_ones_do_not(folder: Path) -> None:
    """The program calls it with 9 x 8; with -D the user says so."""
    assert arrays_of("a=a.png", "b=b.ppm", CALLED=None)["w"] == 4
    with pytest.raises(UsageError, match=r"w is 4 in a\.png, but -D w=8"):
        arrays_of("a=a.png", "b=b.ppm", w=8)


WRONG = {
    "no such file": (("a=none.png", "b=b.ppm"), "no such file: none.png"),
    "a folder": (("a=.", "b=b.ppm"), r"cannot read \.: Is a directory"),
    "no picture": (("a=photo.jpg", "b=b.ppm"), r"photo\.jpg is neither a PNG, PGM or PPM picture nor a \.npy file"),
    "another size": (
        ("a=a.png", "b=other.png"),
        r"w is 4 in a\.png, but the shape of b, \[3, 3\], in other\.png makes it 3",
    ),
    "not the size in a file": (("a=other.png", "named.npz"), r"w is 4 in named\.npz, but the shape of a, \[3, 3\]"),
    "an unknown parameter": (("d=a.png",), "--data d=a.png: the parameters of difference are h, w, a, b, c"),
    "a number": (("h=a.png", "a=a.png", "b=b.ppm"), r"h is a number, but a\.png is a picture"),
    "twice": (("a=a.png", "b=b.ppm", "named.npz"), r"b is in b\.ppm and in named\.npz: give it once"),
    "without a name": (("a.png",), r"a\.png holds a picture: name its parameter, --data NAME=a\.png"),
    "an archive with a name": (("a=named.npz",), r"a \.npz file has its names inside: --data named\.npz"),
    "one missing": (("a=a.png",), r"a\.png does not contain b, which difference reads"),
    "another type of array": (("a=a.png", "b=b.npy"), r"b is int32, but float32 in b\.npy"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_picture_that_does_not_fit_is_one_message(case: str, folder: Path) -> None:
    """The file, the parameter and both numbers are in it."""
    data, message = WRONG[case]
    with pytest.raises(UsageError, match=message):
        arrays_of(*data, dtype="int" if case == "another type of array" else "float")


def test_shapes_and_types_that_no_picture_has(folder: Path) -> None:
    """Three dimensions, and a type too small for white."""
    deep = "void f(int n, float a[n][3][4]) { for (int i = 0; i < n; i++) a[i][0][0] = 0; }\n"
    with pytest.raises(UsageError, match=r"a must have the shape \[2, 3, 4\], but has \[3, 4\] in a\.png"):
        arrays_of("a=a.png", text=deep, n=2)
    with pytest.raises(UsageError, match=r"a is int8, but a\.png has grey levels up to 220"):
        arrays_of("a=a.png", "b=b.ppm", dtype="signed char")


def test_the_command_takes_pictures_and_says_what_is_wrong(folder: Path) -> None:
    """Exit code 2 and one line."""
    Path("d.c").write_text(DIFFERENCE.replace("TYPE", "float"))
    ran = looptune("run", "d.c", "--data", "a=a.png", "--data", "b=other.png", cwd=folder)
    assert ran.code == 2
    assert ran.err == "error: w is 4 in a.png, but the shape of b, [3, 3], in other.png makes it 3\n"


# What comes out.


def test_arrays_come_out_as_files(folder: Path) -> None:
    """As grey levels, which are read again as they were, or as they are; what is no level is cut, and counted."""
    arrays = {"c": np.array([[0, 7], [254.4, 255]], np.float32), "d": np.array([[-3, 300, np.nan]])}
    for name in ("c.png", "c.pgm"):
        assert dump._write(dump.DumpRequest(Path(name), "c"), arrays) == ""
        np.testing.assert_array_equal(images.read(Path(name)), [[0, 7], [254, 255]])
    said = dump._write(dump.DumpRequest(Path("d.png"), "d"), arrays)
    assert said == "d.png: 3 of 3 values of d are beyond the levels 0 to 255"
    assert images.read(Path("d.png")).tolist() == [[0, 255, 0]]
    dump._write(dump.DumpRequest(Path("d.npy"), "d"), arrays)
    np.testing.assert_array_equal(np.load("d.npy"), arrays["d"])
    with pytest.raises(UsageError, match=r"cannot write no/d\.npy"):
        dump._write(dump.DumpRequest(Path("no/d.npy"), "d"), arrays)


def chunk(part: tuple[bytes, bytes]) -> bytes:
    """A part of a PNG: its length, its kind, what it holds and a check of the last two."""
    whole = b"".join(part)
    return struct.pack(">I", len(part[1])) + whole + struct.pack(">I", zlib.crc32(whole))


@pytest.mark.parametrize("bits", [1, 8, 16])
def test_rows_that_a_picture_lacks_are_no_zeros(bits: int, tmp_path: Path) -> None:
    """A PNG whose data end early is refused with both numbers, at every depth; the whole one is read."""
    rows = (b"\0" + b"\1" * (10 * bits + 7 >> 3)) * 10
    whole, short = tmp_path / "whole.png", tmp_path / "short.png"
    for path, held in ((whole, rows), (short, rows[: len(rows) // 2])):
        parts = ((b"IHDR", struct.pack(">IIBBBBB", 10, 10, bits, 0, 0, 0, 0)), (b"IDAT", zlib.compress(held)))
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(map(chunk, (*parts, (b"IEND", b"")))))
    assert images.read(whole).shape == (10, 10)
    with pytest.raises(UsageError, match=f"its rows take {len(rows)} bytes, it holds {len(rows) // 2}"):
        images.read(short)
