"""A stereo pair with known disparities, and how far off found ones are.

    python examples/stereo.py render FOLDER                       writes left.png, right.png and truth.png
    python examples/stereo.py judge FOUND TRUTH -o PICTURE        counts the pixels that are more than 1 off, shows them

A scene is a few surfaces, each with a shape and a texture over the left picture's coordinates and a disparity
d = a + b x + c y there. A point at (x, y) of the left picture is at (x - d, y) of the right one, and where several are,
the one of largest d, which is nearest, is seen. Both pictures are means of 3 x 3 samples a pixel, each with noise of
its own of 1.5 grey levels. ``truth.png`` has 16 times the disparity of the left picture's pixels, which is how the
Tsukuba pair comes with its truth.

What is found is a picture, too, whose grey levels are disparities. ``judge`` leaves a border out, and draws side by
side what was found and, in red over the truth, where it is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from looptune.core.errors import UsageError
from looptune.runtime import images

Shape = Callable[[np.ndarray, np.ndarray], np.ndarray]
HEIGHT, WIDTH, SEED = 288, 384, 6
SAMPLES = 3
NOISE = 1.5
SCALE, BORDER = 16, 18
RED = (200, 40, 30)


@dataclass(frozen=True, slots=True)
class Surface:
    """A plane of disparity ``a + b x + c y``, seen where ``shape`` is true; all in parts of the width and the height.

    Its texture has the mean ``grey`` and the standard deviation ``contrast``; ``grain``: pixels of its finest detail.
    """

    shape: Shape
    disparity: tuple[float, float, float]
    grey: float
    contrast: float
    grain: float


def everywhere(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.ones(np.broadcast_shapes(x.shape, y.shape), bool)


def box(left: float, right: float, top: float, bottom: float) -> Shape:
    return lambda x, y: (left <= x) & (x < right) & (top <= y) & (y < bottom)


def disc(x0: float, y0: float, outer: float, inner: float = 0) -> Shape:
    """Or a ring; radii in parts of the height."""
    return lambda x, y: (inner**2 <= (r2 := (x - x0) ** 2 * (WIDTH / HEIGHT) ** 2 + (y - y0) ** 2)) & (r2 < outer**2)


def without(shape: Shape, hole: Shape) -> Shape:
    return lambda x, y: shape(x, y) & ~hole(x, y)


WINDOW = box(0.62, 0.86, 0.1, 0.38)
SCENE = (
    Surface(WINDOW, (0, 0, 0), 205, 14, 3),
    Surface(without(everywhere, WINDOW), (1, 2.5, 0), 120, 26, 2),
    Surface(everywhere, (-9, 0, 19), 85, 30, 2),  # the floor, nearer than the wall in the lower third
    Surface(box(0.12, 0.36, 0.13, 0.45), (5, 0, 0), 160, 34, 1.5),
    Surface(lambda x, y: box(0.4, 0.62, 0.3, 0.74)(x, y + 0.3 * (x - 0.5)), (14.5, -13, 0), 140, 30, 2),
    Surface(disc(0.27, 0.62, 0.17), (9, 0, 0), 175, 28, 2),
    Surface(disc(0.77, 0.62, 0.2, 0.11), (12, 0, 0), 70, 24, 2),
    Surface(box(0.665, 0.685, 0.05, 0.97), (14, 0, 0), 215, 18, 1.5),
)
"""From the far to the near: a window and the wall around it, the floor, a picture, a slanted board, a ball, a ring and
a pole 8 pixels wide."""


def render(surfaces: Sequence[Surface], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The left and right picture in grey levels 0 to 255 and the disparity of the left one, all [HEIGHT, WIDTH]."""
    rng = np.random.default_rng(seed)
    textures = [texture(rng, surface) for surface in surfaces]
    offsets = (np.arange(SAMPLES) + 0.5) / SAMPLES
    seen = [
        [view(surfaces, textures, np.arange(WIDTH) + dx, np.arange(HEIGHT)[:, None] + dy, right)[0] for right in (0, 1)]
        for dx in offsets
        for dy in offsets
    ]
    exact = [np.mean([pair[right] for pair in seen], axis=0) for right in (0, 1)]
    left, right = (np.clip(np.rint(e + rng.normal(0, NOISE, e.shape)), 0, 255).astype(np.uint8) for e in exact)
    _, truth = view(surfaces, textures, np.arange(WIDTH) + 0.5, np.arange(HEIGHT)[:, None] + 0.5, 0)
    return left, right, truth


