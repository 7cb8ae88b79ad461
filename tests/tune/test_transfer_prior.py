"""A search begins with what won at other sizes and on other devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.tune.session.transfer_prior import MOST, transfer_prior
from looptune.tune.space.product_view import Product, view_of
from looptune.tune.space.space import Configuration, parse
from looptune.tune.space.view import SpaceView
from looptune.tune.store.store import Store
from looptune.tune.strategies import ALL, Strategy
from tests.helpers.synthetic_costs import SECTIONS
from tests.helpers.synthetic_database import A100, H200, context, keep

TEXT = "void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }\n"
VIEWS = {"listed": view_of(SECTIONS), "product": Product(SECTIONS)}
KNOWN = (Configuration(("loop i: unroll 777",)), Configuration(("loop i: unroll 888", "loop j: unroll 2")))


def test_the_nearest_come_first(tmp_path: Path) -> None:
    """Of this device before others, of similar sizes before other ones; no default, nothing twice, no foreign words."""
    unit, db = load(TEXT), tmp_path / "db"
    here = context(unit, {"n": 1000})
    keep(db, here, {"": 9.0, "loop i: unroll 2": 1.0}, sweep="a")
    keep(db, context(unit, {"n": 64}), {"": 9.0, "loop i: unroll 4": 5.0}, sweep="b")
    keep(db, context(unit, {"n": 900}), {"": 9.0, "loop i: unroll 8": 5.0, "loop i: unroll 3": 6.0}, sweep="c")
    keep(db, context(unit, {"n": 1000}, A100), {"": 9.0, "loop i: unroll 16": 5.0}, sweep="d")
    keep(db, context(unit, {"n": 2000}, A100), {"": 9.0, "loop i: unroll 8": 5.0}, sweep="e")
    keep(db, context(unit, {"n": 5}, H200), {"": 1.0, "loop i: unroll 5": 5.0}, sweep="f")
    keep(db, context(unit, {"n": 7}, H200), {"": 9.0, "loop i: unroll 32": 5.0}, sweep="g")
    keep(db, context(unit, {"n": 1001}), {"": 9.0, "loop i: parallel, assume": 5.0}, sweep="h")
    space = parse("loop i: unroll {2, 4}, {jam, remainder}", "s.pragmas")
    with Store.read(db) as store:
        found = [c.text for c in transfer_prior(store, here, space, "loop i: unroll 4")]
    assert found == ["loop i: unroll 8", "loop i: unroll 32", "loop i: unroll 16"]
    assert len(found) <= MOST


def costs(strategy: Strategy, most: int) -> list[str]:
    """What it asks for, where the known are the best, and others cost as much as their text is long."""
    asked: list[str] = []
    while len(asked) < most and (found := strategy.ask()) is not None:
        asked.append(found.text)
        strategy.tell(found, 1.0 if found in KNOWN else 10.0 + len(found.text))
    return asked


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", [n for n in ALL if n not in ("optuna", "pyatf", "exhaustive")])
def test_each_strategy_asks_for_them_first(name: str, view: str) -> None:
    """And then for what it asks for without them, each configuration once."""
    plain = costs(ALL[name](VIEWS[view], 1), 40)
    asked = costs(ALL[name](VIEWS[view], 1).begin_with(KNOWN), 40)
    assert asked[:2] == [c.text for c in KNOWN]
    assert len(asked) == len(set(asked))
    if name != "model":
        assert asked[2:] == plain[: len(asked) - 2]


@pytest.mark.parametrize("view", VIEWS)
def test_the_model_takes_them_for_points_of_the_space(view: str) -> None:
    """Where the space has them, and it goes on to its end."""
    space: SpaceView = VIEWS[view]
    own = next(c for k in (11, 12, 13, 14) if (c := space[k]) is not None)
    strategy = ALL["model"](space, 1).begin_with((own, KNOWN[0]))
    asked = costs(strategy, 10_000)
    assert asked[:2] == [own.text, KNOWN[0].text]
    assert len(asked) == len(set(asked))
    if view == "listed":
        everything = {c.text for k in range(space.size) if (c := space[k]) is not None}
        assert set(asked) == everything | {KNOWN[0].text}


def test_several_are_asked_for_at_once() -> None:
    """So that they are compiled at the same time as the first of the strategy's own."""
    strategy = ALL["random"](SECTIONS, 1).begin_with(KNOWN)
    assert strategy.window >= len(KNOWN) + 1
    first, second, third = strategy.ask(), strategy.ask(), strategy.ask()
    assert (first, second) == KNOWN
    assert third is not None
    for configuration in (first, second, third):
        assert configuration is not None
        strategy.tell(configuration, 1.0)
