"""``looptune build``: modules that need looptune no more, on the CPU, and what they choose."""

from __future__ import annotations

import ast
import importlib.util
import re
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.core.errors import UsageError
from looptune.deploy import build, inline_runtime, python_module
from looptune.frontend import load
from tests import programs
from tests.helpers import cross_check, synthetic_database
from tests.helpers.built_modules import AXPY, ROWS, cuda, imported, run_alone, written
from tests.helpers.paths import ROOT
from tests.programs.program import Program

pytestmark = pytest.mark.sampled(2)

# -- on the CPU -----------------------------------------------------------------------------------


@pytest.mark.wide
def test_a_module_needs_numba_and_numpy_only(tmp_path: Path) -> None:
    """Without looptune it computes what NumPy does, checks itself, and says exactly what it runs."""
    unit = load(ROWS)
    sizes = {"n": 30, "m": 40}
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.this_cpu(unit, sizes), {"": 9.0, "loop j: unroll 4, guarded": 5.0}
    )
    text = written(tmp_path, ROWS, db).read_text()
    tops = {name.partition(".")[0] for name, _ in inline_runtime.inline_modules(inline_runtime.CPU).imports if name}
    assert "cuda" not in tops
    assert "looptune" not in {n.module.partition(".")[0] for n in ast.walk(ast.parse(text))
                              if isinstance(n, ast.ImportFrom) and n.module}  # fmt: skip
    assert "5.01 us [5.005, 5.015] n=5 in the finals" in text
    assert "1.8 times as fast as the default (9.018 us)" in text
    said = run_alone(
        tmp_path,
        """
import rows_tuned as t, warnings
warnings.simplefilter("error")
rng = np.random.default_rng(0)
A, x, y = (rng.random(s, dtype=np.float32) for s in ((30, 40), 40, 30))
before = y.copy()
t.rows(30, 40, A, y, x, check=True)
assert np.allclose(y, before + A @ x, rtol=1e-5)
print(t.match(30, 40).level, t.match(30, 40).configuration["directives"])
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as seen:
    for n in (7, 8, 9):
        t.rows(n, 40, np.ones((n, 40), np.float32), np.ones(n, np.float32), x)
print(len(seen), seen[0].message, seen[0].filename)
""",
    )
    assert said.splitlines()[0] == "exact loop j: unroll 4, guarded"
    assert said.splitlines()[1].startswith("1 rows: nothing was tuned for")
    assert "(same device) <string>" in said.splitlines()[1]


@pytest.mark.sampled(3)
@pytest.mark.wide
@pytest.mark.parametrize("program", programs.ALL[::4], ids=lambda p: p.name.replace(" ", "-"))
def test_a_default_module_computes_what_c_means(program: Program, tmp_path: Path) -> None:
    """Any program of the tests, with the check against its own original loops."""
    codelet = cross_check.codelet_of(program.text)
    path = tmp_path / "made.py"
    unit = load(program.text)
    path.write_text(python_module.text(python_module.ModuleRequest(unit, "numba-cpu", (), "looptune build")))
    made = imported(path)
    given = cross_check.arguments(codelet, program.sizes)
    got = cross_check.copied(given)
    with pytest.warns(UserWarning, match="the default is used"):
        getattr(made, made.__all__[1])(*got.values(), check=program.tolerance == 0)
    assert cross_check.off(cross_check.interpreted(codelet, given), cross_check.arrays(got), program.tolerance) is None


@pytest.mark.filterwarnings("ignore:axpy")
def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    """check=True names the element, both values and the tolerance; the function itself leaves what it computed."""
    path = written(tmp_path, AXPY, None, "numba-cpu", default=True)
    path.write_text(path.read_text().replace("a * x[i__index]", "a * x[0]", 1))
    made = imported(path)
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    with pytest.raises(
        ArithmeticError, match=r"axpy differs from what .* y\[3\]: got 1, expected 7, error 6, tolerance"
    ):
        made.axpy(4, 2.0, x, y, check=True)


