"""What the C runtime has in common with Python's is the same: choosing a version, and the tolerance of a result."""

from __future__ import annotations

import ctypes
import itertools
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from looptune.deploy.runtime.lookup import Device, look_up
from looptune.runtime.tolerance import RoundingEstimate, tolerance
from tests.helpers.host_kernels import LIBRARIES, RUNTIME, compiled, environment, write_fake_driver

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
DEVICES = (
    Device("NVIDIA H200", 132, "sm_90"),
    Device("NVIDIA A100", 108, "sm_80"),
    Device("NVIDIA A10", 84, "sm_86"),
    Device("NVIDIA B200", 148, "sm_100"),
    Device("NVIDIA H200", 120, "sm_90"),
)
NAMES = ("n", "m")
SELECTION = """
#include "looptune_runtime.h"
#include <stdio.h>
static int plan(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    (void)run, (void)arguments, (void)arrays;
    return LOOPTUNE_OK;
}
static const char *const names[] = {"n", "m"};
"""


def test_selection(tmp_path: Path) -> None:
    """On tables, devices and sizes at random, the C runtime finds the row that Python's look_up finds."""
    rng = random.Random(3)
    tables = [_table(rng) for _ in range(40)]
    wanted = [tuple(_size(rng) for _ in NAMES) for _ in range(8)]
    parts = [SELECTION, *(_versions(k, table) for k, table in enumerate(tables))]
    parts.append(f"static const long long wanted[][2] = {{{', '.join(f'{{{a}, {b}}}' for a, b in wanted)}}};")
    parts.append("int main(void) { const char *level, *directives; int k;")
    for k, table in enumerate(tables):
        found = f"looptune_match(&c{k}, wanted[k], &level, &directives)"
        parts.append(f'static struct looptune_codelet c{k} = {{"c", "c", v{k}, {len(table)}, names, 2, plan, 1, 0}};')
        parts.append(f'for (k = 0; k < {len(wanted)}; k++) {{ {found}; printf("%s;%s\\n", level, directives); }}')
    parts.append("return 0; }")
    (tmp_path / "selection.c").write_text("\n".join(parts) + "\n")
    write_fake_driver(tmp_path)
    compiled(
        [
            "gcc",
            "-O1",
            "-Wall",
            f"-I{RUNTIME}",
            "selection.c",
            RUNTIME / "looptune_runtime.c",
            "-o",
            "selection",
            *LIBRARIES,
        ],
        tmp_path,
    )
    for device in DEVICES:
        assert _selected(tmp_path, device) == [_expected(t, device, sizes) for t in tables for sizes in wanted]


def _size(rng: random.Random) -> int:
    return rng.choice([0, 1, 10, 100, 1000, rng.randrange(1, 5000)])


def _table(rng: random.Random) -> list[dict[str, Any]]:
    rows = []
    for k in range(rng.randrange(7)):
        device = rng.choice(DEVICES)
        rows.append(
            {
                "device": device.name,
                "cores": device.cores,
                "capability": device.capability,
                "sizes": {name: _size(rng) for name in NAMES},
                "plan": f"exact {k}",
                "elsewhere": rng.choice([f"elsewhere {k}", None]),
            }
        )
    return rows


def _versions(number: int, table: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        f'{{"{row["device"]}", {row["cores"]}, {row["capability"][3:]}, s{number}_{k}, plan, '
        f'{"plan" if row["elsewhere"] else "0"}, "{k}"}}'
        for k, row in enumerate(table)
    ]
    sizes = [
        f"static const long long s{number}_{k}[] = {{{row['sizes']['n']}, {row['sizes']['m']}}};"
        for k, row in enumerate(table)
    ]
    if not rows:
        return f"#define v{number} 0"
    return "\n".join([*sizes, f"static const struct looptune_version v{number}[] = {{{', '.join(rows)}}};"])


