"""Plans as the text of a module: every kernel once, and a function for each plan that launches its kernels.

kernels      those of all plans that differ in more than names, numbered
functions    one for each plan: it launches the kernels, or on a CPU makes the function that runs them
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from looptune.backends.codegen.python import SHARE, ident, imported_types
from looptune.backends.numba_cpu import backend
from looptune.backends.numba_cuda.alpha_renaming import alpha_rename
from looptune.core import escape
from looptune.core.floating_point import Contract

if TYPE_CHECKING:
    from looptune.lower.plan import Plan


@dataclass(slots=True)
class Kernel:
    """A kernel of a module.

    ``types`` are Numba's types of its parameters; ``spans``: it takes a range of iterations, which are divided;
    ``users`` are the plans that launch it.
    """

    name: str
    text: str
    types: tuple[str, ...]
    spans: bool = False
    users: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PlanFunction:
    """A plan in the module.

    ``wide``: the arrays it reads 16 bytes at a time; ``wide_indices``: its subscripts have 64 bits; ``notes``: what it
    is for.
    """

    name: str
    body: str
    wide: tuple[str, ...]
    wide_indices: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Assembly(ABC):
    """The parts of a module that is being written.

    ``used_names``: names that the module uses otherwise; ``prefix``: the prefix of the names of plans; ``relative``:
    the errors that the user allows where factors are rounded, by array, see ``runtime.tolerance``.
    """

    used_names: frozenset[str]
    prefix: str = "plan"
    imports: set[tuple[str, str]] = field(default_factory=set)
    helpers: dict[str, None] = field(default_factory=dict)
    found: dict[tuple[str, tuple[str, ...]], Kernel] = field(default_factory=dict)
    plans: dict[tuple[str, tuple[str, ...]], PlanFunction] = field(default_factory=dict)
    relative: dict[str, float] = field(default_factory=dict)

    @abstractmethod
    def add(self, plan: Plan, note: str) -> str:
        """Return the name of the plan in the module: that of an earlier one, if it does the same."""

    @abstractmethod
    def kernels(self) -> str: ...

    @abstractmethod
    def functions(self) -> str: ...

    def signatures(self) -> str:
        """Return the types of the kernels' parameters, which determine their layout."""
        return "SIGNATURES: dict = {}\n"

    def table(self) -> str:
        def entry(p: PlanFunction) -> str:
            more = f", wide={python_literal(p.wide)}" if p.wide else ""
            more += ", wide_indices=True" if p.wide_indices else ""
            return f"    {python_literal(p.name)}: Plan({p.name}{more}),\n"

        return f"PLANS = {{\n{''.join(map(entry, self.plans.values()))}}}\n"

    def kernel(self, plan: Plan, name: str, kernel: Kernel, key: str) -> Kernel:
        """Return the kernel of the module that does the same; ``name`` is its name in its plan."""
        new = f"{plan.codelet.name}_{len(self.found)}"
        new = f"kernel_{new}" if new in self.used_names else new
        text = kernel.text.replace(f"def {name}(", f"def {new}(", 1)
        return self.found.setdefault((key, kernel.types), Kernel(new, text, kernel.types, kernel.spans))

    def named(
        self, body: str, wide: tuple[str, ...], note: str, used: Mapping[str, Kernel], wide_indices: bool = False
    ) -> str:
        new = PlanFunction(f"{self.prefix}_{len(self.plans)}", body, wide, wide_indices)
        plan = self.plans.setdefault((body, wide), new)
        plan.notes.append(note)
        for kernel in used.values():
            kernel.users += [] if plan.name in kernel.users else [plan.name]
        return plan.name


JIT = "jit_with"
_JIT = f'''def {JIT}(**told):
    """``cuda.jit`` and what the compiler of a kernel is told; Numba's simulator takes none of it."""
    return cuda.jit if config.ENABLE_CUDASIM else cuda.jit(**told)
'''


