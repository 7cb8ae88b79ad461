"""Pictures: files that others wrote give their grey levels, what is written is read again, mistakes are messages."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from looptune.core.errors import UsageError
from looptune.runtime import images

RNG = np.random.default_rng(0)
COLOURS = RNG.integers(256, size=(40, 30, 3)).astype(np.uint8)
LUMA = np.floor(COLOURS @ np.array([19595, 38470, 7471]) / 65536 + 0.5)
GREY = COLOURS[:, :, 0]


def made(mode: str) -> tuple[Image.Image, np.ndarray]:
    """A picture with samples of that kind, and its grey levels."""
    match mode:
        case "I;16":
            deep = GREY.astype(np.uint16) * 251
            return Image.fromarray(deep), deep.astype(float) * 255 / 65535
        case "1":
            return Image.fromarray(GREY > 99), np.where(GREY > 99, 255.0, 0.0)
        case "P":
            image = Image.fromarray(COLOURS).quantize(16)
            return image, np.asarray(image.convert("RGB").convert("L"), float)
    image = Image.fromarray(GREY if mode in ("L", "LA") else COLOURS).convert(mode)
    if mode.endswith("A"):
        image.putalpha(Image.fromarray(COLOURS[:, :, 1]))
    return image, GREY.astype(float) if mode in ("L", "LA") else LUMA


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1", "I;16"])
def test_every_kind_of_png_gives_its_levels(mode: str, tmp_path: Path) -> None:
    """Black is 0 and white is 255, of colours green counts most, and what is transparent is as it is stored."""
    image, levels = made(mode)
    image.save(tmp_path / "a.png")
    found = images.read(tmp_path / "a.png")
    assert (found.dtype, found.shape) == (np.float64, (40, 30))
    np.testing.assert_allclose(found, levels, rtol=1e-12)


@pytest.mark.parametrize("kind", [b"2", b"3", b"5", b"6"])
def test_every_kind_of_pgm_gives_its_levels(kind: bytes, tmp_path: Path) -> None:
    """As text and in bytes, with comments in the header."""
    samples = GREY if kind in b"25" else COLOURS
    body = " ".join(map(str, samples.reshape(-1))).encode() if kind in b"23" else samples.tobytes()
    (tmp_path / "named.anyhow").write_bytes(b"P" + kind + b"\n# by hand, 1998\n30 40\n255\n" + body)
    found = images.read(tmp_path / "named.anyhow")
    np.testing.assert_array_equal(found, GREY if kind in b"25" else LUMA)


@pytest.mark.parametrize("name", ["a.png", "a.pgm"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    images.write(tmp_path / name, GREY.astype(int))
    np.testing.assert_array_equal(images.read(tmp_path / name), GREY)
    images.write(tmp_path / name, COLOURS)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / name)), COLOURS)


def png() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(GREY).save(stream, "png")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xd8\xff\xe0 JFIF", "is not a PNG, PGM or PPM picture"),
        (b"", "is not a PNG, PGM or PPM picture"),
        (b"P4 1 1 x", "is not a PNG, PGM or PPM picture"),
        (png()[:200], "is not a readable picture"),
        (png()[:8], "is not a readable picture"),
        (png()[:20] + b"x" + png()[21:], "is not a readable picture"),
        (b"P5 3 4", "is not a readable picture"),
        (b"P5 3 4 255\n12345", "is not a readable picture"),
        (b"P2 2 1 255\n1 two", "is not a readable picture"),
        (b"P5 60000 60000 255\n", "is not a readable picture"),
    ],
)
def test_what_is_no_picture_is_one_message(content: bytes, message: str, tmp_path: Path) -> None:
    """Whatever is wrong with a file, the message names it."""
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(UsageError, match=rf"(?s)a\.png {message}"):
        images.read(tmp_path / "a.png")


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    """No such file, a folder, no folder."""
    with pytest.raises(UsageError, match="no such file"):
        images.read(tmp_path / "none.png")
    with pytest.raises(UsageError, match="cannot read"):
        images.read(tmp_path)
    with pytest.raises(UsageError, match="cannot write"):
        images.write(tmp_path / "no" / "a.png", GREY)


def test_without_pillow_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(png())
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UsageError, match=r"pip install 'looptune\[pictures\]'"):
        images.read(tmp_path / "a.png")
