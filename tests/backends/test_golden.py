"""The source that looptune emits for the suite's kernels is what stands in ``tests/golden``, to the byte.

    python -m pytest tests/backends/test_golden.py -m "" --update-golden    writes the files anew: look at their diff

<kernel>.<target>         as the file is annotated, with its own sizes
<kernel>.best.<target>    under the directives that won on an H200, at the sizes they won at

Of a long text, as unrolled loops make it, the file holds the first lines and a digest of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from looptune.core.floating_point import Floats
from looptune.deploy import source_to_source
from looptune.deploy.compile import scheduled
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from tests.helpers.paths import POLYBENCH, TESTS
from tests.helpers.suite_winners import winner

GOLDEN = TESTS / "golden"
KERNELS = tuple(sorted(p.stem for p in POLYBENCH.glob("*.c")))
TARGETS = ("numba-cuda", "cuda-c", "opencl", "numba-cpu")
LONGEST, KEPT = 500, 200
"""Lines of a text that is kept whole, and what is kept of a longer one."""
FLOATS = Floats(contract="off")
"""Otherwise a CPU's text depends on what the C compiler there contracts."""


def emitted(kernel: str, lines: Sequence[str], defines: dict[str, str | None], target: str, cache: Path) -> str:
    """Return what ``looptune emit`` prints."""
    unit = load(POLYBENCH / f"{kernel}.c", defines=defines)
    done = scheduled(unit, lines, FLOATS)
    planned = lower(done.codelet, "\n".join(lines), done.asserted, blocks=targets.specializes_sizes(target, cache))
    return targets.emit(target, planned, cache, targets.DEFAULT_ARCH, FLOATS)


def abridged(text: str) -> str:
    """Return the text, or its first lines and the digest of all others."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= LONGEST:
        return text
    rest = "".join(lines[KEPT:])
    return "".join(lines[:KEPT]) + f"({len(lines) - KEPT} more lines, sha256 {sha256(rest.encode()).hexdigest()})\n"


def compare(name: str, text: str, request: pytest.FixtureRequest) -> None:
    path, text = GOLDEN / name, abridged(text)
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"{name} is missing: write it with --update-golden"
    assert text == path.read_text(), f"the emitted text differs from tests/golden/{name}"


@pytest.mark.sampled(2)
@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_default_version_is_emitted_as_before(
    kernel: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A file's own directives give the text that they gave."""
    compare(f"{kernel}.{target}", emitted(kernel, (), {}, target, tmp_path), request)


@pytest.mark.sampled(2)
@pytest.mark.sampled(20, "wide")
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_best_version_is_emitted_as_before(
    kernel: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The directives of a sweep's winner give the text that they gave."""
    lines, defines = winner(kernel)
    compare(f"{kernel}.best.{target}", emitted(kernel, lines, defines, target, tmp_path), request)


@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_best_version_is_transformed_as_before(kernel: str, request: pytest.FixtureRequest) -> None:
    """The directives of a sweep's winner give the C that they gave."""
    lines, defines = winner(kernel)
    text = source_to_source.transform(POLYBENCH / f"{kernel}.c", lines, defines=defines, floats=FLOATS)
    compare(f"{kernel}.best.c", text, request)


def test_every_file_is_compared() -> None:
    """No golden file is left over from a kernel or a target that is gone."""
    own = {f"{k}.{t}" for k in KERNELS for t in TARGETS}
    best = {f"{k}.best.{t}" for k in KERNELS for t in ("numba-cuda", "cuda-c", "c")}
    assert {p.name for p in GOLDEN.iterdir()} == own | best
