"""What ``looptune export`` writes: the rules of each format, by its published schema or by the code of its readers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from looptune.tune.formats import files, kernel_tuner, t1, t4, wisdom
from looptune.tune.formats import records as entries
from looptune.tune.space.parameters import parameter_table
from looptune.tune.space.space import Configuration
from looptune.tune.store.searches import searches
from looptune.tune.store.store import Row, Store, canonical_json
from tests.helpers import row_factory
from tests.helpers.command_line import looptune
from tests.helpers.json_schema import validate
from tests.helpers.paths import ROOT
from tests.helpers.row_factory import CONTEXT, FAILED, ROWS, row, timed

INVALIDITY = {"timeout", "compile", "runtime", "correctness", "constraints", "correct"}
ERRORS = {"InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig"}
ODD = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_t4(held: dict[str, Any]) -> None:
    """The published schema of T4 results 1.1.0, and what readers ask for besides."""
    validate(held, "t4-1.1.0")
    assert held["schema_version"] == "1.1.0"
    about = held["metadata"]
    assert set(about) | {"compute_api"} == {
        "compute_api", "platform", "device", "autotuner", "autotuner_version", "timestamp", "timeunit",
    }  # fmt: skip
    assert all(isinstance(value, str) for value in about.values())
    assert about["timeunit"] in ("nanoseconds", "microseconds", "milliseconds", "seconds")
    for result in held["results"]:
        assert {"configuration", "times", "invalidity", "correctness"} <= set(result)
        assert isinstance(result["timestamp"], str)
        assert result["objectives"] == ["time"]
        assert result["invalidity"] in INVALIDITY
        assert result["correctness"] in (0, 1)
        times = dict(result["times"])
        assert all(map(number, times.pop("runtimes")))
        assert {"compilation_time", "framework", "search_algorithm", "validation"} <= set(times)
        assert all(map(number, times.values()))
        # The autotuning methodology takes the mean of the runtimes where there is no measurement, valid or not.
        timed = result["invalidity"] == "correct"
        assert (len(result["measurements"]), bool(result["times"]["runtimes"])) == (int(timed), timed)
        for measurement in result["measurements"]:
            assert (measurement["name"], measurement["unit"]) == ("time", "ms")
            assert number(measurement["value"])


def check_cache(text: str) -> None:
    """What Kernel Tuner asks of a cache file, and what its simulation does."""
    # It closes a file that ends in anything else, which makes two braces too many of a closed one.
    assert text.strip()[-3:] == "}\n}"
    held = json.loads(text)
    assert {"device_name", "kernel_name", "problem_size", "tune_params_keys", "tune_params", "objective"} <= set(held)
    names = held["tune_params_keys"]
    assert names == list(held["tune_params"])
    for key, entry in held["cache"].items():
        assert key == ",".join(str(entry[name]) for name in names)
        assert all(entry[name] in held["tune_params"][name] for name in names)
        # The best is looked for among floats only; any other text that is an error's name would make it one.
        assert isinstance(entry["time"], float) or entry["time"] in ERRORS
        said = {v for k, v in entry.items() if isinstance(v, str) and k not in ("time", "directives", *names)}
        assert not ERRORS & said
        assert all(number(entry[f"{part}_time"]) for part in ("compile", "verification", "benchmark"))
        assert all(map(number, entry["times"]))


def check_t1(held: dict[str, Any]) -> None:
    """The published schema of T1 1.0.0, and what Kernel Tuner's reader asks for besides."""
    validate(held, "t1-1.0.0")
    space, kernel = held["ConfigurationSpace"], held["KernelSpecification"]
    for parameter in space["TuningParameters"]:
        assert isinstance(parameter["Name"], str)
        assert parameter["Type"] in ("int", "float", "string")
        assert isinstance(parameter["Values"], str)
    for condition in space["Conditions"]:
        assert all(isinstance(name, str) for name in condition["Parameters"])
        assert isinstance(condition["Expression"], str)
    assert kernel["Language"] in ("OpenCL", "CUDA", "Vulkan", "Hypertuner")
    assert isinstance(kernel["KernelName"], str)
    assert isinstance(kernel["KernelFile"], str)
    for extents in (kernel["GlobalSize"], kernel["LocalSize"]):
        assert set(extents) == {"X", "Y", "Z"}
        assert all(isinstance(extent, str) for extent in extents.values())
    assert isinstance(kernel["ProblemSize"], list)
    assert isinstance(held["Search"]["Name"], str)


