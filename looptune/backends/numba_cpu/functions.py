"""A CPU's functions as Python text: kernels for a range of their outer axis, and the driver that launches them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from looptune.backends.codegen.python import (
    ADDRESSES,
    INDEX,
    LEVEL,
    SHARE,
    SPELLED,
    UNARY,
    HostText,
    Writer,
    ident,
    numba_type,
    parenthesise,
)  # fmt: skip
from looptune.ir.def_use import assigned_targets, continuing_condition
from looptune.ir.intervals import never_negative
from looptune.ir.nodes import (
    SHORT_FLOATS,
    Array,
    Assign,
    Binary,
    Cast,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Node,
    Scalar,
    Stmt,
    Unary,
    Var,
    promoted_type,
)  # fmt: skip
from looptune.ir.rewrite import walk
from looptune.lower.cpu_names import CORES, IN_ANY_ORDER
from looptune.lower.launch_work import Linear, as_number, is_uneven, launch_work
from looptune.lower.plan import FinishedPlan, HostLoop, Kernel, Launch, Plan, Step
from looptune.lower.signature import half_scalars

if TYPE_CHECKING:
    from looptune.ir.accumulators import Accumulator
    from looptune.lower.team import TeamReduce


class FunctionWriter(Writer):
    """Arrays keep their dimensions.

    An index is unsigned, or Numba tests its sign and no vectors are made, but for the variables of loops that begin at
    a constant, of which LLVM sees the sign: ``seen``.

    Each subscript that does not change in a loop is made unsigned once, at the beginning of the loop's body: LLVM
    would find this out, but Numba compiles as many operations as the text has.

        for j in range(n // 4):                              for j in range(n // 4):
            x[uintp(4 * j)] = x[uintp(4 * j)] * a      ─▶        j_0__index = uintp(4 * j)
                                                                 x[j_0__index] = x[j_0__index] * a

    ``math.floor`` and its like give an int64 under Numba on a CPU, NumPy's give a float, as C's do.
    """

    spelled: ClassVar = {
        **SPELLED,
        "floor": "np.floor({0})",
        "ceil": "np.ceil({0})",
        "trunc": "np.trunc({0})",
        "fmod": "np.fmod({0}, {1})",
        "rint": "np.rint({0})",
        "nextafter": "np.nextafter({0}, {1})",
        "fma": "fused({0}, {1}, {2})",
        **{name: f"{name}({{0}}, {{1}})" for name in IN_ANY_ORDER.values()},
    }

    def __init__(self, plan: Plan) -> None:
        super().__init__(_extents(plan))
        self.half_parameters = half_scalars(plan)
        self.seen: set[str] = set()
        self._assigned: frozenset[str] = frozenset()
        self._scopes: list[tuple[str, dict[str, str]]] = []
        """The kernel, as "", and the loops around the place written, by their variables: names of unsigned subscripts
        by their text."""
        self._numbered = 0

    def begin(self, kernel: Kernel) -> None:
        """Begin another kernel."""
        targets = assigned_targets((*kernel.serial, *kernel.body))
        self._assigned = frozenset(target.name for target in targets if isinstance(target, Var))
        self._numbered = 0

    def element(self, load: Load) -> str:
        return f"{ident(load.array)}[{', '.join(self.index(i) for i in load.index)}]"

    def index(self, e: Expr) -> str:
        match e:
            case Const(value):
                return str(int(value))
            case Var(name) if name in self.seen:
                return ident(name)
        return self._unsigned(e, f"uintp({self.bound(e)})")

    def _unsigned(self, e: Expr, text: str) -> str:
        """Return the name of an unsigned subscript that is computed at the beginning of the innermost loop around it.

        That is the innermost one that changes it, or the kernel where none does. What depends on memory or on an
        assigned scalar, or divides by a variable, stays where it is: ``text`` is returned.
        """
        parts = list(walk(e))
        names = {part.name for part in parts if isinstance(part, Var)}
        scopes = reversed(self._scopes)
        var, found = next(((var, held) for var, held in scopes if var in names or not var), ("", None))
        if found is None or names & self._assigned or not all(map(_never_fails, parts)):
            return text
        if text not in found:
            found[text] = f"{e.name}{INDEX}" if isinstance(e, Var) else f"{var or 'fixed'}_{self._numbered}{INDEX}"
            self._numbered += 0 if isinstance(e, Var) else 1
        return found[text]

    def inside(self, var: str, indent: str, body: Iterator[str]) -> Iterator[str]:
        """Yield the body of the loop with this variable, or of a kernel (""), after its unsigned subscripts."""
        found: dict[str, str] = {}
        self._scopes.append((var, found))
        lines = list(body)
        self._scopes.pop()
        yield from (f"{indent}{name} = {text}" for text, name in found.items())
        yield from lines

    def loop(self, loop: Loop, indent: str) -> Iterator[str]:
        lo, hi = self.bound(loop.lo), self.bound(loop.hi)
        step = "" if loop.step == 1 else f", {loop.step}"
        start = "" if lo == "0" and not step else f"{lo}, "
        yield f"{indent}for {ident(loop.var)} in range({start}{hi}{step}):"
        if never_negative(loop.lo, self.nonnegative):
            self.nonnegative.add(loop.var)
        if isinstance(loop.lo, Const) and loop.lo.value >= 0:
            self.seen.add(loop.var)
        yield from self.inside(loop.var, f"{indent}    ", self._body(loop, f"{indent}    "))
        self.nonnegative.discard(loop.var)
        self.seen.discard(loop.var)

    def _body(self, loop: Loop, indent: str) -> Iterator[str]:
        on = continuing_condition(loop)
        if on is not None:
            yield f"{indent}if not ({self.condition(on)}): break"
        yield from self.block(loop.body, indent)


def _never_fails(e: Node) -> bool:
    """Tell whether the node reads no memory and has a result for any values of its operands."""
    match e:
        case Binary("/" | "%", _, Const(value)):
            return value != 0
        case Const() | Var() | Cast() | Binary("+" | "-" | "*" | "min" | "max") | Unary("-"):
            return True
    return False


def _extents(plan: Plan) -> set[str]:
    """Parameters that are an array's extent, and therefore not negative, as the number of cores is."""
    shapes = [e for p in plan.codelet.params if isinstance(p, Array) for e in p.shape]
    return {e.name for e in (*shapes, CORES) if isinstance(e, Var)}


def decorated_kernel(plan: FinishedPlan, kernel: Kernel, writer: FunctionWriter) -> Iterator[str]:
    """Yield a kernel of an emitted module with its types, and the function that divides its iterations."""
    divided = is_divided(kernel)
    types = ", ".join(parameter_types(plan, kernel))
    yield f"{kernel.name}_args = ({types}{',' if types else ''})"
    yield ""
    yield ""
    yield f"@kept(void({'int64, int64, ' if divided else ''}*{kernel.name}_args), **OPTIONS)"
    yield from kernel_function(kernel, writer)
    yield ""
    yield ""
    if divided:
        yield f"{kernel.name}{SHARE} = sharer({kernel.name}_args)"


def kernel_function(kernel: Kernel, writer: FunctionWriter) -> Iterator[str]:
    """Yield the function of a kernel."""
    tree = _alone(kernel)
    extra = [*map(_parts, tree.accumulators), "cores"] if tree is not None else []
    writer.begin(kernel)
    names = [*(ident(n) for n in (*kernel.arrays, *kernel.scalars)), *extra]
    yield f"def {kernel.name}({', '.join([*(('start', 'stop') if is_divided(kernel) else ()), *names])}):"
    for v in (v for v in kernel.locals if v.shape):
        yield f"    {ident(v.name)} = np.empty(({', '.join(writer.bound(e) for e in v.shape)},), {_element(v.dtype)})"
    yield from writer.inside("", "    ", _chunk(kernel, tree, writer) if tree is not None else _axes(kernel, writer))


def is_divided(kernel: Kernel) -> bool:
    """Tell whether it is given a range of its outer axis, or of chunks."""
    return bool(kernel.loops) or _alone(kernel) is not None


def _alone(kernel: Kernel) -> TeamReduce | None:
    """Return the loop that is all of the kernel, and reduces."""
    return None if kernel.loops or kernel.team is None else kernel.team.trees[0]


def _chunk(kernel: Kernel, tree: TeamReduce, writer: FunctionWriter) -> Iterator[str]:
    """Chunks ``start`` to ``stop`` of as many as there are cores, each with a result of its own."""
    loop = tree.loop
    yield f"    trips = max(0, {_trips(loop, writer)})"
    yield "    for chunk in range(start, stop):"
    for a in tree.accumulators:
        yield from writer.statement(Assign(a.private, a.identity), "        ")
    yield "        first, last = chunk * trips // cores, (chunk + 1) * trips // cores"
    lo, step = writer.bound(loop.lo, LEVEL["+"]), loop.step
    ends = [f"{step} * {end}" if step > 1 else end for end in ("first", "last")]
    ends = [f"{lo} + {end}" for end in ends] if lo != "0" else ends
    yield f"        for {ident(loop.var)} in range({', '.join([*ends, *([str(step)] if step > 1 else [])])}):"
    if never_negative(loop.lo, writer.nonnegative):
        writer.nonnegative.add(loop.var)
    (share,) = kernel.serial
    assert isinstance(share, Loop), "the kernel is one loop"
    yield from writer.inside(loop.var, "            ", writer.block(share.body, "            "))
    writer.nonnegative.discard(loop.var)
    for a in tree.accumulators:
        yield f"        {_parts(a)}[chunk] = {ident(a.private.name)}"


def _parts(a: Accumulator) -> str:
    """Return the array of the chunks' results."""
    return f"{a.private.name}__team"


def _axes(kernel: Kernel, writer: FunctionWriter) -> Iterator[str]:
    match kernel.serial:
        case (Loop() as loop,) if kernel.team is not None and kernel.team.outer:
            yield from _opened(loop, writer.bound(loop.lo), writer.bound(loop.hi), writer, "    ")
            yield from writer.inside(loop.var, "        ", _divided(kernel, loop.body, writer, "        "))
            writer.nonnegative.discard(loop.var)
        case body:
            yield from _divided(kernel, body, writer, "    ")


def _divided(kernel: Kernel, body: tuple[Stmt, ...], writer: FunctionWriter, indent: str) -> Iterator[str]:
    return _shared(body, writer, indent) if kernel.loops else writer.block(body, indent)


def _shared(body: tuple[Stmt, ...], writer: FunctionWriter, indent: str) -> Iterator[str]:
    """Yield the loop from ``start`` to ``stop``, or the two of a condition that it does not change."""
    for stmt in body:
        match stmt:
            case If(cond, then, other):
                yield f"{indent}if {writer.condition(cond)}:"
                yield from _shared(then, writer, indent + "    ")
                yield f"{indent}else:"
                yield from _shared(other, writer, indent + "    ")
            case Loop():
                yield from _opened(stmt, "start", "stop", writer, indent)
                yield from writer.inside(stmt.var, f"{indent}    ", writer.block(stmt.body, f"{indent}    "))
                writer.nonnegative.discard(stmt.var)


def _opened(loop: Loop, lo: str, hi: str, writer: FunctionWriter, indent: str) -> Iterator[str]:
    step = "" if loop.step == 1 else f", {loop.step}"
    yield f"{indent}for {ident(loop.var)} in range({lo}, {hi}{step}):"
    if never_negative(loop.lo, writer.nonnegative):
        writer.nonnegative.add(loop.var)


def address_positions(plan: FinishedPlan) -> dict[str, int]:
    """Return where the address of each kernel is among those that a driver is given.

    That of a kernel whose iterations are divided is followed by the address of the function that divides them.
    """
    found, end = {}, 0
    for kernel in plan.kernels:
        found[kernel.name] = end
        end += 2 if is_divided(kernel) else 1
    return found


def driver_function(
    plan: FinishedPlan, writer: FunctionWriter, *, stops: bool, addresses: Mapping[str, int] | None = None
) -> Iterator[str]:
    """Yield the driver's function.

    ``stops``: it returns between two launches once it is told to. ``addresses``: where the address of each kernel is
    in the array of addresses that is its first argument; None if it calls the kernels by their names.
    """
    names = [*(ident(p.name) for p in plan.codelet.params), "cores", *(["told"] if stops else [])]
    yield f"def {ident(plan.codelet.name)}({', '.join(names if addresses is None else (ADDRESSES, *names))}):"
    if any(CORES.name in kernel.scalars for kernel in plan.kernels):
        yield f"    {CORES.name} = cores"
    for local in plan.device_locals:
        shape = ", ".join(writer.bound(e) for e in local.shape) if local.shape else "1"
        yield f"    {ident(local.name)} = np.zeros(({shape},), {_element(local.dtype)})"

    def launched(step: Launch | HostLoop, indent: str, _: Step | None) -> Iterator[str]:
        assert isinstance(step, Launch), "a CPU has no persistent kernels"
        yield from _launch(step.kernel, writer, indent, addresses)
        if stops:
            yield f"{indent}told[1] += 1"

    opening = ("if told[0]:", "    return") if stops else ()
    yield from HostText(writer, launched, lambda flag: f"{ident(flag)}[0]", opening).steps(plan.steps, "    ")


def _launch(
    kernel: Kernel, writer: FunctionWriter, indent: str, addresses: Mapping[str, int] | None = None
) -> Iterator[str]:
    names = ", ".join(ident(n) for n in (*kernel.arrays, *kernel.scalars))
    at = None if addresses is None else addresses[kernel.name]
    tree = _alone(kernel)
    if not kernel.loops and tree is None:
        given = names if at is None else f"{ADDRESSES}[{at}], ({names + ',' if names else ''})"
        yield f"{indent}{kernel.name}({given})"
        return
    of = kernel.name if at is None else f"{ADDRESSES}[{at + 1}], {ADDRESSES}[{at}]"
    share, work = f"{kernel.name}{SHARE}({of}, ", _work(kernel, writer)
    if tree is not None:
        yield from _joined(share, tree, names, work, writer, indent)
        return
    axis = kernel.loops[0]
    lo, step, count = writer.bound(axis.lo), axis.step, _trips(axis, writer)
    yield f"{indent}{share}{lo}, {step}, {count}, cores, {work}, {is_uneven(kernel)}, ({names + ',' if names else ''}))"


def _work(kernel: Kernel, writer: FunctionWriter) -> str:
    """Return about how many assignments a launch makes, as the text of a float."""
    found = launch_work(kernel)
    if found is None:
        return "math.inf"
    products = (" * ".join((as_number(t.coefficient), *(_sum(f, writer) for f in t.factors))) for t in found)
    return " + ".join(products) or "0.0"


def _sum(factor: Linear, writer: FunctionWriter) -> str:
    """Return a sum of multiples as the text of a factor."""
    atoms = [(writer.bound(atom, UNARY), k) for atom, k in sorted(factor, key=lambda f: f[1] < 0)]
    text = "".join(f" {'-' if k < 0 else '+'} {f'{as_number(abs(k))} * ' if abs(k) != 1 else ''}{a}" for a, k in atoms)
    return parenthesise(text.removeprefix(" + "), LEVEL["*"] if len(atoms) == 1 else LEVEL["+"], LEVEL["*"])


def _trips(loop: Loop, writer: FunctionWriter) -> str:
    """How many iterations the loop has, less than none where it has none."""
    lo, hi, step = writer.bound(loop.lo), writer.bound(loop.hi, LEVEL["-"]), loop.step
    span = hi if lo == "0" else f"{hi} - {writer.bound(loop.lo, LEVEL['*'])}"
    return f"({span} + {step - 1}) // {step}" if step > 1 else span


def _joined(share: str, tree: TeamReduce, names: str, work: str, writer: FunctionWriter, indent: str) -> Iterator[str]:
    """Yield the launch that computes a part for each core, and the loop that combines the parts in order."""
    parts = ", ".join(map(_parts, tree.accumulators))
    for a in tree.accumulators:
        yield f"{indent}{_parts(a)} = np.empty(cores, {numba_type(a.private.dtype)})"
    given = f"{names}, {parts}, cores" if names else f"{parts}, cores"
    yield f"{indent}{share}0, 1, cores, cores, {work}, False, ({given},))"
    yield f"{indent}for chunk in range(cores):"
    for a in tree.accumulators:
        yield f"{indent}    {ident(a.private.name)} = {_parts(a)}[chunk]"
        yield from writer.statement(a.update, indent + "    ")


def parameter_types(plan: Plan, kernel: Kernel) -> Iterator[str]:
    """Numba's types of a kernel's parameters, as text."""
    known = {p.name for p in plan.codelet.params}
    for name in kernel.arrays:
        array = plan.array(name)
        yield _array_type(array.dtype, max(1, len(array.shape)))
    for name in kernel.scalars:
        yield numba_type(promoted_type(plan.dtype(name))) if name in known else "int64"
    tree = _alone(kernel)
    if tree is not None:
        yield from (_array_type(a.private.dtype, 1) for a in tree.accumulators)
        yield "int64"


def _array_type(dtype: str, rank: int) -> str:
    return f"{_element(dtype)}[{', '.join([':'] * (rank - 1) + ['::1'])}]"


def _element(dtype: str) -> str:
    """Return Numba's type of an element in memory; a float of 16 bits is these."""
    return "uint16" if dtype in SHORT_FLOATS else numba_type(dtype)


def driver_signature(plan: Plan, stops: bool, *, addressed: bool = False) -> str:
    """Return Numba's type of a driver; ``addressed``: it is given the addresses of its kernels."""
    types = ["int64[::1]"] if addressed else []
    for p in plan.codelet.params:
        match p:
            case Scalar(_, dtype):
                types.append(numba_type(promoted_type(dtype)))
            case Array(_, dtype, shape):
                types.append(_array_type(dtype, len(shape)))
    return f"void({', '.join((*types, 'int64', *(['int64[::1]'] if stops else [])))})"
