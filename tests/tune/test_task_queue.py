"""Who of a pool does what: urgent before usual, and of a group those who have had one of it."""

from __future__ import annotations

from looptune.tune.execution.task_queue import URGENT, Backlog


def known_to_one() -> Backlog:
    """Forty of group "g" less the two that worker 0 has done, the first in 10 s and the next in 1."""
    backlog = Backlog()
    for number in range(40):
        backlog.add(number, group="g")
    for seconds in (10.0, 1.0):
        assert backlog.take(0) is not None
        backlog.record_time(0, "g", seconds)
    return backlog


def test_urgent_tasks_come_first_and_each_rank_in_its_order() -> None:
    backlog = Backlog()
    for name in "abc":
        backlog.add(name)
    backlog.add("u", URGENT)
    assert len(backlog) == 4
    assert [backlog.take(0) for _ in range(5)] == [("u", None), ("a", None), ("b", None), ("c", None), None]


def test_a_group_is_left_to_those_who_have_had_one() -> None:
    backlog = Backlog()
    for number in range(4):
        backlog.add(number, group="g")
    backlog.add("usual")
    assert backlog.take(0) == (0, "g"), "nobody has had one"
    assert backlog.take(1) == ("usual", None)
    assert backlog.take(1) is None, "whether it is worth while to find out as well is not known yet"
    backlog.record_time(0, "g", 10.0)
    backlog.add("usual again")
    assert backlog.take(0) == (1, "g"), "before the usual: the others have that"
    assert backlog.take(1) == ("usual again", None)
    backlog.record_time(0, "g", 1.0)
    assert backlog.take(1) is None, "two wait, a second each: less than the ten of somebody new"


def test_somebody_joins_a_group_that_waits_longer_than_that_takes() -> None:
    backlog = known_to_one()
    assert backlog.take(1) == (2, "g"), "38 seconds are left"
    backlog.record_time(1, "g", 12.0)
    assert backlog.take(2) == (3, "g"), "of two, 18 for each"
    assert backlog.take(3) == (4, "g"), "of three, 12: what the second one took at first says nothing of the others"
    assert backlog.take(4) is None, "of four 9"


def test_the_group_that_nobody_knows_is_taken_before_one_that_waits() -> None:
    backlog = known_to_one()
    backlog.add("first", group="new")
    assert backlog.take(1) == ("first", "new")
    assert backlog.take(2) == (2, "g")


def test_nothing_is_left_after_it_is_cleared() -> None:
    backlog = Backlog()
    backlog.add("a")
    backlog.add("b", group="g")
    backlog.clear()
    assert len(backlog) == 0
    assert backlog.take(0) is None
