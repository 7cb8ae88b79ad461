"""The space language: what is enumerated, in which order, and what is refused where."""

from __future__ import annotations

import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptune.core.errors import LooptuneError, ParseError
from looptune.ir.nodes import Arg
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space.space import DEFAULT, Configuration, parse


def texts(source: str) -> list[str]:
    return [c.text for c in parse(source, "s.space")]


def test_the_last_choice_turns_fastest():
    """Configurations come in the order written, as digits of a mixed-radix number."""
    found = texts("loop k: unroll {2..3}, {contiguous, split}\nnest i: permute {i, j | j, i}")
    assert found == [
        f"loop k: unroll {u}, {how}\nnest i: permute {order}"
        for u in (2, 3)
        for how in ("contiguous", "split")
        for order in ("i, j", "j, i")
    ]


def test_alternatives_nest_and_may_be_empty():
    """An alternative may hold choices; an empty one leaves its line out, so all empty is the default configuration."""
    space = parse("loop k: { unroll {2..8}, {contiguous, split}, {remainder, guarded} | tile k:{2..8} | }", "s")
    found = [c.text for c in space]
    assert space.size == len(found) == 7 * 4 + 7 + 1
    assert found[0] == "loop k: unroll 2, contiguous, remainder"
    assert found[28:30] == ["loop k: tile k:2", "loop k: tile k:3"]
    assert list(space)[-1] == DEFAULT == Configuration()


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("unroll {1..8 by 3}", ["unroll 1", "unroll 4", "unroll 7"]),
        ("unroll {1, 4..6, 16}", ["unroll 1", "unroll 4", "unroll 5", "unroll 6", "unroll 16"]),
        ("unroll 4{, jam | }", ["unroll 4, jam", "unroll 4"]),
        ("unroll 4 , {jam | } ,  {split|}", ["unroll 4, jam, split", "unroll 4, jam", "unroll 4, split", "unroll 4"]),
        ("{ gridify(i,j), parallel }", ["gridify(i, j)", "parallel"]),
        ("tile i : {2,4}, j:{8}", ["tile i:2, j:8", "tile i:4, j:8"]),
        ("{ unroll {2, 4}, {jam, noJam} }", ["unroll 2, jam", "unroll 2, noJam", "unroll 4, jam", "unroll 4, noJam"]),
        ("{parallel, noParallel}", ["parallel", "noParallel"]),
        ("{unroll {2, 3}|{parallel|noParallel}}", ["unroll 2", "unroll 3", "parallel", "noParallel"]),
    ],
)
def test_templates(template: str, expected: list[str]):
    """Ranges, lists, optional parts and brackets inside a choice give exactly these texts, canonically spaced."""
    assert texts(f"loop i: {template}") == [f"loop i: {text}" for text in expected]


def test_a_line_may_name_several_loops():
    """Each gets the directive chosen, as a line of its own; the choice is counted once, and none leaves no line."""
    space = parse("loop 3, j , 9: { unroll {2..3} | }\nnest 1,4: permute {i, j | j, i}\nwhere unroll(9) == 3", "s")
    assert space.size == 6
    assert space.versions == len(list(space))
    assert [c.lines for c in space] == [
        tuple(f"loop {k}: unroll 3" for k in ("3", "j", "9")) + tuple(f"nest {k}: permute {order}" for k in (1, 4))
        for order in ("i, j", "j, i")
    ]
    chosen = space[2]
    assert chosen is not None
    assert dict(chosen.slots)["unroll(3, j, 9)"] == 3


def test_sections_are_a_union():
    """`or` separates products; constraints stay in their section."""
    found = texts("loop i: unroll {1..4}\nwhere unroll(i) > 2\nOR\ncodelet: grid blocksize {32x8, 16x16}  # or this\n")
    assert found == [
        "loop i: unroll 3",
        "loop i: unroll 4",
        "codelet: grid blocksize 32x8",
        "codelet: grid blocksize 16x16",
    ]


def test_an_empty_file_is_the_default_configuration():
    """No lines: the product of nothing, one configuration without directives."""
    assert list(parse("# nothing\n\n", "s")) == [DEFAULT]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("unroll(i) * unroll(j) <= 4", [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)]),
        ("unroll(i) % 2 == 0 and not unroll(j) > 1", [(2, 1), (4, 1)]),
        ("1 < unroll(i) < 3 and unroll(j) // 2 == 2", [(2, 4)]),
        ("unroll(i) - unroll(j) == -(1 + 2)", [(1, 4)]),
        ("UNROLL(i) == unroll(j) or tile(i) != 1", [(1, 1), (2, 2), (3, 3), (4, 4)]),
        ("unroll(i) > 3 and 12 % (unroll(i) - 1) == 0 and unroll(j) == 1", [(4, 1)]),
    ],
)
def test_constraints(condition: str, kept: list[tuple[int, int]]):
    """A constraint keeps what its arithmetic says; an absent directive is 1; `and` does not look past a false part."""
    found = texts(f"loop i: unroll {{1..4}}\nloop j: unroll {{1..4}}\nwhere {condition}")
    assert [tuple(int(n) for n in re.findall(r"unroll (\d)", text)) for text in found] == kept