@pytest.mark.filterwarnings("ignore:axpy. nothing")
def test_what_the_generator_gets_wrong_is_found(tmp_path: Path) -> None:
    """check=True compiles the C text: where kernels and the loops beside them are wrong alike, it still says so."""
    path = written(tmp_path, AXPY, None, "numba-cpu", default=True)
    text, changed = re.subn(r"a \* x\[(i__index|i)\]$", "a * x[0]", path.read_text(), flags=re.MULTILINE)
    assert changed == 2, "the kernel and the loops beside it, not the C text"
    path.write_text(text)
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    with pytest.raises(ArithmeticError, match=r"axpy differs from what .* y\[3\]: got 1, expected 7"):
        imported(path).axpy(4, 2.0, x, y, check=True)


@pytest.mark.filterwarnings("ignore:axpy. nothing")
def test_without_a_compiler_a_check_is_not_independent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It warns so, and compares with the loops that are kept beside the kernels."""
    made = imported(written(tmp_path, AXPY, None, "numba-cpu", default=True))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    with pytest.warns(UserWarning, match="axpy is not verified independently: there is no C compiler here"):
        made.axpy(4, 2.0, x, y, check=True)
    assert y.tolist() == [1, 3, 5, 7]


@pytest.mark.filterwarnings("ignore:f. nothing")
def test_a_module_has_what_its_text_includes(tmp_path: Path) -> None:
    """Headers beside the file and in folders of -I, without their paths; macros and types as they were given."""
    (tmp_path / "src" / "more").mkdir(parents=True)
    (tmp_path / "src" / "own.h").write_text("#define TWICE(x) (2 * (x))\n")
    (tmp_path / "src" / "more" / "far.h").write_text("#define LAST (n - K)\n")
    file = tmp_path / "src" / "f.c"
    loop = "for (int i = 0; i <= LAST; i++) x[i] = TWICE(x[i]) + 0.1;"
    file.write_text(f'#include "own.h"\n#include <far.h>\nvoid f(int n, double *x) {{ {loop} }}\n')
    unit = load(file, include_dirs=(tmp_path / "src" / "more",), defines={"K": "1"}, dtype="float32")
    text = build.as_python(unit, tmp_path / "none", "numba-cpu", "made", default=True)
    assert str(tmp_path) not in text
    (tmp_path / "m.py").write_text(text)
    x = np.ones(5, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "f: nothing")
        imported(tmp_path / "m.py").f(5, x, check=True)
    assert x.tolist() == [np.float32(2.1)] * 5


@pytest.mark.filterwarnings("ignore:axpy")
def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """TypeError or ValueError with the parameter, what was given and what is right; views are updated in place."""
    made = imported(written(tmp_path, AXPY, None, "numba-cpu", default=True))
    x, y = np.ones(3, np.float32), np.ones(3, np.float32)
    for args, kind, message in (
        ((3, 1, np.ones(3), y), TypeError, "x must be an array of float32, got float64"),
        ((3, 1, x, [1, 2, 3]), TypeError, "y must be an array of float32, got list"),
        ((4, 1, x, y), ValueError, "x must have the shape [4], got [3]"),
        ((2.5, 1, x, y), TypeError, "n is an integer (int32), got 2.5"),
        ((2**40, 1, x, y), ValueError, "n has the type int32, which 1099511627776 does not fit"),
        ((-1, 1, x, y), ValueError, "x cannot have the shape [-1]: no extent is negative"),
        ((3, "a", x, y), TypeError, "a is a number (float32), got str"),
    ):
        with pytest.raises(kind) as refused:
            made.axpy(*args)
        assert str(refused.value) == message
    frozen = np.ones(3, np.float32)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match=READ_ONLY):
        made.axpy(3, 1, frozen, frozen)
    wide = np.zeros((3, 4), np.float32)
    made.axpy(3, np.float64(2), frozen, wide[:, 1])
    assert wide[:, 1].tolist() == [2, 2, 2]
    assert wide.sum() == 6


def test_nothing_measured_is_an_error_that_says_what_measures(tmp_path: Path) -> None:
    """No database, or none of this text; --untuned does without."""
    (tmp_path / "f.c").write_text(AXPY)
    unit = load(tmp_path / "f.c")
    with pytest.raises(UsageError, match=r"no database .*: `looptune run .*f\.c --sweep` measures it; --untuned"):
        build.as_python(unit, tmp_path / "none", "auto", "")
    db = synthetic_database.keep(tmp_path / "db", synthetic_database.context(unit, {"n": 4}), {"": 1.0})
    double = load(tmp_path / "f.c", dtype="float64")
    with pytest.raises(
        UsageError, match=r"no measurements of axpy in float64 .*\(.*float32 for numba-cuda\): `looptune run"
    ):
        build.as_python(double, db, "auto", "")
    with pytest.raises(UsageError, match="--sweep --target numba-cpu` measures it"):
        build.as_python(unit, db, "numba-cpu", "")
    assert "Nothing: this is the default." in build.as_python(double, db, "numba-cpu", "", default=True)


def test_the_command(tmp_path: Path) -> None:
    """``looptune build`` writes a module, or prints it; a file that cannot be written is a user's mistake."""
    (tmp_path / "f.c").write_text(AXPY)
    call = ["build", str(tmp_path / "f.c"), "--untuned", "--target", "numba-cpu"]
    out = tmp_path / "axpy.py"
    runner = CliRunner()
    runner.invoke(cli, [*call, "-o", str(out)], catch_exceptions=False, standalone_mode=False)
    printed = runner.invoke(cli, call, catch_exceptions=False, standalone_mode=False).stdout
    assert out.read_text() == printed
    with pytest.raises(UsageError, match="cannot write"):
        runner.invoke(cli, [*call, "-o", str(tmp_path / "no" / "x.py")], catch_exceptions=False, standalone_mode=False)


