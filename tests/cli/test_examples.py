"""What an installed looptune has besides code: examples, a README whose links lead somewhere, completion, caches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from looptune.cli import examples
from looptune.core import cache_folder
from tests.helpers.built_modules import imported
from tests.helpers.command_line import looptune
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def setup() -> ModuleType:
    return imported(ROOT / "setup.py")


def test_examples_are_copied_and_work(tmp_path: Path) -> None:
    """Programs, spaces and hand-written kernels; what is there stays, and what differs is not overwritten."""
    listed = looptune("examples", cwd=tmp_path)
    assert listed.code == 0
    assert all(name in listed.out for name, _ in examples.FOLDERS)
    assert sum(map(int, re.findall(r"(\d+) files", listed.out))) == len(examples._files(ROOT))
    assert looptune("examples", "new/lessons", cwd=tmp_path).code == 0
    found = tmp_path / "new" / "lessons"
    for name in ("polybench/gemm.c", "polybench/c/gemm.c", "polybench/handwritten/gemm.py", "pragmas/gemm.pragmas",
                 "gatlas/product.c", "examples/mirror/pyproject.toml"):  # fmt: skip
        assert (found / name).read_bytes() == (ROOT / name).read_bytes()
    assert looptune("check", "new/lessons/polybench/gemm.c", cwd=tmp_path).code == 0
    assert looptune("examples", "new/lessons", cwd=tmp_path).code == 0
    (found / "pragmas" / "gemm.pragmas").write_text("mine")
    again = looptune("examples", "new/lessons", cwd=tmp_path)
    assert again.code == 2
    assert "gemm.pragmas is not the file of the examples" in again.err
    assert (found / "pragmas" / "gemm.pragmas").read_text() == "mine"


def test_an_installation_without_examples_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where neither the package nor a checkout has them."""
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "a" / "looptune" / "cli" / "examples.py"))
    ran = looptune("examples", cwd=tmp_path)
    assert ran.code == 2
    assert "this installation has no examples" in ran.err


def test_links_of_the_readme_lead_out_of_a_package(setup: ModuleType) -> None:
    """Relative ones become absolute, pictures as files; others and anchors stay."""
    text = "[a](docs/a.md) ![b](r/b.png) [c](https://x/y) [d](#d) [e [1]](LICENSE)"
    assert setup.absolute_links(text, "https://h/p") == (
        "[a](https://h/p/blob/main/docs/a.md) ![b](https://h/p/raw/main/r/b.png) [c](https://x/y) [d](#d) "
        "[e [1]](https://h/p/blob/main/LICENSE)"
    )
    whole = setup.absolute_links((ROOT / "README.md").read_text(), "https://h/p")
    assert "](docs/" not in whole
    assert "](reports/" not in whole


def test_caches_follow_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An absolute XDG_CACHE_HOME is used, and a relative one is not."""
    cache_folder.choose_folder.cache_clear()
    try:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
        assert cache_folder.choose_folder() == (tmp_path / "caches" / "looptune", "")
        cache_folder.choose_folder.cache_clear()
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert cache_folder.choose_folder() == (tmp_path / ".cache" / "looptune", "")
    finally:
        cache_folder.choose_folder.cache_clear()


def test_a_shell_completes_commands_and_options() -> None:
    """As the line of the documentation asks it to, for a command and for an option."""
    for words, at, expected in (("looptune exa", 1, "examples"), ("looptune run --swe", 2, "--sweep")):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(at), "_LOOPTUNE_COMPLETE": "bash_complete"}
        code = "import sys; sys.argv = ['looptune']; from looptune.cli.main import main; main()"
        ran = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert f"plain,{expected}" in ran.stdout.split(), ran.stderr


@pytest.mark.long
def test_a_wheel_and_a_source_distribution_are_whole(tmp_path: Path) -> None:
    """The wheel has the marker of types and every example, the sdist what is needed to build and test it."""
    pytest.importorskip("build")
    subprocess.run(["git", "checkout-index", "-a", f"--prefix={tmp_path}/copy/"], cwd=ROOT, check=True)
    build = [sys.executable, "-m", "build", "--no-isolation", "-o", tmp_path / "dist"]
    subprocess.run(build, cwd=tmp_path / "copy", check=True, capture_output=True)
    (wheel,), (source,) = (tmp_path / "dist").glob("*.whl"), (tmp_path / "dist").glob("*.tar.gz")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert "looptune/py.typed" in held
    assert {f"looptune/data/{p.relative_to(ROOT)}" for p in examples._files(ROOT)} <= held
    with tarfile.open(source) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"MANIFEST.in", "tests/conftest.py", "docs/index.md", "polybench/gemm.c", "pragmas/gemm.pragmas"} <= names
