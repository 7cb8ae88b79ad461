"""``python -m tests.differential --cases 10000 [--seed N] [--targets a,b]``: see ``tests/test_differential.py``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("NUMBA_OPT", "0")
if "--device" not in sys.argv:
    os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")

from differential.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
