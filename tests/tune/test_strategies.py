"""Strategies: what they ask for lies in the space, once, by the seed alone; they end, and find what can be found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from itertools import product
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.cli.options import STRATEGIES
from looptune.core.errors import UsageError
from looptune.tune.formats.records import foreign_configuration
from looptune.tune.space.product_view import Product, view_of
from looptune.tune.space.space import Configuration, Section, Space, parse
from looptune.tune.space.table_view import Table
from looptune.tune.space.view import SpaceView
from looptune.tune.strategies import ALL, Strategy, gaussian_process, model, named
from looptune.tune.strategies.gaussian_process import Hyperparameters
from looptune.tune.strategies.jiang_snir import unimodal
from looptune.tune.strategies.random import permute_index
from tests.helpers.synthetic_costs import LARGE, SECTIONS, SMALL, best, bowl, holes, rugged, searched

COMPLETE = ["exhaustive", "random", "sections"]
EXTRAS = ["optuna", "pyatf"]
LEARNING = [
    pytest.param(n, marks=pytest.mark.skipif(n in EXTRAS and not importlib.util.find_spec(n), reason=f"{n} is missing"))
    for n in ALL
    if n not in COMPLETE
]
VIEWS = {"listed": view_of(SECTIONS), "product": Product(SECTIONS)}


def asked(strategy: Strategy, most: int = 1000) -> list[Configuration]:
    found: list[Configuration] = []
    while len(found) < most and (configuration := strategy.ask()) is not None:
        strategy.tell(configuration, float(len(found)))
        found.append(configuration)
    return found


def test_the_help_lists_every_strategy():
    """The names in the options are those there are, in their order."""
    assert tuple(ALL) == STRATEGIES


@pytest.mark.parametrize("name", COMPLETE)
@pytest.mark.parametrize("space", [SECTIONS, *VIEWS.values()], ids=["space", *VIEWS])
def test_every_allowed_configuration_once(name: str, space: Space | SpaceView):
    """What is asked for is the space itself: nothing forbidden, nothing twice, nothing left out; then None for good."""
    strategy = ALL[name](space, 3)
    found = asked(strategy)
    assert sorted(c.text for c in found) == sorted(c.text for c in space)
    assert strategy.ask() is None
    assert strategy.ask() is None


@pytest.mark.sampled(2)
@pytest.mark.sampled(6, "wide")
@pytest.mark.parametrize("cost", [bowl, holes, lambda configuration: None], ids=["bowl", "holes", "nothing runs"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", LEARNING)
def test_a_search_keeps_to_the_space_and_ends(name: str, view: str, cost):
    """Only members of the space, each once (or once more with more trials), and None in the end, for good."""
    strategy = ALL[name](VIEWS[view], 7)
    members = {c.text for c in SECTIONS}
    found = [c.text for c, _ in searched(strategy, cost, 3 * len(members))]
    assert set(found) <= members
    if name != "gatlas-trials":
        assert len(set(found)) == len(found)
    assert 1 <= len(found) < 3 * len(members)
    assert strategy.ask() is None
    assert strategy.ask() is None


@pytest.mark.sampled(7, "wide")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", [*COMPLETE, *LEARNING])
def test_replayable(name: str, view: str):
    """Equal seeds and costs ask in equal order; nothing else that draws random numbers changes it."""
    first = searched(ALL[name](VIEWS[view], 5), rugged, 60)
    assert searched(ALL[name](VIEWS[view], 5), rugged, 60) == first


@pytest.mark.parametrize("name", LEARNING)
def test_a_space_of_nothing_and_of_one(name: str):
    """The empty product is the default, once; a space without sections is none at all."""
    assert {c.text for c, _ in searched(ALL[name](parse("", "s"), 1), bowl)} == {""}
    assert searched(ALL[name](Space(()), 1), bowl) == []


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize("name", ["sampling", "jiang-snir", "gatlas-nested", "local", "evolutionary", "model"])
def test_the_best_of_a_bowl_is_found_with_few_questions(name: str):
    """2,048 versions whose cost rises from one point: within 1 % of the best after at most a tenth, half of seeds."""
    limit = 1.01 * best(SMALL, bowl)
    view = view_of(SMALL)
    needed = []
    for seed in range(3):
        strategy, count = ALL[name](view, seed), 0
        while (configuration := strategy.ask()) is not None and count < 205:
            count += 1
            strategy.tell(configuration, bowl(configuration))
            if bowl(configuration) <= limit:
                needed.append(count)
                break
    assert len(needed) >= 2


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the configurations that are looked at from now on."""
    looked: list[int] = []
    found = Section.configuration

    def counted(section: Section, index: int) -> Configuration | None:
        looked.append(index)
        return found(section, index)

    monkeypatch.setattr(Section, "configuration", counted)
    return looked


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["jiang-snir", "gatlas-nested", "local", "evolutionary", "model"])
def test_a_space_of_millions_is_walked_not_listed(name: str, monkeypatch: pytest.MonkeyPatch):
    """Two million versions: at most twice the best, 150, within 200 questions, for which few others are looked at."""
    looked = watched(monkeypatch)
    costs = [c for _, c in searched(ALL[name](LARGE, 1), bowl, 200) if c is not None]
    assert min(costs) <= 300.0
    assert len(looked) <= {"model": 100}.get(name, 2) * len(costs), len(looked) / len(costs)


