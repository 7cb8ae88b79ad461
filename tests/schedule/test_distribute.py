"""Distribute and cut: where a nest may fall apart, what its pieces are called and what directives for them do."""

from __future__ import annotations

import pytest

from looptune.core.errors import DirectiveError, IllegalTransform, LooptuneError, ParseError
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Assign, Codelet, If, Loop
from looptune.ir.rewrite import walk
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import apply_distribution, schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.distribute import fission_part, strongly_connected_components
from looptune.tune.space import space
from looptune.tune.space.derive import derive

HEAD = "void f(int n, int m, double A[n][n], double x[n], double y[n], double z[n])\n{\n"
BICG = "for (int i = 0; i < n; i++) { x[i] = 0; for (int j = 0; j < n; j++) { y[j] += A[i][j]; x[i] += A[i][j]; } }"


def codelet(body: str) -> Codelet:
    return load(f"{HEAD}{body}\n}}\n").codelet


def made(body: str, *lines: str) -> str:
    """The body transformed and proved, on one line."""
    original = codelet(body)
    done = schedule(Analysis(original), parse_lines(lines)).codelet
    assert prove(original, done).verdict == "proved"
    return " ".join(c_printer.body(done).split())


def refusal(body: str, *lines: str) -> LooptuneError:
    with pytest.raises(LooptuneError) as refused:
        schedule(Analysis(codelet(body)), parse_lines(lines))
    return refused.value


def pieces(body: str, *lines: str) -> list[list[str]]:
    """The names of the statements of each outermost loop."""
    tree = apply_distribution(Analysis(codelet(body)), parse_lines(lines))
    return [[s.name for s in walk(f) if isinstance(s, Assign)] for f in tree.body if isinstance(f, Loop)]


def called(tree: Codelet) -> list[tuple[str, int, int]]:
    return [(f.var, f.number, fission_part(f)) for f in walk(tree.body) if isinstance(f, Loop)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("x[i] = 1; y[i] = 2;", [["S0"], ["S1"]]),
        ("x[i] = y[i - 1]; y[i] = x[i];", [["S0", "S1"]]),
        ("x[i] = y[i - 1]; y[i] = 1;", [["S1"], ["S0"]]),
        ("x[i] = y[i + 1]; y[i] = 1;", [["S0"], ["S1"]]),
        ("x[i] = y[i - 1]; z[i] = 1; y[i] = z[i];", [["S1"], ["S2"], ["S0"]]),
        ("x[i] = x[i - 1] + y[i - 1]; z[i] = x[i]; y[i] = x[i];", [["S0", "S2"], ["S1"]]),
        ("x[i] = 0; for (int j = 0; j < i; j++) x[i] += A[i][j]; x[i] /= y[i];", [["S0"], ["S1"], ["S2"]]),
        ("if (i > 2) { x[i] = 1; y[i] = 1; } else z[i] = 2;", [["S0"], ["S1"], ["S2"]]),
        ("if (x[i] > 2) { y[i] = 1; x[i] = 1; z[i] = 1; } A[i][i] = 3;", [["S0", "S1", "S2"], ["S3"]]),
        ("while (x[i] > 2) { x[i] -= 1; y[i] += 1; } z[i] = 1;", [["S0", "S1"], ["S2"]]),
        ("double t = x[i]; y[i] = t; z[i] = 1;", [["S0", "S1"], ["S2"]]),
        ("double t = x[i]; y[i] = t; t = z[i]; A[i][0] = t;", [["S0", "S1"], ["S2", "S3"]]),
        ("x[0] += y[i]; z[i] = 1; x[0] += A[i][i];", [["S0"], ["S1"], ["S2"]]),
        ("x[i] = 1;", [["S0"]]),
    ],
)  # fmt: skip
def test_the_pieces_are_the_components_in_the_order_of_the_text(body: str, found: list[list[str]]) -> None:
    """Cycles stay together, as do a private value and its uses; what must come first is moved to the front."""
    assert pieces(f"for (int i = 1; i < n - 1; i++) {{ {body} }}", "loop 1: distribute") == found


