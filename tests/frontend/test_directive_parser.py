"""Directive and hmpp text: every spelling that occurs in published files, and the places of the parts."""

from __future__ import annotations

import pytest

from looptune.core.errors import ParseError
from looptune.core.source import Span
from looptune.frontend import hmpp, load
from looptune.frontend.directive_parser import parse
from looptune.frontend.pragma import SourceText, classify
from looptune.ir.nodes import Arg, Directive, Loop
from looptune.ir.rewrite import walk

SPELLINGS = [
    ("unroll 4, split, guarded", "unroll", (Arg("", (4,)), Arg("split"), Arg("guarded"))),
    ("unroll(8), jam", "unroll", (Arg("", (8,)), Arg("jam"))),
    ("UNROLL 2, NoJam", "unroll", (Arg("", (2,)), Arg("nojam"))),
    ("unroll jj:3, ii:3, noremainder", "unroll", (Arg("jj", (3,)), Arg("ii", (3,)), Arg("noremainder"))),
    ("unroll -1", "unroll", (Arg("", (-1,)),)),
    ("fullunroll", "fullunroll", ()),
    ("tile i:4", "tile", (Arg("i", (4,)),)),
    ("tile I : 4 ,j:8  ", "tile", (Arg("I", (4,)), Arg("j", (8,)))),
    ("permute i, k, j", "permute", (Arg("i"), Arg("k"), Arg("j"))),
    ("permute (k,i,j)", "permute", (Arg("k"), Arg("i"), Arg("j"))),
    ("parallel", "parallel", ()),
    ("noParallel", "noparallel", ()),
    ("parallel, reduce (min:x)", "parallel", (Arg("reduce", (Arg("min", ("x",)),)),)),
    ("parallel reduce(+:S,T, max:x), private(a,b)", "parallel",
     (Arg("reduce", (Arg("+", ("S", "T")), Arg("max", ("x",)))), Arg("private", ("a", "b")))),
    ("parallel, assume", "parallel", (Arg("assume"),)),
    ("gridify", "gridify", ()),
    ("gridify(k,i), private(a,b), reduce(*:S), blocksize 256x2", "gridify",
     (Arg("k"), Arg("i"), Arg("private", ("a", "b")), Arg("reduce", (Arg("*", ("S",)),)), Arg("blocksize", (256, 2)))),
    ("grid blocksize 32 X 8", "grid", (Arg("blocksize", (32, 8)),)),
    ('grid blocksize "32x8"', "grid", (Arg("blocksize", (32, 8)),)),
    ("grid blocksize 128", "grid", (Arg("blocksize", (128,)),)),
    ("blocksize 8x8x4", "blocksize", (Arg("", (8, 8, 4)),)),
    ("stage A, B", "stage", (Arg("A"), Arg("B"))),
    ("rfactor k:4", "rfactor", (Arg("k", (4,)),)),
    ("inline sizes", "inline", (Arg("sizes"),)),
]  # fmt: skip

REFUSED = [
    ("", "a directive begins with its name, such as unroll"),
    ("unroll 4 split", "expected ',' before 'split'"),
    ("unroll 4,", "an argument is missing after ','"),
    ("permute i,,j", "an argument is missing between two commas"),
    ("tile i:", "an argument is missing after ':'"),
    ("gridify(k", "missing ')'"),
    (
        "unroll {1,2}",
        "unexpected '{' in a directive: choices in braces stand in a pragma of the file, or in a space file",
    ),
    ("unroll 4x", "unexpected '4' in a directive"),
    ("tile i:(4)", "expected an argument before '('"),
]


@pytest.mark.parametrize(("text", "name", "args"), SPELLINGS, ids=[t for t, _, _ in SPELLINGS])
def test_spelling(text: str, name: str, args: tuple[Arg, ...]) -> None:
    """A spelling of a published file is read as its name and arguments."""
    assert parse(text, Span("a.c", 1, 1)) == Directive(name, args)


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[t for t, _ in REFUSED])
def test_bad_directive(text: str, message: str) -> None:
    """A malformed directive is a ParseError that says what is wrong."""
    with pytest.raises(ParseError) as error:
        parse(text, Span("a.c", 1, 1))
    assert error.value.message == message


def test_places() -> None:
    """The directive's span covers its text, each argument's its own words."""
    line = "  #pragma hmppcg tile i:4,  reduce(+:S)"
    found = parse("tile i:4,  reduce(+:S)", Span("a.c", 3, 18, 1, line))
    assert [_words(s) for s in (found.span, *(a.span for a in found.args))] == [
        "tile i:4,  reduce(+:S)", "i:4", "reduce(+:S)",
    ]  # fmt: skip


def _words(span: Span) -> str:
    return span.text[span.col - 1 : span.col - 1 + span.width]


def directives(pragmas: str, before: str = "") -> list[Directive]:
    text = f"{before}\nvoid f(int n, double *x) {{\n{pragmas}\n  for (int i = 0; i < n; i++) x[i] = 1;\n}}\n"
    return [d for n in walk(load(text).codelet.body) if isinstance(n, Loop) for d in n.directives]


