"""Functions with assembly or computed jumps of GNU C: their nests are analysed, with all that these may change."""

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
from tests.helpers.against_gcc import difference
from tests.helpers.command_line import looptune


def reads(text: str) -> str:
    """What pycparser reads in place of a text."""
    words = [token.text for token in preprocess(text, "a.c", {}, ()).tokens]
    other = replaced_tokens(words)
    lexer = CLexer(lambda *_: None)
    lexer.input(" ".join(other.get(k, word) for k, word in enumerate(words)))
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
        ("k = va_arg(f(x, 1), int *) + va_arg(v, struct s).n;",
         "k = ( * ( int * * ) va_arg ( ( f ( x , 1 ) ) ) ) + ( * ( struct s * ) va_arg ( ( v ) ) ) . n ;"),
        ("__alignof__(int) + __builtin_offsetof(struct s, n);", "_Alignof ( int ) + offsetof ( struct s , n ) ;"),
        ("__auto_type x = a[i] + (b, c); y = x;",
         "struct { char looptune_typeof [ sizeof ( a [ i ] + ( b , c ) ) ] ; } x = a [ i ] + ( b , c ) ; y = x ;"),
        ("__auto_type x = ({ __auto_type y = a; y; });",
         "struct { char looptune_typeof [ sizeof ( ( { struct { char looptune_typeof [ sizeof ( a ) ] ; } y = a ; y ;"
         " } ) ) ] ; } x = ( { struct { char looptune_typeof [ sizeof ( a ) ] ; } y = a ; y ; } ) ;"),
        ("struct s p = {x: 1, y: {c ? a : b, 2}}, q[] = {[0] = {x: 3}};",
         "struct s p = { . x = 1 , . y = { c ? a : b , 2 } } , q [ ] = { [ 0 ] = { . x = 3 } } ;"),
        ("p = (struct s){x: 1}; if (c) { a: b = 1; } { d: x = 2; }",
         "p = ( struct s ) { . x = 1 } ; if ( c ) { a : b = 1 ; } { d : x = 2 ; }"),
        ("struct { int a : 3, b : 2; } z; switch (c) { case 1: f(x, y); default: g(); }",
         "struct { int a : 3 , b : 2 ; } z ; switch ( c ) { case 1 : f ( x , y ) ; default : g ( ) ; }"),
        ("g(va_arg(v, int (*)(void)));", "g ( va_arg ( v , int ( * ) ( void ) ) ) ;"),
        ("a: goto *(c ? p : &&a);", "a : { jump ( ( c ? p : label ( a ) ) ) ; goto anywhere ; }"),
        ("a: p = (void *) &&a + t[1]; return &&a;", "a : p = ( void * ) label ( a ) + t [ 1 ] ; return label ( a ) ;"),
        ("(f)(x) &&a; t[i] &&(c) &&'c' &&n; 1. &&n;", "( f ) ( x ) && a ; t [ i ] && ( c ) && 'c' && n ; 1. && n ;"),
    ],
)  # fmt: skip
def test_what_is_read_is_c(text: str, want: str) -> None:
    assert reads(f"void h(void) {{ {text} }}").removeprefix("void h ( void ) { ").removesuffix(" }") == want