def _selected(folder: Path, device: Device) -> list[str]:
    settings = {
        "FAKE_CUDA_NAME": device.name,
        "FAKE_CUDA_MULTIPROCESSORS": device.cores,
        "FAKE_CUDA_CAPABILITY": device.capability[3:],
    }
    own = dict(environment(folder, None, **settings))
    done = subprocess.run([folder / "selection"], env=own, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.splitlines()


def _expected(table: Sequence[Mapping[str, Any]], device: Device, sizes: Sequence[int]) -> str:
    match = look_up(table, "default", device, dict(zip(NAMES, sizes, strict=True)))
    number = "" if match.configuration is None else str(list(table).index(match.configuration))
    return f"{match.level};{number}"


COMPARISON = """
#include "looptune_runtime.c"
typedef unsigned long long u64;
u64 differing(const void *got, void *expected, u64 bytes, int kind, int item, double terms, double shift);
u64 differing(const void *got, void *expected, u64 bytes, int kind, int item, double terms, double shift) {
    struct looptune_array a = {"a", 0, 0, 0, 0, 0};
    struct difference d = {0, 0, 0, 0, 0, 0, 0, 0};
    a.host = expected;
    a.bytes = bytes;
    a.kind = (char)kind;
    a.item = (unsigned char)item;
    compare(&d, &a, got, terms, 0, shift);
    return d.count;
}
"""


@pytest.fixture(scope="module", params=["-O1", "-Ofast"])
def differing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("comparison")
    (folder / "comparison.c").write_text(COMPARISON)
    # Linked with -Ofast, it would round subnormal numbers to zero in the whole process.
    compiled(["gcc", request.param, "-fPIC", f"-I{RUNTIME}", "-c", "comparison.c"], folder)
    compiled(["gcc", "-shared", "comparison.o", "-o", "c.so", *LIBRARIES], folder)
    function = ctypes.CDLL(str(folder / "c.so")).differing
    function.restype = ctypes.c_ulonglong
    pointer = ctypes.c_void_p
    function.argtypes = [pointer, pointer, ctypes.c_ulonglong, ctypes.c_int, ctypes.c_int, *[ctypes.c_double] * 2]
    return lambda got, expected, terms, shift=0.0: function(
        got.ctypes.data, expected.ctypes.data, expected.nbytes,
        ord("b" if expected.dtype.name == "bfloat16" else expected.dtype.kind),
        expected.dtype.itemsize,
        terms, shift,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3, 100, 1001])
def test_tolerance(differing: Any, dtype: str, count: int) -> None:
    """As many elements differ as by looptune's tolerance: around it, with infinities and NaN, where results move."""
    rng = np.random.default_rng(count)
    for terms, move in itertools.product((1, 50, 4000), (0, 1e-5, 1)):
        expected = rng.normal(size=count).astype(dtype) * rng.choice([0, 1, 1000], count).astype(dtype)
        expected[rng.random(count) < 0.05] = rng.choice([np.nan, np.inf, -np.inf])
        moved = (expected + move * rng.random(count)).astype(dtype)
        allowed = tolerance("a", expected, terms, RoundingEstimate({"a": moved}, {}))
        got = (expected + allowed * rng.choice([0, 0.5, 1.5, -0.9, -1.2], count)).astype(dtype)
        got[rng.random(count) < 0.05] = rng.choice([np.nan, np.inf])
        with np.errstate(invalid="ignore"):
            error = np.abs(got.astype("float64") - expected.astype("float64"))
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        wrong = ~same & ~(np.isfinite(expected) & np.isfinite(got) & (error <= allowed))
        with np.errstate(invalid="ignore"):
            shifts = np.abs(moved.astype("float64") - expected.astype("float64"))
        assert differing(got, expected, terms, np.max(shifts[np.isfinite(shifts)], initial=0)) == wrong.sum()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "longdouble"])
def test_exact(differing: Any, dtype: str) -> None:
    """Integers, and floats of other widths, must be equal."""
    expected = np.arange(100).astype(dtype)
    got = expected.copy()
    assert differing(got, expected, 1) == 0
    got[[3, 99]] += 1
    assert differing(got, expected, 1e9) == 2
