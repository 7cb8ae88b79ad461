"""Programs in the styles of published HMPP files: groups of codelets as one program, and what is wrong with them."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

import looptune
from looptune.core.errors import LooptuneError, UnsupportedError, UsageError
from looptune.deploy.source_to_source import emit, transform
from looptune.frontend import Unit, load, load_each
from looptune.ir.nodes import Array, Codelet, Loop
from looptune.ir.rewrite import walk
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import cross_check
from tests.helpers.hmpp_programs import BY_NAME, GROUP_WITH_MAP, MALFORMED, MIXED, STYLES, TWICE, Style

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
quiet = pytest.mark.filterwarnings("ignore::UserWarning")


def scheduled(unit: Unit) -> Codelet:
    return schedule(Analysis(unit.codelet), (), unit.values).codelet


def by_program(style: Style, text: str, given: cross_check.Arguments, folder: Path) -> dict[str, np.ndarray]:
    """What the C function ``program``, compiled by gcc, leaves in the arrays."""
    codelet = load(style.text).codelet
    params = {p.name: p for p in codelet.params}
    # a folder for each library: a path that was loaded once is not loaded again
    folder = Path(mkdtemp(dir=folder))
    whole = replace(codelet, name="program", params=tuple(params[n] for n in style.program))
    return cross_check.by_gcc(re.sub(r'#include "[^\n]*', "", text), whole, given, folder)


def warnings(text: str, **options: str) -> list[str]:
    return [w.partition("\n")[0].removeprefix("<source>:") for w in load(text, kernel=options.get("kernel")).warnings]


# -- one program ----------------------------------------------------------------------------------


@pytest.mark.sampled(3, "wide")
@gcc
@pytest.mark.parametrize("style", STYLES, ids=lambda s: s.name)
def test_a_group_computes_what_its_program_computes(style: Style, tmp_path: Path) -> None:
    """The codelets in call order, their parameters united, leave to the bit what gcc's program leaves."""
    codelet = load(style.text).codelet
    given = cross_check.arguments(codelet, style.sizes)
    assert (
        cross_check.off(by_program(style, style.text, given, tmp_path), cross_check.interpreted(codelet, given)) is None
    )


@pytest.mark.sampled(9, "wide")
@gcc
@quiet
@pytest.mark.parametrize("style", STYLES, ids=lambda s: s.name)
def test_a_group_runs_on_the_cpu(style: Style, tmp_path: Path) -> None:
    """With the directives of its loops, compiled for the CPU."""
    unit = load(style.text)
    given = cross_check.arguments(unit.codelet, style.sizes)
    got = cross_check.copied(given)
    looptune.compile(style.text, target="numba-cpu")(*got.values())
    assert cross_check.off(by_program(style, style.text, given, tmp_path), cross_check.arrays(got), 1e-9) is None


@pytest.mark.wide
@gcc
@pytest.mark.skipif(not cross_check.CUDA, reason="needs numba-cuda")
def test_groups_run_on_the_simulator(tmp_path: Path) -> None:
    """The emitted CUDA modules, with the directives of their loops."""
    programs, want = [], {}
    for style in STYLES:
        unit = load(style.text)
        given = cross_check.arguments(unit.codelet, style.sizes)
        planned = lower(scheduled(unit), "")
        source = targets.backend("numba-cuda", CACHE).emit(planned)
        programs.append(cross_check.Emitted(style.name, source, unit.codelet.name, given))
        want[style.name] = by_program(style, style.text, given, tmp_path)
    for name, got in cross_check.simulated(programs, tmp_path).items():
        assert not isinstance(got, str), got
        assert cross_check.off(want[name], got, 1e-9) is None, name


def outermost(codelet: Codelet) -> list[int]:
    return [n.number for n in codelet.body if isinstance(n, Loop)]


