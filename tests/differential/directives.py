"""Random lists of directives of every kind, with random arguments that have a chance to fit."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from looptune.ir.nodes import Array, Codelet, Loop
from looptune.ir.rewrite import walk


@dataclass(frozen=True, slots=True)
class Site:
    """A loop: the variables of the nest that begins with it, the arrays and the scalars of the codelet."""

    rng: random.Random
    nest: tuple[str, ...]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]

    def number(self, *more: int) -> int:
        return self.rng.choice((1, 2, 2, 3, 3, 4, 5, 7, *more))

    def var(self) -> str:
        return self.rng.choice(self.nest)

    def some(self, most: int) -> list[str]:
        names = list(self.nest[:most])
        if self.rng.random() < 0.2:
            self.rng.shuffle(names)
        return names[: self.rng.randint(1, len(names))]


def _unroll(s: Site) -> str:
    r = s.rng
    factors = (
        f"{s.number()}" if r.random() < 0.75 or len(s.nest) < 2 else ", ".join(f"{v}:{s.number()}" for v in s.some(2))
    )
    scheme = r.choice(("", "", ", contiguous", ", split", ", split, vector 2"))
    rest = r.choice(("", "", ", remainder", ", guarded", ", guarded"))  # noremainder is the user's word
    return f"unroll {factors}{scheme}{rest}{r.choice(('', '', ', jam', ', noJam'))}"


def _permute(s: Site) -> str:
    names = list(s.nest[:4])
    s.rng.shuffle(names)
    return f"permute {', '.join(names)}"


def _amount(s: Site) -> str:
    r = s.rng
    terms = [f"{r.choice((1, 1, 2, -1))}*{v}" for v in r.sample(s.nest, r.choice((0, 1, 1, min(2, len(s.nest)))))]
    return " + ".join([*terms, str(r.randint(0, 3))]) if not terms or r.random() < 0.3 else " + ".join(terms)


def _skew(s: Site) -> str:
    return f"skew {s.nest[-1] if s.rng.random() < 0.7 else s.var()} by {_amount(s)}"


def _wavefront(s: Site) -> str:
    names = s.some(3) if len(s.nest) > 1 else [*s.nest, "q"]
    names = names if len(names) > 1 else list(s.nest[:2])
    return f"wavefront {', '.join(v + s.rng.choice(('', '', ':2')) for v in names)}"


def _splitat(s: Site) -> str:
    points = sorted(s.rng.sample(range(-1, 8), s.rng.choice((1, 1, 2, 3))))
    return f"splitat {', '.join(map(str, points) if s.rng.random() < 0.6 else (_amount(s) for _ in points))}"


def _schedule(s: Site) -> str:
    parallel = s.rng.choice(("", "", "parallel:outer", "parallel:inner", "parallel:none"))
    return f"schedule {', '.join(x for x in (parallel, s.rng.choice(('', '', 'fuse:min'))) if x)}".rstrip()


def _parallel(s: Site) -> str:
    r = s.rng
    reduced = (
        f", reduce({r.choice(('+', '*', 'min', 'max'))}:{r.choice(s.scalars)})"
        if s.scalars and r.random() < 0.3
        else ""
    )
    private = f", private({r.choice(s.scalars)})" if s.scalars and r.random() < 0.15 else ""
    return f"parallel{r.choice(('', '', ', team'))}{reduced}{private}"


def _stage(s: Site) -> str:
    r = s.rng
    names = r.sample(s.arrays, min(len(s.arrays), r.choice((1, 1, 2))))
    more = r.choice(("", "", ", buffers 2", ", unroll 2", f", transposed({names[0]})"))
    return f"stage {', '.join(names)}{more}"


def _block(s: Site) -> str:
    return s.rng.choice(("4x2", "2x2", "8x1", "16x4", "32x8", "1x4", "3x5", "8"))


def _expand(s: Site) -> str:
    names = s.scalars if s.scalars and s.rng.random() < 0.5 else s.arrays
    return f"expand {', '.join(s.rng.sample(names, min(len(names), s.rng.choice((1, 1, 2)))))}"


KINDS: Mapping[str, Callable[[Site], str]] = {
    "expand": _expand,
    "snapshot": lambda s: f"snapshot {', '.join(s.rng.sample(s.arrays, min(len(s.arrays), s.rng.choice((1, 1, 2)))))}",
    "argreduce": lambda s: f"argreduce {s.number()}",
    "distribute": lambda s: "distribute",
    "cut": lambda s: "cut",
    "schedule": _schedule,
    "splitat": _splitat,
    "block": lambda s: f"block {s.number()}",
    "skew": _skew,
    "shift": lambda s: f"shift {s.nest[0]} by {s.rng.randint(-3, 5)}",
    "reverse": lambda s: "reverse",
    "wavefront": _wavefront,
    "permute": _permute,
    "fold": lambda s: "fold",
    "fuse": lambda s: s.rng.choice(("fuse", "fuse", "fuse 2", "fuse 3")),
    "box": lambda s: s.rng.choice(("box", f"box {s.number()}")),
    "tile": lambda s: f"tile {', '.join(f'{v}:{s.number(8)}' for v in s.some(3))}",
    "unroll": _unroll,
    "fullunroll": lambda s: "fullunroll",
    "parallel": _parallel,
    "noparallel": lambda s: "noParallel",
    "rfactor": lambda s: s.rng.choice((f"rfactor {s.number()}", f"rfactor {s.var()}:{s.number()}")),
    "factor": lambda s: "factor",
    "gridify": lambda s: f"gridify({', '.join(s.some(3))}){s.rng.choice(('', f', blocksize {_block(s)}'))}",
    "grid": lambda s: f"grid blocksize {_block(s)}",
    "swizzle": lambda s: f"swizzle {s.number()}",
    "pack": lambda s: "pack",
    "maxregs": lambda s: f"maxregs {s.rng.choice((32, 64, 255))}",
    "launchbounds": lambda s: f"launchbounds {s.rng.choice(('2', '4', 'off'))}",
    "vectorize": lambda s: s.rng.choice(("vectorize", "vectorize 2", "vectorize 4", f"vectorize {s.var()}:2, guarded")),
    "stage": _stage,
    "overlap": lambda s: f"overlap {s.number()}{s.rng.choice(('', ', rows 2'))}",
    "resident": lambda s: f"resident{s.rng.choice(('', ' rows 2', ' rows 2, columns 2, shared 1', ' cyclic'))}",
    "persistent": lambda s: s.rng.choice(("persistent", "persistent 2")),
    "concurrent": lambda s: "concurrent",
    "tensor": lambda s: f"tensor{s.rng.choice(('', ', block 32x32, warp 16x16, strip 16', ', shape 8x8x4'))}",
    "nnan": lambda s: "nnan",
    "prefix": lambda s: s.rng.choice((f"prefix {s.number()}", "prefix 2, 2", "prefix 3")),
}
"""A line for each directive there is; ``tests/properties/test_differential.py`` asserts that none is missing."""
WEIGHTS = {
    "unroll": 10, "tile": 6, "permute": 4, "distribute": 4, "fuse": 3, "fullunroll": 2, "parallel": 3, "box": 3,
    "rfactor": 3, "grid": 2, "gridify": 2, "vectorize": 2, "schedule": 3, "splitat": 2, "skew": 2, "wavefront": 2,
    "expand": 4, "snapshot": 3, "block": 2, "prefix": 3,
}  # fmt: skip


def lines(rng: random.Random, codelet: Codelet) -> list[str]:
    """Up to five directives, each for some loop."""
    loops = [f for f in walk(codelet.body) if isinstance(f, Loop) and f.number]
    if not loops:
        return []
    arrays = tuple(p.name for p in codelet.params if isinstance(p, Array))
    scalars = tuple(v.name for v in codelet.locals if not v.shape)
    names = list(KINDS)
    weights = [WEIGHTS.get(name, 1) for name in names]
    made = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 5))):
        loop = rng.choice(loops)
        kind = rng.choices(names, weights)[0]
        site = Site(rng, _nest(loop), arrays if arrays else ("A",), scalars)
        by_name = [f.var for f in loops].count(_shown(loop)) == 1 and rng.random() < 0.3
        where = f"loop {_shown(loop) if by_name else loop.number}"
        if kind in ("grid", "maxregs", "launchbounds", "vectorize", "nnan") and rng.random() < 0.6:
            where = "codelet"
        made.append(f"{where}: {KINDS[kind](site)}")
    return made


def _shown(loop: Loop) -> str:
    return loop.var


def _nest(loop: Loop) -> tuple[str, ...]:
    """The loop's variable and those of the first loop in each."""
    names = [loop.var]
    while True:
        inner = [s for s in loop.body if isinstance(s, Loop)]
        if not inner:
            return tuple(dict.fromkeys(names))
        loop = inner[0]
        names.append(loop.var)
