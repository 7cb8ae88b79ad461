"""What a derived space proposes for loops that carry prefix sums, and what lines of a space file may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.schedule.analysis import Analysis
from looptune.tune.session.find_space import find_space
from looptune.tune.space import prefix_sums
from looptune.tune.space.derive import derive
from looptune.tune.space.patterns import Patterns

PREFIX = "void f(const float x[N], float y[N]) { float s = 0; for (int i = 0; i < N; i++) { s += x[i]; y[i] = s; } }\n"
IMAGE = """void f(int n, int m, float x[n][m], float y[n][m]) {
  for (int i = 0; i < n; i++) for (int j = 1; j < m; j++) y[i][j] = y[i][j - 1] + x[i][j];
}
"""


def test_a_prefix_sum_has_parts_of_parts() -> None:
    """As many levels as leave few values to one thread, read as vectors; a part for each core; none of short loops."""

    def deep(*numbers: int) -> list[str]:
        over_sums = f"loop {', '.join(map(str, numbers))}: {{unroll 16 | }}"
        return ["loop 3, 1: {vectorize 4 | }", over_sums, "codelet: grid blocksize {256x1, 128x1, 64x1}"]

    made = derive(Analysis(load(PREFIX, defines={"N": 20_000_000}).codelet)).split("\nor\n")
    own = [
        ["for gpu", "loop 1: prefix {16, 8, 32}, 64, 64", *deep(7, 4, 11, 8, 12)],
        ["for gpu", "loop 1: prefix {32, 64}, {64, 256}", *deep(7, 4, 8)],
        ["for cpu", "loop 1: prefix {2500000, 10000000, 5000000, 1250000, 312500}"],
    ]
    assert [s.splitlines()[-len(want) :] for s, want in zip(made, own, strict=False)] == own
    assert "prefix" not in derive(Analysis(load(PREFIX, defines={"N": 300}).codelet))


def test_rows_of_prefix_sums_have_parts_of_their_own() -> None:
    """Few rows come first; of many, each is a thread otherwise."""
    analysis = Analysis(load(IMAGE).codelet)
    few = Patterns(analysis, sizes={"n": 3, "m": 9000})
    lines = next(prefix_sums.sections(few)).splitlines()
    assert lines[1:4] == ["loop 2: prefix {16, 8, 32}", "loop 1: expand y_last, y_sums, y_starts", "loop 1: distribute"]
    many = Patterns(analysis, sizes={"n": 5000, "m": 9000})
    assert not list(prefix_sums.sections(many))
    assert next(prefix_sums.sections(many, many=True)).splitlines() == lines


def test_a_space_file_names_loops_that_prefix_makes(tmp_path: Path) -> None:
    """In the lines after it; in others, a loop that is not in the text is an error."""
    unit = load(PREFIX, defines={"N": 4000})
    file, lines = tmp_path / "f.pragmas", "loop i: prefix {16, 32}\nloop i_part: unroll {2, 4}, jam\n"
    file.write_text(lines)
    assert len(list(find_space(Path("f.c"), file, unit, Analysis(unit.codelet), gpu=True))) == 4
    file.write_text(lines.replace("prefix", "unroll"))
    with pytest.raises(DirectiveError, match="no loop i_part in f"):
        find_space(Path("f.c"), file, unit, Analysis(unit.codelet), gpu=True)


def test_the_place_of_a_maximum_is_no_prefix_sum() -> None:
    text = """void f(int n, int m, const float x[n][m], int at[n]) {
      for (int i = 0; i < n; i++) {
        float best = x[i][0];
        int k = 0;
        for (int j = 1; j < m; j++) if (x[i][j] > best) { best = x[i][j]; k = j; }
        at[i] = k;
      }
    }"""
    assert "prefix" not in derive(Analysis(load(text).codelet))
