"""The statistics and the stopping rules, on made-up clocks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from looptune.runtime import timing
from looptune.runtime.outcome import Outcome, Timed, from_json, to_json
from looptune.runtime.timing import finals, paired_speedup, screen, speedup, summary
from tests.helpers.row_factory import FAILED


class Bench:
    """A clock that samplers move: each run takes base_us * (1 + noise)."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self.rng = random.Random(seed)

    def clock(self) -> float:
        return self.now

    def sampler(self, name: str, base_us: float, noise: float = 0.0) -> Callable[[], float]:
        def run() -> float:
            took = base_us * (1 + noise * self.rng.random())
            self.now += took / 1e6
            self.log.append(name)
            return took

        return run


def test_screen_takes_five_of_a_promising_version():
    """Without a best, or near it, all samples are taken."""
    bench = Bench()
    assert screen(bench.sampler("a", 10), None) == (10,) * 5
    assert screen(bench.sampler("a", 10), 6.0) == (10,) * 5


def test_screen_stops_early_when_hopeless():
    """Over twice the best: two samples; over twenty times: one; one slow first run alone condemns nobody."""
    bench = Bench()
    assert len(screen(bench.sampler("a", 21), 10.0)) == 2
    assert len(screen(bench.sampler("a", 300), 10.0)) == 1
    runs = iter([90.0, 10.0, 10.0, 10.0, 10.0])
    assert screen(lambda: next(runs), 10.0) == (90.0, 10.0, 10.0, 10.0, 10.0)


def test_screen_repeats_a_long_run_once():
    """Two runs that took 50 ms together are enough."""
    assert len(screen(Bench().sampler("a", 30_000), None)) == 2
    assert len(screen(Bench().sampler("a", 10_000), None)) == 5


def test_finals_are_paired_and_shuffled():
    """Every round runs each version once, not always in the same order, and the seed fixes the orders."""
    logs = []
    for _ in range(2):
        bench = Bench()
        found = finals({n: bench.sampler(n, 20_000) for n in "abc"}, 7, clock=bench.clock)
        assert list(found) == ["a", "b", "c"]
        assert len({len(times) for times in found.values()}) == 1
        rounds = [tuple(bench.log[k : k + 3]) for k in range(0, len(bench.log), 3)]
        assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
        assert len(set(rounds)) == 6
        logs.append(bench.log)
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("base_us", "noise", "least", "most"),
    [
        (20_000, 0.0, 30, 30),  # quiet: the minimum of rounds
        (100, 0.0, 5000, 5600),  # short: until 0.5 s of runs
        (20_000, 0.5, 30, 30),  # noisy: beside no other there is no verdict to wait for
        (30e6, 0.0, 5, 5),  # 30 s a run: patience ends before 30 rounds
    ],
)
def test_finals_stop(base_us: float, noise: float, least: int, most: int):
    """One version: at least 30 rounds and 0.5 s; very slow runs end at the fewest rounds."""
    bench = Bench()
    found = finals({"a": bench.sampler("a", base_us, noise)}, 1, clock=bench.clock)
    assert least <= len(found["a"]) <= most


def rounds_of(us: dict[str, float], noise: float, default: str | None = None) -> int:
    bench = Bench()
    found = finals({n: bench.sampler(n, t, noise) for n, t in us.items()}, 1, default, clock=bench.clock)
    return len(next(iter(found.values())))


@pytest.mark.parametrize(
    ("other_us", "noise", "least", "most"),
    [
        (20_000, 0.005, 30, 30),  # quiet
        (40_000, 0.5, 30, 30),  # FAST at once
        (20_000, 0.1, 60, 150),  # SAME when there are enough runs, though the spread stays at 8 %
        (20_000, 0.5, 295, 340),  # AMBIGUOUS: until 15 s
        (20_200, 0.02, 350, 400),  # at the very margin the most rounds do not tell: until 15 s
        (10, 0.005, 10_000, 11_000),  # short: the most rounds come before 0.5 s of runs
    ],
)
def test_finals_stop_when_every_verdict_is_decided(other_us: float, noise: float, least: int, most: int) -> None:
    """Two versions, one of 20 ms unless the other is short: rounds end where more of them would tell nothing."""
    assert least <= rounds_of({"a": min(20_000, other_us), "b": other_us}, noise) <= most


def test_finals_decide_beside_the_default_too() -> None:
    """Two versions far behind the fastest, and alike but for the noise: that matters where one is the default."""
    us = {"best": 5_000.0, "default": 20_000.0, "other": 20_000.0}
    assert rounds_of(us, 0.5) == rounds_of(us, 0.5, "no version") < 110
    assert rounds_of(us, 0.5, "default") > 200
    assert rounds_of(us, 0.5, "best") < 110


def test_a_slow_version_is_not_run_for_the_sake_of_a_fast_one() -> None:
    """A default 800 times slower than the fastest: 30 rounds decide, though the fast one has run for 3 ms by then; two
    fast ones that are alike get the rounds it takes to say so."""
    assert rounds_of({"fast": 100.0, "default": 80_000.0}, 0.1, "default") == 30
    assert 60 <= rounds_of({"fast": 100.0, "also": 100.0, "default": 40_000.0}, 0.1, "default") < 300


