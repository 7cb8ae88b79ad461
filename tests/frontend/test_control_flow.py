"""Jumps, results of functions and statements in expressions: each program computes what gcc's does, on every target."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import UnsupportedError
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

PROGRAMS = {
    "search": """
void f(int n, int x, const int a[n], int at[3]) {
  int i;
  for (i = 0; i < n; i++) if (a[i] == x) break;
  at[0] = i;
  for (i = n - 1; i >= 0; i -= 2) if (a[i] == x) break; else at[1] += a[i];
  at[2] = i;
}""",
    "statements in expressions": """
#define MAX(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define SQUARE(x) ({ double t = (x); t * t; })
#define HALVED(x) ({ int r = (x); if (r > 3) r -= 2; for (int q = 0; q < 2; q++) r /= 2; r; })
void f(int n, double x[n], int z[n]) {
  for (int i = 0; i < n; i++) x[i] = MAX(x[i], SQUARE(x[i] / 4)) + MAX(2, z[i]);
  for (int i = 0; i < n; i++)
    if (x[i] > 0 && SQUARE(x[i]) > 0.5) z[i] += HALVED(z[i]); else z[i] = z[i] ? MAX(z[i], 2) : 1;
  for (int i = 0; i < n; i++) { typeof(x[0]) *p = x + i; *p = *p * 2 + ({ z[i]++; z[i]; }); (void)({ z[i] += 2; 0; }); }
  for (int i = 0; i < n; i++) z[i] = ({ int k = z[i]; k++; }) + MAX(MAX(1, z[i]), SQUARE(2.0));
  for (int i = 0; i < n; i++) z[i] += ({ int s = 0; for (int j = 0; j < i; j++) { if (j == 5) break; s += j; }
    ({ s; }); });
  for (int i = 0; i < MAX(n - 2, 0); i++) x[i] += ({ int k = i; while (k > 2) k -= 2; k; });
}""",
    "a bound that the body writes": """
void f(int n, int a[n + 3], int b[2]) {
  int k = 0;
  a[1] = 40;
  for (int i = 0; i < a[1]; i++) a[1] -= 3;
  while (k < a[0] + n) { a[n] += k; a[0] = a[0] > 3 ? a[0] - 2 : a[0]; k += 1; }
  b[0] = k;
  for (k = 0; k < b[1] + 9; k++) b[1]--;
}""",
    "headers that set several variables": """
void f(int n, int a[2 * n + 9], int b[2 * n + 9]) {
  int i, j, k = n / 2;
  for (i = j = 0; j < n; i += 2, ++j) b[i] = b[i + 1] += a[j];
  for (j = 3, i = j + 1; j < n; ++i, j++) a[i] -= b[j] + i;
  for (int p = 2, q = p; p < n; q += 2, p++) b[q] += 3 * p;
  for (i = k, j = k++; j < n; i++, ++j) a[i + k] += b[j];
  for (j = k, k = 7, i = 0; j < n; j++) b[j] += k + i--;
  for (j = a[0] & 3, a[0] = 9; j < n; j++) b[j + 1] ^= a[0];
}""",
    "break in an inner loop": """
void f(int n, int m, double a[n][m], const int b[m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) { if (b[j] < -5) break; a[i][j] = b[j] * i; }
}""",
    "continue at any depth": """
void f(int n, int a[n], int b[n]) {
  for (int i = 0; i < n; i++) {
    if (a[i] > 0) { if (b[i] > 0) { a[i]--; continue; } if (b[i] == 0) continue; b[i]++; }
    a[i] += 2;
    for (int j = 0; j < i; j++) { if (j % 3 == 1) { if (a[j] < 0) continue; } a[j] ^= j; }
    b[i] -= 3;
  }
}""",
    "loops that only a break ends": """
void f(int n, int a[n], int b[n]) {
  int i = 0;
  for (;;) { if (i >= n) break; a[i] += i; i++; }
  while (1) { i--; if (i < 0) break; if (a[i] % 2) continue; b[i] = a[i]; }
  do { i++; if (i > 3) break; b[i] = 7; } while (i < n - 1);
  for (i = 0; ; i += 2) { if (i >= n) break; b[i] *= 2; }
  a[0] = i;
}""",
    "goto": """
