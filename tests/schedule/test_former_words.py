"""Words of directives that had another name in the release before mean the same wherever directives are written."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import looptune
from looptune.cli.main import cli
from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.schedule import directives
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import canonical_text, current_text, parse_lines, renamed_words
from looptune.schedule.messages import directive_text
from looptune.tune.formats import records, t1
from looptune.tune.formats.json_cursor import JsonCursor
from looptune.tune.space import space
from looptune.tune.space.pragma_choices import check_choices_decided
from looptune.tune.store.searches import by_context
from looptune.tune.store.source_hash import source_hash
from looptune.tune.store.store import Store, key
from tests.helpers.store_rows import CONTEXT, row, timed

SUMS = "for (int i = 0; i < n; i++)\n    {}\n    for (int j = 0; j < n; j++)\n      y[i] += A[i][j];"
ROWS = (
    "{}\n  for (int i = 0; i < n; i++)\n    for (int j = 0; j < n; j++)\n      "
    "A[i][j] = A[i][j] < y[j] ? A[i][j] : y[j];"
)
ANY = "{}\n  for (int i = 0; i < n; i++)\n    y[k[i]] = 1;"

WORDS = {
    "split": (SUMS, "loop j: ", "split 4", "rfactor 4", "the directive split is now rfactor"),
    "raster": (ROWS, "codelet: ", "raster 8", "swizzle 8", "the directive raster is now swizzle"),
    "noNaN": (ROWS, "codelet: ", "noNaN", "nnan", "the directive nonan is now nnan"),
    "turned": (SUMS, "loop j: ", "stage A, turned(A)", "stage A, transposed(A)", "turned of stage is now transposed"),
    "runs": (ROWS, "loop i: ", "unroll 8, split, runs 4", "unroll 8, split, vector 4", "runs of unroll is now vector"),
    "trust": (ANY, "loop i: ", "parallel, trust", "parallel, assume", "trust of parallel is now assume"),
}
"""Of each word the loops, the place, the directive as it was and as it is, and what is said of it."""

each = pytest.mark.parametrize(("loops", "place", "old", "new", "said"), WORDS.values(), ids=list(WORDS))


def program(loops: str, directive: str = "") -> str:
    pragma = f"#pragma looptune {directive}" if directive else ""
    return f"void f(int n, float A[n][n], float y[n], int k[n])\n{{\n  {loops.format(pragma)}\n}}\n"


def test_every_former_word_is_tried() -> None:
    """Those that the directives list; none of them is the present name of a directive."""
    listed = {old: t.name for t in directives.ALL for old in t.former}
    assert listed.keys() == {word.lower() for word in WORDS}
    assert not listed.keys() & set(directives.names())


@pytest.mark.parametrize("word", ["raster", "nonan", "turned", "trust"])
def test_a_former_word_is_in_one_file(word: str) -> None:
    """That of its directive, as a text of its own."""
    files = [path for path in Path(looptune.__file__).parent.rglob("*.py") if f'"{word}"' in path.read_text()]
    assert [path.parent.name for path in files if path.name != "__init__.py"] == ["directives"]


@each
def test_lines_outside_the_file(loops: str, place: str, old: str, new: str, said: str) -> None:
    """What --directive and ``compile`` take: the same directive, in present words wherever it is printed."""
    assert parse_lines([place + old]) == parse_lines([place + new])
    assert canonical_text(place + old, "a file") == current_text(place + old) == place + new
    assert current_text(f"  {place}{old}  # {old}\n{place}{new}") == f"  {place}{new}  # {old}\n{place}{new}"
    unit = load(program(loops))
    assert renamed_words(unit.codelet, [f"{place}{old}\n{place}{old}"]) == (said,)
    assert renamed_words(unit.codelet, [place + new]) == ()
    (applied,) = schedule(Analysis(unit.codelet), parse_lines([place + old])).steps
    assert directive_text(applied.directive) == directive_text(parse_lines([place + new])[0].directive)


@each
def test_pragmas(loops: str, place: str, old: str, new: str, said: str) -> None:
    """The loops are the same, a database knows the file as the same program, and a note names the present word."""
    before, now = load(program(loops, old)), load(program(loops, new))
    made = [schedule(Analysis(unit.codelet)).codelet for unit in (before, now)]
    assert made[0] == made[1]
    assert c_printer.function(made[0], pragmas=True) == c_printer.function(made[1], pragmas=True)
    assert source_hash(before) == source_hash(now) != source_hash(load(program(loops)))
    assert (renamed_words(before.codelet), renamed_words(now.codelet)) == ((said,), ())


@each
def test_spaces(loops: str, place: str, old: str, new: str, said: str) -> None:
    """Of a space file, of a T1 problem and of choices in a pragma: configurations and their choices are the same."""
    was, now = (space.parse(f"{place}{{ {text} | }}\ncodelet: maxregs {{32, 64}}", "s") for text in (old, new))
    assert list(was) == list(now)
    assert [c.text for c in was] == [c.text for c in now]
    assert (was.warnings, now.warnings) == ((said,), ())
    parameter = {"Name": place.rstrip(": "), "Type": "string", "Values": repr(["", old])}
    problem = {"ConfigurationSpace": {"TuningParameters": [parameter]}}
    assert [c.text for c in space.parse(t1.space_text(Path("p.json"), json.dumps(problem)), "p")] == ["", place + new]
    if place != "codelet: ":
        return
    unit = load(program(loops, f"{{ {old} | {new} }}"))
    check_choices_decided(unit, parse_lines([f"loop 1: {old}"]))
    with pytest.raises(DirectiveError, match=f"pick one with --directive 'loop 1: {new}'"):
        check_choices_decided(unit, ())


def test_choices_and_conditions_of_a_space() -> None:
    """Numbers, conditions, and lists of directives without a bar."""
    texts = ("loop j: split {2, 4, 8}\nloop i: {raster, pack}\nwhere split(j) <= 4",
             "loop j: rfactor {2, 4, 8}\nloop i: {swizzle, pack}\nwhere rfactor(j) <= 4")  # fmt: skip
    texts = tuple(text.replace("raster,", "raster 4,").replace("swizzle,", "swizzle 4,") for text in texts)
    was, now = (space.parse(text, "s") for text in texts)
    assert [(c.text, c.slots[:1]) for c in was] == [(c.text, c.slots[:1]) for c in now]
    assert len(list(was)) == 4
    assert was.warnings == ("the directive split is now rfactor", "the directive raster is now swizzle")


@each
def test_files_of_other_tools(loops: str, place: str, old: str, new: str, said: str) -> None:
    """What looptune exported for others in the release before, and reads again."""
    held = {"directives": f"nest i: permute j, i\n{place}{old}", "outcome": "timed", "source": "s", "seconds": 1.0}
    configuration, _ = records.own_measurement(JsonCursor(held, Path("file")), 2.0, (2.0,))
    assert configuration.lines == ("nest i: permute j, i", place + new)


@each
def test_a_database_of_the_release_before(
    loops: str, place: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    """Rows are found by the present words, duplicates by the rows they repeat, and results say the present words;
    read or opened, the file holds the same rows."""
    path, text = tmp_path / "db", f"loop z: tile 4\n{place}{old}"
    with Store.open(path) as store:
        store.record(row(text), timed(2.0))
        store.record(row(text, role="final"), timed(2.5))
        store.record_duplicate(row("loop q: unroll 1"), row(text).key)
        store.record(row("", role="default"), timed(4.0))
        store.save_conclusion(CONTEXT, "s", {"directives": text, "ties": [text], "sizes": {"n": 4}})
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 6")
        db.commit()
    present = text.replace(old, new)
    for opened in (Store.read, Store.open):
        with closing(opened(path)) as store:
            found = {(r.directives, r.role): r for r in store.rows()}
            assert list(found) == [
                (present, "version"),
                (present, "final"),
                ("loop q: unroll 1", "version"),
                ("", "default"),
            ]
            assert found["loop q: unroll 1", "version"].same_as == key(CONTEXT, present)
            assert store.lookup([key(CONTEXT, present)]).keys() == {key(CONTEXT, present)}
            (search,) = by_context(store.rows())
            best = search.fastest
            assert best is not None
            assert best.directives == present
            (kept,) = store.conclusions().values()
            assert kept.record == {"directives": present, "ties": [present], "sizes": {"n": 4}}


@each
def test_a_run_says_the_present_word_once(
    loops: str, place: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    """On standard error, whether the word is in the file, on the command line, or in both; standard output is data."""
    file, clean = tmp_path / "f.c", tmp_path / "new" / "f.c"
    clean.parent.mkdir()
    file.write_text(program(loops, old))
    clean.write_text(program(loops, new))
    ran = CliRunner().invoke(cli, ["check", str(file), "--directive", place + old, "--json"])
    assert ran.stderr.count(f"warning: {said}\n") == 1
    assert "is now" not in ran.stdout
    now = CliRunner().invoke(cli, ["check", str(clean), "--directive", place + new, "--json"])
    assert "is now" not in now.stderr
    was, new_words = (json.loads(one.stdout.replace(str(f), "FILE")) for one, f in ((ran, file), (now, clean)))
    assert was == new_words


def test_compile_warns() -> None:
    """``looptune.compile`` takes former words, warns, and has the present ones in ``directives``."""
    with pytest.warns(DeprecationWarning, match="the directive split is now rfactor"):
        kernel = looptune.compile(program(SUMS), directives="loop j: split 4", target="numba-cpu")
    assert kernel.directives == "loop j: rfactor 4"


def test_names_of_the_user_are_no_words() -> None:
    """Loops and arrays may be called what a word was called, or is called now."""
    texts = ("loop i: stage turned, A", "nest i: unroll runs:4", "nest i: unroll vector:4, jam",
             "loop i: parallel, private(trust)", "loop i: unroll 4, split, jam", "nest i: rfactor split:4")  # fmt: skip
    assert [current_text(text) for text in texts] == list(texts)
    assert current_text("hand-written 0a1b") == "hand-written 0a1b"
    assert current_text("loop k: split (") == "loop k: split ("
    text = "void f(int n, float a[n]) { for (int runs = 0; runs < n; runs++) a[runs] = 0; }\n"
    (step,) = schedule(Analysis(load(text).codelet), parse_lines(["loop 1: unroll runs:4"])).steps
    assert directive_text(step.directive) == "unroll 4"


@pytest.mark.parametrize(("word", "near"), [("rastr 8", "swizzle"), ("swizle 8", "swizzle"), ("rfactr 4", "rfactor")])
def test_a_misspelt_word_gets_the_present_one(word: str, near: str) -> None:
    """The message has its caret at the misspelt word."""
    with pytest.raises(DirectiveError, match=f"did you mean '{near}'") as refused:
        schedule(Analysis(load(program(SUMS)).codelet), parse_lines([f"loop i: {word}"]))
    assert str(refused.value).endswith("^" * len(word))
