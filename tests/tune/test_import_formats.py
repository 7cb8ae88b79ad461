"""Files of searches read back: what looptune exported is what it had, and a bad file is refused with the place."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from looptune.core.errors import LooptuneError, UsageError
from looptune.tune.formats import csv, files, kernel_tuner, t1, t4, wisdom
from looptune.tune.formats.t1 import space_text
from looptune.tune.session.prepare import TuningRequest, prepare
from looptune.tune.space.space import parse
from looptune.tune.store.searches import Measurement, Recording, Search, searches
from looptune.tune.store.store import Row, Store
from tests.helpers import row_factory
from tests.helpers.paths import POLYBENCH
from tests.helpers.row_factory import ROWS

GEMM = POLYBENCH / "gemm.c"
WHOLE = {"t4.json": t4.text, "cache.json": kernel_tuner.text}
"""Formats that keep all runs."""


def csv_text(rows: list[Row] | tuple[Row, ...]) -> str:
    out = StringIO()
    csv.write(rows, out)
    return out.getvalue()


def back(path: Path, text: str) -> list[Recording]:
    path.write_bytes(text.encode())
    return files.all_recordings(path)


def close(found: float | None, expected: float | None) -> bool:
    return found == expected or (None not in (found, expected) and found == pytest.approx(expected, rel=1e-12))


def alike(found: Measurement, expected: Measurement) -> bool:
    """All but the runs; units other than microseconds cost the last digit."""
    same = (found.source, found.is_complete) == (expected.source, expected.is_complete)
    return same and close(found.cost_us, expected.cost_us) and close(found.seconds, expected.seconds)


def check(found: Recording, search: Search, *, runs: bool) -> None:
    expected = search.recording
    assert (found.name, found.kernel, found.device) == (expected.name, expected.kernel, expected.device)
    assert [c.text for c in found.table.rows] == [c.text for c in expected.table.rows]
    assert all(map(alike, found.measured, expected.measured))
    for one, other in zip(found.measured, expected.measured, strict=True):
        assert not runs or one.runs_us == pytest.approx(other.runs_us, rel=1e-12)


@pytest.mark.wide
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=row_factory.rows())
@pytest.mark.parametrize("kind", WHOLE)
def test_what_was_exported_is_read_back(kind: str, tmp_path: Path, rows: list[Row]):
    """Configurations, costs, runs, durations, equal sources, what was cut off: of any rows, with any names."""
    for search in searches(rows):
        (found,) = back(tmp_path / kind, WHOLE[kind](search))
        check(found, search, runs=True)


@pytest.mark.wide
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=row_factory.rows())
def test_a_csv_is_read_back(tmp_path: Path, rows: list[Row]):
    """All but single runs, of all searches of a database."""
    found = back(tmp_path / "rows.csv", csv_text(rows))
    for one, search in zip(found, searches(rows), strict=True):
        check(one, search, runs=False)


@pytest.mark.wide
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=row_factory.rows())
def test_wisdom_is_read_back(tmp_path: Path, rows: list[Row]):
    """Of a search the best five sources, their medians and directives."""
    for search in searches(rows):
        found = back(tmp_path / "k.wisdom", wisdom.text([search]))
        whole = [(e.configuration.text, e.measured) for e in search.entries if e.row.status == "timed"]
        expected = {m.source: m.cost_us for _, m in reversed(whole)}
        best = sorted(expected.values())[: wisdom.BEST]
        assert [m.cost_us for r in found for m in r.measured] == pytest.approx(best, rel=1e-12)
        assert {c.text for r in found for c in r.table.rows} <= {text for text, _ in whole}


def test_every_class_is_read_back(tmp_path: Path):
    """One search with every outcome: twelve versions, of which three were timed, two cut off and one is another's."""
    search = row_factory.search()
    assert len(search.entries) == 12
    for kind, text in WHOLE.items():
        (found,) = recorded_of(tmp_path / kind, text(search))
        check(found, search, runs=True)
        assert [m.cost_us is None for m in found.measured] == 6 * [False] + 6 * [True]
        assert found.best_us == pytest.approx(20.0)
        assert found.versions == 11
    (found,) = recorded_of(tmp_path / "k.wisdom", wisdom.text([search]))
    assert [m.cost_us for m in found.measured] == pytest.approx([20.0, 25.0, 40.0])


def recorded_of(path: Path, text: str) -> list[Recording]:
    path.write_text(text)
    return files.read(path)


# -- other tools' files ---------------------------------------------------------------------------------------------


