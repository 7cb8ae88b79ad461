"""The evidence for a version: the judgement of its directives, the proof of its loops, the proof of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from looptune.core.time_limit import call_within
from looptune.lower.passes.cpu_reassociation import vectorised_sums
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import prove
from looptune.runtime.problem_sizes import integers
from looptune.schedule.messages import vectorised_sums_note
from looptune.tune.measure.build_steps import plans_of

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet
    from looptune.lower.plan import Plan
    from looptune.poly.reassociation import ReorderedReduction
    from looptune.schedule.apply import ScheduleResult
    from looptune.tune.job import Job

LEAST_S = 3.0
"""Seconds that a proof has at least."""

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

    The kernels as launched are compared with the original loops; if that is not possible, the finished loops are. In a
    search with a budget it takes at most as long as the finals, and LEAST_S: a limit on isl's operations does not keep
    a time, because some take a thousand times as long as others.
    """
    if not job.finals_end:
        return _proved(job, done)
    seconds = max(LEAST_S, job.finals_s)
    found = call_within(seconds, lambda: _proved(job, done))
    return found or ProofSummary(
        f"{_legality(done)}; neither the finished loops nor the kernels as launched could be compared in "
        f"{seconds:.2g} s, which the budget leaves for it; {_order(done, job.reassociate)}",
        status="asserted" if done.asserted else "directives proved",
        sums=tuple(map(str, done.sums)) if job.reassociate else (),
    )


def _proved(job: Job, done: ScheduleResult) -> ProofSummary:
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
    )


def summarize_proof(
    codelet: Codelet,
    done: ScheduleResult,
    made: Plan,
    sizes: Mapping[str, int],
    *,
    reassociate: bool,
    blocks: bool,
    vectors: Sequence[ReorderedReduction] = (),
) -> ProofSummary:
    """Prove that plan ``made`` computes what ``codelet`` does at ``sizes``, and summarise how far the proof reached.

    ``done``: the schedule from which the plan was made; ``blocks``: its threads form blocks, as on a GPU; ``vectors``:
    the reductions that a CPU's compiler may reorder in addition.
    """
    # Where no directive reorders a sum none may be: what is proved is then the order itself.
    sums = tuple(map(str, done.sums)) if reassociate else ()
    plan = prove_plan(codelet, made, sizes, reassociate=bool(sums), blocks=blocks)
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
            loops = prove(codelet, done.codelet, sizes, reassociate=bool(sums))
            plans = f"the kernels as launched could not be compared ({plan.reason})"
            said = {
                "proved": f"the finished loops proved, {plans}",
                "failed": f"THE FINISHED LOOPS ARE WRONG: {loops.reason}",
                "unknown": f"neither the finished loops nor the kernels as launched could be compared ({loops.reason})",
            }[loops.verdict]
            wrong = said if loops.verdict == "failed" else ""
            reached: dict[str, Status] = {"proved": "loops proved", "failed": "wrong"}
            status = reached.get(loops.verdict, "directives proved")
    # What a user asserts against a proof is measured and marked, for it was asked for.
    if done.asserted:
        wrong, status = "", "asserted"
    return ProofSummary(f"{_legality(done)}; {said}; {_order(done, reassociate, vectors)}", wrong, status, sums)


def _legality(done: ScheduleResult) -> str:
    if done.asserted:
        return f"asserted by the user, not proved: {', '.join(done.asserted)}"
    return "every directive proved"


def _order(done: ScheduleResult, reassociate: bool, vectors: Sequence[ReorderedReduction] = ()) -> str:
    """Return on which reductions' order and on which conditions the version relies."""
    sums = ", ".join(map(str, done.sums)) if reassociate else ""
    order = f"rests on reordering {sums}" if sums else "holds without reordering any sum"
    order += f"; {vectorised_sums_note(vectors)}" if vectors else ""
    return "; ".join((order, *(f"where {what}" for what in done.assumed)))