@pytest.mark.parametrize("name", ["match", "CALL", "select", "original"])
def test_a_function_hides_nothing_of_its_module(name: str, tmp_path: Path) -> None:
    """Neither what the module imports nor what it defines: it has another name then."""
    made = imported(written(tmp_path, f"void {name}(int n, float x[n]) {{ for (int i = 0; i < n; i++) x[i] *= 2; }}",
                            None, "numba-cpu", default=True))  # fmt: skip
    x = np.ones(3, np.float32)
    assert f"{name}_" in made.__all__
    with pytest.warns(UserWarning, match="nothing was tuned"):
        getattr(made, f"{name}_")(3, x)
    assert x.tolist() == [2.0] * 3
    assert made.match(3).level == "default"


# -- what is chosen -------------------------------------------------------------------------------


READ_ONLY = "y is written, but the array given is read-only: pass a copy"


@cuda
def test_every_level_of_the_look_up(tmp_path: Path) -> None:
    """Exact, then the nearest sizes on this device, its capability, its family, and at last the default."""
    unit = load(ROWS)
    for device, n, text in (
        (synthetic_database.H200, 64, "loop j: unroll 2"), (synthetic_database.H200, 1024, "loop j: unroll 3"),
        (synthetic_database.H100, 64, "loop j: unroll 4"), (synthetic_database.A100, 64, "loop j: unroll 5"),
    ):  # fmt: skip
        synthetic_database.keep(
            tmp_path / "db", synthetic_database.context(unit, {"n": n, "m": n}, device), {"": 9.0, text: 5.0}
        )
    made = imported(written(tmp_path, ROWS, tmp_path / "db"))
    at = made.Device
    for device, n, level, factor in (
        (at(*synthetic_database.H200), 64, "exact", 2), (at(*synthetic_database.H200), 1024, "exact", 3),
        (at(*synthetic_database.H200), 100, "same device", 2), (at(*synthetic_database.H200), 600, "same device", 3),
        (at("NVIDIA GH200", 132, "sm_90"), 900, "same capability", 3), (at(*synthetic_database.H100), 64, "exact", 4),
        (at("NVIDIA A40", 84, "sm_86"), 60, "same family", 5), (at("NVIDIA B200", 148, "sm_100"), 64, "default", 0),
    ):  # fmt: skip
        match = made.look_up(made.CONFIGURATIONS, "plan_0", device, {"n": n, "m": n})
        assert match.level == level, (device, n)
        assert factor == (0 if match.configuration is None else int(match.configuration["directives"][-1]))
        assert (match.plan == "plan_0") == (level == "default")
    same = made.look_up(made.CONFIGURATIONS, "plan_0", at("NVIDIA GH200", 132, "sm_90"), {"n": 64, "m": 64})
    assert same.plan == same.configuration["plan"]


