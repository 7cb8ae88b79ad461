"""Views of a space: digits and numbers are one to one, moves stay inside and change what they say."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.core.source import NOWHERE
from looptune.tune.space import template
from looptune.tune.space.axes import axes_of, pack, unpack
from looptune.tune.space.product_view import Product, view_of
from looptune.tune.space.space import Configuration, parse
from looptune.tune.space.table_view import Table, coordinates
from looptune.tune.space.view import SpaceView
from tests.helpers.synthetic_costs import LARGE, SECTIONS

VIEWS = {"listed": view_of(SECTIONS), "product": Product(SECTIONS)}


def _texts(depth: int) -> st.SearchStrategy[str]:
    """Templates whose choices nest ``depth`` deep."""
    word = st.sampled_from(["a", "b 3", "c, d"])
    items = st.lists(st.sampled_from(["1..4", "2..9 by 3", "7", "x"]), min_size=1, max_size=3).map(", ".join)
    if depth == 0:
        return word
    inside = _texts(depth - 1)
    bars = st.lists(inside | st.just(""), min_size=2, max_size=3).map(" | ".join)
    return st.tuples(word, items | bars, inside).map(lambda t: f"unroll {t[0]} {{{t[1]}}} {t[2]}")


@settings(deadline=None)
@given(_texts(2), st.data())
def test_digits_are_one_to_one_with_numbers(text: str, data: st.DataObject):
    """Each number has digits of its own, which lead back to it; -1 exactly where the axis is not active."""
    made = template.parse(text, NOWHERE)
    axes = axes_of([(made, "k", lambda directive: directive)])
    seen = set()
    for index in range(min(made.size, 60)):
        digits = tuple(unpack(made, index))
        assert pack(made, iter(digits)) == index
        assert len(digits) == len(axes)
        for axis, digit in zip(axes, digits, strict=True):
            active = axis.within is None or digits[axis.within[0]] == axis.within[1]
            assert (0 <= digit < len(axis.values)) if active else digit == -1
        seen.add(digits)
    assert len(seen) == min(made.size, 60)


def test_axes_are_named_and_valued_as_slots_are():
    """What a configuration's slots say, its active axes say, in the same order."""
    view = Product(SECTIONS)
    for index in range(view.size):
        configuration = view[index]
        if configuration is not None:
            active = zip(view.axes(index), view.digits(index), strict=True)
            assert [(a.name, a.values[d]) for a, d in active if d >= 0] == list(configuration.slots)


@pytest.mark.parametrize("name", VIEWS)
def test_a_move_changes_the_axis_and_what_hangs_on_it(name: str):
    """The axis has the digit asked for; of other loops nothing changes."""
    view = VIEWS[name]
    for index in range(0, view.size, 3):
        axes, digits = view.axes(index), view.digits(index)
        for k, axis in enumerate(axes):
            for digit in range(len(axis.values) if digits[k] >= 0 else 0):
                there = view.moved(index, k, digit)
                if there is None:
                    continue
                after = view.digits(there)
                assert after[k] == digit
                assert all(after[j] == digits[j] for j, other in enumerate(axes) if other.group != axis.group)


@pytest.mark.parametrize("name", VIEWS)
def test_varying_is_what_brute_force_finds(name: str):
    """All points that agree outside the axes, each once, the point itself among them."""
    view = VIEWS[name]
    for index in range(0, view.size, 5):
        for group in view.groups(index):
            found = list(view.varying(index, group))
            here = view.digits(index)
            alike = [
                k for k in range(view.size)
                if view.axes(k) == view.axes(index)
                and all(a == b for j, (a, b) in enumerate(zip(view.digits(k), here, strict=True)) if j not in group)
            ]  # fmt: skip
            assert sorted(found) == alike
            assert index in found


@pytest.mark.parametrize("view", [*VIEWS.values(), view_of(LARGE)], ids=[*VIEWS, "large"])
def test_near_points_are_others_each_once(view: SpaceView):
    """None is the point itself, none comes twice, all are numbers of the space; equal seeds give equal orders."""
    for index in (0, view.size // 2, view.size - 1):
        found = list(view.near(index, random.Random(4)))
        assert index not in found
        assert len(set(found)) == len(found) > 0
        assert all(0 <= k < view.size for k in found)
        assert found == list(view.near(index, random.Random(4)))


@pytest.mark.parametrize("name", VIEWS)
def test_the_nearest_to_a_points_own_digits_is_that_point(name: str):
    """And where it is taken, another that is not, until none is left."""
    view, rng = VIEWS[name], random.Random(1)
    allowed = [k for k in range(view.size) if view[k] is not None]
    for index in allowed[::7]:
        assert view.nearest(index, view.digits(index), (), rng) == index
        assert view.nearest(index, view.digits(index), {index}, rng) not in (index, None)
    assert view.nearest(allowed[0], view.digits(allowed[0]), set(range(view.size)), rng) is None


def test_starts_reach_every_row():
    """From the starts, changes of one loop at a time come to all rows of a table; the plainest is the first."""
    rows = [
        "",
        "loop i: unroll 2",
        "loop i: unroll 4",
        "loop i: unroll 2\nloop j: tile j:2\ncodelet: grid blocksize 8x8",
    ]
    table = Table(Configuration(tuple(r.splitlines())) for r in rows)
    reached: set[int] = set()
    waiting = list(table.starts())
    assert waiting[0] == 0
    while waiting:
        k = waiting.pop()
        if k not in reached:
            reached.add(k)
            waiting += [p for group in table.groups(k) for p in table.varying(k, group)]
    assert reached == set(range(4))


def test_a_small_space_is_listed_once_each_and_a_large_one_is_not():
    """Equal texts of several sections are one row; of millions there is no list."""
    assert view_of(parse("loop k: unroll {2, 4}\nor\nloop k: unroll {4, 8}", "s")).size == 3
    assert view_of(LARGE).size == LARGE.size == 2_000_000
    assert view_of(view_of(LARGE)) is not None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((), {}),
        (("loop 2.1: tile i:4, j:8",), {"loop 2.1": "tile i:#, j:#", "tile(2.1)": 4, "tile(2.1).2": 8}),
        (("nest i: permute i2, j",), {"nest i": "permute i2, j"}),
        (("codelet: grid blocksize 64X4",), {"codelet": "grid blocksize # x #", "blocksize": 64, "blocksize.2": 4}),
        (("loop i: distribute", "loop i: unroll 2"), {"loop i": "distribute; unroll #", "unroll(i)": 2}),
    ],
)
def test_coordinates_are_read_off_the_text(lines: tuple[str, ...], expected: dict[str, object]):
    """Numbers are quantities, the rest is words; names with digits in them are no numbers."""
    assert coordinates(Configuration(lines))[0] == expected
