"""The loop IR: one immutable tree for C loop nests over dense arrays.

    Codelet = parameters (Array | Scalar), locals, body, directives
    Stmt    = Assign | Loop | While | If
    Expr    = Const | Var | Load | Binary | Unary | Call | Select | Cast

Every expression has a ``dtype``, a NumPy name ("float32", "int32", "bool", ...). C's usual arithmetic conversions are
explicit ``Cast`` nodes: both operands of a ``Binary`` have one dtype, an ``Assign``'s value has its target's.
Comparisons and logical operators give int32, as in C. ``/`` and ``%`` on integers truncate, as in C; signed integers
wrap. A ``Cast`` to "bool" asks whether its operand is not zero. Variables, elements and casts alone have the dtypes
"float16" and "bfloat16": a ``Binary``, ``Unary`` "-", ``Select`` or ``Call`` takes its values cast to float.

``Loop`` is half open: ``var = lo, lo + step, ... < hi`` with ``step >= 1``; no loop rebinds a name bound around it.
Scalars are ``Var``: loop variables, scalar parameters and locals have distinct names. Equality is structural and
ignores spans, so ``before == after`` is a test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, TypeVar

from looptune.core.short_floats import BFLOAT
from looptune.core.source import NOWHERE, Span

Mode = Literal["auto", "parallel", "sequential", "thread"]
"""auto: the analysis decides · parallel: run by threads · sequential: one iteration after the other ·
thread: parallel, but kept inside the thread (the strips of a tiled parallel loop)."""

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "&&", "||"})

HALF = "float16"
"""IEEE 754's binary16, ``_Float16`` in C."""
SHORT_FLOATS = frozenset({HALF, BFLOAT})
"""The floats of 16 bits: arithmetic on them is that of float, and only variables, elements and casts have the type."""

ASIDE: Mapping[str, bool] = MappingProxyType({"aside": True})
"""Metadata of a field that ``rewrite`` reaches and ``walk`` does not: it says something of the node, and is not run."""


def promoted_type(dtype: str) -> str:
    """Return the type in which a value of ``dtype`` is held outside of memory: float for a float of 16 bits."""
    return "float32" if dtype in SHORT_FLOATS else dtype


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes; ``span`` is the position in the source, which does not take part in comparisons."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values of the fields; what dataclasses pickle for a frozen class takes three times as long."""
        kind: Any = type(self)
        values, _ = _slots(kind)
        return _restored, (kind, values(self))


@cache
def _slots(kind: Any) -> tuple[Callable[[Node], tuple[Any, ...]], tuple[Callable[[Node, Any], None], ...]]:
    """Return what returns the values of all fields of a node, and what sets each of them."""
    names = [f.name for f in fields(kind)]
    return attrgetter(*names), tuple(getattr(kind, name).__set__ for name in names)


def _restored(kind: Any, values: tuple[Any, ...]) -> Node:
    node: Node = object.__new__(kind)
    for put, value in zip(_slots(kind)[1], values, strict=True):
        put(node, value)
    return node


@dataclass(frozen=True, slots=True)
class Const(Node):
    """A constant."""

    value: int | float
    dtype: str = "int32"


@dataclass(frozen=True, slots=True)
class Var(Node):
    """A scalar or loop variable."""

    name: str
    dtype: str = "int32"


@dataclass(frozen=True, slots=True)
class Load(Node):
    """One element, ``array[index]...``; as the target of an ``Assign``, the element that is written."""

    array: str
    index: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A binary operation; op: ``+ - * / % & | ^ << >> min max`` or one of COMPARISONS."""

    op: str
    lhs: Expr
    rhs: Expr

    @property
    def dtype(self) -> str:
        return "int32" if self.op in COMPARISONS else self.lhs.dtype


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """A unary operation; op: ``- ! ~``."""

    op: str
    arg: Expr

    @property
    def dtype(self) -> str:
        return "int32" if self.op == "!" else self.arg.dtype


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A math.h function by its double name (``sqrt``, ``pow``, ``fabs``, ...); dtype says which variant."""

    fn: str
    args: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """The expression ``cond ? then : other``.

    ``no_nans``: no NaN is compared, so that it may become a minimum or maximum.
    """

    cond: Expr
    then: Expr
    other: Expr
    no_nans: bool = field(default=False, kw_only=True, compare=False)

    @property
    def dtype(self) -> str:
        return self.then.dtype


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """A conversion of ``arg`` to ``dtype``."""

    dtype: str
    arg: Expr


@dataclass(frozen=True, slots=True)
class Arg(Node):
    """One argument of a directive: ``split`` is key, ``4`` is values, ``i:4`` and ``reduce(+:S)`` are both."""

    key: str
    values: tuple[int | str | Arg, ...] = ()


