"""Operations of a warp on tensor cores, as device functions: their names for all writers, and their text for Numba.

    clear_32_sums(sums)                     the sums of a lane are zero
    multiply_..(sums, strips, a, b)         sums += left strip * right strip, from elements a and b of shared memory on
    store_..(sums, strips, at)              the sums of a lane go to shared memory

Numba has no function for these instructions, so they are PTX in an intrinsic, which also makes the loads and stores of
a lane: what it makes takes no type inference. A lane's place in the strips is part of a, b and ``at``;
``lower.fragments`` says what each of its registers holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from looptune.lower.fragments import GROUPS, QUADS, Fragment

if TYPE_CHECKING:
    from looptune.lower.warp_tiles import WarpProduct, WarpTiles


@dataclass(frozen=True, slots=True)
class StripProduct:
    """All that the product of two strips depends on, and so its name."""

    fragment: Fragment
    warp_rows: int
    warp_columns: int
    strip: int
    left: tuple[int, int]
    right: tuple[int, int]
    split: bool = False

    @classmethod
    def of(cls, tiles: WarpTiles, product: WarpProduct) -> Self:
        left, right = ((o.side_stride, o.step_stride) for o in (product.left, product.right))
        shape = tiles.shape
        return cls(shape.fragment, shape.warp_rows, shape.warp_columns, shape.strip, left, right, tiles.split)

    @property
    def name(self) -> str:
        sides = f"{self.warp_rows}x{self.warp_columns}x{self.strip}"
        strides = "_".join(map(str, (*self.left, *self.right)))
        return f"multiply_{'parts_' * self.split}{sides}_by_{self.fragment.name}_{strides}"

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the product of this name, or None."""
        found = re.fullmatch(
            r"multiply_(?:parts_)?(\d+)x(\d+)x(\d+)_by_(\d+)x(\d+)x(\d+)_(\d+)_(\d+)_(\d+)_(\d+)", name
        )
        if found is None:
            return None
        rows, columns, strip, m, n, k, *strides = map(int, found.groups())
        return cls(Fragment(m, n, k), rows, columns, strip, (strides[0], strides[1]), (strides[2], strides[3]),
                   "parts" in name)  # fmt: skip


def clear_name(count: int, dtype: str) -> str:
    """Return the name of the function that sets so many sums to zero."""
    return f"clear_{count}_sums_{dtype}"


def store_name(tiles: WarpTiles) -> str:
    """Return the name of the function that stores the sums of a lane to shared memory."""
    shape = tiles.shape
    return f"store_{shape.warp_rows}x{shape.warp_columns}_by_{shape.fragment.name}_{tiles.sum_pitch}_{tiles.dtype}"


