"""``looptune cc``: codelets that are defined in headers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.helpers.command_line import looptune
from tests.helpers.whole_programs import agrees, build

KERNELS = """#ifndef KERNELS_H
#define KERNELS_H
#include "../types.h"
#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> twice codelet, args[x].io=inout
static void twice(int n, real *x)
{
  for (int i = 0; i < n; i++) x[i] *= FACTOR;
}
inline static real dot(int n, const real *x, const real *y)
{
  real s = 0;
  for (int i = 0; i < n; i++) s += x[i] * y[i];
  return s;
}
static void around(int n, real *x)
{
#pragma hmpp <g> twice callsite, asynchronous
  twice(n, x);
#pragma hmpp <g> twice synchronize
}
#endif
"""
MAIN = """#include <stdio.h>
#define FACTOR 2
#define KERNELS "all.h"
#  include KERNELS /* twice */
#include "inc/sub/kernels.h"
void other(int n, double *x);
int main(void) {
  static double x[300];
  for (int i = 0; i < 300; i++) x[i] = i % 7 - 3;
#pragma hmpp <g> twice advancedload, args[x]
#pragma hmpp <g> twice callsite, args[x].advancedload=true
  twice(300, x);
#pragma hmpp <g> twice delegatedstore, args[x]
  around(200, x);
  other(300, x);
  printf("%g %g %s:%d\\n", x[1], dot(300, x, x), __FILE__, __LINE__);
}
"""
OTHER = """#define FACTOR 3
#include <all.h>
void other(int n, double *x) { twice(n, x); }
"""


def write(folder: Path) -> None:
    (folder / "inc" / "sub").mkdir(parents=True)
    (folder / "inc" / "types.h").write_text("#pragma once\ntypedef double real;\n")
    (folder / "inc" / "sub" / "kernels.h").write_bytes(KERNELS.replace("\n", "\r\n").encode())
    (folder / "inc" / "all.h").write_text('#pragma once\n#include "sub/kernels.h"\n#include <sub/kernels.h>\n')
    (folder / "main.c").write_text(MAIN)
    (folder / "other.c").write_text(OTHER)


def test_codelets_in_headers(tmp_path: Path, driver: Path) -> None:
    """Each source file has codelets of its own, with its macros, however it includes the header; lines stay."""
    write(tmp_path)
    named = [word for name in ("twice", "dot") for word in ("--kernel", name)]
    program = build([tmp_path / "main.c", tmp_path / "other.c"], tmp_path, driver, [f"-I{tmp_path}/inc"], named)
    agrees(program)
    ran = program.on_device(LOOPTUNE_VERBOSE=1)
    assert "twice (kernels.h:6): calls on NVIDIA H200: 2;" in ran.said
    assert "twice (kernels.h:6): calls on NVIDIA H200: 1;" in ran.said
    assert "dot (kernels.h:10): calls on NVIDIA H200: 1;" in ran.said
    assert "data directives: loaded 0.002 MB" in ran.said
    assert "kernels.h:20:9: warning: this synchronize has no effect: write it in " in program.said


def test_the_headers_of_a_library(tmp_path: Path) -> None:
    """A library has the codelets of headers as well."""
    write(tmp_path)
    made = looptune("cc", "main.c", "-Iinc", "--shared", "-o", "libk.so", "--arch", "none", cwd=tmp_path)
    assert made.code == 0, made.err
    assert "int twice(int n, double *x_);" in (tmp_path / "k.h").read_text()


def test_headers_whose_copy_would_be_another_text(tmp_path: Path) -> None:
    """A header that stands in the program twice is not replaced, and a warning says so."""
    (tmp_path / "twice.h").write_text("static void NAME(int n, float *x) {\n#pragma scop\n"
                                      "  for (int i = 0; i < n; i++) x[i] *= BY;\n#pragma endscop\n}\n")  # fmt: skip
    (tmp_path / "a.c").write_text(
        '#define NAME f\n#define BY 3\n#include "twice.h"\n#undef NAME\n#undef BY\n#define NAME g\n#define BY 5\n'
        '#include "twice.h"\n#include <stdio.h>\n'
        'int main(void) { float x[2] = {1, 2}; f(2, x); g(2, x); printf("%g", x[1]); }\n'
    )
    done = looptune("cc", "a.c", "-o", "a", "--arch", "none", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "the header with f is included more than once: include it once" in done.err
    assert subprocess.run([tmp_path / "a"], capture_output=True, text=True).stdout == "30"


def test_an_inline_function_with_a_result(tmp_path: Path) -> None:
    """One without static would need a definition in another file: it is left alone, and a warning says so."""
    (tmp_path / "h.h").write_text("inline float sum(int n, const float *x) {\n  float s = 0;\n"
                                  "  for (int i = 0; i < n; i++) s += x[i];\n  return s;\n}\n")  # fmt: skip
    (tmp_path / "a.c").write_text(
        '#include "h.h"\nextern inline float sum(int n, const float *x);\n'
        "int main(void) { float x[2] = {1, 2}; return (int)sum(2, x); }\n"
    )
    done = looptune("cc", "a.c", "-o", "a", "--arch", "none", "--kernel", "sum", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "h.h:1:14: warning: sum is inline and returns a value: make it static" in done.err
    assert subprocess.run([tmp_path / "a"]).returncode == 3


def test_codelets_in_headers_that_the_command_includes(tmp_path: Path, driver: Path) -> None:
    """A header of ``-include`` that the file names again runs its codelet; one of the system is found too."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "conf.h").write_text('#pragma once\n#include "deep.h"\nenum { N = 300 };\n')
    (tmp_path / "inc" / "deep.h").write_text(
        "#ifndef DEEP\n#define DEEP\n#pragma hmpp twice codelet, args[x].io=inout\n"
        "static void twice(int n, double *x)\n{\n  for (int i = 0; i < n; i++) x[i] *= FACTOR;\n}\n#endif\n"
    )
    (tmp_path / "main.c").write_text(
        '#include "inc/deep.h"\n#include <stdio.h>\nint main(void) {\n  static double x[N];\n'
        "  for (int i = 0; i < N; i++) x[i] = i;\n#pragma hmpp twice callsite\n  twice(N, x);\n"
        '  printf("%g %d %s\\n", x[7], __LINE__, __FILE__);\n}\n'
    )
    options = ["-DFACTOR=2", f"-I{tmp_path}/inc", "-include", "conf.h", "-includemath.h"]
    program = build([tmp_path / "main.c"], tmp_path, driver, options)
    agrees(program)
    assert "twice (deep.h:4): calls on NVIDIA H200: 1;" in program.on_device(LOOPTUNE_VERBOSE=1).said
    assert "warning" not in program.said
