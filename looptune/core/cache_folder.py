"""The cache folder (compiled code, reference results, peaks): its place and its size limit.

    $XDG_CACHE_HOME/looptune       2 GB, or LOOPTUNE_CACHE_GB; the least recently used files are removed first
    ~/.cache/looptune              where that is not set
    a folder of this user's own    if that one cannot be made or written, in the system's folder for temporary files

Files of a run that was killed (logs of its workers) are removed by the next run, once their process has ended.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

LIMIT_GB = 2.0
_UNUSED_S = 3600.0
"""What was used within this time stays: somebody may be about to read it."""
_EVERY_S = 3600.0
_STAMP = ".trimmed"
_KEPT = ("peaks.json", _STAMP)


@cache
def choose_folder() -> tuple[Path, str]:
    """Return the folder, and a message for the user ("" for none)."""
    try:
        usual = _cache_home() / "looptune"
        usual.mkdir(parents=True, exist_ok=True)
        if os.access(usual, os.W_OK | os.X_OK):
            return usual, ""
        why = f"{usual} cannot be written"
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
    except RuntimeError:
        why = "there is no home folder"
    folder = _temporary()
    return folder, f"{why}: compiled code is kept in {folder}"


def _cache_home() -> Path:
    """Return the user's folder for caches; a relative XDG_CACHE_HOME does not count, as its specification says."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".cache"


def _temporary() -> Path:
    """Return a folder to which nobody else can write, since the files in it are executed."""
    own = Path(tempfile.gettempdir()) / f"looptune-cache-{os.getuid()}"
    with suppress(OSError):
        own.mkdir(mode=0o700, exist_ok=True)
        found = own.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            return own
    return Path(tempfile.mkdtemp(prefix="looptune-cache-"))


def trim(folder: Path, limit_bytes: float) -> int:
    """Remove what was not used for longest until the rest is within the limit; return how many bytes went."""
    found = []
    for path in folder.rglob("*"):
        with suppress(OSError):
            held = path.lstat()
            if stat.S_ISREG(held.st_mode) and path.name not in _KEPT:
                found.append((max(held.st_atime, held.st_mtime), held.st_size, path))
    total = sum(size for _, size, _ in found)
    gone, now = 0, time.time()
    for used, size, path in sorted(found):
        if total - gone <= limit_bytes or now - used < _UNUSED_S:
            break
        with suppress(OSError):
            path.unlink()
            gone += size
    return gone


def trim_hourly(folder: Path) -> None:
    """Trim the folder, once an hour, and remove what killed runs left among the temporary files."""
    with suppress(OSError):
        _tidy_temporary(Path(tempfile.gettempdir()))
        stamp = folder / _STAMP
        if stamp.exists() and 0 <= time.time() - stamp.stat().st_mtime < _EVERY_S:
            return
        stamp.touch()
        trim(folder, limit_gb() * 1e9)


def limit_gb() -> float:
    """Return LOOPTUNE_CACHE_GB if it is a number, else the default."""
    given = os.environ.get("LOOPTUNE_CACHE_GB", "")
    return float(given) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", given, re.ASCII) else LIMIT_GB


def process_prefix() -> str:
    """Return the prefix of temporary file names, which identifies this process and its start."""
    return f"looptune-{os.getpid()}-{_started(os.getpid())}-"


def _started(pid: int) -> str:
    """Return the tick a process began at; "0" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


def _tidy_temporary(folder: Path) -> None:
    for path in folder.glob("looptune-*-*-*"):
        named = re.match(r"looptune-(\d{1,10})-(\d{1,20})-", path.name, re.ASCII)
        with suppress(OSError):
            mine = path.lstat().st_uid == os.getuid() and not path.is_symlink()
            if named is None or not mine or named[2] == "0" or _started(int(named[1])) == named[2]:
                continue
            _remove(path)


def _remove(path: Path) -> None:
    if not path.is_dir():
        path.unlink()
        return
    for below in sorted(path.rglob("*"), reverse=True):
        if below.is_dir() and not below.is_symlink():
            below.rmdir()
        else:
            below.unlink()
    path.rmdir()
