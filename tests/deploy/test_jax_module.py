"""``looptune build --jax``: a function of JAX's arrays, called by XLA; what needs jax is skipped without it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from looptune.core.errors import UsageError
from looptune.deploy import build, jax_module
from looptune.deploy.runtime.arguments import TYPES
from looptune.frontend import load
from tests.helpers import synthetic_database
from tests.helpers.built_modules import GEMM, cuda, imported, run_alone
from tests.helpers.command_line import looptune
from tests.helpers.host_kernels import environment, write_fake_driver, write_kernels
from tests.helpers.paths import ROOT

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
AXPY = "void axpy(int n, float a, const float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }"
SOURCE = """
float table[5], scale;
void jacobi(int steps, int n, double A[n][n], double B[n][n])
{
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                B[i][j] = 0.25 * (A[i][j - 1] + A[i][j + 1] + A[i - 1][j] + A[i + 1][j]);
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                A[i][j] = B[i][j];
    }
}
void dot(int n, const float *x, const float *y, float *s) { for (int i = 0; i < n; i++) *s += x[i] * y[i]; }
void scaled(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += scale * table[i]; }
void rows(int n, int m, float **a, float x[m])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i][j] += x[j]; }
void wide(int n, double a, const float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }
void half(int n, _Float16 a, const _Float16 x[n], _Float16 y[n]) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }
void jax(int n, float np[n], float self[n]) { for (int i = 0; i < n; i++) np[i] = np[i] + self[i]; }
void reads(int n, const float x[n]) { float s = 0; for (int i = 0; i < n; i++) s += x[i]; }
"""

PROGRAM = """
double u[8], v[8];
int main(void)
{
#pragma scop
    for (int i = 0; i < 8; i++)
        v[i] += 2 * u[i];
#pragma endscop
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("jax")
    (found / "source.c").write_text(SOURCE)
    (found / "axpy.c").write_text(AXPY)
    (found / "main.c").write_text(PROGRAM)
    return found


@pytest.fixture(scope="module")
def kept(folder: Path) -> Iterator[Path]:
    """The folder where compiled handlers are kept meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield folder / "cache" / "looptune" / "modules"


def written(folder: Path, file: str, kernel: str, target: str = "numba-cpu") -> Path:
    path = folder / f"{kernel}_{target[6:]}_jax.py"
    if not path.exists():
        unit = load(folder / file, kernel=kernel)
        path.write_text(build.as_jax(unit, folder / "none", target, "looptune build", default=True))
    return path


@pytest.fixture
def made(folder: Path, kept: Path) -> Any:
    """The module of a function of SOURCE."""
    pytest.importorskip("jax")
    return lambda kernel: imported(written(folder, "main.c" if kernel == "main" else "source.c", kernel))


@pytest.fixture
def gemm(folder: Path, kept: Path) -> ModuleType:
    pytest.importorskip("jax")
    path = folder / "gemm_jax.py"
    if not path.exists():
        ran = looptune("build", str(GEMM), "--jax", "--untuned", "--target", "numba-cpu", "-D", "MINI_DATASET",
                       "-o", str(path), cwd=folder)  # fmt: skip
        assert ran.code == 0, ran.err
    return imported(path)


@pytest.fixture
def x64() -> Iterator[None]:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random(shape, dtype=np.float32) for shape in shapes]


MATRICES = ((6, 7), (6, 5), (5, 7))
"""The shapes of C, A and B."""


@needs_compiler
def test_a_call_returns_what_is_written(gemm: ModuleType) -> None:
    """Called at once and under jit, with arrays of NumPy and JAX; nothing that was given is changed."""
    import jax
    from jax import numpy as jnp

    c, a, b = arrays(*MATRICES)
    expected = 0.5 * c + 1.5 * a @ b
    before = c.copy()
    for given in ((c, a, b), tuple(map(jnp.asarray, (c, a, b)))):
        for call in (gemm.gemm, jax.jit(gemm.gemm)):
            np.testing.assert_allclose(call(1.5, 0.5, *given), expected, rtol=1e-5)
            np.testing.assert_array_equal(given[0], before)
    assert gemm.__all__ == ["gemm"]


@needs_compiler
def test_one_array_may_be_given_twice(gemm: ModuleType) -> None:
    """XLA copies what is written, also where the caller gives it away."""
    import jax
    from jax import numpy as jnp

    (c,) = arrays((6, 6))
    expected = 0.5 * c + 1.5 * c @ c
    held = jnp.asarray(c)
    for call in (gemm.gemm, jax.jit(gemm.gemm)):
        np.testing.assert_allclose(call(1.5, 0.5, held, held, held), expected, rtol=1e-5)
    given_away = jax.jit(lambda x: gemm.gemm(1.5, 0.5, x, x, x), donate_argnums=0)
    np.testing.assert_allclose(given_away(jnp.array(c)), expected, rtol=1e-5)


@needs_compiler
def test_shapes_are_known_without_a_call(gemm: ModuleType) -> None:
    """Where nothing but shapes is there, and in a function whose sizes differ from call to call."""
    import jax

    c, a, b = (jax.ShapeDtypeStruct(shape, np.float32) for shape in MATRICES)
    found = jax.eval_shape(gemm.gemm, 1.5, 0.5, c, a, b)
    assert (found.shape, found.dtype) == ((6, 7), np.float32)
    call = jax.jit(gemm.gemm)
    for n in (3, 8):
        c, a = arrays((n, n), (n, n))
        np.testing.assert_allclose(call(1.0, 0.0, c, a, a), a @ a, rtol=1e-5)


@needs_compiler
def test_vmap_calls_one_after_the_other(gemm: ModuleType) -> None:
    """Over arrays and over numbers."""
    import jax

    c, a, b = arrays((3, 6, 7), *MATRICES[1:])
    found = jax.vmap(gemm.gemm, in_axes=(None, None, 0, None, None))(1.5, 0.5, c, a, b)
    np.testing.assert_allclose(found, 0.5 * c + 1.5 * a @ b, rtol=1e-5)
    alphas = np.array([1.0, 2.0], np.float32)
    found = jax.vmap(gemm.gemm, in_axes=(0, None, None, None, None))(alphas, 0.5, c[0], a, b)
    np.testing.assert_allclose(found, 0.5 * c[0] + alphas[:, None, None] * (a @ b), rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ((1.5, 0.5, (6, 7), (6, 5), (7, 5)), ValueError, r"B must have the shape \[5\]\[7\], got \[7, 5\]"),
        ((1.5, 0.5, (42,), (6, 5), (5, 7)), ValueError, "C must have 2 dimensions, of which ni is one"),
        ((1.5, 0.5, [[1.0]], (6, 5), (5, 7)), TypeError, "C must be an array of float32, got list"),
        (((2,), 0.5, (6, 7), (6, 5), (5, 7)), TypeError, "alpha is a number .float32., got an array of the shape"),
        (("one", 0.5, (6, 7), (6, 5), (5, 7)), TypeError, "alpha is a number .float32., got str"),
    ],
)
def test_what_does_not_fit_is_named(gemm: ModuleType, given: Any, kind: type[Exception], said: str) -> None:
    """The parameter, what was given and what is needed; under jit as well, before anything is compiled."""
    import jax

    call = [np.zeros(one, np.float32) if isinstance(one, tuple) else one for one in given]
    with pytest.raises(kind, match=said):
        gemm.gemm(*call)
    traced = [k for k, one in enumerate(call) if not isinstance(one, np.ndarray)]
    with pytest.raises(kind, match=said):
        jax.jit(lambda *arrays: gemm.gemm(*[call[k] if k in traced else a for k, a in enumerate(arrays)]))(
            *[0.0 if k in traced else a for k, a in enumerate(call)]
        )


def test_types_are_exact(gemm: ModuleType, made: Any) -> None:
    """JAX would make floats of what has twice their size, without a word, where these are not enabled."""
    c, a, b = arrays(*MATRICES)
    with pytest.raises(TypeError, match="C must be an array of float32, got float64"):
        gemm.gemm(1.5, 0.5, c.astype(np.float64), a, b)
    with pytest.raises(TypeError, match=r'A must be an array of float64, .*"jax_enable_x64", True'):
        made("jacobi").jacobi(2, np.zeros((4, 4)), np.zeros((4, 4)))


@needs_compiler
def test_a_stencil_changes_what_it_reads(made: Any, x64: None) -> None:
    """Several arrays are a tuple; the elements that are not written stay; a number of steps is one of Python."""
    import jax

    def step(a: np.ndarray) -> np.ndarray:
        return 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1])

    jacobi = made("jacobi").jacobi
    a, b = np.random.default_rng(0).random((2, 9, 9))
    inner, first, second = (slice(1, -1), slice(1, -1)), a.copy(), b.copy()
    for _ in range(3):
        second[inner] = step(first)
        first[inner] = second[inner]
    for call in (jacobi, jax.jit(jacobi, static_argnames="steps")):
        found = call(3, a, b)
        assert isinstance(found, tuple)
        np.testing.assert_allclose(found[0], first)
        np.testing.assert_allclose(found[1], second)
    with pytest.raises(TypeError, match=r'steps decides what runs, .*static_argnames=\("steps",\)'):
        jax.jit(jacobi)(3, a, b)
    with pytest.raises(TypeError, match="A must be an array of float64, got float32"):
        jacobi(3, a.astype(np.float32), b)


@needs_compiler
def test_a_sum_is_an_array_of_one_element(made: Any) -> None:
    """With a shape of one element or none; sizes that no shape gives are given, and do not exceed the arrays."""
    from jax import numpy as jnp

    dot = made("dot").dot
    x, y = arrays((9,), (9,))
    for shape in ((1,), ()):
        found = dot(9, x, y, jnp.ones(shape, jnp.float32))
        assert found.shape == shape
        np.testing.assert_allclose(found, np.full(shape, 1 + x @ y), rtol=1e-5)
    with pytest.raises(ValueError, match=r"x is too short: it has 9 elements, .* access element 9"):
        dot(10, x, y, jnp.zeros(1, jnp.float32))


@needs_compiler
def test_any_function_of_a_file(made: Any, x64: None) -> None:
    """Variables at file scope and rows of pointers become parameters, a part of main a function of its own."""
    x, y = arrays((5,), (5,))
    scaled = made("scaled")
    np.testing.assert_allclose(scaled.scaled(x, scale=2.0, table=y), x + 2 * y, rtol=1e-6)
    (a,) = arrays((3, 5))
    np.testing.assert_allclose(made("rows").rows(3, a, x), a + x, rtol=1e-6)
    assert np.asarray(made("main").main(np.ones(8), np.ones(8))).tolist() == [3.0] * 8
    module = made("jax")
    (name,) = module.__all__
    np.testing.assert_allclose(getattr(module, name)(x, y), x + y, rtol=1e-6)


@needs_compiler
def test_a_number_is_as_wide_as_jax_allows(made: Any) -> None:
    """A double of C is one of Python where JAX has none, and what JAX has rounded is refused."""
    import jax

    wide = made("wide").wide
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    exact = 1 + 2.0**-40
    assert wide(exact, x, y - 1).tolist() == [2.0**-40] * 3
    assert jax.jit(lambda x: wide(exact, x, y - 1))(x).tolist() == [2.0**-40] * 3
    with pytest.raises(TypeError, match=r"a is a number .float64., and JAX has rounded it to float32"):
        jax.jit(wide)(exact, x, y)


@pytest.mark.wide
@needs_compiler
def test_the_example_of_the_documents(gemm: ModuleType, folder: Path, kept: Path) -> None:
    """It runs where looptune is not installed; the next process needs no compiler."""
    import jax

    text = (ROOT / "docs" / "deploy.md").read_text()
    (example,) = re.findall(r"```python\n(import jax\n.*?)```", text, re.DOTALL)
    assert "gemm_jax" in example
    shown = f"{example}\nprint(step(C, A, B).shape)\n"
    places = f"{folder}:{Path(jax.__file__).parents[1]}"
    assert run_alone(folder, shown, PYTHONPATH=places).split() == ["(100,", "100)"]
    assert run_alone(folder, shown, PYTHONPATH=places, PATH="").split() == ["(100,", "100)"]


@needs_compiler
def test_halves_are_computed_in_float(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number is rounded to its type before; a compiler that rounds every operation is refused."""
    import jax

    module = made("half")
    if module.half_flags() is None:
        pytest.skip("the compiler has no _Float16 that is computed in float")
    x, y = (np.linspace(0.1, 3, 7).astype(np.float16) for _ in range(2))
    expected = (y.astype(np.float32) + np.float32(np.float16(0.1)) * x).astype(np.float16)
    for call in (module.half, jax.jit(module.half)):
        found = np.asarray(call(0.1, x, y))
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found, expected)
    monkeypatch.setattr(module, "half_flags", lambda: None)
    with pytest.raises(RuntimeError, match=r"half computes with _Float16 in float, and .* rounds every operation"):
        module._compiled("half", module.sources(), module.KERNEL.options)


