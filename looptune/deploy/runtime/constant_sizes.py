"""Kernels with the sizes of a call as constants, for a compiler that then knows strides, trip counts and remainders.

    def gemm_2(C, A, B, ni, nj): ...     ==>     def gemm_2(C, A, B, ni, nj): nj = uint32(1000); ...

Types, parameters and launches stay the same. A module compiles such a kernel once for each set of sizes, and keeps it
in files (``cubin_cache``).
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, Literal

from looptune.deploy.runtime.devices import numba_type

SPECIALIZE: Literal["background"] | bool = True
"""Whether kernels are compiled for sizes that were not tuned: True, at the first call with them; "background", while
calls run kernels for any sizes; False, never. A program may set it."""
MOST_SPECIALIZED = 64
"""Sets of sizes; later ones run the kernels for any sizes."""
Sizes = tuple[tuple[int, int], ...]
"""Numbers of a kernel's parameters, each with its value."""


class SizedKernel:
    """What is compiled in place of a kernel of the module."""

    def __init__(self, py_func: Callable[..., None], targetoptions: Mapping[str, Any]) -> None:
        self.py_func, self.targetoptions, self.__name__ = py_func, targetoptions, py_func.__name__


def with_constants(kernel: Any, signature: Sequence[str], sizes: Sizes) -> SizedKernel | None:
    """Return the kernel with these parameters as constants, or None where its file has another text than was loaded."""
    code = kernel.py_func.__code__
    try:
        module = ast.parse("".join(linecache.getlines(code.co_filename, kernel.py_func.__globals__)))
    except SyntaxError:
        return None
    found = [n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == code.co_name]
    if len(found) != 1:
        return None
    (function,) = found
    function.decorator_list = []
    # How a name is called depends on whether the module imports it.
    module.body = [*(n for n in module.body if isinstance(n, ast.Import | ast.ImportFrom)), function]
    if _instructions(_compiled(module, code)) != _instructions(code):
        return None
    names, namespace = [a.arg for a in function.args.args], dict(kernel.py_func.__globals__)
    for place, value in sizes:
        made = f"{names[place]}__type"
        namespace[made] = numba_type(signature[place])
        function.body.insert(0, ast.parse(f"{names[place]} = {made}({value})").body[0])
    return SizedKernel(FunctionType(_compiled(module, code), namespace), kernel.targetoptions)


def _compiled(module: ast.Module, like: CodeType) -> CodeType:
    """Return the code of the one function of a module."""
    whole = compile(ast.fix_missing_locations(module), like.co_filename, "exec", dont_inherit=True)
    return next(part for part in whole.co_consts if isinstance(part, CodeType))


def _instructions(code: CodeType) -> tuple[Any, ...]:
    return code.co_name, code.co_varnames, code.co_names, code.co_code, repr(code.co_consts)
