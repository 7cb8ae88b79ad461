"""Built modules compile kernels for the sizes of a call: what is compiled when, and that it computes the same."""

from __future__ import annotations

import importlib
import linecache
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from looptune.deploy import build
from looptune.frontend import load
from tests.helpers import synthetic_database
from tests.helpers.built_modules import ROWS, TUNED, cuda, imported, run_alone, written
from tests.helpers.paths import POLYBENCH

pytestmark = [cuda, pytest.mark.filterwarnings("ignore:rows. nothing was tuned")]
Compiled = list[tuple[str, tuple[int, ...]]]
"""Kernels, each with the values of its constant sizes."""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """``rows``, tuned for 12 x 20 on the GPU that the driver has; ``compiled`` is what its compiler was asked for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    unit = load(ROWS)
    at = synthetic_database.context(unit, {"n": 12, "m": 20})
    db = synthetic_database.keep(tmp_path / "db", at, {"": 9.0, TUNED: 5.0})
    return on_a_fake_gpu(imported(written(tmp_path, ROWS, db, "numba-cuda")))


def on_a_fake_gpu(made: ModuleType) -> SimpleNamespace:
    from tests.helpers import fake_cuda_driver

    driver, compiled = fake_cuda_driver.install(made), Compiled()
    plain = made.cubin

    def cubin(kernel: Any, signature: Any, arch: str) -> bytes:
        constants = [v for n, v in kernel.py_func.__globals__.items() if n.endswith("__type")]
        compiled.append((kernel.__name__, tuple(_values(kernel.py_func)) if constants else ()))
        return bytes(plain(kernel, signature, arch))

    vars(made)["cubin"] = cubin
    return SimpleNamespace(made=made, driver=driver, compiled=compiled, array=fake_cuda_driver.DeviceArray)


def _values(function: Any) -> list[int]:
    return sorted(v for v in function.__code__.co_consts if isinstance(v, int) and v in (7, 12, 20, 30, 31, 50))


def call(module: SimpleNamespace, n: int, m: int) -> None:
    far = [module.array(s, pointer=(1 << 30) + (k << 24)) for k, s in enumerate(((n, m), (n,), (m,)))]
    module.made.rows(n, m, *far)


def test_kernels_are_compiled_for_the_sizes_of_a_call(module: SimpleNamespace) -> None:
    """Those of the sweep have them already; others once, whoever asks again."""
    call(module, 12, 20)
    assert [values for _, values in module.compiled] == [()]
    call(module, 30, 50)
    call(module, 30, 50)
    call(module, 31, 50)
    assert [values for _, values in module.compiled[1:]] == [(30, 50), (31, 50)]
    assert module.made.match(30, 50).plan == module.made.CONFIGURATIONS[0]["elsewhere"]


@pytest.mark.parametrize("setting", ["never", "too many"])
def test_the_kernel_for_any_sizes_runs_otherwise(module: SimpleNamespace, setting: str) -> None:
    """Where the program asks for that, or calls with ever other sizes."""
    vars(module.made).update({"SPECIALIZE": False} if setting == "never" else {"MOST_SPECIALIZED": 0})
    call(module, 30, 50)
    call(module, 31, 50)
    assert [values for _, values in module.compiled] == [()]


def call_while_compiling(module: SimpleNamespace, n: int, m: int) -> None:
    """A call that comes before the end of the compilation that it begins in the background, which then ends."""
    usual, called = vars(module.made)["cached_cubin"], Event()

    def after_the_call(*given: Any) -> bytes:
        assert current_thread() is main_thread() or called.wait(60)
        code: bytes = usual(*given)
        return code

    vars(module.made)["cached_cubin"] = after_the_call
    call(module, n, m)
    (begun,) = (made for (_, sizes), made in module.made.CALL.compiling.items() if sizes == (n, m))
    called.set()
    begun.join(60)
    vars(module.made)["cached_cubin"] = usual


def test_it_runs_while_others_are_compiled_in_the_background(module: SimpleNamespace) -> None:
    """Then the call takes what was compiled."""
    vars(module.made)["SPECIALIZE"] = "background"
    call_while_compiling(module, 30, 50)
    assert sorted(values for _, values in module.compiled) == [(), (30, 50)]
    kernels = len(module.made.CALL.compiled)
    call(module, 30, 50)
    assert len(module.compiled) == 2, "the machine code comes from its file"
    assert len(module.made.CALL.compiled) == kernels + 1
    call(module, 30, 50)
    assert len(module.made.CALL.compiled) == kernels + 1


def test_a_failure_in_the_background_is_a_warning(module: SimpleNamespace, recwarn: pytest.WarningsRecorder) -> None:
    """One that names the error and the line of the call; the kernels for any sizes go on, at these sizes and others."""
    vars(module.made)["SPECIALIZE"] = "background"
    usual = vars(module.made)["cached_cubin"]

    def broken(*given: Any) -> bytes:
        if len(given) > 4:
            raise RuntimeError("NVVM: out of memory")
        code: bytes = usual(*given)
        return code

    vars(module.made)["cached_cubin"] = broken
    for n in (30, 31):
        call_while_compiling(module, n, 50)
        call(module, n, 50)
        call(module, n, 50)
    (failed,) = (w for w in recwarn if "runs kernels for any sizes" in str(w.message))
    said = "because those for n=30, m=50 could not be compiled: RuntimeError: NVVM: out of memory"
    assert str(failed.message) == f"rows runs kernels for any sizes, {said}"
    assert failed.filename == __file__
    assert [values for _, values in module.compiled] == [()]
    assert len(module.driver.launched) == 6


def test_a_file_that_was_replaced_is_not_compiled(module: SimpleNamespace) -> None:
    """The text has to be that of the kernel that was loaded."""
    path = Path(module.made.__file__)
    path.write_text(path.read_text().replace("def rows_", "def other_rows_").replace(" + ", " - "))
    linecache.clearcache()
    call(module, 30, 50)
    assert [values for _, values in module.compiled] == [()]


def test_a_capture_goes_on_with_the_kernels_it_began_with(module: SimpleNamespace) -> None:
    """Loading allocates, which a capture forbids; the memory that a graph uses stays."""
    vars(module.made)["SPECIALIZE"] = "background"
    call_while_compiling(module, 30, 50)
    kernels, (ready,) = len(module.made.CALL.compiled), module.made.CALL.own.ready.values()
    module.driver.streams_capture = 1
    call(module, 30, 50)
    assert len(module.made.CALL.compiled) == kernels
    module.driver.streams_capture = 0
    call(module, 30, 50)
    assert len(module.made.CALL.compiled) == kernels + 1
    assert [held.before for held in module.made.CALL.own.ready.values()] == [ready.bound]


def test_what_is_compiled_in_the_background_needs_no_cache(
    module: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that takes it does not compile it again where no file can be written."""
    vars(module.made)["SPECIALIZE"] = "background"
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    call_while_compiling(module, 30, 50)
    call(module, 30, 50)
    assert sorted(values for _, values in module.compiled) == [(), (30, 50)]
    assert not module.made.CALL.prepared


