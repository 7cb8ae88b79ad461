"""The loop IR, and what can be done to any tree: rewriting, simplification, interpretation, printing as C."""

import ml_dtypes  # noqa: F401 (NumPy then has the dtype "bfloat16")