def check_wisdom(text: str) -> None:
    """What Kernel Launcher's two readers ask of a wisdom file."""
    header, *records = map(json.loads, text.splitlines())
    assert (header["version"], header["objective"]) == ("1.0", "time")
    assert all(isinstance(name, str) for name in header["tunable_parameters"])
    assert isinstance(header["key"], str)
    for record in records:
        assert len(record["config"]) == len(header["tunable_parameters"])
        assert all(isinstance(value, int | float | str) for value in record["config"])
        assert all(isinstance(size, int) for size in record["problem_size"])
        assert isinstance(record["time"], float)
        assert isinstance(record["environment"]["device_name"], str)
        assert isinstance(record["environment"].get("compute_capability", 0), int)
    groups = Counter((str(r["problem_size"]), r["environment"]["device_name"]) for r in records)
    assert max(groups.values(), default=0) <= wisdom.BEST


@pytest.mark.wide
@ODD
@given(rows=row_factory.rows())
def test_the_rules_of_the_formats_hold(rows: list[Row]):
    """Fields required, types and enumerations, of any rows with any names."""
    for search in searches(rows):
        check_t4(json.loads(t4.text(search)))
        check_cache(kernel_tuner.text(search))
        check_t1(json.loads(t1.text(search)))
    for text in files.export_texts(searches(rows), "kernel-launcher", {}).values():
        check_wisdom(text)


def test_every_class_has_its_name():
    """What T4 and Kernel Tuner call each outcome, and that only a wrong result counts as incorrect."""
    search = row_factory.search()
    results = json.loads(t4.text(search))["results"]
    cache = list(json.loads(kernel_tuner.text(search))["cache"].values())
    found = {
        r["looptune"]["outcome"]: (r["invalidity"], r["correctness"], e["time"] if isinstance(e["time"], str) else "")
        for r, e in zip(results, cache, strict=True)
    }
    assert found == {
        "timed": ("correct", 1, ""),
        "cut_off": ("timeout", 1, "RuntimeFailedConfig"),
        "illegal": ("constraints", 1, "InvalidConfig"),
        "not_built": ("compile", 1, "CompilationFailedConfig"),
        "over_limit": ("constraints", 1, "InvalidConfig"),
        "wrong": ("correctness", 0, "RuntimeFailedConfig"),
        "crashed": ("runtime", 1, "RuntimeFailedConfig"),
        "timed_out": ("timeout", 1, "RuntimeFailedConfig"),
    }
    assert set(entries.INVALIDITY.values()) <= INVALIDITY


@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c", "numba-cpu", "opencl", "of another package"])
def test_the_published_schemas_accept_what_is_written(target: str) -> None:
    """Of every target: a CPU has no word among the APIs of T4, and the type of a measurement has a capital."""
    search = searches([replace(one, context=replace(CONTEXT, target=target)) for one in ROWS])[0]
    held = json.loads(t4.text(search))
    check_t4(held)
    check_t1(json.loads(t1.text(search)))
    assert held["metadata"].get("compute_api") == {
        "numba-cuda": "CUDA", "cuda-c": "CUDA", "opencl": "OpenCL",
    }.get(target)  # fmt: skip
    held["results"][0]["measurements"][0]["type"] = "double"
    with pytest.raises(AssertionError, match=r"results\[0\].measurements\[0\].type: 'double'"):
        validate(held, "t4-1.1.0")


