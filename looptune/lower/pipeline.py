"""Lowering as a list of passes: a codelet whose loops' modes are all decided becomes a plan of host steps and kernels.

    lower(codelet) -> Plan                    the passes for every target, on which proofs rest
    finish(plan, machine) -> FinishedPlan     those for one target: what its backend writes, or the cost model counts

``PASSES`` is the order, with the reason for the place of each. ``looptune emit FILE --after PASS`` prints the result of
one. A plan lists in ``passes`` those that made it, so that none of them runs twice. Nothing is decided while a backend
writes text: it prints a finished plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

from looptune.core.errors import UsageError
from looptune.lower.fp_contraction import separate_products
from looptune.lower.machine import Machine
from looptune.lower.mapping import check_names, map_loops
from looptune.lower.passes.address_split import split_addresses
from looptune.lower.passes.annotations import apply_annotations
from looptune.lower.passes.block_copies import copy_block_elements
from looptune.lower.passes.cpu_reassociation import reassociate
from looptune.lower.passes.cpu_time_bands import make_bands
from looptune.lower.passes.full_strips import version_strips
from looptune.lower.passes.grid_compaction import compact_kernel
from looptune.lower.passes.host_launches import split_persistent_launches
from looptune.lower.passes.if_conversion import if_convert
from looptune.lower.passes.kernel_parameters import find_parameters
from looptune.lower.passes.lane_registers import fuse_first_values, keep_lane_elements
from looptune.lower.passes.local_cse import eliminate_in_kernel
from looptune.lower.passes.own_copies import copy_own_elements
from looptune.lower.passes.reduction_simplification import share_sums
from looptune.lower.passes.resident_bodies import allocate_resident, make_resident_bodies
from looptune.lower.passes.resident_tiling import add_resident_spares, without_owners
from looptune.lower.passes.serial_nests import nest_axes
from looptune.lower.passes.shared_memory import stage_kernel
from looptune.lower.passes.split_reduction import split_reductions
from looptune.lower.passes.tall_grids import launch_rows_along_x
from looptune.lower.passes.team_updates import make_updates
from looptune.lower.passes.temporal_tile_bodies import allocate_tiles, make_bodies
from looptune.lower.passes.temporal_tiling import add_ping_pong_arrays
from looptune.lower.passes.thread_scalars import keep_in_scalars
from looptune.lower.passes.thread_teams import divide_into_phases
from looptune.lower.passes.tile_copies import make_copies
from looptune.lower.passes.uneven_strips import shorten_strips
from looptune.lower.passes.unswitch import unswitch_kernel
from looptune.lower.passes.warp_tiles import make_warp_tiles
from looptune.lower.plan import FinishedPlan, Kernel, Plan, data_decide, needs_wide_indices, with_kernels

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet

Targets = Literal["all", "gpu", "gpu, as text", "gpu, without a grid barrier", "cpu"]
"""Targets that a pass is for, by their capabilities."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass; ``of``: the targets that it is for; ``reason``: what it does, and why it stands where it does.

    ``early``: it runs for all targets before a plan is proved.
    """

    name: str
    reason: str
    run: Callable[[Plan, Machine], Plan]
    of: Targets = "all"
    early: bool = True

    def concerns(self, machine: Machine) -> bool:
        match self.of:
            case "all":
                return True
            case "gpu":
                return machine.blocks
            case "gpu, as text":
                return machine.blocks and machine.flat_arrays
            case "gpu, without a grid barrier":
                return machine.blocks and not machine.grid_barrier
            case "cpu":
                return not machine.blocks


def _each(rule: Callable[[Kernel, Plan], Kernel]) -> Callable[[Plan, Machine], Plan]:
    """Return a rewriting of kernels as one of plans."""

    def run(plan: Plan, machine: Machine) -> Plan:
        return replace(plan, steps=with_kernels(plan.steps, lambda kernel: rule(kernel, plan)))

    return run


PASSES = (
    Pass("split-reduction",
         "makes loops over the partial sums of split reductions; it is the first, since these loops become an axis "
         "of a grid",
         split_reductions),
    Pass("ping-pong-arrays",
         "adds the spare arrays of launches of several steps; kernels take them as parameters",
         add_ping_pong_arrays, of="gpu"),
    Pass("resident-arrays",
         "adds the arrays that take turns with those that threads keep; kernels take them as parameters",
         add_resident_spares, of="gpu"),
    Pass("map-loops",
         "maps loops to host, grid and thread; it needs all loops, and from here on a kernel owns what no other "
         "one reads",
         map_loops),
    Pass("temporal-tiling",
         "makes tiles for several steps; it needs to know which scalars are in memory, and takes the steps as they "
         "are here",
         _each(allocate_tiles)),
    Pass("resident-tiles",
         "allocates the elements that threads keep through a loop; it takes its iterations as they are here",
         _each(allocate_resident)),
    Pass("reduction-simplification",
         "lets sums of a thread share terms; it precedes the pass that puts their operands in registers",
         _each(share_sums)),
    Pass("thread-teams",
         "divides the work of a team into phases; it needs the locals of a kernel, which lane 0 broadcasts",
         _each(divide_into_phases)),
    Pass("scalar-replacement",
         "holds array elements in registers; it needs the sums at their final places",
         _each(keep_in_scalars)),
    Pass("warp-tiles",
         "gives sums of products to tensor cores; it needs the sums in registers, and the blocks that it makes decide "
         "the grid",
         make_warp_tiles),
    Pass("kernel-parameters",
         "finds the parameters of kernels; it needs all names in their bodies",
         _each(find_parameters)),
    Pass("grid-compaction",
         "leaves out idle blocks; it needs the conditions around the whole body, as they are launched",
         _each(compact_kernel)),
    Pass("annotations", "lets annotations change kernels; it needs complete kernels", _each(apply_annotations)),
    Pass("tall-grids",
         "launches blocks along y along x where they are too many; it needs the grid as it is launched",
         _each(launch_rows_along_x), of="gpu", early=False),
    Pass("host-launches",
         "lets the host make the launches of persistent loops",
         split_persistent_launches, of="gpu, without a grid barrier", early=False),
    Pass("fp-contraction",
         "selects the kernels that must not contract; it needs all kernels, since one may compute what another one "
         "decides by",
         separate_products, of="gpu", early=False),
    Pass("uneven-strips",
         "leaves out strips that no thread of a block needs, and conditions where all do; it needs the conditions of "
         "threads, and makes loops whose others are converted",
         _each(shorten_strips), of="gpu", early=False),
    Pass("if-conversion",
         "accumulates without conditions; it needs the registers of threads, and precedes tiles, which threads "
         "fill together",
         _each(if_convert), of="gpu", early=False),
    Pass("init-fusion",
         "fuses initial values into reductions; it needs the phases of a team, fewer of which then access an array",
         _each(fuse_first_values), of="gpu", early=False),
    Pass("lane-registers",
         "holds elements in the registers of lanes; it needs all accesses of a team to an array",
         _each(keep_lane_elements), of="gpu", early=False),
    Pass("block-copies",
         "copies the elements that a block uses and writes in an iteration of the grid; it needs the phases of a team, "
         "and precedes other copies",
         _each(copy_block_elements), of="gpu", early=False),
    Pass("own-copies",
         "copies the elements that one thread or one block alone uses; it needs the phases of a team, and precedes the "
         "tiles of what several threads read",
         _each(copy_own_elements), of="gpu", early=False),
    Pass("shared-memory",
         "makes tiles in shared memory; it needs the body as threads run it, whose accesses become accesses to "
         "tiles",
         _each(stage_kernel), of="gpu", early=False),
    Pass("temporal-tile-bodies",
         "makes the code of tiles for several steps; it needs their registers, and from here on the code of all "
         "threads is known",
         _each(make_bodies), of="gpu", early=False),
    Pass("resident-bodies",
         "makes the code of threads that keep their elements; it needs their registers, and from here on the code of "
         "all threads is known",
         _each(make_resident_bodies), of="gpu, as text", early=False),
    Pass("team-updates",
         "makes the updates of reduction targets; it needs initial values, and subscripts that distinguish "
         "elements",
         _each(make_updates), of="gpu, as text", early=False),
    Pass("full-strips",
         "versions loops before which tiles are filled; it duplicates loops, so no pass that searches for loops "
         "follows",
         _each(version_strips), of="gpu, as text", early=False),
    Pass("tile-copies",
         "makes the copies to tiles; it needs all tiles, and their subscripts, which are compared with the extents "
         "of arrays",
         _each(make_copies), of="gpu, as text", early=False),
    Pass("local-cse",
         "computes common subscripts and values once; it needs the subscripts of all dimensions, and from here on "
         "an array has one subscript",
         _each(eliminate_in_kernel), of="gpu, as text", early=False),
    Pass("address-split",
         "makes addresses sums in 64 bits; it needs one subscript for each access",
         _each(split_addresses), of="gpu, as text", early=False),
    Pass("time-bands",
         "makes two launches of one of several steps, which the passes after it treat like others",
         make_bands, of="cpu", early=False),
    Pass("serial-nests",
         "makes the loops that a core runs; it needs the launches, and from here on a kernel consists of these "
         "loops",
         _each(nest_axes), of="cpu", early=False),
    Pass("reassociation",
         "marks the sums that may be reordered; it needs innermost loops as they were judged, with their "
         "conditions inside",
         reassociate, of="cpu", early=False),
    Pass("unswitch",
         "removes conditions from innermost loops; it is the last, since it duplicates these loops",
         _each(unswitch_kernel), of="cpu", early=False),
)  # fmt: skip
"""In this order."""


def names() -> tuple[str, ...]:
    """Return the names of all passes, in their order."""
    return tuple(p.name for p in PASSES)


def lower(
    codelet: Codelet, schedule_text: str = "", asserted: tuple[str, ...] = (), *, blocks: bool = False,
    host_reads: bool = True,
) -> Plan:  # fmt: skip
    """Lower ``codelet``, all modes decided, by the passes for every target of its kind.

    ``schedule_text`` says which schedule made it, ``asserted`` which of its directives are not proved; ``blocks``:
    threads come in blocks, as on a GPU; ``host_reads``: see ``Machine``. UnsupportedError where a name of the program
    might be taken for one that lowering makes; DirectiveError where a directive does not fit.
    """
    check_names(codelet)
    plan = Plan(codelet, (), (), schedule_text, asserted=asserted)
    return _run(plan, Machine(blocks, host_reads=host_reads), [p for p in PASSES if p.early])


def finish(plan: Plan, machine: Machine) -> FinishedPlan:
    """Run the passes for ``machine`` that the plan has not gone through; one that is finished for it stays as it is."""
    if isinstance(plan, FinishedPlan):
        assert plan.machine == machine, f"the plan is for {plan.machine}, and not for {machine}"
        return plan
    if plan.passes and "ping-pong-arrays" not in plan.passes and machine.blocks:
        # Blocks would store into the array from which others load.
        assert all(k.time_tile is None for k in plan.kernels), "tiles of several steps were lowered for a CPU"
    if machine.blocks and not machine.grid_barrier and any(k.resident is not None for k in plan.kernels):
        plan = lower(
            without_owners(plan.codelet), plan.schedule_text, plan.asserted, blocks=True, host_reads=machine.host_reads
        )
    if not machine.host_reads and data_decide(plan):
        plan = lower(plan.codelet, plan.schedule_text, plan.asserted, blocks=machine.blocks, host_reads=False)
    done = _run(plan, machine, PASSES)
    done = replace(done, wide_indices=done.wide_indices or needs_wide_indices(done))
    return FinishedPlan(**{f.name: getattr(done, f.name) for f in fields(done)}, machine=machine)


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
    return _run(plan, machine, PASSES[: names().index(last) + 1])


def _run(plan: Plan, machine: Machine, passes: Sequence[Pass]) -> Plan:
    """Return the plan after those of ``passes`` that apply to the machine and were not applied yet."""
    for step in passes:
        if step.concerns(machine) and step.name not in plan.passes:
            done = step.run(plan, machine)
            plan = replace(done, passes=(*done.passes, step.name))
    return plan
