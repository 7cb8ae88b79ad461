"""Strategies: each configuration once, in an order that the seed fixes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptune.tune.space import Configuration, Space, parse
from looptune.tune.strategies import ALL, Strategy
from looptune.tune.strategies.random import permuted

SPACE = parse("loop i: unroll {1..7}\nloop j: unroll {1..9}\nwhere unroll(i) <= unroll(j)\nor\ncodelet: parallel", "s")


def asked(strategy: Strategy, most: int = 1000) -> list[Configuration]:
    found: list[Configuration] = []
    while len(found) < most and (configuration := strategy.ask()) is not None:
        strategy.tell(configuration, float(len(found)))
        found.append(configuration)
    return found


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_allowed_configuration_once(name: str):
    """What is asked for is the space itself: nothing forbidden, nothing twice, nothing left out; then None for good."""
    strategy = ALL[name](SPACE, 3)
    found = asked(strategy)
    assert sorted(c.text for c in found) == sorted(c.text for c in SPACE)
    assert strategy.ask() is None
    assert strategy.ask() is None


@pytest.mark.parametrize("name", sorted(ALL))
def test_replayable(name: str):
    """Equal seeds ask in equal order."""
    assert asked(ALL[name](SPACE, 5)) == asked(ALL[name](SPACE, 5))


def test_seeds_differ_and_random_is_no_enumeration():
    """Another seed is another order, and none is the exhaustive one."""
    orders = {tuple(c.text for c in asked(ALL["random"](SPACE, seed))) for seed in range(10)}
    assert len(orders) == 10
    assert tuple(c.text for c in asked(ALL["exhaustive"](SPACE))) not in orders


@given(st.integers(1, 400), st.integers(-(2**40), 2**40))
def test_permuted_is_a_permutation(size: int, seed: int):
    """Every index of range(size) exactly once."""
    assert sorted(permuted(n, size, seed) for n in range(size)) == list(range(size))


def test_permuted_is_uniform():
    """Over many seeds each place holds each index about equally often (chi-square, 6 degrees of freedom)."""
    size, trials = 7, 2100
    for place in range(size):
        counts = [0] * size
        for seed in range(trials):
            counts[permuted(place, size, seed)] += 1
        assert sum((c - trials / size) ** 2 / (trials / size) for c in counts) < 35


def test_a_huge_space_is_sampled_at_once():
    """10^30 points: a hundred distinct ones in well under a second."""
    space: Space = parse("\n".join(f"loop i{n}: unroll {{1..1000000}}" for n in range(5)), "s")
    start = time.perf_counter()
    assert len({c.text for c in asked(ALL["random"](space, 1), 100)}) == 100
    assert time.perf_counter() - start < 1.0
