"""The one rule and parallel loops on random nests, against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.ir.interpreter import Interpreter
from looptune.ir.nodes import Assign, Codelet, Const, If, Load, Loop, Var
from looptune.ir.rewrite import walk
from looptune.poly.legality import check_schedule, parallel
from looptune.poly.scop import SchedulePiece, Scop, build
from tests.helpers.python_nests import nest

Instance = tuple[str, tuple[int, ...]]


def instances(codelet: Codelet, sizes: Mapping[str, int]) -> Iterator[tuple[Instance, dict[str, int], Assign]]:
    """Every instance in the original order, with its variables. Conditions must not read arrays."""
    machine = Interpreter({}, dict(sizes), None)

    def visit(body: tuple, env: dict[str, int]) -> Iterator[tuple[Instance, dict[str, int], Assign]]:
        machine.scalars.update(env)
        for stmt in body:
            machine.scalars.update(env)
            match stmt:
                case Assign(name=statement, instance=at):
                    yield (statement, tuple(machine.value(e) for e in at)), dict(env), stmt
                case Loop(var, lo, hi, inner, step):
                    for i in range(machine.value(lo), machine.value(hi), step):
                        yield from visit(inner, {**env, var: i})
                case If(cond, then, other):
                    yield from visit(then if machine.value(cond) else other, env)

    yield from visit(codelet.body, dict(sizes))


def elements(stmt: Assign, env: Mapping[str, int], locals_: set[str]) -> list[tuple[str, tuple[int, ...], bool]]:
    """(array, element, written) for all that the instance touches, reads first."""
    machine = Interpreter({}, dict(env), None)

    def place(node: Load | Var) -> tuple[str, tuple[int, ...]]:
        return (node.array, tuple(machine.value(e) for e in node.index)) if isinstance(node, Load) else (node.name, ())

    reads = [n for n in walk(stmt.value) if isinstance(n, Load) or (isinstance(n, Var) and n.name in locals_)]
    return [(*place(n), False) for n in reads] + [(*place(stmt.target), True)]


def time_of(pieces: tuple[SchedulePiece, ...], env: Mapping[str, int]) -> tuple[int, ...]:
    (held,) = (p for p in pieces if not p.when or eval(p.when.replace(" mod ", " % "), {}, dict(env)))
    return tuple(eval(e, {}, dict(env)) for e in held.time)


def conflicts(codelet: Codelet, run: list, shared: bool = False) -> Iterator[tuple[int, int]]:
    """Positions of instances that touch one array element, one of them writing; ``shared``: locals too."""
    locals_ = {v.name for v in codelet.locals}
    touched = [elements(s, env, locals_) for _, env, s in run]
    for (p, a), (q, b) in itertools.combinations(enumerate(touched), 2):
        if any(x[:2] == y[:2] and (x[2] or y[2]) and (shared or x[0] not in locals_) for x in a for y in b):
            yield p, q


def writers(codelet: Codelet, run: list) -> dict[tuple[Instance, str], Instance | None]:
    """Who wrote the value each instance reads of each local."""
    locals_ = {v.name for v in codelet.locals}
    last: dict[str, Instance] = {}
    found = {}
    for instance, env, stmt in run:
        for array, _, written in elements(stmt, env, locals_):
            if array not in locals_:
                continue
            if written:
                last[array] = instance
            else:
                found[instance, array] = last.get(array)
    return found


SUBSCRIPTS = ("i", "j", "i - 1", "j + 1", "n - 1 - i", "2 * i + 1", "i // 2", "i + j", "j % 2", "n - 1 - j", "0", "2")
BOUNDS = (("0", "n"), ("1", "n"), ("0", "n - 1"), ("i", "n"), ("0", "i + 1"), ("n - 1 - i", "n"), ("0", "min(n, 3)"))
VALUES = ("A[{0}, {1}] + 1.0", "B[{0}]", "B[{1}] + t", "t", "1.0", "A[{1}, {0}] * B[{0}]")
CONDITIONS = ("i < j", "i + j == n", "(i + j) % 2 == 0", "j < 2", "not (i > 1 and j > 1)")


@st.composite
def codes(draw: st.DrawFn) -> str:
    """for i { statements; for j { statements }; statements }, some under affine conditions."""
    lo, hi = draw(st.sampled_from(BOUNDS[:3]))
    jlo, jhi = draw(st.sampled_from(BOUNDS))
    steps = draw(st.tuples(st.sampled_from([1, 1, 2]), st.sampled_from([1, 1, 2, 3])))

    def statement(outer: bool) -> str:
        pool = [s for s in SUBSCRIPTS if not (outer and "j" in s)]
        a, b, c, d = (draw(st.sampled_from(pool)) for _ in range(4))
        target = draw(st.sampled_from([f"A[{a}, {b}]", f"A[{a}, {b}]", f"B[{a}]", "t"]))
        line = f"{target} = {draw(st.sampled_from(VALUES)).format(c, d)}"
        if not outer and draw(st.integers(0, 3)) == 0:
            line = f"if {draw(st.sampled_from(CONDITIONS))}: {line}"
        return line

    lines = [f"for i in range({lo}, {hi}, {steps[0]}):"]
    lines += ["    " + statement(True) for _ in range(draw(st.integers(0, 1)))]
    lines += [f"    for j in range({jlo}, {jhi}, {steps[1]}):"]
    lines += ["        " + statement(False) for _ in range(draw(st.integers(1, 2)))]
    lines += ["    " + statement(True) for _ in range(draw(st.integers(0, 1)))]
    return "\n".join(lines)


def random_nest(code: str) -> Codelet:
    return nest(code, {"A": ("n", "n"), "B": ("n",)}, {"t": ()})


TIMES = ("i", "j", "-i", "-j", "i + j", "j - i", "0", "i // 2", "i % 2", "n - i")


@st.composite
def orders(draw: st.DrawFn, model: Scop) -> dict[str, tuple[SchedulePiece, ...]]:
    """A few random dimensions for all statements, with a random place in the text between them."""
    dims = draw(st.lists(st.sampled_from(TIMES), min_size=1, max_size=3))
    statics = {s: [draw(st.integers(-1, 1)) for _ in dims] for s in model.statements}

    def of(name: str) -> tuple[SchedulePiece, ...]:
        own = model.statements[name].dims
        entries = [e if "j" not in e or "j" in own else e.replace("j", "0") for e in dims]
        time_ = tuple(x for e, k in zip(entries, statics[name], strict=True) for x in (str(k), e))
        return (
            SchedulePiece(
                tuple(e.replace("//", "/").replace("i / 2", "floor(i/2)").replace("%", "mod") for e in time_)
            ),
        )

    return {s: of(s) for s in model.statements}


def at(pieces: tuple[SchedulePiece, ...], env: Mapping[str, int]) -> tuple[int, ...]:
    plain = tuple(
        SchedulePiece(tuple(e.replace("floor(i/2)", "i // 2").replace("mod", "%") for e in p.time)) for p in pieces
    )
    return time_of(plain, env)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_judge_is_exact(data: st.DataObject) -> None:
    """Legal: no conflict is reversed, every local read keeps its writer, at all small sizes. Else: a true witness."""
    codelet = random_nest(data.draw(codes()))
    model = build(codelet)
    new = data.draw(orders(model))
    refused = check_schedule(model, new, reassociate=False)
    for n in range(1, 5) if refused is None else [refused.sizes.get("n", 4)]:
        run = list(instances(codelet, {"n": n}))
        times = [(at(new[i[0]], env), k) for k, (i, env, _) in enumerate(run)]
        reversed_ = [(run[p][0], run[q][0]) for p, q in conflicts(codelet, run) if times[p][0] > times[q][0]]
        moved = [run[k] for _, k in sorted(times)]
        before, after = writers(codelet, run), writers(codelet, moved)
        changed = [r for r, w in before.items() if w is not None and after[r] != w]
        if refused is None:
            assert not reversed_
            assert not changed
        elif refused.array != "t":
            first = refused.first_statement, tuple(refused.source_iteration.values())
            then = refused.then_statement, tuple(refused.sink_iteration.values())
            assert (first, then) in reversed_
        else:
            assert changed


def test_a_witness_is_of_what_is_broken() -> None:
    """Two iterations touch a local too, in the order claimed, but no value of it goes from one to the other."""
    codelet = random_nest(
        """for i in range(0, n, 1):
    t = A[i, i] + 1.0
    for j in range(0, n, 1):
        A[i, i] = B[i] + t
        if i < j: t = A[j, j] + 1.0"""
    )
    last = {"S0": "-1", "S1": "-1", "S2": "0"}
    refused = check_schedule(
        build(codelet), {s: (SchedulePiece((k, "i")),) for s, k in last.items()}, reassociate=False
    )
    assert refused is not None
    assert (refused.array, refused.kind) == ("A", "anti")


@settings(max_examples=120, deadline=None)
@given(codes(), st.sampled_from([1, 3]))
def test_parallel_is_exact(code: str, depth: int) -> None:
    """Parallel: no conflict between different iterations of the loop, at all small sizes. Else: the witness is true."""
    codelet = random_nest(code)
    model = build(codelet)
    inside = [n for n, s in model.statements.items() if depth == 1 or "j" in s.dims]
    found = parallel(model, inside, depth)
    sizes = range(1, 5) if found.witness is None else [found.witness.sizes.get("n", 4)]
    loop = depth // 2
    for n in sizes:
        run = [r for r in instances(codelet, {"n": n}) if r[0][0] in inside]
        pairs = {(run[p][0], run[q][0]) for p, q in conflicts(codelet, run, shared="t" not in found.private)}
        carried = {(a, b) for a, b in pairs if a[1][:loop] == b[1][:loop] and a[1][loop] != b[1][loop]}
        if found.witness is None:
            assert not carried
        else:
            w = found.witness
            assert (
                (w.first_statement, tuple(w.source_iteration.values())),
                (w.then_statement, tuple(w.sink_iteration.values())),
            ) in carried
        if "t" in found.private:
            whole = list(instances(codelet, {"n": n}))
            for (r, _), w in writers(codelet, whole).items():
                if w is not None and (r[0] in inside or w[0] in inside):
                    assert {r[0], w[0]} <= set(inside)
                    assert r[1][: loop + 1] == w[1][: loop + 1]


INDIRECT = ("i", "j", "idx[i]", "idx[j]", "i * j", "n - 1 - i")
UPDATES = (
    "{t} = {v}",
    "{t} = {v}",
    "{t} = {t} + {v}",
    "{t} = max({t}, {v})",
    "if {v} > {t}: {t} = {v}",
    "if {t} > {v}: {t} = {v}",
    "{t} = {v} - {t}",
    "s = s + {v}",
    "s = {v}",
    "{t} = s",
)
GUARDS = ("", "", "if B[i] > 2.0: ", "if i < j and A[i, j] < 1.0: ", "if idx[j] == i: ")


@st.composite
def wild(draw: st.DrawFn) -> str:
    """Two or three statements with indirect subscripts, data-dependent conditions, accumulations and a local."""
    lines = ["for i in range(0, n):", "    for j in range(0, n):"]
    for _ in range(draw(st.integers(2, 3))):
        a, b, c, d = (draw(st.sampled_from(INDIRECT)) for _ in range(4))
        target = draw(st.sampled_from([f"A[{a}, {b}]", f"B[{a}]"]))
        value = draw(st.sampled_from([f"A[{c}, {d}]", f"B[{c}]", "3.0"]))
        update = draw(st.sampled_from(UPDATES)).format(t=target, v=value)
        guard = "" if update.startswith("if") else draw(st.sampled_from(GUARDS))
        lines.append(f"        {guard}{update}")
    return "\n".join(lines)


def execute(codelet: Codelet, n: int, times: Mapping[str, tuple[SchedulePiece, ...]] | None) -> dict[str, list]:
    """Run instance by instance in the order of ``times``, asking each one's conditions when its turn comes."""
    shape = n * n + 1
    rng = np.random.default_rng(n)
    arrays = {"A": rng.integers(0, 5, (shape, shape)) * 1.0, "B": rng.integers(0, 5, shape) * 1.0,
              "idx": rng.integers(0, n, shape)}  # fmt: skip
    machine = Interpreter(arrays, {"n": n, "s": 1.0}, None)
    todo = []
    for i, j in itertools.product(range(n), range(n)):
        for stmt in codelet.body[0].body[0].body:
            guard, assign = (stmt.cond, stmt.then[0]) if isinstance(stmt, If) else (Const(1), stmt)
            env = {"i": i, "j": j, "n": n}
            todo.append(((*(() if times is None else at(times[assign.name], env)), len(todo)), env, guard, assign))
    for _, env, guard, assign in sorted(todo, key=lambda x: x[0]):
        machine.scalars.update(env)
        if machine.value(guard):
            machine.store(assign.target, machine.value(assign.value))
    return {a: arrays[a].tolist() for a in "AB"}


@pytest.mark.wide
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_judge_is_sound_for_code_it_cannot_analyse(data: st.DataObject) -> None:
    """Whatever is accepted computes the same, accumulations included: on integers they are exact."""
    code = data.draw(wild())
    codelet = nest(code, {"A": (None, "m"), "B": ("m",), "idx": ("m",)}, {"s": ()}, {"idx": "int32"})
    model = build(codelet)
    new = data.draw(orders(model))
    if check_schedule(model, new) is None:
        for n in (2, 3):
            assert execute(codelet, n, None) == execute(codelet, n, new)
