"""Nests in the styles of other suites and fields, with derived spaces, each within a short budget, in one table.

    python -m benchmarks.nests --budget 15s                all nests of benchmarks/nests
    python -m benchmarks.nests softmax transpose           some of them

For each it runs ``looptune run benchmarks/nests/NEST.c --sweep``. None of them is annotated; several have shown what
derived spaces lacked, and one that stays slow shows what they lack. *Default* is the grid of the two outermost parallel
loops; *original* is the file's text on one core, as it is run for the comparison.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "nests"
SCALARS: Mapping[str, tuple[str, ...]] = {
    "column_statistics": ("n=1000000", "m=64"),
    "conjugate_gradients": ("iters=20",),
    "gaussian_elimination": ("n=1024",),
    "needleman_wunsch": ("penalty=10",),
    "relaxation": ("tol=1e-9",),
    "rms_norm": ("t=4096", "d=4096"),
    "sobel": ("w=4096", "h=4096"),
}
"""The values of parameters."""


def measured(nest: str, options: argparse.Namespace, folder: Path) -> Mapping[str, Any]:
    """Return the record of one search, with ``why`` it has no result in it where there is none."""
    defined = [part for value in SCALARS.get(nest, ()) for part in ("-D", value)]
    command = [
        sys.executable, "-m", "looptune", "run", str(FOLDER / f"{nest}.c"), "--sweep", "--budget", options.budget,
        "--target", options.target, "--db", str(folder / f"{nest}.sqlite"), "--reports", str(folder), "--json",
        "--no-handwritten", *defined,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"why": (done.stderr.strip().splitlines() or ["no output"])[0][:100]}
    record = found[0] if isinstance(found, list) else found
    return record if record["tuned_us"] else {**record, "why": "no version in time"}


def us(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def row(nest: str, record: Mapping[str, Any]) -> str:
    """Return a line of the table."""
    quartiles = [us(record.get(f"tuned_{q}_us")) for q in ("q1", "q3")]
    cells = (
        nest, us(record.get("tuned_us")), " .. ".join(q for q in quartiles if q), us(record.get("default_us")),
        us(record.get("sequential_us")), str(record.get("versions", {}).get("timed", 0)), record.get("why", ""),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure the nests, and print each line of the table when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("nests", nargs="*", help="names of files without .c; default: all")
    parser.add_argument("--budget", default="15s")
    parser.add_argument("--target", default="auto")
    options = parser.parse_args()
    print("| nest | tuned (us) | quartiles (us) | default (us) | original (us) | timed | note |")
    print("|---|---:|---:|---:|---:|---:|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for nest in options.nests or sorted(path.stem for path in FOLDER.glob("*.c")):
            print(row(nest, measured(nest, options, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
