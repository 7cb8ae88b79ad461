"""Hall, Carr and Hart's algorithms as directives: they compute the product, and take the bytes that the page says."""

from __future__ import annotations

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir.interpreter import run
from looptune.ir.nodes import Codelet
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.cost_model.estimate import Estimate, estimate
from looptune.tune.session import predict
from looptune.tune.space.space import Configuration, parse
from tests.helpers.access_trace import EVERYTHING
from tests.helpers.command_line import GEMM
from tests.helpers.paths import ROOT

SPACE = list(parse((ROOT / "pragmas" / "hall-carr-hart.pragmas").read_text(), "hall-carr-hart.pragmas"))
PAGE = (ROOT / "docs" / "hall-carr-hart.md").read_text()


def subject(*sizes: int) -> predict.PredictionInput:
    given = {name: str(size) for name, size in zip(("NI", "NJ", "NK"), sizes, strict=True)}
    return predict.prediction_input(load(GEMM, defines=given), None, "h200")


def product(codelet: Codelet, values: dict[str, int | float]) -> np.ndarray:
    rng = np.random.default_rng(0)
    n, m, k = (int(values[name]) for name in ("ni", "nj", "nk"))
    arrays = {name: rng.random(shape, np.float32) for name, shape in (("C", (n, m)), ("A", (n, k)), ("B", (k, m)))}
    run(codelet, arrays, values)
    return arrays["C"]


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("configuration", SPACE, ids=lambda c: c.text.replace("\n", "; "))
def test_every_version_is_the_product(configuration: Configuration) -> None:
    """Bit for bit, at sizes that nothing divides: every sum keeps its order."""
    what = subject(5, 7, 19)
    values = dict(what.sized.values)
    done = schedule(what.analysis, parse_lines(configuration.lines, "test"), values)
    assert not done.asserted
    assert np.array_equal(product(done.codelet, values), product(what.unit.codelet, values))


def test_the_page_shows_the_space() -> None:
    """Every version of the file is in what the page shows, and no other."""
    assert [c.text for c in parse(PAGE.split("```\n")[1], "page")] == [c.text for c in SPACE]


@pytest.mark.parametrize("terms", [1, 4, 16])
@pytest.mark.parametrize("block", [1, 2])
def test_passes_and_bytes_are_those_of_the_formulas(terms: int, block: int) -> None:
    """n / b launches; 8 or 4 n^3 bytes of A and B, 8 n^3 / b of C; n^3 multiply-adds, as many products with alpha."""
    n = 64
    made = version(n, terms, block)
    scaling, *passes = made.launched
    assert scaling.moved.requested == 8 * n**2
    assert sum(one.launches for one in passes) == pytest.approx(n / terms)
    requested = sum(one.launches * one.moved.requested for one in passes)
    assert requested == pytest.approx(8 * n**3 / block + 8 * n**3 / terms)
    instructions = sum(one.launches * one.counted.nest.all_instructions.fp32 for one in passes)
    assert instructions * 32 == pytest.approx(2 * n**3)
    assert made.total.requested == pytest.approx(requested + 8 * n**2)


def version(n: int, terms: int, block: int) -> Estimate:
    lines = ["loop i: distribute", "nest 1.2: permute k, i, j"]
    lines += [f"loop k: unroll {terms}, jam"] if terms > 1 else []
    lines += [f"loop {k}: unroll 2, jam" for k in ("1.2", "2.2") if block > 1]
    what = subject(n, n, n)
    return estimate(what.planned(parse_lines(lines, "test")), what.sizes, what.chip, sample=EVERYTHING)