@pytest.mark.sampled(3, "wide")
@gcc
@pytest.mark.parametrize("style", [s for s in STYLES if s.name in ("map", "twice", "malformed")], ids=lambda s: s.name)
def test_a_transformed_group_is_the_same_program(style: Style, tmp_path: Path) -> None:
    """``transform`` writes each codelet's body back under its own names: gcc's program computes the same."""
    file = tmp_path / "group.c"
    file.write_text(style.text)
    assert transform(file) == style.text or "#pragma hmppcg" in style.text
    text = transform(file, [f"loop {number}: unroll 2" for number in outermost(load(file).codelet)])
    assert text.count("#pragma hmppcg") > style.text.count("#pragma hmppcg")
    given = cross_check.arguments(load(style.text).codelet, style.sizes)
    want, got = (by_program(style, t, given, tmp_path) for t in (style.text, text))
    assert cross_check.off(want, got, 1e-6) is None


def test_the_order_is_that_of_the_calls() -> None:
    """A codelet called twice runs twice, and loops are numbered over all of them."""
    unit = load(TWICE)
    assert [part.function for part in unit.parts] == ["blur", "blur", "mix"]
    assert [n.number for n in walk(unit.codelet.body) if isinstance(n, Loop)] == [1, 2, 3]
    assert [p.name for p in unit.codelet.params] == ["n", "from", "to", "weight"]


def test_the_actual_argument_decides() -> None:
    """Two parameters of one name are two arrays where the caller passes two, whatever their names say."""
    text = """
#pragma hmpp <g> map, args[f::x, g::x]
#pragma hmpp <g> f codelet
void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += i; }
#pragma hmpp <g> g codelet
void g(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] -= i; }
void program(int n, int m, float *a, float *b) {
#pragma hmpp <g> f callsite
  f(n, a);
#pragma hmpp <g> g callsite
  g(m, b);
}
"""
    assert [p.name for p in load(text).codelet.params] == ["n", "x", "m", "b"]
    assert [p.name for p in load(text.replace("g(m, b)", "g(n, a)")).codelet.params] == ["n", "x"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("#pragma hmpp <g> map, args[f::x, g::y]", ["n", "x", "m"]),
        ("#pragma hmpp <g> map, args[f::x; g::y], &\n#pragma hmpp <g> & args[*::n]", ["n", "x", "m"]),
        ("#pragma hmpp <g> map, args[f::n; g::m]", ["n", "x", "y"]),
        ("", ["n", "x", "m", "y"]),
    ],
)
def test_without_a_call_map_decides(line: str, names: list[str]) -> None:
    """Where nothing is called, ``map`` says which parameters are one, and equal names are one."""
    text = f"""
#pragma hmpp <g> group, target=CUDA
{line}
#pragma hmpp <g> f codelet
void f(int n, float x[8]) {{ for (int i = 0; i < n; i++) x[i] += i; }}
#pragma hmpp <g> g codelet
void g(int m, float y[8]) {{ for (int i = 0; i < m; i++) y[i] -= i; }}
"""
    unit = load(text)
    assert [p.name for p in unit.codelet.params] == names
    assert "no codelet is called: they run in the order of the text" in unit.warnings[0]
    same = (
        text.replace("int m", "int n").replace("i < m", "i < n").replace("float y", "float x").replace("y[i]", "x[i]")
    )
    assert [p.name for p in load(same.replace(line, "")).codelet.params] == ["n", "x"]


def test_directions_combine() -> None:
    """First use in, any write out; what a clause calls out is out for the whole."""
    io = {p.name: p.io for p in load(GROUP_WITH_MAP).codelet.params if isinstance(p, Array)}
    assert io == {"a": "inout", "b": "inout", "c": "inout", "x": "in", "y": "inout"}
    io = {p.name: p.io for p in load(MALFORMED).codelet.params if isinstance(p, Array)}
    assert io == {"x": "in", "y": "out"}


def test_values_come_from_the_calls() -> None:
    """A size that the caller knows is known, under the name of the whole; -D replaces it."""
    text = TWICE + "int main() { static int a[9], b[9], w[4]; program(9, a, b, w); return 0; }\n"
    assert load(text).values == {"n": 9}
    assert load(text, defines={"n": 5}).values == {"n": 5}


