"""What ``looptune check`` says of directives: each is judged, and what it offers in place of one is legal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.frontend import load
from looptune.ir.nodes import Arg, Directive, Loop
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import Alternative
from looptune.schedule.directives.reverse import Reverse
from looptune.schedule.legal_space import legal_space, strip_directives
from tests.helpers import cross_check
from tests.helpers.affine_nests import CODES
from tests.helpers.explanations import ANNOTATED, explained


def test_every_directive_is_judged_and_each_refusal_is_that_of_transform() -> None:
    """The message, place and caret are those that the directive is refused with when it stands alone in the file."""
    found = explained(ANNOTATED)
    assert [d.judgement for d in found.directives] == [
        "refused", "refused", "refused", "proved", "refused", "refused", "asserted", "refused", "refused", "refused",
    ]  # fmt: skip
    for d in (d for d in found.directives if d.judgement == "refused"):
        lines = [x if "#pragma" not in x or k == d.span.line else "" for k, x in enumerate(ANNOTATED.splitlines(), 1)]
        with pytest.raises((DirectiveError, IllegalTransform)) as alone:
            schedule(Analysis(load("\n".join(lines) + "\n").codelet))
        assert str(d.refusal) == str(alone.value)


@pytest.mark.wide
def test_every_suggestion_is_legal() -> None:
    """Written in place of what was refused, it is accepted; and the useful ones are there."""
    found = explained(ANNOTATED)
    offered = [s.text for d in found.directives for s in d.suggestions]
    for text in ("`i, j` is legal, which is the current order", "loop 5 (j) is parallel", "`tile i:4` is legal",
                 "`gridify j` is legal", "`parallel, assume` asserts it", "`i, k, j` is legal",
                 "`unroll 2` is legal", "it is legal with `reduce(+:sum)`"):  # fmt: skip
        assert text in offered, text
    for d in found.directives:
        lines = [x if k != d.span.line else "" for k, x in enumerate(ANNOTATED.splitlines(), 1)]
        codelet = strip_directives(load("\n".join(lines) + "\n").codelet)
        for s in d.suggestions:
            schedule(Analysis(codelet), parse_lines(s.lines))
    (given,) = explained(CODES["trisolv"], "loop i: tile i:3", "loop j: noParallel").directives[:1]
    assert given.judgement == "proved"


def test_any_directive_offers_what_may_be_legal_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a package too; what is not legal is not shown."""

    def alternatives(cls: object, directive: Directive, loop: Loop) -> Iterator[Alternative]:
        yield Alternative(directive)
        yield Alternative(Directive("unroll", (Arg("", (2,)),)), "j", "`unroll 2` of the inner loop is legal")

    monkeypatch.setattr(Reverse, "alternatives", classmethod(alternatives))
    text = "void f(int n, float A[n][n]) {\n  for (int i = 1; i < n; i++)\n    for (int j = 0; j < n; j++)\n"
    found = explained(text + "      A[i][j] = A[i - 1][j];\n}\n", "loop i: reverse").directives
    assert [(s.text, s.lines) for s in found[0].suggestions] == [
        ("`unroll 2` of the inner loop is legal", ("loop 2: unroll 2",))
    ]


def test_a_loop_that_another_directive_has_made_is_refused_without_an_offer() -> None:
    """The text has no such loop, of which something else could be legal."""
    given = explained(CODES["trisolv"], "loop 1: block 4", "loop 3: reverse").directives
    assert [d.judgement for d in given] == ["proved", "refused"]
    assert given[1].suggestions == ()


def test_distribute_is_offered_where_it_helps() -> None:
    """A nest that is imperfect, or whose one statement needs another's value of an earlier iteration."""
    text = """\
void f(int n, int m, int k, float A[n][m], float B[n]) {
  for (int i = 1; i < n; i++) {
    B[i] = A[i - 1][1];
    for (int j = 0; j < k; j++) A[i][j] = 0;
  }
  for (int i = 1; i < n; i++) {
    B[i] = A[i][0];
    A[i][1] = B[i - 1];
  }
}
"""
    found = explained(text, "loop 1: permute j, i", "loop 3: parallel").directives
    assert [[s.text for s in d.suggestions][-1] for d in found] == ["it is legal after `distribute`"] * 2


