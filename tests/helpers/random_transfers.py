"""Programs whose codelets are called asynchronously, with arrays that lines load in advance, in random order.

No line changes what the program computes: what is loaded is what the host has, and nobody reads what is not waited for.
"""

from __future__ import annotations

import random

HEAD = """#include <stdio.h>
#include <stdlib.h>
#pragma hmpp inc codelet, args[x].io=inout
static void inc(int n, double *x, double by) { for (int i = 0; i < n; i++) x[i] = 0.5 * x[i] + by; }
#pragma hmpp add codelet, args[y].io=inout
static void add(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = 0.25 * y[i] + x[i]; }
#pragma hmpp mul codelet, args[z].io=out
static void mul(int n, const double *x, const double *y, double *z)
{
  for (int i = 0; i < n; i++) z[i] = x[i] - 0.5 * y[i];
}
static double total(int n, const double *x)
{
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * (i % 7 + 1);
  return s;
}
int main(int argc, char **argv)
{
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  double *v[5];
  for (int k = 0; k < 5; k++) {
    v[k] = malloc(n * sizeof(double));
    for (int i = 0; i < n; i++) v[k][i] = (i * (k + 3)) % 17;
  }
"""
READ = {"inc": ["x"], "add": ["x", "y"], "mul": ["x", "y"]}
ARRAYS = {"inc": 1, "add": 2, "mul": 3}
STEPS = 50


def random_transfers(seed: int) -> str:
    """The program of this number."""
    draw = random.Random(seed)
    text = HEAD
    pending: dict[str, set[int]] = {}
    for step in range(STEPS):
        name = draw.choice(list(ARRAYS))
        used = draw.sample(range(5), ARRAYS[name])
        while pending and (name in pending or set().union(*pending.values()) & {*used}):
            waited = draw.choice(list(pending))
            text += f"#pragma hmpp {waited} synchronize\n"
            del pending[waited]
        idle = [k for k in range(5) if k not in set().union(*pending.values())]
        if idle and draw.random() < 0.3:
            text += f"  v[{draw.choice(idle)}][{draw.randrange(900)}] += {draw.randrange(5)};\n"
        loaded = [p for p in READ[name] if draw.random() < 0.4]
        if loaded:
            text += f"#pragma hmpp {name} advancedload, args[{';'.join(loaded)}]\n"
        asynchronous = draw.random() < 0.5
        clauses = "".join(f", args[{p}].advancedload=true" for p in loaded) + ", asynchronous" * asynchronous
        count = "n / 2" if draw.random() < 0.2 else "n"
        passed = [count, *(f"v[{k}]" for k in used), *([str(step % 5)] if name == "inc" else [])]
        text += f"#pragma hmpp {name} callsite{clauses}\n  {name}({', '.join(passed)});\n"
        if asynchronous:
            pending[name] = {*used}
        elif draw.random() < 0.2:
            text += f'  printf("%.12g\\n", total(n, v[{used[0]}]));\n'
        if not pending and draw.random() < 0.1:
            text += "#pragma hmpp inc release\n"
    text += "".join(f"#pragma hmpp {name} synchronize\n" for name in ARRAYS)
    return text + '  for (int k = 0; k < 5; k++) printf("%.12g\\n", total(n, v[k]));\n  return 0;\n}\n'
