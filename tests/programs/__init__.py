"""C functions that between them use everything a codelet may hold, each with the sizes it is run at."""

from __future__ import annotations

from tests.programs.control import CONTROL
from tests.programs.floats import FLOATS
from tests.programs.integers import INTEGERS
from tests.programs.kernels import KERNELS
from tests.programs.shapes import SHAPES

ALL = (*INTEGERS, *FLOATS, *CONTROL, *SHAPES, *KERNELS)
