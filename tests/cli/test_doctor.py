"""The doctor: what is missing is named, with the command that mends it, and nothing it finds makes it fail."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

from looptune.cli import doctor
from looptune.cli.doctor import Probe, examine, python_finding, requirement_finding, run_probe


def test_versions_compare_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip compares them: numbers as numbers, a version before a release as one before it, local suffixes aside."""
    for version, clauses, status in (
        ("1.26", ">=1.26.0", "ok"), ("2.10.0", ">=2.9", "ok"), ("0.30.4+cu13", ">=0.30.4,<0.31", "ok"),
        ("2.5.0.dev0+git", ">=1.26,<2.5", "missing"), ("2.5.0rc1", ">=1.26", "ok"), ("0.1", "", "ok"),
    ):  # fmt: skip
        monkeypatch.setattr(metadata, "version", lambda name, version=version: version)
        assert requirement_finding(f"numpy{clauses}").status == status, (version, clauses)


def test_an_old_python_is_missing() -> None:
    """A Python below the supported one is named with the version to install; the bound itself is fine."""
    assert python_finding((3, 11, 0)).status == "ok"
    old = python_finding((3, 10, 14))
    assert (old.status, old.found) == ("missing", "3.10.14")
    assert "3.11" in old.mend


def test_an_absent_requirement_names_its_command() -> None:
    """What is always needed is missing, what an extra needs is a warning; both say what to install."""
    needed = requirement_finding("no-such-package>=1")
    assert (needed.status, needed.mend) == ("missing", "pip install 'no-such-package>=1'")
    optional = requirement_finding("no-such-package[x]>=1; extra == 'plot'")
    assert (optional.status, optional.mend) == ("warn", doctor.install_command("plot"))


@pytest.mark.parametrize(
    ("url", "prefix", "command"),
    [
        ('{"url": "file:///here", "dir_info": {"editable": true}}', "/venv", "pip install -e '.[cuda]' in the"),
        ('{"url": "file:///here/looptune.whl", "archive_info": {}}', "/venv", "pip install 'looptune[cuda]'"),
        (None, "/home/a/.local/share/pipx/venvs/looptune", "pipx install --force 'looptune[cuda]'"),
        (None, "/home/a/.local/share/uv/tools/looptune", "uv tool install 'looptune[cuda]'"),
        (None, "/home/a/.cache/uv/archive-v0/lQ_pP0", "uvx --from 'looptune[cuda]' looptune"),
    ],
)
def test_remedies_are_of_the_way_looptune_was_installed(
    monkeypatch: pytest.MonkeyPatch, url: str | None, prefix: str, command: str
) -> None:
    """A user of a wheel has no repository; and a module that is missing is no driver that is missing."""
    monkeypatch.setattr(metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: url))
    monkeypatch.setattr(sys, "prefix", prefix)
    assert doctor.install_command("cuda").startswith(command)
    no_module = run_probe(Probe("GPU", "import no_such_module", "warn", "install the driver", extra="cuda"))
    assert no_module.mend.startswith(command)
    no_driver = run_probe(Probe("GPU", "raise RuntimeError('NVML')", "warn", "install the driver", extra="cuda"))
    assert no_driver.mend == "install the driver"


def test_a_version_out_of_range_is_shown_with_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy 2.5 is refused, and both the version found and the range are in the finding."""
    monkeypatch.setattr(metadata, "version", lambda name: "2.5.2")
    finding = requirement_finding("numpy<2.5,>=1.26")
    assert (finding.status, finding.found) == ("missing", "2.5.2, outside <2.5,>=1.26")


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("raise RuntimeError('no driver')", "RuntimeError: no driver"),
        ("import os, sys; sys.stderr.write(''); os.abort()", "exit code -6"),
        ("import time; time.sleep(60)", "no answer within 0.5 s"),
    ],
)
def test_a_probe_that_fails_is_a_finding(program: str, found: str) -> None:
    """An exception, an abort and a hang each become a finding with its evidence."""
    finding = run_probe(Probe("probe", program, "warn", "mend it", limit_s=0.5 if "sleep" in program else 60))
    assert (finding.status, finding.found, finding.mend) == ("warn", found, "mend it")


def test_this_environment_is_fit_for_looptune() -> None:
    """Here, where the tests run, nothing is missing, and each requirement of the metadata has one finding."""
    findings = examine(probes=(Probe("one", "print('two')", "missing", "-"),))
    assert [f for f in findings if f.status == "missing"] == []
    assert all(bool(f.mend) == (f.status != "ok") for f in findings)
    names = [f.name for f in findings]
    assert len(names) == len(set(names))
    assert {"Python", "numpy", "numba", "islpy", "pycparser", "pcpp", "click", "one", "gcc"} <= set(names)


def test_an_uninstalled_package_is_said_to_be() -> None:
    """Run from a tree that was never installed, the doctor says so rather than fail."""
    (finding,) = doctor.package_findings("no-such-package")
    assert (finding.name, finding.status) == ("no-such-package", "missing")


@pytest.mark.wide
def test_the_threads_probe_runs_in_parallel_here() -> None:
    """The CPU target works: the probe compiles and runs a parallel loop."""
    (probe,) = (p for p in doctor.PROBES if p.name == "CPU threads")
    assert run_probe(probe).status == "ok"


def test_importing_the_doctor_is_light() -> None:
    """The module imports neither numba nor NumPy: the command line's start-up stays fast."""
    code = "import sys, looptune.cli.doctor; print(sorted({'numba', 'numpy', 'islpy'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


def test_the_compiler_of_cuda_is_asked_for_with_what_emits_it() -> None:
    """The probe imports what ``emit`` and ``run`` need, so that it is not "ok" where they would say what is missing."""
    probe = next(p for p in doctor.PROBES if p.name == "CUDA compiler")
    assert "import cuda.bindings, cuda.core, numba_cuda" in probe.program