def test_each_architecture_is_compiled_for_in_the_background(module: SimpleNamespace) -> None:
    """A second GPU of another kind does not wait either."""
    vars(module.made)["SPECIALIZE"] = "background"
    call_while_compiling(module, 30, 50)
    module.driver.capability, module.driver.context = (8, 0), 2
    module.driver.cuPointerGetAttribute = lambda *_: (0, 1)
    module.made.context_device = lambda _: 1
    call(module, 30, 50)
    module.made.CALL.compiling["sm_80", (30, 50)].join(60)


STEP = """void step(int n, int t, int ld, int m, float x[n], float y[100])
{ int end = m - 1; for (int i = 0; i < n; i++) for (int j = 0; j < end; j++) x[i] += t * y[j * ld]; }
"""


def test_integers_that_are_no_sizes_stay_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that passes the number of a time step does not wait for a compiler in each."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    (tmp_path / "made.py").write_text(build.as_python(load(STEP), tmp_path, "numba-cuda", "", default=True))
    module = on_a_fake_gpu(imported(tmp_path / "made.py"))
    assert [p.name for p in module.made.PARAMETERS if not p.size] == ["t"]
    far = [module.array((n,), pointer=(1 << 30) + (n << 24)) for n in (30, 100)]
    for t in range(3):
        with pytest.warns() if t == 0 else nullcontext():
            module.made.step(30, t, 20, 4, *far)
    assert [values for _, values in module.compiled] == [(20, 30)]
    module.made.step(30, 0, 12, 4, *far)
    assert [values for _, values in module.compiled] == [(20, 30), (12, 30)]


