"""``transform`` changes the loops that it was asked to change and not a byte elsewhere; what it gives compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from looptune.backends import openmp
from looptune.core.errors import LooptuneError
from looptune.deploy.source_to_source import encode, transform
from looptune.frontend import load
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.expand_cases import CASES
from tests.helpers.paths import ROOT

FILES = sorted([*ROOT.glob("polybench/*.c"), *ROOT.glob("gatlas/*.c")])
gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

EVERYTHING = """#include <stdio.h>
#define N 50 /* fifty */
double A[N][N], B[N], C[N];
#define SQ(x) ((x)*(x))
#define FOR(i, n) for (int i = 0; i < (n); i++)
static int f(const int n, register double s)
{
\tdouble t, u = 2;\t// tabs
\tint i, j;
\tif (n < 0) return 1;   /* early */
#define LOCAL(x) ((x) + 1)
\tfor (i = 0; i < n; i++) {\t/* outer */
\t\tt = s * i; // kept
\t\tfor (j = 0; j < n; j++)
\t\t\tA[i][j] = t * SQ(j) + u;
#undef SQ
#define SQ(x) ((x)*(x)*(x))
\t\tB[i] += t;
\t}
\tFOR(k, n) C[k] = LOCAL(B[k]) + SQ(k) + i + j;
\treturn 0;
}
int main(void) {
  int r = f(N, 1.5) + f(-1, 2);
  double s = 0;
  for (int i = 0; i < N; i++) { s += B[i] * i + C[i]; for (int j = 0; j < N; j++) s += A[i][j] * (i - j); }
  printf("%d %.17g %d\\n", r, s, (int)SQ(2));
  return 0;
}"""
BRACES = """#include <stdio.h>
#define BEGIN {
#define END }
#define TWICE(v) v; v
#define EMPTY
int a[40], b[40];
void f(int n) BEGIN
  int s = 0, m = n - 1, t;
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (int i = 0; i < n; i++) { a[i] = i * 3; b[i] = 1; }
  if (n > 3)
    for (int i = 1; i < m; i++) b[i] = a[i] + s;
  else
    b[0] = 7;
#if 1
  for (int i = 0; i < n; i++)
#else
  for (int i = 0; i < 2 * n; i++)
#endif
    s += b[i];
  int k;
  for (k = 0; k < n; k++) { int q = a[k]; EMPTY TWICE(b[k] += q + s); }
  { int t = 5; for (int i = m; i >= 0; i -= 3) a[i] += t; }
  for (int i = 0; i < m; i++) { t = a[i]; b[i] ^= t; }
  for (int i = 0; i < m; i++) { t = b[i]; a[i] |= t; }
  b[0] += k;
END
int main(void) { f(40); int t = 0; for (int i = 0; i < 40; i++) t = t * 31 + a[i] + b[i];
  printf("%d\\n", t); return 0; }
"""
COUNTERS = """#include <stdio.h>
int a[40], i;
static int j;
void f(int n) { for (i = 0; i < n; i++) for (j = 0; j < i; j++) a[i] += j; }
int main(void) { f(30); for (; i < 40; i++) a[i] = 9; int t = j; for (int k = 0; k < 40; k++) t = t * 7 + a[k];
  printf("%d\\n", t); return 0; }
