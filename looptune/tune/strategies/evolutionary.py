"""Evolutionary search: a population with crossover and mutation; the best members survive.

    POPULATION random points, the plainest among them
    child = for each loop the choices of one of two parents, each the best of TOURNAMENT; then one mutation in MUTATED
    a better child replaces the worst member of the population

A child that is no point of the space, or known, is replaced by the nearest point that is neither. After STALE children
in a row that enter no population, the ELITE best and random points are a new population, RESTARTS times; the search
ends earlier when nothing is left.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, ClassVar

from looptune.tune.strategies.base import Best, Search, Sequential, Steps

if TYPE_CHECKING:
    from looptune.tune.space.axes import Axis

POPULATION, TOURNAMENT = 12, 3
MUTATED, NEARBY = 0.6, 0.7
STALE, ELITE, RESTARTS = 30, 2, 20


class Evolutionary(Sequential):
    """A population of points, which are crossed loop by loop and mutated; the best survive."""

    name: ClassVar[str] = "evolutionary"

    def search(self) -> Search:
        if not self.view.size:
            return
        firsts = [*self.view.parts()][:POPULATION]
        for _ in range(1 + RESTARTS):
            firsts += self.random_points(POPULATION - len(firsts))
            yield firsts
            population: list[Best] = []
            for point in dict.fromkeys(firsts):
                population.append((point, (yield point)))
            if not (yield from self._evolve(population)):
                return
            firsts = [point for point, _ in sorted(population, key=lambda member: member[1])[:ELITE]]

    def _evolve(self, population: list[Best]) -> Steps[bool]:
        """Breed until STALE children in a row enter no population; return whether any point is left."""
        stale = 0
        while stale < STALE:
            child = self._child(population)
            if child is None:
                return False
            cost = yield child
            worst = max(range(len(population)), key=lambda k: population[k][1])
            room = len(population) < POPULATION
            if cost < population[worst][1] or (room and cost < inf):
                population[worst : worst + (not room)] = [(child, cost)]
                stale = 0
            else:
                stale += 1
        return True

    def _child(self, population: list[Best]) -> int | None:
        mother, father = self._parent(population), self._parent(population)
        digits = list(self.view.digits(mother))
        other = self.view.digits(self.view.towards(father, mother))
        for group in self.view.groups(mother):
            if self.rng.random() < 0.5:
                for k in group:
                    digits[k] = other[k]
        if self.rng.random() < MUTATED:
            active = [k for k, axis in enumerate(self.view.axes(mother)) if digits[k] >= 0 and len(axis.values) > 1]
            for k in self.rng.sample(active, min(1, len(active))):
                digits[k] = self._mutated(self.view.axes(mother)[k], digits[k])
        return self.view.nearest(mother, digits, self.costs, self.rng)

    def _mutated(self, axis: Axis, digit: int) -> int:
        """Return any other word, or for a quantity mostly a value close by."""
        order = axis.ascending if axis.numeric else range(len(axis.values))
        at, last = order.index(digit), len(order) - 1
        reach = max(1, len(order) // 8) if axis.numeric and self.rng.random() < NEARBY else last
        there = self.rng.randrange(max(0, at - reach), min(last, at + reach))
        return order[there + (there >= at)]

    def _parent(self, population: list[Best]) -> int:
        return min(self.rng.choices(population, k=TOURNAMENT), key=lambda e: e[1])[0]