def test_sums_are_kept_in_order_where_rounding_counts() -> None:
    """Two additions into one element commute only with reassociation."""
    tree = codelet("for (int i = 0; i < n; i++) { x[0] += y[i]; x[0] += z[i]; }")
    for reassociate, loops in ((True, 2), (False, 1)):
        analysis = Analysis(tree, reassociate)
        assert len(apply_distribution(analysis, parse_lines(["loop 1: distribute"])).body) == loops


def test_only_what_one_iteration_around_orders_counts() -> None:
    """A dependence carried by the loop around an inner one does not stop that from being distributed."""
    text = made(
        "for (int t = 0; t < m; t++) for (int i = 0; i < n; i++) { x[i] = y[i]; y[i] = 2 * x[i]; }",
        "loop i: distribute",
    )
    assert text.count("for (int i") == 2
    assert text.count("for (int t") == 1


def test_statements_after_the_loop_stay_after_it() -> None:
    """Pieces make room between the statements around them."""
    body = "for (int t = 0; t < m; t++) { z[0] = t; for (int i = 0; i < n; i++) { x[i] = t; y[i] = t; } z[1] = x[0]; }"
    text = made(body, "loop i: distribute", "loop t: unroll 2")
    assert text.index("z[0] = 2 * t") < text.index("x[i] = 2 * t") < text.index("y[i] = 2 * t") < text.index("z[1]")


CUT = "\n#pragma hmppcg cut\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"x[i] = 1; {CUT} y[i] = 2; z[i] = 3;", [["S0"], ["S1", "S2"]]),
        (f"x[i] = 1; {CUT} if (i > 3) y[i] = 2; z[i] = 3;", [["S0"], ["S1", "S2"]]),
        (f"x[i] = 1; y[i] = 1; {CUT} for (int j = 0; j < n; j++) A[i][j] = 2;", [["S0", "S1"], ["S2"]]),
        (f"for (int j = 0; j < n; j++) {{ x[i] += 1; {CUT} y[i] += 1; }} z[i] = 3;", [["S0"], ["S1", "S2"]]),
        (f"if (i > 2) {{ x[i] = 1; {CUT} y[i] = 1; }} else z[i] = 2;", [["S0"], ["S1", "S2"]]),
        (f"x[i] = 1; {CUT}{CUT} y[i] = 2; {CUT} {{ double t = z[i]; z[i] = t * t; }}", [["S0"], ["S1"], ["S2", "S3"]]),
        (f"x[i] = 1; {CUT} int k = i + 1; y[k - 1] = 2;", [["S0"], ["S1"]]),
    ],
)  # fmt: skip
def test_a_cut_parts_what_comes_before_it_from_what_comes_after(body: str, found: list[list[str]]) -> None:
    """Before an assignment, an if, a loop, a declaration; inside of loops and conditions; several of them."""
    assert pieces(f"#pragma hmppcg distribute\nfor (int i = 0; i < n; i++) {{ {body} }}") == found
    done = schedule(Analysis(codelet(f"#pragma hmppcg distribute\nfor (int i = 0; i < n; i++) {{ {body} }}"))).codelet
    assert not any(n.directives for n in walk(done.body) if isinstance(n, (Assign, If)))


def test_a_cut_from_outside() -> None:
    """``loop 2: cut`` is a cut before loop 2."""
    assert pieces(BICG, "loop 1: distribute", "loop 2: cut") == [["S0"], ["S1", "S2"]]


