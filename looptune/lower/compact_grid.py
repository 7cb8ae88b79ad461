"""The grid of a kernel as it is launched without its idle blocks: see ``passes.grid_compaction``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactGrid:
    """A grid of ``columns`` x ``rows`` blocks; block (x, y) has work if ``a x + b y + c >= 0``; ``a`` is not 0."""

    a: int
    b: int
    c: int
    columns: int
    rows: int

    def row(self, y: int) -> range:
        """Return the blocks of a row that have work."""
        most = self.b * y + self.c
        first, end = (-(most // self.a), self.columns) if self.a > 0 else (0, most // -self.a + 1)
        first, end = max(0, first), min(self.columns, end)
        return range(first, max(first, end))

    @property
    def blocks(self) -> tuple[int, int]:
        """Return the number of blocks of the launch along x and y."""
        half = (self.rows + 1) // 2
        return max(self._both(q) for q in range(half)), half

    @property
    def exact(self) -> bool:
        """Return whether no block of the launch is idle."""
        width, half = self.blocks
        return all(self._both(q) == width for q in range(half))

    def _both(self, q: int) -> int:
        other = self.rows - 1 - q
        return len(self.row(q)) + (len(self.row(other)) if other != q else 0)
