"""The end of a sweep: what the finals are asked, what of them is kept, and what the winner is proved by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from looptune import experiment, finals, mapped, places
from looptune.experiment import Prepared, Request, prepare
from looptune.poly.proof import Proof
from looptune.targets import Model
from looptune.tune.evaluate import Finals, KernelLab
from looptune.tune.serving import Returned
from looptune.tune.store import Store

KERNEL = """
void f(int n, int m, float A[n][m], float x[m], float y[n]) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < m; k++)
      y[i] += A[i][k] * x[k];
}
"""


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    return at(tmp_path, 40)


def at(folder: Path, m: int) -> Prepared:
    (folder / "f.c").write_text(KERNEL)
    return prepare(Request(folder / "f.c", defines={"n": "30", "m": str(m)}, target="numba-cpu"))


@dataclass(frozen=True)
class Asked(places.Here):
    """A place where finals are not run: every version takes an array of made-up times."""

    rounds: int = 5000
    tasks: list[tuple[Any, ...]] = field(default_factory=list)

    def alone(self, model: Model, setup: Any, limit_s: float, *task: Any) -> Returned:
        self.tasks.append((setup.args[0], *task))
        times = {text: tuple(10.0 + len(text) + k % 7 / 3 for k in range(self.rounds)) for text in task[0]}
        return Returned(Finals(times))


def test_a_repeated_command_compares_the_same_rounds(prepared: Prepared, tmp_path: Path) -> None:
    """The finals give what the database keeps, paired by round, so that verdicts are the same when it is looked up."""
    lab = KernelLab(prepared.job, prepared.context)
    place = Asked()
    with Store.open(tmp_path / "db") as store:
        found, again = (
            finals.run(lab, store, "s", ("", "loop k: unroll 2"), "", None, 0, False, place, prepared.model)
            for _ in range(2)
        )  # fmt: skip
    assert found == again
    assert {len(times) for times in found.times_us.values()} == {5000 // 3 + 1}
    assert found.times_us[""][1] == pytest.approx(10.0 + 3 % 7 / 3, abs=1e-3)
    assert len(place.tasks) == 1


def test_finals_know_the_default_and_skip_odd_sizes(prepared: Prepared, tmp_path: Path) -> None:
    """What all are compared with is named; sizes that were verified while screening are not set up again."""
    assert prepared.job.odd is not None
    place = Asked(rounds=3)
    with Store.open(tmp_path / "db") as store:
        lab = KernelLab(replace(prepared.job, target=replace(prepared.job.target, bakes=True)), prepared.context)
        finals.run(lab, store, "s", ("loop k: unroll 2", ""), "", None, 7, False, place, prepared.model)
    ((job, plans, by_hand, seed, default),) = place.tasks
    assert (job.odd, by_hand, seed, default) == (None, None, 7, "")
    assert {text: plan.odd for text, plan in plans.items()} == {"loop k: unroll 2": None, "": None}


@pytest.mark.parametrize(
    ("directives", "m", "order", "proofs"),
    [
        ("", 40, "holds without reordering any sum", [True]),
        ("loop i: unroll 2", 40, "holds without reordering any sum", [True]),
        ("loop k: unroll 2, split", 40, "rests on reordering +:y (5:7)", [False, True]),
        # Two copies of one iteration each.
        ("loop k: unroll 2, split", 2, "holds without reordering any sum", [False]),
    ],
)
def test_a_plan_is_proved_as_often_as_it_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directives: str, m: int, order: str, proofs: list[bool]
) -> None:
    """Once where no sum is reordered, or none need be at these sizes; ``proofs``: whether each let sums reorder."""
    made = []

    def counted(*given: Any, reassociate: bool = True, **more: Any) -> Proof:
        made.append(reassociate)
        return mapped.prove_plan(*given, reassociate=reassociate, **more)

    monkeypatch.setattr(experiment, "prove_plan", counted)
    prepared = at(tmp_path, m)
    lab = KernelLab(prepared.job, prepared.context)
    proof, said = experiment._launched(prepared, lab, experiment._scheduled(lab, directives))
    assert (proof.verdict, said, made) == ("proved", order, proofs)