@pytest.mark.parametrize(
    "pragmas",
    [
        "#pragma hmppcg unroll 4, split, guarded",
        "  # pragma   HMPPCG  Unroll 4 ,Split, guarded  \t",
        "#pragma looptune unroll(4), split, guarded // why",
        "#pragma hmppcg unroll 4, /* why */ split, guarded",
        "#pragma hmppcg unroll 4, &\n#pragma hmppcg & split, guarded",
        "#pragma hmppcg unroll 4, split,&\n\n/* and */\n  #pragma hmppcg &guarded",
        "#pragma hmppcg unroll 4, split &\n#pragma hmppcg & guarded",
        "#pragma hmppcg unroll 4, \\\n  split, guarded",
        "#pragma omp parallel for\n#pragma hmppcg unroll U, split, guarded\n\n#pragma ivdep",
        '_Pragma("hmppcg unroll 4, split, guarded")',
    ],
)
def test_the_same_directive_however_it_is_laid_out(pragmas: str) -> None:
    """Case, blanks, comments, continuations and macros change nothing."""
    assert directives(pragmas, "#define U 4") == [
        Directive("unroll", (Arg("", (4,)), Arg("split"), Arg("guarded"))),
    ]  # fmt: skip


def test_a_continuation_inside_parentheses() -> None:
    """A list may be broken after its comma."""
    found = directives("#pragma hmppcg gridify(i), private(a, &\n#pragma hmppcg & b)")
    assert found == [Directive("gridify", (Arg("i"), Arg("private", ("a", "b"))))]


def test_a_macro_may_be_a_block_size() -> None:
    """A size behind a macro is read as the size."""
    assert directives("#pragma hmppcg grid blocksize BX x BY", "#define BX 32\n#define BY (8)") == [
        Directive("grid", (Arg("blocksize", (32, 8)),)),
    ]  # fmt: skip


def test_targets_are_kept_and_filtered() -> None:
    """A target prefix stays on the directive; a directive for another target goes when one is asked for."""
    text = (
        "void f(int n, double *x) {\n#pragma hmppcg(CUDA) unroll 2\n#pragma hmppcg (OpenCL) unroll 4\n"
        "#pragma hmppcg unroll 8\n  for (int i = 0; i < n; i++) x[i] = 1;\n}\n"
    )
    (loop,) = load(text).codelet.body
    assert isinstance(loop, Loop)
    assert [d.target for d in loop.directives] == ["CUDA", "OpenCL", None]
    (loop,) = load(text, target="cuda").codelet.body
    assert isinstance(loop, Loop)
    assert [d.args[0].values for d in loop.directives] == [(2,), (8,)]


def test_a_pragma_waits_for_the_next_loop_of_its_block() -> None:
    """Statements and braces may stand between a pragma and its loop."""
    text = """
void f(int n, double *x) {
#pragma hmppcg grid blocksize 8x8
  x[0] = 2;
  {
#pragma hmppcg parallel
    for (int i = 0; i < n; i++) x[i] = 1;
  }
}
"""
    found = [d.name for n in walk(load(text).codelet.body) if isinstance(n, Loop) for d in n.directives]
    assert found == ["grid", "parallel"]


def read_hmpp(text: str) -> hmpp.Hmpp:
    return hmpp.parse(classify(SourceText.at(text, Span("a.c", 1, 9, 1, "#pragma " + text))))


@pytest.mark.parametrize(
    ("text", "verb", "label", "group"),
    [
        ("hmpp gemm codelet, target=CUDA:OPENCL, args[C].io=inout", "codelet", "gemm", ""),
        ("hmpp <g> gemm codelet", "codelet", "gemm", "g"),
        ("hmpp <g> allocate", "allocate", "", "g"),
        ("hmpp codelet allocate, args[m;n]", "allocate", "codelet", ""),
        ("hmpp f callsite, args[*].advancedload=true, asynchronous", "callsite", "f", ""),
        ('hmpp f advancedload, args[a].hostdata="A[0,1]", cond="x > 1"', "advancedload", "f", ""),
        ("hmpp <g> map, args[l1::c, l2::c]", "map", "", "g"),
    ],
)
def test_hmpp_line(text: str, verb: str, label: str, group: str) -> None:
    """Verb, label and group are told apart in every order that occurs."""
    found = read_hmpp(text)
    assert (found.verb, found.label, found.group) == (verb, label, group)


def test_hmpp_arguments() -> None:
    """A clause covers parameters by name, by position, by range and all of them; a name counts more than a star."""
    found = read_hmpp("hmpp f codelet, args[*].io=in, args[A;B].io=out, args[3-4].io=inout, args[A].size={n,m}").clauses
    assert [hmpp.io_of(found, k, name) for k, name in enumerate("xABcd")] == ["in", "out", "out", "inout", "inout"]
    assert hmpp.size_of(found, 1, "A") == ("n", "m")
    assert hmpp.size_of(found, 0, "x") == ()