def test_the_finals_rank_what_is_exported() -> None:
    """A version has its times of the finals; one that was wrong there is out, and disturbed finals do not count."""
    fast, split = "loop k: unroll 4, split\nnest i: permute i, k, j", "loop k: unroll 8, split\nnest i: permute i, k, j"

    def best(*finals: Row) -> tuple[str, ...]:
        search = searches([*(one for one in ROWS if one.role != "final"), *finals])[0]
        (wisdom,) = files.export_texts([search], "kernel-launcher", {}).values()
        cache = json.loads(kernel_tuner.text(search))["cache"].values()
        results = [r for r in json.loads(t4.text(search))["results"] if r["measurements"]]
        first = json.loads(wisdom.splitlines()[1])["looptune"]["directives"]
        return (
            min((e for e in cache if isinstance(e["time"], float)), key=lambda e: float(e["time"]))["directives"],
            min(results, key=lambda r: float(r["measurements"][0]["value"]))["looptune"]["directives"],
            first,
        )

    assert best() == (fast,) * 3
    assert best(row(fast, timed(21.0), role="final"), row(split, timed(18.0), role="final")) == (split,) * 3
    assert best(row(fast, FAILED[3], role="final"), row(split, timed(30.0), role="final")) == (split,) * 3
    late = replace(timed(18.0), facts=(("disturbed", "load 9"),))
    assert best(row(fast, timed(21.0), role="final"), row(split, late, role="final")) == (fast,) * 3
    assert best(row(fast, FAILED[3], role="final"), row(split, late, role="final")) == (split,) * 3
    # The finals were slower than the screening: the split version did not reach them, and does not win for that.
    assert best(row(fast, timed(45.0), role="final"), row("", timed(46.0), role="final")) == (fast,) * 3


def test_a_space_that_other_tools_do_not_finish_has_one_parameter() -> None:
    """Where almost all of a large product is excluded, the number of the version stands for all; nothing is lost."""
    many = [Configuration(tuple(f"loop {v}: unroll {n + k % 5}" for k, v in enumerate("abcdefghijkl")))
            for n in range(2, 40)]  # fmt: skip
    found = parameter_table(many)
    assert [(p.name, p.values) for p in found.parameters] == [("version", tuple(range(38)))]
    assert found.rows == tuple((k,) for k in range(38))
    assert found.conditions() == []
    few = parameter_table(many[:3])
    assert len(few.parameters) == 12 + 12
    assert few.conditions()


def test_a_configuration_is_named_parameters():
    """Directives of a place without their numbers, the numbers, and 0 or nothing where there is none."""
    found = parameter_table([Configuration(("loop i: unroll 4, jam", "codelet: grid blocksize 32x8")), Configuration()])
    assert [(p.name, p.axis, p.values) for p in found.parameters] == [
        ("loop_i", "loop i", ("", "unroll #, jam")),
        ("unroll_i", "unroll(i)", (0, 4)),
        ("codelet", "codelet", ("", "grid blocksize # x #")),
        ("blocksize_1", "blocksize", (0, 32)),
        ("blocksize_2", "blocksize.2", (0, 8)),
    ]
    assert [c.expression for c in found.conditions()] == [
        "(loop_i == 'unroll #, jam' and unroll_i == 4) or (loop_i == '' and unroll_i == 0)",
        "(unroll_i == 4 and codelet == 'grid blocksize # x #') or (unroll_i == 0 and codelet == '')",
        "(codelet == 'grid blocksize # x #' and blocksize_1 == 32) or (codelet == '' and blocksize_1 == 0)",
        "(blocksize_1 == 32 and blocksize_2 == 8) or (blocksize_1 == 0 and blocksize_2 == 0)",
    ]


