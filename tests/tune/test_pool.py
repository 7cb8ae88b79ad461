"""A pool: urgent tasks before usual ones, and those of a group for workers that have had one of it."""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

from looptune.runtime.outcome import Crashed
from looptune.tune.execution.lab import LAST
from looptune.tune.execution.pool import URGENT, Backlog, Pool
from looptune.tune.execution.worker import Reply, wait
from tests.helpers.worker_tasks import setup


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


def test_what_comes_last_waits_for_all_others() -> None:
    backlog = Backlog()
    backlog.add("last", order=LAST)
    backlog.add("late", order=(True, 1e9))
    backlog.add("grouped", group="g")
    assert len(backlog) == 3
    assert [backlog.take(0) for _ in range(2)] == [("grouped", "g"), ("late", None)]
    assert backlog.take(0, last=False) is None
    assert backlog.take(0) == ("last", None)
    backlog.add("dropped", order=LAST)
    backlog.clear()
    assert not backlog


def test_some_workers_are_left_to_what_comes_before_the_last() -> None:
    with Pool(setup, 4, 60.0) as pool:
        for number in range(4):
            pool.submit(number, "sleep", 60.0, order=LAST)
        assert [worker.idle for worker in pool.workers] == [False, False, False, True]
        pool.submit("usual", "sleep", 60.0)
        assert pool.workers[3].idle is False


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


def test_usual_tasks_are_taken_by_their_order_and_may_be_withdrawn() -> None:
    """Those of one order stay as they came; urgent ones and those of a group are not withdrawn."""
    backlog = Backlog()
    for order, name in enumerate("abcd"):
        backlog.add((name, ()), order=((False, 3.0), (False, 1.0), (False, 2.0), (False, 1.0))[order])
    backlog.add(("a", ()), URGENT)
    assert (backlog.withdraw("a"), backlog.withdraw("a"), len(backlog)) == (1, 0, 4)
    assert [backlog.take(0) for _ in range(5)] == [((name, ()), None) for name in "abdc"] + [None]


def test_a_large_pool_begins_a_group_with_several_workers() -> None:
    """They judge its versions before it is known how long that takes."""
    backlog = Backlog(founders=2)
    for number in range(4):
        backlog.add(number, group="g")
    assert [backlog.take(worker) for worker in range(3)] == [(0, "g"), (1, "g"), None]


def test_a_pool_runs_everything_at_once():
    """More tasks than workers, some deadly: one reply for each key, from two processes at the same time."""
    with Pool(setup, 2, limit_s=5.0) as pool:
        for n in range(8):
            pool.submit(n, *(("kill", signal.SIGKILL) if n == 3 else ("sleep", 0.05)))
        assert pool.load == 8
        replies: dict[int, Reply] = {}
        while pool.load:
            for _, key, reply in wait(pool.workers):
                replies[key] = reply
            pool.dispatch()
    assert sorted(replies) == list(range(8))
    assert [n for n, reply in replies.items() if isinstance(reply, Crashed)] == [3]


def test_a_pool_keeps_to_its_limit() -> None:
    """Lowered while three are busy, it lets two end before it hands out more; raised again, all three are busy."""
    with Pool(partial(setup, 100), 3, limit_s=30.0) as pool:
        for number in range(6):
            pool.submit(number, "sleep", 0.3)
        assert [worker.idle for worker in pool.workers] == [False] * 3
        pool.limit = 1
        done: list[Any] = []
        while len(done) < 4:
            done += [key for _, key, _ in wait(pool.workers)]
            pool.dispatch()
            busy = sum(not worker.idle for worker in pool.workers)
            assert busy <= max(1, 3 - len(done))
        assert sorted(done) == [0, 1, 2, 3]
        pool.limit = 3
        for number in range(6, 9):
            pool.submit(number, "sleep", 0.1)
        assert sum(not worker.idle for worker in pool.workers) == 3
