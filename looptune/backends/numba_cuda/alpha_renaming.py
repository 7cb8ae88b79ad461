"""Rename the names in a kernel's text by their position, so that kernels that differ only in names are compiled once.

def mm3_1(C, D, F):                       def mm3(a0, a1, a2):
    F_r = F[uint32(i * 512 + j)]   ==>        v3 = a2[uint32(v0 * 512 + v1)]
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass


def alpha_rename(text: str, entry: str) -> str:
    """Return the one function of ``text`` in canonical names.

    It is called ``entry``, with parameters a0, a1, ... and variables v0, v1, ...
    """
    (function,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    params = [arg.arg for arg in function.args.args]
    stored = (n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    variables = [name for name in dict.fromkeys(stored) if name not in params]
    names = {p: f"a{k}" for k, p in enumerate(params)} | {v: f"v{k}" for k, v in enumerate(variables)}
    function.name = entry
    return ast.unparse(_Renamed(names).visit(function)) + "\n"


@dataclass
class _Renamed(ast.NodeTransformer):
    names: Mapping[str, str]

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self.names[node.arg])
