"""How many loop nests of other people's programs are analysed: a table by suite, and what the rest needs.

    python benchmarks/census.py rodinia=rodinia/openmp npb=NPB3.0-omp-C parboil=Parboil

Each argument is a name and a folder (or a file) with C; ``NAME=FOLDER:K`` is every K-th of its files, read with all its
headers. Nothing is compiled. ``analysed`` are the nests that are found
to be parallel, a reduction, or sequential; the second table counts the other ones by the construct that prevents it.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

from looptune.report.scan.findings import NestFinding, scan
from looptune.report.scan.sources import sources
from looptune.report.table import Column, Table
from looptune.runtime.device import cores

VERDICTS = ("parallel", "reduction", "sequential", "unknown", "not supported", "stopped")
_NAMES = (
    (r"^\S+(, (?:which|an|of type|a) )", r"…\1"),
    (r"^(the pointer|the array|this use of the struct|a call of|a write to|subscript|the bound|the condition) .*",
     r"\1 …"),
    (r"^(goto|fields of types) .*", r"\1 …"),
    (r"^\S+ (is not declared)", r"… \1"),
    (r"^\S+ (is changed and used)", r"… \1"),
    (r"\(\w+\)", "(…)"),
    (r"^(the loops of) \S+", r"\1 …"),
)  # fmt: skip


def construct(nest: NestFinding) -> str:
    """Return what prevents the analysis of a nest, without the names of the program."""
    reasons = [f.reason for f in nest.loops if f.verdict == "unknown"] or [nest.reason]
    said = reasons[0].partition(": ")[0]
    for pattern, short in _NAMES:
        said = re.sub(pattern, short, said)
    return said.partition(" is not accepted in a codelet")[0][:90]


def main(arguments: list[str]) -> int:
    """Print both tables for the suites that are given as NAME=FOLDER or NAME=FOLDER:K."""
    if not arguments or not all("=" in a for a in arguments):
        print(__doc__)
        return 2
    rows: list[tuple[str, ...]] = []
    constructs: Counter[tuple[str, str]] = Counter()
    for name, _, where in (a.partition("=") for a in arguments):
        folder, _, every = where.partition(":")
        given = sources((Path(folder),), {}, ())[:: int(every or 1)]
        begin = time.monotonic()
        nests = [n for file in scan(given, cores()) for n in file.nests]
        counts = Counter(n.verdict for n in nests)
        done = sum(counts[v] for v in VERDICTS[:3])
        share = f"{100 * done / len(nests):.0f} %" if nests else "-"
        seconds = f"{time.monotonic() - begin:.0f}"
        rows.append((name, str(len(given)), str(len(nests)), share, *(str(counts[v]) for v in VERDICTS), seconds))
        constructs.update((name, construct(n)) for n in nests if n.verdict in VERDICTS[3:])
    columns = [Column(c, c, "number") for c in ("files", "nests", "analysed", *VERDICTS, "seconds")]
    print(Table("suites", "Suites", (Column("suite", "suite"), *columns), tuple(rows)).text())
    print()
    columns = [Column("suite", "suite"), Column("nests", "nests", "number"), Column("what", "prevents the analysis")]
    others = tuple((suite, str(count), what) for (suite, what), count in constructs.most_common())
    print(Table("constructs", "Constructs", tuple(columns), others).text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
