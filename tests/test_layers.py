"""The layout is the pipeline: modules import downward only, and each heavy library has one place."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "looptune"

RANKS = {
    "version": 0, "source": 0, "defaults": 0, "escape": 0, "cachefolder": 0, "deep": 0, "keeping": 0, "sound": 0,
    "errors": 1, "floats": 2, "plugins": 2, "pictures": 2, "ir": 2, "simplify": 3,
    "rewrite": 4, "scope": 5,
    "accumulators": 5, "interp": 5, "verify": 6, "pretty": 6, "ranges": 6, "hull": 6, "registers": 7, "comparisons": 7,
    "hosted": 7, "packing": 7, "frontend": 7, "poly": 7,
    "told": 8, "team": 8, "overlapping": 8, "transforms": 8, "splice": 9, "parts": 10, "bake": 8,
    "wording": 8, "rows": 8, "begun": 8, "reached": 9, "farthest": 9,
    "reductions": 9, "dealt": 9, "undealt": 9, "bind": 9, "plans": 9, "mapping": 10, "analysis": 10, "flops": 11,
    "mapped": 11, "openmp": 11, "outline": 11, "backends": 11, "threads": 11, "persistent": 11, "finished": 12,
    "schedule": 13, "suggest": 14, "excess": 14,
    "permitted": 14, "assumed": 14, "runtime": 14, "explain": 15, "tune": 15, "predict": 15, "compulsory": 15,
    "targets": 16, "proved": 16, "deploy": 17, "api": 18, "report": 18, "dump": 19,
    "source_to_source": 19, "places": 19, "doctor": 19, "finals": 20, "spaces": 19, "studies": 21, "preparation": 21,
    "modelled": 21, "ablation": 22, "guests": 22,
    "conclusion": 23, "experiment": 24, "options": 23, "first_call": 25, "cli_db": 25, "cli_build": 25,
    "cli_report": 25, "cli_run": 25, "cli_export": 26, "cli_model": 26, "cli": 27, "__main__": 28,
}  # fmt: skip
"""A module or package imports from lower ranks only; within a package its own modules are free, cycles apart."""

OWNERS = {
    "pycparser": ("frontend.c",),
    "pcpp": ("frontend.preprocess",),
    "islpy": ("poly",),
    "numba": ("backends", "deploy.runtime"),
    "cuda": (
        "backends.cuda_c",
        "backends.cubin",
        "backends.cuda_program",
        "backends.driver",
        "runtime.gpu",
        "deploy.runtime",
    ),
    "pyopencl": ("backends.opencl", "runtime.opencl"),
    "click": ("cli", "cli_build", "cli_db", "cli_export", "cli_model", "cli_report", "cli_run", "options"),
    "matplotlib": ("report.plots", "report.figures.style"),
    "optuna": ("tune.strategies.optuna",),
    "pyatf": ("tune.strategies.pyatf",),
    "sqlite3": ("tune",),
    "distributed": ("tune.cluster", "tune.distributed", "tune.bench"),
    "tornado": ("tune.bench",),
    "dask": (),
}

OPTIONAL = ("PIL", "matplotlib", "optuna", "pyatf")
"""Of the extras ``plot``, ``pictures`` and ``search``."""

COMMANDS = ("cli", "cli_build", "cli_db", "cli_export", "cli_model", "cli_report", "cli_run")
"""Each imports what a command needs when it runs."""

MODULES = sorted(ROOT.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(p for p in parts if p != "__init__")


OWN = {f"looptune.{name(path)}".rstrip(".") for path in MODULES}


def imports(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Every module imported, wherever the import stands; ``from looptune import api`` is ``looptune.api``."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ((a.name, node) for a in names)
            case ast.ImportFrom("looptune", names, 0):
                yield from ((f"looptune.{a.name}", node) for a in names)
            case ast.ImportFrom(str(module), names, 0):
                yield from ((f"{module}.{a.name}" if f"{module}.{a.name}" in OWN else module, node) for a in names)
            case ast.ImportFrom():
                yield ".", node


@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_only_from_lower_layers(path: Path) -> None:
    """Absolute imports, from modules of lower rank or of the module's own package."""
    own = name(path).partition(".")[0]
    for imported, node in imports(tree(path)):
        assert imported != ".", f"line {node.lineno}: a relative import"
        if not imported.startswith("looptune."):
            continue
        top = imported.split(".")[1]
        if own and top != own:
            assert RANKS[top] < RANKS[own], f"line {node.lineno}: {own} imports {top}, which is not below it"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_each_heavy_library_has_one_place(path: Path) -> None:
    """Only its owner imports a parser, isl, Numba, the CUDA libraries, click or SQLite."""
    own = name(path)
    for imported, node in imports(tree(path)):
        owners = OWNERS.get(imported.partition(".")[0])
        allowed = owners is None or any(own == o or own.startswith(f"{o}.") for o in owners)
        assert allowed, f"line {node.lineno}: {own} imports {imported}, which is for {', '.join(owners or ())}"


@pytest.mark.sampled(2, "wide")
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_stand_at_the_top(path: Path) -> None:
    """No import inside a function, but of OPTIONAL packages, which may be missing, and as what opens a command."""
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inside = [s for n in ast.walk(node) for _, s in imports(n) if isinstance(n, ast.stmt) and n is s]
        optional = all(i.partition(".")[0] in OPTIONAL for s in inside for i, _ in imports(s))
        assert not inside or optional or name(path) in COMMANDS, (
            f"{node.name}, line {inside[0].lineno}: an import inside"
        )
        if name(path) in COMMANDS and inside:
            said = isinstance(node.body[0], ast.Expr)
            opening = node.body[said : said + 1 + len(inside)]
            assert set(map(id, inside)) <= set(map(id, opening)), f"{node.name}: its imports do not open it"


@pytest.mark.wide
def test_no_module_imports_itself_in_a_circle() -> None:
    """Following imports from module to module never comes back."""
    edges = {
        module: {i for i, _ in imports(tree(path)) if i in OWN and i != module}
        for module, path in ((f"looptune.{name(p)}".rstrip("."), p) for p in MODULES)
    }
    done: set[str] = set()

    def visit(module: str, around: tuple[str, ...]) -> None:
        assert module not in around, " -> ".join((*around[around.index(module) :], module))
        if module in done:
            return
        for following in sorted(edges[module]):
            visit(following, (*around, module))
        done.add(module)

    for module in sorted(OWN):
        visit(module, ())


def test_help_loads_nothing_heavy() -> None:
    """``looptune --help`` imports no numba, isl, NumPy, parser or plotting library, so that it answers at once."""
    code = (
        "import sys\nsys.argv = ['looptune', '--help']\nfrom looptune.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('LOADED', *sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.partition("LOADED")[2].split())
    assert "looptune" in loaded
    assert loaded & {"numba", "islpy", "numpy", "pycparser", "pcpp", "matplotlib", "cuda", "rich"} == set()


def test_the_library_loads_lazily() -> None:
    """``import looptune`` alone is cheap too, and offers its functions."""
    code = "import looptune, sys; print({'numba', 'islpy', 'numpy'} & set(sys.modules)); print(looptune.compile)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("set()\n<function compile")