@pytest.mark.long
@pytest.mark.parametrize("name", ["evolutionary", "model"])
def test_a_search_beats_chance_on_a_rugged_space_with_holes(name: str):
    """Over seeds, what 120 questions find is better than what 120 random ones find."""
    view = view_of(SMALL)

    def found(kind: str) -> float:
        return sum(min(c for _, c in searched(ALL[kind](view, s), holes, 120) if c is not None) for s in range(6))

    assert found(name) < 0.97 * found("random")


def flags(*values: tuple[int, ...]) -> Table:
    """The product of values of parameters a, b, c of a foreign space."""
    names = "abcdefgh"
    return Table(foreign_configuration(dict(zip(names, row, strict=False))) for row in product(*values))


FLAGS = flags((16, 32, 48, 64, 80, 96, 112, 128), (1, 2, 4, 8), (0, 1), (0, 1), (0, 1), (1, 2, 3, 4))
"""1,024 versions."""


def interacting(configuration: Configuration) -> float | None:
    """Best by half where two flags are set together, and worse where only one is; a third of one half fails."""
    at = dict(configuration.slots)
    both, either = at["c"] * at["d"], max(at["c"], at["d"])
    if at["e"] and at["a"] * at["b"] > 256:
        return None
    steps = abs(log2(at["a"] * at["b"] / 128)) + abs(at["f"] - 3)
    return 100.0 * (1 + steps / 4) * (0.5 if both else 1.5 if either else 1.0) * (1.2 if at["a"] % 32 else 1.0)


