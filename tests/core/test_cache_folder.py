"""The folder of compiled code: where it is, how large it gets, and what killed runs leave."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from looptune.core import cache_folder
from looptune.core.errors import UsageError
from looptune.tune.session.prepare import TuningRequest, prepare


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_without_a_home_folder_there_is_another(home: str, tmp_path: Path) -> None:
    """A temporary one that nobody else can write to, and a note; commands that need none say nothing."""
    (tmp_path / "f.c").write_text("void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] = 1; }\n")
    env = {**os.environ, "HOME": home, "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-m", "looptune", "transform", "f.c"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    folder = tmp_path / f"looptune-cache-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_can_write_to_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a link: what lies in the folder is run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = tmp_path / f"looptune-cache-{os.getuid()}"
    (tmp_path / "elsewhere").mkdir()
    own.symlink_to(tmp_path / "elsewhere")
    assert cache_folder._temporary() != own
    own.unlink()
    own.mkdir()
    own.chmod(0o777)
    assert cache_folder._temporary() != own
    own.chmod(0o700)
    assert cache_folder._temporary() == own


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    """Down to the limit; never what was used within the hour, nor what was measured of devices."""
    day = time.time() - 86400
    for k in range(6):
        (tmp_path / f"{k}").write_bytes(bytes(100))
        os.utime(tmp_path / f"{k}", (day + k, day))
    (tmp_path / "peaks.json").write_bytes(bytes(100))
    os.utime(tmp_path / "peaks.json", (1, 1))
    (tmp_path / "new").write_bytes(bytes(1000))
    assert cache_folder.trim(tmp_path, 1300) == 300
    assert sorted(os.listdir(tmp_path)) == ["3", "4", "5", "new", "peaks.json"]
    assert cache_folder.trim(tmp_path, 0) == 300
    assert sorted(os.listdir(tmp_path)) == ["new", "peaks.json"]


def test_the_limit_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gigabytes in LOOPTUNE_CACHE_GB; what is no number is passed over."""
    for text, gb in (("0.5", 0.5), ("10", 10.0), ("", 2.0), ("many", 2.0), ("-1", 2.0), ("1e9", 2.0)):
        monkeypatch.setenv("LOOPTUNE_CACHE_GB", text)
        assert cache_folder.limit_gb() == gb


def test_what_a_killed_run_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and folders whose process is gone; those of one that lives, and other people's names, stay."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "from looptune.core import cache_folder; print(cache_folder.process_prefix())"
    gone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / f"{gone}worker-a").write_text("log")
    (tmp_path / f"{gone}b" / "c").mkdir(parents=True)
    (tmp_path / f"{gone}b" / "c" / "d").write_text("x")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "f").write_text("x")
    (tmp_path / f"{gone}b" / "link").symlink_to(tmp_path / "kept")
    stay = [f"{cache_folder.process_prefix()}worker-a", "looptune-notes-of-mine", "looptune-1-x-y"]
    for name in stay:
        (tmp_path / name).write_text("x")
    cache = tmp_path / "cache"
    cache.mkdir()
    cache_folder.trim_hourly(cache)
    assert sorted(os.listdir(tmp_path)) == sorted([*stay, "cache", "kept"])
    assert (tmp_path / "kept" / "f").exists()


def test_arrays_that_no_machine_holds_are_refused_early(tmp_path: Path) -> None:
    """With what they would need and what there is, before anything is analysed."""
    (tmp_path / "f.c").write_text(
        "void f(int n, float A[n][n], float x[n]) "
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) x[i] += A[i][j]; }\n"
    )
    with pytest.raises(UsageError, match=r"A would need 4 TB, this machine has .* GB"):
        prepare(TuningRequest(tmp_path / "f.c", defines={"n": "1000000"}, target="numba-cpu", sweep=True))