@needs_compiler
def test_a_module_may_be_imported_again(gemm: ModuleType, folder: Path) -> None:
    """As a notebook does; XLA refuses a second handler of one name."""
    again = imported(folder / "gemm_jax.py")
    assert again.CALL is not gemm.CALL
    c, a, b = arrays(*MATRICES)
    np.testing.assert_array_equal(again.gemm(1.5, 0.5, c, a, b), gemm.gemm(1.5, 0.5, c, a, b))


@needs_compiler
def test_what_the_compiler_says_is_told(gemm: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first error, or that there is none."""
    with pytest.raises(RuntimeError, match=r"gemm cannot be compiled: .*error: .*no_such_thing"):
        gemm._compiled("gemm", {"handler.c": "int x = no_such_thing;\n"}, ())
    monkeypatch.setattr(gemm, "compiler_command", lambda: ())
    with pytest.raises(RuntimeError, match="gemm is compiled when it is first called, and there is no C compiler"):
        gemm._compiled("gemm", {}, ())


@needs_compiler
def test_without_openmp_it_runs_on_one_core(gemm: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a warning in every process; clang often has no library for it."""
    compiles = gemm.compile_error
    monkeypatch.setattr(gemm, "compile_error", lambda options: "no" if gemm.OPENMP in options else compiles(options))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.warns(UserWarning, match="gemm runs on one core: .* has no OpenMP"):
        gemm._library("gemm", "0", gemm.sources(), gemm.KERNEL.options)
    assert not any(tmp_path.iterdir())


def test_the_module_is_text(folder: Path) -> None:
    """Of Python, with C to read, in which the handler gives the C function its arguments in their order."""
    text = written(folder, "axpy.c", "axpy").read_text()
    compile(text, "axpy_jax.py", "exec")
    assert "def axpy(a, x, y):" in text
    handler = jax_module.handler(load(f"{AXPY}\n").codelet, jax_module.CFunction({}, ("n", "a", "x", "y"), ""))
    (call,) = re.findall(r"^    (axpy\(.*?\));", handler, re.DOTALL | re.MULTILINE)
    assert re.findall(r"\.(\w+\[\d\])", call) == ["integers[0]", "numbers[0]", "arrays[0]", "arrays[1]"]
    assert "looptune_written[] = {0, 1}" in handler


def test_what_was_tuned_for_a_cpu_is_in_the_module(folder: Path, tmp_path: Path) -> None:
    """As the C of ``build --c``; the times are of other kernels, and the module says so."""
    unit = load(folder / "axpy.c")
    at = synthetic_database.this_cpu(unit, {"n": 64})
    db = synthetic_database.keep(tmp_path / "db", at, {"": 9.0, "loop i: unroll 2, remainder": 3.0})
    text = build.as_jax(unit, db, "auto", "looptune build")
    assert "Measured, as kernels made by Numba and not as the C below:\n" in text
    assert "3 times as fast as the default" in text
    own = text.partition("def sources")[2]
    assert "loop i: unroll 2, remainder" in own
    assert "y[2 * i + 1] += a * x[2 * i + 1];" in own


@cuda
def test_what_was_tuned_for_a_gpu_is_in_the_module(folder: Path, tmp_path: Path) -> None:
    """With what it was tuned for, by which the runtime selects it; the library has machine code of its architecture."""
    unit = load(folder / "axpy.c")
    at = synthetic_database.context(unit, {"n": 64})
    db = synthetic_database.keep(tmp_path / "db", at, {"": 9.0, "loop i: unroll 2, remainder": 3.0})
    text = build.as_jax(unit, db, "auto", "looptune build")
    names: dict[str, Any] = {"base64": base64, "json": json, "zlib": zlib}
    exec("def sources" + text.partition("def sources")[2].partition("\n\n\nPARAMETERS")[0], names)
    sources = names["sources"]()
    assert '"NVIDIA H200", 132, 90, sizes_0' in sources["axpy.c"]
    assert "_sm_90[" in sources["axpy_code.h"]
    assert {"handler.c", "looptune_runtime.c", "looptune_xla.h", "looptune_xla_cuda.h"} <= sources.keys()


def test_a_function_that_writes_nothing_is_refused(folder: Path) -> None:
    """A call would return nothing; so is one with more arguments than the handler has room for."""
    with pytest.raises(UsageError, match="reads writes no array"):
        written(folder, "source.c", "reads")
    many = ", ".join(f"float a{k}[n]" for k in range(jax_module.MOST + 1))
    (folder / "many.c").write_text(f"void many(int n, {many}) {{ for (int i = 0; i < n; i++) a0[i] = a1[i]; }}")
    with pytest.raises(UsageError, match="many has 65 arrays, and a call from XLA takes 64"):
        written(folder, "many.c", "many")


def test_a_module_is_for_python_alone(folder: Path) -> None:
    """It is neither C nor an operator of torch."""
    for other in ("--c", "--torch"):
        ran = looptune("build", "axpy.c", "--untuned", "--jax", other, cwd=folder)
        assert (ran.code, f"leave out {other}" in ran.err) == (2, True)


@pytest.fixture(scope="module")
def handlers(folder: Path) -> Path:
    """A program that calls as XLA does, and a handler of AXPY for the host."""
    jax = pytest.importorskip("jax")
    module = imported(written(folder, "axpy.c", "axpy"))
    (folder / "host.so").write_bytes(module._compiled("axpy", module.sources(), module.KERNEL.options))
    include = ["-I", jax.ffi.include_dir()]
    program = ROOT / "tests" / "deploy" / "xla_call.c"
    subprocess.run(["gcc", "-Wall", "-Wextra", *include, program, "-o", folder / "xla_call", "-ldl"], check=True)
    return folder


CALLS = (
    (("attribute",), "0 wrong"),
    (("operand",), "0 wrong"),
    (("attribute", "apart"), "0 wrong"),
    (("operand", "same"), "XLA gave x and y, one of which is written, one memory"),
    (("operand", "short"), "this is no call of the module's function"),
)


def calls(folder: Path, library: str, where: str, how: Sequence[str], **settings: object) -> list[str]:
    env = environment(folder, folder / "kernels.so", **settings)
    command = [folder / "xla_call", folder / library, where, *how]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@needs_compiler
@pytest.mark.parametrize(("how", "said"), CALLS)
def test_what_a_handler_does_with_a_call(handlers: Path, how: Sequence[str], said: str) -> None:
    """It says its version, and that it is recorded in no command buffer; memory that overlaps is refused."""
    assert calls(handlers, "host.so", "host", how) == ["version 1 1, traits 0", said]


@cuda
@pytest.mark.wide
@needs_compiler
def test_a_handler_on_a_gpu(handlers: Path) -> None:
    """Kernels run on XLA's stream, in its context; a number that is an operand is copied to the host before."""
    module = imported(written(handlers, "axpy.c", "axpy", "numba-cuda"))
    sources = module.sources()
    (handlers / "device.so").write_bytes(module._compiled("axpy", sources, module.KERNEL.options))
    write_fake_driver(handlers)
    write_kernels(sources["axpy.cu"], handlers)
    log = handlers / "log"
    for how, said in CALLS:
        assert calls(handlers, "device.so", "device", how, FAKE_CUDA_LOG=log) == ["version 1 1, traits 0", said]
    assert "misuse" not in log.read_text()
    said = calls(handlers, "device.so", "device", ["attribute"], FAKE_CUDA_CAPABILITY=50)
    assert said[1] == "there is no machine code for this device"
    assert module.KERNEL.platform == "CUDA"


@cuda
def test_numbers_of_python_are_parts_of_a_program_on_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler has to wait for an operand, and not for an attribute."""
    jax = pytest.importorskip("jax")
    module = imported(written(folder, "axpy.c", "axpy", "numba-cuda"))
    monkeypatch.setattr(module, "_registered", lambda *given: "no_such_handler")
    x = np.ones(4, np.float32)
    closed, traced = jax.make_jaxpr(lambda x, y: module.axpy(2.0, x, y))(x, x), jax.make_jaxpr(module.axpy)(2.0, x, x)
    for program, count in ((closed, 2), (traced, 3)):
        (call,) = (equation for equation in program.eqns if equation.primitive.name == "ffi_call")
        assert len(call.invars) == count


def test_the_handler_knows_the_size_of_every_type() -> None:
    """An array of unknown size would not be copied into its result."""
    header = files("looptune.deploy.runtime").joinpath("looptune_xla.h").read_text()
    cases = re.finditer(r"case XLA_FFI_DataType_(\w+):", header)
    sizes = {case[1]: header[case.end() :].partition("bytes = ")[2][:1] for case in cases}
    letters = {"float": "F", "uint": "U", "int": "S", "bfloat": "BF"}
    for name in TYPES:
        word, bits = re.fullmatch(r"([a-z]+)(\d*)", name).groups()  # type: ignore[union-attr]
        assert sizes[f"{letters[word]}{bits}" if bits else "PRED"] == str(int(bits or 8) // 8)