@dataclass(frozen=True, slots=True)
class Directive(Node):
    """A directive ``#pragma hmppcg NAME ARGS`` as it is written; its transform defines its meaning."""

    name: str
    args: tuple[Arg, ...]
    target: str | None = None


class Annotation(ABC):
    """A statement of a directive about a loop, for the stages after ``schedule``.

    It is a frozen dataclass in the directive's own file. Every rewriting of a loop preserves its annotations; a later
    stage asks a ``Loop`` or a kernel for one by its class.
    """

    __slots__ = ()
    word: ClassVar[str]
    """The directive's name, by which the annotations of a loop are ordered."""
    inherited: ClassVar[bool] = False
    """It is for the loops in its loop too, where they have none of their own, and so for the kernel that they make."""
    compared: ClassVar[bool] = True
    """Two loops that differ in it are not equal. False where it has no influence on what is run in which order."""

    of_join: ClassVar[bool] = False
    """It is also for the kernel that joins the parts which several blocks made of a sum."""

    in_parts: ClassVar[bool] = False
    """The loop's iterations run in several parts at a time: it carries nothing but reductions, which it notes, though
    one thread runs those of a part."""

    def of_strips(self, parallel: bool) -> Self | None:
        """Return the part of this annotation that applies to the loop over the strips of a tiled loop, or None.

        ``parallel``: threads run that loop.
        """
        return self

    def of_points(self) -> Self | None:
        """Return the part of this annotation that applies to the loop inside one strip of a tiled loop, or None."""
        return self

    @abstractmethod
    def pragma(self) -> str:
        """Return the equivalent pragma in C, or "" if C has none."""

    def on_kernel(self, kernel: Any) -> Any:
        """Return the kernel (``lower.plan.Kernel``) that inherits the annotation as it is to be.

        The pass ``annotations`` asks for it once all of the kernel is known. Nothing needs to be done here where a pass
        or a code generator asks the kernel for the annotation.
        """
        return kernel

    def merge(self, other: Self) -> Self:
        """Return the annotation of a kernel that does the work of two, to which ``self`` and ``other`` applied."""
        return self


A = TypeVar("A", bound=Annotation)


def find_annotation(annotations: Iterable[Annotation], kind: type[A]) -> A | None:
    """Return the annotation of this class, or None."""
    return next((a for a in annotations if isinstance(a, kind)), None)


