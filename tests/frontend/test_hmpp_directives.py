"""Directives as published HMPP files spell them, choices in the file, and those before a function."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import DirectiveError, LooptuneError
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk_stmts
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.grid import BlockSize
from looptune.tune.session.prepare import TuningRequest, prepare
from looptune.tune.space.pragma_choices import check_choices_decided

SPELLINGS = (
    "unroll 4, split, guarded", "UNROLL(2), Jam", "unroll i:3, j:3, noremainder", "tile i:4", "tile i:4, j:8",
    "permute j, i", "permute (j,i)", "parallel", "parallel, private(a)", "noParallel", "noparallel  ", "gridify",
    "gridify(j,i), private(a,b), blocksize 256x2", "grid blocksize 32 X 8", "grid blocksize 32x8",
    'grid blocksize "32x8"', "grid blocksize SIZE",
    "unroll 4, &\n#pragma hmppcg & split,&\n#pragma hmppcg & guarded", "unroll 4 &\n#pragma hmppcg & split",
    "gridify(i), &\n#pragma hmppcg & private( a, &\n#pragma hmppcg & b), &\n#pragma hmppcg & global( x, y)",
)  # fmt: skip


@pytest.mark.parametrize(
    "head",
    ["static\nPRAGMA\nvoid f(int n, double *x)", "void f(int n, double *x)\nPRAGMA\n",
     "void f(int n,\nPRAGMA\ndouble *x)", "void f(n, x)\nPRAGMA\nint n; double *x;",
     "void f(n, x)\nint n;\ndouble *x;\nPRAGMA\n"],
)  # fmt: skip
def test_a_line_in_the_middle_of_a_declaration(head: str) -> None:
    """It stands for what it stands for in front of the function, as a C compiler that ignores it has it."""
    before = "struct s { int a; }\n#pragma omp none\nt;\nint a[] = { 1,\n#pragma omp none\n2 };\n"
    text = f"{before}{head} {{ for (int i = 0; i < n; i++) x[i] += 1; }}\n"
    unit = load(text.replace("PRAGMA", "#pragma hmpp label codelet, args[x].io=inout"))
    line = unit.text.count("\n", 0, unit.text.index("f(")) + 1
    assert (unit.codelet.name, unit.codelet.label, unit.codelet.span.line) == ("f", "label", line)


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("line", SPELLINGS)
@pytest.mark.parametrize("pragma", ["#pragma hmppcg ", "# pragma  hmppcg(CUDA) ", "#pragma HMPPCG(opencl) "])
def test_every_published_spelling_is_applied(pragma: str, line: str) -> None:
    """On a nest with a comment, a blank line and another pragma between; one for another target does nothing."""
    text = f"""
