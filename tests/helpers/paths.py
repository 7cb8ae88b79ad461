"""Where things are in the repository."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
DATA = TESTS / "data"
POLYBENCH = ROOT / "polybench"
POLYBENCH_C = POLYBENCH / "c"