def test_the_model_finds_what_only_two_flags_together_give() -> None:
    """The best of 1,024 within 60 questions, where each flag alone makes it worse, and part of the space fails."""
    least = min(c for row in FLAGS.rows if (c := interacting(row)) is not None)
    for seed in range(2):
        costs = [c for _, c in searched(ALL["model"](FLAGS, seed), interacting, 60)]
        assert min(c for c in costs if c is not None) == least
        late = costs[len(costs) // 2 :]
        assert sum(c is None for c in late) <= 0.1 * len(late)


def test_what_a_question_of_the_model_costs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many were asked, it fits and looks at no more points than its limits."""
    monkeypatch.setattr(model, "RECENT", 30)
    monkeypatch.setattr(model, "CANDIDATES", 100)
    fits: list[int] = []
    looks: list[int] = []
    fitted, predict = gaussian_process.fitted, gaussian_process.Process.predict

    def counted(points: np.ndarray, *others: Any) -> Any:
        fits.append(len(points))
        return fitted(points, *others)

    def watched_predict(process: gaussian_process.Process, columns: np.ndarray) -> Any:
        looks.append(len(columns))
        return predict(process, columns)

    monkeypatch.setattr(gaussian_process, "fitted", counted)
    monkeypatch.setattr(gaussian_process.Process, "predict", watched_predict)
    searched(ALL["model"](view_of(SMALL), 1), bowl, 80)
    assert max(fits) == 30
    assert max(looks) == 100
    assert len(looks) > 70


def test_the_model_asks_for_a_version_for_each_device() -> None:
    """As many as there are devices, all before an answer; they differ, and the search is as good by questions."""
    strategy = ALL["model"](FLAGS, 0)
    strategy.batch = 4
    found: list[float | None] = []
    while len(found) < 100:
        together = [strategy.ask() for _ in range(1)]
        together += [strategy.ask() for _ in range(strategy.window - 1)]
        assert len(together) == 4
        assert len({c.text for c in together if c is not None}) == 4
        for configuration in together:
            assert configuration is not None
            found.append(interacting(configuration))
            strategy.tell(configuration, found[-1])
    assert min(c for c in found if c is not None) == min(c for r in FLAGS.rows if (c := interacting(r)) is not None)


def test_a_quantity_is_its_logarithm_and_the_power_of_two_in_it() -> None:
    """48 is between 32 and 64, and, unlike these, not divided by 32; powers of two alone have one column."""
    found = gaussian_process.features(flags((16, 32, 48, 64), (1, 2, 4), (7,)))
    assert found.axis.tolist() == [0, 1, 2]
    rows = found.columns[::3]
    assert rows[:, 0] == pytest.approx([0, 0.5, log2(3) / 2, 1])
    assert rows[:, 1] == pytest.approx([0, 0.5, 0, 0.5])


@given(st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_the_gradient_of_the_likelihood_is_that_of_differences(seed: int) -> None:
    """By each length and the noise, with the prior: as numerical differences of its logarithm say."""
    rng = np.random.default_rng(seed)
    axis = np.array([0, 0, 1, 2])
    points, values = rng.random((12, 4)), rng.normal(size=12)
    at = Hyperparameters.prior(3)
    at = replace(at, logs=at.logs + rng.normal(size=4) / 2)

    def negative(logs: np.ndarray) -> float:
        scaled = points * np.exp(-logs[:-1])[axis]
        apart = np.sqrt(((scaled[:, None] - scaled) ** 2).sum(axis=2))
        covariance = np.exp(-apart) + np.exp(logs[-1]) * np.eye(12)
        spread = np.array([*[gaussian_process.LENGTH_SPREAD] * 3, gaussian_process.NOISE_SPREAD])
        prior = ((logs - Hyperparameters.prior(3).logs) ** 2 / spread**2).sum() / 2
        likely = 6 * np.log(values @ np.linalg.solve(covariance, values)) + np.linalg.slogdet(covariance)[1] / 2
        return float(likely + prior)

    steps = 1e-5 * np.eye(4)
    expected = [(negative(at.logs + step) - negative(at.logs - step)) / 2e-5 for step in steps]
    _, found = gaussian_process.derived(points, values, axis, at)
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)


@st.composite
def valleys(draw: st.DrawFn) -> list[int]:
    """Strictly falling, then strictly rising."""
    left = draw(st.lists(st.integers(1, 9), max_size=60))
    right = draw(st.lists(st.integers(1, 9), max_size=60))
    values = [0]
    for step in left:
        values.insert(0, values[0] + step)
    for step in right:
        values.append(values[-1] + step)
    return values


def _run(values: list[float], at: int) -> tuple[int, float, list[int]]:
    probed: list[int] = []

    def probe(k: int):
        cost = yield k
        return cost

    search = unimodal(probe, at, 0, len(values) - 1)
    try:
        probed.append(next(search))
        while True:
            probed.append(search.send(values[probed[-1]]))
    except StopIteration as end:
        return *end.value, probed


@given(valleys(), st.data())
def test_algorithm_1_finds_the_least_of_a_valley(values: list[int], data: st.DataObject):
    """From any start what brute force finds, after O(log^2 n) different questions."""
    at = data.draw(st.integers(0, len(values) - 1))
    position, cost, probed = _run([float(v) for v in values], at)
    assert (position, cost) == (values.index(0), 0.0)
    assert len(set(probed)) <= 4 + 2 * len(values).bit_length() ** 2


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, float("inf")]), min_size=1, max_size=50), st.data())
def test_algorithm_1_ends_on_anything(values: list[float], data: st.DataObject):
    """On plateaus, peaks and failures it ends, inside, with the cheapest it probed."""
    position, cost, probed = _run(values, data.draw(st.integers(0, len(values) - 1)))
    assert all(0 <= k < len(values) for k in probed)
    assert cost == values[position] == min(values[k] for k in probed)


def test_a_probe_has_few_trials_and_the_best_are_settled():
    """gatlas-trials asks all with one run, then the best again, best first, with many."""
    strategy = ALL["gatlas-trials"](SECTIONS, 1)
    trials = []
    found = []
    while (configuration := strategy.ask()) is not None:
        found.append(configuration)
        trials.append(strategy.trials)
        strategy.tell(configuration, bowl(configuration))
    settled = [c for c, t in zip(found, trials, strict=True) if t != 1]
    members = {c.text: bowl(c) for c in SECTIONS}
    assert {c.text for c, t in zip(found, trials, strict=True) if t == 1} == set(members)
    assert len(settled) >= 1
    assert bowl(settled[0]) == min(members.values())
    assert [bowl(c) for c in settled] == sorted(bowl(c) for c in settled)


def test_the_last_probes_are_settled_too():
    """With a window full, the best is settled also where it was the last to be probed."""
    for seed in range(20):
        asked = searched(ALL["gatlas-trials"](SECTIONS, seed), bowl)
        least = min(c for _, c in asked if c is not None)
        assert sum(c == least for _, c in asked) >= 2


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_package_is_named_with_what_installs_it(name: str, monkeypatch: pytest.MonkeyPatch):
    """UsageError with the line for pip, when checked and when asked."""
    monkeypatch.setitem(sys.modules, name, None)
    for refuse in (named(name).check, ALL[name](SECTIONS).ask):
        with pytest.raises(UsageError, match=rf"needs the package {name}: pip install 'looptune\[search\]'"):
            refuse()


def test_an_unknown_name_is_refused_with_those_there_are():
    """UsageError lists them."""
    with pytest.raises(UsageError, match="unknown strategy 'magic': choose one of exhaustive, random"):
        named("magic")


def test_seeds_differ_and_random_is_no_enumeration():
    """Another seed is another order, and none is the exhaustive one."""
    orders = {tuple(c.text for c in asked(ALL["random"](SECTIONS, seed))) for seed in range(10)}
    assert len(orders) == 10
    assert tuple(c.text for c in asked(ALL["exhaustive"](SECTIONS))) not in orders


def test_sections_begin_with_the_first_of_each_and_go_on_with_the_fast():
    """After the first version of each section, in their order, most are of the section that has shown a fast one."""
    space = parse("loop i: unroll {2..9}\nor\nloop j: unroll {2..9}\nor\nloop k: unroll {2..9}", "a test")
    strategy = ALL["sections"](space, 0)
    first = [strategy.ask() for _ in range(3)]
    assert [c.text for c in first if c is not None] == [f"loop {v}: unroll 2" for v in "ijk"]
    for configuration, cost_us in zip(first, (9.0, 3.0, None), strict=True):
        assert configuration is not None
        strategy.tell(configuration, cost_us)
    later = []
    while len(later) < 20 and (configuration := strategy.ask()) is not None:
        strategy.tell(configuration, {"i": 9.0, "j": 3.0}.get(configuration.text[5]))
        later.append(configuration.text[5])
    assert "".join(later) == "j" * 7 + "i" * 7 + "k" * 6


@given(st.integers(1, 400), st.integers(-(2**40), 2**40))
def test_permuted_is_a_permutation(size: int, seed: int):
    """Every index of range(size) exactly once."""
    assert sorted(permute_index(n, size, seed) for n in range(size)) == list(range(size))


def test_permuted_is_uniform():
    """Over many seeds each place holds each index about equally often (chi-square, 6 degrees of freedom)."""
    size, trials = 7, 2100
    for place in range(size):
        counts = [0] * size
        for seed in range(trials):
            counts[permute_index(place, size, seed)] += 1
        assert sum((c - trials / size) ** 2 / (trials / size) for c in counts) < 35


def test_a_huge_space_is_sampled_at_once(monkeypatch: pytest.MonkeyPatch):
    """10^30 points: a hundred distinct ones, and no others are looked at."""
    looked = watched(monkeypatch)
    space: Space = parse("\n".join(f"loop i{n}: unroll {{1..1000000}}" for n in range(5)), "s")
    assert len({c.text for c in asked(ALL["random"](space, 1), 100)}) == 100
    assert len(looked) <= 200


@pytest.mark.wide
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([n for n in ALL if n not in EXTRAS]))
def test_no_seed_breaks_a_search(seed: int, name: str):
    """Any seed: members only, and an end."""
    members = {c.text for c in SECTIONS}
    assert {c.text for c, _ in searched(ALL[name](VIEWS["listed"], seed), holes)} <= members


def test_what_is_needed_anyway_is_asked_for_at_once() -> None:
    """The first starts, all of them before an answer; the order is that of one question at a time."""
    view = view_of(SECTIONS)
    strategy = ALL["gatlas-nested"](view, 3)
    together = [strategy.ask()]
    assert strategy.window > 1
    together += [strategy.ask() for _ in range(strategy.window - 1)]
    assert [c.text for c in together if c is not None] == [view[k].text for k in view.starts()[: len(together)]]
    for configuration in together:
        assert configuration is not None
        strategy.tell(configuration, bowl(configuration))
    assert strategy.window == 1
    assert strategy.ask() is not None


@pytest.mark.parametrize("large", [False, True])
def test_the_model_begins_with_what_is_written_for_the_device(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of each such section, all of them before an answer, in a space that is listed and in one that is not;
    then it goes through the rest."""
    monkeypatch.setattr("looptune.tune.space.product_view.LISTED", 0 if large else 10**6)
    space = parse(
        """
for gpu
loop i: unroll {2, 4}, jam
where unroll(i) > 2
or
loop j: unroll {2, 4, 8, 16}, {split, contiguous}
or
for cpu
loop i: tile i:{8, 16}
or
for gpu
loop k: rfactor {2, 4, 8}
""",
        "s",
    ).on("gpu")
    for seed in range(3):
        strategy = ALL["model"](space, seed)
        together = [strategy.ask() for _ in range(2)]
        texts = [c.text for c in together if c is not None]
        assert texts[0] == "loop i: unroll 4, jam"
        assert texts[1].startswith("loop k: rfactor")
        for configuration in together:
            assert configuration is not None
            strategy.tell(configuration, 1.0)
        while (another := strategy.ask()) is not None:
            texts.append(another.text)
            strategy.tell(another, 1.0)
        assert len(texts) == len({*texts}) == space.versions


def test_the_starts_are_of_every_structure() -> None:
    """The plainest of all first, then of each set of axes the plainest."""
    view = view_of(SECTIONS)
    starts = view.starts()
    assert starts[0] == view.parts()[0]
    structures = {tuple(d >= 0 for d in view.digits(k)) for k in range(view.size)}
    assert {tuple(d >= 0 for d in view.digits(k)) for k in starts} == structures


def test_one_number_is_traded_for_another() -> None:
    """Where no single change is better and a product of numbers is limited, the best is found all the same."""
    space = parse("loop i: unroll {1, 2, 4, 8, 16}\nloop j: unroll {1, 2, 4, 8, 16}", "s")

    def cost(configuration: Configuration) -> float | None:
        i, j = (int(line.rsplit(" ", 1)[1]) for line in configuration.lines)
        return None if i * j > 16 else 100.0 - i * j + 3.0 * abs(i - 4)

    for seed in range(5):
        found = searched(ALL["jiang-snir"](space, seed), cost, 9)
        assert min(c for _, c in found if c is not None) == best(space, cost) == 84.0


@pytest.mark.skipif(importlib.util.find_spec("pyatf") is None, reason="needs pyatf")
def test_pyatf_leaves_interrupts_to_who_runs_it() -> None:
    """It takes SIGINT as it is imported, which is in a process of its own here."""
    code = (
        "import signal\nbefore = signal.getsignal(signal.SIGINT)\n"
        "from looptune.tune.strategies.pyatf import _interrupts_kept\n"
        "with _interrupts_kept():\n    import pyatf.search_techniques.auc_bandit, sys\n"
        "assert sys.modules['pyatf.tuner'].sigint_handler\n"
        "assert signal.getsignal(signal.SIGINT) is before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
