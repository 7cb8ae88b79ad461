"""What the C runtime knows of the CUDA driver is what the toolkit's header declares."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

from tests.helpers.host_kernels import RUNTIME

pytestmark = [pytest.mark.wide, pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")]
CHECKS = """
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include "looptune_runtime.c"
template <class... P> struct sizes {
    template <class... Q> static constexpr bool same(CUresult (*)(Q...)) {
        constexpr size_t own[] = {sizeof(P)..., 0}, theirs[] = {sizeof(Q)..., 0};
        if (sizeof...(P) != sizeof...(Q)) return false;
        for (size_t k = 0; k < sizeof...(P); k++)
            if (own[k] != theirs[k]) return false;
        return true;
    }
};
template <class... P> sizes<P...> of(int (*)(P...));
static_assert(MOST_THREADS_PER_BLOCK == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "");
static_assert(MOST_DYNAMIC_SHARED == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "");
static_assert(MULTIPROCESSORS == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "");
static_assert(CAPABILITY_MAJOR == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "");
static_assert(CAPABILITY_MINOR == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "");
static_assert(WITHOUT_TIMING == CU_EVENT_DISABLE_TIMING && NON_BLOCKING == CU_STREAM_NON_BLOCKING, "");
static_assert(CUDA_OUT_OF_MEMORY == CUDA_ERROR_OUT_OF_MEMORY, "");
static_assert(CUDA_FIRST_OF_CAPTURE == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "");
static_assert(CUDA_LAST_OF_CAPTURE == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "");
static_assert(CAPTURE_OF_THREAD == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "");
static_assert(CAPTURE_RELAXED == CU_STREAM_CAPTURE_MODE_RELAXED && CU_STREAM_CAPTURE_STATUS_NONE == 0, "");
"""


def _include() -> Path | None:
    """The folder of cuda.h, of the packages that numba-cuda needs or of a toolkit."""
    try:
        listed = files("nvidia-cuda-runtime") or []
    except PackageNotFoundError:
        listed = []
    found = [Path(str(path.locate())) for path in listed if path.name == "cuda.h"]
    return next((path.parent for path in (*found, Path("/usr/local/cuda/include/cuda.h")) if path.exists()), None)


def test_declarations(tmp_path: Path) -> None:
    """Each function has as many parameters, of the same sizes, and each number is the header's."""
    include = _include()
    if include is None:
        pytest.skip("needs cuda.h")
    text = (RUNTIME / "looptune_driver.h").read_text()
    functions = re.findall(r'X\((\w+), "(\w+)",', text)
    assert len(functions) > 30
    checks = [f'static_assert(decltype(of(cuda.{name}))::same({symbol}), "{symbol}");' for name, symbol in functions]
    (tmp_path / "checks.cpp").write_text("\n".join([CHECKS, *checks]) + "\n")
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{include}", f"-I{RUNTIME}", "checks.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