void f(int n, int m, const int a[n][m], int r[3]) {
  int i, j;
  for (i = 0; i < n; i++)
    for (j = 0; j < m; j++)
      if (a[i][j] == 3) goto found;
  r[0] = -1;
  goto end;
found:
  r[0] = i; r[1] = j;
end:
  r[2] = i * 100 + j;
}""",
    "a counter after goto": """
void f(int n, int a[n]) {
  int i = -1;
  while (++i < n) if (a[i] > 5) goto out;
  i = 100;
out:
  a[1] = i;
}""",
    "goto as a loop": """
void f(int n, int a[n]) {
  int i = 0;
  for (int j = 0; j < n; j++) a[j]--;
again:
  if (i < n) {
    a[i] += 5;
    if (a[i] > 8) { i += 2; goto again; }
    i++;
    goto again;
  }
  a[0] = i;
}""",
    "a counter that passes its limit": """
void f(int n, int a[n]) {
  int x = n, fuel = 30;
  while (++x) { if (--fuel < 0) break; a[x % n]++; }
  a[0] = x;
  for (int i = 5; i != 3; i++) { if (i == n - 1) break; a[i] += 2; }
}""",
    "labels in a loop of goto": """
void f(int n, int a[n]) {
  int i;
  for (i = 0; i < 3; i++) a[i]++;
  i = 0;
loop:
  if (i >= n) goto done;
  if (a[i] < 0) goto skip;
  a[i] *= 3;
skip:
  i++;
  goto loop;
done:
  a[0] = i;
}""",
    "cleanup by goto": """
int f(int n, int a[n]) {
  int status = 1;
  if (n < 3) goto out;
  for (int i = 0; i < n; i++) { if (a[i] > 8) { status = 2; goto out; } a[i]++; }
  status = 0;
out:
  a[0] = status;
  return status;
}""",
    "return in loops": """
int f(int n, int m, const int a[n][m], int count[3]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) { if (a[i][j] > 8) return i * m + j; count[0]++; }
    if (a[i][0] < -8) return -i;
    count[1] += i;
  }
  count[2] = 1;
  return 12345;
}""",
    "a sum that is returned": """
double f(int n, const double a[n], const double b[n]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s / n;
}""",
    "a truth value that is returned": """
_Bool f(int n, const float a[n]) {
  if (n < 2) return 0;
  for (int i = 1; i < n; i++) if (a[i] < a[i - 1]) return 0;
  return 1;
}""",
    "void returns": """
void f(int n, int a[n]) {
  if (a[0] > 5) return;
  for (int i = 0; i < n; i++) { if (a[i] > 7) { a[i] = 0; return; } if (a[i] < 0) { a[i]++; if (a[i] == 0) return; } }
  a[n - 1] = 77;
}""",
    "breaks of several loops": """
void f(int n, int a[n], int b[n]) {
  for (int k = 0; k < 3; k++) {
    int i = 0;
    while (i < n) {
      for (int j = i; j < n; j++) { if (a[j] == k) break; if (a[j] > 6) { b[i] += j; goto next; } b[j] -= k; }
      if (b[i] > 20) break;
      b[i]++;
    next:
      i++;
    }
    a[k] = i;
  }
}""",
    "effects in expressions": """
void f(int n, int a[n], int b[n], double d[n]) {
  int i = 0, j = 0, k = n, m = -100, t, u, v;
  while (i < n - 1) a[i++] = b[j++] + 1;
  for (i = 0; i < n; i++) if ((t = a[i]) > m) m = t;
  while (k-- > 0) b[k] += m;
  u = v = b[0] = 3;
  a[0] = u + v;
  for (i = n; i--; ) d[i] += i;
  for (i = n; --i; ) d[i] *= 2;
  for (int p = 0; p++ < n - 1; ) d[p] -= p;
  i = 0;
  while (i < n && a[i++] != 4) b[n - 1] += 1;
  a[1] = i;
  do { i--; } while (i > 0 && a[i]-- > 2);
  a[2] = i; t = 0;
  for (i = 0; i < n; i++) { a[i] = i % 2 ? t++ : --t; b[i] = (t += 2, t * i); d[i] += (i > 3 || t++ > 4); }
  i > 4 ? (a[3] = 9) : (b[3] = 9);
  n > 3 && (a[4] = b[4]++);
  for (i = 0; i < n; a[i++] += 2) if (i == 5) continue; else b[i] ^= 1;
}""",
    "unsigned counters that wrap": """