"""
HEADERS = (
    "for (int i = n - 1; i >= 0; i--)",
    "int i = 7; for (i = n; i > 2; i -= 3)",
    "for (int i = 3; i <= n; i += s)",
    "for (int i = n; s <= i; i -= s)",
    "for (unsigned i = 1; i < u; i++)",
    "for (unsigned i = u; i > 1; i -= 2)",
    "for (unsigned char i = 9; i > 2; i--)",
    "for (short i = 0; i <= n; i += 2)",
    "for (long i = -4; i != n; ++i)",
    "for (int i = 0; i + 2 < n; i++)",
    "for (int i = 1; i < n; i++) for (int i = n; i > 3; i--)",
    "for (int j = n - 1; j > 3; j--) for (int i = j; i >= 1; i -= 2)",
    "for (int k = n - 1; k > 3; k--) for (int i = k; i < n; i += s)",
    "for (int i = n - 1; i > 3; i--) for (int n = i; n > 2; n--)",
)
"""Loops that stay as they are written around one that changes; in the last a parameter is hidden."""
PROGRAMS = {"everything": EVERYTHING, "braces": BRACES, "counters": COUNTERS}
DIRECTIVES = (
    "unroll 2",
    "unroll 3, split",
    "unroll 2, jam",
    "tile 4",
    "distribute",
    "fuse",
    "fullunroll",
    "noParallel",
)


def printed(text: bytes, folder: Path) -> str:
    source = folder / "p.c"
    source.write_bytes(text)
    command = ["gcc", "-w", "-fopenmp", "-O1", "-ffp-contract=off", str(source), "-o", str(folder / "p"), "-lm"]
    subprocess.run(command, check=True, timeout=60)
    return subprocess.run([str(folder / "p")], capture_output=True, text=True, check=True, timeout=60).stdout


def numbers(file: Path, kernel: str | None = None) -> list[int]:
    return [n.number for n in walk(load(file, kernel=kernel).codelet.body) if isinstance(n, Loop)]


@pytest.mark.sampled(8, "wide")
@gcc
@pytest.mark.sampled(2)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_change_leaves_the_program_as_it_is(name: str, ends: str, tmp_path: Path) -> None:
    """Whatever directive stands at whatever loop, the program prints the same; some are accepted."""
    file = tmp_path / "p.c"
    file.write_bytes(PROGRAMS[name].replace("\n", ends).encode())
    want, made, refused = printed(file.read_bytes(), tmp_path), dict[str, bytes](), list[str]()
    for k, number in enumerate(numbers(file, "f")):
        # each directive somewhere, and several at each loop
        for directive in DIRECTIVES[k % 2 :: 2]:
            line = f"loop {number}: {directive}"
            try:
                made[line] = encode(file, transform(file, [line], kernel="f"))
            except LooptuneError as error:
                refused.append(error.message)
    assert not [message for message in refused if "written back" in message]
    changed = {line: text for line, text in made.items() if text != file.read_bytes()}
    assert len(changed) >= 3
    for line, text in list(changed.items())[:: 1 if ends == "\n" else 4]:
        assert printed(text, tmp_path) == want, line


@pytest.mark.wide
@gcc
@pytest.mark.parametrize("directive", ["unroll 2", "tile 4"])
def test_what_changes_speaks_of_the_loops_around_as_the_text_does(directive: str, tmp_path: Path) -> None:
    """An inner loop may change while those around it keep headers that count down, by a variable or in other types."""
    file, inner = tmp_path / "p.c", "for (int l = 0; l < i % 5 + 6; l++) a[l] = a[l] * 3u + i * l + n;"
    functions = [f"void f{k}(int n, int s, unsigned u) {{\n  {h}\n    {inner}\n}}\n" for k, h in enumerate(HEADERS)]
    calls = "".join(f"f{k}(17, 3, 12); " for k in range(len(HEADERS)))
    report = 'for (int k = 0; k < 16; k++) printf("%u\\n", a[k]);'
    file.write_text(
        "#include <stdio.h>\nunsigned a[16];\n" + "".join(functions) + f"int main(void) {{ {calls}{report} }}"
    )
    want = printed(file.read_bytes(), tmp_path)
    for k, header in enumerate(HEADERS):
        number = max(numbers(file, f"f{k}"))
        text = transform(file, [f"loop {number}: {directive}"], kernel=f"f{k}")
        kept = header.rpartition("for")[2]
        assert kept in text or k in (10, 13), f"{header} stays as it is written"
        file.write_text(text)
    assert printed(file.read_bytes(), tmp_path) == want


def test_what_stands_around_the_loop_is_kept(tmp_path: Path) -> None:
    """What stands before the loop and after it is as in the file: tabs, comments, line ends or none at the last."""
    for text in (EVERYTHING, EVERYTHING.replace("\n", "\r\n"), "\ufeff" + EVERYTHING, EVERYTHING + "// \xe9\n"):
        coding = "latin-1" if "\xe9" in text else "utf-8"
        file = tmp_path / "p.c"
        file.write_bytes(text.encode(coding))
        assert encode(file, transform(file, kernel="f")) == file.read_bytes()
        done = encode(file, transform(file, ["loop j: tile 8"], kernel="f")).decode(coding)
        loop = re.search(r"for \(j = 0.*?\+ u;", text, re.DOTALL)
        assert loop is not None
        opens = text[: loop.start()].removeprefix("\ufeff")
        end = "\r\n" if "\r\n" in text else "\n"
        head = f"/* looptune transform{end}   loop j: tile 8{end}*/{end}"
        assert done.removeprefix("\ufeff").startswith(head + opens)
        assert done.startswith("\ufeff") == text.startswith("\ufeff")
        assert done.endswith(text[loop.end() :])


def test_definitions_inside_a_changed_loop_stay(tmp_path: Path) -> None:
    """``#define`` and ``#undef`` in the replaced text come after it, in their order."""
    file = tmp_path / "p.c"
    file.write_text(EVERYTHING)
    done = transform(file, ["loop i: unroll 2"], kernel="f")
    kept = [line for line in done.splitlines() if line.startswith("#") and "pragma" not in line]
    assert kept == [line for line in EVERYTHING.splitlines() if line.startswith("#")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int w = 3;\n#define w w + 1\nvoid f(int n, int *a) { for (int i = 0; i < n; i++) a[i] = 2 * w; }\n",
         "a macro too"),
        ("#define K(f, op) void f(int n, int *a) { for (int i = 0; i < n; i++) a[i] op 2; }\nK(f, +=)\n", "macro K"),
        ("#define LOOP for (int i = 0; i < n; i++) x[0] += i; for (int j = 0; j < n; j++) a[j] = x[0]\n"
         "void f(int n, int *a, int *x) { LOOP; }\n", "macro LOOP"),
        ("int f(int n, int *a) {\n  for (int i = 0; i < n; i++) a[i] = 1;\n  if (n > 5) return 1;\n"
         "  for (int i = 0; i < n; i++) a[i] += 1;\n  return 0;\n}\n", ""),
    ],
    ids=["a variable and a macro", "a function of a macro", "two loops of a macro", "a return between"],
)  # fmt: skip
def test_what_has_no_text_of_its_own_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """With the macro and the place; without a directive there is nothing to write back."""
    file = tmp_path / "p.c"
    file.write_text(text)
    assert transform(file) == text
    if not message:
        assert "return 1;" in transform(file, ["loop 1: unroll 2"])
        return
    with pytest.raises(LooptuneError, match=message) as refused:
        transform(file, ["loop 1: unroll 2"])
    assert refused.value.span.line


