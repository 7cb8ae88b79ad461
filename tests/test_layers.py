"""The layout is the pipeline: modules import downward only, and each heavy library has one place."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT, TESTS

PACKAGE = ROOT / "looptune"
DESIGN = ROOT / "docs/design.md"

LAYERS = {
    "core": (0, "source places, errors, plugins, settings; imports nothing of ours"),
    "ir": (1, "the loop IR, and what can be done to any tree"),
    "frontend": (2, "C text to IR; the only user of pycparser and pcpp"),
    "poly": (2, "dependences, legality, validation; the only user of islpy"),
    "schedule": (3, "directives, one file each: bound to loops, judged, applied"),
    "lower": (4, "a codelet to a plan of kernels; each rewriting on the way is a pass"),
    "backends": (5, "a plan to source text, to a binary, to a program"),
    "runtime": (6, "devices, inputs, reference results, verification, timing"),
    "tune": (7, "search: spaces, strategies, workers, the store, results"),
    "deploy": (8, "what leaves looptune: callables, modules, C, kernel source"),
    "report": (8, "tables, figures, the page"),
    "cli": (9, "arguments in, exit code out; the only user of click and of the environment"),
    "": (10, "`import looptune` and `python -m looptune`"),
}
"""Rank and content by package. A module imports from packages of lower rank, or from its own package."""

INNER = {
    "schedule": ("directives", ""),
    "backends": ("base early_stop openmp", "codegen", "cuda opencl numba_cpu", "numba_cuda", ""),
    "tune": ("job incumbent", "space", "store", "execution", "measure", "strategies", "formats", "replay", "results",
             "cost_model", "session", ""),
    "report": ("", "check", "figures", "site", "scan"),
}  # fmt: skip
"""The order inside of a package, low to high; "" is every other module of its own folder. A name imports from those
before it."""

BEGIN = "<!-- layers: written by pytest tests/test_layers.py --update-golden -->"
END = "<!-- end of layers -->"

OWNERS = {
    "pycparser": ("frontend.c_lexer", "frontend.c_parser", "frontend.parsable_text", "frontend.parsed_nodes"),
    "pcpp": ("frontend.preprocess",),
    "islpy": ("poly",),
    "numba": ("backends", "deploy.runtime"),
    "cuda": ("backends.cuda", "runtime.cuda_device", "deploy.runtime"),
    "pyopencl": ("backends.opencl", "runtime.opencl_device"),
    "jax": ("deploy.runtime.jax_function",),
    "jaxlib": ("deploy.runtime.jax_function",),
    "click": ("cli",),
    "matplotlib": ("report.figures",),
    "optuna": ("tune.strategies.optuna",),
    "pyatf": ("tune.strategies.pyatf",),
    "sqlite3": ("tune",),
    "distributed": ("tune.execution",),
    "tornado": ("tune.execution",),
    "dask": (),
    "pebble": ("report.scan",),
}

OPTIONAL = ("PIL", "matplotlib", "optuna", "pyatf")
"""Of the extras ``plot``, ``pictures`` and ``search``."""

COMMANDS = (
    "cli.main",
    "cli.build",
    "cli.cc",
    "cli.db",
    "cli.export",
    "cli.predict",
    "cli.report",
    "cli.run",
    "cli.scan",
)
"""Each imports what a command needs when it runs."""

MODULES = sorted(PACKAGE.rglob("*.py"))


OTHER_TESTS = {"data", "differential", "docs", "golden", "helpers", "programs", "properties", "refused", "suite"}
"""Folders of tests/ that are no package of looptune: CONTRIBUTING.md says what they have."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(p for p in parts if p != "__init__")


OWN = {f"looptune.{name(path)}".rstrip(".") for path in MODULES}


@cache
def imports_of(path: Path) -> tuple[tuple[str, ast.stmt], ...]:
    return tuple(imports(tree(path)))