def test_a_module_in_an_archive_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loader has the text."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("packed.py", build.as_python(load(STEP), tmp_path, "numba-cuda", "", default=True))
    monkeypatch.syspath_prepend(str(tmp_path / "a.zip"))
    packed = importlib.import_module("packed")
    monkeypatch.delitem(sys.modules, "packed")
    (kernel, signature), *_ = packed.SIGNATURES.items()
    place = next(k for k, kind in enumerate(signature) if "[" not in kind)
    assert packed.with_constants(kernel, signature, ((place, 30),)) is not None


@pytest.mark.wide
def test_they_compute_the_same(tmp_path: Path) -> None:
    """3MM's three products share a kernel for any sizes, which has three sets of constants."""
    made = _elsewhere(tmp_path, "3mm", "loop 3: tile k:8\nloop 6: tile k:8\nloop 9: tile k:8")
    code = """
import made as t, warnings, types
warnings.simplefilter("ignore")
t.CALL.device = lambda: t.Device("NVIDIA H200", 132, "sm_90")
plain, used = t.CALL._launch, []
def sized(kernel, grid, block, *args):
    sizes = tuple((k, int(a)) for k, a in enumerate(args) if isinstance(a, t.Size))
    fake = types.SimpleNamespace(py_func=kernel.fn, targetoptions={})
    one = t.with_constants(fake, t.SIGNATURES[kernel], sizes)
    used.append(sizes)
    again = t.cuda.jit(one.py_func)
    t.SIGNATURES[again] = t.SIGNATURES[kernel]
    plain(again, grid, block, *(1 if isinstance(a, t.Size) else a for a in args))
t.CALL._launch = sized
t.in_order_ = t.in_order
vars(t)["in_order"] = lambda params, ints, reals, arrays: t.in_order_(params, map(t.Size, ints), reals, arrays)
ni, nj, nk, nl, nm = 9, 11, 7, 5, 6
rng = np.random.default_rng(0)
A, B, C, D = (rng.random(s, dtype=np.float32) for s in ((ni, nk), (nk, nj), (nj, nm), (nm, nl)))
E, F, G = (np.zeros(s, np.float32) for s in ((ni, nj), (nj, nl), (ni, nl)))
given = dict(ni=ni, nj=nj, nk=nk, nl=nl, nm=nm, A=A, B=B, C=C, D=D, E=E, F=F, G=G)
getattr(t, t.TUNED.name.replace("3mm", "_3mm") if not hasattr(t, t.TUNED.name) else t.TUNED.name)(
    *(given[p.name] for p in t.PARAMETERS))
assert np.allclose(G, (A @ B) @ (C @ D), rtol=1e-4)
print(len(used), len(set(used)))
"""
    assert run_alone(tmp_path, code, NUMBA_ENABLE_CUDASIM="1").split() == ["3", "3"]
    assert made


def _elsewhere(folder: Path, kernel: str, lines: str) -> ModuleType:
    """A module of a kernel of the suite that was tuned at one size, 64."""
    unit = load(POLYBENCH / f"{kernel}.c", defines=dict.fromkeys(("ni", "nj", "nk", "nl", "nm", "m", "n"), 64))
    db = synthetic_database.keep(folder / "db", synthetic_database.context(unit, unit.values), {lines: 5.0})
    (folder / "made.py").write_text(build.as_python(unit, db, "numba-cuda", ""))
    return imported(folder / "made.py")


@pytest.mark.wide
def test_the_compiler_sees_numbers(tmp_path: Path) -> None:
    """The machine code of a product reads no size from its parameters."""
    made = _elsewhere(tmp_path, "gemm", "loop i: unroll 2, jam\nloop k: tile k:16\nloop k: stage A, B")
    plan = made.CONFIGURATIONS[0]["elsewhere"]
    found: list[tuple[Any, tuple[tuple[int, int], ...]]] = []
    ints = {"ni": made.Size(100), "nj": made.Size(96), "nk": made.Size(80)}
    params = [ints.get(p.name, made.ArgumentSlot(0)) for p in made.PARAMETERS]
    made.PLANS[plan].launches(
        lambda k, grid, block, *args: found.append((k, made.constant_sizes(args))), lambda *_: None, *params
    )
    ((kernel, sizes),) = found
    assert sorted(v for _, v in sizes) == [80, 96, 100]
    signature = made.SIGNATURES[kernel]
    any_sizes, sized = (
        made.ptx(k, signature, "sm_90") for k in (kernel, made.with_constants(kernel, signature, sizes))
    )
    assert any_sizes.count("ld.param.u32") >= 3
    assert sized.count("ld.param.u32") == 0
    assert made.entry_of(made.cubin(made.with_constants(kernel, signature, sizes), signature, "sm_90"), kernel.__name__)