def instruction(f: Fragment, split: bool) -> str:
    """Return the PTX instruction."""
    kinds = "f32.tf32.tf32.f32" if split else "f64.f64.f64.f64"
    return f"mma.sync.aligned.m{f.rows}n{f.columns}k{f.steps}.row.col.{kinds}"


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
_MULTIPLY = '''\
@intrinsic
def {name}(typingctx, sums, strips, a, b):
    """The product of two strips of ``strips`` is added to the sums of a lane; its elements begin at ``a`` and ``b``."""

    def emit(context, builder, signature, args):
        number, far = ir.DoubleType(), ir.IntType(64)
        held, read = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 1))
        left, right = (builder.gep(read, [builder.zext(args[k], far)]) for k in (2, 3))

        def at(data, place):
            return builder.gep(data, [ir.Constant(far, place)])

        names = iter("$" + str(k) for k in range({all}))
        d, l, r, c = ("{{" + ", ".join(next(names) for _ in range(k)) + "}}" for k in ({s}, {l}, {r}, {s}))
        text = "{instruction} " + ", ".join((d, l, r, c)) + ";"
        made = ir.LiteralStructType([number] * {s})
        kind = ir.FunctionType(made, [number] * ({l} + {r} + {s}))
        multiply = ir.InlineAsm(kind, text, ",".join(["=d"] * {s} + ["d"] * ({l} + {r} + {s})), True)
        sums = [builder.load(at(held, k)) for k in range({count})]
        for k in range(0, {strip}, {steps}):
            rows = [
                [
                    builder.load(
                        at(left, ({m} * i + {groups} * (x % {upper})) * {a0} + (k + {quads} * (x // {upper})) * {a1})
                    )
                    for x in range({l})
                ]
                for i in range({high})
            ]
            for j in range({wide}):
                columns = [builder.load(at(right, {n} * j * {b0} + (k + {quads} * x) * {b1})) for x in range({r})]
                for i in range({high}):
                    first = (i * {wide} + j) * {s}
                    found = builder.call(multiply, [*rows[i], *columns, *sums[first : first + {s}]])
                    sums[first : first + {s}] = [builder.extract_value(found, x) for x in range({s})]
        for k, value in enumerate(sums):
            builder.store(value, at(held, k))
        return context.get_dummy_value()

    return types.void(sums, strips, types.uint64, types.uint64), emit
'''
_PARTS = '''\
@intrinsic
def {name}(typingctx, sums, strips, a, b):
    """The product of two strips of ``strips`` is added to the sums of a lane; its elements begin at ``a`` and ``b``.

    A factor is the sum of two parts of 11 bits. The three largest products of parts are added on their own, and their
    sum to the float, since the cores truncate sums."""

    def emit(context, builder, signature, args):
        number, bits, far = ir.FloatType(), ir.IntType(32), ir.IntType(64)
        held, read = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 1))
        left, right = (builder.gep(read, [builder.zext(args[k], far)]) for k in (2, 3))

        def at(data, place):
            return builder.gep(data, [ir.Constant(far, place)])

        part = ir.InlineAsm(ir.FunctionType(bits, [number]), "cvt.rna.tf32.f32 $0, $1;", "=r,f", False)

        def parts(data, place):
            value = builder.load(at(data, place))
            high = builder.call(part, [value])
            return high, builder.call(part, [builder.fsub(value, builder.bitcast(high, number))])

        names = iter("$" + str(k) for k in range({all}))
        d, l, r, c = ("{{" + ", ".join(next(names) for _ in range(k)) + "}}" for k in ({s}, {l}, {r}, {s}))
        text = "{instruction} " + ", ".join((d, l, r, c)) + ";"
        kind = ir.FunctionType(ir.LiteralStructType([number] * {s}), [bits] * ({l} + {r}) + [number] * {s})
        multiply = ir.InlineAsm(kind, text, ",".join(["=f"] * {s} + ["r"] * ({l} + {r}) + ["f"] * {s}), True)
        steps = range(0, {strip}, {steps})
        rows = [
            [
                [
                    parts(left, ({m} * i + {groups} * (x % {upper})) * {a0} + (k + {quads} * (x // {upper})) * {a1})
                    for x in range({l})
                ]
                for k in steps
            ]
            for i in range({high})
        ]
        for j in range({wide}):
            columns = [[parts(right, {n} * j * {b0} + (k + {quads} * x) * {b1}) for x in range({r})] for k in steps]
            for i in range({high}):
                added = [ir.Constant(number, 0.0)] * {s}
                for one, other in zip(rows[i], columns):
                    for p, q in ((1, 0), (0, 1), (0, 0)):
                        found = builder.call(multiply, [*(x[p] for x in one), *(x[q] for x in other), *added])
                        added = [builder.extract_value(found, x) for x in range({s})]
                for x in range({s}):
                    place = at(held, (i * {wide} + j) * {s} + x)
                    builder.store(builder.fadd(builder.load(place), added[x]), place)
        return context.get_dummy_value()

    return types.void(sums, strips, types.uint64, types.uint64), emit
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
    text = "\n".join(kernels)
    for name in sorted(set(re.findall(r"\b(?:clear|multiply|multiply_parts|store)_\d\w*(?=\()", text))):
        yield numba_text(name)


def numba_text(name: str) -> str:
    """Return the device function of this name."""
    product = StripProduct.named(name)
    if product is not None:
        return (_PARTS if product.split else _MULTIPLY).format(name=name, **constants(product))
    numbers = tuple(map(int, re.findall(r"\d+", name)))
    if name.startswith("clear_"):
        number = {"float64": "DoubleType", "float32": "FloatType"}[name.rpartition("_")[2]]
        return _CLEAR.format(name=name, count=numbers[0], number=number)
    rows, columns, m, n, k, pitch, _ = numbers
    f = Fragment(m, n, k)
    return _STORE.format(name=name, high=rows // m, wide=columns // n, s=f.sum_registers, m=m, n=n, groups=GROUPS,
                         pitch=pitch)  # fmt: skip


def constants(product: StripProduct) -> dict[str, object]:
    """Return the numbers of the text of a product."""
    f = product.fragment
    high, wide = product.warp_rows // f.rows, product.warp_columns // f.columns
    return {
        "m": f.rows, "n": f.columns, "steps": f.steps, "strip": product.strip, "high": high, "wide": wide,
        "l": f.left_registers, "r": f.right_registers, "s": f.sum_registers, "upper": f.rows // GROUPS,
        "groups": GROUPS, "quads": QUADS, "a0": product.left[0], "a1": product.left[1], "b0": product.right[0],
        "b1": product.right[1], "instruction": instruction(f, product.split), "count": high * wide * f.sum_registers,
        "all": 2 * f.sum_registers + f.left_registers + f.right_registers,
    }  # fmt: skip
