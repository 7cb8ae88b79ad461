"""Operations of a warp on tensor cores, as device functions: their names for all writers, and their text for Numba.

    clear_32_sums(sums)                     the sums of a lane are zero
    load_left_..(left, strips, place)       what a lane holds of the left factor of a step, from shared memory
    load_right_..(right, strips, place)     and of the right one
    multiply_..(sums, left, right)          sums += left * right
    gather_32_sums(sums, strip)             sums += strip, whose sums are zero then
    store_..(sums, strips, at)              the sums of a lane go to shared memory

Numba has no function for these instructions, so they are PTX in an intrinsic, which also makes the loads and stores of
a lane: what it makes takes no type inference. A lane's place in the strips is part of ``place`` and ``at``;
``lower.fragments`` says what each of its registers holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from looptune.lower.fragments import GROUPS, QUADS, Fragment

if TYPE_CHECKING:
    from looptune.lower.warp_tiles import StripOperand, WarpTiles

SIDES = ("left", "right")
FORMS = ("parts", "tf32", "bf16")
CONVERT = {"tf32": "cvt.rna.tf32.f32", "bf16": "cvt.rn.bf16x2.f32"}
"""The PTX instruction that rounds a factor, or two of them to one register, of which the second is the lower half."""


@dataclass(frozen=True, slots=True)
class FragmentLoad:
    """The load of ``count`` fragments of a factor for one step, from a strip with these strides.

    ``matrices``: by the instruction that loads four matrices of 8 x 4 words at once.
    """

    right: bool
    count: int
    fragment: Fragment
    side_stride: int
    step_stride: int
    dtype: str
    matrices: bool

    @classmethod
    def of(cls, tiles: WarpTiles, operand: StripOperand, right: bool) -> Self:
        shape = tiles.shape
        return cls(right, shape.wide_fragments if right else shape.high_fragments, shape.fragment, operand.side_stride,
                   operand.step_stride, tiles.dtype, tiles.by_matrices(operand, right))  # fmt: skip

    @property
    def name(self) -> str:
        what = f"load_{'matrices_' * self.matrices}{SIDES[self.right]}_{self.count}_of_{self.fragment.name}"
        return f"{what}_{self.side_stride}_{self.step_stride}_{self.dtype}"

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the load of this name, or None."""
        found = re.fullmatch(r"load_(matrices_)?(left|right)_(\d+)_of_(\d+)x(\d+)x(\d+)_(\d+)_(\d+)_(float\d+)", name)
        if found is None:
            return None
        by, side, *numbers, dtype = found.groups()
        count, m, n, k, side_stride, step_stride = map(int, numbers)
        return cls(side == SIDES[True], count, Fragment(m, n, k), side_stride, step_stride, dtype, by is not None)

    @property
    def registers(self) -> int:
        """Return how many registers one fragment has."""
        return self.fragment.right_registers if self.right else self.fragment.left_registers

    def places(self) -> tuple[int, ...]:
        """Return how far from the lane's place each element is, in the order in which the lane holds them."""
        f, upper = self.fragment, 1 if self.right else self.fragment.rows // GROUPS
        side = f.columns if self.right else f.rows
        return tuple(
            (side * k + GROUPS * (x % upper)) * self.side_stride + QUADS * (x // upper) * self.step_stride
            for k in range(self.count)
            for x in range(self.registers)
        )

    def matrix_places(self) -> tuple[int, ...]:
        """Return how far from the lane's place it names a row of each group of four matrices."""
        rows = self.fragment.rows  # two fragments of eight columns, or one of sixteen rows
        return tuple(rows * k * self.side_stride for k in range(self.count // 2 if self.right else self.count))


@dataclass(frozen=True, slots=True)
class StepProduct:
    """The product of ``high`` fragments of the left factor and ``wide`` of the right one.

    ``form``: "" of doubles, "parts" of floats as sums of two parts, and of rounded floats "tf32" or "bf16".
    """

    high: int
    wide: int
    fragment: Fragment
    form: str

    @classmethod
    def of(cls, tiles: WarpTiles) -> Self:
        form = "parts" if tiles.split else tiles.rounded
        return cls(tiles.shape.high_fragments, tiles.shape.wide_fragments, tiles.shape.fragment, form)

    @property
    def name(self) -> str:
        form = f"{self.form}_" if self.form else ""
        return f"multiply_{form}{self.high}x{self.wide}_of_{self.fragment.name}"

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the product of this name, or None."""
        found = re.fullmatch(rf"multiply_(?:({'|'.join(FORMS)})_)?(\d+)x(\d+)_of_(\d+)x(\d+)x(\d+)", name)
        if found is None:
            return None
        high, wide, m, n, k = map(int, found.groups()[1:])
        return cls(high, wide, Fragment(m, n, k), found[1] or "")

    @property
    def packed(self) -> bool:
        """Return whether a register holds two factors, four steps apart."""
        return self.form == "bf16"

    def pairs(self, registers: int, upper: int) -> tuple[tuple[int, int], ...]:
        """Return which two of a lane's factors a register of the instruction holds, the one at the lower step first.

        ``upper`` of the lane's ``registers`` are at one step. The instruction says which steps of a factor share a
        register (PTX ISA, "Matrix Fragments for mma.m16n8k16"); any others do as well, if they are the same ones of
        both factors, since a sum has all steps.
        """
        return tuple((k, k + upper) for start in range(0, registers, 2 * upper) for k in range(start, start + upper))

    @property
    def constants(self) -> dict[str, object]:
        """Return the numbers of its text."""
        f = self.fragment
        left, right = (n // 2 if self.packed else n for n in (f.left_registers, f.right_registers))
        return {
            "high": self.high, "wide": self.wide, "l": f.left_registers, "r": f.right_registers, "s": f.sum_registers,
            "all": 2 * f.sum_registers + left + right, "pl": left, "pr": right,
            "count": self.high * self.wide * f.sum_registers, "instruction": instruction(f, self.form),
            "rows": self.register_factors(f.left_registers, f.rows // GROUPS),
            "columns": self.register_factors(f.right_registers, 1),
            "convert": CONVERT.get(self.form, ""),
        }  # fmt: skip

    def register_factors(self, registers: int, upper: int) -> tuple[tuple[int, ...], ...]:
        """Return which of a lane's factors each register of the instruction holds."""
        return self.pairs(registers, upper) if self.packed else tuple((k,) for k in range(registers))


def clear_name(count: int, dtype: str) -> str:
    """Return the name of the function that sets so many sums to zero."""
    return f"clear_{count}_sums_{dtype}"


def gather_name(count: int) -> str:
    """Return the name of the function that adds so many sums of a strip to those of the loop."""
    return f"gather_{count}_sums"


def store_name(tiles: WarpTiles) -> str:
    """Return the name of the function that stores the sums of a lane to shared memory."""
    shape = tiles.shape
    return f"store_{shape.warp_rows}x{shape.warp_columns}_by_{shape.fragment.name}_{tiles.sum_pitch}_{tiles.dtype}"


def instruction(f: Fragment, form: str) -> str:
    """Return the PTX instruction."""
    kinds = {"": "f64.f64.f64.f64", "bf16": "f32.bf16.bf16.f32"}.get(form, "f32.tf32.tf32.f32")
    return f"mma.sync.aligned.m{f.rows}n{f.columns}k{f.steps}.row.col.{kinds}"


LOAD_MATRICES = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
"""Four matrices of eight rows of 16 bytes, which the lanes name: lane 4 * g + q gets word q of row g of each."""

_CLEAR = '''\
@intrinsic
def {name}(typingctx, sums):
    """The {count} sums of a lane are zero."""

    def emit(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        for k in range({count}):
            builder.store(ir.Constant(ir.{number}(), 0.0), builder.gep(data, [ir.Constant(ir.IntType(64), k)]))
        return context.get_dummy_value()

    return types.void(sums), emit
'''
_LOAD = '''\
@intrinsic
def {name}(typingctx, held, strips, place):
    """What a lane holds of a factor of one step comes from ``strips``, from ``place`` on."""

    def emit(context, builder, signature, args):
        far = ir.IntType(64)
        to, read = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 1))
        read = builder.gep(read, [builder.zext(args[2], far)])
        for k, at in enumerate({places}):
            value = builder.load(builder.gep(read, [ir.Constant(far, at)]))
            builder.store(value, builder.gep(to, [ir.Constant(far, k)]))
        return context.get_dummy_value()

    return types.void(held, strips, types.uint64), emit
'''
_MATRICES = '''\
@intrinsic
def {name}(typingctx, held, strips, place):
    """What a lane holds of a factor of one step comes from ``strips``; its rows of matrices are from ``place`` on."""

    def emit(context, builder, signature, args):
        far, word, number = ir.IntType(64), ir.IntType(32), ir.FloatType()
        to, read = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 1))
        read = builder.gep(read, [builder.zext(args[2], far)])
        kind = ir.FunctionType(ir.LiteralStructType([word] * 4), [word])
        four = ir.InlineAsm(kind, "{load} {{$0, $1, $2, $3}}, [$4];", "=r,=r,=r,=r,r,~{{memory}}", True)
        for k, at in enumerate({places}):
            row = builder.gep(read, [ir.Constant(far, at)])
            row = builder.ptrtoint(builder.addrspacecast(row, ir.PointerType(number, 3)), word)
            found = builder.call(four, [row])
            for x in range(4):
                value = builder.bitcast(builder.extract_value(found, x), number)
                builder.store(value, builder.gep(to, [ir.Constant(far, 4 * k + x)]))
        return context.get_dummy_value()

    return types.void(held, strips, types.uint64), emit
'''
_MULTIPLY = '''\
@intrinsic
def {name}(typingctx, sums, left, right):
    """The product of what the lanes of a warp hold of two factors is added to the sums of the lane."""

    def emit(context, builder, signature, args):
        number = ir.DoubleType()
        data = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in range(3)]

        def at(k, place):
            return builder.gep(data[k], [ir.Constant(ir.IntType(64), place)])

        names = iter("$" + str(k) for k in range({all}))
        d, l, r, c = ("{{" + ", ".join(next(names) for _ in range(k)) + "}}" for k in ({s}, {l}, {r}, {s}))
        text = "{instruction} " + ", ".join((d, l, r, c)) + ";"
        kind = ir.FunctionType(ir.LiteralStructType([number] * {s}), [number] * ({l} + {r} + {s}))
        multiply = ir.InlineAsm(kind, text, ",".join(["=d"] * {s} + ["d"] * ({l} + {r} + {s})), True)
        rows = [[builder.load(at(1, i * {l} + x)) for x in range({l})] for i in range({high})]
        for j in range({wide}):
            columns = [builder.load(at(2, j * {r} + x)) for x in range({r})]
            for i in range({high}):
                places = [at(0, (i * {wide} + j) * {s} + x) for x in range({s})]
                found = builder.call(multiply, [*rows[i], *columns, *map(builder.load, places)])
                for x, place in enumerate(places):
                    builder.store(builder.extract_value(found, x), place)
        return context.get_dummy_value()

    return types.void(sums, left, right), emit
'''
_PARTS = '''\
@intrinsic
def {name}(typingctx, sums, left, right):
    """The product of what the lanes of a warp hold of two factors is added to the sums of the lane.

    A factor is the sum of two parts: its first 11 bits, rounded, and the rest, of which the cores multiply 11 bits.
    The three largest products of parts are added."""

    def emit(context, builder, signature, args):
        number, bits = ir.FloatType(), ir.IntType(32)
        data = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in range(3)]

        def at(k, place):
            return builder.gep(data[k], [ir.Constant(ir.IntType(64), place)])

        def parts(place):
            value = builder.load(place)
            rounded = builder.add(builder.bitcast(value, bits), ir.Constant(bits, 0x1000))
            high = builder.and_(rounded, ir.Constant(bits, 0xFFFFE000))
            return high, builder.bitcast(builder.fsub(value, builder.bitcast(high, number)), bits)

        names = iter("$" + str(k) for k in range({all}))
        d, l, r, c = ("{{" + ", ".join(next(names) for _ in range(k)) + "}}" for k in ({s}, {l}, {r}, {s}))
        text = "{instruction} " + ", ".join((d, l, r, c)) + ";"
        kind = ir.FunctionType(ir.LiteralStructType([number] * {s}), [bits] * ({l} + {r}) + [number] * {s})
        multiply = ir.InlineAsm(kind, text, ",".join(["=f"] * {s} + ["r"] * ({l} + {r}) + ["f"] * {s}), True)
        rows = [[parts(at(1, i * {l} + x)) for x in range({l})] for i in range({high})]
        for j in range({wide}):
            columns = [parts(at(2, j * {r} + x)) for x in range({r})]
            for p, q in ((1, 0), (0, 1), (0, 0)):
                for i in range({high}):
                    places = [at(0, (i * {wide} + j) * {s} + x) for x in range({s})]
                    factors = [*(x[p] for x in rows[i]), *(x[q] for x in columns)]
                    found = builder.call(multiply, [*factors, *map(builder.load, places)])
                    for x, place in enumerate(places):
                        builder.store(builder.extract_value(found, x), place)
        return context.get_dummy_value()

    return types.void(sums, left, right), emit
'''
_ROUNDED = '''\
@intrinsic
def {name}(typingctx, sums, left, right):
    """The product of what the lanes of a warp hold of two factors, rounded, is added to the sums of the lane."""

    def emit(context, builder, signature, args):
        number, bits = ir.FloatType(), ir.IntType(32)
        data = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in range(3)]

        def at(k, place):
            return builder.gep(data[k], [ir.Constant(ir.IntType(64), place)])

        def rounded(k, first, held):
            factors = [builder.load(at(k, first + x)) for x in reversed(held)]
            places = ", ".join("$" + str(1 + x) for x in range(len(held)))
            text, kind = "{convert} $0, " + places + ";", ir.FunctionType(bits, [number] * len(held))
            return builder.call(ir.InlineAsm(kind, text, ",".join(["=r"] + ["f"] * len(held)), False), factors)

        names = iter("$" + str(k) for k in range({all}))
        d, l, r, c = ("{{" + ", ".join(next(names) for _ in range(k)) + "}}" for k in ({s}, {pl}, {pr}, {s}))
        text = "{instruction} " + ", ".join((d, l, r, c)) + ";"
        kind = ir.FunctionType(ir.LiteralStructType([number] * {s}), [bits] * ({pl} + {pr}) + [number] * {s})
        multiply = ir.InlineAsm(kind, text, ",".join(["=f"] * {s} + ["r"] * ({pl} + {pr}) + ["f"] * {s}), True)
        rows = [[rounded(1, i * {l}, held) for held in {rows}] for i in range({high})]
        for j in range({wide}):
            columns = [rounded(2, j * {r}, held) for held in {columns}]
            for i in range({high}):
                places = [at(0, (i * {wide} + j) * {s} + x) for x in range({s})]
                found = builder.call(multiply, [*rows[i], *columns, *map(builder.load, places)])
                for x, place in enumerate(places):
                    builder.store(builder.extract_value(found, x), place)
        return context.get_dummy_value()

    return types.void(sums, left, right), emit
'''
_GATHER = '''\
@intrinsic
def {name}(typingctx, sums, strip):
    """The {count} sums of a strip are added to those of the loop, and are zero then.

    The cores truncate sums, so that only those of one strip are theirs."""

    def emit(context, builder, signature, args):
        data = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 1)]
        for k in range({count}):
            to, own = (builder.gep(d, [ir.Constant(ir.IntType(64), k)]) for d in data)
            builder.store(builder.fadd(builder.load(to), builder.load(own)), to)
            builder.store(ir.Constant(ir.FloatType(), 0.0), own)
        return context.get_dummy_value()

    return types.void(sums, strip), emit
'''
_STORE = '''\
@intrinsic
def {name}(typingctx, sums, strips, place):
    """The sums of a lane go to ``strips``, from element ``place`` on."""

    def emit(context, builder, signature, args):
        far = ir.IntType(64)
        held, target = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 1))
        target = builder.gep(target, [builder.zext(args[2], far)])
        for i in range({high}):
            for j in range({wide}):
                for x in range({s}):
                    value = builder.load(builder.gep(held, [ir.Constant(far, (i * {wide} + j) * {s} + x)]))
                    to = ({m} * i + {groups} * (x // 2)) * {pitch} + {n} * j + x % 2
                    builder.store(value, builder.gep(target, [ir.Constant(far, to)]))
        return context.get_dummy_value()

    return types.void(sums, strips, types.uint64), emit
'''


def helpers(kernels: Iterable[str]) -> Iterator[str]:
    """Yield the device functions that kernels in Numba's Python use."""
    called = sorted(set(re.findall(r"\b\w+(?=\()", "\n".join(kernels))))
    yield from (text for name in called if (text := numba_text(name)) is not None)


def numba_text(name: str) -> str | None:
    """Return the device function of this name, or None if it is none of these."""
    load, product = FragmentLoad.named(name), StepProduct.named(name)
    if load is not None:
        places = load.matrix_places() if load.matrices else load.places()
        return (_MATRICES if load.matrices else _LOAD).format(name=name, places=places, load=LOAD_MATRICES)
    if product is not None:
        text = {"": _MULTIPLY, "parts": _PARTS}.get(product.form, _ROUNDED)
        return text.format(name=name, **product.constants)
    if found := re.fullmatch(r"clear_(\d+)_sums_float(32|64)", name):
        number = {"64": "DoubleType", "32": "FloatType"}[found[2]]
        return _CLEAR.format(name=name, count=found[1], number=number)
    if found := re.fullmatch(r"gather_(\d+)_sums", name):
        return _GATHER.format(name=name, count=found[1])
    if found := re.fullmatch(r"store_(\d+)x(\d+)_by_(\d+)x(\d+)x(\d+)_(\d+)_float\d\d", name):
        rows, columns, m, n, k, pitch = map(int, found.groups())
        return _STORE.format(name=name, high=rows // m, wide=columns // n, s=Fragment(m, n, k).sum_registers, m=m, n=n,
                             groups=GROUPS, pitch=pitch)  # fmt: skip
    return None
