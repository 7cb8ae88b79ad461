"""Subscripts such as ``i * lda + j``: rows and columns are told apart, by proof or by a relation that is assumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.core.errors import UsageError
from looptune.deploy.asserted import call_checks
from looptune.frontend import load
from looptune.runtime.problem_sizes import edge_sizes, prime_sizes, problem
from looptune.runtime.size_relations import broken_relation, size_relations
from tests.helpers.against_gcc import difference, verdicts
from tests.helpers.gcc_programs import Program, programs
from tests.helpers.paths import TESTS

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

LDA = """void f(int n, int m, int lda, double *a) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      a[i * lda + j] = 2;
}
"""


@pytest.mark.sampled(2)
@pytest.mark.sampled(4, "wide")
@gcc
@pytest.mark.parametrize("program", programs(TESTS / "data" / "linear_indices.c"), ids=lambda p: p.name)
def test_linear_indices_are_analysed_and_computed_as_by_gcc(program: Program, tmp_path: Path) -> None:
    assert difference(program.text, program.sizes, tmp_path, program.shapes) is None
    assert [*verdicts(load(program.text).codelet).values()] == program.loops


@pytest.mark.parametrize(
    ("index", "relations"),
    [
        ("i * lda + j", ["m <= lda"]),
        ("i * (lda + 2) + j + 1", ["m + 1 <= lda + 2"]),
        ("2 * (i * lda + j)", ["2 * m - 1 <= 2 * lda"]),
        ("i * m + j", []),
        ("(i + 1) * (m + 2) + j + 2", []),
        ("i * lda + 2 * j - 1", ["2 * m - 1 <= lda"]),
        ("i * lda + j * n", []),
    ],
)
def test_a_relation_is_assumed_only_where_nothing_proves_the_column(index: str, relations: list[str]) -> None:
    text = LDA.replace("i * lda + j", index)
    assert [str(r) for r in size_relations(load(text).codelet)] == relations


def test_a_range_of_columns_is_assumed_to_be_inside_the_row() -> None:
    """A loop from a parameter on, as over the part of a domain, assumes that this is no column before the first."""
    text = LDA.replace("int m,", "int m0, int m,").replace("j = 0", "j = m0")
    codelet = load(text).codelet
    assert [str(r) for r in size_relations(codelet)] == ["m <= lda", "0 <= m0"]
    assert [*verdicts(codelet).values()] == ["parallel", "parallel"]
    assert '0.0 <= (double)m0, "0 <= m0 does not hold"' in call_checks(load(text)).body


def test_what_is_not_split_assumes_nothing() -> None:
    """The step of a loop is a factor as a size is, but no column stays below it."""
    text = """void f(int n, int s, float x[n]) {
  for (int i = 0; i < n; i += s) x[i] = i;
  for (int i = n - 1; i >= 0; i -= s) x[i] += 1;
}
"""
    assert size_relations(load(text).codelet) == ()


def test_flat_accesses_besides_assume_nothing() -> None:
    """A subscript without a product may reach every row: no relation says that it does not."""
    codelet = load(LDA.replace("= 2;", "= a[j + n];")).codelet
    assert size_relations(codelet) == ()
    assert [*verdicts(codelet).values()] == ["sequential", "sequential"]


def test_a_call_that_breaks_the_relation_is_refused() -> None:
    kernel = looptune.compile(LDA, target="numba-cpu")
    a = np.zeros(30)
    kernel(5, 4, 6, a)
    assert a.reshape(5, 6)[:, :4].sum() == a.sum() == 40
    with pytest.raises(UsageError, match="f assumes m <= lda, which does not hold: lda is 4, m is 6"):
        kernel(5, 6, 4, a)


def test_sizes_of_verification_keep_the_relation() -> None:
    codelet = load(LDA).codelet
    known = problem(codelet, {"n": 5, "m": 6, "lda": 6})
    small = prime_sizes(codelet, known)
    assert small is not None
    assert all(broken_relation(codelet, at.values) is None for at in (small, *edge_sizes(codelet, known)))
    with pytest.raises(UsageError, match="f assumes m <= lda"):
        problem(codelet, {"n": 5, "m": 6, "lda": 5})


def test_c_checks_the_relation_at_each_call() -> None:
    assert '(double)m <= (double)lda, "m <= lda does not hold"' in call_checks(load(LDA)).body