def test_kernel_tuners_own_t4_is_read(tmp_path: Path):
    """Its writer says ``compilation`` and ``benchmark``, and names the error where a time would be."""
    result: dict[str, Any] = {
        "configuration": {"x": 1}, "objectives": ["time"], "correctness": 1, "invalidity": "correct",
        "times": {"compilation": 100.0, "benchmark": 7.0, "framework": 1.0, "validation": 50.0, "runtimes": [2.0, 4.0]},
        "measurements": [{"name": "time", "value": 3.0, "unit": "ms"}],
    }  # fmt: skip
    failed = result | {"configuration": {"x": 2}, "invalidity": "compile", "times": {"compilation": 9.0}} | {
        "measurements": [{"name": "time", "value": "CompilationFailedConfig", "unit": "ms"}]
    }  # fmt: skip
    held = {"schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds"}, "results": [result, failed]}
    (found,) = back(tmp_path / "k.json", json.dumps(held))
    assert [m.cost_us for m in found.measured] == [3000.0, None]
    assert [m.seconds for m in found.measured] == pytest.approx([0.156, 0.009])


HUB = {
    "metadata": {"timeunit": "miliseconds"},
    "results": [
        {
            "configuration": {"block_size_x": 16, "method": "a"}, "objectives": ["time"], "correctness": 1,
            "times": {"compilation": 100.0, "framework": 1.0, "search_algorithm": 0, "validation": 0,
                      "runtimes": [2.0, 2.5, 9.0]},
            "invalidity": "correct", "measurements": [{"name": "time", "value": 4.5, "unit": ""}],
        },
        {
            "configuration": {"block_size_x": 32, "method": "b"}, "objectives": ["time"], "correctness": 0,
            "times": {"compilation": 50.0, "framework": 1.0, "search_algorithm": 0, "validation": 0},
            "invalidity": "runtime", "measurements": [{"name": "time", "value": "RuntimeFailedConfig", "unit": ""}],
        },
    ],
    "schema_version": "1.0.0",
}  # fmt: skip
"""As the files of the benchmark hub are written."""


@pytest.mark.parametrize("unit", ["miliseconds", "milliseconds"])
@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:]) + bytes(8)]
)
def test_the_hubs_t4_is_read(unit: str, pack: Callable[[bytes], bytes], tmp_path: Path):
    """Both spellings of the unit, compressed or not; the objective without a unit is in that of the file."""
    path = tmp_path / "conv_T4.json.gz"
    path.write_bytes(pack(json.dumps(HUB | {"metadata": {"timeunit": unit}}).encode()))
    (found,) = files.all_recordings(path)
    assert [m.cost_us for m in found.measured] == [4500.0, None]
    assert [m.seconds for m in found.measured] == pytest.approx([0.1135, 0.05])
    assert found.table.rows[0].text == "block_size_x=16\nmethod=a"


def test_a_compressed_database_is_read(tmp_path: Path):
    """As the reports of this repository have it."""
    store = tmp_path / "results.sqlite"
    with Store.open(store) as opened:
        for row in ROWS:
            if row.outcome is not None:
                opened.record(row, row.outcome)
    packed = tmp_path / "results.sqlite.gz"
    packed.write_bytes(gzip.compress(store.read_bytes()))
    assert [r.name for r in files.all_recordings(packed)] == [r.name for r in files.all_recordings(store)]


def test_a_damaged_archive_is_refused(tmp_path: Path):
    """Cut off, changed inside, or larger than what is read."""
    path, whole = tmp_path / "a.json.gz", gzip.compress(json.dumps(HUB).encode())
    for damaged in (whole[:-20], whole[:12], whole[:20] + b"\xff\xff\xff" + whole[23:], whole + b"more"):
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match="compressed by gzip, and damaged"):
            files.all_recordings(path)


KTT: dict[str, Any] = {
    "Metadata": {"ComputeApi": "CUDA", "Device": "A100", "TimeUnit": "Milliseconds"},
    "Results": [
        {
            "KernelName": "mm", "Status": "Ok", "TotalDuration": 2.0, "TotalOverhead": 90.0, "ExtraDuration": 0.5,
            "Configuration": [{"Name": "MWG", "IsDouble": False, "Value": 16}], "ComputationResults": [],
        },
        {
            "KernelName": "mm", "Status": "CompilationFailed", "TotalDuration": 0.0, "TotalOverhead": 0.0,
            "Configuration": [{"Name": "MWG", "IsDouble": False, "Value": 32}], "ComputationResults": [],
        },
    ],
}  # fmt: skip