def test_a_part_of_a_group_is_chosen_by_name(tmp_path: Path) -> None:
    """By group, group and label, label, or function; a label of two groups needs its group."""
    assert [p.function for p in load(BY_NAME, kernel="norm").parts] == ["length", "scale"]
    for name in ("norm.scale", "scale"):
        assert load(BY_NAME, kernel=name).codelet.name == "scale"
    again = re.sub(r"\b(product|rows|program|verify)\b(?=\()", r"\1_2", GROUP_WITH_MAP.replace("<pair>", "<again>"))
    both = GROUP_WITH_MAP + again
    with pytest.raises(UsageError, match=r"first is the label of several codelets .*: choose one of pair.first, again"):
        load(both, kernel="first")
    assert load(both, kernel="again.first").codelet.name == "product_2"
    assert [p.function for p in load(both).parts] == ["product", "rows", "product_2", "rows_2"]


# -- what is wrong --------------------------------------------------------------------------------


GROUP = """
#pragma hmpp <g> group, &
#pragma hmpp <g>   target=CUDA
#pragma hmpp <g> map, args[f::x;h::zz], args[f::x;*::y]
#pragma hmpp <g> f codelet, args[x].io=inout, &
#pragma hmpp <g>   args[x].size={n}
void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }
#pragma hmpp <g> h codelet, args[0-1].io=in
void h(int n, float y[n]) { for (int i = 0; i < n; i++) y[i] *= 2; }
void program(int n, float *x) {
#pragma hmpp <g> advancedload, args[f::x;::table;y]
#pragma hmpp <g> f callsite, args[q].advancedload=true, args[1].noupdate=true
    f(n, x);
#pragma hmpp <k> h callsite
    h(n, x);
#pragma hmpp <g> h delegatedstore, args[x]
}
"""


def test_names_that_no_codelet_of_a_line_has(tmp_path: Path) -> None:
    """In every line, with those of its label, of its group or before ``::``; a repeated group is no mistake."""
    (tmp_path / "a.c").write_text(GROUP)
    said = [w.partition("\n")[0].partition("a.c:")[2] for w in load_each(tmp_path / "a.c").warnings]
    assert said == [
        "4:23: h has no parameter zz",
        "12:30: f has no parameter q",
        "14:9: h is in the group g",
        "16:36: h has no parameter x",
        "8:9: y is io=in, and the codelet writes it: it is taken as inout",
    ]


def test_published_mistakes_are_warnings() -> None:
    """Each with its place, and the codelets are read all the same."""
    assert warnings(MALFORMED) == [
        "6:43: a comma is missing before this",
        "23:11: a line that ends in & is not continued",
        "25:11: no codelet is labelled three",
        "27:20: unknown hmpp directive: expected one of codelet, callsite, synchronize, acquire, allocate, release, "
        "advancedload, delegatedstore, group, map, mapbyname, region, resident",
        "7:20: one has no parameter spare",
        "15:9: x is io=in, and the codelet writes it: it is taken as inout",
        "28:11: this callsite stands before no call of a codelet",
        "26:3: no `#pragma hmpp <g> two callsite` stands before a call of two: its first call is taken",
    ]


def test_a_loop_around_the_calls_is_said() -> None:
    """One pass over the codelets is compiled, with a warning at the loop."""
    text = TWICE.replace(
        "  #pragma hmpp blur callsite\n  blur(count, u", "  for (int t = 0; t < 9; t++) {\n  blur(count, u"
    )
    text = text.replace("mix(count, u, w);", "mix(count, u, w); }")
    assert any("called in a loop: one pass of it is compiled" in w for w in warnings(text))
    assert [part.function for part in load(text).parts] == ["blur", "blur", "mix"][1:]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("square(rows, columns, image,", "square(rows, columns, image + columns,", "a is a part of an array that the"),
        ("float a[n][m], float x[m]", "double a[n][m], float x[m]", "a is float64 here and float32 in another codelet"),
        (
            "#pragma hmpp <g> flat codelet",
            "#pragma hmpp <g> flat native",
            "hmpp native is not accepted: write the func",
        ),
    ],
)
def test_what_cannot_be_one_program_is_refused(old: str, new: str, message: str) -> None:
    """With the place, and what to write instead."""
    assert old in MIXED
    with pytest.raises(LooptuneError, match=message) as error:
        load(MIXED.replace(old, new))
    assert error.value.span.line