HIDING = """
{of_file}
static int h(int i) {{ return w[i % 3]; }}
void f(int n, int *a) {{
  {inside}
  for (int i = 0; i < n; i++) a[i] += h(i);
}}
"""


@pytest.mark.parametrize("of_file", ["static int w[3] = {5, 6, 7};", "static const int w[3] = {5, 6, 7};"])
def test_what_a_variable_of_the_function_hides_is_not_named(of_file: str, tmp_path: Path) -> None:
    """A changed loop that names the file's array is refused where the name means another, and written where not."""
    file = tmp_path / "p.c"
    file.write_text(HIDING.format(of_file=of_file, inside="int w[3] = {n, n, n}; a[0] = w[1];"))
    with pytest.raises(LooptuneError, match="a variable of the function hides"):
        transform(file, ["loop 1: unroll 2"])
    file.write_text(HIDING.format(of_file=of_file, inside=""))
    assert "+= w[(2 * i + 1) % 3];" in transform(file, ["loop 1: unroll 2"])


def test_a_name_given_with_d_has_one_value(tmp_path: Path) -> None:
    """What the text says of it, again and after an ``#undef``, is left out; other names keep theirs."""
    file = tmp_path / "p.c"
    file.write_text("#define N 9\n#undef N\n#define N 8\n#define M N\nvoid f(int a[M]) {\n"
                    "  for (int i = 0; i < N; i++) a[i] = N;\n}\n#undef N\n#define N 7\nint b[N];\n")  # fmt: skip
    assert transform(file, defines={"N": "4"}) == (
        "#define N 4\n#define M N\nvoid f(int a[M]) {\n  for (int i = 0; i < N; i++) a[i] = N;\n}\nint b[N];\n"
    )


