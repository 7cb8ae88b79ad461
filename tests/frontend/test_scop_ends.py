"""A scop after a label, or as the body of an ``if``, an ``else`` or a loop without braces."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk

SCOP = "#pragma scop\n    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;\n#pragma endscop\n"
TWO = SCOP.replace("#pragma endscop", "    x[1] = 3;\n#pragma endscop")
BODIES = {
    "if": f"if (k > 2)\n{SCOP}",
    "else": f"if (k > 2) {{\n    x[0] = 1;\n  }} else\n{SCOP}",
    "else-if": f"if (k > 3)\n    x[0] = 1;\n  else if (k > 1)\n{SCOP}",
    "for": f"for (int t = 0; t < k; t++)\n{SCOP}",
    "while": f"while (k-- > 0)\n{SCOP}",
    "nested": f"for (int t = 0; t < k; t++)\n    if (t % 2)\n{SCOP}",
    "label": f"if (k > 3) goto out;\n  x[0] = 1;\nout:\n{SCOP}",
    "label-two": f"if (k > 3) goto out;\n  x[0] = 1;\nout:\n{TWO}",
    "case": f"switch (k) {{\n  case 1:\n  case 2:\n{SCOP}    break;\n  default:\n    x[1] = 0;\n  }}\n",
}
MAIN = """#include <stdio.h>
int main(void) {
  float x[10];
  for (int k = 0; k < 6; k++) {
    for (int i = 0; i < 10; i++) x[i] = i % 7;
    f(10, x, k);
    for (int i = 0; i < 10; i++) printf("%g ", x[i]);
  }
  return 0;
}
"""


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_such_a_scop_is_the_codelet(name: str, tmp_path: Path) -> None:
    """Its loops alone are; what replaces them stays the body of what stands around it, and computes the same."""
    text = f"void f(int n, float *x, int k) {{\n  {BODIES[name]}}}\n{MAIN}"
    path = tmp_path / "f.c"
    path.write_text(text)
    unit = load(path)
    loops = [n for n in walk(unit.codelet.body) if isinstance(n, Loop)]
    assert [loop.counter.name for loop in loops if loop.counter is not None] == ["i"]
    changed = transform(path, ("loop i: unroll 3",))
    assert changed.count("i += ") + changed.count("n / 3") >= 1
    assert ran(changed, tmp_path / "changed") == ran(text, tmp_path / "plain")


def test_a_nest_without_braces_stays_the_body(tmp_path: Path) -> None:
    """A loop that is chosen by its line, in the place of which two stand then."""
    path = tmp_path / "f.c"
    path.write_text("void f(int n, float *x, int k) {\n  if (k)\n    for (int i = 0; i < n; i++) x[i] = 1;\n}\n")
    changed = transform(path, ("loop i: unroll 3",), kernel="f:3")
    assert "if (k)\n    {\n" in changed


def ran(text: str, path: Path) -> str:
    """What the program prints."""
    source = path.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["gcc", "-w", str(source), "-o", str(path)], check=True, timeout=60)
    return subprocess.run([str(path)], capture_output=True, text=True, check=True, timeout=60).stdout
