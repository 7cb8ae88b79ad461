"""A folder with the files that the documents take for granted: the suite, a database, a program with its own data."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from looptune.frontend import load
from looptune.runtime import images
from looptune.runtime.outcome import Illegal
from looptune.tune.store.store import Row, Store
from tests.helpers import synthetic_database
from tests.helpers.paths import POLYBENCH, ROOT

KERNELS = ("atax", "gemm")
TIMES_US = {"": 50.0, "loop 3: unroll 4": 30.0, "loop 3: unroll 4, split": 40.0, "loop 3: tile 8": 60.0}
SIZES = {"gemm": {"ni": 32, "nj": 32, "nk": 32, "alpha": 2, "beta": 3}, "atax": {"nx": 32, "ny": 32}}

NEST = "void f(int n, float x[n], float y[n]) {\n  for (int i = 0; i < n; i++) y[i] = 2 * x[i];\n}\n"

GEMVER = """#include <stdio.h>
#include <polybench.h>
#ifdef SMALL_DATASET
# define N 30
#endif
#ifdef MEDIUM_DATASET
# define N 60
#endif

static void kernel_gemver(int n, DATA_TYPE alpha, DATA_TYPE A[N][N], DATA_TYPE x[N], DATA_TYPE w[N])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      w[i] = w[i] + alpha * A[i][j] * x[j];
#pragma endscop
}

int main(void)
{
  static DATA_TYPE A[N][N], x[N], w[N];
  for (int i = 0; i < N; i++) {
    x[i] = i;
    for (int j = 0; j < N; j++) A[i][j] = i + j;
  }
  kernel_gemver(N, 1.5, A, x, w);
  printf("%g\\n", w[1]);
  return 0;
}
"""


def furnish(folder: Path) -> None:
    for place in ("polybench", "pragmas", "examples", "utilities", "gemver", "linear-algebra/blas/gemver", ".looptune"):
        (folder / place).mkdir(parents=True)
    for system in ("hall-carr-hart", "jiang-snir"):
        shutil.copy(ROOT / "pragmas" / f"{system}.pragmas", folder / "pragmas")
    shutil.copytree(ROOT / "gatlas", folder / "gatlas")
    shutil.copytree(POLYBENCH / "c", folder / "polybench" / "c")
    for name in (*KERNELS, "bp_stereo"):
        shutil.copy(POLYBENCH / f"{name}.c", folder / "polybench")
        shutil.copy(ROOT / "pragmas" / f"{name}.pragmas", folder / "pragmas")
    shutil.copy(POLYBENCH / "gemm.c", folder)
    shutil.copy(ROOT / "examples" / "stereo.py", folder / "examples")
    (folder / "nest.c").write_text(NEST)
    for side in ("left", "right"):
        images.write(folder / f"{side}.png", np.arange(48).reshape(6, 8))
    np.savez(folder / "in.npz", n=8, x=np.ones(8, np.float32))
    (folder / "utilities" / "polybench.h").write_text("#define DATA_TYPE double\n")
    for place in ("gemver", "linear-algebra/blas/gemver"):
        (folder / place / "gemver.c").write_text(GEMVER)
    database = folder / ".looptune" / "results.sqlite"
    fill(database)
    for copy in ("a", "all", "b", "cpu", "h100", "h200", "results"):
        shutil.copy(database, folder / f"{copy}.sqlite")


def fill(database: Path) -> None:
    """Both kernels on this CPU, four versions each with times made up, one of them illegal."""
    for name in KERNELS:
        unit = load(POLYBENCH / f"{name}.c", defines={"MINI_DATASET": None})
        at = synthetic_database.this_cpu(unit, SIZES[name])
        for role in ("version", "final"):
            synthetic_database.keep(database, at, TIMES_US, role=role, sweep=name)
        with Store.open(database) as store:
            store.record(
                Row(at, "nest 1: permute j, i", "version", name), Illegal("iteration (i=1) must run before (i=2)")
            )
