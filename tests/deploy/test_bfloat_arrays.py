"""Arrays of bfloat16 as callers have them: ml_dtypes, torch, files, and what an array interface says."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import looptune
from looptune.core.errors import UsageError
from looptune.core.short_floats import type_of
from looptune.runtime import numpy_files
from tests.helpers.built_modules import imported, written

BF = np.dtype("bfloat16")
TEXT = (
    "\nvoid scale(int n, __bf16 a, const __bf16 x[n], __bf16 y[n]) { for (int i = 0; i < n; i++) y[i] = a * x[i]; }\n"
)


class Tensor:
    """A tensor in the host's memory, whose library knows no NumPy array of bfloat16."""

    dtype = "torch.bfloat16"
    is_cuda = False
    requires_grad = False
    int16 = "torch.int16"

    def __init__(self, held: np.ndarray) -> None:
        self.held = held

    @property
    def shape(self) -> tuple[int, ...]:
        return self.held.shape

    def data_ptr(self) -> int:
        return self.held.ctypes.data

    def detach(self) -> Tensor:
        return self

    def view(self, kind: str) -> Tensor:
        assert kind == self.int16
        plain = Tensor(self.held)
        plain.dtype = kind
        return plain

    def numpy(self) -> np.ndarray:
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.held.view(np.int16)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    torch.int16 = Tensor.int16
    monkeypatch.setitem(sys.modules, "torch", torch)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.filterwarnings("ignore:.*nothing was tuned")
def test_tensors_of_torch_share_their_memory(tmp_path: Path) -> None:
    """A kernel and a built module write into the tensor, and round the number that they are given once."""
    x = np.array([1, 2.5, -3], BF)
    want = (np.float32(1 + 2**-7) * x.astype(np.float32)).astype(BF)
    module = imported(written(tmp_path, TEXT, None, "numba-cpu", default=True))
    for call in (looptune.compile(TEXT, target="numba-cpu"), module.scale):
        y = np.zeros(3, BF)
        call(3, 1 + 2**-8 + 2**-40, Tensor(x), Tensor(y))
        np.testing.assert_array_equal(y, want)
    text = Path(module.__file__).read_text()
    assert "import ml_dtypes" in text
    assert "needs numba and numpy, ml_dtypes." in text


def test_files_keep_the_type(tmp_path: Path) -> None:
    """NumPy stores it as two bytes of no type."""
    numpy_files.write(tmp_path / "a.npz", {"x": np.array([1, 2.5], BF), "f": np.ones(2, np.float16)})
    found = numpy_files.read(tmp_path / "a.npz")
    assert isinstance(found, dict)
    assert (found["x"].dtype, found["f"].dtype) == (BF, np.float16)
    np.save(tmp_path / "b.npy", found["x"])
    np.testing.assert_array_equal(numpy_files.read(tmp_path / "b.npy"), np.array([1, 2.5], BF))


def test_an_array_interface_names_it_as_ml_dtypes_does() -> None:
    assert type_of(BF.str) == BF
    assert type_of("<f2") == np.float16


@pytest.mark.usefixtures("stand_in")
@pytest.mark.filterwarnings("ignore:.*nothing was tuned")
def test_a_tensor_that_requires_grad_is_not_written(tmp_path: Path) -> None:
    """Torch would differentiate what was there before."""
    x, y = Tensor(np.ones(3, BF)), Tensor(np.zeros(3, BF))
    y.requires_grad = True
    module = imported(written(tmp_path, TEXT, None, "numba-cpu", default=True))
    with pytest.raises(ValueError, match="y requires grad and is written in place"):
        module.scale(3, 2.0, x, y)
    with pytest.raises(UsageError, match=r"y: .*requires grad"):
        looptune.compile(TEXT, target="numba-cpu")(3, 2.0, x, y)
