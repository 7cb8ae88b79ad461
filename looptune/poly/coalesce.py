"""Reduce the number of pieces of a set by isl's ``coalesce``, as far as that can be trusted.

islpy 2026.2.2 fails on some maps whose pieces have integer divisions that the equalities of the piece decide: with
"original tableau does not correspond to original basic map", or with a segmentation fault. Once each piece is
simplified there are no such pieces; if it still fails, only time is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import islpy as isl

_Sets = TypeVar("_Sets", isl.Set, isl.Map)


def coalesce(found: _Sets) -> _Sets:
    """Return an equal set or map with fewer pieces, if isl finds some that can be merged."""
    if _pieces(found) < 2:
        return found
    return found.detect_equalities().remove_redundancies().coalesce()


def union_by_halves(parts: Sequence[isl.Set]) -> isl.Set:
    """Return the union of the parts, at least one; of many, isl merges neighbours sooner than all of them at once."""
    if len(parts) == 1:
        return coalesce(parts[0])
    half = len(parts) // 2
    return coalesce(union_by_halves(parts[:half]).union(union_by_halves(parts[half:])))


def _pieces(found: isl.Set | isl.Map) -> int:
    return found.n_basic_map() if isinstance(found, isl.Map) else found.n_basic_set()
