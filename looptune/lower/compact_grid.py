"""The grid of a kernel as it is launched where blocks without work are left out: see ``passes.grid_compaction``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactGrid:
    """Block (x, y) of ``columns`` and ``rows`` has something to do where ``a x + b y + c >= 0``; ``a`` is not 0."""

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
        """Of the launch, along x and y."""
        half = (self.rows + 1) // 2
        return max(self._both(q) for q in range(half)), half

    @property
    def exact(self) -> bool:
        """No block of the launch is idle."""
        width, half = self.blocks
        return all(self._both(q) == width for q in range(half))

    def _both(self, q: int) -> int:
        other = self.rows - 1 - q
        return len(self.row(q)) + (len(self.row(other)) if other != q else 0)