def test_a_group_that_cannot_be_written_back_says_why(tmp_path: Path) -> None:
    """Where the codelets see an array differently, ``transform`` takes one of them alone."""
    file = tmp_path / "mixed.c"
    file.write_text(MIXED)
    with pytest.raises(UnsupportedError, match="cannot be written back: the codelets declare a with different"):
        transform(file, ["loop 1: unroll 2"])
    assert transform(file) == MIXED
    assert "#pragma hmppcg parallel" in transform(file, ["loop 1: unroll 2"], kernel="square")
    assert "numba-cpu" in emit(file, target="numba-cpu")


def test_a_schedule_across_codelets_runs_and_is_not_written_back(tmp_path: Path) -> None:
    """Loops of two codelets fuse into one kernel; ``transform`` has no function to write it to."""
    file = tmp_path / "both.c"
    file.write_text("""
#pragma hmpp <g> f codelet
void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] = x[i]; }
#pragma hmpp <g> g codelet
void g(int n, float y[n], float z[n]) { for (int i = 0; i < n; i++) z[i] = 2 * y[i]; }
void program(int n, float *a, float *b, float *c) { f(n, a, b); g(n, b, c); }
""")
    fused = emit(file, ["loop 1: fuse"], target="numba-cpu")
    assert emit(file, target="numba-cpu").count("def both_") > fused.count("def both_")
    with pytest.raises(UnsupportedError, match="the schedule mixes the statements of f and g"):
        transform(file, ["loop 1: fuse"])


def test_a_codelet_that_runs_twice_is_transformed_once(tmp_path: Path) -> None:
    """A directive for one run of it would make two functions of one."""
    file = tmp_path / "twice.c"
    file.write_text(TWICE)
    with pytest.raises(UnsupportedError, match="blur runs twice and its two runs are transformed differently"):
        transform(file, ["loop 1: unroll 2"])
    assert "for (int i = 0; i < n / 2" in transform(file, ["loop 1: unroll 2", "loop 2: unroll 2"])


def test_a_region_is_a_codelet(tmp_path: Path) -> None:
    """The block after ``hmpp region``, with what is declared around it as parameters, and nothing else of main."""
    text = """
#include <stdio.h>
int main() {
  float A[9], B[9];
  for (int i = 0; i < 9; i++) A[i] = i;
#pragma hmpp codelet region, &
#pragma hmpp & args[*].transfer=manual, target=CUDA, asynchronous
  {
    for (int i = 0; i < 9; i++) B[i] = 2 * A[i];
  }
#pragma hmpp codelet synchronize
  printf("%f", B[3]);
}
"""
    unit = load(text)
    assert [(p.name, p.io) for p in unit.codelet.params if isinstance(p, Array)] == [("A", "in"), ("B", "out")]
    assert unit.text[slice(*unit.body)] == "{\n    for (int i = 0; i < 9; i++) B[i] = 2 * A[i];\n  }"


def test_a_codelet_of_another_file_is_named() -> None:
    """A mark on a prototype alone says which file to give, or is left out where the file has codelets of its own."""
    alone = "#pragma hmpp f codelet\nvoid f(int n, float *x);\nint main() { for (int i = 0; i < 3; i++) f(i, 0); }\n"
    with pytest.raises(UnsupportedError, match="the codelet f is defined in another file: give that file") as error:
        load(alone)
    assert error.value.span.line == 1
    assert "10" not in warnings(alone + MALFORMED)[0]
    assert warnings(alone + MALFORMED)[0] == "1:9: the codelet f is defined in another file and is skipped"
