"""Rows of a results database, made up: one search with an outcome of every class, and any number of odd ones."""

from __future__ import annotations

from dataclasses import fields, replace

from hypothesis import strategies as st

from looptune.runtime.outcome import (
    Crashed,
    CutOff,
    Illegal,
    NotBuilt,
    Outcome,
    OverLimit,
    Timed,
    TimedOut,
    WrongResult,
)
from looptune.tune.store.searches import Search, searches
from looptune.tune.store.store import Context, Row, canonical_json, key

CONTEXT = Context(
    "gemm", "c0ffee", "6", '{"numba": "0.68"}', "sm_90", "NVIDIA H200", "numba-cuda",
    canonical_json({"alpha": 1.5, "ni": 512, "nj": 256, "nk": 128}), "float32",
)  # fmt: skip
BEGUN = 1.79e9


def timed(median_us: float, *runs_us: float, compile_s: float | None = 0.5) -> Timed:
    facts = () if compile_s is None else (("compile_s", compile_s), ("registers", 32), ("verify_s", 0.25))
    return Timed(runs_us if runs_us else (median_us,) * 3, median_us, median_us, median_us, "original", facts)


def cut_off(elapsed_us: float, best_at_cutoff_us: float | None = None) -> CutOff:
    return CutOff(elapsed_us, 10.0, 1, 3, "original", (("compile_s", 0.5),), best_at_cutoff_us, "")


def row(text: str, outcome: Outcome | None, context: Context = CONTEXT, **changes: object) -> Row:
    status = "duplicate" if outcome is None else outcome.status
    made = Row(context, text, sweep="s", status=status, outcome=outcome, started=BEGUN, finished=BEGUN + 2.0)
    return replace(made, **changes)  # type: ignore[arg-type]


FAILED = (
    Illegal("iteration (i=1) must run before (i=2)"),
    NotBuilt("ptxas: \u201cno\u201d"),
    OverLimit("needs 2048 threads per block, the limit is 1024"),
    WrongResult("C[1][2]: got 1, expected 2"),
    Crashed("SIGSEGV\nline"),
    TimedOut(2.5),
)
"""An outcome of every class that has no time."""
FAILING = (*(f"loop k: unroll {n}" for n in (5, 6, 7)), *(f"loop j: unroll {n}" for n in (2, 3, 4)))
ROWS = (
    row("", timed(40.0), role="default", emitted="a"),
    row("loop k: unroll 4, split\nnest i: permute i, k, j", timed(20.0, 19.0, 20.0, 30.0), emitted="b"),
    row("loop k: unroll 8, split\nnest i: permute i, k, j", timed(25.0, compile_s=None), emitted="c"),
    row("loop k: unroll 8, split\nnest i: permute k, i, j", cut_off(90.0), emitted="d"),
    row("loop k: unroll 2\ncodelet: grid blocksize 32x8", cut_off(30.0, 15.0), emitted="e"),
    row("loop k: unroll 3\ncodelet: grid blocksize 32x8", None, same_as=key(CONTEXT, ""), emitted="a"),
    *(row(text, outcome) for text, outcome in zip(FAILING, FAILED, strict=True)),
    row("", timed(40.0), role="final"),
    row("loop j: unroll 5", None, status="running"),
)
"""One search of twelve versions; the best takes 20 us."""


def search() -> Search:
    return searches(ROWS)[0]


_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
_US = st.floats(1e-3, 1e9)
_DIRECTIVES = st.sampled_from(
    (
        "unroll 4, jam",
        "unroll 8, jam",
        "tile i:4, j:8",
        "permute i, j",
        "grid blocksize 32x8",
        "rfactor 4",
        "a, 'b\\' \"c",
    )
)
_PLACES = st.sampled_from(("loop i", "loop 2.1", "nest time", "codelet", "loop params", "nest é"))
_LINES = st.one_of(
    st.builds("{}: {}".format, _PLACES, _DIRECTIVES),
    _TEXTS.filter(lambda text: len(f"{text}x".splitlines()) == 1 and text),
)
_MESSAGES = st.sampled_from((Illegal, NotBuilt, OverLimit, WrongResult, Crashed))
_OUTCOMES = st.one_of(
    st.builds(
        lambda us, runs, s: timed(us, *runs, compile_s=s), _US, st.lists(_US, max_size=3), st.none() | st.floats(0, 9)
    ),
    st.builds(cut_off, _US, st.none() | _US),
    st.builds(lambda kind, text: kind(text), _MESSAGES, _TEXTS),
    st.just(TimedOut(2.5)),
    st.none(),
)
_SIZES = st.dictionaries(_TEXTS, st.integers(1, 2**40) | st.floats(0, 9), max_size=4).map(canonical_json)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Of one to three contexts, with names of any characters; a duplicate's original may be missing."""
    made: list[Row] = []
    contexts = st.builds(Context, **{f.name: _SIZES if f.name == "sizes" else _TEXTS for f in fields(Context)})
    for context in draw(
        st.lists(contexts.map(lambda c: replace(c, options="{}")), min_size=1, max_size=3, unique=True)
    ):
        texts = draw(st.lists(st.lists(_LINES, max_size=3).map("\n".join), min_size=1, max_size=6, unique=True))
        for text in texts:
            outcome = draw(_OUTCOMES)
            source = draw(st.sampled_from(("", "a", "b"))) if outcome is None else key(context, text)
            of = draw(st.sampled_from(texts)) if outcome is None else None
            same_as = None if of is None or of == text else key(context, of)
            made.append(row(text, outcome, context, emitted=source, same_as=same_as))
    return made