def test_results_of_ktt_are_read(tmp_path: Path):
    """The duration in the unit that the file states; what failed has no cost."""
    (found,) = back(tmp_path / "mm.json", json.dumps(KTT))
    assert (found.name, found.device) == ("mm", "A100")
    assert [c.text for c in found.table.rows] == ["MWG=16", "MWG=32"]
    assert [m.cost_us for m in found.measured] == [2000.0, None]
    assert [m.seconds for m in found.measured] == [pytest.approx(0.092), None]
    for changed_result, message in (
        ({"KernelName": "other"}, r"Results\[1\]\.KernelName: expected the kernel 'mm'"),
        ({"TotalDuration": -1.0}, r"Results\[1\]\.TotalDuration: expected a number that is not negative"),
        ({"Configuration": {}}, r"Results\[1\]\.Configuration: expected a list"),
    ):
        text = json.dumps(KTT | {"Results": [KTT["Results"][0], KTT["Results"][1] | changed_result]})
        with pytest.raises(UsageError, match=message):
            back(tmp_path / "mm.json", text)


def test_foreign_wisdom_is_read(tmp_path: Path):
    """Its parameters are the axes; comments and blank lines are passed over; a search for each device and size."""
    header = {"version": "1.0", "objective": "time", "tunable_parameters": ["x", "pad"], "key": "mm"}
    line: dict[str, Any] = {
        "config": [16, True],
        "problem_size": [8, 8],
        "time": 2.0,
        "environment": {"device_name": "A"},
    }
    lines = [header, line, line | {"config": [32, False], "time": 1.0}, line | {"problem_size": [9, 9]}]
    text = "\n# a comment\n\n".join(map(json.dumps, lines))
    small, large = back(tmp_path / "mm.wisdom", text)
    assert [c.text for c in small.table.rows] == ["x=16\npad=1", "x=32\npad=0"]
    assert [m.cost_us for m in small.measured] == [2000.0, 1000.0]
    assert (small.name, small.kernel, small.device, large.name) == ("mm A 8x8", "mm", "A", "mm A 9x9")
    for config in ([16], [16, True, 1]):
        with pytest.raises(UsageError, match=r"line 4\.config: expected 2 values, one for each parameter"):
            back(tmp_path / "mm.wisdom", "\n".join(map(json.dumps, [header, line, line, line | {"config": config}])))


# -- bad files ------------------------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    [1],
    {},
    {"a": 1},
)
JSON = {"t4.json": t4.text, "cache.json": kernel_tuner.text, "t1.json": t1.text}