#define SIZE 16 X 16
#pragma hmpp f codelet, args[x].io=in
void f(float x[12][12], float y[12][12]) {{
  float a, b; int i, j;
  {pragma}{line}

  /* rows */
  #pragma omp parallel for
  for (i = 0; i < 12; i++)
    for (j = 0; j < 12; j++) {{ a = x[i][j]; b = a; y[i][j] = b; }}
}}
"""
    applied = schedule(Analysis(load(text).codelet)).steps
    assert bool(applied) == ("opencl" not in pragma)


CHOICES = """
void f(int n, float *x, float *y)
{
  for (int i = 0; i < n; i++) {
#pragma looptune { unroll {1..3}, {contiguous, split} | tile j:{2, 4} }
    for (int j = 0; j < n; j++) x[i] += y[j];
  }
#pragma hmppcg grid blocksize {32x8, 64x4}
  for (int i = 0; i < n; i++) y[i] = x[i];
}
"""


def test_choices_in_the_file_are_its_space(tmp_path: Path) -> None:
    """A sweep takes their product, a space file comes first, and the file as annotated is without them."""
    file = tmp_path / "f.c"
    file.write_text(CHOICES)
    request = TuningRequest(file, defines={"n": "16"}, target="numba-cpu", sweep=True, db=tmp_path / "x.sqlite")
    space = prepare(request).space
    assert space.size == (3 * 2 + 2) * 2
    assert next(iter(space)).lines == ("loop 2: unroll 1, contiguous", "loop 3: grid blocksize 32x8")
    file.with_suffix(".pragmas").write_text("loop 2: unroll {2, 3}\n")
    assert prepare(request).space.size == 2


def test_choices_have_to_be_decided(tmp_path: Path) -> None:
    """Where one program is wanted, the message has the directive that picks; any of the kind decides."""
    file = tmp_path / "f.c"
    file.write_text(CHOICES)
    pick = (
        r"this pragma holds choices: pick one with --directive 'loop 2: unroll 1, contiguous', "
        r"or measure all with --sweep"
    )
    with pytest.raises(DirectiveError, match=pick) as error:
        transform(file)
    assert error.value.span.line == 5
    with pytest.raises(DirectiveError, match="--directive 'loop 3: grid blocksize 32x8'"):
        transform(file, ["loop j: tile j:4"])
    assert "outer_j" in transform(file, ["loop j: tile j:4", "codelet: grid blocksize 16x16"])
    with pytest.raises(DirectiveError, match=pick):
        prepare(TuningRequest(file, defines={"n": "16"}, target="numba-cpu"))


HOST = """void f(int n, int steps, float x[n]) {
  for (int t = 0; t < steps; t++) {
    #pragma hmppcg grid blocksize 16x2
    for (int i = 0; i < n; i++) x[i] += 1;
    #pragma hmppcg grid blocksize {16x2, 16x4}
    for (int i = 0; i < n; i++) x[i] *= 2;
  }
}
"""


def test_a_block_size_from_outside_covers_inner_loops() -> None:
    """It takes the place of the file's on the loops in its loop, and decides choices there; of two from outside, as of
    two in the file, the inner one counts."""

    def blocks(*lines: str) -> list[tuple[int, ...]]:
        unit = load(HOST)
        placed = parse_lines(lines)
        check_choices_decided(unit, placed)
        made = schedule(Analysis(unit.codelet), placed).codelet
        return [
            size.block
            for f in walk_stmts(made.body)
            if isinstance(f, Loop) and f.var == "i" and (size := f.annotation(BlockSize)) is not None
        ]

    assert blocks("loop 3: grid blocksize 8x8") == [(16, 2), (8, 8)]
    assert blocks("codelet: grid blocksize 64x4") == [(64, 4)] * 2
    assert blocks("loop t: grid blocksize 64x4") == [(64, 4)] * 2
    assert blocks("codelet: grid blocksize 64x4", "loop 2: grid blocksize 32x1") == [(32, 1), (64, 4)]
    with pytest.raises(DirectiveError, match="this pragma holds choices"):
        blocks("loop 2: grid blocksize 8x8")


def test_a_brace_that_is_wrong_is_pointed_at(tmp_path: Path) -> None:
    """The message of a bad choice has the pragma's own line."""
    file = tmp_path / "f.c"
    file.write_text(CHOICES.replace("{32x8, 64x4}", "{32x8, 64x4"))
    with pytest.raises(LooptuneError, match=r"f\.c:8:\d+: this { is not closed"):
        prepare(TuningRequest(file, defines={"n": "16"}, target="numba-cpu", sweep=True))


BEFORE_FUNCTIONS = """
#pragma hmpp g group, target=CUDA
#pragma hmpp g first codelet, args[x].io=inout
#pragma hmppcg grid blocksize 64 X 2
void first(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }
#pragma hmpp g second codelet, args[x].io=inout
#pragma hmppcg grid blocksize 16x16
#pragma hmppcg unroll 2, split
void second(int n, float x[n])
{
  #pragma hmppcg grid blocksize 128x1
  for (int i = 0; i < n; i++) x[i] *= 2;
}
int main(void) { float x[8]; first(8, x); second(8, x); return 0; }
"""


@pytest.mark.parametrize(
    ("kernel", "applied"),
    [
        ("first", ["grid blocksize 64x2"]),
        ("second", ["grid blocksize 128x1", "unroll 2, split"]),
        (None, ["grid blocksize 64x2", "grid blocksize 128x1", "unroll 2, split"]),
    ],
)
def test_a_directive_before_the_function_is_for_its_outermost_loops(kernel: str | None, applied: list[str]) -> None:
    """Each codelet's own, in a group too; the one that stands before the loop counts."""
    unit = load(BEFORE_FUNCTIONS, kernel=kernel)
    assert sorted(s.text for s in schedule(Analysis(unit.codelet), (), unit.values).steps) == sorted(applied)
