"""The runtime as text: the files of ``deploy.runtime`` one after the other, with one block of imports for all.

Imports of each other are removed; module docstrings become comments.
"""

from __future__ import annotations

import ast
import importlib
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

WIDTH = 120
RUNTIME = "looptune.deploy.runtime"
COMMON = (
    "looptune.core.short_floats",
    "looptune.runtime.tolerance",
    f"{RUNTIME}.lookup",
    f"{RUNTIME}.arguments",
    f"{RUNTIME}.row_arguments",
    "looptune.runtime.array_reach",
    "looptune.runtime.c_compiler",
    "looptune.runtime.c_program",
    f"{RUNTIME}.independent",
    f"{RUNTIME}.function",
)
CUDA = (
    *COMMON,
    "looptune.backends.cuda.driver",
    "looptune.backends.cuda.fork",
    "looptune.backends.cuda.launch",
    "looptune.backends.numba_cuda.tested_versions",
    "looptune.backends.numba_cuda.noalias",
    *(f"{RUNTIME}.{name}" for name in ("module_folder", "cubin_cache", "devices", "constant_sizes", "cuda_function")),
    f"{RUNTIME}.simulator_function",
)
KEPT = ("looptune.core.cache_file", "looptune.backends.numba_cpu.code_cache")
CPU = (
    *COMMON,
    "looptune.runtime.cpu_name",
    *KEPT,
    "looptune.backends.numba_cpu.openmp_layer",
    "looptune.backends.numba_cpu.parallel_for",
    f"{RUNTIME}.cpu_function",
)
JAX = (
    "looptune.core.short_floats", f"{RUNTIME}.arguments", "looptune.runtime.array_reach", "looptune.runtime.c_compiler",
    "looptune.runtime.cpu_name", "looptune.core.cache_file", f"{RUNTIME}.module_folder", f"{RUNTIME}.jax_function",
)  # fmt: skip
"""What a module of JAX consists of."""
ORIGINAL = (*KEPT, "looptune.backends.numba_cpu.reassociated_operations")
"""What the original loops of a module for a GPU are compiled with, on the CPU; it comes before the others."""
COMPILED = ("looptune.backends.numba_cpu.reassociated_operations", "looptune.backends.numba_cpu.noalias_pipeline")
"""What the CPU's kernels are compiled with."""


@dataclass(frozen=True, slots=True)
class InlinedRuntime:
    """The text of the runtime that a module contains.

    ``imports``: what the text imports, by module ("" for ``import name``); ``names``: what it defines.
    """

    imports: frozenset[tuple[str, str]]
    text: str
    names: frozenset[str]


def inline_modules(modules: Sequence[str]) -> InlinedRuntime:
    """Return the texts of the modules in one, with their imports and the names that they define."""
    imports: set[tuple[str, str]] = set()
    names: set[str] = set()
    texts = []
    for name in modules:
        path = _path(name)
        source = path.read_text()
        tree = ast.parse(source)
        imports |= set(_imported(tree))
        names |= set(_defined(tree))
        texts.append(_body(source, tree, f"{name.removeprefix('looptune.')}"))
    return InlinedRuntime(frozenset(imports), "\n\n".join(texts), frozenset(names))


def import_block(imports: Iterable[tuple[str, str]]) -> str:
    """Return the import statements: the standard library, then the others; one line per module."""
    own, others = list[str](), list[str]()
    plain = sorted({name for module, name in imports if not module})
    sources = sorted({module for module, _ in imports if module})
    lines = [(name, f"import {name}") for name in plain]
    lines += [(m, _line(m, sorted({n for o, n in imports if o == m}))) for m in sources]
    for name, line in lines:
        (own if name.partition(".")[0].split(" ")[0] in sys.stdlib_module_names else others).append(line)
    return "\n".join([*own, "", *others])


def imported_names(imports: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the names that these import statements bind."""
    return frozenset(name.rpartition(" as ")[2].partition(".")[0] for _, name in imports)


def _line(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    indented = textwrap.fill(", ".join(names), WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"from {module} import (\n{indented},\n)"


def _path(name: str) -> Path:
    # Found, not imported: the file of another target may need a library that is not there.
    package, _, last = name.rpartition(".")
    folder = importlib.import_module(package).__path__[0]
    return Path(folder) / f"{last}.py"


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.Import(names):
                yield from (("", f"{a.name} as {a.asname}" if a.asname else a.name) for a in names)
            case ast.ImportFrom(str(module), names) if module != "__future__" and not module.startswith("looptune"):
                yield from ((module, f"{a.name} as {a.asname}" if a.asname else a.name) for a in names)


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.Assign(targets):
                yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
            case ast.AnnAssign(ast.Name(name)):
                yield name


def _body(source: str, tree: ast.Module, name: str) -> str:
    """Return what comes after the imports, under the first line of the docstring."""
    lines = source.splitlines()
    last = max(n.end_lineno or 0 for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom))
    said = ast.get_docstring(tree)
    assert said is not None, f"{name} says what it is"
    opening = "\n".join(f"# {line}".rstrip() for line in said.splitlines())
    rest = "\n".join(lines[last:]).strip("\n")
    return f"# -- {name} {'-' * max(1, 110 - len(name))}\n{opening}\n\n{rest}\n"