class Annotations(tuple[Annotation, ...]):
    """The annotations of a loop, at most one of each class: first those for the loop alone, each by its word.

    Equality considers only those that are ``compared``.
    """

    __slots__ = ()

    def __new__(cls, several: Iterable[Annotation] = ()) -> Self:
        """Of several of a class the last one stays."""
        each = {type(a): a for a in several}
        return super().__new__(cls, sorted(each.values(), key=lambda a: (a.inherited, a.word)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Annotations) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[Annotation, ...]:
        return tuple(a for a in self if a.compared)


NO_ANNOTATIONS = Annotations()


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """The assignment ``target = value``; ``x op= e`` is ``x = x op e``.

    ``name`` is the original statement and ``instance`` its original iteration vector as expressions of the loop
    variables around it: rewriting substitutes into both, so any tree says which instance it runs. ``directives`` are
    the ``cut``s before it, as on an ``If``.
    """

    target: Var | Load
    value: Expr
    name: str = field(default="", kw_only=True, compare=False)
    instance: tuple[Expr, ...] = field(default=(), kw_only=True, compare=False, repr=False, metadata=ASIDE)
    directives: tuple[Directive, ...] = field(default=(), kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduction(Node):
    """The update ``target = target op e`` in a parallel loop's iterations, in any order; op: ``+ * & | ^ min max``."""

    op: str
    target: Var | Load


@dataclass(frozen=True, slots=True)
class SourceCounter(Node):
    """The user's variable of a loop, and its value in terms of the loop's variable; None if the two are equal.

    They differ where the text counts otherwise, such as downward.
    """

    name: str
    dtype: str
    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """A counted loop; ``number`` is its place in the codelet's text, from 1, and 0 for a loop that a transform made.

    ``annotations`` are the statements of directives about it for later stages. ``counter`` is the variable with which
    the loop of the text counts; None for a loop that a transform made.

    ``reductions`` are what the iterations of a parallel loop accumulate into; nothing else in them accesses it.
    ``thread_axis`` is the dimension of the grid that a directive asks for, "" where the nest decides; along z a block
    has one iteration, and so it has of the "parts" of sums; of "copies", which are parts with arrays of their own, a
    thread has one; the iterations of a "team" loop are shared by the threads of one block. ``private_arrays`` are the
    local arrays of which each iteration has a copy: no value in them goes from one iteration to another.
    """

    var: str
    lo: Expr
    hi: Expr
    body: tuple[Stmt, ...]
    step: int = 1
    mode: Mode = "auto"
    number: int = field(default=0, kw_only=True, compare=False)
    directives: tuple[Directive, ...] = field(default=(), kw_only=True, compare=False, repr=False)
    dtype: str = field(default="int32", kw_only=True)
    counter: SourceCounter | None = field(default=None, kw_only=True, compare=False, repr=False, metadata=ASIDE)
    reductions: tuple[Reduction, ...] = field(default=(), kw_only=True, metadata=ASIDE)
    thread_axis: Literal["", "x", "y", "z", "parts", "copies", "team"] = field(default="", kw_only=True)
    private_arrays: tuple[str, ...] = field(default=(), kw_only=True)
    annotations: Annotations = field(default=NO_ANNOTATIONS, kw_only=True, repr=False)

    def annotation(self, kind: type[A]) -> A | None:
        """Return the annotation of this class, or None where the loop has none."""
        return find_annotation(self.annotations, kind)

    def annotated(self, *said: Annotation) -> Loop:
        """Return the loop with these annotations, each of which replaces one of its class."""
        return replace(self, annotations=Annotations((*self.annotations, *said)))

    @property
    def in_parts(self) -> bool:
        """Return whether an annotation says that several parts of the iterations run at the same time."""
        return any(a.in_parts for a in self.annotations)

    @property
    def source_value(self) -> Expr | None:
        """Return the value of the user's variable in terms of ``var``, or None if it is ``var``."""
        return None if self.counter is None else self.counter.value

    def without(self, *kinds: type[Annotation]) -> Loop:
        """Return the loop without its annotations of these classes."""
        kept = Annotations(a for a in self.annotations if not isinstance(a, kinds))
        return self if len(kept) == len(self.annotations) else replace(self, annotations=kept)


@dataclass(frozen=True, slots=True)
class While(Node):
    """A ``while`` loop."""

    cond: Expr
    body: tuple[Stmt, ...]
    number: int = field(default=0, kw_only=True, compare=False)
    directives: tuple[Directive, ...] = field(default=(), kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If(Node):
    """A condition with its two branches."""

    cond: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()
    directives: tuple[Directive, ...] = field(default=(), kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Array(Node):
    """A parameter of dense, row-major storage; a first extent of None is not declared (``double *x``)."""

    name: str
    dtype: str
    shape: tuple[Expr | None, ...]
    io: Literal["in", "out", "inout"] = "inout"


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """A parameter passed by value."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Local(Node):
    """A variable of the codelet: a scalar if ``shape`` is empty. Initialisers are ``Assign``s.

    An array declared inside a loop is listed here as well, and in the ``private_arrays`` of the loop. ``on_heap``: it
    may be too large for the stack.
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...] = ()
    on_heap: bool = False


@dataclass(frozen=True, slots=True)
class Codelet(Node):
    """A function to compile: its parameters, locals and statements.

    ``derivation``: how it was made of the codelet of the text, whose statements are others; None if it was not.
    """

    name: str
    params: tuple[Array | Scalar, ...]
    locals: tuple[Local, ...]
    body: tuple[Stmt, ...]
    label: str = ""
    directives: tuple[Directive, ...] = field(default=(), compare=False, repr=False)
    derivation: Derivation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PrefixDivision:
    """The codelet ``after`` the loop called ``number`` of ``text`` was divided into parts.

    ``before`` is ``text`` with scalars for what that loop carries in arrays. ``loops`` are the numbers of the loops
    over the parts: that of their sums, of the values before them, and of the rest. ``names`` has for each value that
    the loop carries the arrays of sums and of values before the parts, and the scalars of a sum and of a part.
    ``distinct`` are the statements of which no two instances write the same element, since a counter places them.
    """

    text: Codelet
    before: Codelet
    after: Codelet
    number: int
    loops: tuple[int, int, int]
    names: tuple[tuple[str, str, str, str], ...]
    distinct: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Derivation:
    """The steps by which a codelet was made of another one; each begins with what the one before it has made."""

    steps: tuple[PrefixDivision, ...]

    @property
    def codelet(self) -> Codelet:
        """Return the codelet that was made: the assignments of later trees are instances of its statements."""
        return replace(self.steps[-1].after, derivation=self)

    @property
    def distinct(self) -> frozenset[str]:
        """Return the statements of which no two instances write the same element."""
        return frozenset().union(*(step.distinct for step in self.steps))


Expr = Const | Var | Load | Binary | Unary | Call | Select | Cast
Stmt = Assign | Loop | While | If
