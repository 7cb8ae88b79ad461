"""Planted bugs are caught: a finished tree or plan with one thing changed is not proved where it computes otherwise.

    python -m pytest tests/properties/test_mutants.py -s   prints how many there are, differ, and are caught

What a mutant computes is found by running it: at several sizes, its threads in several orders, every instance counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir.nodes import Assign, Codelet, Loop, Scalar
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.simplify import is_integer
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import plan_as_loops
from looptune.poly.translation_validation import Proof, prove
from looptune.schedule import directives
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.grid import BlockSize
from looptune.schedule.directives.tensor import TensorTile
from tests.helpers import cross_check, threaded_interpreter
from tests.helpers.mutants import Mutant, mutants
from tests.helpers.paths import POLYBENCH

pytestmark = pytest.mark.sampled(4)

SIZES = ((5, 4), (7, 6), (8, 3))
BLOCK = (3, 2)
"""Threads of a block: few, so that plans can be run, and no divisor of most sizes."""


@dataclass(frozen=True)
class Made:
    """``shared``: the scalar locals of ``finished`` of which there is one for all threads.

    ``only``: the sizes at which it is right, or known: it is proved at each of them; none where it is for all sizes.
    """

    original: Codelet
    finished: Codelet
    shared: frozenset[str] = frozenset()
    only: tuple[tuple[int, int], ...] = ()

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        return self.only if self.only else SIZES

    def proof(self) -> Proof:
        """For all sizes, or the worst of those at the sizes."""
        at = [{"n": n, "m": m} for n, m in self.sizes] if self.only else [{}]
        proofs = [prove(self.original, self.finished, sizes, shared=self.shared) for sizes in at]
        return min(proofs, key=lambda p: ("failed", "unknown", "proved").index(p.verdict))


@dataclass(frozen=True)
class Counts:
    """Mutants, those that differ, what was done in those of them that are not found to fail, and what was proved."""

    all: int = 0
    wrong: int = 0
    unproved: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.all + other.all, self.wrong + other.wrong, self.unproved + other.unproved,
                      self.missed + other.missed)  # fmt: skip

    def __str__(self) -> str:
        return f"{self.all} mutants, {self.wrong} differ, {self.wrong - len(self.unproved)} caught"


def made(text: str | Path, *lines: str) -> Made:
    original = load(text).codelet
    return Made(original, schedule(Analysis(original), parse_lines(lines)).codelet)


def launched(loops: Made) -> Made:
    """The plan of the loops, in small blocks; tensor cores are those of a GPU."""
    small: Codelet = rewrite(lambda n: n.annotated(BlockSize(BLOCK)) if isinstance(n, Loop) else None, loops.finished)
    known = dict(zip("nm", loops.only[0], strict=True)) if len(loops.only) == 1 else {}
    cores = any(isinstance(n, Loop) and n.annotation(TensorTile) for n in walk(small.body))
    planned = lower(specialize(small, known), blocks=cores)
    return replace(
        loops, finished=plan_as_loops(planned), shared=frozenset(v.name for v in planned.device_locals if not v.shape)
    )


def outcome(made: Made, n: int, m: int, seed: int) -> tuple[dict[str, np.ndarray], Counter] | None:
    """The arrays and how often each instance of the original ran; None where an access is outside its array."""
    names = [p.name for p in made.original.params if isinstance(p, Scalar) and is_integer(p.dtype)]
    given = cross_check.copied(cross_check.arguments(made.original, dict(zip(names, (n, m, n - 1), strict=False))))
    ran: Counter = Counter()
    known = {n.name for n in walk(made.original.body) if isinstance(n, Assign)}

    def count(name: str, at: tuple[int, ...]) -> None:
        if name in known:
            ran[name, at] += 1

    try:
        threaded_interpreter.run(
            made.finished, cross_check.arrays(given), cross_check.scalars(given), count, seed=seed, shared=made.shared
        )
    except AssertionError:
        return None
    return cross_check.arrays(given), ran


def differs(mutant: Made) -> bool:
    """It leaves other bits than the original, or runs an instance twice or never.

    Loops that were derived in steps, such as parts of a prefix sum, run instances of the original twice anyway.
    """
    derived = mutant.finished.derivation is not None
    for n, m in mutant.sizes:
        want = outcome(replace(mutant, finished=mutant.original), n, m, 0)
        assert want is not None
        for seed in (0, 1, 2):
            got = outcome(mutant, n, m, seed)
            if got is None or (got[1] != want[1] and not derived) or cross_check.off(want[0], got[0], 1e-9) is not None:
                return True
    return False


def checked(whole: Made, some: Iterable[Mutant]) -> Counts:
    total = Counts()
    for mutant in some:
        changed = replace(whole, finished=replace(whole.finished, body=mutant.body))
        if not differs(changed):
            total += Counts(1)
            continue
        verdict = changed.proof().verdict
        said = (f"{mutant.what}: {verdict}",)
        total += Counts(1, 1, () if verdict == "failed" else said, said if verdict == "proved" else ())
    return total


def examples(cls: type[directives.Transform]) -> Iterator[Made]:
    """Those that are accepted. How much of a loop each of several parts is can be proved where the sizes are known."""
    for directive, example in cls.examples.items():
        only = ((4, 4), (8, 6)) if "noremainder" in directive else ((5, 6),) if cls.name == "rfactor" else ()
        if not example.refused:
            yield replace(made(example.program(directive)), only=only)


UNCOMPARED = ("argreduce",)
"""What the proof says that it cannot compare, and runs alone verify."""


@pytest.mark.wide
@pytest.mark.parametrize(
    "cls",
    [pytest.param(c, id=c.name, marks=pytest.mark.wide if c.name == "expand" else ()) for c in directives.ALL],
)
def test_examples_are_proved_and_their_mutants_are_not(cls: type[directives.Transform]) -> None:
    """Loops and plan of every example of every directive; each mutant that differs gives "failed"."""
    total = {"loops": Counts(), "plan": Counts()}
    for loops in examples(cls):
        for level, whole in (("loops", loops), ("plan", launched(loops))):
            proof = whole.proof()
            assert proof.verdict == ("unknown" if cls.name in UNCOMPARED else "proved"), proof.reason
            total[level] += checked(whole, mutants(whole.finished.body))
    for level, counts in total.items():
        print(f"{cls.name}, {level}: {counts}")
        # Of a prefix sum, values alone tell: half of its mutants run what nothing reads.
        assert counts.wrong > (0.4 if cls.name == "prefix" else 0.7) * counts.all
        assert not (counts.missed if cls.name in UNCOMPARED else counts.unproved), counts.unproved


KERNELS = {
    "gemm": ("loop i: unroll 2, jam", "loop k: unroll 3, split, guarded"),
    "gramschm": ("loop 4: distribute", "nest 4.3: permute i, j", "loop 2: unroll 2"),
    "atax": ("nest 2.2: permute j, i", "loop 1: tile 4"),
    "corr": ("loop 7: parallel", "loop 9: tile 4"),
    "gesummv": ("loop j: parallel",),
    "covar": ("loop 1: gridify(i, j)", "loop 5: noParallel", "loop 6: gridify(i, j2)"),
    "covar in boxes": ("loop 5: box 2", "loop 6: box 2", "loop 5: unroll 2, jam", "loop 6: unroll 2, jam"),
}


@pytest.mark.wide
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_proved_and_their_mutants_are_not(kernel: str) -> None:
    """Plans with host loops, registers and several launches; forty mutants of each."""
    file = POLYBENCH / f"{kernel.partition(' ')[0]}.c"
    whole = launched(made(file, *KERNELS[kernel]))
    assert whole.proof().verdict == "proved", whole.proof().reason
    every = list(mutants(whole.finished.body))
    counts = checked(whole, every[:: max(1, len(every) // 40)])
    print(f"{kernel}, plan: {counts}")
    assert not counts.unproved, counts.unproved


CONDITIONS = {
    "branches": (
        "void f(int n, int m, float A[n][m], float x[n], float y[m]) {\n"
        "  for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n"
        "      if (A[i][j] > x[i]) A[i][j] = y[j]; else A[i][j] += 1;\n}\n",
        (("loop i: unroll 2, jam",), ("loop i: permute j, i", "loop i: tile i:2")),
    ),
    "own condition": (
        "void f(int n, int m, float x[n], float y[n], float z[m]) {\n"
        "  for (int i = 0; i < n; i++)\n    if (x[i] > 0 && y[i] < 1) { x[i] = -x[i]; y[i] = x[i] + 1; }\n"
        "  for (int k = 0; k < m; k++)\n    if (z[k] > z[0]) z[0] = z[k] - 1;\n}\n",
        (("loop i: unroll 2",), ("loop i: fuse",)),
    ),
    "locals": (
        "void f(int n, int m, float A[n][m], float x[n]) {\n  for (int i = 0; i < n; i++) {\n    float t = x[i];\n"
        "    if (t < 0) t = -t;\n    float s = 0;\n"
        "    for (int j = 0; j < m; j++)\n      if (A[i][j] > t) s += A[i][j];\n    x[i] = s;\n  }\n}\n",
        (("loop i: unroll 2, jam",), ("loop j: parallel",)),
    ),
}  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize(
    "name", [n if k < 2 else pytest.param(n, marks=pytest.mark.long) for k, n in enumerate(CONDITIONS)]
)
def test_conditions_on_data_are_proved_and_their_mutants_are_not(name: str) -> None:
    """A dropped, negated or swapped condition and one of another element too; what only some data show may be unknown.

    Sixty mutants of each at most.
    """
    text, choices = CONDITIONS[name]
    for lines in choices:
        loops = made(text, *lines)
        for whole in (loops, launched(loops)):
            assert whole.proof().verdict == "proved", whole.proof().reason
            every = list(mutants(whole.finished.body))
            counts = checked(whole, every[:: max(1, len(every) // 60)])
            print(f"{name}, {' '.join(lines)}: {counts}, others unknown")
            assert not counts.missed, counts.missed
            guards = [what for what in counts.unproved if "condition" in what or "guard" in what or "branch" in what]
            assert not guards, guards
            assert len(counts.unproved) < 0.2 * counts.wrong, counts.unproved