def test_constraints_see_every_kind_of_directive():
    """Numbers of keyed arguments, block sizes by axis, orders as words and loops by number."""
    source = (
        "loop 3: { unroll 8 | tile k:{2, 4} }\ncodelet: grid blocksize {32x8, 64x4}\nnest i: permute {i,k | k,i}\n"
        'where tile(k) == 4 and blocksize(0) == 64 and blocksize(1) < 8 and permute(i) == "k,  i"\nwhere tile(3) == 4'
    )
    assert texts(source) == ["loop 3: tile k:4\ncodelet: grid blocksize 64x4\nnest i: permute k, i"]


def test_a_condition_on_what_nobody_says_is_warned_of():
    """A name no line can give is always 1: legal, and said."""
    space = parse("loop i: unroll {1..2}\nwhere unroll(i) * unroll(q) <= 1", "s")
    assert [c.text for c in space] == ["loop i: unroll 1"]
    assert len(space.warnings) == 1
    assert space.warnings[0].startswith("s:2:7: unroll(q) is always 1")


@pytest.mark.parametrize(
    ("source", "message", "place"),
    [
        ("loop k: unroll {1..8", "this { is not closed", "s:1:16"),
        ("loop k: unroll 1..8}", "this } closes no {", "s:1:20"),
        ("loop k: unroll 1 | tile 2", "alternatives stand in braces", "s:1:18"),
        ("\n  loop k: unroll {8..1}", "the range 8..1 is empty", "s:2:19"),
        ("loop k: unroll {1..8 by 0}", "step 0", "s:1:17"),
        ("loop k: unroll {1..}", "invalid range `1..`", "s:1:17"),
        ("loop k: unroll {1, , 2}", "an empty item", "s:1:19"),
        ("loop k: unroll {}", "an empty item", "s:1:17"),
        ("loop k:", "a directive is missing", "s:1:1"),
        ("loops k: unroll 2", "expected `loop NAME", "s:1:1"),
        ("loop 3, 3: unroll 2", "loop 3 is listed twice", "s:1:1"),
        ("loop 3, : unroll 2", "expected `loop NAME", "s:1:1"),
        ("loop 3, 6:", "a directive is missing", "s:1:1"),
        ("unroll 2", "expected `loop NAME", "s:1:1"),
        ("loop k: unroll 2\nfor tpu", "a section is for one of: cpu, gpu", "s:2:5"),
        ("for gpu\nloop k: unroll 2\nFOR cpu", "this section is for gpu already", "s:3:1"),
        ("loop k: { unroll 2 | un(roll }", "(chosen: `un(roll`)", "s:1:9"),
        ("loop k: unroll {1..4}, {jam, $}", "unexpected '$'", "s:1:9"),
        ("loop k: unroll 2\nwhere unroll(k) <", "is not a condition", "s:2:7"),
        ("loop k: unroll 2\nwhere unroll(k) / 2 == 1", "outside the language of conditions", "s:2:7"),
        ("loop k: unroll 2\nwhere __import__('os').system('true')", "a call is directive(loop)", "s:2:7"),
        ("loop k: unroll 2\nwhere [].__class__", "outside the language", "s:2:7"),
        ("loop k: unroll 2\nwhere unroll(k, 2)", "a call is directive(loop)", "s:2:7"),
        ("loop k: unroll 2\nwhere 1.5 < unroll(k)", "outside the language", "s:2:7"),
        ("loop k: unroll 2\nwhere " + "(" * 300 + "1" + ")" * 300, "is not a condition", "s:2:7"),
        ("loop k: unroll 2\nwhere " + "1+" * 2000 + "1", "at most 300 parts", "s:2:7"),
        ("loop k: unroll " + "{" * 300 + "2" + "}" * 300, "nest deeper", "s:1:56"),
    ],
)
def test_refusals_point_at_the_place(source: str, message: str, place: str):
    """A malformed space is a ParseError with file, line and column, never another exception."""
    with pytest.raises(ParseError) as refused:
        parse(source, "s")
    assert message in refused.value.message
    assert str(refused.value).startswith(f"{place}: ")


def test_sections_for_a_device() -> None:
    """A file has all; tuned for a device, those for others are left out, and numbers follow."""
    space = parse("loop k: unroll {2..3}\nor\nfor gpu\nloop k: stage A\nor\nloop k: tile k:4\nfor CPU", "s")
    found = {device: [c.text.partition(": ")[2] for c in space.on(device)] for device in ("cpu", "gpu")}
    assert found == {"cpu": ["unroll 2", "unroll 3", "tile k:4"], "gpu": ["unroll 2", "unroll 3", "stage A"]}
    assert (space.size, space.on("gpu").size) == (4, 3)


