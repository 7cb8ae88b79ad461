"""The progress of a sweep: one live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from itertools import compress
from typing import TYPE_CHECKING, TextIO

from looptune.core.si_units import time_text
from looptune.runtime.outcome import CLASSES

if TYPE_CHECKING:
    from looptune.tune.execution.lab import Progress
    from looptune.tune.store.store import Context

PLAIN_EVERY_S = 10.0
ABREAST = 2
"""Sweeps at once that have room on a line."""


class ProgressLine:
    """A callback that writes the progress of a sweep to ``stream``.

    ``of`` are the contexts that are swept at the same time; they are named by kernel, by sizes if a kernel has several,
    and by device. Each prints lines of its own; on a terminal they share one line, which shows two contexts, or of more
    the sum and the newest result.
    """

    def __init__(self, stream: TextIO, of: Iterable[Context]) -> None:
        every = [*of]
        kernels, devices = {c.kernel for c in every}, {c.device for c in every}
        sized = len({(c.kernel, c.sizes) for c in every}) > len(kernels)
        self.stream = stream
        self.several = (len(kernels) > 1, sized, len(devices) > 1)
        self.live = stream.isatty()
        self.last = time.monotonic()
        self.best: dict[Context, float | None] = {}
        self.latest: dict[Context, Progress] = {}

    def __call__(self, progress: Progress) -> None:
        part = progress.last.context
        self.latest[part] = progress
        done = progress.done >= progress.total
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            every = list(self.latest.values())
            text = self._all(progress) if len(every) > ABREAST else "  ".join(self._named(p) for p in every)
            ended = all(p.done >= p.total for p in every)
            self.stream.write(f"\r\x1b[2K{text[:width]}" + ("\n" if ended else ""))
            self.stream.flush()
            return
        best = None if progress.best is None else progress.best.median_us
        if not done and best == self.best.get(part) and time.monotonic() - self.last < PLAIN_EVERY_S:
            return
        self.best[part], self.last = best, time.monotonic()
        print(self._named(progress), file=self.stream, flush=True)

    def _all(self, last: Progress) -> str:
        done, total = (sum(getattr(p, n) for p in self.latest.values()) for n in ("done", "total"))
        return f"{done:,}/{total:,} versions  {self._named(last)}"

    def _named(self, progress: Progress) -> str:
        context = progress.last.context
        named = ", ".join(compress((context.kernel, _sizes(context), context.device), self.several))
        return f"{named}: {line(progress)}" if named else line(progress)


def _sizes(context: Context) -> str:
    """Return the sizes of the context, without scalars that are not sizes."""
    return " ".join(f"{name}={value}" for name, value in json.loads(context.sizes).items() if isinstance(value, int))


def line(progress: Progress) -> str:
    """Return the progress as one line: ``[ 42/387] best 1.2 ms (loop k: unroll 4) | 2 illegal | 1:10 left``."""
    width = len(str(progress.total))
    parts = [f"[{progress.done:{width}}/{progress.total}]"]
    if progress.best is not None and progress.best.median_us is not None:
        how = progress.best.directives.replace("\n", "; ")
        parts.append(f"best {time_text(progress.best.median_us)} ({how if how else 'default'})")
    failed = [f"{progress.counts[c]} {c.replace('_', ' ')}" for c in CLASSES if c != "timed" and progress.counts.get(c)]
    parts += [", ".join(failed)] if failed else []
    parts += [f"{progress.resumed} from the database"] if progress.resumed else []
    if progress.eta_s is not None and progress.done < progress.total:
        parts.append(f"{int(progress.eta_s) // 60}:{int(progress.eta_s) % 60:02d} left")
    return " | ".join(parts)
