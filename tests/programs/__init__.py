"""C functions that between them use everything a codelet may hold, each with the sizes it is run at."""

from __future__ import annotations

from programs.control import CONTROL
from programs.floats import FLOATS
from programs.integers import INTEGERS
from programs.kernels import KERNELS
from programs.shapes import SHAPES

ALL = (*INTEGERS, *FLOATS, *CONTROL, *SHAPES, *KERNELS)