@pytest.mark.parametrize(
    ("body", "lines", "kind", "message"),
    [
        (f"x[i] = y[i - 1]; {CUT} y[i] = x[i];", ("loop 1: distribute",), IllegalTransform,
         "cut is illegal: iteration (i=1) of line 5 must run before (i=2) of line 3 when n=3"),
        (f"x[i] = y[i - 1];\n y[i] = 2;\n {CUT} z[i] = x[i] * A[i][i];\n {CUT} y[i] = x[i];", ("loop 1: distribute",),
         IllegalTransform, "cut is illegal: iteration (i=1) of line 10 must run before (i=2) of line 3 when n=3"),
        (f"double t = x[i]; {CUT} y[i] = t;", ("loop 1: distribute",), IllegalTransform,
         "cut is illegal: t carries a value across the cut in one iteration of loop i; move the cut, or make t an "
         "array with an element for each i"),
        (f"{CUT} y[i] = 1; z[i] = 2;", ("loop 1: distribute",), DirectiveError,
         "cut: no statement precedes it in loop i; write it between two statements"),
        (f"y[i] = 1; {CUT} z[i] = 2;", (), DirectiveError,
         "cut has no effect without distribute: write `distribute` before a loop around it"),
        (f"if (y[i] > 0) {{ y[i] = 1; {CUT} z[i] = 2; }}", ("loop 1: distribute",), DirectiveError,
         "cut is inside an if whose own statements may change its condition (line 3): move it out"),
        (f"while (y[i] > 0) {{ y[i] -= 1; {CUT} z[i] = 2; }}", ("loop 1: distribute",), DirectiveError,
         "cut is inside a while loop (line 3): move it out"),
    ],
)  # fmt: skip
def test_a_cut_that_cannot_be_is_refused_at_the_cut(
    body: str, lines: tuple[str, ...], kind: type[LooptuneError], message: str
) -> None:
    """The message says why and names the cut, and the caret is under it."""
    refused = refusal(f"for (int i = 1; i < n; i++) {{ {body} }}", *lines)
    assert (type(refused), refused.message) == (kind, message)
    assert refused.span.text[refused.span.col - 1 :][: refused.span.width] == "cut"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for (int i = 0; i < n; i++) { x[i] = 1; \n#pragma hmppcg cut\n }", "cut must be followed by a statement"),
        ("#pragma hmppcg distribute 3\nfor (int i = 0; i < n; i++) x[i] = 1;", "distribute takes no argument, got '3'"),
    ],
)
def test_what_is_written_wrong(body: str, message: str) -> None:
    """A cut at the end of a block, an argument where there is none."""
    with pytest.raises((ParseError, DirectiveError), match=message):
        schedule(Analysis(codelet(body)))


def test_pieces_are_numbered_in_their_new_order() -> None:
    """Copies of an inner loop have pieces of their own; what is not split keeps its plain number."""
    body = f"for (int k = 0; k < n; k++) z[k] = 0; {BICG}"
    tree = apply_distribution(Analysis(codelet(body)), parse_lines(["loop 2: distribute"]))
    assert called(tree) == [("k", 1, 0), ("i", 2, 1), ("i", 2, 2), ("j", 3, 1), ("i", 2, 3), ("j", 3, 2)]


def test_an_inner_distribute_is_for_every_piece() -> None:
    """Both are split, outermost first, and all copies numbered through."""
    body = f"for (int i = 0; i < n; i++) {{ for (int j = 0; j < n; j++) {{ x[i] += 1; y[j] += 1; {CUT} z[i] += 1; }} }}"
    tree = apply_distribution(Analysis(codelet(body)), parse_lines(["loop 1: distribute", "loop 2: distribute"]))
    assert called(tree) == [("i", 1, 1), ("j", 2, 1), ("j", 2, 2), ("i", 1, 2), ("j", 2, 3)]


@pytest.mark.parametrize("place", ["loop 1.2", "loop i.2", "nest 1.2", "nest i.2"])
def test_a_piece_is_addressed_by_number_or_variable(place: str) -> None:
    """The second piece is permuted, the third keeps its order."""
    text = made(BICG, "loop 1: distribute", f"{place}: permute j, i")
    assert "for (int j = 0; j < n; j++) { for (int i = 0; i < n; i++) { y[j] += A[i][j]; } }" in text
    assert "for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) { x[i] += A[i][j]; } }" in text


