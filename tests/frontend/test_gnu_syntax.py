"""Functions with assembly of GNU C: their nests are analysed, and what the assembly may change is not known."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from pycparser.c_lexer import CLexer

from looptune.core.errors import LooptuneError, UnsupportedError
from looptune.frontend import load
from looptune.frontend.gnu_syntax import replaced_tokens
from looptune.frontend.preprocess import preprocess
from looptune.frontend.survey import survey
from tests.helpers.command_line import looptune


def reads(text: str) -> str:
    """What pycparser reads in place of a text."""
    tokens = preprocess(text, "a.c", {}, ()).tokens
    other = replaced_tokens(tokens)
    lexer = CLexer(lambda *_: None)
    lexer.input(" ".join(other.get(k, token.text) for k, token in enumerate(tokens)))
    return " ".join(token.value for token in iter(lexer.token, None)).replace("__looptune_", "")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('asm("nop");', "volatile_asm ( ) ;"),
        ('if (c) __asm__ __volatile__ ("a" "b" : [x] "=r" (x), "+m"(*(long (*)[4]) p) : "r"(f(x)) : "cc", "memory");',
         "if ( c ) volatile_asm ( & ( x ) , & ( * ( long ( * ) [ 4 ] ) p ) , ( f ( x ) ) ) ;"),
        ('else asm("neg %0" : "=r"(x[i]) : "0"(y ? 1 : 2), "i" (3));',
         "else asm ( & ( x [ i ] ) , ( y ? 1 : 2 ) , ( 3 ) ) ;"),
        ('l: asm goto ("" : : [n] "r"(n) : "cc" : a, b);',
         "l : { if ( volatile_asm ( ( n ) ) ) goto a ; else if ( volatile_asm ( ) ) goto b ; }"),
        ('int f(int) asm("g");', 'int f ( int ) asm ( "g" ) ;'),
        ('register int a asm("r8") = 1;', 'register int a asm ( "r8" ) = 1 ;'),
        ("asm(x);", "asm ( x ) ;"),
    ],
)  # fmt: skip
def test_assembly_is_read_as_a_call(text: str, want: str) -> None:
    assert reads(f"void h(void) {{ {text} }}").removeprefix("void h ( void ) { ").removesuffix(" }") == want


TEXT = """int size = 50;
static inline void relax(void) { __asm__ __volatile__ ("nop" : : : "memory"); }
static int swapped(int x) { int r; asm ("bswap %0" : "=r"(r) : "0"(x)); return r; }
int f(double *x, double *y) {
  int n = 50, k = size, m, s = 0;
  double *p = y, *q = y;
  asm ("" : "+r"(n), "=r"(m) : [in] "r" (k + 1) : "cc");
  asm ("" : "+r" (p) : : );
  asm ("mov %1, %0" : "=r" (q) : "r"(x));
  for (int i = 0; i < n; i++) x[i] = 1;
  for (int i = 0; i < k; i++) x[i] = x[i + m];
  for (int i = 0; i < k; i++) p[i] = x[i + 1];
  for (int i = 0; i < k; i++) q[i] = x[i + 1];
  for (int i = 0; i < k; i++) s += x[i] > 0;
  if (k > 5) asm goto ("" : : "r"(n) : "cc" : out); else asm volatile ("" ::: "memory");
  s = 0;
  for (int i = 0; i < k; i++) { asm volatile ("nop" : "=m"(x[i])); x[i] = 2; }
  for (int i = 0; i < k; i++) { asm ("neg %0" : "+r"(m)); x[i] = m; }
  for (int i = 0; i < k; i++) { relax(); x[i] = 2; }
  for (int i = 0; i < k; i++) { x[i] = swapped(i); }
out:
  for (int i = 0; i < size; i++) y[i] = x[i];
  return s;
}
"""


def test_what_assembly_may_change_is_not_known() -> None:
    """Neither what its outputs are, nor the file's variables, nor where it jumps."""

    def of(line: int) -> set[str]:
        return {p.name for p in load(TEXT, kernel=f"f:{line}").codelet.params}

    assert [of(line) for line in (10, 11, 12)] == [{"x", "n"}, {"x", "k", "m"}, {"x", "p", "k"}]
    with pytest.raises(UnsupportedError, match="q, which may lead to the same memory as x"):
        of(13)
    assert of(14) == {"x", "k", "s"}  # s may be read at out


def test_nests_with_assembly_are_refused_and_the_others_analysed(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text(TEXT)
    found = survey(path)
    assert not found.skipped
    refused = {n.span.line: n for n in found.nests if n.codelet is None}
    assert {line: n.order and n.order.why for line, n in refused.items()} == {
        17: "call",
        18: None,
        19: "call",
        20: None,
    }
    assert {n.refusal.message for n in refused.values() if n.refusal} == {
        "inline assembly is not supported: write C instead"
    }
    with pytest.raises(LooptuneError, match="inline assembly is not supported") as caught:
        load(TEXT, kernel="f")
    assert caught.value.span.line == 7


PROGRAM = """#include <stdio.h>
int size = 100;
static void other_size(void) { asm volatile ("movl $90, %0" : "=m"(size)); }
int main(void) {
  double x[200], y[200], *p = y;
  int n = 50, k = size;
  for (int i = 0; i < 200; i++) x[i] = y[i] = i % 17;
  asm ("addl $20, %0" : "+r"(n));
  asm ("mov %1, %0" : "=r" (p) : "r"(x));
  other_size();
  if (n < 5) asm goto ("jmp %l0" : : : "memory" : out);
  for (int i = 0; i < n; i++) p[i] = 2 * p[i] + 1;
  for (int i = 0; i < size; i++) y[i] += x[i] * k;
  asm volatile ("" : : "r"(x) : "memory");
out:
  for (int i = 0; i < k; i++) y[i] += x[i];
  for (int i = 0; i < 200; i++) printf("%g %g\\n", x[i], y[i]);
  return 0;
}
"""


@pytest.mark.wide
@pytest.mark.skipif(platform.machine() != "x86_64", reason="its assembly is that of another processor")
def test_a_program_with_assembly_computes_what_gcc_computes(tmp_path: Path) -> None:
    source, plain, made = tmp_path / "a.c", tmp_path / "plain", tmp_path / "made"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", source, "-o", plain], check=True)
    kernels = [word for line in (7, 12, 13, 16) for word in ("--kernel", f"main:{line}")]
    done = looptune("cc", source, "-O1", "-o", made, "--arch", "none", *kernels, cwd=tmp_path)
    assert done.code == 0, done.err
    want, got = (subprocess.run([path], check=True, capture_output=True).stdout for path in (plain, made))
    assert got == want