@pytest.mark.wide
@cuda
def test_sizes_that_a_version_is_not_for(tmp_path: Path) -> None:
    """noremainder is a remainder elsewhere; fullunroll of a loop as long as a size is used at that size alone; what is
    slower than the default is not used at all; without finals the screening decides."""
    unit = load(ROWS)
    at = [synthetic_database.context(unit, {"n": n, "m": 8}) for n in (16, 32, 64, 128)]
    synthetic_database.keep(tmp_path / "db", at[0], {"": 9.0, "loop j: unroll 4, noremainder": 5.0})
    synthetic_database.keep(tmp_path / "db", at[1], {"": 9.0, "loop j: fullunroll": 5.0})
    synthetic_database.keep(tmp_path / "db", at[2], {"": 4.0, "loop j: unroll 2": 5.0}, role="version")
    synthetic_database.keep(tmp_path / "db", at[3], {"": 9.0, "loop j: unroll 3": 5.0}, role="version")
    made = imported(written(tmp_path, ROWS, tmp_path / "db"))
    rows = {row["sizes"]["n"]: row for row in made.CONFIGURATIONS}
    assert [rows[n]["directives"] for n in rows] == [
        "loop j: unroll 4, noremainder", "loop j: fullunroll", "", "loop j: unroll 3"
    ]  # fmt: skip
    assert rows[32]["elsewhere"] is None
    assert rows[64]["elsewhere"] == "plan_0"
    device = made.Device(*synthetic_database.H200)
    assert made.look_up(made.CONFIGURATIONS, "plan_0", device, {"n": 33, "m": 7}).configuration is not rows[32]
    kernels = dict(re.findall(r"^# (.*)\n@.*\ndef (\w+)", Path(made.__file__).read_text(), re.MULTILINE))
    elsewhere = next(k for users, k in kernels.items() if rows[16]["elsewhere"] in users.split(", "))
    given = {"A": np.ones((3, 7), np.float32), "y": np.zeros(3, np.float32), "x": np.ones(7, np.float32)}
    emitted = cross_check.Emitted("left", Path(made.__file__).read_text(), "called", {**given})
    call = f"\n\ndef called(A, y, x):\n    {elsewhere}[1, 256](A.reshape(21), y, x, 3, 7)\n"
    found = cross_check.simulated([cross_check.Emitted("left", emitted.source + call, "called", given)], tmp_path)[
        "left"
    ]
    assert not isinstance(found, str), found
    assert found["y"].tolist() == [7, 7, 7]


@pytest.mark.wide
def test_the_benchmark_measures_a_module_beside_the_sweeps_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the CPU, for it needs a GPU else: a line a size, with both times, and one for what the database lacks."""
    benchmark = deployed()
    monkeypatch.setattr(
        benchmark, "finals", lambda samplers, seed, **limits: {n: [s() for _ in "abc"] for n, s in samplers.items()}
    )
    (tmp_path / "rows.c").write_text(ROWS)
    (tmp_path / "axpy.c").write_text(AXPY)
    at = synthetic_database.this_cpu(load(ROWS), {"n": 30, "m": 40})
    db = synthetic_database.keep(tmp_path / "db", at, {"": 9.0, "loop j: unroll 4": 5.0})
    files = [str(tmp_path / "rows.c"), str(tmp_path / "axpy.c")]
    assert benchmark.main([*files, "--db", str(db), "--target", "numba-cpu"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"\| rows \| n=30 m=40 \| .* us .*n=3 \| .* us .*n=3 \| .* \| 5.01 us \| .* us \| - \| - \| exact \|", said
    )
    assert "| axpy | nothing in" in said
    assert {line.count("|") for line in said.splitlines() if line} == {0, benchmark.COLUMNS + 1}


def test_launches_are_made_again_without_the_module() -> None:
    """With the same parameters, by the driver itself; what else is asked of it is no launch."""
    log: list[object] = []
    driver = SimpleNamespace(cuLaunchKernel=lambda *args: log.append(args), cuMemAlloc=lambda size: log.append(size))
    made = ModuleType("made")
    vars(made)["driver"] = driver

    def call() -> None:
        made.driver.cuMemAlloc(8)
        made.driver.cuLaunchKernel("f", 1)
        made.driver.cuLaunchKernel("g", 2)

    benchmark = deployed()
    took = benchmark.launches_us(made, call, lambda: None)
    again = benchmark.BATCHES * benchmark.BATCH
    assert took > 0
    assert log == [8, *[("f", 1), ("g", 2)] * (1 + again)]
    assert made.driver is driver


def deployed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deployed", ROOT / "benchmarks" / "deployed.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    return benchmark