def test_a_directive_for_the_loop_goes_to_the_pieces_it_fits() -> None:
    """Two of the three pieces have a loop j; all three are unrolled, once with another factor."""
    text = made(BICG, "loop 1: distribute", "loop 1: permute j, i")
    assert text.count("for (int j = 0; j < n; j++) { for (int i = 0; i < n; i++)") == 2
    text = made(BICG, "loop 1: distribute", "loop 1: unroll 2", "loop 1.3: tile i:4")
    assert (text.count("i < n / 2"), text.count("outer_i")) == (2, 6)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("loop 1: permute i, k",), "permute i, k: the loops of the nest are i"),
        (("loop 1: unroll k:2",), "unroll: no loop k in its nest"),
        (("loop 1.4: unroll 2",), "loop 1 has no piece 4: its pieces are 1.1, 1.2, 1.3"),
        (("loop k: unroll 2",), "no loop k in f; its loops are i (1.1), i (1.2), j (2.1), i (1.3), j (2.2)"),
        (("loop 1.1: tile i:2", "loop 1.1: unroll 2"), "one loop takes either fullunroll or tile or unroll, once"),
    ],
)
def test_what_fits_no_piece_is_refused(lines: tuple[str, ...], message: str) -> None:
    """With the names of the pieces."""
    assert refusal(BICG, "loop 1: distribute", *lines).message == message


def test_a_loop_that_is_whole_has_no_pieces() -> None:
    """A piece of it is no loop, and a distribute of what cannot be split changes nothing."""
    whole = "for (int i = 0; i < n; i++) x[i] = 1;"
    assert refusal(whole, "loop 1.1: unroll 2").message == "loop 1 has no piece 1: no distribute splits it"
    done = schedule(Analysis(codelet(whole)), parse_lines(["loop 1: distribute"]))
    assert (called(done.codelet), [s.proof for s in done.steps]) == ([("i", 1, 0)], ["proved"])


def test_components_are_ordered_by_place_where_they_may_be() -> None:
    """An independent statement does not move; a cycle stands where its first does."""
    assert [sorted(c) for c in strongly_connected_components("abcde", [("e", "b"), ("b", "e"), ("d", "a")])] == [
        ["b", "e"],
        ["c"],
        ["d"],
        ["a"],
    ]


def test_space_files_and_conditions_take_pieces() -> None:
    """A line for several pieces, and a condition on them by number and by variable."""
    text = (
        "loop 1: distribute\nloop 1.1, 1.2: unroll {1, 2}\nloop i.3: tile i:{2, 4}\nwhere unroll(1.2) * tile(i.3) <= 4"
    )
    found = [c.lines for c in space.parse(text, "s") if c is not None]
    assert ("loop 1: distribute", "loop 1.1: unroll 2", "loop 1.2: unroll 2", "loop i.3: tile i:2") in found
    assert len(found) == 3
    for lines in found:
        made(BICG, *lines)


def test_a_derived_space_is_for_the_pieces() -> None:
    """Where the file distributes a loop, and every version of it is a legal directive for a loop there is."""
    analysis = Analysis(codelet(f"#pragma hmppcg distribute\n{BICG}"))
    text = derive(analysis)
    assert "loop 1.2: permute {i, j | j, i}" in text
    assert "loop 2.2:" in text
    for configuration in list(space.parse(text, "s"))[::9]:
        schedule(analysis, parse_lines(configuration.lines), keep_going=True)


def test_a_loop_whose_value_is_read_after_it_is_not_given_to_threads() -> None:
    """Even where only one iteration writes it, so that nothing is carried."""
    tree = codelet("double t = 1; for (int k = 2; k < 4; k++) { if (k % 2 == 0) t = x[k]; } y[0] = t;")
    assert [f.mode for f in schedule(Analysis(tree)).codelet.body if isinstance(f, Loop)] == ["sequential"]
