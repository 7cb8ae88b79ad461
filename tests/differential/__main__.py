"""``python -m tests.differential --cases 10000 [--seed N] [--targets a,b]``: random programs against gcc."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("NUMBA_OPT", "0")
if "--device" not in sys.argv:
    os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")

from tests.differential.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