void f(int n, unsigned a[n]) {
  unsigned k = n, s = 0;
  while (k--) a[k] += k;
  a[0] = k;
  for (unsigned char c = 4; c-- > 0; ) s += c;
  a[1] = s;
}""",
    "switch": """
enum { RED, GREEN = 4, BLUE };
void f(int n, int a[n], int b[n]) {
  for (int i = 0; i < n; i++) {
    switch (a[i]) {
      int unused;
      case 1: case 'a': a[i] = 5; break;
      case 2: case 3: a[i]++;
      case GREEN: b[i]--; if (b[i] > 3) break; b[i] -= 2; break;
      default: if (b[i] > 3) continue; b[i] = 7;
      case -5: b[i] += 100; break;
      case BLUE + 1: for (int j = 0; j < 3; j++) { if (j == 2) break; b[i] += j; }
    }
    switch (b[i] & 3) {
      case 0: switch (i & 1) { case 1: a[i] = -1; break; default: a[i] = -2; } break;
      case 2: a[i] = 3;
    }
    a[i] *= 2;
  }
  switch (n) { default: a[0] = 1; break; case 9: a[0] = 2; }
}""",
    "ranges of cases": """
enum { LOW = 2, HIGH = 4 };
void f(int n, int a[n], int b[n], unsigned u[n], long l[n], signed char c[n]) {
  for (int i = 0; i < n; i++) {
    switch (a[i]) {
      case -9 ... -2: b[i] = 1; break;
      case LOW ... HIGH: b[i]++;
      case 1 ? 5 : 1 ... 6: case 7 ... 7: b[i] += 20; if (b[i] > 22) break; b[i]--; break;
      case '0' ... '9': case 60 ... 58: b[i] = 3; break;
      default: b[i]--;
      case 1: b[i] ^= 8;
    }
    switch (u[i] * 1000) {
      case -5000 ... -1000: u[i] = 3; break;
      case -1 ... -1000: u[i] = 4; break;
      case 0 ... 3000: u[i] = 7; break;
      case 4294000000 ... 4294960000: u[i] = 8;
    }
    switch (l[i] << 32) { case 0x100000000 ... 0x300000000: l[i] = 99; break; case -1l << 60 ... -1: l[i]--; }
    switch (c[i]) { case 200 ... 300: c[i] = 9; break; case 0x100000001 ... 0x100000003: c[i] = 44; }
    switch (c[i]) { case -128 ... 0xfffffffcu: c[i] = 1; break; case 0x100000001: c[i] = 3; }
  }
  switch (n) { default: a[0] = 1; break; case 9 ... 20: a[0] = 2; }
}""",
    "conditions as values": """
#include <math.h>
void f(int n, int a[n], int b[n], double d[n]) {
  for (int i = 0; i < n; i++) a[i] = a[i] ?: b[i] ? 7 : 8;
  for (int i = 0; i < n; i++) { d[i] = fabs(d[i]) > 3 ?: b[i] / 2 ?: 0.25; b[i] = (a[i] - 1) ?: -1; }
}""",
    "functions with statements": """
#include <math.h>
static double norm(int n, const double *v) {
  double s = 0;
  for (int i = 0; i < n; i++) s += v[i] * v[i];
  if (s < 1) return 1;
  return sqrt(s);
}
static void add_to(double *s, double v) { *s += v; }
static void twice(double *s, double v) { add_to(s, v); add_to(s, 2 * v); }
static int first(int n, const int *a, int x) { for (int i = 0; i < n; i++) if (a[i] == x) return i; return -1; }
static void swap(int *x, int *y) { int t = *x; *x = *y; *y = t; }
#define CLAMPED(name, type) static type name(type v, type hi) { if (v > hi) v = hi; return v; }
CLAMPED(clamp_int, int)
CLAMPED(clamp_real, double)
void f(int n, int x, int a[n], double d[n], double r[8]) {
  double s = 0;
  int lo = 3, hi = 1;
  r[0] = norm(n, d);
  for (int i = 0; i < n; i++) { add_to(&s, d[i]); twice(&s, i); }
  r[1] = s;
  r[2] = first(n, a, x) + 0.5;
  if (first(n, a, 2) >= 0 && first(n, a, 3) < 5) r[3] = first(n, a, 4);
  swap(&lo, &hi);
  r[4] = lo * 10 + hi;
  for (int i = 0; i < n; i++) { a[i] = clamp_int(a[i], 4); d[i] = clamp_real(d[i], 1.5) + clamp_real(2, d[i]); }
}""",
    "functions of arrays": """