def places(held: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every value in a JSON document the keys that lead there; of a long list the first two items."""
    yield path
    if isinstance(held, dict):
        for key in held:
            yield from places(held[key], (*path, key))
    elif isinstance(held, list):
        for k in range(min(2, len(held))):
            yield from places(held[k], (*path, k))


def changed(text: str, path: tuple[Any, ...], value: Any) -> str:
    """The document with another value at a place, or without it where the value is ``...``."""
    held = json.loads(text)
    if not path:
        return json.dumps(value)
    parent = held
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return json.dumps(held)


def survives(path: Path, text: str) -> str:
    """Read as what it is; the message where it is refused, which names the file."""
    path.write_text(text)
    try:
        if path.name == "t1.json":
            parse(space_text(path, text), str(path))
        else:
            files.all_recordings(path)
    except LooptuneError as error:
        said = error
    else:
        return ""
    assert path.name in str(said)
    return str(said)


@pytest.mark.long
@pytest.mark.parametrize("kind", JSON)
def test_a_file_with_anything_anywhere_is_read_or_refused(kind: str, tmp_path: Path):
    """Each value replaced by odd ones, and left out: no exception but one of ours, with the name of the file."""
    rows = [r for r in ROWS if r.status != "crashed"][:5]
    text = JSON[kind](searches(rows)[0])
    refused = [
        survives(tmp_path / kind, changed(text, path, value))
        for path in places(json.loads(text))
        for value in (*ODD, ...)
        if path or value is not ...
    ]
    assert sum(map(bool, refused)) > 20


@pytest.mark.parametrize("kind", [*JSON, "k.wisdom", "rows.csv"])
def test_a_truncated_file_is_read_or_refused(kind: str, tmp_path: Path):
    """Cut at 300 places, and with bytes that are no text."""
    search = row_factory.search()
    makers = {**JSON, "k.wisdom": lambda search: wisdom.text([search]), "rows.csv": lambda search: csv_text(ROWS)}
    text = makers[kind](search)
    chance = random.Random(0)
    refused = [survives(tmp_path / kind, text[: chance.randrange(len(text))]) for _ in range(300)]
    assert sum(map(bool, refused)) > 100
    (tmp_path / kind).write_bytes(b"\xff\xfe" + text.encode())
    with pytest.raises(UsageError, match=kind):
        files.all_recordings(tmp_path / kind)


@pytest.mark.wide
def test_wisdom_and_csv_with_anything_anywhere(tmp_path: Path):
    """Each field of a line replaced: read, or refused with the number of the line."""
    header, *lines = wisdom.text([row_factory.search()]).splitlines()
    for path in places(json.loads(lines[0])):
        for value in (*ODD, ...):
            if path or value is not ...:
                text = "\n".join((header, changed(lines[0], path, value), *lines[1:]))
                assert "line 2" in (said := survives(tmp_path / "k.wisdom", text)) or not said
    for path in places(json.loads(header)):
        for value in (*ODD, ...):
            if path or value is not ...:
                survives(tmp_path / "k.wisdom", "\n".join((changed(header, path, value), *lines)))
    names = csv.COLUMNS
    first = csv_text(ROWS[:1]).splitlines()[1].split(",")
    for k, _ in enumerate(names):
        for value in ("", "x", "nan", "1e999", "-1", '"', "1,2"):
            text = f"{','.join(names)}\n{','.join([*first[:k], value, *first[k + 1 :]])}\n"
            assert "line 2" in (said := survives(tmp_path / "rows.csv", text)) or not said


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("t4.json", ("schema_version",), "2.0.0", "schema_version: unsupported version '2.0.0': looptune reads 1.…"),
        (
            "t4.json",
            ("metadata", "timeunit"),
            "weeks",
            'metadata.timeunit: expected one of nanoseconds, .*found "weeks"',
        ),
        (
            "t4.json",
            ("results", 1, "times", "runtimes", 0),
            float("nan"),
            r"results\[1\].times.runtimes\[0\]: .*found NaN",
        ),
        ("t4.json", ("results", 0, "looptune", "directives"), 1, r"looptune.directives: expected a text, found 1"),
        ("cache.json", ("tune_params_keys",), {}, "tune_params_keys: expected a list, found an object"),
        ("t1.json", ("looptune", "configurations"), 3, "looptune.configurations: expected a list, found 3"),
    ],
)
def test_what_is_wrong_is_said(kind: str, path: tuple[Any, ...], value: Any, message: str, tmp_path: Path):
    """The file, the place, what was expected and what was found."""
    said = survives(tmp_path / kind, changed(JSON[kind](row_factory.search()), path, value))
    assert said.startswith(str(tmp_path / kind))
    assert re.search(message, said), said


# -- a problem as a space -------------------------------------------------------------------------------------------


def test_an_exported_problem_is_the_space_that_was_searched(tmp_path: Path):
    """``--space problem.json``: the same configurations in the same order, checked against the loops of the kernel."""
    path = tmp_path / "gemm.t1.json"
    path.write_text(t1.text(row_factory.search()))
    prepared = prepare(TuningRequest(GEMM, target="numba-cpu", sweep=True, space=path, defines={"NI": "8"}))
    assert [c.text for c in prepared.space] == [e.configuration.text for e in row_factory.search().entries]


def problem(parameters: dict[str, str], *conditions: str) -> str:
    listed = [{"Name": name, "Type": "string", "Values": values} for name, values in parameters.items()]
    wheres = [{"Parameters": [], "Expression": text} for text in conditions]
    return json.dumps({"ConfigurationSpace": {"TuningParameters": listed, "Conditions": wheres}})


def test_a_written_problem_is_a_space(tmp_path: Path):
    """Places as parameters, directives as values, conditions as in a space file."""
    text = problem(
        {"loop k": "['', 'unroll 2', 'unroll 4, split']", "codelet": "['grid blocksize 32x8']"}, "unroll(k) < 4"
    )
    found = parse(space_text(tmp_path / "p.json", text), "p.json")
    grid = "codelet: grid blocksize 32x8"
    assert [c.text for c in found] == [grid, f"loop k: unroll 2\n{grid}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (problem({"MWG": "[16, 32]"}), "`MWG` is not a directive of looptune, so this is the space of another kernel"),
        (problem({"loop k": "[2, 4]"}), "directives as values, one line each, not 2"),
        (problem({"loop k": "range(4)"}), "a text that holds a Python list of directives"),
        (problem({"loop k": "[]"}), "a text that holds a Python list of directives"),
        (problem({"loop k": "['unroll 2']"}, "unroll(k)\nor"), "a condition of one line"),
        ('{"results": []}', "is not a search space: expected a T1 problem"),
        ("[", "is neither a results database nor JSON"),
        ("[" * 100_000, "nests too deeply"),
    ],
)
def test_a_problem_that_is_no_space_is_refused(text: str, message: str, tmp_path: Path):
    """UsageError with the file: parameters of other kernels, values that are no directives, other files."""
    with pytest.raises(UsageError, match=r"p\.json") as refused:
        space_text(tmp_path / "p.json", text)
    assert message in refused.value.message