@gcc
@pytest.mark.sampled(4)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_input_compiles_after_a_change(file: Path, tmp_path: Path) -> None:
    """PolyBench and GATLAS, each with its first loop unrolled or tiled; only those with directives of their own change
    without."""
    assert transform(file) == file.read_text() or "#pragma hmppcg" in file.read_text()
    for directive in ("unroll 2", "tile 8"):
        text = transform(file, [f"loop 1: {directive}"])
        command = ["gcc", "-w", "-fsyntax-only", "-x", "c", "-I", str(file.parent), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{directive}: {done.stderr}"


FOLD = """void f(int n, int m, float D[n][m], float G[n][n])
{
  #pragma hmppcg fold
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < m; k++)
        G[i][j] += D[i][k] * D[j][k];
}
"""


def test_a_directive_that_was_applied_is_gone(tmp_path: Path) -> None:
    """Its pragma goes with the loops that it changed, though the head of the loop behind it stays: applied once more
    it would change them again."""
    path = tmp_path / "f.c"
    path.write_text(FOLD)
    made = transform(path)
    assert "fold" not in made
    path.write_text(made)
    assert transform(path) == made


@pytest.mark.sampled(3)
@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("name", CASES)
def test_copies_are_declared_around_all_that_use_them(name: str, tmp_path: Path) -> None:
    """What is written computes the same: loops that do not change keep their text, and share the copies with others."""
    text, lines = CASES[name]
    path = tmp_path / "f.c"
    path.write_text(text)
    made = load(transform(path, lines)).codelet
    for sizes in (
        {"n": 7, "m": 9, "nr": 5, "nq": 4, "np": 6, "ts": 3},
        {"n": 1, "m": 1, "nr": 1, "nq": 1, "np": 1, "ts": 0},
    ):
        given = cross_check.arguments(load(text).codelet, sizes)
        want, got = (cross_check.interpreted(c, given) for c in (load(text).codelet, made))
        assert cross_check.off(want, got) is None


LARGE = """
#include <stdio.h>
static double A[1500][2000];
void f(int n, int m, double A[n][m], double row[m])
{
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) row[j] = A[i][j] + i;
    for (int j = 0; j < m; j++) A[i][j] = row[m - 1 - j];
  }
}
int main(void)
{
  double row[2000];
  f(1500, 2000, A, row);
  printf("%g %g", A[1499][7], row[3]);
}
"""


@gcc
def test_large_copies_are_not_on_the_stack(tmp_path: Path) -> None:
    """24 MB of them, where a stack has 8 MB; so is it in the C that ``build --c`` writes."""
    path = tmp_path / "f.c"
    path.write_text(LARGE)
    made = transform(path, ["loop 1: expand row"], kernel="f")
    assert "double (*row_i)[m] = __builtin_malloc" in made
    assert printed(made.encode(), tmp_path) == printed(LARGE.encode(), tmp_path) == "1499 1499"
    unit = load(path, kernel="f")
    text = openmp.text(schedule(Analysis(unit.codelet), parse_lines(["loop 1: expand row"])).codelet)
    main = LARGE[: LARGE.index("void f")] + text + LARGE[LARGE.index("int main") :]
    assert printed(main.encode(), tmp_path) == "1499 1499"


@gcc
def test_a_declaration_among_loops_that_change_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text("""
void f(int m, double E[m], double A[m]) {
  for (int j = 0; j < m; j++) E[j] = 2;
  double u[m];
  for (int j = 0; j < m; j++) u[j] = E[j];
  for (int j = 0; j < m; j++) A[j] = u[j];
}
""")
    made = transform(path, ["loop 1: fuse"])
    assert made.count("double u[m]") == 1
    command = ["gcc", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(command, input=made, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


ALLOCATED = """
void f(int n, int m, double E[m], double A[m]) {{
  double *t = malloc(m * sizeof(double));
  t[0] = 1;
  {}
}}
"""


@pytest.mark.parametrize(
    ("text", "directive", "word"),
    [
        ("for (int j = 0; j < m; j++) E[j] = t[0]; free(t); for (int j = 0; j < m; j++) A[j] = 1;", "fuse", "free"),
        ("for (int i = 0; i < n; i++) { A[i] = t[0]; if (i == n - 1) free(t); }", "unroll 2", "free"),
        ("for (int j = 0; j < m; j++) E[j] = 2; double *u = malloc(m * sizeof *u);"
         " for (int j = 0; j < m; j++) u[j] = E[j]; for (int j = 0; j < m; j++) A[j] = u[j];", "fuse", "malloc"),
    ],
)  # fmt: skip
def test_no_statement_moves_over_memory_that_is_allocated_or_freed(
    text: str, directive: str, word: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.c"
    path.write_text(ALLOCATED.format(text))
    with pytest.raises(LooptuneError, match=f"this {word} stands among the statements"):
        transform(path, [f"loop 1: {directive}"])