static void scale(int n, int m, double a[n][m], double by) {
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i][j] *= by;
}
static void count(int n, const int *a, int *total) {
  for (int i = 0; i < n; i++) { if (a[i] < 0) { total[1]++; continue; } total[0] += a[i]; }
}
static void fill(int n, int *a, int v) { while (n > 0) { n--; a[n] += v; } }
void f(int n, int m, double b[n][m], int a[n], int r[2]) {
  scale(n, m, b, 0.5);
  int total[2];
  for (int k = 0; k < 2; k++) {
    total[0] = k; total[1] = 0; count(n, a, total); r[k] = total[0] + 1000 * total[1]; fill(n, a, k);
  }
}""",
    "parts of arrays as arguments": """
static double first(const double *v) { return v[0]; }
static double next(const double *v) { return *v++; }
static double sum(int n, const double *v) { double s = 0; for (int i = 0; i < n; i++) s += v[i]; return s; }
static void axpy(int n, double by, const double *restrict x, double *restrict y) { while (n--) *y++ += by * *x++; }
void f(int n, int m, double b[n][m], double a[n], double c[n * m], int k[n]) {
  int j = 0;
  for (int i = 0; i < n; i++) { a[i] = first(b[i]) + next(&b[i][1]) + sum(m, b[i]) - sum(m, c + i * m); k[j++] = i; }
  for (int i = 1; i < n; i++) axpy(m, 0.5, b[0], b[i]);
  for (int i = 0; i < n; i++) a[i] += (j--, 2 * j);
  a[n - 1] = sum(3, &a[2]);
}""",
}  # fmt: skip
SIZES = {"n": 9, "m": 5, "x": 3, "a": 9, "b": 9, "c": 45}


def cases(programs: dict[str, str], ways: tuple[str, ...], seeds: int) -> list[Case]:
    made = []
    for name, text in programs.items():
        codelet = load(f"{text}\n").codelet
        given = [cross_check.arguments(codelet, sizes_of(codelet), seed) for seed in range(1, seeds + 1)]
        made.append(Case(name, f"{text}\n", given, ways=ways, tolerance=1e-12))
    return made


def sizes_of(codelet: object) -> dict[str, int | float]:
    return {p.name: SIZES.get(p.name, 9) for p in codelet.params}  # type: ignore[attr-defined]


@pytest.mark.wide
def test_programs_compute_what_gcc_computes(tmp_path: Path) -> None:
    """The interpreter, the C that is printed, and CUDA C on a processor."""
    assert all_targets.wrong(cases(PROGRAMS, all_targets.QUICK, 2), tmp_path) == []


@pytest.mark.long
@pytest.mark.wide
def test_programs_compute_it_on_every_target(tmp_path: Path) -> None:
    """A CPU's machine code and Numba's CUDA module too."""
    assert all_targets.wrong(cases(PROGRAMS, all_targets.ALL, 2), tmp_path) == []


def test_ranges_of_cases_are_read_at_their_places() -> None:
    text = "#define UP 1 ... 3\nvoid f(int n, int *x) {\n  for (int i = 0; i < n; i++)\n    switch (x[i]) {\n"
    with pytest.raises(UnsupportedError, match="a case of the switch in line 5 has this value too") as caught:
        load(f"{text}    case UP: case 'a'...'c': x[i] = 4; break;\n    case 'c': x[i] = 7; }}\n}}\n")
    assert (caught.value.span.line, caught.value.span.col) == (6, 5)


def modes(text: str) -> list[str]:
    done = schedule(Analysis(load(f"{text}\n").codelet)).codelet
    return [n.mode if isinstance(n, Loop) else "while" for n in walk(done.body) if isinstance(n, Loop | While)]


def test_a_break_leaves_the_loops_around_parallel() -> None:
    """Subscripts remain those of counted loops, so that rows of a linear array are told apart."""
    text = """