PROGRAMS = {
    "types of values": """
#define MAX(a, b) ({ __auto_type _a = (a); __auto_type _b = (b); _a > _b ? _a : _b; })
void f(int n, const double x[n], double y[n], const signed char c[n]) {
  for (__auto_type i = 0; i < n; i++) {
    __auto_type s = c[i]; const __auto_type u = c[i] + 250u; __auto_type p = &x[i];
    s += 120; y[i] = MAX(MAX(*p, 0.5), c[i]) + MAX(c[i], c[0] * 100) + s + (u > 260);
  }
}""",
    "named fields": """
struct p { float a; double b; int c[2]; };
void f(int n, const double x[n], double y[n]) {
  struct p k = {b: 5, a: n > 3 ? 1 : 2};
  for (int i = 0; i < n; i++) {
    struct p q = (struct p){a: x[i], b: 2, c: {1, 2}};
    __auto_type r = q; r.b++; y[i] = q.a * q.b + q.c[1] + k.b + k.a + r.b;
  }
}""",
    "one number": """
#include <string.h>
struct p { float a; double b; };
void f(int n, const double x[n], double y[n]) {
  for (int i = 0; i < n; i++) {
    double v; struct p q = {1, 2};
    memcpy(&v, &x[i], sizeof v); memcpy(&q.b, &v, 8); memcpy(&y[i], &q.b, sizeof(double)); y[i] += v;
    memcpy(&v, x + i, sizeof(double)); memcpy(y, &v, sizeof *y); memcpy(y + i, &v, 8);
  }
}""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_the_result_is_that_of_gcc(text: str, tmp_path: Path) -> None:
    assert difference(f"{text}\n", {"n": 9}, tmp_path) is None


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


JUMPS = """#include <stdio.h>
static int jump(int n) { void *p = &&a; goto *p; a: return n; }
int run(int n, double *x, const char *code) {
  static void *const table[] = { &&add, &&twice, &&end };
  void *at = (void *) &&end;
  int pc = 0, k = 5;
  double *p = x;
  if (k && n) goto *table[code[pc] % 3]; else goto *at;
add:
  for (int i = 0; i < n; i++) x[i] += k;
  k++;
  goto *table[code[++pc] % 3];
twice:
  for (int i = 0; i < k; i++) p[i] *= 2;
  p = x + 1;
  goto *table[code[++pc] % 3];
  for (int i = 0; i < n; i++) { if (x[i] < 0) goto *at; x[i] = 0; }
  for (int i = 0; i < n; i++) { x[i] = 0; inside: x[i]++; }
  for (int i = 0; i < n; i++) x[i] = jump(i);
  at = &&inside;
end:
  for (int i = 0; i < n; i++) x[i] -= 1;
  return k;
}
int main(void) {
  double x[30];
  for (int i = 0; i < 30; i++) x[i] = i % 7;
  printf("%d\\n", run(30, x, "001011102"));
  for (int i = 0; i < 30; i++) printf("%g ", x[i]);
  return 0;
}
"""


def test_arguments_without_a_name_are_read() -> None:
    """Nothing is known of their values, and they are read in the order of the text."""
    text = """#include <stdarg.h>
    double f(int n, double *x, ...) {
      va_list ap; va_start(ap, x);
      int k = va_arg(ap, int);
      for (int i = 0; i < k; i++) x[i] = 1;
      for (int i = 0; i < n; i++) x[i] = va_arg(ap, double);
      va_end(ap);
    }"""
    assert {p.name for p in load(text, kernel="f:5").codelet.params} == {"x", "k"}
    with pytest.raises(UnsupportedError, match="ap, of type va_list, is not accepted"):
        load(text, kernel="f:6")


def test_variables_around_a_computed_goto_have_any_of_their_values() -> None:
    params = [{p.name for p in load(JUMPS, kernel=f"run:{line}").codelet.params} for line in (10, 14, 22)]
    assert params == [{"n", "x", "k"}, {"p", "k"}, {"n", "x"}]
    with pytest.raises(UnsupportedError, match="a goto leads to inside from outside of this block"):
        load(JUMPS, kernel="run:18")
    for kernel in ("run:17", "run:19", "run"):
        with pytest.raises(UnsupportedError, match="a computed goto is not supported: write a switch instead"):
            load(JUMPS, kernel=kernel)


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
@pytest.mark.parametrize(
    ("text", "nests"), [(PROGRAM, ["main:7", "main:12", "main:13", "main:16"]), (JUMPS, ["run:10", "run:14", "run:22"])]
)
def test_programs_compute_what_gcc_computes(text: str, nests: list[str], tmp_path: Path) -> None:
    source, plain, made = tmp_path / "a.c", tmp_path / "plain", tmp_path / "made"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", source, "-o", plain], check=True)
    kernels = [word for nest in nests for word in ("--kernel", nest)]
    done = looptune("cc", source, "-O1", "-o", made, "--arch", "none", *kernels, cwd=tmp_path)
    assert done.code == 0, done.err
    want, got = (subprocess.run([path], check=True, capture_output=True).stdout for path in (plain, made))
    assert got == want
