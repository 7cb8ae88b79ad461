"""The evidence for a version: the judgement of its directives, the proof of its loops, the proof of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from looptune.core.settings import FINALS_S
from looptune.lower.passes.cpu_reassociation import vectorised_sums
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import MOST, prove
from looptune.runtime.problem_sizes import integers
from looptune.schedule.messages import vectorised_sums_note
from looptune.tune.measure.build_steps import plans_of

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet
    from looptune.lower.plan import Plan
    from looptune.poly.reassociation import ReorderedReduction
    from looptune.schedule.apply import ScheduleResult
    from looptune.tune.job import Job

LEAST = 0.2
"""Of the operations of a proof: a winner of the suite takes no more."""

Status = Literal["proved", "loops proved", "directives proved", "asserted", "wrong"]
"""How far a proof reached: kernels as launched, finished loops, each directive alone; the user's word; none."""


@dataclass(frozen=True, slots=True)
class ProofSummary:
    """The result of a proof; ``text`` is the sentence for the report.

    ``wrong``: the part of it that says that the version is wrong, or ""; ``sums``: the reductions whose reordering the
    version relies on.
    """

    text: str
    wrong: str = ""
    status: Status = "proved"
    sums: tuple[str, ...] = ()


def prove_version(job: Job, done: ScheduleResult) -> ProofSummary:
    """Prove a version of the job's codelet at the job's sizes.

    The kernels as launched are compared with the original loops; if that is not possible, the finished loops are.
    """
    made = plans_of(replace(job, prime_problem=None), done.codelet, "").timed
    sizes = integers(job.codelet, job.problem.values)
    vectors = vectorised_sums(job.codelet, made) if job.reassociate and job.target.name == "numba-cpu" else ()
    return summarize_proof(
        job.codelet,
        done,
        made,
        sizes,
        reassociate=job.reassociate,
        blocks=job.target.specializes_sizes,
        vectors=vectors,
        most=_operations(job),
    )


def _operations(job: Job) -> int:
    """Return the operations of isl for a proof: where the finals have little time, as much less, down to LEAST."""
    share = job.finals_s / FINALS_S if job.finals_end else 1.0
    return int(MOST * min(1.0, max(LEAST, share)))


def summarize_proof(
    codelet: Codelet,
    done: ScheduleResult,
    made: Plan,
    sizes: Mapping[str, int],
    *,
    reassociate: bool,
    blocks: bool,
    vectors: Sequence[ReorderedReduction] = (),
    most: int | None = None,
) -> ProofSummary:
    """Prove that plan ``made`` computes what ``codelet`` does at ``sizes``, and summarise how far the proof reached.

    ``done``: the schedule from which the plan was made; ``blocks``: its threads form blocks, as on a GPU; ``vectors``:
    the reductions that a CPU's compiler may reorder in addition; ``most``: operations of isl for each of two proofs.
    """
    # Where no directive reorders a sum none may be: what is proved is then the order itself.
    sums = tuple(map(str, done.sums)) if reassociate else ()
    plan = prove_plan(codelet, made, sizes, reassociate=bool(sums), blocks=blocks, most=most)
    legality = "every directive proved"
    if done.asserted:
        legality = f"asserted by the user, not proved: {', '.join(done.asserted)}"
    said, wrong = "", ""
    status: Status = "proved"
    match plan.verdict:
        case "proved":
            grid = "grid, guards, threads, registers" if blocks else "threads, registers"
            said = f"the kernels as launched ({grid}) proved equivalent to the original loops at these sizes"
        case "failed":
            said = wrong = f"THE KERNELS AS LAUNCHED ARE WRONG: {plan.reason}"
            status = "wrong"
        case _:
            loops = prove(codelet, done.codelet, sizes, reassociate=bool(sums), most=most)
            plans = f"the kernels as launched could not be compared ({plan.reason})"
            said = {
                "proved": f"the finished loops proved, {plans}",
                "failed": f"THE FINISHED LOOPS ARE WRONG: {loops.reason}",
                "unknown": f"neither the finished loops nor the kernels as launched could be compared ({loops.reason})",
            }[loops.verdict]
            wrong = said if loops.verdict == "failed" else ""
            reached: dict[str, Status] = {"proved": "loops proved", "failed": "wrong"}
            status = reached.get(loops.verdict, "directives proved")
    order = f"rests on reordering {', '.join(sums)}" if sums else "holds without reordering any sum"
    order += f"; {vectorised_sums_note(vectors)}" if vectors else ""
    order = "; ".join((order, *(f"where {what}" for what in done.assumed)))
    # What a user asserts against a proof is measured and marked, for it was asked for.
    if done.asserted:
        wrong, status = "", "asserted"
    return ProofSummary(f"{legality}; {said}; {order}", wrong, status, sums)