void f(int n, int m, double *restrict a, const double *restrict b) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) { if (b[j] < 0) break; a[i * m + j] = 2 * b[j]; }
}"""
    assert modes(text) == ["parallel", "sequential"]


def test_scalars_of_a_while_loop_are_private() -> None:
    """What each iteration of a while loop sets before it reads it belongs to the iteration of the loop around."""
    text = """
void f(int n, double *o) {
  for (int i = 0; i < n; i++) { double z = o[i]; while (z < 4.0) { double t = z * z + 1; z = t; } o[i] = z; }
}"""
    assert modes(text) == ["parallel", "while"]


def test_a_search_leaves_the_loops_around_parallel() -> None:
    """The value of a counter at a break, and the value of a function that returns from a loop, are private."""
    text = """
static int steps(double c, int most) {
  double z = 0;
  for (int k = 0; k < most; k++) { if (z > 4) return k; z = z * z + c; }
  return most;
}
void f(int n, int *restrict a, int *restrict b) {
  for (int i = 0; i < n; i++) { int k; for (k = 0; k < 9; k++) if (a[k] == i) break; a[i] = k; b[i] = steps(i, 50); }
}"""
    assert modes(text.replace("a[k] == i", "b[i] == k")) == ["parallel", "sequential", "sequential"]


def test_a_return_under_two_conditions_leaves_the_loop_around_parallel() -> None:
    """Every call sets the value that it returns, whichever of its conditions hold."""
    text = """
static int clamp(int x) {
  if ((unsigned)x > 255) { if (x < 0) return 0; if (x > 255) return 255; }
  return x;
}
void f(int n, int *a) { for (int i = 0; i < n; i++) a[i] = clamp(a[i]); }
"""
    assert modes(text) == ["parallel"]


def test_many_jumps_do_not_multiply_the_text() -> None:
    """A statement is lowered once, however many jumps precede it."""
    jumps = "".join(f"if (a[i] > {k}) {{ if (a[i] > 9) {{ a[i]--; continue; }} a[i] += {k}; }}\n" for k in range(60))
    codelet = load(f"void f(int n, int *a) {{ for (int i = 0; i < n; i++) {{ {jumps} }} }}\n").codelet
    assert sum(1 for _ in walk(codelet.body)) < 5000


LEFT = """
static void add(int n, int *restrict b, const int *restrict a, int k) { for (int i = 0; i < n; i++) b[i] += a[i] * k; }
void f(int n, const int *restrict a, int *restrict b) {
  add(n, b, a, 3);
  for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) { if (a[j] > a[i]) break; b[i]++; }
  for (int i = 0; i < n; i++) { b[0] += a[i]; if (a[i] > 8) return; }
  b[1] = 77;
}
"""


def test_transform_writes_loops_that_a_break_leaves(tmp_path: Path) -> None:
    """The text with its loops rewritten computes what it did."""
    (tmp_path / "f.c").write_text(LEFT)
    new = transform(tmp_path / "f.c", ["loop 2: unroll 2"])
    codelet = load(LEFT).codelet
    for seed in range(3):
        given = cross_check.arguments(codelet, {"n": 9, "a": 9, "b": 9}, seed)
        folders = [tmp_path / f"{name}{seed}" for name in ("old", "new")]
        for folder in folders:
            folder.mkdir()
        want, got = (
            cross_check.by_gcc(t, codelet, given, folder) for t, folder in zip((LEFT, new), folders, strict=True)
        )
        assert cross_check.off(want, got) is None


@pytest.mark.parametrize(
    ("loop", "why"),
    [
        (1, "this loop stands in a function that is called here: transform that function with --kernel"),
        (4, "a jump leaves these statements, and what follows them depends on it: write if"),
    ],
)
def test_transform_refuses_what_the_text_cannot_say(loop: int, why: str, tmp_path: Path) -> None:
    """A loop of another function, and one after which a flag decides."""
    (tmp_path / "f.c").write_text(LEFT)
    with pytest.raises(UnsupportedError, match=why):
        transform(tmp_path / "f.c", [f"loop {loop}: unroll 2"])