def test_a_refusal_leaves_the_other_directives_as_they_are() -> None:
    """What is not refused is applied, as if the refused one were not there."""
    found = explained(ANNOTATED)
    kept = [d for d in found.directives if d.judgement != "refused"]
    lines = [x if "#pragma" not in x or k in {d.span.line for d in kept} else ""
             for k, x in enumerate(ANNOTATED.splitlines(), 1)]  # fmt: skip
    alone = explained("\n".join(lines) + "\n")
    assert found.runs.outline == alone.runs.outline


NESTS = {
    "wave": "for (int i = 1; i < n; i++)\n  for (int j = 1; j < m; j++)\n    A[i][j] = A[i - 1][j] + A[i][j - 1];",
    "skew": "for (int i = 1; i < n; i++)\n  for (int j = 0; j < m - 1; j++)\n    A[i][j] = A[i - 1][j + 1];",
    "sum": "for (int i = 0; i < n; i++) {\n  B[i] = 0;\n  for (int j = 0; j < m; j++)\n    B[i] += A[i][j];\n}",
    "far": "for (int i = 2; i < n; i++)\n  for (int j = 0; j < m - 1; j++)\n    A[i][j] = A[i - 2][j + 1];",
    "triangle": "for (int i = 0; i < n; i++)\n  for (int j = 0; j < i; j++)\n    A[i][j] = 0;",
}
EXPECTED = {
    "wave": (["i, j", "j, i"], ["i:T, j:T"]), "skew": ([], []), "sum": (["i, j", "j, i"], []), "far": ([], []),
    "triangle": (["i, j", "j, i"], ["i:T, j:T"]),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTS)
def test_all_that_is_listed_is_legal_and_keeps_the_meaning(name: str) -> None:
    """Each order, and each tiling at several sizes, is accepted and leaves the same bits; a tiling that only some sizes
    allow, as of ``far`` by twos, is not listed."""
    text = f"void f(int n, int m, int A[n][m], int B[n]) {{\n{NESTS[name]}\n}}\n"
    codelet = load(text).codelet
    found = legal_space(Analysis(codelet))
    orders, tilings = EXPECTED[name]
    assert [", ".join(p.order) for p in found.permutations] == orders
    assert [t.line.partition("tile ")[2] for t in found.tilings] == tilings
    given = cross_check.arguments(codelet, {"n": 7, "m": 6})
    want = cross_check.interpreted(codelet, given)
    tiled = [t.line.replace(":T", f":{size}") for t in found.tilings for size in (1, 2, 3, 5)]
    for line in (*(p.line for p in found.permutations), *tiled):
        changed = schedule(Analysis(codelet), parse_lines([line])).codelet
        assert cross_check.off(want, cross_check.interpreted(changed, given)) is None, line


def test_the_marks_of_an_order_are_true() -> None:
    """Outermost and innermost are parallel where the permuted text says so when it is explained itself."""
    text = "void f(int n, float C[n][n], float A[n][n], float B[n][n]) {\n" \
           "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++)\n" \
           "  C[i][j] += A[i][k] * B[k][j];\n}\n"  # fmt: skip
    found = explained(text, everything=True).permitted
    assert found is not None
    assert len(found.permutations) == 6
    assert [t.loops for t in found.tilings] == [("i", "j", "k")]
    for p in found.permutations:
        names = iter(p.order)
        header = " ".join(f"for (int {v} = 0; {v} < n; {v}++)" for v in names)
        again = explained(f"{text.splitlines()[0]}\n{header}\n  C[i][j] += A[i][k] * B[k][j];\n}}\n").loops
        assert (p.outermost, p.innermost) == tuple(again[k].kind == "parallel" for k in (0, -1))