def test_versions_with_equal_parameters_are_told_apart():
    """Lines in another order, and values that joined by commas are one: each row is another key of a cache."""
    swapped = ("loop i: jam", "loop j: jam"), ("loop j: jam", "loop i: jam")
    found = parameter_table([Configuration(lines) for lines in swapped])
    assert found.names == ("loop_i", "loop_j", "variant")
    assert found.rows == (("jam", "jam", 0), ("jam", "jam", 1))
    joined = ("loop i: a,b", "loop j: c"), ("loop i: a", "loop j: b,c")
    assert {row[-1] for row in parameter_table([Configuration(lines) for lines in joined]).rows} == {0, 1}
    assert parameter_table([Configuration()]).rows == ((0,),)


@pytest.mark.wide
@ODD
@given(rows=row_factory.rows())
def test_conditions_hold_of_what_was_tried_and_of_nothing_else(rows: list[Row]):
    """Of the whole product where it is small, else of points near those tried; names are unique identifiers."""
    own = entries.search_parameters(searches(rows)[0])
    conditions = [compile(c.expression, "c", "eval") for c in own.conditions()]
    assert len(set(own.names)) == len(own.names)
    assert all(name.isidentifier() for name in own.names)
    assert len(set(own.rows)) == len(own.rows)
    values = [p.values for p in own.parameters]
    near = [(*r[:k], v, *r[k + 1 :]) for r in own.rows for k, vs in enumerate(values) for v in vs]
    points = list(product(*values)) if prod(map(len, values)) <= 2000 else [*own.rows, *near]
    for point in points:
        known = dict(zip(own.names, point, strict=True))
        assert all(eval(c, {}, known) for c in conditions) == (point in own.rows)


# -- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """The made-up search, the same in double, and one of another kernel."""
    path = tmp_path / "db"
    with Store.open(path) as store:
        store.register_command("s", "looptune run 'my codes/gemm.c' -D NI=512 --target numba-cuda")
        for context in (CONTEXT, replace(CONTEXT, dtype="float64"), replace(CONTEXT, kernel="syrk")):
            for one in ROWS:
                if one.outcome is not None:
                    store.record(replace(one, context=context), one.outcome)
    return path


def test_one_search_is_printed_or_written(db: Path, tmp_path: Path):
    """Without -o on standard output, else the file named, its folder made; the same text."""
    for how, check in {
        "t4": json.loads,
        "t1": json.loads,
        "kernel-tuner": check_cache,
        "kernel-launcher": check_wisdom,
    }.items():
        call = ("export", "--db", db, "--format", how, "--kernel", "gemm float64")
        ran = looptune(*call, cwd=tmp_path)
        assert (ran.code, ran.err) == (0, "")
        check(ran.out)
        written = looptune(*call, "-o", f"deep/{how}.json", cwd=tmp_path)
        assert (written.code, written.out, written.err) == (0, "", f"deep/{how}.json\n")
        assert (tmp_path / "deep" / f"{how}.json").read_text() == ran.out


def test_several_searches_are_a_folder(db: Path, tmp_path: Path):
    """A file each, named after the search; a wisdom file for each kernel and type."""
    looptune("export", "--db", db, "--format", "t4", "-o", "out", cwd=tmp_path)
    looptune("export", "--db", db, "--format", "kernel-launcher", "-o", "out", cwd=tmp_path)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "gemm-float32.t4.json", "gemm-float64.t4.json", "syrk-float32.t4.json",
        "gemm_float32.wisdom", "gemm_float64.wisdom", "syrk_float32.wisdom",
    }  # fmt: skip


def test_what_cannot_be_written_is_said(db: Path, tmp_path: Path):
    """Several into one file, a kernel there is not, no database, a folder that is a file: one line, exit code 2."""
    one = ("export", "--db", db, "--format", "t4")
    (tmp_path / "file").write_text("")
    calls = {
        (
            *one,
        ): "3 files would be made (gemm-float32.t4.json, gemm-float64.t4.json, syrk-float32.t4.json), and standard "
        "output takes one: choose one with --kernel, or name a folder with -o",
        (*one, "-o", "x.json"): "and x.json takes one",
        (*one, "--kernel", "mm"): "no search of mm in",
        (*one, "--kernel", "syrk", "-o", "file/x.json"): "cannot write file/x.json",
        ("export", "--db", "absent", "--format", "t4"): "no database absent",
        ("export", "--db", db, "--format", "t5"): "invalid value for '--format'",
    }
    for call, message in calls.items():
        ran = looptune(*call, cwd=tmp_path)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert "Traceback" not in ran.err


