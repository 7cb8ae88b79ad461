"""What the preprocessor makes of the text is what gcc makes of it: joined lines, predefined macros, headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from looptune.core.cache_file import LARGEST
from looptune.core.errors import ParseError, UsageError
from looptune.frontend import load
from looptune.frontend.logical_lines import splice_lines
from looptune.frontend.predefined_macros import fixed, predefined
from tests.helpers import cross_check

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

TEXTS = {
    "lines that #line numbers": """
#define HERE(x) ((x) * 2 + __LINE__)
#if 0
#line 900
#endif
void f(int n, int a[n]) {
  for (int i = 0; i < n; i++) a[i] = __LINE__ + HERE(__LINE__);
#line 30
  for (int i = 0; i < n; i++) a[i] += __LINE__ * 1000;
# 50 "grammar.y"
  for (int i = 0; i < n; i++)
    a[i] += HERE(3) * 100000;
}""",
    "a comment that ends in a backslash": r"""
void f(int n, int a[n]) {
  // C:\data\
  a[0] = 7;
  // and \
  a[0] = 8; \
  a[0] = 9;
  /* not here \
  */ a[1] = 3;
  for (int i = 2; i < n; i++) a[i] += 1; // end \
  a[0] = 10;
}
""",
    "joined tokens, directives, pragmas and macros": r"""
#def\
ine LO\
NG(x) ((x) \
  + 10)
void f(int n, int a[restrict n]) {
  #pra\
gma hmp\
pcg unr\
oll 2
  f\
or (int i = 0; i < n; i+\
+) a[i] = LO\
NG(i) + 1\
2;
}
""",
    "digraphs, and none in strings, characters and trigraphs": """
%:define TWO 2
const char *s = "<: ??) %>";
void f(int n, int a<:restrict n:>) <% for (int i = 0; i < n; i++) a<:i:> = TWO * i + 7 %3; %>
""",
    "numbers with letters that are macros": """
#define E 2
#define e 3
#define f 4
#define p 5
#define u 6
#define L 7
#define b1 8
void g(int n, int a[restrict n]) {
  for (int i = 0; i < n; i++) a[i] = 1E2 + 1.5e+1 + 3.f + .5E1 + 0x1.8p3 + 1.E-1 * 40 + 0b11 + 5u + 7L - 0x1f+i;
}
""",
    "what every compiler defines": """
#if __STDC_VERSION__ >= 199901L && __SIZEOF_LONG__ == 8 && defined __GNUC__ && __CHAR_BIT__ == 8
#define K 1
#else
#define K 2
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && 0x7fffffffffffffffLL == __LONG_LONG_MAX__ && 5ULL > 4LLU
#define J 10
#else
#define J 20
#endif
void f(int n, long a[n]) { for (int i = 0; i < n; i++) a[i] = K + J + (long)__INT_MAX__ + (__SIZE_TYPE__)i; }
""",
    "questions about headers and attributes": """
