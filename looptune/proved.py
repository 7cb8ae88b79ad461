"""What a version rests on: the judgement of its directives, the proof of its loops, the proof of what is launched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from looptune.mapped import prove_plan
from looptune.poly.proof import Proof, prove
from looptune.runtime.sizes import integers
from looptune.schedule import Scheduled
from looptune.tune.evaluate import plans_of
from looptune.tune.job import Job


@dataclass(frozen=True, slots=True)
class Proved:
    """``said``: what the report says; ``wrong``: the part of it that condemns the version, "" for most."""

    said: str
    wrong: str = ""


def proved(job: Job, done: Scheduled) -> Proved:
    """Of the job's codelet, at the job's sizes."""
    sizes = integers(job.codelet, job.problem.values)
    loops = prove(job.codelet, done.codelet, sizes, reassociate=job.reassociate)
    found, order = launched(job, done)
    judged = "every directive proved"
    if done.asserted:
        judged = f"asserted by the user, not proved: {', '.join(done.asserted)}"
    grid = "grid, guards, threads, registers" if job.target.bakes else "threads, registers"
    finished = {
        "proved": f"the finished loops, and the kernels as launched ({grid}), proved equivalent at these sizes",
        "failed": f"THE KERNELS AS LAUNCHED ARE WRONG: {found.reason}",
        "unknown": f"the finished loops could not be compared ({loops.reason})" if loops.verdict == "unknown" else
                   f"the finished loops proved, the kernels as launched could not be compared ({found.reason})",
    }  # fmt: skip
    said = finished[found.verdict] if loops.verdict != "failed" else f"THE FINISHED LOOPS ARE WRONG: {loops.reason}"
    # What a user asserts against a proof is measured and marked, for it was asked for.
    wrong = said if "failed" in (loops.verdict, found.verdict) and not done.asserted else ""
    return Proved(f"{judged}; {said}; {order}", wrong)


def launched(job: Job, done: Scheduled) -> tuple[Proof, str]:
    """The proof of the plan, and the sums that it adds up in another order than the original loops.

    What is proved with every sum in its order is proved in any, so that one proof is often enough for both.
    """
    plan, sums = plans_of(replace(job, odd=None), done.codelet, "").timed, ", ".join(map(str, done.sums))
    proof = partial(prove_plan, job.codelet, plan, integers(job.codelet, job.problem.values), blocks=job.target.bakes)
    found = proof(reassociate=job.reassociate and not sums)
    if not sums or found.verdict == "proved":
        return found, "holds without reordering any sum"
    return proof() if job.reassociate else found, f"rests on reordering {sums}"
