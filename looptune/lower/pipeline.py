"""Lowering as a list: a codelet, all modes of its loops decided, becomes a plan of host steps and kernels.

    lower_to_plan(codelet)        the passes for every target, on which proofs, predictions and backends rest
    finish_plan(plan, machine)    those for one kind of target, which a backend asks for before it writes text

``PASSES`` is the order, each with the reason for its place. ``looptune emit FILE --after PASS`` prints what one leaves.
A plan says in ``passes`` which it went through, so that none of them runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from looptune.core.errors import UsageError
from looptune.core.floating_point import Contract
from looptune.ir.def_use import referenced_names
from looptune.ir.nodes import Codelet, Loop, Stmt, Var
from looptune.ir.rewrite import rewrite_stmts, walk
from looptune.lower.fp_contraction import forbid_contraction
from looptune.lower.mapping import check_names, map_loops
from looptune.lower.passes.cpu_reassociation import mark_accumulations
from looptune.lower.passes.cpu_time_bands import make_time_bands
from looptune.lower.passes.grid_compaction import compact_grid, requests_compaction
from looptune.lower.passes.if_conversion import if_convert
from looptune.lower.passes.kernel_parameters import find_parameters
from looptune.lower.passes.lane_registers import LANE, fuse_first_values, keep_lane_elements
from looptune.lower.passes.reduction_simplification import share_sums
from looptune.lower.passes.serial_nests import nest_axes
from looptune.lower.passes.shared_memory import stage_kernel
from looptune.lower.passes.split_reduction import expand_split_reductions
from looptune.lower.passes.temporal_tile_bodies import allocate_tiles
from looptune.lower.passes.temporal_tiling import with_ping_pong_arrays
from looptune.lower.passes.thread_scalars import keep_in_scalars
from looptune.lower.passes.thread_teams import divide_into_phases
from looptune.lower.passes.unswitch import unswitch_innermost
from looptune.lower.plan import Kernel, Plan, with_kernels


@dataclass(frozen=True, slots=True)
class Machine:
    """What lowering has to know of a target.

    ``blocks``: threads come in blocks, as on a GPU; ``contract``: which products its compiler may contract with sums,
    where it does so by itself; ``reorder``: sums and products of innermost loops may be taken in any order.
    """

    blocks: bool
    contract: Contract = "fast"
    reorder: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """``of``: the targets that it is for; ``reason``: why it stands where it does.

    ``early``: proofs and predictions are made of what it leaves.
    """

    name: str
    reason: str
    run: Callable[[Plan, Machine], Plan]
    of: Literal["all", "gpu", "cpu"] = "all"
    early: bool = True

    def concerns(self, machine: Machine) -> bool:
        return self.of == "all" or (self.of == "gpu") == machine.blocks


def _each(rule: Callable[[Kernel, Plan], Kernel]) -> Callable[[Plan, Machine], Plan]:
    """Return a rewriting of kernels as one of plans."""

    def run(plan: Plan, machine: Machine) -> Plan:
        return replace(plan, steps=with_kernels(plan.steps, lambda kernel: rule(kernel, plan)))

    return run


def _split_reductions(plan: Plan, machine: Machine) -> Plan:
    codelet = plan.codelet if machine.blocks else _without_teams(plan.codelet)
    made = expand_split_reductions(codelet, rows=machine.blocks)
    return replace(plan, codelet=made.codelet, partial_sums=tuple(made.parts.items()), block_sums=made.sums)


def _without_teams(codelet: Codelet) -> Codelet:
    """Loops that were given to a team are parallel ones."""

    def rule(stmt: Stmt) -> Stmt | None:
        return replace(stmt, thread_axis="") if isinstance(stmt, Loop) and stmt.thread_axis == "team" else None

    return replace(codelet, body=rewrite_stmts(rule, codelet.body))


def _ping_pong(plan: Plan, machine: Machine) -> Plan:
    return replace(plan, codelet=with_ping_pong_arrays(plan.codelet))


def _map(plan: Plan, machine: Machine) -> Plan:
    return map_loops(plan, blocks=machine.blocks)


def _compact(kernel: Kernel, plan: Plan) -> Kernel:
    """Of a kernel whose threads are on their own, or share tiles."""
    loops = [f for f in (*kernel.loops, *walk(kernel.body)) if isinstance(f, Loop)]
    alone = kernel.team is None and kernel.time_tile is None
    if len(kernel.axes) < 2 or not alone or not requests_compaction(loops):
        return kernel
    y, x = kernel.axes
    return replace(kernel, packing=compact_grid(x, y, (kernel.threads("x"), kernel.threads("y")), kernel.body))


def _annotated(kernel: Kernel, plan: Plan) -> Kernel:
    """As the annotations that it inherits make it, see ``ir.nodes.Annotation.on_kernel``."""
    return reduce(lambda made, said: said.on_kernel(made), kernel.annotations, kernel)


def _contract(plan: Plan, machine: Machine) -> Plan:
    return forbid_contraction(plan, machine.contract)


def _if_convert(kernel: Kernel, plan: Plan) -> Kernel:
    return kernel if kernel.time_tile is not None else if_convert(kernel, plan)


def _fuse_first_values(kernel: Kernel, plan: Plan) -> Kernel:
    return fuse_first_values(kernel)


def _keep_lane_elements(kernel: Kernel, plan: Plan) -> Kernel:
    return keep_lane_elements(kernel, Var(LANE))


def _bands(plan: Plan, machine: Machine) -> Plan:
    return make_time_bands(plan)


def _nest(kernel: Kernel, plan: Plan) -> Kernel:
    return nest_axes(kernel)


def _reassociate(plan: Plan, machine: Machine) -> Plan:
    if not machine.reorder:
        return plan
    return replace(plan, steps=with_kernels(plan.steps, lambda k: replace(k, serial=mark_accumulations(k.serial))))


def _unswitch(kernel: Kernel, plan: Plan) -> Kernel:
    """Of a loop that cores share by its iterations only what is in it."""
    if not kernel.loops and kernel.team is not None:
        (loop,) = kernel.serial
        assert isinstance(loop, Loop), "the kernel is one loop"
        taken = referenced_names((kernel.team.trees[0].loop,))
        return replace(kernel, serial=(replace(loop, body=unswitch_innermost(loop.body, taken)),))
    taken = {*referenced_names(kernel.body), *referenced_names(kernel.loops)}
    return replace(kernel, serial=unswitch_innermost(kernel.serial, taken))


PASSES = (
    Pass("split-reduction", "makes the loops over parts of sums, which become an axis of a grid", _split_reductions),
    Pass("ping-pong-arrays", "adds the arrays between which launches of several steps go, which kernels are given",
         _ping_pong, of="gpu"),
    Pass("map-loops", "needs all loops; from here on there are kernels, which own what no other one reads", _map),
    Pass("temporal-tiling", "needs to know which scalars are in memory; the steps of a tile are taken as they stand",
         _each(allocate_tiles)),
    Pass("reduction-simplification", "sums a thread owns may share terms, before what they read is in registers",
         _each(share_sums)),
    Pass("thread-teams", "needs the locals of a kernel, which lane 0 makes known to the others",
         _each(divide_into_phases)),
    Pass("scalar-replacement", "needs the sums where they stay", _each(keep_in_scalars)),
    Pass("kernel-parameters", "needs the last name that the kernel's body has", _each(find_parameters)),
    Pass("grid-compaction", "needs the conditions around the whole body, as they are launched", _each(_compact)),
    Pass("annotations", "needs all of a kernel, which a directive's annotation may change as it likes",
         _each(_annotated)),
    Pass("fp-contraction", "needs all kernels, for what one computes another one decides by", _contract, of="gpu",
         early=False),
    Pass("if-conversion", "needs the scalars of the threads; before tiles, which threads have to fill together",
         _each(_if_convert), of="gpu", early=False),
    Pass("init-fusion", "needs the phases of a team; fewer of them touch an array then", _each(_fuse_first_values),
         of="gpu", early=False),
    Pass("lane-registers", "needs all accesses of a team to an array", _each(_keep_lane_elements), of="gpu",
         early=False),
    Pass("shared-memory", "needs the body as threads run it, whose accesses become those to tiles",
         _each(stage_kernel), of="gpu", early=False),
    Pass("time-bands", "makes two launches of one of several steps, as any others are", _bands, of="cpu",
         early=False),
    Pass("serial-nests", "needs the launches; from here on a kernel is the loops that a core runs", _each(_nest),
         of="cpu", early=False),
    Pass("reassociation", "needs innermost loops as they were judged, with their conditions inside", _reassociate,
         of="cpu", early=False),
    Pass("unswitch", "doubles innermost loops, so nothing else looks at them after it", _each(_unswitch), of="cpu",
         early=False),
)  # fmt: skip
"""In this order."""


def names() -> tuple[str, ...]:
    """Return the names of all passes, in their order."""
    return tuple(p.name for p in PASSES)


def lower_to_plan(
    codelet: Codelet, schedule_text: str = "", asserted: tuple[str, ...] = (), *, blocks: bool = False
) -> Plan:
    """Lower ``codelet``, all modes decided, by the passes for every target of its kind.

    ``schedule_text`` says which schedule made it, ``asserted`` which of its directives are not proved; ``blocks``:
    threads come in blocks, as on a GPU. UnsupportedError where a name of the program might be taken for one that
    lowering makes; DirectiveError where a directive does not fit.
    """
    check_names(codelet)
    plan = Plan(codelet, (), (), schedule_text, asserted=asserted)
    return run(plan, Machine(blocks), [p for p in PASSES if p.early])


def finish_plan(plan: Plan, machine: Machine) -> Plan:
    """Run the passes for ``machine`` that the plan has not gone through."""
    return run(plan, machine, PASSES)


def plan_after(
    codelet: Codelet, machine: Machine, last: str, schedule_text: str = "", asserted: tuple[str, ...] = ()
) -> Plan:
    """Lower ``codelet`` up to and with the pass called ``last``; UsageError where ``machine`` has none of that name."""
    own = [p.name for p in PASSES if p.concerns(machine)]
    if last not in own:
        kind = "a GPU" if machine.blocks else "a CPU"
        raise UsageError(f"--after {last}: no pass for {kind}; its passes are {', '.join(own)}")
    check_names(codelet)
    plan = Plan(codelet, (), (), schedule_text, asserted=asserted)
    return run(plan, machine, PASSES[: names().index(last) + 1])


def run(plan: Plan, machine: Machine, passes: Sequence[Pass]) -> Plan:
    """Return the plan after those of ``passes`` that apply to the machine and were not applied yet."""
    for step in passes:
        if step.concerns(machine) and step.name not in plan.passes:
            done = step.run(plan, machine)
            plan = replace(done, passes=(*done.passes, step.name))
    return plan