@pytest.mark.parametrize("condition", ["1 // (unroll(k) - 2)", "unroll(k) % (unroll(k) - 2) == 0", 'permute(k) < "a"'])
def test_a_condition_without_a_value_says_so(condition: str):
    """Division by zero and unordered operands are ParseErrors where they happen."""
    with pytest.raises(ParseError, match=r"^s:2:\d+: (division by zero|.* cannot be compared)"):
        list(parse(f"loop k: unroll {{1..4}}\nwhere {condition}", "s"))


def test_a_huge_space_is_never_stored():
    """10^36 configurations: exact size and random access at once."""
    space = parse("\n".join(f"loop i{n}: unroll {{1..1000000}}" for n in range(6)), "s")
    assert space.size == 10**36
    last = space[10**36 - 1]
    assert last is not None
    assert last.lines[-1] == "loop i5: unroll 1000000"
    assert [c.lines[-1] for c in islice(space, 2)] == ["loop i5: unroll 1", "loop i5: unroll 2"]
    with pytest.raises(IndexError):
        space[10**36]
    with pytest.raises(IndexError):
        space[-1]


choices = st.recursive(
    st.one_of(
        st.integers(1, 9).map(str), st.tuples(st.integers(1, 3), st.integers(3, 5)).map(lambda r: f"{r[0]}..{r[1]}")
    ),
    lambda inner: st.lists(inner.map(lambda x: "{" + x + "}" if ".." in x else x), min_size=2, max_size=3).map(
        lambda xs: "{" + " | ".join(xs) + "}"
    ),
    max_leaves=6,
)


@pytest.mark.wide
@given(st.lists(choices, min_size=1, max_size=3))
def test_random_access_is_the_enumeration(slots: list[str]):
    """space[n] is the n-th of the iteration, whose length is size, and slots hold the values that made it."""
    lines = [f"loop i{n}: unroll {{{slot}}}" for n, slot in enumerate(slots)]
    space = parse("\n".join(lines) + "\nor\n" + lines[0], "s")
    listed = list(space)
    assert len(listed) == space.size
    assert listed == [space[n] for n in range(space.size)]
    for configuration in listed:
        numbers = {value for _, value in configuration.slots if isinstance(value, int)}
        assert {int(line.split()[-1]) for line in configuration.lines} <= numbers


def test_slots_are_named_after_directives():
    """unroll(k), its second choice unroll(k).2; a choice among directives by its place; the codelet's without loop."""
    space = parse(
        "loop k: { unroll {2..3}, {jam|} | }\nnest i: permute {i,j|j,i}\ncodelet: grid blocksize {32x8,8x8}", "s"
    )
    configuration = space[0]
    assert configuration is not None
    assert configuration.slots == (
        ("loop k", "unroll {2..3}, {jam|}"),
        ("unroll(k)", 2),
        ("unroll(k).2", "jam"),
        ("permute(i)", "i,j"),
        ("blocksize", "32x8"),
    )


def test_every_line_can_be_pasted_back():
    """The text of a configuration is a space of exactly that configuration, and parses as placed directives."""
    source = "loop k: { unroll {2..4}, {contiguous,split} | tile k:{2..3} | }\ncodelet: grid blocksize {32x8,8 X 8}"
    for configuration in parse(source, "s"):
        assert [c.text for c in parse(configuration.text, "t")] == [configuration.text]
        assert len(parse_lines(configuration.lines)) == len(configuration.lines)


def test_placed_directives():
    """Concrete lines, several in one text, comments and numbers as addresses."""
    placed = parse_lines(
        ["loop k: unroll 3, split  # by variable\n\n# nothing\nLoop 3: parallel", "codelet:grid blocksize 8x4"]
    )
    assert [(p.where, p.loop, p.directive.name) for p in placed] == [
        ("loop", "k", "unroll"),
        ("loop", "3", "parallel"),
        ("codelet", "", "grid"),
    ]
    assert placed[0].directive.args == (Arg("", (3,)), Arg("split"))
    assert placed[0].directive.span.col == 9


@pytest.mark.parametrize(
    "line", ["unroll 3", "loop: unroll 3", "loop k unroll 3", "loop k:", "codelet 3: grid", "nest : permute i"]
)
def test_misplaced_directives_are_refused(line: str):
    """A line without its place is a one-line message with the option's name."""
    with pytest.raises(ParseError, match=r"^--directive:1:1: "):
        parse_lines([line])


@given(st.text(alphabet="{}|,.()1238 abklop:inrtuwhe\n#<=x\"'\x00", max_size=60))
def test_any_text_is_a_space_or_refused(source: str):
    """No text makes the parser fail in another way than a LooptuneError."""
    try:
        list(islice(parse(source, "s"), 20))
        list(islice(parse(f"loop k: unroll {{1..2}}\nwhere {source}", "s"), 20))
    except LooptuneError:
        pass