#if __has_include(<math.h>) && defined(__has_include) && !__has_include("no such header.h")
#define K 1
#else
#define K 2
#endif
#ifdef __has_attribute
#if __has_attribute(always_inline)
#define INLINE __attribute__((always_inline)) inline
#endif
#endif
#ifndef INLINE
#define INLINE
#endif
static INLINE int twice(int x) { return 2 * x; }
int other(const char *) __asm__("puts");
void f(int n, int a[n]) { for (int i = 0; i < n; i++) a[i] = __builtin_expect(twice(i) + K, 3); }
""",
}


@needs_gcc
@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_read_as_gcc_reads_it(name: str, tmp_path: Path) -> None:
    """The interpreted codelet leaves what the function leaves that gcc compiles."""
    codelet = load(TEXTS[name]).codelet
    given = cross_check.arguments(codelet, {"n": 7})
    assert (
        cross_check.off(
            cross_check.by_gcc(TEXTS[name], codelet, given, tmp_path), cross_check.interpreted(codelet, given)
        )
        is None
    )


def test_joined_lines_keep_their_places() -> None:
    """A span after a joined line points at the line of the file."""
    text = "void f(int n, int a[n]) { // x \\\n y\n  for (int i = 0; i < n; i++) \\\n    a[i] = z;\n}\n"
    with pytest.raises(ParseError, match="z is not declared") as refused:
        load(text)
    assert (refused.value.span.line, refused.value.span.col) == (4, 12)
    line = splice_lines("a\\\nb\nc")
    assert (line.text, [line.offset(k) for k in range(4)]) == ("ab\n\nc", [0, 3, 4, 5])


@needs_gcc
def test_the_fixed_macros_are_the_compilers(tmp_path: Path) -> None:
    """What is assumed without a compiler differs in nothing from gcc but versions and spellings."""
    asked = predefined()
    differing = {
        n: (v, asked[n]) for n, v in fixed().items() if n in asked and asked[n].rstrip("LUF") != v.rstrip("LUF")
    }
    assert all(any(word in n for word in ("GNUC", "VERSION", "DBL", "FLT", "TYPE__")) for n in differing), differing


def test_without_a_compiler_there_is_a_fixed_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that asks for the standard and for sizes is read alike where there is no cc."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert predefined() == fixed()
    codelet = load(TEXTS["what every compiler defines"]).codelet
    assert cross_check.interpreted(codelet, cross_check.arguments(codelet, {"n": 2}))["a"].tolist() == [
        2**31 + 10,
        2**31 + 11,
    ]


def test_a_compiler_that_says_nothing_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cc that fails, or that is no compiler, leaves the fixed set."""
    wrong = tmp_path / "cc"
    wrong.write_text("#!/bin/sh\nexit 3\n")
    wrong.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(wrong))
    assert predefined() == fixed()


def test_devices_and_huge_files_are_not_read(tmp_path: Path) -> None:
    """Neither as the file nor as a header; the message names it and the line."""
    with pytest.raises(UsageError, match="/dev/zero is a device"):
        load("/dev/zero")
    with pytest.raises(ParseError, match="/dev/zero is a device") as refused:
        load('\n#include "/dev/zero"\nvoid f(int n, int a[n]) { for (int i = 0; i < n; i++) a[i] = 1; }\n')
    assert refused.value.span.line == 2
    with (tmp_path / "large.c").open("w") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(UsageError, match=r"large\.c: it has more than 67,108,864 bytes"):
        load(tmp_path / "large.c")


@needs_gcc
def test_headers_of_the_system_can_be_read() -> None:
    """With their folder given, the declarations of glibc and gcc stop nothing."""
    folder = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True)
    text = (
        "#include <limits.h>\n#include <stdint.h>\nvoid f(int64_t a[3]) { for (int i = 0; i < 3; i++) a[i] = INT_MAX; }"
    )
    folders = [p for p in (folder.stdout.strip(), "/usr/include", "/usr/include/x86_64-linux-gnu") if Path(p).is_dir()]
    codelet = load(text, include_dirs=folders).codelet
    assert cross_check.interpreted(codelet, cross_check.arguments(codelet, {}))["a"].tolist() == [2**31 - 1] * 3


def test_a_header_is_read_again_after_its_guard_is_undefined(tmp_path: Path) -> None:
    """As gcc does: pcpp skips a header that has a guard, once it has been read."""
    (tmp_path / "proto.h").write_text("#ifndef PROTO_H\n#define PROTO_H\n#define TAKES(a, b) (a, b)\n#endif\n")
    (tmp_path / "unproto.h").write_text("#undef PROTO_H\n#undef TAKES\n")
    text = """#include "proto.h"
#include "unproto.h"
#include "proto.h"
void f TAKES(int n, int *a) { for (int i = 0; i < n; i++) a[i] = i; }
"""
    assert [p.name for p in load(text, include_dirs=[tmp_path]).codelet.params] == ["n", "a"]
