"""Distances of dependences: how many iterations of each loop are between the two ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy as isl

from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit


def least_distance_reaches(dependences: Iterable[isl.Map], factors: Sequence[int], least: int) -> bool:
    """Return whether the sum of the distances along the loops, each times its factor, is never less than ``least``.

    ``dependences``: maps { source[iteration] -> sink[iteration] } of statements in the same loops; ``factors`` of the
    first of them, the others count nothing. False for statements in fewer or different loops, and where isl gives up.

    >>> back = isl.Map("{ S[t, i] -> S[t + 1, j] : i - 1 <= j <= i + 1 }")
    >>> [least_distance_reaches([back], (f, 1), 0) for f in (0, 1)], least_distance_reaches([back], (1, 1), 1)
    ([False, True], False)
    """
    ends = isl.dim_type.in_, isl.dim_type.out
    try:
        with isl_operation_limit(QUESTION):
            for found in dependences:
                loops = found.dim(ends[0])
                if found.dim(ends[1]) != loops or loops < len(factors):
                    return False
                names = [f"d{k}" for k in range(loops)]
                total = " + ".join(f"{f}*{d}" for f, d in zip(factors, names, strict=False))
                short = isl.Set(f"{{ [{', '.join(names)}] : {total} < {least} }}")
                plain = found.reset_tuple_id(ends[0]).reset_tuple_id(ends[1])
                if not plain.deltas().intersect(short).is_empty():
                    return False
    except IslLimitExceeded:
        return False
    return True