def test_slow_versions_stop_when_they_are_told_apart() -> None:
    """Rounds of 1.2 s: 15 s of them where one is much the slower, 30 s where the two are alike but for noise."""
    assert rounds_of({"a": 1_000_000.0, "b": 200_000.0}, 0.0, "a") == 13
    assert rounds_of({"a": 600_000.0, "b": 600_000.0}, 0.3, "a") in range(20, 25)


def test_who_is_surely_slower_leaves() -> None:
    """Of those that may; beside the fastest of them, for what is not one of them may be faster than all. The runs of
    the others are the same ones, in pairs."""
    us = {"by hand": 40.0, "good": 100.0, "alike": 100.1, "slow": 103.0, "slower": 150.0, "default": 5_000.0}
    bench = Bench()
    found = finals(
        {n: bench.sampler(n, t, 0.01) for n, t in us.items()}, 1, "default", ("good", "alike", "slow", "slower"),
        clock=bench.clock,
    )  # fmt: skip
    rounds = {name: len(times) for name, times in found.items()}
    assert rounds["slow"] == rounds["slower"] == 30
    assert rounds["good"] == rounds["alike"] == rounds["by hand"] > 300
    assert rounds["default"] == 100, "half a second of it: it is 50 times as slow"
    assert speedup(found["alike"], found["good"], 0).verdict == "SAME"


@pytest.mark.parametrize(("default_us", "rounds"), [(90_000.0, 10), (40_000.0, 13), (5_000.0, 100), (900.0, None)])
def test_what_is_far_behind_is_run_ten_times_and_half_a_second(default_us: float, rounds: int | None) -> None:
    """None: as often as the fastest, of which it is not far behind."""
    bench = Bench()
    us = {"good": 100.0, "alike": 100.05, "default": default_us}
    found = finals(
        {n: bench.sampler(n, t, 0.01) for n, t in us.items()}, 1, "default", ("good", "alike"), clock=bench.clock
    )
    assert len(found["good"]) > (300 if default_us < 10_000 else 29)
    assert len(found["default"]) == (rounds or len(found["good"]))
    assert paired_speedup(found["default"], found["good"], 0) is not None


@pytest.mark.wide
def test_looking_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten versions that cannot be told apart: as rounds pile up, ever fewer pairs are looked at for each."""
    made = []

    def counted(*args: Any, **options: Any) -> timing.Speedup:
        made.append(len(args[0]))
        return speedup(*args, **options)

    monkeypatch.setattr(timing, "speedup", counted)
    rounds = rounds_of({f"v{n}": 500.0 + n for n in range(10)}, 1.0, "v0")
    assert rounds > 1_500
    assert min(made) >= 500
    assert len(set(made)) <= 14
    assert len(made) <= 60


def test_finals_of_nothing():
    """No finalists, no rounds."""
    assert finals({}, 0) == {}


def test_summary():
    """Median and quartiles interpolate linearly."""
    found = summary([1.0, 2.0, 3.0, 4.0])
    assert (found.median_us, found.q1_us, found.q3_us, found.n) == (2.5, 1.75, 3.25, 4)


def noisy(base_us: float, seed: int, drift: list[float], noise: float = 0.02) -> list[float]:
    rng = random.Random(seed)
    return [base_us * d * (1 + noise * rng.random()) for d in drift]


@pytest.mark.parametrize(
    ("other_us", "noise", "verdict"),
    [(50.0, 0.02, "FAST"), (150.0, 0.02, "SLOW"), (100.0, 0.005, "SAME"), (99.0, 0.1, "AMBIGUOUS")],
)
def test_verdicts(other_us: float, noise: float, verdict: str):
    """A clear gain, a clear loss, equality within a percent, and what the noise does not decide."""
    flat = [1.0] * 40
    found = speedup(noisy(100.0, 1, flat, noise), noisy(other_us, 2, flat, noise), seed=3)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert abs(found.ratio - 100.0 / other_us) < 0.05 * found.ratio


def test_a_common_drift_cancels():
    """Both slow down by half on the way: paired rounds still tell 3 per cent apart."""
    drift = [1.0 + 0.5 * k / 60 for k in range(60)]
    base, other = noisy(103.0, 1, drift, 0.0), noisy(100.0, 2, drift, 0.0)
    assert speedup(base, other, seed=1).verdict == "FAST"
    assert speedup(base, sorted(other, reverse=True), seed=1).verdict == "AMBIGUOUS"


def test_the_interval_covers():
    """The 95 % interval holds the true ratio in 95 of 100 experiments, give or take."""
    held = 0
    for seed in range(100):
        rng = random.Random(seed)
        base = [100 * rng.lognormvariate(0, 0.05) for _ in range(40)]
        other = [80 * rng.lognormvariate(0, 0.05) for _ in range(40)]
        found = speedup(base, other, seed, resamples=300)
        held += found.low <= 1.25 <= found.high
    assert 88 <= held <= 100


@pytest.mark.parametrize(
    "outcome",
    [
        Timed((1.0, 2.5), 1.75, 1.0, 2.5, "original, 2 seeds", (("registers", 32), ("clock", "boost"))),
        *FAILED,
    ],
)
def test_outcomes_round_trip(outcome: Outcome):
    """JSON keeps every field of every class."""
    assert from_json(to_json(outcome)) == outcome


@pytest.mark.parametrize("text", ["{}", "[]", '{"status": "no"}', '{"status": "timed"}', "nonsense"])
def test_a_damaged_outcome_is_a_value_error(text: str):
    """What is no outcome is refused, not guessed."""
    with pytest.raises(ValueError, match=r"."):
        from_json(text)
