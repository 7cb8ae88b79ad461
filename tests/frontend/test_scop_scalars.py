"""A scalar that a scop computes keeps its value for whatever reads it: code after it, its next pass, the next call."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir.nodes import Array, Scalar, While
from looptune.ir.rewrite import walk
from tests.helpers import cross_check

HEAD = "#include <stdio.h>\ndouble a[10]; int b[10];\n"
SCOP = "\n#pragma scop\n{}\n#pragma endscop\n"
SUM = SCOP.format("for (int i = 0; i < n; i++) s += i;\na[0] = s;")
COUNT = SCOP.format("for (i = 0; i < n; i += 3) b[i] = i;")
MAYBE = SCOP.format("for (int i = 0; i < n; i++) if (i > 90) s = i;")
OWN = SCOP.format("for (int i = 0; i < n; i++) b[i] = n; n = n - 2;")
MIXED = SCOP.format("for (int i = 0; i < n; i++) { s += i; c++; f += b[i] * 0.5f; }")
ARRAY = SCOP.format("for (int i = 0; i < n; i++) { t[i] = 2 * t[i] + 1; b[i] = t[i]; }")

BODIES = {
    "read after the block": f"int s = 0; if (n > 3) {{{SUM}}} return s;",
    "read in the next pass": f"int s = 0; for (int r = 0; r < 3; r++) {{{SUM}}} return (int)a[0];",
    "read in the next pass of a while": f"int s = 0, k = 0; while (k < 3) {{{SUM} k++; if (s > 90) break; }} return s;",
    "read in the next pass by goto": f"int s = 0, k = 0;\nagain: k++;{SUM} if (k < 3) goto again; return s;",
    "read in the next call": f"static int s = 1; int r = 0;{SUM} r = (int)a[0]; return r;",
    "read in a switch": f"int s = 0;{SUM} switch (n) {{ case 8: return s; default: break; }} return 1;",
    "read through a pointer": f"int s = 0; int *p = &s;{SUM} return *p;",
    "read where another write is skipped": f"int s = 0;{SUM} if (n < 0 && (s = 3)) return 1; return s;",
    "read as an index": f"struct q {{ int x; }} v[30] = {{{{1}}}}; int s = 0;{SUM} v[28].x = 7; return v[s].x;",
    "passed to a function": f'int s = 0;{SUM} printf("%d ", s); return 0;',
    "overwritten before it is read": f"int s = 5;{SUM} s = 3; return s + b[0];",
    "kept where the scop does not write it": f"int s = 5;{MAYBE} return s;",
    "given its value before": f"int s; if (n > 3) s = 1; else s = 2;{SUM} return s;",
    "a loop's variable": f"int i, t = 0;{COUNT} if (n) t = i; return t;",
    "a loop's variable of a scop that does not run": f"int i = 77; if (n > 90) {{{COUNT}}} return i;",
    "a parameter": f"{OWN} return n;",
    "one of two of a name": f"int s = 0; {{ int s = 5;{SUM} b[0] = s; }} return s + b[0];",
    "narrow and floating": f"short s = 3; unsigned char c = 250; float f = 0;{MIXED} return s + c + f;",
    "an array of the block": f"int t[10] = {{1, 2}}; for (int r = 0; r < 4; r++) {{{ARRAY}}} return b[3];",
    "a static array": f"static int t[10];{ARRAY} return b[3];",
}  # fmt: skip


def program(body: str) -> str:
    return (
        f"{HEAD}int g(int n) {{ {body} }}\nint main(void) {{\n  for (int i = 0; i < 10; i++) b[i] = i * 7 % 5;\n"
        "  int r = g(8) + 100 * g(5);\n  for (int i = 0; i < 10; i++) r = r * 3 + b[i] + (int)a[i];\n"
        '  printf("%d\\n", r);\n  return 0;\n}\n'
    )


def printed(text: str, folder: Path) -> str:
    source = folder / "p.c"
    source.write_text(text)
    subprocess.run(["gcc", "-w", "-O1", str(source), "-o", str(folder / "p")], check=True, timeout=60)
    return subprocess.run([str(folder / "p")], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.sampled(10, "wide")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", BODIES)
def test_a_transformed_scop_leaves_its_scalars(name: str, tmp_path: Path) -> None:
    """The program prints the same with its loop unrolled; without a directive the text is the same."""
    file = tmp_path / "scop.c"
    file.write_text(program(BODIES[name]))
    assert transform(file, kernel="g") == file.read_text()
    text = transform(file, ["loop 1: unroll 2"], kernel="g")
    assert text.count("for (") > file.read_text().count("for (")
    assert printed(text, tmp_path) == printed(file.read_text(), tmp_path)


def test_what_leaves_the_codelet_is_an_array_of_one_element() -> None:
    """In and out where it has a value before, out where it has none; a loop's variable has a name of its own."""
    codelet = load(program(BODIES["read in the next pass"]), kernel="g").codelet
    kinds = {p.name: p.io if isinstance(p, Array) else "" for p in codelet.params}
    assert kinds == {"n": "", "a": "out", "s": "inout"}
    given: cross_check.Arguments = {"n": 5, "a": np.zeros(10), "s": np.array([100], np.int32)}
    assert cross_check.interpreted(codelet, given)["s"].tolist() == [110]
    codelet = load(program(BODIES["a loop's variable"]), kernel="g").codelet
    assert [p.name for p in codelet.params] == ["n", "b", "i_last"]
    given = {"n": 8, "b": np.zeros(10, np.int32), "i_last": np.array([0], np.int32)}
    assert cross_check.interpreted(codelet, given)["i_last"].tolist() == [9]


def test_what_nobody_reads_is_no_parameter() -> None:
    """A scalar that is written before it is read again stays the codelet's own; argc that nothing reads is none."""
    codelet = load(program(BODIES["overwritten before it is read"]), kernel="g").codelet
    assert [p.name for p in codelet.params if isinstance(p, Array)] == ["a"]
    text = "double x[40];\nint main(int argc, char *argv[]) {{ int i;\n#pragma scop\n" \
           "  for (i = 0; i < {}; i++) x[i] = i;\n#pragma endscop\n  return argc > 42; }}\n"  # fmt: skip
    assert [p.name for p in load(text.format(40)).codelet.params] == ["x"]
    assert [p.name for p in load(text.format("argc")).codelet.params] == ["argc", "x"]


def test_counters_of_the_file_keep_their_last_value() -> None:
    """A variable at file scope that loops count with is stored where another function may read it first."""
    text = "int x[40], i;\nvoid f(int n) { for (i = 0; i < n; i++) x[i] = i; }\n"
    assert [p.name for p in load(text).codelet.params] == ["n", "x"]
    read = load(text + "int g(void) { return i; }\n", kernel="f").codelet
    assert [p.name for p in read.params] == ["n", "x", "i_last"]
    assert [p.name for p in load(text + "int g(void) { i = 0; return i; }\n", kernel="f").codelet.params] == ["n", "x"]


def test_labels_that_no_goto_names_are_read_over() -> None:
    """Statement labels say nothing; those that a goto names are kept."""
    text = "void f(int n, double *x) {\n  for (int i = 0; i < n; i++) {\nS1: x[i] = 2 * x[i];\n  }\n}\n"
    assert isinstance(load(text).codelet.params[0], Scalar)
    again = load(text.replace("2 * x[i];", "2 * x[i]; if (x[i] < 9) goto S1;")).codelet
    assert any(isinstance(n, While) for n in walk(again.body))