def imports(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Every module imported, wherever the import stands; ``from looptune import ir`` is ``looptune.ir``."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ((a.name, node) for a in names)
            case ast.ImportFrom(str(module), names, 0):
                yield from ((f"{module}.{a.name}" if f"{module}.{a.name}" in OWN else module, node) for a in names)
            case ast.ImportFrom():
                yield ".", node


def package(module: str) -> str:
    top = module.partition(".")[0]
    return top if top in LAYERS else ""


def place(module: str) -> int:
    """Where a module stands in the inner order of its package."""
    order = [words.split() or [""] for words in INNER[package(module)]]
    inner = (*module.split("."), "", "")[1]
    return next((k for k, words in enumerate(order) if inner in words), order.index([""]) if [""] in order else 0)


def upward(module: str, imported: str) -> bool:
    """Whether the import is of what does not lie below the module.

    >>> upward("ir.nodes", "core.source"), upward("core.source", "ir.nodes"), upward("poly.scop", "frontend.unit")
    (False, True, True)
    >>> upward("tune.store.store", "tune.session.sweep"), upward("tune.session.sweep", "tune.store.store")
    (True, False)
    """
    mine, other = package(module), package(imported)
    if mine != other:
        return LAYERS[other][0] >= LAYERS[mine][0]
    return mine in INNER and place(imported) > place(module)


def test_imports_point_downward() -> None:
    """Absolute imports from packages of lower rank, or of the module's own package in its inner order."""
    found = [(path, imported, node) for path in MODULES for imported, node in imports_of(path)]
    assert [f"{path}:{node.lineno}" for path, imported, node in found if imported == "."] == []
    ours = [(path, imported, node) for path, imported, node in found if imported.startswith("looptune")]
    assert len(ours) > 1000
    wrong = [
        f"{path}:{node.lineno}: imports {imported}"
        for path, imported, node in ours
        if upward(name(path), imported.removeprefix("looptune").removeprefix("."))
    ]
    assert wrong == []


def test_the_design_page_shows_the_layers(request: pytest.FixtureRequest) -> None:
    """Its table is that of this file; --update-golden writes it."""
    lines = ["| rank | package | content |", "|---:|---|---|"]
    lines += [f"| {rank} | `{p}/` | {what} |" if p else f"| {rank} | | {what} |" for p, (rank, what) in LAYERS.items()]
    text = DESIGN.read_text()
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    made = f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"
    assert end, f"docs/design.md has {BEGIN} and {END}"
    if request.config.getoption("--update-golden"):
        DESIGN.write_text(made)
    assert DESIGN.read_text() == made


def test_the_folder_shows_the_pipeline() -> None:
    """The packages of the table, and the two files that Python asks for."""
    entries = {p.name for p in PACKAGE.iterdir() if p.name != "__pycache__"}
    assert entries == {*LAYERS, "__init__.py", "__main__.py"} - {""}


def test_the_tests_mirror_the_packages() -> None:
    """A folder of tests/ is a package of looptune or one of OTHER_TESTS; beside them lie tests of all of looptune."""
    folders = {p.name for p in TESTS.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders == {*LAYERS, *OTHER_TESTS} - {""}
    assert {p.name for p in TESTS.glob("test_*.py")} == {"test_layers.py", "test_names.py"}


def test_no_test_imports_another() -> None:
    """What several tests use stands in tests/helpers."""
    paths = (path for path in TESTS.rglob("*.py") if "refused" not in path.parts)
    found = [(path, node) for path in paths for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom)]
    wrong = [f"{path}:{node.lineno}" for path, node in found if re.search(r"\btest_", ast.unparse(node))]
    assert len(found) > 500
    assert wrong == []


def test_each_heavy_library_has_one_place() -> None:
    """Only its owner imports a parser, isl, Numba, the CUDA libraries, click or SQLite."""
    wrong = []
    for path in MODULES:
        own = name(path)
        for imported, node in imports_of(path):
            owners = OWNERS.get(imported.partition(".")[0])
            if owners is not None and not any(own == o or own.startswith(f"{o}.") for o in owners):
                wrong.append(f"{path}:{node.lineno}: imports {imported}, which is for {', '.join(owners)}")
    assert wrong == []


@pytest.mark.sampled(2, "wide")
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_stand_at_the_top(path: Path) -> None:
    """No import inside a function, but of OPTIONAL packages, which may be missing, and as what opens a command."""
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inside = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
        optional = all(i.partition(".")[0] in OPTIONAL for s in inside for i, _ in imports(s))
        assert not inside or optional or name(path) in COMMANDS, (
            f"{node.name}, line {inside[0].lineno}: an import inside"
        )
        if name(path) in COMMANDS and inside:
            said = isinstance(node.body[0], ast.Expr)
            opening = node.body[said : said + 1 + len(inside)]
            assert set(map(id, inside)) <= set(map(id, opening)), f"{node.name}: its imports do not open it"


def test_no_module_imports_itself_in_a_circle() -> None:
    """Following imports from module to module never comes back."""
    edges = {
        module: {i for i, _ in imports_of(path) if i in OWN and i != module}
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
        "import sys\nsys.argv = ['looptune', '--help']\nfrom looptune.cli.main import main\n"
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