def view(
    surfaces: Sequence[Surface], textures: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, right: int
) -> tuple[np.ndarray, np.ndarray]:
    """Grey levels and disparities at the points ``x``, ``y`` (in pixels) of the left picture, or of the right one."""
    size = np.broadcast_shapes(x.shape, y.shape)
    grey, nearest = np.zeros(size), np.full(size, -np.inf)
    for surface, own in zip(surfaces, textures, strict=True):
        a, b, c = surface.disparity[0], surface.disparity[1] / WIDTH, surface.disparity[2] / HEIGHT
        there = (x + a + c * y) / (1 - b) if right else x + 0 * y
        disparity = a + b * there + c * y
        wins = surface.shape(there / WIDTH, y / HEIGHT) & (disparity > nearest)
        grey = np.where(wins, sampled(own, there, y), grey)
        nearest = np.where(wins, disparity, nearest)
    return grey, nearest


def texture(rng: np.random.Generator, surface: Surface) -> np.ndarray:
    """Noise on a grid of a point each pixel, wider than the picture: smooth noise of doubling grain, added up."""
    size = (HEIGHT + 2, WIDTH + 64)
    total = np.zeros(size)
    for octave in range(5):
        grain = surface.grain * 2**octave
        coarse = rng.normal(size=tuple(int(n / grain) + 3 for n in size))
        total += sampled(coarse, np.arange(size[1]) / grain, np.arange(size[0])[:, None] / grain)
    return surface.grey + surface.contrast * (total - total.mean()) / total.std()


def sampled(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The grid between its points, bilinear with smooth steps."""
    x, y = np.clip(x, 0, grid.shape[1] - 1.001), np.clip(y, 0, grid.shape[0] - 1.001)
    i, j = x.astype(int), y.astype(int)
    u, v = ((part := at - whole) * part * (3 - 2 * part) for at, whole in ((x, i), (y, j)))
    above, below = (grid[row, i] * (1 - u) + grid[row, i + 1] * u for row in (j, j + 1))
    return above * (1 - v) + below * v


def judge(found: np.ndarray, truth: np.ndarray, border: int) -> np.ndarray:
    """Which pixels are more than 1 off, both in disparities, without the border."""
    inside = np.s_[border : truth.shape[0] - border, border : truth.shape[1] - border]
    return np.abs(found[inside] - truth[inside]) > 1


def shown(found: np.ndarray, truth: np.ndarray, border: int) -> np.ndarray:
    """Colours [height, over twice the width, 3]: what was found; the truth, paler in the border, wrong pixels red."""
    most = max(found.max(), truth.max(), 1)
    left, behind = (np.repeat((255 * d / most)[:, :, None], 3, axis=2) for d in (found, truth))
    errors = 235 - 0.25 * behind
    inside = errors[border : truth.shape[0] - border, border : truth.shape[1] - border]
    inside -= 25
    inside[judge(found, truth, border)] = RED
    gap = np.full((truth.shape[0], max(8, border // 2), 3), 255)
    return np.rint(np.concatenate([left, gap, errors], axis=1)).astype(np.uint8)


def rendered(arguments: argparse.Namespace) -> None:
    left, right, truth = render(SCENE, arguments.seed)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    scaled = np.rint(SCALE * truth).astype(np.uint8)
    for name, samples in (("left", left), ("right", right), ("truth", scaled)):
        images.write(arguments.folder / f"{name}.png", samples)


def judged(arguments: argparse.Namespace) -> None:
    found = images.read(arguments.found)
    truth = images.read(arguments.truth) / arguments.scale
    if found.shape != truth.shape:
        raise UsageError(f"{arguments.found} is {list(found.shape)}, {arguments.truth} {list(truth.shape)}")
    if 2 * arguments.border >= min(truth.shape):
        raise UsageError(f"a border of {arguments.border} leaves nothing of {list(truth.shape)}")
    wrong = judge(found, truth, arguments.border)
    left_out = f", a border of {arguments.border} left out" if arguments.border else ""
    print(f"{100 * wrong.mean():.2f} % of {wrong.size} pixels are more than 1 off{left_out}")
    if arguments.output is not None:
        images.write(arguments.output, shown(found, truth, arguments.border))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    rendering = commands.add_parser("render", help="write left.png, right.png and truth.png")
    rendering.add_argument("folder", type=Path)
    rendering.add_argument("--seed", type=int, default=SEED, help="of textures and noise")
    rendering.set_defaults(run=rendered)
    judging = commands.add_parser("judge", help="count the pixels that are more than 1 off, and show them")
    judging.add_argument("found", type=Path, help="a picture whose grey levels are disparities")
    judging.add_argument("truth", type=Path, help="a picture whose grey levels are --scale times the disparities")
    judging.add_argument("--scale", type=float, default=SCALE)
    judging.add_argument("--border", type=int, default=BORDER, help="pixels on each side that are not looked at")
    judging.add_argument("-o", "--output", type=Path, help="a PNG")
    judging.set_defaults(run=judged)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except UsageError as error:
        parser.error(error.message)


if __name__ == "__main__":
    main()
