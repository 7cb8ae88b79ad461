"""``looptune build --torch``: the function as an operator of torch, where torch is and with a stand-in for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from looptune.deploy.torch_operator import schema
from looptune.frontend import load
from tests.helpers.built_modules import cuda, imported, written
from tests.helpers.command_line import looptune

pytestmark = pytest.mark.filterwarnings("ignore:.*nothing was tuned")

TEXT = """
void update(int n, int lambda, float a, const float x[n], float y[n], float z[n])
{
    for (int i = 0; i < n; i++) {
        y[i] += a * x[i];
        z[i] = y[i] + lambda;
    }
}
"""


class Operator:
    """What ``torch.library.custom_op`` was given."""

    def __init__(self, name: str, function: Callable[..., None], mutates_args: tuple[str, ...], schema: str) -> None:
        self.name, self.function, self.mutates, self.schema = name, function, mutates_args, schema
        self.fake: Callable[..., None] | None = None

    def register_fake(self, function: Callable[..., None]) -> Callable[..., None]:
        self.fake = function
        return function


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    torch.library = SimpleNamespace(custom_op=Operator)
    torch.cuda = SimpleNamespace(current_stream=lambda: "the current stream")
    monkeypatch.setitem(sys.modules, "torch", torch)


@pytest.mark.usefixtures("fake_torch")
def test_the_operator_says_what_it_changes(tmp_path: Path) -> None:
    """Its schema has the C function's parameters; a fake kernel does nothing; a call is one of the function."""
    made = imported(written(tmp_path, TEXT, None, "numba-cpu", default=True, torch=True))
    operator = made.update_op
    assert operator.name == "looptune::update"
    assert operator.mutates == ("y", "z")
    parameters = "SymInt n, SymInt lambda_, float a, Tensor x, Tensor(a0!) y, Tensor(a1!) z"
    assert operator.schema == f"({parameters}) -> ()"
    assert "update_op" in made.__all__
    x, y, z = (np.full(5, v, np.float32) for v in (1, 2, 3))
    operator.fake(5, 1, 2.0, x, y, z)
    assert y.tolist() == [2.0] * 5
    operator.function(5, 1, 2.0, x, y, z)
    assert (y.tolist(), z.tolist()) == ([4.0] * 5, [5.0] * 5)


@pytest.mark.usefixtures("fake_torch")
def test_names_of_the_module_are_no_names_of_the_function(tmp_path: Path) -> None:
    """A function called torch does not hide the library, nor a parameter the function."""
    text = "void torch(int n, float torch[n], float CURRENT_STREAM[n]) { for (int i = 0; i < n; i++) torch[i] = 1; }"
    made = imported(written(tmp_path, text, None, "numba-cpu", default=True, torch=True))
    assert made.torch__op.schema == "(SymInt n, Tensor(a0!) torch, Tensor CURRENT_STREAM_) -> ()"
    y = np.zeros(3, np.float32)
    made.torch__op.function(3, y, np.zeros(3, np.float32))
    assert y.tolist() == [1.0] * 3


@cuda
@pytest.mark.usefixtures("fake_torch")
def test_a_gpu_works_on_the_current_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that torch uses at the call, so that torch's graphs contain the call."""
    made = imported(written(tmp_path, TEXT, None, "numba-cuda", default=True, torch=True))
    calls: list[Any] = []
    monkeypatch.setattr(made, "CALL", lambda *given: calls.append(given))
    made.update_op.function(5, 1, 2.0, "x", "y", "z")
    assert calls == [((5, 1), (2.0,), ("x", "y", "z"), "the current stream")]


def test_an_operator_that_only_reads_changes_nothing() -> None:
    """A codelet with one output has one marked tensor."""
    codelet = load(
        "void f(int n, const double x[n], double s[1]) { for (int i = 0; i < n; i++) s[0] += x[i]; }\n"
    ).codelet
    assert schema(codelet, ["n", "x", "s"]) == "(SymInt n, Tensor x, Tensor(a0!) s) -> ()"


def test_torch_is_for_modules(tmp_path: Path) -> None:
    """C has no operators."""
    (tmp_path / "f.c").write_text(TEXT)
    ran = looptune("build", "f.c", "--untuned", "--c", "--torch", "-o", "out.c", cwd=tmp_path)
    assert (ran.code, "--torch makes an operator of a Python module" in ran.err) == (2, True)
    ran = looptune("build", "f.c", "--untuned", "--target", "numba-cpu", "-o", "plain.py", cwd=tmp_path)
    assert ran.code == 0
    assert "import torch" not in (tmp_path / "plain.py").read_text()


@pytest.mark.wide
def test_torch_compiles_around_the_operator(tmp_path: Path) -> None:
    """Without a break in the graph, at several sizes; torch's own checks of an operator pass."""
    torch = pytest.importorskip("torch")
    made = imported(written(tmp_path, TEXT, None, "numba-cpu", default=True, torch=True))

    def work(x: Any, y: Any, z: Any) -> Any:
        made.update_op(x.shape[0], 1, 2.0, x, y, z)
        return (y * z).sum()

    compiled = torch.compile(work, backend="aot_eager", fullgraph=True)
    for n in (5, 8, 13):
        x, y, z = torch.rand(n), torch.rand(n), torch.zeros(n)
        expected = y + 2 * x
        assert torch.allclose(compiled(x, y, z), (expected * (expected + 1)).sum())
        assert torch.allclose(y, expected)
    found = torch.library.opcheck(made.update_op, (5, 1, 2.0, torch.rand(5), torch.rand(5), torch.rand(5)))
    assert set(found.values()) == {"SUCCESS"}