def test_csv_is_what_db_export_writes(db: Path, tmp_path: Path):
    """One implementation: the same bytes."""
    new = looptune("export", "--db", db, "--format", "csv", "--kernel", "gemm", cwd=tmp_path)
    assert new.out == looptune("db", "dump", "--db", db, "--kernel", "gemm", cwd=tmp_path).out
    assert new.out.startswith("key,kernel,")


def test_a_problem_names_the_file_of_its_sweep(db: Path, tmp_path: Path):
    """The C file of the sweep's command, the sizes, the device; the block shape as names of parameters."""
    ran = looptune("export", "--db", db, "--format", "t1", "--kernel", "syrk", cwd=tmp_path)
    kernel = json.loads(ran.out)["KernelSpecification"]
    assert (kernel["KernelFile"], kernel["KernelName"]) == ("my codes/gemm.c", "syrk")
    assert (kernel["Device"], kernel["ProblemSize"]) == ({"Name": "NVIDIA H200"}, [512, 256, 128])
    assert kernel["LocalSize"] == {"X": "blocksize_1", "Y": "blocksize_2", "Z": "1"}


def test_exports_are_simulated(db: Path, tmp_path: Path):
    """``looptune replay`` finds the same in every export of a search as in the database itself."""
    options = ("--strategy", "exhaustive", "--kernel", "gemm float32", "--json")
    expected = json.loads(looptune("replay", db, *options, cwd=tmp_path).out)
    looptune("export", "--db", db, "--format", "csv", "-o", "rows.csv", cwd=tmp_path)
    for how in ("t4", "kernel-tuner"):
        looptune("export", "--db", db, "--format", how, "--kernel", "gemm float32", "-o", how, cwd=tmp_path)
    for name in ("t4", "kernel-tuner", "rows.csv"):
        found = json.loads(looptune("replay", name, *options, cwd=tmp_path).out)
        assert [r["evaluations_median"] for r in found] == [r["evaluations_median"] for r in expected]


def test_wisdom_has_the_best_of_each_device_and_size():
    """Five different sources at most, fastest first, in one file for all devices and sizes."""
    there = replace(CONTEXT, device="A100", sizes=canonical_json({"ni": 8}))
    rows = [row(f"loop k: unroll {k}", timed(100.0 - k), emitted=str(k)) for k in range(2, 12)]
    rows += [row("loop k: unroll 11, contiguous", timed(89.0), emitted="11")]
    rows += [row("loop k: unroll 3", timed(7.0), there)]
    (text,) = files.export_texts(searches(rows), "kernel-launcher", {}).values()
    records = list(map(json.loads, text.splitlines()))[1:]
    assert [(r["time"], r["problem_size"]) for r in records] == [
        (0.007, [8]), *((pytest.approx(0.1 - k / 1e3), [512, 256, 128]) for k in (11, 10, 9, 8, 7)),
    ]  # fmt: skip


# -- the tools themselves -------------------------------------------------------------------------------------------


def test_kernel_tuner_replays_a_cache(tmp_path: Path):
    """Its simulation mode visits every version that was timed and finds the same best; both its schemas accept."""
    pytest.importorskip("kernel_tuner", reason="pip install kernel-tuner, in an environment of its own")
    with Store.open(tmp_path / "db") as store:
        for one in ROWS:
            if one.outcome is not None:
                store.record(one, one.outcome)
    script = ROOT / "benchmarks" / "readers.py"
    ran = subprocess.run([sys.executable, script, tmp_path / "db"], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "gemm float32" in ran.stdout