@dataclass(slots=True)
class Cuda(Assembly):
    """The parts of a module for a GPU: kernels that Numba compiles, and functions that launch them.

    ``params``: the parameters of every plan.
    """

    params: tuple[str, ...] = ()
    contract: Contract = "cc"

    def add(self, plan: Plan, note: str) -> str:
        parts = importlib.import_module("looptune.backends.numba_cuda.backend").parts(plan, self.contract)
        self.relative |= {a: max(error, self.relative.get(a, 0.0)) for a, error in plan.inexact.items()}
        self.helpers |= dict.fromkeys(parts.helpers)
        self.imports |= {("", "math"), *(pair for line in parts.imports for pair in _pairs(line))}
        used = {
            name: self.kernel(plan, name, Kernel(name, text, types), alpha_rename(text, "kernel"))
            for name, (text, types) in parts.kernels.items()
        }
        own = {name: kernel.name for name, kernel in used.items()}
        body = re.sub(r"\b\w+\b", lambda word: own.get(word[0], word[0]), "\n".join(parts.host))
        self.params = tuple(ident(p.name) for p in plan.codelet.params)
        return self.named(body, parts.wide, note, used, parts.wide_indices)

    def kernels(self) -> str:
        texts = [f"# {', '.join(k.users)}\n{k.text.replace('@cuda.jit(', f'@{JIT}(', 1)}" for k in self.found.values()]
        return "\n\n".join([*self.helpers, _JIT, *texts])

    def functions(self) -> str:
        head = ", ".join(["launch", "new", *self.params])
        return "\n\n".join(f"def {p.name}({head}):\n{_doc(p)}\n{p.body}\n" for p in self.plans.values())

    def signatures(self) -> str:
        lines = (f"    {k.name}: {python_literal(k.types)},\n" for k in self.found.values())
        return f"SIGNATURES = {{\n{''.join(lines)}}}\n"


@dataclass(slots=True)
class Cpu(Assembly):
    """The parts of a module for a CPU: functions in which Numba compiles a version when it is first used.

    ``options``: Numba's, by name; ``reorders``: sums of innermost loops may be taken in any order.
    """

    options: str = "OPTIONS"
    reorders: bool = False

    def add(self, plan: Plan, note: str) -> str:
        parts = backend.parts(plan, reorders=self.reorders)
        self.helpers |= dict.fromkeys(parts.helpers)
        self.imports |= {("", "math"), ("", "numpy as np"), ("functools", "cache")}
        self.imports |= {("numba", name) for name in (*imported_types(plan), "njit", "uintp", "void")}
        used = {
            name: self.kernel(plan, name, Kernel(name, text, types, spans), text.replace(f"def {name}(", "def ", 1))
            for name, (text, types, spans) in parts.kernels.items()
        }
        makers = (f"    {n}{f', {n}{SHARE}' if k.spans else ''} = make_{k.name}()\n" for n, k in used.items())
        driver = _indented(f"@njit({python_literal(parts.signature)}, **{self.options})\n{parts.driver}")
        return self.named(f"{''.join(makers)}\n{driver}\n    return {ident(plan.codelet.name)}", (), note, used)

    def kernels(self) -> str:
        return "\n\n".join([*self.helpers, *map(self._maker, self.found.values())])

    def _maker(self, k: Kernel) -> str:
        head, share = ("int64, int64, ", ", sharer(args)") if k.spans else ("", "")
        args = tuple_text(k.types)
        text = _indented(f"@kept(void({head}*args), **{self.options})\n{k.text}")
        users = ", ".join(k.users)
        return f"# {users}\n@cache\ndef make_{k.name}():\n    args = {args}\n\n{text}\n    return {k.name}{share}\n"

    def functions(self) -> str:
        return "\n\n".join(f"@cache\ndef {p.name}():\n{_doc(p)}\n{p.body}\n" for p in self.plans.values())


def python_literal(value: Any) -> str:
    """Return a Python literal with double quotes, as in the rest of the module."""
    match value:
        case str():
            return escape.quote(value)
        case tuple():
            return tuple_text(map(python_literal, value))
        case dict():
            return "{" + ", ".join(f"{python_literal(k)}: {python_literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


def tuple_text(items: Iterable[str]) -> str:
    """Return the items as the text of a tuple.

    >>> tuple_text("a"), tuple_text("ab")
    ('(a,)', '(a, b)')
    """
    parts = list(items)
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _doc(plan: PlanFunction) -> str:
    return f'    """{escape.docstring("; ".join(dict.fromkeys(plan.notes)))}."""'


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.rstrip("\n").split("\n"))


def _pairs(line: str) -> list[tuple[str, str]]:
    """Return what an import statement of the form ``from a import b, c`` imports."""
    module, _, names = line.removeprefix("from ").partition(" import ")
    return [(module, name.strip()) for name in names.split(",")]
